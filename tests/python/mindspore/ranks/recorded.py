"""Ten steps of a small network, recorded into OUT; one rank alone is no job."""

import sys

import cairn
import mindspore as ms
import numpy as np
from mindspore import Tensor, context, nn
from mindspore.communication import get_rank, init

init()
ms.set_seed(1)
context.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
net = nn.SequentialCell([nn.Dense(64, 128, activation="relu"), nn.Dense(128, 10)])
loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), nn.Adam(net.trainable_params(), 0.01, weight_decay=0.01))
step.set_train()
random = np.random.RandomState(get_rank())
x, y = Tensor(random.rand(32, 64).astype(np.float32)), Tensor(random.randint(0, 10, 32).astype(np.int32))
step(x, y)
with cairn.Profiler(output_path=sys.argv[1]):
    for _ in range(10):
        step(x, y)
