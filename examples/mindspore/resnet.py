"""A small ResNet on images of CIFAR-10's shape, as model_zoo of MindSpore 1.1 writes it: parameter groups, a list of learning rates,
a fixed loss scale.

    cairn ms --level 1.1 resnet.py --device_target CPU

Where --data_path holds no CIFAR-10, images are made that a network can learn: each class a pattern of its own, with noise.
"""

import argparse
import os

import mindspore.common.initializer as weight_init
import mindspore.dataset as ds
import mindspore.dataset.transforms.c_transforms as C2
import mindspore.dataset.vision.c_transforms as C
import mindspore.nn as nn
import numpy as np
from mindspore import Tensor, context
from mindspore.common import dtype as mstype
from mindspore.common import set_seed
from mindspore.nn.optim.momentum import Momentum
from mindspore.ops import operations as P
from mindspore.train.callback import CheckpointConfig, LossMonitor, ModelCheckpoint, TimeMonitor
from mindspore.train.loss_scale_manager import FixedLossScaleManager
from mindspore.train.model import Model


def write_images(data_path, count=512):
    """Files in the binary form of CIFAR-10."""
    rng = np.random.RandomState(0)
    patterns = np.repeat(np.repeat(rng.randint(0, 256, (10, 3, 4, 4)), 8, 2), 8, 3)
    os.makedirs(data_path, exist_ok=True)
    for name in ("data_batch_1.bin", "test_batch.bin"):
        labels = rng.randint(0, 10, count)
        images = np.clip(patterns[labels] * 0.7 + rng.normal(40, 40, (count, 3, 32, 32)), 0, 255)
        rows = np.concatenate([labels[:, None], images.reshape(count, -1)], 1).astype(np.uint8)
        rows.tofile(os.path.join(data_path, name))


def create_dataset(dataset_path, do_train, repeat_num=1, batch_size=32):
    data_set = ds.Cifar10Dataset(dataset_path, usage="train" if do_train else "test", num_parallel_workers=8, shuffle=True)
    trans = []
    if do_train:
        trans += [C.RandomCrop((32, 32), (4, 4, 4, 4)), C.RandomHorizontalFlip(prob=0.5)]
    trans += [
        C.Rescale(1.0 / 255.0, 0.0),
        C.Normalize([0.4914, 0.4822, 0.4465], [0.2023, 0.1994, 0.2010]),
        C.HWC2CHW(),
    ]
    type_cast_op = C2.TypeCast(mstype.int32)
    data_set = data_set.map(operations=type_cast_op, input_columns="label", num_parallel_workers=8)
    data_set = data_set.map(operations=trans, input_columns="image", num_parallel_workers=8)
    data_set = data_set.batch(batch_size, drop_remainder=True)
    return data_set.repeat(repeat_num)


def _conv(in_channel, out_channel, kernel, stride=1):
    return nn.Conv2d(in_channel, out_channel, kernel_size=kernel, stride=stride, padding=0, pad_mode="same")


def _bn(channel):
    return nn.BatchNorm2d(channel, eps=1e-4, momentum=0.9, gamma_init=1, beta_init=0, moving_mean_init=0, moving_var_init=1)


class ResidualBlock(nn.Cell):
    def __init__(self, in_channel, out_channel, stride=1):
        super(ResidualBlock, self).__init__()
        self.conv1 = _conv(in_channel, out_channel, 3, stride)
        self.bn1 = _bn(out_channel)
        self.conv2 = _conv(out_channel, out_channel, 3)
        self.bn2 = _bn(out_channel)
        self.relu = nn.ReLU()
        self.down_sample = stride != 1 or in_channel != out_channel
        self.down_sample_layer = None
        if self.down_sample:
            self.down_sample_layer = nn.SequentialCell([_conv(in_channel, out_channel, 1, stride), _bn(out_channel)])
        self.add = P.TensorAdd()

    def construct(self, x):
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.down_sample:
            identity = self.down_sample_layer(identity)
        out = self.add(out, identity)
        return self.relu(out)


