"""A training script as official ones are written: sharded rows, Model.train, checkpoints in a folder of each rank. What goes wrong on a rank
is an option."""

import argparse
import glob
import os
import signal
import time

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import Model, context, nn
from mindspore.communication.management import get_group_size, get_rank, init
from mindspore.context import ParallelMode
from mindspore.train.callback import Callback, CheckpointConfig, ModelCheckpoint
from mindspore.train.loss_scale_manager import DynamicLossScaleManager, FixedLossScaleManager

ROWS, BATCH = 64, 16


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.relu, self.second = nn.Dense(8, 12), nn.ReLU(), nn.Dense(12, 3)

    def construct(self, x):
        return self.second(self.relu(self.first(x)))


class Fault(Callback):
    """What --at and --how ask for happens on rank 1."""

    def __init__(self, how, step):
        self.how, self.step, self.done = how, step, 0

    def step_end(self, run_context):
        self.done += 1
        if self.done != self.step or get_rank() != 1:
            return
        if self.how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.how == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        if self.how == "raise":
            raise RuntimeError("this rank does not go on")


class Losses(Callback):
    def __init__(self):
        self.values = []

    def step_end(self, run_context):
        outputs = run_context.original_args().net_outputs
        self.values.append(float((outputs[0] if isinstance(outputs, tuple) else outputs).asnumpy()))


def create_dataset(rank, size, rows):
    random = np.random.RandomState(0)
    x, y = random.normal(size=(rows, 8)).astype(np.float32), random.randint(0, 3, rows).astype(np.int32)
    if args.overflow and rank == 1:
        x[:BATCH] = np.inf
    data = ds.NumpySlicesDataset((x, y), ["x", "y"], shuffle=False, num_shards=size, shard_id=rank)
    return data.batch(BATCH // size, drop_remainder=True)


def newest(folder):
    found = glob.glob(os.path.join(folder, "*.ckpt"))
    return max(found, key=lambda path: [int(part) for part in os.path.basename(path)[:-5].split("-")[1].split("_")]) if found else None


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--mode", default="graph")
    parser.add_argument("--how", default="")
    parser.add_argument("--at", type=int, default=6)
    parser.add_argument("--scale", default="")
    parser.add_argument("--sink", action="store_true")
    parser.add_argument("--spread", action="store_true")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--overflow", action="store_true")
    parser.add_argument("--broadcast", action="store_true")
    args = parser.parse_args()
    context.set_context(mode=ms.GRAPH_MODE if args.mode == "graph" else ms.PYNATIVE_MODE, device_target="Ascend")
    init()
    rank, size = get_rank(), get_group_size()
    ms.set_seed(100 + rank if args.broadcast else 1)
    if size > 1:
        context.set_auto_parallel_context(parallel_mode=ParallelMode.DATA_PARALLEL, gradients_mean=True, parameter_broadcast=args.broadcast,
                                          enable_parallel_optimizer=args.spread)
    net = Net()
    optimizer = nn.Adam(net.trainable_params(), 0.01)
    scales = {"": None, "fixed": FixedLossScaleManager(64.0), "dynamic": DynamicLossScaleManager(2**8, 2, 4)}
    options = {"loss_scale_manager": scales[args.scale]} if args.scale else {}
    model = Model(net, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"), optimizer, **options)
    folder = os.path.join(args.out, f"ckpt_{rank}")
    first = 0
    if args.resume:
        latest = newest(os.path.join(args.out, "ckpt_0"))
        first = int(os.path.basename(latest)[:-5].split("-")[1].split("_")[0])
        ms.load_param_into_net(model.train_network, ms.load_checkpoint(latest))
    rows = ROWS - BATCH if args.how == "fewer" and rank == 1 else ROWS
    losses = Losses()
    kept = ModelCheckpoint("net", folder, CheckpointConfig(save_checkpoint_steps=ROWS // BATCH))
    model.train(args.epochs, create_dataset(rank, size, rows), [Fault(args.how, args.at), losses, kept], dataset_sink_mode=args.sink, initial_epoch=first)
    scale = [each.asnumpy() for each in model.train_network.get_parameters() if each.name == "scale_sense"]
    made = {each.name: each.asnumpy() for each in net.get_parameters()}
    np.savez(os.path.join(args.out, f"{rank}.npz"), losses=losses.values, scale=scale[0] if scale else 0, time=time.time(), **made)
