"""Two trainings one after the other: the second goes on from the checkpoint of the first, sink mode and evaluation with a sharded dataset."""
import os
import sys

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import context, nn
from mindspore.communication.management import get_group_size, get_rank, init
from mindspore.train.callback import CheckpointConfig, LossMonitor, ModelCheckpoint
from mindspore.train.model import Model
from mindspore.train.serialization import load_checkpoint, load_param_into_net

out = sys.argv[1]
context.set_context(mode=context.GRAPH_MODE, device_target="Ascend", save_graphs=False)
init()
rank, size = get_rank(), get_group_size()
context.set_auto_parallel_context(parallel_mode="data_parallel", mirror_mean=True, all_reduce_fusion_config=[1, 3])
random = np.random.RandomState(0)
x, y = random.randn(64, 6).astype(np.float32), random.randint(0, 3, 64).astype(np.int32)
x[:, 0] += y


def made():
    ms.set_seed(1)
    net = nn.SequentialCell(nn.Dense(6, 10, activation="relu"), nn.Dense(10, 10, activation="sigmoid"), nn.Dense(10, 3))
    optimizer = nn.Adam(net.trainable_params(), 0.02)
    return net, Model(net, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"), optimizer, metrics={"acc": nn.Accuracy()})


def data(repeat=1):
    return ds.NumpySlicesDataset((x, y), ["x", "y"], shuffle=False, num_shards=size, shard_id=rank).batch(16 // size).repeat(repeat)


net, model = made()
folder = f"{out}.folder.{rank}"
keeper = ModelCheckpoint("net", folder, CheckpointConfig(save_checkpoint_steps=4, keep_checkpoint_max=1))
model.train(2, data(), [LossMonitor(4), keeper], dataset_sink_mode=True)
net, model = made()
(kept,) = [name for name in os.listdir(folder) if name.endswith(".ckpt")]
load_param_into_net(net, load_checkpoint(os.path.join(folder, kept)))
model.train(1, data(2), dataset_sink_mode=False)
right = model.eval(ds.NumpySlicesDataset((x, y), ["x", "y"], shuffle=False).batch(16), dataset_sink_mode=False)["acc"]
np.savez(f"{out}.{rank}", losses=[right], **{p.name.replace(".", "_"): p.asnumpy() for p in net.get_parameters()})
