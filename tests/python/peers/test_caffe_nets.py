"""Whole Caffe nets with random weights equal the same nets in torch. Runs in .venv-peers."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import cairn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import caffe_files as files  # noqa: E402


class Net:
    """Layers that are written down as prototxt and computed by torch at the same time; a value is its top's name."""

    def __init__(self, **inputs):
        self.random = np.random.default_rng(3)
        self.text, self.weights, self.count = files.inputs(**inputs), {}, 0
        self.arrays = {name: self.floats(*shape) for name, shape in inputs.items()}
        self.values = {name: torch.from_numpy(x) for name, x in self.arrays.items()}

    def floats(self, *shape):
        return self.random.normal(size=shape).astype(np.float32)

    def layer(self, kind, bottoms, function, *weights, top=None, **params):
        self.count += 1
        name = f"{kind.lower()}{self.count}"
        self.text += files.layer(kind, bottoms, top or name, name, **params)
        if weights:
            self.weights[name] = weights
        tensors = [self.values[bottom] for bottom in bottoms.split()]
        self.values[top or name] = function(*tensors, *map(torch.from_numpy, weights))
        return top or name

    def convolution(self, x, outputs, kernel, stride=1, pad=0, group=1, bias=True):
        inputs = self.values[x].shape[1] // group
        w = self.floats(outputs, inputs, kernel, kernel) / np.float32(np.sqrt(inputs * kernel**2))
        weights = [w, self.floats(outputs)] if bias else [w]
        param = dict(num_output=outputs, kernel_size=kernel, stride=stride, pad=pad, group=group, bias_term=bias)
        function = lambda x, w, b=None: F.conv2d(x, w, b, stride, pad, 1, group)
        return self.layer("Convolution", x, function, *weights, convolution_param=param)

    def deconvolution(self, x, outputs, kernel, stride):
        inputs = self.values[x].shape[1]
        weights = [self.floats(inputs, outputs, kernel, kernel) / np.float32(np.sqrt(inputs * kernel)), self.floats(outputs)]
        param = dict(num_output=outputs, kernel_size=kernel, stride=stride)
        function = lambda x, w, b: F.conv_transpose2d(x, w, b, stride)
        return self.layer("Deconvolution", x, function, *weights, convolution_param=param)

    def dense(self, x, outputs):
        inputs = self.values[x][0].numel()
        weights = [self.floats(outputs, inputs) / np.float32(np.sqrt(inputs)), self.floats(outputs)]
        function = lambda x, w, b: F.linear(x.flatten(1), w, b)
        return self.layer("InnerProduct", x, function, *weights, inner_product_param=dict(num_output=outputs))

    def relu(self, x):
        return self.layer("ReLU", x, torch.relu, top=x)

    def maximum(self, x, kernel, stride, pad=0):
        param = dict(pool="MAX", kernel_size=kernel, stride=stride, pad=pad)
        function = lambda x: F.max_pool2d(x, kernel, stride, pad, ceil_mode=True)
        return self.layer("Pooling", x, function, pooling_param=param)

    def mean(self, x):
        function = lambda x: x.mean((2, 3), keepdim=True)
        return self.layer("Pooling", x, function, pooling_param=dict(pool="AVE", global_pooling=True))

    def norm(self, x):
        """BatchNorm and Scale, both in place."""
        channels = self.values[x].shape[1]
        statistics = [self.floats(channels), np.abs(self.floats(channels)) + 0.5]
        stored = [*(one * np.float32(999.98) for one in statistics), np.float32([999.98])]
        function = lambda x, mean, variance, count: F.batch_norm(x, mean / count, variance / count)
        self.layer("BatchNorm", x, function, *stored, top=x)
        function = lambda x, scale, bias: x * scale[:, None, None] + bias[:, None, None]
        weights = [self.floats(channels), self.floats(channels)]
        return self.layer("Scale", x, function, *weights, top=x, scale_param=dict(bias_term=True))

    def response(self, x):
        function = lambda x: F.local_response_norm(x, 5, 1e-1, 0.75, 1.0)
        return self.layer("LRN", x, function, lrn_param=dict(local_size=5, alpha=1e-1, beta=0.75))

    def dropout(self, x):
        return self.layer("Dropout", x, lambda x: x, top=x, dropout_param=dict(dropout_ratio=0.5))

    def softmax(self, x):
        return self.layer("Softmax", x, lambda x: x.softmax(1))

    def join(self, *parts):
        return self.layer("Concat", " ".join(parts), lambda *x: torch.cat(x, 1))

    def sum(self, *parts):
        return self.layer("Eltwise", " ".join(parts), lambda *x: sum(x))


def lenet():
    net = Net(data=(3, 1, 28, 28))
    x = net.maximum(net.convolution("data", 20, 5), 2, 2)
    x = net.maximum(net.convolution(x, 50, 5), 2, 2)
    net.softmax(net.dense(net.relu(net.dense(x, 500)), 10))
    return net


def alexnet():
    net = Net(data=(1, 3, 99, 99))
    x = net.response(net.maximum(net.relu(net.convolution("data", 32, 11, 4)), 3, 2))
    x = net.response(net.maximum(net.relu(net.convolution(x, 64, 5, 1, 2, 2)), 3, 2))
    x = net.relu(net.convolution(net.relu(net.convolution(x, 48, 3, 1, 1)), 48, 3, 1, 1, 2))
    x = net.maximum(x, 3, 2)
    net.softmax(net.dense(net.dropout(net.relu(net.dense(x, 128))), 20))
    return net


