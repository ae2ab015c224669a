"""Gradients of whole networks that torch exported to ONNX, by inputs and by every weight, against torch's own."""

import numpy
import pytest

import cairn

torch = pytest.importorskip("torch")
nn = torch.nn


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.a = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.b = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm_a, self.norm_b = nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)
        self.short = (
            nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
            if stride != 1 or inputs != outputs
            else nn.Identity()
        )

    def forward(self, x):
        y = self.norm_b(self.b(torch.relu(self.norm_a(self.a(x)))))
        return torch.relu(y + self.short(x))


class ResNet18(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(3, 2, 1)
        )
        stages, inputs = [], width
        for stage in range(4):
            outputs = width << stage
            stages += [Block(inputs, outputs, 1 if stage == 0 else 2), Block(outputs, outputs, 1)]
            inputs = outputs
        self.stages = nn.Sequential(*stages)
        self.head = nn.Linear(inputs, 10)

    def forward(self, x):
        return self.head(self.stages(self.stem(x)).mean((2, 3)))


class ViT(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 8, 8)
        self.places = nn.Parameter(torch.randn(1, 16, width) * 0.1)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(4))
        self.qkv = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(2))
        self.out = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.mlp = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)) for _ in range(2)
        )
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2) + self.places
        for i in range(2):
            q, k, v = (
                each.reshape(2, 16, 4, 8).transpose(1, 2) for each in self.qkv[i](self.norms[2 * i](x)).chunk(3, -1)
            )
            weights = torch.softmax(q @ k.transpose(-1, -2) / 8**0.5, -1)
            x = x + self.out[i]((weights @ v).transpose(1, 2).reshape(2, 16, 32))
            x = x + self.mlp[i](self.norms[2 * i + 1](x))
        return self.head(x.mean(1))


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells = nn.LSTM(5, 7, num_layers=2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(14, 3)

    def forward(self, x):
        return self.head(self.cells(x)[0])


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        conv = lambda a, b: nn.Sequential(nn.Conv2d(a, b, 3, 1, 1), nn.GroupNorm(2, b), nn.SiLU())  # noqa: E731
        self.down, self.middle = nn.ModuleList([conv(1, 8), conv(8, 16)]), conv(16, 32)
        self.up = nn.ModuleList([nn.ConvTranspose2d(32, 16, 2, 2), nn.ConvTranspose2d(16, 8, 2, 2)])
        self.join = nn.ModuleList([conv(32, 16), conv(16, 8)])
        self.head = nn.Conv2d(8, 2, 1)

    def forward(self, x):
        a = self.down[0](x)
        b = self.down[1](nn.functional.max_pool2d(a, 2))
        y = self.middle(nn.functional.avg_pool2d(b, 2))
        y = self.join[0](torch.cat([self.up[0](y), b], 1))
        y = self.join[1](torch.cat([self.up[1](y), a], 1))
        return torch.sigmoid(self.head(y))


NETWORKS = {
    "resnet18": (ResNet18, (2, 3, 64, 64)),
    "vit": (ViT, (2, 3, 32, 32)),
    "lstm": (Lstm, (3, 6, 5)),
    "unet": (UNet, (1, 1, 16, 16)),
}


def exported(network, x, path):
    torch.onnx.export(
        network,
        (x,),
        path,
        input_names=["x"],
        output_names=["y"],
        dynamo=False,
        do_constant_folding=False,
        training=torch.onnx.TrainingMode.PRESERVE,
    )


@pytest.mark.parametrize("name", NETWORKS)
def test_gradients_of_networks_equal_those_of_torch(name, tmp_path):
    torch.manual_seed(0)
    make, shape = NETWORKS[name]
    network = make().eval()
    with torch.no_grad():  # no two weights alike: the exporter makes one of them
        for values in [*network.parameters(), *(each for each in network.buffers() if each.is_floating_point())]:
            values.add_(torch.randn_like(values) * 0.01)
    x = torch.randn(shape, requires_grad=True)
    exported(network, x.detach(), tmp_path / "model.onnx")
    y = network(x)
    dy = torch.randn(y.shape)
    names = [name for name, _ in network.named_parameters()]
    found = torch.autograd.grad(y, [x, *network.parameters()], dy)
    expected = dict(zip(["x", *names], (each.numpy() for each in found), strict=True))

    results, gradients = cairn.vjp(tmp_path / "model.onnx", ["x"], weights=True)({"x": x.detach().numpy()}, {"y": dy.numpy()})
    numpy.testing.assert_allclose(results["y"], y.detach().numpy(), atol=1e-4)
    for key, value in expected.items():
        assert gradients[key].shape == value.shape
        assert numpy.abs(gradients[key] - value).max() <= 1e-4 * numpy.abs(value).max(), key


class Looped(nn.Module):
    """Turns and branches that the data decide."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(4, 4) * 0.5)

    def forward(self, x):
        turns = int((x * x).sum() * 0) + 4
        for i in range(turns):
            if bool(x.sum() > 0):
                x = torch.tanh(x @ self.w) - 0.1
            else:
                x = torch.sin(x) @ self.w + 0.2
        return x * x


def test_gradients_of_scripted_loops_equal_those_of_torch(tmp_path):
    torch.manual_seed(1)
    network = torch.jit.script(Looped())
    x = torch.randn(2, 4, requires_grad=True)
    exported(network, x.detach(), tmp_path / "model.onnx")
    y = network(x)
    dy = torch.randn(y.shape)
    expected = torch.autograd.grad(y, [x, network.w], dy)
    results, gradients = cairn.vjp(tmp_path / "model.onnx", ["x", "w"])({"x": x.detach().numpy()}, {"y": dy.numpy()})
    numpy.testing.assert_allclose(results["y"], y.detach().numpy(), atol=1e-5)
    for name, gradient in zip(["x", "w"], expected, strict=True):
        numpy.testing.assert_allclose(gradients[name], gradient.numpy(), atol=1e-5)
