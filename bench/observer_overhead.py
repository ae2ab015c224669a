"""What watching costs: the time of a run with nothing on, and under marks, ops and a statistics dump, in turn.

observer_overhead.py MODEL [SECONDS] [cpu], MODEL a file (any environment with cairn), or train:NET for training steps of
training_steps.py (in .venv). Blocks of runs of a quarter of a second each, so that a block holds what the threads that write do
meanwhile; all kinds in turn and their order shuffled, until the seconds are spent. `cpu`: on one thread, in processor time of the
whole process, for a machine that is not quiet. Prints for each kind the median over rounds of (its time / that of nothing in the
same round), with the 95 % interval of that median by resampling rounds: of whole blocks, and of the fastest hundredth of a block, which
says what the run itself pays and is steady beside other programs, but may leave out what the threads that write take from it.
Goals: marks 0.2 %, ops 1 % of a ResNet-50 and 3 % of a LeNet step, statistics 30 %."""

import contextlib
import ctypes
import json
import sys
import tempfile
import time

import numpy as np

KINDS = ("nothing", "nothing again", "marks", "ops", "statistics")


def offline(path, threads):
    """One run, as a function, and what watches it."""
    import cairn

    model = cairn.load(path, threads=threads)
    random = np.random.default_rng(1)
    inputs = {port.name: random.normal(size=[size if isinstance(size, int) and size > 0 else 1 for size in port.shape]).astype(port.dtype)
              for port in model.inputs}  # fmt: skip

    def watch(kind, folder):
        return cairn.Dump(folder, dump_data="stats") if kind == "statistics" else cairn.Profiler(level=kind, output_path=folder)

    return lambda: model.run(inputs), watch


def training(net, threads):
    import training_steps
    from npu_bridge import observe

    @contextlib.contextmanager
    def watch(kind, folder):
        what = "dump" if kind == "statistics" else "profile"
        options = {"dump_path": folder, "dump_data": "stats"} if kind == "statistics" else {"output": folder, "level": kind}
        observe.call(f"cairn_{what}_start", json.dumps(options).encode())
        try:
            yield
        finally:
            observe.call(f"cairn_{what}_stop", ctypes.byref(ctypes.c_void_p()))

    return training_steps.step_of(net, "cairn", threads), watch


def main(what, seconds=60.0, clock=time.perf_counter):
    threads = 1 if clock is time.process_time else 0
    run, watch = training(what.removeprefix("train:"), threads) if what.startswith("train:") else offline(what, threads)
    random = np.random.default_rng(1)
    once = min(timed(run, 1, clock) for _ in range(5))
    parts = min(100, max(2, round(0.25 / once)))
    count = max(1, round(0.25 / parts / once))
    rounds = []
    with tempfile.TemporaryDirectory() as folder:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            times = {}
            for kind in random.permutation(KINDS):
                with contextlib.nullcontext() if kind.startswith("nothing") else watch(kind, folder):
                    timed(run, 1, clock)  # what a kind sets up at its first run is not what a run costs
                    times[kind] = [timed(run, count, clock) for _ in range(parts)]
            rounds.append([[part(times[kind]) / part(times["nothing"]) for part in (sum, min)] for kind in KINDS])
    ratios = np.array(rounds)
    print(f"{len(rounds)} rounds of {parts * count} runs, {once * 1e3:.3f} ms a run\n{'':14} whole blocks{'':22}fastest parts")
    for at, kind in enumerate(KINDS[1:], 1):
        picked = np.median(ratios[random.integers(0, len(rounds), (2000, len(rounds))), at], axis=1)
        found = zip(np.median(ratios[:, at], axis=0) - 1, *(np.quantile(picked, [0.025, 0.975], axis=0) - 1))
        print(f"{kind:14}", "   ".join(f"{100 * x:+6.2f} % ({100 * low:+6.2f} to {100 * high:+6.2f})" for x, low, high in found))


def timed(run, count, clock):
    begin = clock()
    for _ in range(count):
        run()
    return clock() - begin


if __name__ == "__main__":
    main(sys.argv[1], *(float(word) for word in sys.argv[2:3]), *([time.process_time] if sys.argv[3:] == ["cpu"] else []))
