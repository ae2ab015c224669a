"""Networks of the MindSpore door against torch with the same weights: losses and gradients, eager and captured."""

import cairn.ms  # noqa: F401, I001
import mindspore
import numpy as np
import pytest
import torch
from mindspore import ParameterTuple, Tensor, context, nn, ops


class Small(nn.Cell):
    """A convolutional net with a skip connection."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, stride=2, pad_mode="pad", padding=1)
        self.bn1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 8, 3, pad_mode="same", has_bias=True)
        self.pool = nn.MaxPool2d(2, 2)
        self.fc = nn.Dense(8 * 4 * 4, 5)
        self.relu, self.flatten = nn.ReLU(), nn.Flatten()

    def construct(self, x):
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.pool(self.relu(self.conv2(x)) + x)
        return self.fc(self.flatten(x))


def of_torch(weights, x, y):
    """{name: gradient} and the loss."""
    given = {name: torch.tensor(value, requires_grad=True) for name, value in weights.items()}
    z = torch.conv2d(torch.tensor(x), given["conv1.weight"], stride=2, padding=1)
    z = torch.relu(torch.nn.functional.batch_norm(z, None, None, given["bn1.gamma"], given["bn1.beta"], training=True, eps=1e-5))
    z = torch.relu(torch.conv2d(z, given["conv2.weight"], given["conv2.bias"], padding=1)) + z
    z = torch.nn.functional.max_pool2d(z, 2).flatten(1) @ given["fc.weight"].T + given["fc.bias"]
    loss = torch.nn.functional.cross_entropy(z, torch.tensor(y).long())
    loss.backward()
    return {name: each.grad.numpy() for name, each in given.items()}, loss.item()


@pytest.mark.parametrize("mode", [context.PYNATIVE_MODE, context.GRAPH_MODE], ids=["eager", "graph"])
def test_a_convolutional_net(mode):
    context.set_context(mode=mode)
    mindspore.set_seed(1)
    random = np.random.default_rng(0)
    net = Small()
    net.set_train()
    for param in net.trainable_params():
        param.set_data(Tensor((param.asnumpy() + 0.3 * random.normal(size=param.shape)).astype(np.float32)))
    weights = {param.name: param.asnumpy().copy() for param in net.trainable_params()}
    x = random.normal(size=(6, 3, 16, 16)).astype(np.float32)
    y = random.integers(0, 5, 6).astype(np.int32)
    with_loss = nn.WithLossCell(net, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"))
    parameters = ParameterTuple(net.trainable_params())
    gradients = ops.GradOperation(get_by_list=True)(with_loss, parameters)(Tensor(x), Tensor(y))
    expected, loss = of_torch(weights, x, y)
    assert set(expected) == set(weights)
    assert abs(float(with_loss(Tensor(x), Tensor(y)).asnumpy()) - loss) < 1e-5 * abs(loss)
    for param, found in zip(parameters, gradients):
        wanted = expected[param.name]
        assert np.abs(found.asnumpy() - wanted).max() <= 1e-4 * np.abs(wanted).max(), param.name


@pytest.mark.parametrize("mode", [context.PYNATIVE_MODE, context.GRAPH_MODE], ids=["eager", "graph"])
def test_a_gradient_penalty_is_a_gradient_of_a_gradient(mode):
    context.set_context(mode=mode)
    random = np.random.default_rng(1)
    w, x = random.normal(size=(4, 3)).astype(np.float32), random.normal(size=(5, 4)).astype(np.float32)

    def penalty(x, w):
        slope = ops.grad(lambda x: ops.tanh(ops.matmul(x, w)).sum())(x)
        return (slope * slope).sum()

    dw = ops.grad(penalty, 1)(Tensor(x), Tensor(w))
    tx, tw = torch.tensor(x, requires_grad=True), torch.tensor(w, requires_grad=True)
    (slope,) = torch.autograd.grad(torch.tanh(tx @ tw).sum(), tx, create_graph=True)
    (wanted,) = torch.autograd.grad((slope * slope).sum(), tw)
    np.testing.assert_allclose(dw.asnumpy(), wanted.numpy(), rtol=1e-4, atol=1e-5)
