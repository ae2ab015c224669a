"""The nets of bench/mindspore_nets.py in torch; modules have the names that Cells have there, for weights to be carried over."""

import numpy as np
import torch
import torch.nn.functional as F
from nets import MOBILENET_STAGES
from torch import nn

WORDS, LENGTH, HIDDEN, HEADS, LAYERS = 8192, 128, 128, 2, 2
LSTM_WORDS, LSTM_HIDDEN = 8192, 128
NAMES = {"gamma": "weight", "beta": "bias", "moving_mean": "running_mean", "moving_variance": "running_var", "embedding_table": "weight"}


def _conv(inputs, outputs, size, stride=1, groups=1):
    return nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups, bias=False)


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
        self.fc1, self.fc2, self.fc3 = nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x.flatten(1))))))


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(784, 512), nn.Linear(512, 10)

    def forward(self, x):
        return self.fc2(F.relu(self.fc1(x)))


class Bottleneck(nn.Module):
    def __init__(self, channels, width, stride, first):
        super().__init__()
        self.conv1, self.norm1 = _conv(channels, width, 1), nn.BatchNorm2d(width)
        self.conv2, self.norm2 = _conv(width, width, 3, stride), nn.BatchNorm2d(width)
        self.conv3, self.norm3 = _conv(width, 4 * width, 1), nn.BatchNorm2d(4 * width)
        self.down = nn.Sequential(_conv(channels, 4 * width, 1, stride), nn.BatchNorm2d(4 * width)) if first else None

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        y = self.norm3(self.conv3(F.relu(self.norm2(self.conv2(y)))))
        return F.relu(y + (x if self.down is None else self.down(x)))


class ResNet50(nn.Module):
    def __init__(self, stages=(3, 4, 6, 3), classes=1000):
        super().__init__()
        self.conv1, self.norm1 = _conv(3, 64, 7, 2), nn.BatchNorm2d(64)
        channels, blocks = 64, []
        for stage, count in enumerate(stages):
            width = 64 << stage
            for block in range(count):
                blocks.append(Bottleneck(channels, width, 2 if stage and not block else 1, not block))
                channels = 4 * width
        self.blocks, self.fc = nn.Sequential(*blocks), nn.Linear(channels, classes)

    def forward(self, x):
        x = F.pad(F.relu(self.norm1(self.conv1(x))), (1, 1, 1, 1))
        return self.fc(self.blocks(F.max_pool2d(x, 3, 2)).mean((2, 3)))


class InvertedResidual(nn.Module):
    def __init__(self, channels, width, expansion, stride):
        super().__init__()
        inner, layers = channels * expansion, []
        if expansion != 1:
            layers += [_conv(channels, inner, 1), nn.BatchNorm2d(inner), nn.ReLU6()]
        layers += [_conv(inner, inner, 3, stride, inner), nn.BatchNorm2d(inner), nn.ReLU6(), _conv(inner, width, 1), nn.BatchNorm2d(width)]
        self.layers, self.adds = nn.Sequential(*layers), stride == 1 and channels == width

    def forward(self, x):
        return x + self.layers(x) if self.adds else self.layers(x)


class MobileNetV2(nn.Module):
    def __init__(self, classes=1000):
        super().__init__()
        layers, channels = [_conv(3, 32, 3, 2), nn.BatchNorm2d(32), nn.ReLU6()], 32
        for expansion, width, blocks, stride in MOBILENET_STAGES:
            for block in range(blocks):
                layers.append(InvertedResidual(channels, width, expansion, 1 if block else stride))
                channels = width
        layers += [_conv(320, 1280, 1), nn.BatchNorm2d(1280), nn.ReLU6()]
        self.features, self.fc = nn.Sequential(*layers), nn.Linear(1280, classes)

    def forward(self, x):
        return self.fc(self.features(x).mean((2, 3)))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(HIDDEN, HIDDEN) for _ in range(4))
        self.norm1, self.norm2 = nn.LayerNorm(HIDDEN), nn.LayerNorm(HIDDEN)
        self.inner, self.outer = nn.Linear(HIDDEN, 4 * HIDDEN), nn.Linear(4 * HIDDEN, HIDDEN)

    def split(self, x):
        return x.view(-1, LENGTH, HEADS, HIDDEN // HEADS).transpose(1, 2)

    def forward(self, x):
        mixed = F.scaled_dot_product_attention(self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x)))
        x = self.norm1(x + self.out(mixed.transpose(1, 2).reshape(-1, LENGTH, HIDDEN)))
        return self.norm2(x + self.outer(F.gelu(self.inner(x), approximate="tanh")))


class Bert(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, HIDDEN), nn.Parameter(torch.zeros(LENGTH, HIDDEN))
        self.norm, self.layers = nn.LayerNorm(HIDDEN), nn.Sequential(*[Layer() for _ in range(LAYERS)])
        self.pooler, self.fc = nn.Linear(HIDDEN, HIDDEN), nn.Linear(HIDDEN, 2)

    def forward(self, ids):
        return self.fc(torch.tanh(self.pooler(self.layers(self.norm(self.words(ids) + self.places))[:, 0])))


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.fc = nn.Embedding(LSTM_WORDS, LSTM_HIDDEN), nn.Linear(LSTM_HIDDEN, 2)
        self.lstm = nn.LSTM(LSTM_HIDDEN, LSTM_HIDDEN, batch_first=True)

    def forward(self, ids):
        return self.fc(self.lstm(self.words(ids))[0][:, -1])


class Ops(nn.Module):
    """Ten small operators."""

    def forward(self, x):
        y = torch.exp(-torch.tanh(x) * 0.5) + x
        return F.relu(y - x) / (y * y + 1.0)


NETS = {
    "lenet": LeNet, "mlp": Mlp, "resnet32": ResNet50, "resnet224": ResNet50, "mobilenet": MobileNetV2, "bert": Bert, "lstm": Lstm,
}  # fmt: skip


def name_of(name):
    """The name here of a Cell's parameter."""
    *path, last = name.split(".")
    return ".".join([*path, NAMES.get(last, last)])


def take_weights(net, weights):
    """Gives the net the weights of a Cell, {name: array}."""
    own = {**dict(net.named_parameters()), **dict(net.named_buffers())}
    for name, array in weights.items():
        tensor = own[name_of(name)]
        with torch.no_grad():
            tensor.copy_(torch.from_numpy(np.ascontiguousarray(array)).reshape(tensor.shape))


def parts(name):
    """(net, loss, optimizer)"""
    net = NETS[name]()
    adam = name in ("bert", "lstm")
    optimizer = torch.optim.Adam(net.parameters(), 1e-4) if adam else torch.optim.SGD(net.parameters(), 1e-3, 0.9)
    return net, F.cross_entropy, optimizer
