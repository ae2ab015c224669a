"""Writes tests/judge/data, expected metrics from the numpy statement, and tests/compare/data, array files as numpy writes them.

python tests/compare/make_data.py   (numpy 1.26: later releases add sums of more than 8192 elements in another order)
"""

import json
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "bench"))
from compare_metrics import measure  # noqa: E402

DATA = HERE / "data"


def hashed(count, seed):
    """The same numbers in [-1, 1) as metrics_test.cpp makes."""
    bits = (np.arange(count, dtype=np.uint64) * 2654435761 + seed * 40503) % (1 << 32)
    bits ^= bits >> 15
    bits = bits * 2246822519 % (1 << 32)
    bits ^= bits >> 13
    return bits.astype(np.uint32).view(np.int32).astype(np.float32) * np.float32(2.0**-31)


def listed(values):
    return [str(v) if not np.isfinite(v) else float(v) for v in np.asarray(values, np.float32)]


NAN, INF = np.nan, np.inf
EDGES = {
    "equal": ([1, 2, 3], [1, 2, 3]),
    "both zero": ([0] * 9, [0] * 9),
    "x zero": ([0] * 9, range(9)),
    "y zero": (range(1, 10), [0] * 9),
    "y zero and x large": ([100] * 20, [0] * 20),
    "opposite": (range(1, 12), range(-1, -12, -1)),
    "scale of two": ([2, 4, 6, 8, 10], [1, 2, 3, 4, 5]),
    "affine": (np.arange(50) * 3 + 5, np.arange(50)),
    "constants": ([5] * 10, [7] * 10),
    "x constant": ([5] * 10, range(10)),
    "negative constants": ([-5] * 10, [-5] * 10),
    "one scalar": ([3], [4]),
    "scalar zero": ([0], [0]),
    "two elements": ([3, 4], [4, 3]),
    "nan in x": ([1, NAN, 3, 4], [1, 2, 3, 4]),
    "nan in y": ([1, 2, 3, 4], [1, NAN, 3, 4]),
    "nan in both": ([1, NAN, 3, 4], [1, NAN, 3, 4]),
    "infinity in x": ([1, INF, 3, 4], [1, 2, 3, 4]),
    "infinity in y": ([1, 2, 3, 4], [1, -INF, 3, 4]),
    "infinity in both": ([1, INF, 3, 4], [1, INF, 3, 4]),
    "tiny reference": ([1e-6] * 8, [1e-12] * 8),
    "below eps": ([1e-17] * 8, [1e-17] * 8),
    "x below eps": ([1e-17] * 8, range(8)),
    "norm of x far below eps": ([1e-40] * 8, range(8)),
    "y just at eps": ([1, 2, 3, 4], [2.22e-16, 2.3e-16, 1e-16, 1]),
    "denormals": ([1e-40, 2e-40, 3e-40], [1e-40, 2e-40, 4e-40]),
    "squares overflow": ([1e20, 2e20, 3e20], [1e20, 2e20, 4e20]),
    "norms beyond the quick division": ([1e19, 3e18, 7], [1.1e19, 2e18, 9]),
    "small norms": ([1e-18, 3e-18, 7e-19], [1.1e-18, 2e-18, 9e-19]),
    "differences overflow": ([3e38, 1], [-3e38, 1]),
    "negative zero": ([-0.0, 1, 2], [0.0, 1, 2]),
    "large offsets": (1e6 + np.arange(300) * 0.25, 1e6 + np.arange(300) * 0.25),
    "outlier first": ([1e6, *([1e-2, 2e-2] * 40)], [1e6, *([1e-2, 2.5e-2] * 40)]),
}
SIZES = [2, 7, 8, 9, 15, 16, 17, 100, 127, 128, 129, 136, 255, 256, 1000, 8191, 8192, 8193, 8200, 16384, 20001, 100003]


def main():
    DATA.mkdir(exist_ok=True)
    cases = []
    for name, (x, y) in EDGES.items():
        x, y = np.array(list(x), np.float32), np.array(list(y), np.float32)
        columns, note = measure(x, y)
        cases.append({"name": name, "x": listed(x), "y": listed(y), "columns": columns, "note": note})
    for size in SIZES:
        y = hashed(size, 1)
        x = y + hashed(size, 2) * np.float32(2.0**-10)
        columns, note = measure(x, y)
        cases.append({"name": f"random {size}", "count": size, "columns": columns, "note": note})
    (HERE.parent / "judge/data/expected_metrics.json").write_text(json.dumps(cases, indent=1) + "\n")

    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.save(DATA / "columns_first.npy", np.asfortranarray(array))
    np.save(DATA / "big_endian.npy", array.astype(">f4"))
    np.save(DATA / "scalar.npy", np.float64(2.5))
    np.savez(DATA / "stored.npz", **{"conv1:0": array, "conv1/bias": np.array([1, -2], np.int64)})
    np.savez_compressed(DATA / "deflated.npz", **{"conv1:0": np.zeros((64, 64), np.float16), "flags": np.array([True, False])})


if __name__ == "__main__":
    main()
