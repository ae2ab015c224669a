"""Gradients accumulated over four batches in a step of one's own, reduced by DistributedGradReducer, clipped by their global norm."""
import sys

import mindspore as ms
import numpy as np
from mindspore import ParameterTuple, Tensor, context, nn, ops
from mindspore.communication import get_group_size, get_rank, init

out, mode = sys.argv[1], int((sys.argv + ["0"])[2])
context.set_context(mode=mode)
init()
rank, size = get_rank(), get_group_size()
context.set_auto_parallel_context(parallel_mode=context.ParallelMode.DATA_PARALLEL, gradients_mean=True)
ms.set_seed(1)


class Step(nn.Cell):
    def __init__(self, network, optimizer, steps):
        super().__init__(auto_prefix=False)
        self.network, self.optimizer, self.steps = network, optimizer, steps
        self.weights = ParameterTuple(network.trainable_params())
        self.sums = self.weights.clone(prefix="sum", init="zeros")
        self.grad = ops.GradOperation(get_by_list=True)
        self.reducer = nn.DistributedGradReducer(self.weights)
        self.map = ops.HyperMap()
        self.add, self.zero = ops.AssignAdd(), ops.Assign()

    def construct(self, x, y):
        loss = self.network(x, y)
        self.map(self.add, self.sums, self.grad(self.network, self.weights)(x, y))
        return loss

    def update(self):
        mean = self.reducer(tuple(each / self.steps for each in self.sums))
        self.optimizer(ops.clip_by_global_norm(mean, 0.5))
        for each in self.sums:
            self.zero(each, ops.zeros_like(each))


net = nn.SequentialCell(nn.Dense(5, 9, activation="relu"), nn.Dense(9, 2))
step = Step(nn.WithLossCell(net, nn.MSELoss()), nn.Adam(net.trainable_params(), 0.02), 4)
random = np.random.RandomState(0)
x, y = random.randn(16, 8, 5).astype(np.float32), random.randn(16, 8, 2).astype(np.float32)
mean, losses = ops.AllReduce(), []
for i in range(16):
    loss = step(Tensor(x[i][rank::size]), Tensor(y[i][rank::size]))
    losses.append(float(mean(loss.reshape(1)).asnumpy()[0]) / size)
    if i % 4 == 3:
        step.update()
np.savez(f"{out}.{rank}", losses=losses, **{p.name.replace(".", "_"): p.asnumpy() for p in net.get_parameters()})
