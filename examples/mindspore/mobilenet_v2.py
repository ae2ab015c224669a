"""MobileNetV2 fitted with validation and early stopping, as MindSpore 1.10 writes it: Model.fit, callbacks of an epoch, export.

    cairn ms mobilenet_v2.py
"""

import argparse

import mindspore as ms
import mindspore.dataset as ds
import mindspore.dataset.transforms as transforms
import mindspore.dataset.vision as vision
import numpy as np
from mindspore import nn, ops
from mindspore.train import EarlyStopping, LossMonitor, Model


def _divisible(value, divisor=8):
    return max(divisor, int(value + divisor / 2) // divisor * divisor)


class ConvBNReLU(nn.Cell):
    def __init__(self, in_planes, out_planes, kernel_size=3, stride=1, groups=1):
        super().__init__()
        padding = (kernel_size - 1) // 2
        self.features = nn.SequentialCell(
            nn.Conv2d(in_planes, out_planes, kernel_size, stride, pad_mode="pad", padding=padding, group=groups, weight_init="he_normal"),
            nn.BatchNorm2d(out_planes),
            nn.ReLU6(),
        )

    def construct(self, x):
        return self.features(x)


class InvertedResidual(nn.Cell):
    def __init__(self, inp, oup, stride, expand_ratio):
        super().__init__()
        hidden = int(round(inp * expand_ratio))
        self.use_res_connect = stride == 1 and inp == oup
        layers = []
        if expand_ratio != 1:
            layers.append(ConvBNReLU(inp, hidden, kernel_size=1))
        layers.extend([
            ConvBNReLU(hidden, hidden, stride=stride, groups=hidden),
            nn.Conv2d(hidden, oup, kernel_size=1, stride=1, has_bias=False, weight_init="he_normal"),
            nn.BatchNorm2d(oup),
        ])
        self.conv = nn.SequentialCell(layers)

    def construct(self, x):
        out = self.conv(x)
        if self.use_res_connect:
            return x + out
        return out


class MobileNetV2(nn.Cell):
    def __init__(self, num_classes=10, width_mult=0.5, settings=((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 2, 2), (6, 64, 1, 1))):
        super().__init__()
        channel = _divisible(32 * width_mult)
        features = [ConvBNReLU(3, channel, stride=1)]
        for t, c, n, s in settings:
            out = _divisible(c * width_mult)
            for i in range(n):
                features.append(InvertedResidual(channel, out, s if i == 0 else 1, t))
                channel = out
        features.append(ConvBNReLU(channel, 64, kernel_size=1))
        self.features = nn.SequentialCell(features)
        self.head = nn.SequentialCell([nn.Dropout(keep_prob=0.9), nn.Dense(64, num_classes)])

    def construct(self, x):
        x = self.features(x)
        x = ops.mean(x, (2, 3))
        return self.head(x)


def images(count, seed):
    """Each class a pattern of its own, with noise."""
    patterns = np.repeat(np.repeat(np.random.RandomState(0).rand(10, 4, 4, 3), 8, 1), 8, 2)
    rng = np.random.RandomState(seed)
    labels = rng.randint(0, 10, count).astype(np.int32)
    return np.clip((patterns[labels] + rng.normal(0, 0.2, (count, 32, 32, 3))) * 255, 0, 255).astype(np.uint8), labels


def create_dataset(count, seed, batch_size=32, training=True):
    dataset = ds.NumpySlicesDataset(images(count, seed), ["image", "label"], shuffle=training)
    chain = [vision.RandomHorizontalFlip()] if training else []
    chain += [vision.Rescale(1.0 / 255, 0), vision.Normalize([0.5] * 3, [0.25] * 3), vision.HWC2CHW()]
    dataset = dataset.map(chain, "image")
    dataset = dataset.map(transforms.TypeCast(ms.int32), "label")
    return dataset.batch(batch_size, drop_remainder=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--mode", default="graph", choices=["graph", "pynative"])
    parser.add_argument("--export", default="", help="a file to export to, without its ending")
    args = parser.parse_args()
    ms.set_seed(1)
    ms.set_context(mode=ms.GRAPH_MODE if args.mode == "graph" else ms.PYNATIVE_MODE, device_target="CPU")
    train, valid = create_dataset(768, 1), create_dataset(128, 2, training=False)
    network = MobileNetV2()
    rates = nn.cosine_decay_lr(0.0, 0.1, args.epochs * train.get_dataset_size(), train.get_dataset_size(), args.epochs)
    optimizer = nn.SGD(network.trainable_params(), rates, momentum=0.9, weight_decay=4e-5, nesterov=True)
    model = Model(network, nn.CrossEntropyLoss(label_smoothing=0.1), optimizer, metrics={"accuracy"})
    model.fit(args.epochs, train, valid, callbacks=[LossMonitor(12), EarlyStopping("eval_accuracy", patience=3)],
              dataset_sink_mode=False, valid_dataset_sink_mode=False)
    print("accuracy:", model.eval(valid, dataset_sink_mode=False)["accuracy"])
    if args.export:
        network.set_train(False)
        ms.export(network, ms.Tensor(np.zeros((1, 3, 32, 32)), ms.float32), file_name=args.export, file_format="MINDIR")
