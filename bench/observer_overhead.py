"""What watching costs: the time of a run with nothing on, and under marks, ops and a statistics dump, in turn.

observer_overhead.py MODEL [SECONDS] [cpu]: blocks of runs of about 20 ms each, all kinds in turn and their order shuffled, until
the seconds are spent; `cpu`: on one thread, in processor time of the whole process, for a machine that is not quiet. Prints for each kind the median over rounds of (its time / that of nothing in the same round), with the 95 %
interval of that median by resampling rounds. Goals: marks 0.2 %, ops 1 % of a ResNet-50 and 3 % of a LeNet step, statistics 30 %."""

import contextlib
import sys
import tempfile
import time

import numpy as np

import cairn

KINDS = ("nothing", "nothing again", "marks", "ops", "statistics")


def watch(kind, folder):
    if kind in ("marks", "ops"):
        return cairn.Profiler(level=kind, output_path=folder)
    if kind == "statistics":
        return cairn.Dump(folder, dump_data="stats")
    return contextlib.nullcontext()


def main(path, seconds=60.0, clock=time.perf_counter):
    model = cairn.load(path, threads=1 if clock is time.process_time else 0)
    random = np.random.default_rng(1)
    inputs = {port.name: random.normal(size=[size if isinstance(size, int) and size > 0 else 1 for size in port.shape]).astype(port.dtype)
              for port in model.inputs}  # fmt: skip
    once = min(timed(model, inputs, 1, clock) for _ in range(5))
    count = max(1, round(0.02 / once))
    rounds = []
    with tempfile.TemporaryDirectory() as folder:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            times = {}
            for kind in random.permutation(KINDS):
                with watch(kind, folder):
                    timed(model, inputs, 1, clock)  # what a kind sets up at its first run is not what a run costs
                    times[kind] = timed(model, inputs, count, clock) / count
            rounds.append([times[kind] / times["nothing"] for kind in KINDS])
    ratios = np.array(rounds)
    print(f"{len(rounds)} rounds of {count} runs, {once * 1e3:.3f} ms a run")
    for at, kind in enumerate(KINDS[1:], 1):
        picked = np.median(ratios[random.integers(0, len(rounds), (2000, len(rounds))), at], axis=1)
        low, high = np.quantile(picked, [0.025, 0.975])
        print(f"{kind:14} {100 * (np.median(ratios[:, at]) - 1):+6.2f} %   {100 * (low - 1):+.2f} to {100 * (high - 1):+.2f} %")


def timed(model, inputs, count, clock):
    begin = clock()
    for _ in range(count):
        model.run(inputs)
    return clock() - begin


if __name__ == "__main__":
    main(sys.argv[1], *(float(word) for word in sys.argv[2:3]), *([time.process_time] if sys.argv[3:] == ["cpu"] else []))
