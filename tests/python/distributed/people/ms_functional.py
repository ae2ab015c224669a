"""value_and_grad in PyNative mode with a reducer, a batch norm over all ranks, metrics by AllReduce and AllGather, uneven last batches left out."""
import sys

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import context, nn, ops
from mindspore.communication import get_group_size, get_rank, init

out = sys.argv[1]
ms.set_context(mode=ms.PYNATIVE_MODE)
init()
rank, size = get_rank(), get_group_size()
context.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True)
ms.set_seed(1)
random = np.random.RandomState(0)
x, y = random.randn(70, 3, 8, 8).astype(np.float32), random.randint(0, 4, 70).astype(np.int32)
data = ds.NumpySlicesDataset((x, y), ["x", "y"], shuffle=False, num_shards=size, shard_id=rank).batch(16 // size, drop_remainder=True)
net = nn.SequentialCell(nn.Conv2d(3, 4, 3), nn.SyncBatchNorm(4), nn.ReLU(), nn.Flatten(), nn.Dense(256, 4))
criterion, optimizer = nn.CrossEntropyLoss(), nn.SGD(net.trainable_params(), 0.05, momentum=0.9, nesterov=True)


def forward(images, labels):
    logits = net(images)
    return criterion(logits, labels), logits


grad = ms.value_and_grad(forward, None, optimizer.parameters, has_aux=True)
reducer = nn.DistributedGradReducer(optimizer.parameters)
mean, gather, losses = ops.AllReduce(), ops.AllGather(), []
for epoch in range(2):
    for images, labels in data.create_tuple_iterator():
        (loss, logits), gradients = grad(images, labels)
        optimizer(reducer(gradients))
        losses.append(float(mean(loss.reshape(1)).asnumpy()[0]) / size)
        assert gather(logits).shape == (16, 4)
np.savez(f"{out}.{rank}", losses=losses, **{p.name.replace(".", "_"): p.asnumpy() for p in net.get_parameters()})
