"""Training in data parallel: gradients of a first step, and parameters after some, into OUT/RANK.npz.

One process has the whole batch; with --parts N it adds up what N parts of the batch give, each normalised by itself, as N ranks do."""

import argparse
import importlib.util
import os
from pathlib import Path

import mindspore as ms
import numpy as np
from mindspore import Tensor, context, nn
from mindspore.communication import get_group_size, get_rank, init

EXAMPLES = Path(__file__).resolve().parents[4] / "examples" / "mindspore"
BATCH = 16


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def batches(net):
    """The whole batch of each step."""
    if net == "bert":
        rows = example("bert_tiny").sequences(8 * BATCH, 1)
    else:
        random = np.random.RandomState(0)
        shape = (8 * BATCH, 1, 32, 32) if net == "lenet" else (8 * BATCH, 3, 32, 32)
        rows = random.normal(size=shape).astype(np.float32), random.randint(0, 10, 8 * BATCH).astype(np.int32)
    return [[each[i * BATCH : (i + 1) * BATCH] for each in rows] for i in range(8)]


def network(net, sync):
    """(network with its loss, optimizer, whether the loss is a mean)"""
    if net == "bert":
        made = example("bert_tiny").BertNetworkWithLoss()
        return made, nn.AdamWeightDecay(made.trainable_params(), 1e-3, weight_decay=0.01), False
    if net == "lenet":
        made = example("lenet").LeNet5()
        rate = 0.02
    else:
        module = example("resnet")
        if sync:
            module._bn = lambda channel: nn.SyncBatchNorm(channel, eps=1e-4)
        made, rate = module.ResNet([1, 1], [8, 16], 10), 0.05
        for _, cell in made.cells_and_names():
            if hasattr(cell, "relu"):
                cell.relu = nn.ELU()  # whose derivative has no jump, where rounding could part two trainings
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    return nn.WithLossCell(made, loss), nn.Momentum(made.trainable_params(), rate, 0.9), True


class Gradients(nn.Cell):
    """(loss, gradients of all ranks)"""

    def __init__(self, net, weights, mean):
        super().__init__(auto_prefix=False)
        self.inner = nn.ForwardValueAndGrad(net, weights, get_by_list=True)
        self.reducer = nn.DistributedGradReducer(weights, mean, get_group_size())

    def construct(self, *inputs):
        loss, gradients = self.inner(*inputs)
        return loss, self.reducer(gradients)


def added_up(cell, parts, mean):
    """What the ranks of a job would get, one part after the other."""
    made = [cell(*part) for part in parts]
    scale = 1 / len(parts) if mean else 1.0
    loss = sum(each[0].asnumpy() for each in made) * scale
    return loss, tuple(Tensor(sum(g.asnumpy() for g in of_parts) * np.float32(scale)) for of_parts in zip(*(each[1] for each in made)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("net")
    parser.add_argument("out")
    parser.add_argument("--mode", default="graph")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--parts", type=int, default=1)
    parser.add_argument("--sync", action="store_true")
    parser.add_argument("--scaled", action="store_true")
    parser.add_argument("--spread", action="store_true")
    parser.add_argument("--fusion", default="")
    args = parser.parse_args()
    context.set_context(mode=ms.GRAPH_MODE if args.mode == "graph" else ms.PYNATIVE_MODE, device_target="CPU")
    ms.set_seed(1)
    init()
    rank, size = get_rank(), get_group_size()
    mean = args.net != "bert"
    if size > 1:
        context.set_auto_parallel_context(parallel_mode=context.ParallelMode.DATA_PARALLEL, gradients_mean=mean, parameter_broadcast=True,
                                          enable_parallel_optimizer=args.spread)
    if args.fusion:
        context.set_auto_parallel_context(all_reduce_fusion_config=[int(each) for each in args.fusion.split(",")])
    net, optimizer, mean = network(args.net, args.sync)
    net.set_train(args.net != "bert")  # without dropout
    share = BATCH // size // args.parts
    rows = [[[Tensor(each[p * share : (p + 1) * share]) for each in batch] for p in range(size * args.parts)] for batch in batches(args.net)]
    cell = Gradients(net, optimizer.parameters, mean)
    loss, gradients = added_up(cell, rows[0][rank : rank + 1] if size > 1 else rows[0], mean)
    made = {f"gradient/{p.name}": g.asnumpy() for p, g in zip(optimizer.parameters, gradients)}
    made["losses"] = []
    if size > 1:
        step = nn.TrainOneStepCell(net, optimizer)
        if args.scaled:
            step = nn.TrainOneStepWithLossScaleCell(net, optimizer, nn.DynamicLossScaleUpdateCell(2.0**10, 2, 3))
    for batch in rows[: args.steps]:
        if size > 1:
            result = step(*batch[rank])
            made["losses"].append(float((result[0] if args.scaled else result).asnumpy()))
        else:
            loss, gradients = added_up(cell, batch, mean)
            optimizer(gradients)
            made["losses"].append(float(loss))
    made.update({f"parameter/{p.name}": p.asnumpy() for p in optimizer.parameters})
    made.update({f"state/{p.name}": p.asnumpy() for p in optimizer.get_parameters() if p.owner is not None and p.is_here})
    np.savez(os.path.join(args.out, f"{rank}.npz"), **made)
