"""Nets of bench/mindspore_steps.py as MindSpore's scripts write them; they run on MindSpore and on cairn.ms alike."""

import mindspore as ms
import mindspore.nn as nn
import mindspore.ops as ops
import numpy as np
from nets import MOBILENET_STAGES

WORDS, LENGTH, HIDDEN, HEADS, LAYERS = 8192, 128, 128, 2, 2  # BERT-tiny
LSTM_WORDS, LSTM_HIDDEN = 8192, 128


def _conv(inputs, outputs, size, stride=1, group=1):
    return nn.Conv2d(inputs, outputs, size, stride, pad_mode="pad", padding=size // 2, group=group, weight_init="he_normal")


def _norm(channels):
    return nn.BatchNorm2d(channels)


class LeNet(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, pad_mode="pad", padding=2, has_bias=True, weight_init="he_normal", bias_init="zeros")
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid", has_bias=True, weight_init="he_normal", bias_init="zeros")
        self.fc1, self.fc2, self.fc3 = (
            nn.Dense(a, b, weight_init="he_normal") for a, b in ((400, 120), (120, 84), (84, 10))
        )
        self.relu, self.pool, self.flatten = nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten()

    def construct(self, x):
        x = self.pool(self.relu(self.conv1(x)))
        x = self.pool(self.relu(self.conv2(x)))
        x = self.relu(self.fc1(self.flatten(x)))
        return self.fc3(self.relu(self.fc2(x)))


class Mlp(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Dense(784, 512, weight_init="he_normal"), nn.Dense(512, 10, weight_init="he_normal")
        self.relu = nn.ReLU()

    def construct(self, x):
        return self.fc2(self.relu(self.fc1(x)))


class Bottleneck(nn.Cell):
    def __init__(self, channels, width, stride, first):
        super().__init__()
        self.conv1, self.norm1 = _conv(channels, width, 1), _norm(width)
        self.conv2, self.norm2 = _conv(width, width, 3, stride), _norm(width)
        self.conv3, self.norm3 = _conv(width, 4 * width, 1), _norm(4 * width)
        self.down = nn.SequentialCell([_conv(channels, 4 * width, 1, stride), _norm(4 * width)]) if first else None
        self.relu, self.add = nn.ReLU(), ops.Add()

    def construct(self, x):
        y = self.relu(self.norm1(self.conv1(x)))
        y = self.relu(self.norm2(self.conv2(y)))
        y = self.norm3(self.conv3(y))
        if self.down is not None:
            x = self.down(x)
        return self.relu(self.add(y, x))


class ResNet50(nn.Cell):
    def __init__(self, stages=(3, 4, 6, 3), classes=1000):
        super().__init__()
        self.conv1, self.norm1, self.relu = _conv(3, 64, 7, 2), _norm(64), nn.ReLU()
        self.pool = nn.SequentialCell([nn.Pad(((0, 0), (0, 0), (1, 1), (1, 1))), nn.MaxPool2d(3, 2)])
        channels, blocks = 64, []
        for stage, count in enumerate(stages):
            width = 64 << stage
            for block in range(count):
                blocks.append(Bottleneck(channels, width, 2 if stage and not block else 1, not block))
                channels = 4 * width
        self.blocks = nn.SequentialCell(blocks)
        self.mean, self.fc = ops.ReduceMean(), nn.Dense(channels, classes, weight_init="he_normal")

    def construct(self, x):
        x = self.blocks(self.pool(self.relu(self.norm1(self.conv1(x)))))
        return self.fc(self.mean(x, (2, 3)))


class InvertedResidual(nn.Cell):
    def __init__(self, channels, width, expansion, stride):
        super().__init__()
        inner, layers = channels * expansion, []
        if expansion != 1:
            layers += [_conv(channels, inner, 1), _norm(inner), nn.ReLU6()]
        layers += [_conv(inner, inner, 3, stride, inner), _norm(inner), nn.ReLU6(), _conv(inner, width, 1), _norm(width)]
        self.layers = nn.SequentialCell(layers)
        self.adds = stride == 1 and channels == width

    def construct(self, x):
        y = self.layers(x)
        return x + y if self.adds else y


class MobileNetV2(nn.Cell):
    def __init__(self, classes=1000):
        super().__init__()
        layers, channels = [_conv(3, 32, 3, 2), _norm(32), nn.ReLU6()], 32
        for expansion, width, blocks, stride in MOBILENET_STAGES:
            for block in range(blocks):
                layers.append(InvertedResidual(channels, width, expansion, 1 if block else stride))
                channels = width
        layers += [_conv(320, 1280, 1), _norm(1280), nn.ReLU6()]
        self.features = nn.SequentialCell(layers)
        self.mean, self.fc = ops.ReduceMean(), nn.Dense(1280, classes, weight_init="he_normal")

    def construct(self, x):
        return self.fc(self.mean(self.features(x), (2, 3)))


class Layer(nn.Cell):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Dense(HIDDEN, HIDDEN) for _ in range(4))
        self.norm1, self.norm2 = nn.LayerNorm((HIDDEN,)), nn.LayerNorm((HIDDEN,))
        self.inner, self.outer = nn.Dense(HIDDEN, 4 * HIDDEN), nn.Dense(4 * HIDDEN, HIDDEN)
        self.gelu, self.softmax, self.scale = nn.GELU(), nn.Softmax(-1), (HIDDEN // HEADS) ** -0.5
        self.scores, self.mix = ops.BatchMatMul(transpose_b=True), ops.BatchMatMul()

    def split(self, x):
        return x.reshape((-1, LENGTH, HEADS, HIDDEN // HEADS)).transpose((0, 2, 1, 3))

    def construct(self, x):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        mixed = self.mix(self.softmax(self.scores(q, k) * self.scale), v)
        x = self.norm1(x + self.out(mixed.transpose((0, 2, 1, 3)).reshape((-1, LENGTH, HIDDEN))))
        return self.norm2(x + self.outer(self.gelu(self.inner(x))))


class Bert(nn.Cell):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, HIDDEN)
        self.places = ms.Parameter(ms.Tensor(np.zeros((LENGTH, HIDDEN), np.float32)), name="places")
        self.norm = nn.LayerNorm((HIDDEN,))
        self.layers = nn.SequentialCell([Layer() for _ in range(LAYERS)])
        self.pooler, self.tanh, self.fc = nn.Dense(HIDDEN, HIDDEN), nn.Tanh(), nn.Dense(HIDDEN, 2)

    def construct(self, ids):
        x = self.layers(self.norm(self.words(ids) + self.places))
        return self.fc(self.tanh(self.pooler(x[:, 0])))


class Lstm(nn.Cell):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(LSTM_WORDS, LSTM_HIDDEN)
        self.lstm = nn.LSTM(LSTM_HIDDEN, LSTM_HIDDEN, batch_first=True)
        self.fc = nn.Dense(LSTM_HIDDEN, 2)

    def construct(self, ids):
        y, _ = self.lstm(self.words(ids))
        return self.fc(y[:, -1])


class Ops(nn.Cell):
    """Ten small operators."""

    def __init__(self):
        super().__init__()
        self.tanh, self.exp, self.relu = ops.Tanh(), ops.Exp(), nn.ReLU()

    def construct(self, x):
        y = self.exp(-self.tanh(x) * 0.5) + x
        return self.relu(y - x) / (y * y + 1.0)


NETS = {
    "lenet": LeNet, "mlp": Mlp, "resnet32": ResNet50, "resnet224": ResNet50, "mobilenet": MobileNetV2, "bert": Bert, "lstm": Lstm,
}  # fmt: skip


def parts(name):
    """(net, loss, optimizer)"""
    net = NETS[name]()
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    adam = name in ("bert", "lstm")
    optimizer = nn.Adam(net.trainable_params(), 1e-4) if adam else nn.Momentum(net.trainable_params(), 1e-3, 0.9)
    return net, loss, optimizer
