"""The ten metrics of `cairn compare` as a plain numpy statement, and how much slower that is than Cairn.

python bench/compare_metrics.py BENCH_PROGRAM [--mib 64] [--rounds 5]: one thread each, in turns; prints a table and JSON.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np  # noqa: E402: after the thread limits

EPS = 2.22e-16
FLOOR = np.finfo(np.float32).eps


def cosine(x, y):
    if x.size == 1:
        return "1.000000", "This tensor is scalar."
    norm_x, norm_y = np.sqrt(np.sum(x * x)), np.sqrt(np.sum(y * y))
    if norm_x <= EPS and norm_y < EPS:
        return "1.0", ""
    if np.sqrt(norm_x) <= EPS:
        return "NaN", "All the data is zero in NPUDump."
    if np.sqrt(norm_y) <= EPS:
        return "NaN", "All the data is zero in GroundTruth."
    return text(min(np.sum((x / norm_x) * (y / norm_y)), np.float32(1))), ""


def max_absolute(x, y):
    return np.max(np.abs(x - y))


def relative(x, y):
    return np.where(np.abs(y) > EPS, np.abs(x / y - 1), np.float32(0))


def accumulated_relative(x, y):
    return np.sum(relative(x, y))


def relative_euclidean(x, y):
    if np.sqrt(np.sum(y * y)) <= EPS:
        return np.float32(0)
    return np.sqrt(np.sum((x - y) ** 2) / np.sum(y * y))


def distribution(v):
    low, high = np.min(v), np.max(v)
    if low != high:
        v = (v - low) / (high - low)
    v = np.where(v < FLOOR, FLOOR, v)
    return v / np.sum(v)


def divergence(x, y):
    p, q = distribution(x), distribution(y)
    result = np.sum(p * np.log(p / q))
    return np.float32(0) if abs(result) < EPS else result


def deviation(x, y):
    def pair(v):
        values = np.mean(v, dtype=np.float64), np.std(v, dtype=np.float64)
        return "({:.3f};{:.3f})".format(*(0 if abs(value) < 1e-3 else value for value in values))

    return f"{pair(x)},{pair(y)}"


def mean_absolute(x, y):
    return np.mean(np.abs(x - y))


def root_mean_square(x, y):
    return np.sqrt(np.mean((x - y) ** 2))


def max_relative(x, y):
    return np.max(relative(x, y))


def mean_relative(x, y):
    return np.mean(relative(x, y))


def text(value):
    if isinstance(value, str):
        return value
    return "NaN" if np.isnan(value) else f"{value:.6f}"


COLUMNS = [
    ("MaxAbsoluteError", max_absolute),
    ("AccumulatedRelativeError", accumulated_relative),
    ("RelativeEuclideanDistance", relative_euclidean),
    ("KullbackLeiblerDivergence", divergence),
    ("StandardDeviation", deviation),
    ("MeanAbsoluteError", mean_absolute),
    ("RootMeanSquareError", root_mean_square),
    ("MaxRelativeError", max_relative),
    ("MeanRelativeError", mean_relative),
]


def measure(x, y):
    """The ten columns as text, and the note of cosine."""
    with np.errstate(all="ignore"):
        x, y = x.reshape(-1).astype(np.float32), y.reshape(-1).astype(np.float32)
        first, note = cosine(x, y)
        return {"CosineSimilarity": first, **{name: text(metric(x, y)) for name, metric in COLUMNS}}, note


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--mib", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    random = np.random.default_rng(7)
    y = random.standard_normal(arguments.mib << 18, dtype=np.float32)
    x = y + random.standard_normal(y.size, dtype=np.float32) * np.float32(1e-3)
    with tempfile.TemporaryDirectory() as folder:
        files = [f"{folder}/x.f32", f"{folder}/y.f32"]
        x.tofile(files[0])
        y.tofile(files[1])
        numpy_seconds, cairn_seconds = [], []
        for _ in range(arguments.rounds):
            begin = time.perf_counter()
            expected, _ = measure(x, y)
            numpy_seconds.append(time.perf_counter() - begin)
            printed = subprocess.run([arguments.program, *files], check=True, capture_output=True, text=True).stdout
            answer = json.loads(printed)
            cairn_seconds.append(answer["seconds"])
    numpy_median, cairn_median = np.median(numpy_seconds), np.median(cairn_seconds)
    print(f"{'column':28}{'numpy':>40}{'cairn':>40}")
    for name, value in expected.items():
        print(f"{name:28}{value:>40}{answer['metrics'][name]:>40}")
    print(f"\n{'median of ' + str(arguments.rounds):28}{numpy_median * 1e3:>37.1f} ms{cairn_median * 1e3:>37.1f} ms")
    print(f"{'ratio':28}{numpy_median / cairn_median:>40.1f}\n")
    result = {
        "bytes_per_tensor": y.nbytes,
        "numpy_seconds": numpy_seconds,
        "cairn_seconds": cairn_seconds,
        "ratio": numpy_median / cairn_median,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    sys.exit(main())
