"""Training steps of MindSpore's scripts: cairn.ms against real MindSpore, torch and the TensorFlow door: python bench/mindspore_steps.py
[NET ...] [--modes graph,eager,sink,feed] [--peers mindspore,torch,compiled,door] [--rounds N] [--json FILE], with a Python that has cairn.

graph and eager call a TrainOneStepCell row by row, in either mode; sink and feed are Model.train over a dataset, whose time includes the data.
MindSpore on CPU has no sink mode: its feed mode is meant there. Each side has a process of its own, which is stopped while the others run;
rounds alternate, and a ratio is the median over rounds of Cairn's time over the peer's: below 1 Cairn is faster. The ratio of
processor time says more on a busy machine. `ops` is a Cell of ten small operators called eagerly, without gradients."""

import argparse
import itertools
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# name: (input of one item, batch, classes, words)
NETS = {
    "lenet": ((1, 28, 28), 32, 10, None),
    "mlp": ((784,), 128, 10, None),
    "resnet32": ((3, 32, 32), 32, 1000, None),
    "mobilenet": ((3, 96, 96), 32, 1000, None),
    "bert": ((128,), 32, 2, 8192),
    "lstm": ((64,), 32, 2, 8192),
    "resnet224": ((3, 224, 224), 32, 1000, None),
    "ops": ((64,), 8, 2, None),
}
DOOR = ("lenet", "mlp", "resnet32", "resnet224")  # nets that training_steps.py has
PYTHONS = {"mindspore": ".venv-mindspore", "torch": ".venv-peers", "compiled": ".venv-peers", "door": ".venv"}


def rows(name, batches=1):
    """Images or words, and labels."""
    import numpy as np

    item, batch, classes, words = NETS[name]
    random, count = np.random.RandomState(7), batches * batch
    x = random.randint(0, words, (count, *item)).astype(np.int32) if words else random.standard_normal((count, *item)).astype(np.float32)
    return x, random.randint(0, classes, count).astype(np.int32)


def mindspore_step(name, mode):
    """run(count): makes steps, gives the seconds of each and the last loss."""
    import mindspore as ms
    import mindspore_nets as nets
    from mindspore import nn

    ours = os.environ["STEPS_SIDE"] == "cairn"
    eager = mode == "eager" or name == "ops"
    ms.set_context(mode=ms.PYNATIVE_MODE if eager else ms.GRAPH_MODE, device_target="Ascend" if ours and mode == "sink" else "CPU")
    if name == "ops":
        cell, x = nets.Ops(), ms.Tensor(rows(name)[0])
        return timed(lambda: cell(x), lambda y: float(y.asnumpy().sum()))
    net, loss, optimizer = nets.parts(name)
    if mode in ("graph", "eager"):
        step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), optimizer)
        step.set_train()
        x, y = map(ms.Tensor, rows(name))
        return timed(lambda: float(step(x, y).asnumpy()))
    model = ms.Model(net, loss, optimizer)
    import mindspore.dataset as ds

    few, batch = rows(name, 4), NETS[name][1]

    class Last(ms.Callback):
        def step_end(self, run_context):
            self.loss = run_context.original_args().net_outputs

    def run(count):
        import numpy

        order = numpy.arange(count * batch) % len(few[1])
        columns = tuple(each[order] for each in few)
        if ours:
            data = ds.NumpySlicesDataset(columns, ["x", "y"], shuffle=False)
        else:  # MindSpore 2.10 under NumPy 2 refuses rows that hold NumPy's scalars
            data = ds.GeneratorDataset([tuple(map(numpy.asarray, row)) for row in zip(*columns)], ["x", "y"], shuffle=False)
        data = data.batch(batch)
        last = Last()
        start = time.perf_counter()
        model.train(1, data, callbacks=[last], dataset_sink_mode=ours and mode == "sink")
        value = float(last.loss.asnumpy())
        return [(time.perf_counter() - start) / count], value

    return run


def torch_step(name, compiled, threads):
    import mindspore_torch_nets as nets
    import torch

    torch.set_num_threads(threads)
    if name == "ops":
        net, x = nets.Ops(), torch.from_numpy(rows(name)[0])
        net = torch.compile(net) if compiled else net
        with torch.no_grad():
            return timed(lambda: net(x), lambda y: float(y.sum()))
    net, loss, optimizer = nets.parts(name)
    forward = torch.compile(net) if compiled else net
    x, y = map(torch.from_numpy, rows(name))
    y = y.long()

    def step():
        optimizer.zero_grad(set_to_none=True)
        value = loss(forward(x), y)
        value.backward()
        optimizer.step()
        return value.item()

    return timed(step)


def timed(step, value=lambda y: y):
    def run(count):
        times = []
        for _ in range(count):
            start = time.perf_counter()
            last = step()
            times.append(time.perf_counter() - start)
        return times, value(last)

    return run


