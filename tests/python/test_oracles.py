"""Every case of every op row: the reference kernel against the row's oracle, an independent statement in Python."""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
DUMP = Path(os.environ.get("CAIRN_BUILD", ROOT / "build")) / "dump_op_cases"
# By Precision: units in the last place, of what at least, and the part of the largest element.
EXACT, ROUNDED, ACCUMULATE_F32 = range(3)
UNIT = {"f16": 2.0**-10, "bf16": 2.0**-7, "f32": 2.0**-23, "f64": 2.0**-52}
NUMPY = {
    "bool": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "u8": np.uint8,
    "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "f16": np.float16, "f32": np.float32, "f64": np.float64,
    "bf16": np.float32,
}  # fmt: skip


def widened(array, dtype):
    """16-bit floats as f32; bf16 comes as its bits."""
    if dtype == "bf16":
        return np.frombuffer((array.astype(np.uint32) * np.uint32(1 << 16)).tobytes(), np.float32).reshape(array.shape)
    return array.astype(np.float32) if dtype == "f16" else array


def narrowed(array, dtype):
    """What the elements are after rounding once to a 16-bit float."""
    array = np.asarray(array)
    if dtype == "f16":
        return array.astype(np.float16).astype(np.float32)
    if dtype == "bf16":
        import tensorflow as tf

        return tf.cast(tf.cast(array, tf.bfloat16), tf.float32).numpy()
    return array


def spatial_padding(x, kernel, padding, pads, fill):
    """x and the padding argument of TensorFlow; same_lower is same on the turned image, undone by the caller."""
    if padding == "explicit":
        borders = ((0, 0), (pads[0], pads[1]), (pads[2], pads[3]), (0, 0))
        return np.pad(x, borders, constant_values=fill), "VALID"
    return x, "VALID" if padding == "valid" else "SAME"


