"""Rank 0 alone saves a checkpoint of an optimizer whose state is spread over the ranks: OUT and whether integrated_save, 0 or 1."""

import sys

import mindspore as ms
import numpy as np
from mindspore import Tensor, context, nn
from mindspore.communication import get_rank, init

init()
ms.set_seed(1)
context.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True, enable_parallel_optimizer=True)
net = nn.SequentialCell([nn.Dense(64, 128, activation="relu"), nn.Dense(128, 10)])
loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), nn.Adam(net.trainable_params(), 0.01)).set_train()
batch = Tensor(np.ones((32, 64), np.float32)), Tensor(np.zeros(32, np.int32))
step(*batch)
if get_rank() == 0:
    ms.save_checkpoint(step, sys.argv[1], integrated_save=sys.argv[2] == "1")
step(*batch)
print("fine")
