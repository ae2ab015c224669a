"""Norms over groups of ranks: results, gradients and running statistics into OUT/RANK.npz."""

import sys

import mindspore as ms
import numpy as np
from mindspore import Tensor, context, nn, ops
from mindspore.communication import get_rank, init

context.set_context(mode=ms.GRAPH_MODE if sys.argv[2] == "graph" else ms.PYNATIVE_MODE)
init()
rank = get_rank()
random = np.random.RandomState(rank)
made = {}
norms = {
    "pairs": nn.GlobalBatchNorm(3, momentum=0.9, device_num_each_group=2),
    "groups": nn.SyncBatchNorm(3, momentum=0.9, process_groups=[[0, 3], [1, 2]]),
    "all": nn.SyncBatchNorm(3, momentum=0.9),
    "alone": nn.SyncBatchNorm(3, momentum=0.9, process_groups=[[0, 1, 2]]),
}
for name, norm in norms.items():
    norm.set_train()
    x, seed = (random.normal(2 * rank, 1, (2, 3, 2, 2)).astype(np.float32) for _ in range(2))
    y = norm(Tensor(x)).asnumpy()
    mean, variance = norm.moving_mean.asnumpy().copy(), norm.moving_variance.asnumpy().copy()
    dx = ops.GradOperation(sens_param=True)(norm)(Tensor(x), Tensor(seed)).asnumpy()
    made.update({f"{name}/{key}": value for key, value in {"x": x, "seed": seed, "y": y, "dx": dx, "mean": mean, "variance": variance}.items()})
np.savez(f"{sys.argv[1]}/{rank}.npz", **made)