def conv2d(x, kernel, strides, dilations, padding, pads, groups):
    import tensorflow as tf

    if padding == "same_lower":
        turned = conv2d(x[:, ::-1, ::-1], kernel[::-1, ::-1], strides, dilations, "same", pads, groups)
        return turned[:, ::-1, ::-1]
    x, padding = spatial_padding(x, kernel, padding, pads, 0)
    if x.shape[0] == 0 or min(x.shape[1] - kernel.shape[0], x.shape[2] - kernel.shape[1]) < 0 and padding == "VALID":
        rows, columns = ((x.shape[1 + i] - kernel.shape[i]) // strides[i] + 1 for i in (0, 1))
        return np.zeros((x.shape[0], rows, columns, kernel.shape[3]), x.dtype)
    parts = zip(np.split(x, groups, 3), np.split(kernel, groups, 3))
    return np.concatenate([tf.nn.conv2d(a, b, strides, padding, dilations=dilations).numpy() for a, b in parts], 3)


def pool2d(kind, x, window, strides, dilations, padding, pads, ceil_mode, count_padding):
    import tensorflow as tf

    def pool(image, kind):
        return tf.nn.pool(image, window, kind, strides, "VALID", dilations=dilations).numpy()

    if x.size == 0:
        rows, columns = ((x.shape[1 + i] - window[i]) // strides[i] + 1 for i in (0, 1))
        return np.zeros((x.shape[0], rows, columns, x.shape[3]), x.dtype)
    if padding == "same_lower":
        turned = pool2d(kind, x[:, ::-1, ::-1], window, strides, dilations, "same", pads, ceil_mode, count_padding)
        return turned[:, ::-1, ::-1]
    if padding == "same":
        return tf.nn.pool(x, window, kind, strides, "SAME", dilations=dilations).numpy()
    borders = [[0, 0], list(pads[:2]), list(pads[2:]), [0, 0]] if padding == "explicit" else [[0, 0]] * 4
    inside = np.pad(np.ones_like(x), borders, constant_values=1 if count_padding else 0)
    borders = np.array(borders)
    if ceil_mode:  # a partial last window: padding that never counts
        inside = np.pad(inside, [(0, 0), (0, strides[0] - 1), (0, strides[1] - 1), (0, 0)])
        borders += [[0, 0], [0, strides[0] - 1], [0, strides[1] - 1], [0, 0]]
    if kind == "MAX":
        least = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
        return pool(np.pad(x, borders, constant_values=least).astype(np.float32), kind).astype(x.dtype)
    return pool(np.pad(x, borders), kind) / pool(inside, kind)


def philox(draw, rng, shape, dtype):
    """TensorFlow's stateless generator with explicit key and counter, and the state after it."""
    y = draw(shape=shape, key=rng[:1], counter=rng[1:], alg=1, dtype=dtype).numpy()
    blocks = -(-y.size // (2 if dtype == np.float64 else 4))
    low = (int(rng[1]) + blocks) % 2**64
    return np.array([rng[0], low, (int(rng[2]) + (low < int(rng[1]))) % 2**64], np.uint64), y


HELPERS = {"np": np, "conv2d": conv2d, "pool2d": pool2d, "philox": philox}


@pytest.fixture(scope="session")
def dumped(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cases")
    subprocess.run([DUMP, folder], check=True)
    return folder, json.loads((folder / "cases.json").read_text())


def load(folder, entry):
    return widened(np.load(folder / entry["file"]), entry["dtype"])


def attribute(folder, value):
    if "number" in value:
        return float(value["number"])
    return load(folder, value) if "file" in value else NUMPY[value["dtype"]]


def scope_of(folder, case):
    scope = dict(HELPERS)
    if "tf." in case["expression"]:
        import tensorflow as tf

        scope["tf"] = tf
    for entry in case["inputs"]:
        value = load(folder, entry)
        if entry["variadic"]:
            scope.setdefault(entry["name"], []).append(value)
        else:
            scope[entry["name"]] = value
    for name, value in case["attributes"].items():
        if isinstance(value, dict):
            value = attribute(folder, value)
        scope[name] = value
    return scope


def problem(expected, actual, dtype, precision):
    """What differs, or nothing; the tolerances are those of tests/ops/cases.h."""
    if NUMPY[dtype] != expected.dtype and dtype not in ("f16", "bf16"):
        return f"dtype {dtype}, the oracle says {expected.dtype}"
    if expected.shape != actual.shape:
        return f"shape {actual.shape}, the oracle says {expected.shape}"
    if dtype not in UNIT:
        return None if np.array_equal(expected, actual) else f"{actual}, the oracle says {expected}"
    expected, actual = narrowed(expected, dtype).astype(np.float64), actual.astype(np.float64)
    finite = np.isfinite(expected)
    magnitude = np.abs(np.where(finite, expected, 0))
    allowed = np.zeros_like(magnitude)
    if precision == ROUNDED:
        allowed = 8 * UNIT[dtype] * np.maximum(magnitude, 0.25)
    elif precision == ACCUMULATE_F32:
        allowed += (4 * UNIT[dtype] + (1e-13 if dtype == "f64" else 2e-6)) * max(1, magnitude.max(initial=0))
    with np.errstate(invalid="ignore"):
        same = (expected == actual) | (np.isnan(expected) & np.isnan(actual))
        close = same | finite & (np.abs(expected - actual) <= allowed)
    return None if close.all() else f"{actual[~close]}, the oracle says {expected[~close]}"


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_reference_kernels_agree_with_their_oracles(dumped):
    folder, cases = dumped
    assert len(cases) > 300
    failures = []
    for case in cases:
        try:
            expected = eval(case["expression"], scope_of(folder, case))  # noqa: S307 - expressions of our own rows
        except Exception as error:  # noqa: BLE001 - listed with the case
            failures.append(f"{case['case']}: the oracle fails: {type(error).__name__}: {str(error)[:200]}")
            continue
        results = expected if isinstance(expected, tuple) else (expected,)
        assert len(results) == len(case["results"]), case["case"]
        for entry, result in zip(case["results"], results):
            found = problem(np.asarray(result), load(folder, entry), entry["dtype"], case["precision"])
            if found:
                failures.append(f"{case['case']}: {found}")
    assert not failures, "\n".join(failures)
