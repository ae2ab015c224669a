"""LeNet on scikit-learn's digits in data parallel; prints the accuracy on images that were not trained."""

import sys

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import Model, Tensor, context, nn
from mindspore.communication import get_group_size, get_rank, init
from sklearn.datasets import load_digits

BATCH, EPOCHS, TEST = 64, 5, 360


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = (nn.Conv2d(*size, 3, pad_mode="same", weight_init="XavierUniform") for size in ((1, 8), (8, 16)))
        self.pool, self.relu, self.flatten = nn.MaxPool2d(2, 2), nn.ReLU(), nn.Flatten()
        self.fc1, self.fc2 = (nn.Dense(*size, weight_init="XavierUniform") for size in ((64, 32), (32, 10)))

    def construct(self, x):
        x = self.pool(self.relu(self.conv1(x)))
        x = self.flatten(self.pool(self.relu(self.conv2(x))))
        return self.fc2(self.relu(self.fc1(x)))


if __name__ == "__main__":
    context.set_context(mode=ms.GRAPH_MODE if sys.argv[1] == "graph" else ms.PYNATIVE_MODE)
    init()
    rank, size = get_rank(), get_group_size()
    ms.set_seed(1)
    if size > 1:
        context.set_auto_parallel_context(parallel_mode=context.ParallelMode.DATA_PARALLEL, gradients_mean=True)
    images, labels = load_digits(return_X_y=True)
    order = np.random.RandomState(3).permutation(len(labels))
    images, labels = (images[order] / 16).reshape(-1, 1, 8, 8).astype(np.float32), labels[order].astype(np.int32)
    rows = TEST + np.concatenate([np.random.RandomState(epoch).permutation(len(labels) - TEST)[: (len(labels) - TEST) // BATCH * BATCH] for epoch in range(EPOCHS)])
    mine = rows.reshape(-1, BATCH)[:, rank::size].ravel()
    data = ds.NumpySlicesDataset((images[mine], labels[mine]), ["x", "y"], shuffle=False).batch(BATCH // size)
    net = Net()
    Model(net, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"), nn.Momentum(net.trainable_params(), 0.1, 0.9)).train(1, data)
    print("accuracy", np.mean(net(Tensor(images[:TEST])).asnumpy().argmax(1) == labels[:TEST]))
