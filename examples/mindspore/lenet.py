"""LeNet on handwritten digits, as tutorials of MindSpore 0.5 write it: MNIST files, Model.train, checkpoints, Model.eval.

    cairn ms --level 0.5 lenet.py --device_target CPU

The digits of scikit-learn are written as MNIST files first, where --data_path has none.
"""

import argparse
import os
import struct

import mindspore.dataset as ds
import mindspore.dataset.transforms.c_transforms as C
import mindspore.dataset.transforms.vision.c_transforms as CV
import mindspore.nn as nn
import numpy as np
from mindspore import Tensor, context
from mindspore.common import dtype as mstype
from mindspore.common.initializer import TruncatedNormal
from mindspore.dataset.transforms.vision import Inter
from mindspore.nn.metrics import Accuracy
from mindspore.train import Model
from mindspore.train.callback import CheckpointConfig, LossMonitor, ModelCheckpoint
from mindspore.train.serialization import export, load_checkpoint, load_param_into_net


def write_digits(data_path):
    """The digits of scikit-learn, scaled to 28x28, as the files that MNIST comes in."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = np.pad(np.kron(digits.images, np.ones((3, 3))), ((0, 0), (2, 2), (2, 2)))
    order = np.random.RandomState(0).permutation(len(images))
    images, labels = (images[order] * 255 / 16).astype(np.uint8), digits.target[order].astype(np.uint8)
    for folder, kind, part in (("train", "train", slice(0, 1500)), ("test", "t10k", slice(1500, None))):
        os.makedirs(os.path.join(data_path, folder), exist_ok=True)
        for name, values in (("images-idx3", images[part]), ("labels-idx1", labels[part])):
            with open(os.path.join(data_path, folder, f"{kind}-{name}-ubyte"), "wb") as file:
                file.write(struct.pack(">4B%dI" % values.ndim, 0, 0, 8, values.ndim, *values.shape) + values.tobytes())


def create_dataset(data_path, batch_size=32, repeat_size=1, num_parallel_workers=1):
    mnist_ds = ds.MnistDataset(data_path)
    resize_op = CV.Resize((32, 32), interpolation=Inter.LINEAR)
    rescale_nml_op = CV.Rescale(1 / 0.3081, -1 * 0.1307 / 0.3081)
    rescale_op = CV.Rescale(1.0 / 255.0, 0.0)
    hwc2chw_op = CV.HWC2CHW()
    type_cast_op = C.TypeCast(mstype.int32)
    mnist_ds = mnist_ds.map(input_columns="label", operations=type_cast_op, num_parallel_workers=num_parallel_workers)
    for each in (resize_op, rescale_op, rescale_nml_op, hwc2chw_op):
        mnist_ds = mnist_ds.map(input_columns="image", operations=each, num_parallel_workers=num_parallel_workers)
    mnist_ds = mnist_ds.shuffle(buffer_size=10000)
    mnist_ds = mnist_ds.batch(batch_size, drop_remainder=True)
    return mnist_ds.repeat(repeat_size)


def weight_variable():
    return TruncatedNormal(0.05)


def conv(in_channels, out_channels, kernel_size, stride=1, padding=0):
    return nn.Conv2d(in_channels, out_channels, kernel_size=kernel_size, stride=stride, padding=padding,
                     weight_init=weight_variable(), has_bias=False, pad_mode="valid")


def fc_with_initialize(input_channels, out_channels):
    return nn.Dense(input_channels, out_channels, weight_variable(), weight_variable())


class LeNet5(nn.Cell):
    def __init__(self):
        super(LeNet5, self).__init__()
        self.conv1 = conv(1, 6, 5)
        self.conv2 = conv(6, 16, 5)
        self.fc1 = fc_with_initialize(16 * 5 * 5, 120)
        self.fc2 = fc_with_initialize(120, 84)
        self.fc3 = fc_with_initialize(84, 10)
        self.relu = nn.ReLU()
        self.max_pool2d = nn.MaxPool2d(kernel_size=2, stride=2)
        self.flatten = nn.Flatten()

    def construct(self, x):
        x = self.conv1(x)
        x = self.relu(x)
        x = self.max_pool2d(x)
        x = self.conv2(x)
        x = self.relu(x)
        x = self.max_pool2d(x)
        x = self.flatten(x)
        x = self.fc1(x)
        x = self.relu(x)
        x = self.fc2(x)
        x = self.relu(x)
        x = self.fc3(x)
        return x


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="MindSpore LeNet Example")
    parser.add_argument("--device_target", type=str, default="CPU", choices=["Ascend", "GPU", "CPU"])
    parser.add_argument("--data_path", type=str, default="./MNIST_Data")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=None, help="of the order of images")
    parser.add_argument("--export", type=str, default="", help="a model to write: its images and their logits beside it")
    parser.add_argument("--mode", type=str, default="graph", choices=["graph", "pynative"])
    args = parser.parse_args()
    if args.seed is not None:
        ds.config.set_seed(args.seed)
    if not os.path.isdir(args.data_path):
        write_digits(args.data_path)
    context.set_context(mode=context.GRAPH_MODE if args.mode == "graph" else context.PYNATIVE_MODE, device_target=args.device_target)
    dataset_sink_mode = not args.device_target == "CPU"

    net_loss = nn.SoftmaxCrossEntropyWithLogits(is_grad=False, sparse=True, reduction="mean")
    network = LeNet5()
    net_opt = nn.Momentum(network.trainable_params(), 0.02, 0.9)
    config_ck = CheckpointConfig(save_checkpoint_steps=46, keep_checkpoint_max=10)
    ckpoint_cb = ModelCheckpoint(prefix="checkpoint_lenet", config=config_ck)
    model = Model(network, net_loss, net_opt, metrics={"Accuracy": Accuracy()})

    print("============== Starting Training ==============")
    ds_train = create_dataset(os.path.join(args.data_path, "train"), repeat_size=1)
    model.train(args.epochs, ds_train, callbacks=[ckpoint_cb, LossMonitor(46)], dataset_sink_mode=dataset_sink_mode)
    print("============== Starting Testing ==============")
    param_dict = load_checkpoint("checkpoint_lenet-{}_{}.ckpt".format(args.epochs, ds_train.get_dataset_size()))
    load_param_into_net(network, param_dict)
    ds_eval = create_dataset(os.path.join(args.data_path, "test"))
    acc = model.eval(ds_eval, dataset_sink_mode=dataset_sink_mode)
    print("============== Accuracy:{} ==============".format(acc))
    if args.export:
        images = next(ds_eval.create_dict_iterator())["image"]
        export(network, Tensor(images), file_name=args.export, file_format="OM")
        np.save(args.export + "_images.npy", images)
        np.save(args.export + "_logits.npy", model.predict(Tensor(images)).asnumpy())
