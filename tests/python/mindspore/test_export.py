"""Networks as .om and .onnx files give what the network gives."""

import cairn
import mindspore
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn, ops


class Block(nn.Cell):
    def __init__(self):
        super().__init__()
        self.body = nn.SequentialCell(
            nn.Conv2d(3, 8, 3, stride=2, pad_mode="pad", padding=(1, 0, 1, 0), has_bias=True, bias_init="normal"), nn.BatchNorm2d(8), nn.ReLU6(),
            nn.Conv2d(8, 8, 3, group=8), nn.AvgPool2d(2, 2, "same"), nn.MaxPool2d(2, 1), nn.LeakyReLU(), nn.Flatten())
        self.norm, self.dense = nn.LayerNorm((32,)), nn.Dense(32, 5, activation="gelu")
        self.drop = nn.Dropout(0.5)

    def construct(self, x):
        x = self.norm(self.body(x))
        return ops.softmax(self.drop(self.dense(x))), x.mean(1)


class Attention(nn.Cell):
    def construct(self, x, y):
        scores = ops.BatchMatMul(transpose_b=True)(x, y) / 2.0
        return ops.BatchMatMul()(ops.Softmax()(scores), ops.concat((y, ops.exp(-y)), -1))


@pytest.mark.parametrize("file_format", ["OM", "ONNX"])
def test_files_give_what_the_network_gives(tmp_path, file_format):
    rng = np.random.RandomState(0)
    cases = [(Block(), [(2, 3, 12, 12)]), (Attention(), [(2, 4, 6), (2, 5, 6)])]
    for net, shapes in cases:
        net.set_train(True)
        inputs = [Tensor(rng.normal(size=shape).astype(np.float32)) for shape in shapes]
        path = tmp_path / type(net).__name__
        mindspore.export(net, *inputs, file_name=str(path), file_format=file_format)
        assert net.training
        model = cairn.load(f"{path}.{file_format.lower()}")
        made = model.run({("x%d" % place if place else "x"): each.asnumpy() for place, each in enumerate(inputs)})
        net.set_train(False)
        expected = net(*inputs)
        for name, each in zip(("output", "output1"), expected if isinstance(expected, tuple) else (expected,)):
            np.testing.assert_allclose(made[name], each.asnumpy(), rtol=1e-5, atol=1e-6)


def test_what_cannot_be_exported_is_refused(tmp_path):
    class Counts(nn.Cell):
        def __init__(self):
            super().__init__()
            self.count = Parameter(Tensor(np.float32([0])), name="count")

        def construct(self, x):
            ops.assign(self.count, self.count + 1)
            return x + self.count

    x, name = Tensor(np.ones(1, np.float32)), str(tmp_path / "net")
    with pytest.raises(NotImplementedError, match="assigns"):
        mindspore.export(Counts(), x, file_name=name, file_format="OM")
    with pytest.raises(NotImplementedError, match="MINDIR"):
        mindspore.export(nn.ReLU(), x, file_name=name, file_format="MINDIR")
    with pytest.raises(ValueError):
        mindspore.export(nn.ReLU(), x, file_name=name, file_format="PB")
    with pytest.raises(TypeError):
        mindspore.export("net", x, file_name=name, file_format="OM")
    assert not list(tmp_path.iterdir())