def googlenet():
    net = Net(data=(2, 16, 14, 15))
    for _ in range(2):
        one = net.relu(net.convolution("data" if net.count == 0 else x, 8, 1))
        bottom = "data" if net.count <= 2 else x
        three = net.relu(net.convolution(net.relu(net.convolution(bottom, 6, 1)), 12, 3, 1, 1))
        five = net.relu(net.convolution(net.relu(net.convolution(bottom, 4, 1)), 8, 5, 1, 2))
        pool = net.relu(net.convolution(net.maximum(bottom, 3, 1, 1), 4, 1))
        x = net.join(one, three, five, pool)
    net.mean(net.maximum(x, 3, 2))
    return net


def resnet():
    net = Net(data=(2, 3, 33, 33))
    x = net.maximum(net.relu(net.norm(net.convolution("data", 16, 7, 2, 3, bias=False))), 3, 2)
    for width, stride in ((16, 1), (32, 2)):
        short = net.norm(net.convolution(x, width, 1, stride, bias=False))
        y = net.relu(net.norm(net.convolution(x, width, 3, stride, 1, bias=False)))
        y = net.norm(net.convolution(y, width, 3, 1, 1, bias=False))
        x = net.relu(net.sum(short, y))
    net.softmax(net.dense(net.mean(x), 10))
    return net


def mobilenet():
    net = Net(data=(1, 3, 32, 32))
    x = net.relu(net.norm(net.convolution("data", 8, 3, 2, 1, bias=False)))
    for width, stride in ((16, 1), (24, 2)):
        x = net.relu(net.norm(net.convolution(x, net.values[x].shape[1], 3, stride, 1, net.values[x].shape[1], bias=False)))
        x = net.relu(net.norm(net.convolution(x, width, 1, bias=False)))
    net.convolution(net.mean(x), 10, 1)
    return net


def unet():
    net = Net(data=(1, 3, 20, 24))
    first = net.relu(net.convolution("data", 8, 3, 1, 1))
    second = net.relu(net.convolution(net.maximum(first, 2, 2), 16, 3, 1, 1))
    third = net.relu(net.convolution(net.maximum(second, 2, 2), 32, 3, 1, 1))
    for skipped, width in ((second, 16), (first, 8)):
        up = net.deconvolution(third, width, 4, 2)
        cut = net.layer("Crop", f"{up} {skipped}", lambda x, like: x[:, :, 1 : 1 + like.shape[2], 1 : 1 + like.shape[3]],
                        crop_param=dict(axis=2, offset=1))  # fmt: skip
        third = net.relu(net.convolution(net.join(cut, skipped), width, 3, 1, 1))
    net.softmax(net.convolution(third, 4, 1))
    return net


def ssd_head():
    net = Net(data=(2, 8, 12, 12))
    places, classes = [], []
    for x in ("data", net.relu(net.convolution("data", 16, 3, 2, 1))):
        for outputs, parts in ((4 * 4, places), (4 * 3, classes)):
            y = net.convolution(x, outputs, 3, 1, 1)
            y = net.layer("Permute", y, lambda x: x.permute(0, 2, 3, 1), permute_param=dict(order=[0, 2, 3, 1]))
            parts.append(net.layer("Flatten", y, lambda x: x.flatten(1), flatten_param=dict(axis=1)))
    net.join(*places)
    scores = net.layer("Reshape", net.join(*classes), lambda x: x.reshape(2, -1, 3),
                       reshape_param=dict(shape=dict(dim=[0, -1, 3])))  # fmt: skip
    net.layer("Softmax", scores, lambda x: x.softmax(2), softmax_param=dict(axis=2))
    return net


@pytest.mark.parametrize("make", [lenet, alexnet, googlenet, resnet, mobilenet, unet, ssd_head])
def test_nets(make, tmp_path):
    net = make()
    (tmp_path / "net.prototxt").write_text(net.text)
    (tmp_path / "net.caffemodel").write_bytes(files.caffemodel(net.weights))
    model = cairn.load(tmp_path / "net.prototxt", weights=tmp_path / "net.caffemodel")
    found = model.run(net.arrays)
    assert len(model.outputs) == (2 if make is ssd_head else 1)
    for port in model.outputs:
        expected = net.values[port.name].numpy()
        assert found[port.name].shape == expected.shape and np.ptp(expected) > 0
        np.testing.assert_allclose(found[port.name], expected, atol=2e-5 * max(1, np.abs(expected).max()))


def test_open_batches_and_shapes_that_are_asked_for(tmp_path):
    net = resnet()
    (tmp_path / "net.prototxt").write_text(net.text)
    (tmp_path / "net.caffemodel").write_bytes(files.caffemodel(net.weights))
    expected = net.values[list(net.values)[-1]].numpy()
    model = cairn.load(tmp_path / "net.prototxt", weights=tmp_path / "net.caffemodel", input_shapes={"data": (None, 3, 33, 33)})
    for batch in (1, 2):
        (found,) = model.run({"data": net.arrays["data"][:batch]}).values()
        np.testing.assert_allclose(found, expected[:batch], atol=2e-5)


@pytest.mark.parametrize("generation", [1, 2, 3])
@pytest.mark.parametrize("how", [{}, {"wide": True}, {"packed": False}])
def test_weights_of_all_generations_and_forms(tmp_path, generation, how):
    net = lenet()
    (tmp_path / "net.prototxt").write_text(net.text)
    (tmp_path / "net.caffemodel").write_bytes(files.caffemodel(net.weights, generation, **how))
    model = cairn.load(tmp_path / "net.prototxt", weights=tmp_path / "net.caffemodel")
    (found,) = model.run(net.arrays).values()
    np.testing.assert_allclose(found, net.values[list(net.values)[-1]].numpy(), atol=2e-5)