class ResNet(nn.Cell):
    def __init__(self, layer_nums, channels, num_classes):
        super(ResNet, self).__init__()
        if not len(layer_nums) == len(channels):
            raise ValueError("the lengths must be equal")
        self.conv1 = _conv(3, channels[0], 3)
        self.bn1 = _bn(channels[0])
        self.relu = P.ReLU()
        stages = []
        for i in range(len(channels)):
            stages.append(self._make_layer(layer_nums[i], channels[max(i - 1, 0)], channels[i], 1 if i == 0 else 2))
        self.stages = nn.SequentialCell(stages)
        self.mean = P.ReduceMean(keep_dims=True)
        self.flatten = nn.Flatten()
        self.end_point = nn.Dense(channels[-1], num_classes, has_bias=True, weight_init=weight_init.XavierUniform())

    def _make_layer(self, layer_num, in_channel, out_channel, stride):
        layers = [ResidualBlock(in_channel, out_channel, stride)]
        for _ in range(1, layer_num):
            layers.append(ResidualBlock(out_channel, out_channel))
        return nn.SequentialCell(layers)

    def construct(self, x):
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.stages(x)
        out = self.mean(x, (2, 3))
        out = self.flatten(out)
        return self.end_point(out)


def get_lr(lr_max, warmup_steps, total_steps):
    rates = []
    for i in range(total_steps):
        if i < warmup_steps:
            rates.append(lr_max * (i + 1) / warmup_steps)
        else:
            rates.append(lr_max * (1 - (i - warmup_steps) / (total_steps - warmup_steps)) ** 2)
    return np.array(rates).astype(np.float32)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Image classification")
    parser.add_argument("--device_target", type=str, default="CPU")
    parser.add_argument("--data_path", type=str, default="./cifar-10-batches-bin")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--mode", type=str, default="graph", choices=["graph", "pynative"])
    args_opt = parser.parse_args()
    set_seed(1)
    context.set_context(mode=context.GRAPH_MODE if args_opt.mode == "graph" else context.PYNATIVE_MODE,
                        device_target=args_opt.device_target, save_graphs=False)
    if not os.path.isdir(args_opt.data_path):
        write_images(args_opt.data_path)
    dataset = create_dataset(args_opt.data_path, do_train=True)
    step_size = dataset.get_dataset_size()
    net = ResNet([1, 1, 1], [16, 32, 64], 10)
    for _, cell in net.cells_and_names():
        if isinstance(cell, nn.Conv2d):
            cell.weight.set_data(weight_init.initializer(weight_init.HeNormal(), cell.weight.shape, cell.weight.dtype))

    lr = Tensor(get_lr(0.1, step_size // 2, args_opt.epochs * step_size))
    decayed_params, no_decayed_params = [], []
    for param in net.trainable_params():
        if "beta" not in param.name and "gamma" not in param.name and "bias" not in param.name:
            decayed_params.append(param)
        else:
            no_decayed_params.append(param)
    group_params = [{"params": decayed_params, "weight_decay": 1e-4}, {"params": no_decayed_params},
                    {"order_params": net.trainable_params()}]
    opt = Momentum(group_params, lr, 0.9, loss_scale=1024)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    loss_scale = FixedLossScaleManager(1024, drop_overflow_update=False)
    model = Model(net, loss_fn=loss, optimizer=opt, loss_scale_manager=loss_scale, metrics={"acc"})

    time_cb = TimeMonitor(data_size=step_size)
    loss_cb = LossMonitor()
    config_ck = CheckpointConfig(save_checkpoint_steps=step_size, keep_checkpoint_max=10)
    ckpt_cb = ModelCheckpoint(prefix="resnet", directory="./ckpt", config=config_ck)
    model.train(args_opt.epochs, dataset, callbacks=[time_cb, loss_cb, ckpt_cb], dataset_sink_mode=False)
    print("result:", model.eval(create_dataset(args_opt.data_path, do_train=False), dataset_sink_mode=False))
