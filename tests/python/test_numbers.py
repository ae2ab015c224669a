"""Every rule of docs/explanation/numbers.md, on both engines and each instruction set, and TensorFlow's answer beside it."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

NAN, INF, TINY = float("nan"), float("inf"), 1e-40
LEAST = -(2**31)
F, I = "float32", "int32"

# operator, operands as (dtype, elements), attributes, result; TensorFlow's expression, or None where it has another rule.
RULES = [
    ("sign", [(F, [TINY, -TINY, 0.0, -0.0, NAN, INF])], {}, [0, 0, 0, 0, NAN, 1], "tf.sign(a)"),
    ("greater", [(F, [TINY, -TINY]), (F, [0.0, 0.0])], {}, [False, False], "tf.greater(a, b)"),
    ("equal", [(F, [TINY, NAN]), (F, [0.0, NAN])], {}, [True, False], "tf.equal(a, b)"),
    ("not_equal", [(F, [TINY, NAN]), (F, [0.0, NAN])], {}, [False, True], "tf.not_equal(a, b)"),
    ("div", [(F, [1.0, -1.0, 0.0]), (F, [TINY, 0.0, 0.0])], {}, [INF, -INF, NAN], "a / b"),
    ("mul", [(F, [TINY, 1e-38, 1e-30]), (F, [1.0, 0.01, 1e-10])], {}, [0, 0, 0], "a * b"),
    ("add", [(F, [TINY]), (F, [0.0])], {}, [0], "a + b"),
    ("sqrt", [(F, [TINY, -1.0])], {}, [0, NAN], "tf.sqrt(a)"),
    ("maximum", [(F, [1, NAN, -INF]), (F, [NAN, 1, INF])], {}, [NAN, NAN, INF], "tf.maximum(a, b)"),
    ("minimum", [(F, [1, NAN, -INF]), (F, [NAN, 1, INF])], {}, [NAN, NAN, -INF], "tf.minimum(a, b)"),
    ("relu", [(F, [NAN, -1, INF, -INF])], {}, [NAN, 0, INF, 0], "tf.nn.relu(a)"),
    ("clip", [(F, [NAN, -1, INF])], {"low": 0.0, "high": 6.0}, [NAN, 0, 6], "tf.nn.relu6(a)"),
    ("reduce_max", [(F, [1, NAN, 2])], {"axes": [0]}, NAN, "tf.reduce_max(a)"),
    ("reduce_min", [(F, [NAN, 1])], {"axes": [0]}, NAN, "tf.reduce_min(a)"),
    ("arg_max", [(F, [1, NAN, 3, 2])], {"axis": 0}, 2, "tf.argmax(a)"),
    ("arg_max", [(F, [NAN, NAN])], {"axis": 0}, 0, "tf.argmax(a)"),
    ("arg_min", [(F, [NAN, 1, 0])], {"axis": 0}, 2, "tf.argmin(a)"),
    ("unique", [(F, [NAN, NAN, 0.0, -0.0])], {}, ([NAN, NAN, 0], [0, 1, 2, 2]), "tf.unique(a)"),
    ("non_zero", [(F, [NAN, 0.0, 1.0])], {}, [[0], [2]], None),
    ("round", [(F, [0.5, 1.5, -0.5, 2.5])], {}, [0, 2, -0.0, 2], "tf.round(a)"),
    ("cast", [(F, [NAN, INF, -INF, 1e20, 1.9, -1.9])], {"dtype": "i32"}, [0, 2**31 - 1, LEAST, 2**31 - 1, 1, -1], None),
    ("cast", [(F, [NAN, 300, -1])], {"dtype": "u8"}, [0, 255, 0], None),
    ("cast", [(F, [NAN, 0.0, 2.0])], {"dtype": "bool"}, [True, False, True], "tf.cast(a, tf.bool)"),
    ("cast", [(I, [300, -1])], {"dtype": "u8"}, [44, 255], "tf.cast(a, tf.uint8)"),
    ("truncate_div", [(I, [LEAST, -7, 7]), (I, [-1, 2, -2])], {}, [LEAST, -3, -3], "tf.truncatediv(a, b)"),
    ("floor_div", [(I, [LEAST, -7, 7]), (I, [-1, 2, -2])], {}, [LEAST, -4, -4], "tf.math.floordiv(a, b)"),
    ("mod", [(I, [-7, 7]), (I, [3, -3])], {}, [2, -2], "tf.math.floormod(a, b)"),
    ("truncate_mod", [(I, [-7, 7]), (I, [3, -3])], {}, [-1, 1], "tf.truncatemod(a, b)"),
    ("floor_div", [(I, [1]), (I, [0])], {}, "error", "tf.math.floordiv(a, b)"),
    ("mod", [(I, [1]), (I, [0])], {}, "error", "tf.math.floormod(a, b)"),
    ("truncate_div", [(I, [1]), (I, [0])], {}, "error", "tf.truncatediv(a, b)"),
    ("pow", [(I, [0, 2, 3]), (I, [0, 31, 2])], {}, [1, LEAST, 9], "tf.pow(a, b)"),
    ("pow", [(I, [2]), (I, [-1])], {}, "error", "tf.pow(a, b)"),
    ("abs", [(I, [LEAST, -5])], {}, [LEAST, 5], "tf.abs(a)"),
    ("floor_div", [(F, [1, -1]), (F, [0, 0])], {}, [INF, -INF], "tf.math.floordiv(a, b)"),
    ("mod", [(F, [1, -1]), (F, [0, 0])], {}, [NAN, NAN], "tf.math.floormod(a, b)"),
    ("reduce_sum", [(F, [])], {"axes": [0]}, 0, "tf.reduce_sum(a)"),
    ("reduce_prod", [(F, [])], {"axes": [0]}, 1, "tf.reduce_prod(a)"),
    ("reduce_mean", [(F, [])], {"axes": [0]}, NAN, "tf.reduce_mean(a)"),
    ("reduce_max", [(F, [])], {"axes": [0]}, -INF, "tf.reduce_max(a)"),
    ("reduce_max", [(I, [])], {"axes": [0]}, LEAST, "tf.reduce_max(a)"),
    ("reduce_min", [(F, [])], {"axes": [0]}, INF, "tf.reduce_min(a)"),
    ("arg_max", [(F, [])], {"axis": 0}, "error", "tf.argmax(a)"),
]

# Elements are repeated, so that whole vectors, their tails and single numbers all occur; the engine is the argument.
CHILD = """
import json, sys, warnings
import numpy as np
import cairn
answers = []
for op, operands, attributes in json.loads(sys.stdin.read()):
    warnings.simplefilter("ignore")
    given = [np.array(elements, dtype) for dtype, elements in operands]
    try:
        got = cairn.run_op(op, given, engines=[sys.argv[1]], **attributes)
        got = list(got) if isinstance(got, tuple) else [got]
        answers.append([np.asarray(each).astype(float).tolist() for each in got])
    except cairn.Error as error:
        assert len(str(error)) > 8 and "\\n" not in str(error)
        answers.append("error")
