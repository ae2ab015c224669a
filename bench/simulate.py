"""cairn simulate beside what 2 and 4 processes of this machine take: python bench/simulate.py [--net lenet|resnet] [--batch N]

One rank is recorded, all-reduces of 1 KB and 16 MB are timed for the network's latency and bandwidth, then jobs of 2 and 4 ranks train.
Each rank has one core, which several share where there are too few. Steps alone and in data parallel run by turns in the same processes: how
much longer the latter take (the median over the rounds) is held beside the prediction, since neighbours slow both. The prediction waits for the
slowest rank by the spread that the recorded steps had; `without` leaves that out."""

import argparse
import importlib.util
import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CAIRN = ROOT / ".venv" / "bin" / "cairn"
PYTHON = ROOT / ".venv" / "bin" / "python"
SIZES = (1024, 16 << 20)


def rank_main(role, net, batch, steps, first):
    """One rank: prints JSON with the seconds of each step, or of each size of an all-reduce."""
    import mindspore as ms
    import numpy as np
    from mindspore import Tensor, context, nn, ops
    from mindspore.communication import get_rank, init

    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[int(os.environ.get("RANK_ID", 0)) % len(os.sched_getaffinity(0))]})
    init()
    ms.set_seed(1)
    if role == "exchange":
        reduce, found = ops.AllReduce(), {}
        for size in SIZES:
            x = Tensor(np.ones(size // 4, np.float32))
            found[size] = median(timed({"": partial(reduce, x)}, 30, first)[""])
        return print(json.dumps(found))
    context.set_auto_parallel_context(gradients_mean=True)
    spec = importlib.util.spec_from_file_location(net, ROOT / "examples" / "mindspore" / f"{net}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    model = module.LeNet5() if net == "lenet" else module.ResNet([2, 2, 2], [16, 32, 64], 10)
    random = np.random.RandomState(get_rank())
    x = Tensor(random.normal(size=(batch, 1 if net == "lenet" else 3, 32, 32)).astype(np.float32))
    y = Tensor(random.randint(0, 10, batch).astype(np.int32))
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    runs = {}
    for name, mode in (("alone", "stand_alone"), ("step", "data_parallel")):  # by turns, so that both meet the same neighbours
        context.set_auto_parallel_context(parallel_mode=mode)
        cell = nn.TrainOneStepCell(nn.WithLossCell(model, loss), nn.Momentum(model.trainable_params(), 0.01, 0.9))
        runs[name] = partial(cell.set_train(), x, y)
    if int(os.environ.get("RANK_SIZE", 1)) == 1:
        runs.pop("step")
    print(json.dumps({name: median(times) for name, times in timed(runs, steps, first).items()}))


def timed(runs, times, first):
    """Seconds of each run of each, from when all ranks begin it to when the last has made it."""
    import cairn

    found = {name: [] for name in runs}
    if first:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(10))
    for i in range(times + 3):
        for name, run in runs.items():
            cairn.ops.barrier()
            begin = time.perf_counter()
            run()
            if name:  # no exchange by itself, which ends on all together
                cairn.ops.barrier()
            if i >= 3:
                found[name].append(time.perf_counter() - begin)
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    return found


def median(values):
    return sorted(values)[len(values) // 2]


def job(ranks, role, args, before=()):
    """The largest of what the ranks measured, by name."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    token, processes = secrets.token_hex(8), []
    for rank in range(ranks):
        own = {**os.environ, "RANK_ID": str(rank), "RANK_SIZE": str(ranks)}
        if ranks > 1:
            own["CAIRN_JOB"] = json.dumps({"address": address, "token": token, "rank": rank, "size": ranks, "local_rank": rank, "local_size": ranks})
        words = [*map(str, before), str(PYTHON), "-m", "cairn.ms", __file__, "--role", role, "--net", args.net, "--batch", str(args.batch),
                 "--steps", str(args.steps), *["--first"] * args.first]  # fmt: skip
        processes.append(subprocess.Popen(words, env=own, stdout=subprocess.PIPE, text=True))
    outputs = [each.communicate()[0] for each in processes]
    if any(each.returncode for each in processes):
        sys.exit("a rank failed")
    found = [json.loads(next(line for line in output.splitlines() if line.startswith("{"))) for output in outputs]
    return {name: max(each[name] for each in found) for name in found[0]}


def recorded(args):
    """(seconds of a step of one rank as it measured them, the folder of its recording)"""
    folder = tempfile.mkdtemp()
    return job(1, "train", args, [CAIRN, "profile", "-o", folder, "--"])["alone"], folder


def network_of(ranks, exchanges, cores):
    """What all-reduces of two sizes say of latency and bandwidth: each rank sends all to every other, by its own core."""
    small, large = (exchanges[str(size)] for size in SIZES)
    second = max(large - small, 1e-9) / (SIZES[1] - SIZES[0])  # of a byte
    return {"latency": max(small - SIZES[0] * second, 0), "bandwidth": (ranks - 1) / second, "topology": "direct",
            "reduction": 1e15, "ranks_per_host": ranks, "cores_per_host": cores, "processor_share": 1}  # fmt: skip


def predicted(folder, ranks, network, spread=()):
    path = Path(folder, f"network_{ranks}.json")
    path.write_text(json.dumps(network))
    words = [CAIRN, "simulate", folder, "--ranks", str(ranks), "--network", path, *spread, "--json"]
    return json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)["predictions"][0]


def main(args):
    cores = len(os.sched_getaffinity(0))
    alone, folder = min(recorded(args) for _ in range(args.rounds))
    print(f"{args.net}, batch {args.batch} a rank, {cores} cores: a step of one rank takes {alone * 1e3:.2f} ms")
    print("ranks  latency us  GB/s  exchange ms  step ms alone  together  as part of alone, measured  predicted  off by  without")
    rows = []
    for ranks in (2, 4):
        exchanges = [job(ranks, "exchange", args) for _ in range(args.rounds)]
        network = network_of(ranks, {name: min(each[name] for each in exchanges) for name in exchanges[0]}, cores)
        made = predicted(folder, ranks, network)
        measured = [job(ranks, "train", args) for _ in range(args.rounds)]
        share, middle = median([(each["step"] / each["alone"], list(each.items())) for each in measured])
        best, guess = dict(middle), made["seconds"] / made["computing"]
        without = predicted(folder, ranks, network, ["--spread", "0"])
        rows.append({"net": args.net, "batch": args.batch, "ranks": ranks, "measured": share, "predicted": guess,
                     "without_waiting": without["seconds"] / without["computing"], "rounds": [each["step"] / each["alone"] for each in measured]})  # fmt: skip
        print(f"{ranks:5}  {network['latency'] * 1e6:10.1f}  {network['bandwidth'] / 1e9:4.2f}  {made['exchanging'] * 1e3:11.2f}"
              f"  {best['alone'] * 1e3:13.2f}  {best['step'] * 1e3:8.2f}  {share:26.2f}  {guess:9.2f}  {guess / share - 1:+6.0%}  {rows[-1]['without_waiting']:7.2f}")  # fmt: skip
    if args.json:
        Path(args.json).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--net", default="resnet", choices=["lenet", "resnet"])
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3, help="of each measurement, of which the fastest counts")
    parser.add_argument("--first", action="store_true", help="what is measured goes before all else on this machine (of each rank one thread)")
    parser.add_argument("--json")
    parser.add_argument("--role", default="")
    given = parser.parse_args()
    if given.role:
        rank_main(given.role, given.net, given.batch, given.steps, given.first)
    else:
        main(given)