def worker(name, side, mode, threads):
    """Answers `run N` by the seconds of N steps, processor time of one, and the last loss, as JSON."""
    start = time.perf_counter()
    os.environ["STEPS_SIDE"] = side
    if side == "cairn":
        import cairn.ms  # noqa: F401
    run = torch_step(name, side == "compiled", threads) if side in ("torch", "compiled") else mindspore_step(name, mode)
    ready = time.perf_counter() - start
    for line in itertools.chain(["run 1"], sys.stdin):
        spent, count = time.process_time(), int(line.split()[1])
        times, loss = run(count)
        print(json.dumps({"t": times, "cpu": (time.process_time() - spent) / count, "loss": loss, "ready": ready}), flush=True)


class Side:
    def __init__(self, name, side, mode, options):
        own = Path(__file__)
        python = sys.executable if side == "cairn" else getattr(options, PYTHONS[side].lstrip(".").replace("-", "_"))
        command = [python, own, name, "--side", side, "--worker", mode, "--threads", options.threads]
        if side == "door":
            command = [python, own.with_name("training_steps.py"), name, "--worker", "cairn", "--threads", options.threads]
        environment = {**os.environ, "OMP_NUM_THREADS": str(options.threads), "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONWARNINGS": "ignore", "GLOG_v": "3"}
        self.name, self.errors = side, subprocess.DEVNULL
        self.process = subprocess.Popen(
            list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=None if options.errors else self.errors,
            env=environment, text=True, preexec_fn=lambda: os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.threads]),
        )  # fmt: skip
        self.first = self.answer()

    def answer(self):
        line = "-"
        while line and not line.startswith("{"):
            line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the worker of {self.name} ended; --errors shows why")
        self.process.send_signal(signal.SIGSTOP)
        return json.loads(line)

    def run(self, steps):
        self.process.send_signal(signal.SIGCONT)
        self.process.stdin.write(f"run {steps}\n")
        self.process.stdin.flush()
        return self.answer()

    def end(self):
        self.process.kill()
        self.process.wait()


def compare(name, mode, options):
    peers = [each for each in options.peers.split(",") if each != "door" or name in DOOR]
    sides = []
    try:
        for each in ("cairn", *peers):
            sides.append(Side(name, each, mode, options))
        warm = [side.run(3) for side in sides]
        steps = [max(2, min(2000, int(options.seconds / min(answer["t"])))) for answer in warm]
        rounds = []
        for turn in range(options.rounds):
            order = range(len(sides)) if turn % 2 == 0 else reversed(range(len(sides)))
            answers = {i: sides[i].run(steps[i]) for i in order}
            rounds.append([answers[i] for i in range(len(sides))])
    finally:
        for side in sides:
            side.end()
    times = [[statistics.median(answer["t"]) for answer in each] for each in zip(*rounds)]
    row = {"net": name, "mode": mode, "threads": options.threads, "rounds": options.rounds, "cairn_ms": statistics.median(times[0]) * 1e3}
    row["first_s"] = {side.name: side.first["t"][0] for side in sides}
    for i, each in enumerate(peers, 1):
        row[each] = {
            "ms": statistics.median(times[i]) * 1e3,
            "ratio": statistics.median(a / b for a, b in zip(times[0], times[i])),
            "processor_ratio": statistics.median(turn[0]["cpu"] / turn[i]["cpu"] for turn in rounds),
        }
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("nets", nargs="*", help=f"of {', '.join(NETS)}; all when none is named")
    parser.add_argument("--modes", default="graph", help="of graph, eager, sink, feed")
    parser.add_argument("--peers", default="mindspore,torch,compiled,door")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="of one side's turn")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", help="where the rows go")
    parser.add_argument("--errors", action="store_true", help="show what workers write to standard error")
    for folder in sorted(set(PYTHONS.values())):
        parser.add_argument("--" + folder.lstrip("."), default=str(ROOT / folder / "bin/python"), help="its Python")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--side", help=argparse.SUPPRESS)
    options = parser.parse_args()
    names = options.nets or list(NETS)
    for name in names:
        if name not in NETS:
            parser.error(f"no net '{name}'; there are {', '.join(NETS)}")
    if options.worker:
        return worker(names[0], options.side, options.worker, options.threads)
    print(f"{'net':10} {'mode':6} {'peer':10} {'Cairn ms':>10} {'peer ms':>10}  ratio  of processor time")
    rows = []
    for name, mode in itertools.product(names, options.modes.split(",")):
        row = compare(name, mode, options)
        rows.append({**row, "load": os.getloadavg()})
        if options.json:
            Path(options.json).write_text(json.dumps({"processors": os.cpu_count(), "rows": rows}, indent=1))
        for peer in PYTHONS:
            if peer in row:
                own = row[peer]
                print(f"{name:10} {mode:6} {peer:10} {row['cairn_ms']:10.3f} {own['ms']:10.3f}  {own['ratio']:.3f} {own['processor_ratio']:18.3f}", flush=True)


if __name__ == "__main__":
    main()