print(json.dumps(answers))
"""


def _as_lists(value):
    return [value] if not isinstance(value, tuple) else list(value)


def _same(got, expected):
    if "error" in (got, expected):
        return got == expected
    return len(got) == len(expected) and all(
        np.array_equal(np.asarray(a, float), np.asarray(b, float), equal_nan=True) for a, b in zip(got, expected))


def _cases():
    """The rules, and those of one element for each again on a row of 21 and one of 300 elements."""
    for op, operands, attributes, expected, _ in RULES:
        yield op, operands, attributes, expected
        sizes = {len(elements) for _, elements in operands}
        if expected == "error" or op.startswith(("reduce", "arg", "unique", "non_zero")) or len(sizes) != 1:
            continue
        for count in (21, 300):
            times = count // sizes.copy().pop() + 1
            yield op, [(dtype, elements * times) for dtype, elements in operands], attributes, expected * times


@pytest.mark.parametrize("engine, isa", [("cpu", "avx512"), ("cpu", "avx2"), ("cpu", "none"), ("reference", "none")])
def test_rules_hold_on_every_engine(engine, isa):
    cases = list(_cases())
    sent = json.dumps([case[:3] for case in cases])
    child = subprocess.run([sys.executable, "-c", CHILD, engine], input=sent, capture_output=True, text=True,
                           env=dict(os.environ, CAIRN_ISA=isa))
    assert child.returncode == 0, child.stderr
    wrong = []
    for case, got in zip(cases, json.loads(child.stdout)):
        expected = case[3] if case[3] == "error" else _as_lists(case[3])
        if not _same(got, expected):
            wrong.append((case[0], case[1][0][1][:6], got if got == "error" else got[0][:6] if isinstance(got[0], list) else got))
    assert not wrong


def test_rules_are_tensorflows():
    tf = pytest.importorskip("tensorflow")
    wrong = []
    for op, operands, _, expected, expression in RULES:
        if expression is None:
            continue
        names = {name: tf.constant(elements, dtype) for name, (dtype, elements) in zip("ab", operands)}
        try:
            got = eval(expression, {"tf": tf, **names})
            got = [np.asarray(each).astype(float) for each in (got if isinstance(got, tuple) else [got])]
        except (tf.errors.InvalidArgumentError, tf.errors.InternalError):
            got = "error"
        if not _same(got, expected if expected == "error" else _as_lists(expected)):
            wrong.append((op, operands, got))
    assert not wrong
