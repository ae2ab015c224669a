"""Operators: values by NumPy statements, gradients by differences, both modes, and the values of MindSpore 2.10 itself."""

import os
import subprocess
from pathlib import Path

import mindspore as ms
import numpy as np
import ops_cases
import pytest
import scipy.special
from cairn.ms import modes
from mindspore.ops.composite import GradOperation

ROOT = Path(__file__).resolve().parents[3]
OPERATORS, LAYERS = ops_cases.read("ops_cases.txt"), ops_cases.read("layer_cases.txt")
CASES = OPERATORS + LAYERS
by_expression = pytest.mark.parametrize("case", CASES, ids=lambda case: case.expression)


def conv2d(x, w, stride=1, groups=1):
    """Correlation of NCHW images without padding, in loops over the kernel."""
    x = x.reshape(x.shape[0], groups, -1, *x.shape[2:])
    w = w.reshape(groups, -1, *w.shape[1:])
    height, width = ((size - k) // stride + 1 for size, k in zip(x.shape[3:], w.shape[3:]))
    out = 0
    for i in range(w.shape[3]):
        for j in range(w.shape[4]):
            part = x[..., i : i + (height - 1) * stride + 1 : stride, j : j + (width - 1) * stride + 1 : stride]
            out = out + np.einsum("ngchw,goc->ngohw", part, w[..., i, j])
    return out.reshape(out.shape[0], -1, height, width)


def scatter_nd(indices, updates, shape):
    made = np.zeros(shape, updates.dtype)
    np.add.at(made, tuple(np.moveaxis(indices, -1, 0)), updates)
    return made


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(x, h, c, w, inputs, hidden):
    """One layer of a flat weight: matrices of the gates i, f, g, o, then both biases."""
    w, rows, h, c, made = w.ravel(), 4 * hidden, h[0], c[0], []
    u, v, b = (
        w[: rows * inputs].reshape(rows, inputs),
        w[rows * inputs : -2 * rows].reshape(rows, hidden),
        w[-2 * rows :],
    )
    for step in x:
        i, f, g, o = np.split(step @ u.T + h @ v.T + b[:rows] + b[rows:], 4, 1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        made.append(h)
    return np.stack(made)


def dynamic_rnn(x, w, b, h, c):
    """Gates in the order i, j, f, o."""
    made = []
    for step in x:
        i, j, f, o = np.split(np.concatenate([step, h], 1) @ w + b, 4, 1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(j)
        h = sigmoid(o) * np.tanh(c)
        made.append(h)
    return np.stack(made)


def agree(made, expected, tolerance=2e-5):
    made, expected = ops_cases.flat(made), ops_cases.flat(expected)
    assert len(made) == len(expected)
    for a, b in zip(made, expected):
        assert a.shape == b.shape
        assert a.dtype.kind == b.dtype.kind or a.dtype.kind + b.dtype.kind in ("iu", "ui")
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@by_expression
def test_values(case):
    made = ops_cases.evaluate(case)
    if case.statement != "-":
        agree(made, eval(case.statement, {**globals(), **case.arrays()}))


@pytest.mark.parametrize("case", [case for case in CASES if "flat" not in case.notes], ids=lambda case: case.expression)
def test_gradients(case):
    """Along random directions of results and inputs, by central differences: of f64, or of f32 for layers, which have weights."""
    dtype, step, tolerance = (np.float64, 1e-6, 2e-4) if case in OPERATORS else (np.float32, 2e-3, 1e-2)
    arrays = case.arrays(dtype)
    asked = next((note[3:] for note in case.notes if note.startswith("by:")), arrays if case in OPERATORS else "xy")
    floats = [name for name, array in arrays.items() if array.dtype.kind == "f" and name in asked]
    names = ops_cases.names_of_mindspore()
    random = np.random.RandomState(1)
    made = ops_cases.flat(eval(case.expression, {**names, **{name: ms.Tensor(a) for name, a in arrays.items()}}))
    if not floats or not any(each.dtype.kind == "f" for each in made):
        return
    weights = [
        ms.Tensor(np.asarray(random.normal(0, 1, each.shape), dtype)) if each.dtype.kind == "f" else None
        for each in made
    ]

    def total(*inputs):
        given = {**names, **{name: ms.Tensor(a) for name, a in arrays.items()}, **dict(zip(floats, inputs))}
        results = eval(case.expression, given)
        results = results if isinstance(results, tuple) else (results,)
        return sum((result * weight).sum() for result, weight in zip(results, weights) if weight is not None)

    gradients = GradOperation(get_all=True)(total)(*(ms.Tensor(arrays[name]) for name in floats))
    direction = [random.normal(0, 1, arrays[name].shape) for name in floats]
    ends = [
        float(
            total(
                *(ms.Tensor(np.asarray(arrays[name] + sign * step * d, dtype)) for name, d in zip(floats, direction))
            ).asnumpy()
        )
        for sign in (1, -1)
    ]
    slope = sum(float((g.asnumpy() * d).sum()) for g, d in zip(gradients, direction))
    assert slope == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=tolerance, abs=tolerance)


def test_operators_in_graph_mode(tmp_path, monkeypatch):
    """All operators as captured functions give what they give eagerly."""
    lines = ["import numpy as np", "import mindspore as ms", "from mindspore import Tensor, nn"]
    lines += ["from mindspore.ops import functional as F", "from mindspore.ops import operations as P"]
    lines += ["from mindspore.ops.operations import _grad_ops as G"]
    for number, case in enumerate(OPERATORS):
        names = ", ".join(name for name, _ in case.inputs)
        lines += ["", "", f"def case_{number}({names}):", f"    return {case.expression}"]
    (tmp_path / "captured_cases.py").write_text("\n".join(lines) + "\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import captured_cases

    for number, case in enumerate(OPERATORS):
        inputs = [ms.Tensor(array) for array in case.arrays().values()]
        if inputs:
            agree(ms.ms_function(getattr(captured_cases, f"case_{number}"))(*inputs), ops_cases.evaluate(case))


@pytest.mark.parametrize("case", [case for case in LAYERS if case.inputs], ids=lambda case: case.expression)
def test_layers_in_graph_mode(case, graph_mode):
    made = ops_cases.evaluate(case)
    modes.mode = modes.PYNATIVE
    agree(made, ops_cases.evaluate(case))


@pytest.mark.long
@pytest.mark.parametrize("source", ["ops_cases.txt", "layer_cases.txt"])
def test_values_of_mindspore_itself(source, tmp_path):
    python = ROOT / ".venv-mindspore" / "bin" / "python"
    if not python.exists():
        pytest.skip("MindSpore is not installed in .venv-mindspore")
    file = tmp_path / "values.npz"
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    subprocess.run([python, ops_cases.__file__, source, file], check=True, env=environment, capture_output=True)
    theirs, wrong = np.load(file), []
    for number, case in enumerate(ops_cases.read(source)):
        if "own" in case.notes:
            continue
        if f"{number}_error" in theirs:
            wrong.append(f"{case.expression}: {theirs[f'{number}_error']}")
            continue
        made = ops_cases.flat(ops_cases.evaluate(case))
        try:
            agree(made, [theirs[f"{number}_{part}"] for part in range(len(made))], 1e-4)
        except (AssertionError, KeyError) as error:
            wrong.append(f"{case.expression}: {error}")
    assert not wrong, "\n".join(wrong)


def test_errors_name_the_primitive():
    from mindspore import Tensor
    from mindspore.ops import operations as P

    x = Tensor(np.ones((2, 3, 5), np.float32))
    for name, make in (("ReduceMean", lambda: P.ReduceMean()(x, 5)), ("Softmax", lambda: P.Softmax(axis=4)(x))):
        with pytest.raises(ValueError, match=name):
            make()
    with pytest.raises(TypeError, match="BiasAdd"):
        P.BiasAdd()(Tensor([True]), Tensor([True]))
    assert P.Pow()(Tensor([True, False, False]), Tensor([True, True, False])).asnumpy().tolist() == [True, False, True]
