"""Each communication operator on tensors that differ by rank: results and gradients into OUT/RANK.npz."""

import argparse

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops
from mindspore.communication import get_group_size, get_rank, init
from mindspore.ops.operations._inner_ops import Receive, Send


class Call(nn.Cell):
    """One primitive between operators that the engine may move."""

    def __init__(self, primitive):
        super().__init__()
        self.primitive = primitive

    def construct(self, x):
        return self.primitive(x * 1.0)


class Tuple(nn.Cell):
    """One primitive on a tuple of one tensor."""

    def __init__(self, primitive):
        super().__init__()
        self.primitive = primitive

    def construct(self, x):
        return self.primitive((x * 1.0,))[0]


class Ring(nn.Cell):
    """Even ranks send first, odd ranks receive first."""

    def __init__(self, rank, size, shape):
        super().__init__()
        self.even = rank % 2 == 0
        self.send, self.receive = Send(3, (rank + 1) % size), Receive(3, (rank - 1) % size, shape, ms.float32)

    def construct(self, x):
        if self.even:
            sent = self.send(x * 1.0)
            return self.receive(sent) + sent * 0.0
        came = self.receive(x * 1.0)
        return came + self.send(x * 1.0 + came * 0.0) * 0.0


def cases(rank, size):
    after, before = (rank + 1) % size, (rank - 1) % size
    halo = ([-1, -1, -1, -1, after, -1, -1, -1], [0, 1, 0, 0], [before, -1, -1, -1, -1, -1, -1, -1], [1, 0, 0, 0])
    return {
        "sum": (Call(ops.AllReduce(ops.ReduceOp.SUM)), (3, 5)),
        "max": (Call(ops.AllReduce(ops.ReduceOp.MAX)), (3, 5)),
        "min": (Call(ops.AllReduce(ops.ReduceOp.MIN)), (7,)),
        "prod": (Call(ops.AllReduce(ops.ReduceOp.PROD)), (2, 3)),
        "gather": (Call(ops.AllGather()), (2, 3)),
        "scatter": (Call(ops.ReduceScatter()), (2 * size, 3)),
        "broadcast": (Tuple(ops.Broadcast(1)), (4, 3)),
        "all_to_all": (Call(ops.AlltoAll(size, -2, -1)), (2, size, 3)),
        "neighbours": (Tuple(ops.NeighborExchange([after], [before], ([2, 3],), ([2, 3],), ms.float32)), (2, 3)),
        "halo": (Call(ops.NeighborExchangeV2(halo[0], halo[1], halo[2], halo[3], "NCHW")), (1, 2, 3, 4)),
        "host_gather": (Call(ops.operations._HostAllGather(list(range(size)))), (2, 2)),
        "ring": (Ring(rank, size, (2, 3)), (2, 3)),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--mode", default="graph")
    args = parser.parse_args()
    ms.set_context(mode=ms.GRAPH_MODE if args.mode == "graph" else ms.PYNATIVE_MODE, device_target="CPU")
    init()
    rank, size = get_rank(), get_group_size()
    made = {}
    for number, (name, (cell, shape)) in enumerate(cases(rank, size).items()):
        random = np.random.RandomState(100 * number + rank)
        x = random.uniform(0.5, 2.0, shape).astype(np.float32)
        y = cell(Tensor(x)).asnumpy()
        seed = random.normal(size=y.shape).astype(np.float32)
        dx = ops.GradOperation(sens_param=True)(cell)(Tensor(x), Tensor(seed)).asnumpy()
        made.update({f"{name}/x": x, f"{name}/y": y, f"{name}/seed": seed, f"{name}/dx": dx})
    for dtype in (np.int8, np.int32, np.int64, np.uint8, np.float16, np.float64):
        made[f"types/{np.dtype(dtype).name}"] = ops.AllReduce()(Tensor(np.arange(5).astype(dtype) + rank)).asnumpy()
    np.savez(f"{args.out}/{rank}.npz", **made)
