"""Model.train with a sharded dataset, a dynamic loss scale, a rate that falls, callbacks."""
import sys

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import DynamicLossScaleManager, context, nn
from mindspore.communication import get_group_size, get_rank, init
from mindspore.train import Callback, Model

out = sys.argv[1]
context.set_context(mode=context.GRAPH_MODE, device_target="Ascend")
init()
rank, size = get_rank(), get_group_size()
context.set_auto_parallel_context(parallel_mode=context.ParallelMode.DATA_PARALLEL, gradients_mean=True, device_num=size)
ms.set_seed(1)
random = np.random.RandomState(0)
x, y = random.randn(128, 6).astype(np.float32), random.randint(0, 3, 128).astype(np.int32)
x[:, 0] += y
data = ds.NumpySlicesDataset((x, y), ["x", "y"], shuffle=False, num_shards=size, shard_id=rank).batch(32 // size)
net = nn.SequentialCell(nn.Dense(6, 12, activation="tanh"), nn.Dense(12, 3))
rate = nn.cosine_decay_lr(0.01, 0.1, 16, 4, 4)
optimizer = nn.Momentum(net.trainable_params(), rate, 0.9, weight_decay=1e-3)
model = Model(net, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"), optimizer, loss_scale_manager=DynamicLossScaleManager(2**10, 2, 5))
losses = []


class Watch(Callback):
    def on_train_step_end(self, run_context):
        made = run_context.original_args().net_outputs
        losses.append(float((made[0] if isinstance(made, (tuple, list)) else made).asnumpy()))


model.train(4, data, [Watch()], dataset_sink_mode=False)
np.savez(f"{out}.{rank}", mine=losses, **{p.name.replace(".", "_"): p.asnumpy() for p in net.get_parameters()})
