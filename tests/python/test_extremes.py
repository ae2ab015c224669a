"""Functions of one and of two numbers, and reductions over rows, at the ends of their ranges: on the fast engine as in TensorFlow, or as
TensorFlow computes them in f64 (its f32 forms of erf, elu and their kin lose what is small). Denormal elements and results are zero, as
docs/explanation/numbers.md says."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

LEAST = np.float32(np.finfo("f").tiny)
NUMBERS = [0.0, 1e-45, 1e-40, LEAST, 1e-30, 1e-19, 1e-10, 1e-7, 1e-4, 0.1, 0.25, 0.5, 0.75, 1 - 2**-24, 1.0, 1 + 2**-23, 1.5, 2.0, 2.5, 3.0, 7.3, 16.7,
           43.0, 87.3, 88.7, 88.8, 103.9, 104.0, 127.0, 128.0, 1e3, 70001.0, 2**23 + 0.5, 2**24 + 2.0, 1e9, 3e9, 1e19, 1.9e19, 1e20, 1e30, 1e38, 3.4e38,
           np.inf, np.nan]
POINTS = np.array([*NUMBERS, *[-number for number in NUMBERS]], "f")
ONE = {
    "tf": "abs negative sign exp sqrt square sigmoid tanh sin cos tan asin acos atan sinh cosh asinh acosh atanh floor round",
    "tf.math": "expm1 log log1p rsqrt reciprocal erf erfc lgamma digamma erfinv ndtri log_sigmoid softplus softsign ceil rint is_nan is_inf is_finite "
               "bessel_i0e bessel_i1e reciprocal_no_nan",
    "tf.nn": "relu relu6 elu selu leaky_relu silu gelu",
    "tf.keras.activations": "hard_sigmoid mish",
}
TWO = {
    "tf.math": "add subtract multiply divide divide_no_nan maximum minimum pow floordiv floormod squared_difference xlogy xlog1py xdivy "
               "multiply_no_nan greater greater_equal less less_equal equal not_equal atan2",
    "tf": "truncatemod",
}
ROWS = {
    "tf": "reduce_sum reduce_mean reduce_max reduce_min reduce_prod reduce_logsumexp argmax argmin",
    "tf.math": "reduce_euclidean_norm reduce_std reduce_variance",
    "tf.nn": "softmax log_softmax",
}
# What is true where f64 does not tell it either, and where the frameworks part by more than rounding.
TRUE = {
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
    "erfinv": lambda x: np.where(np.abs(x) < 1e-3, x * np.sqrt(np.pi) / 2, np.where(np.abs(x) > 1, np.nan, np.inf)),
    "lgamma": lambda x: np.where(x == 0, np.inf, np.nan),
    "gelu": lambda x: x / 2 * np.vectorize(math.erfc)(-x / np.sqrt(2)),
    "atan2": np.arctan2,
    "floordiv": np.floor_divide,  # where the quotient is below the least normal number
    "softmax": lambda x: np.where(np.isfinite(x.sum(1, keepdims=True)), 0, np.nan) + 0 * x,  # one NaN or infinity makes all of them NaN
}


def names_of(table):
    return [f"{module}.{name}" for module, names in table.items() for name in names.split()]


def rows():
    random = np.random.RandomState(0)
    made = []
    for number in POINTS:
        made.append(random.uniform(-1, 1, 67))
        made[-1][random.randint(0, 67)] = number
        made.append(np.full(67, number))
    odd = np.arange(67) % 2
    made += [np.where(odd, np.inf, -np.inf), np.where(odd, 0.0, -0.0), np.where(odd, np.nan, 5.0)]
    return np.array(made, "f")


def operands_of(name):
    if name in names_of(ONE):
        return [np.tile(POINTS, 4)]
    return [each.ravel() for each in np.meshgrid(POINTS, POINTS)] if name in names_of(TWO) else [rows()]


def function_of(name):
    function = eval(name)
    return (lambda x: function(x, axis=1)) if name in names_of(ROWS) else function


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A folder with a frozen graph of each function and its operands."""
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    folder = tmp_path_factory.mktemp("models")
    for name in names_of(ONE) + names_of(TWO) + names_of(ROWS):
        operands = operands_of(name)
        specs = [tf.TensorSpec(each.shape, tf.float32) for each in operands]
        frozen = convert_variables_to_constants_v2(tf.function(function_of(name)).get_concrete_function(*specs))
        (folder / f"{name}.pb").write_bytes(frozen.graph.as_graph_def().SerializeToString())
        np.savez(folder / f"{name}.npz", **{each.op.name: operand for each, operand in zip(frozen.inputs, operands)})
    return folder


CHILD = """
import pathlib, sys
import numpy as np
import cairn
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.pb")):
    got = cairn.load(str(path)).run(dict(np.load(path.with_suffix(".npz"))))
    np.save(path.with_suffix("." + sys.argv[2] + ".npy"), next(iter(got.values())) if isinstance(got, dict) else got)
"""


def flushed(values):
    return np.where(np.abs(values) < LEAST, np.copysign(0, values), values) if values.dtype.kind == "f" else values


def is_near(got, expected, scale, tolerance):
    """Whether the numbers are equal, or within `tolerance` of the expected one or of the scale of what was added."""
    got, expected = flushed(np.asarray(got)).astype("d"), flushed(np.asarray(expected).astype(np.asarray(got).dtype)).astype("d")
    bound = np.maximum(tolerance * np.maximum(np.abs(expected), scale), LEAST)
    return (np.abs(got - expected) <= bound) | (got == expected) | (np.isnan(got) & np.isnan(expected))


@pytest.mark.parametrize("isa", ["avx512", "avx2", "none"])
def test_functions_at_the_ends_of_their_ranges_are_tensorflows_or_true(models, isa):
    subprocess.run([sys.executable, "-c", CHILD, models, isa], check=True, env=dict(os.environ, CAIRN_ISA=isa))
    wrong = {}
    for name in names_of(ONE) + names_of(TWO) + names_of(ROWS):
        operands = operands_of(name)
        got = np.load(models / f"{name}.{isa}.npy")
        one_by_one = name not in names_of(ROWS)
        with np.errstate(all="ignore"):
            gelu = 0.05 * np.abs(operands[0]) * (name == "tf.nn.gelu")  # its far end loses what TensorFlow's loses whole
            scale = gelu if one_by_one else np.abs(operands[0].astype("d")).max(1).reshape([-1] + [1] * (got.ndim - 1)) * 0.05
            scale = np.where(np.isfinite(scale), scale**2 if name.endswith("variance") else scale, 0)
            wide = [flushed(each).astype("d") for each in operands]
            answers = [function_of(name)(*map(tf.constant, operands)).numpy(), function_of(name)(*map(tf.constant, wide)).numpy()]
            if (true := TRUE.get(name.split(".")[-1])) is not None:
                answers.append(true(*wide))
            near = np.any([is_near(got, answer, scale, 2e-6 if one_by_one else 1e-5) for answer in answers], axis=0)
        if not near.all():
            at = np.flatnonzero(~near)[:6]
            inputs = [each.ravel()[at] if one_by_one else at // (got.size // len(got)) for each in operands]
            wrong[name] = (inputs, got.ravel()[at], answers[0].ravel()[at], answers[1].ravel()[at])
    assert not wrong
