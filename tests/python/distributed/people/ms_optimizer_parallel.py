"""State of AdamWeightDecay in parts over the ranks, groups of parameters, first values handed round from rank 0, other seeds on every rank."""
import sys

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import context, nn
from mindspore.communication import get_group_size, get_rank, init
from mindspore.train import Model

out = sys.argv[1]
context.set_context(mode=context.GRAPH_MODE)
init()
rank, size = get_rank(), get_group_size()
context.set_auto_parallel_context(parallel_mode=context.ParallelMode.DATA_PARALLEL, gradients_mean=True, enable_parallel_optimizer=True,
                                  parameter_broadcast=True)  # fmt: skip
ms.set_seed(1 + rank)
random = np.random.RandomState(0)
ids, y = random.randint(0, 20, [96, 4]).astype(np.int32), random.randn(96, 2).astype(np.float32)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(20, 8, embedding_table=ms.Tensor(np.random.RandomState(5).randn(20, 8).astype(np.float32)))
        self.norm = nn.LayerNorm([32])
        self.head = nn.Dense(32, 2)

    def construct(self, ids):
        return self.head(self.norm(self.words(ids).reshape(-1, 32)))


net = Net()
decayed = [p for p in net.trainable_params() if "weight" in p.name or "table" in p.name]
others = [p for p in net.trainable_params() if all(p is not q for q in decayed)]
groups = [{"params": decayed, "weight_decay": 0.01, "lr": 0.02}, {"params": others}, {"order_params": net.trainable_params()}]
model = Model(net, nn.MSELoss(), nn.AdamWeightDecay(groups, 0.01))
data = ds.NumpySlicesDataset((ids, y), ["x", "y"], shuffle=False, num_shards=size, shard_id=rank).batch(16 // size)
model.train(3, data, dataset_sink_mode=True)
np.savez(f"{out}.{rank}", **{p.name.replace(".", "_"): p.asnumpy() for p in net.get_parameters()})
