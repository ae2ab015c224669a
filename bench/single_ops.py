"""Single operators of Cairn beside torch eager and NumPy, one thread: microseconds a call.

    .venv-peers/bin/python bench/single_ops.py [--rounds N] [--json FILE] [--driver build/bin/single_ops]

Every round measures all of them one after the other, the best of ten repeats each; medians of the rounds are printed. The C
columns come from the driver (bench/single_ops.cpp), built with cmake -DCAIRN_BENCH=ON.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import numpy as np
import torch

import cairn

ROUND_SECONDS = 0.004


def array(*dims):
    count = int(np.prod(dims))
    return (np.arange(count) % 7 - 3).astype(np.float32).reshape(dims)


def cases():
    """name -> (Cairn, torch, NumPy or None), each a function without arguments."""
    ops, functional = cairn.ops, torch.nn.functional
    made = {}

    def add(name, ours, peer, numpy, *arrays):
        tensors = [torch.from_numpy(each) for each in arrays]
        made[name] = (
            lambda: ours(*arrays),
            lambda: peer(*tensors),
            (lambda: numpy(*arrays)) if numpy else None,
        )

    for dims in ((16,), (64, 64)):
        add("add " + "x".join(map(str, dims)), ops.add, torch.add, np.add, array(*dims), array(*dims))
    add("exp 16", ops.exp, torch.exp, np.exp, array(16))
    for n in (16, 64, 256):
        add(f"add of a view {n}x{n}", ops.add, torch.add, np.add, array(n, n).T, array(n, n))
    add("add 256x256", ops.add, torch.add, np.add, array(256, 256), array(256, 256))
    add("transpose 64x64", lambda x: ops.transpose(x, permutation=[1, 0]), lambda x: x.t().contiguous(),
        lambda x: np.ascontiguousarray(x.T), array(64, 64))
    add("sum of rows 64x64", lambda x: ops.reduce_sum(x, axes=[1]), lambda x: torch.sum(x, 1), lambda x: x.sum(1),
        array(64, 64))
    for n in (16, 64):
        add(f"matmul {n}x{n}", ops.matmul, torch.matmul, np.matmul, array(n, n), array(n, n))
    add("matmul of a view 64x64", ops.matmul, torch.matmul, np.matmul, array(64, 64), array(64, 64).T)
    for n, c in ((8, 8), (14, 32), (56, 64)):
        x, w = array(1, n, n, c), array(3, 3, c, c)
        images = torch.from_numpy(x).permute(0, 3, 1, 2).contiguous()
        kernel = torch.from_numpy(w).permute(3, 2, 0, 1).contiguous()
        made[f"conv 3x3 {n}x{n}x{c}"] = (
            lambda x=x, w=w: ops.conv2d(x, w, padding="same"),
            lambda x=images, w=kernel: functional.conv2d(x, w, padding=1),
            None,
        )
    return made


def microseconds(call):
    def seconds_of(repeats):
        begin = time.perf_counter()
        for _ in range(repeats):
            call()
        return time.perf_counter() - begin

    repeats = 1
    while seconds_of(repeats) < ROUND_SECONDS:
        repeats *= 2
    return min(seconds_of(repeats) for _ in range(10)) / repeats * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json")
    parser.add_argument("--driver", default="build/bin/single_ops")
    options = parser.parse_args()
    torch.set_num_threads(1)
    columns = ("C, prepared", "C, called", "Python", "torch", "NumPy")
    times = {}
    with torch.inference_mode():
        for _ in range(options.rounds):
            driver = json.loads(subprocess.run([options.driver], capture_output=True, check=True).stdout)
            for name, (ours, peer, numpy) in cases().items():
                row = times.setdefault(name, {column: [] for column in columns})
                row["C, prepared"].append(driver[name]["prepared"] / 1e3)
                row["C, called"].append(driver[name]["called"] / 1e3)
                for column, call in (("Python", ours), ("torch", peer), ("NumPy", numpy)):
                    if call:
                        row[column].append(microseconds(call))
    medians = {name: {c: round(statistics.median(t), 3) if t else None for c, t in row.items()} for name, row in times.items()}
    print("| us a call | " + " | ".join(columns) + " |")
    print("| --- |" + " ---: |" * len(columns))
    for name, row in medians.items():
        print(f"| {name} | " + " | ".join("" if row[c] is None else f"{row[c]:.2f}" for c in columns) + " |")
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"torch": torch.__version__, "numpy": np.__version__, "microseconds": medians}, file, indent=1)


if __name__ == "__main__":
    sys.exit(main())
