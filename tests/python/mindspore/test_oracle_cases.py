"""Expressions and what MindSpore answers to them, as oracle_cases.txt holds it: values, and errors by class."""

import json
import os

import mindspore as ms
import mindspore.dataset as ds
import mindspore.dataset.text as X
import mindspore.dataset.transforms as T
import mindspore.dataset.vision as V
import mindspore.numpy as mnp
import mindspore.ops.operations as P
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import initializer

with open(os.path.join(os.path.dirname(__file__), "oracle_cases.txt"), encoding="utf-8") as _file:
    CASES = [line.rstrip("\n").split("\t") for line in _file if not line.startswith("#")]


def names():
    """What the expressions use."""
    numbers = np.array([[1, 2, 3], [4, 5, 6]])
    return {
        "ms": ms, "mnp": mnp, "ds": ds, "X": X, "T": T, "V": V, "P": P, "np": np, "Parameter": Parameter, "Tensor": Tensor, "nn": nn, "ops": ops,
        "initializer": initializer, "voc": X.Vocab.from_list(["un", "##able", "[UNK]", "able", "##a"]),
        "img": np.random.RandomState(0).randint(0, 255, (20, 24, 3)).astype(np.uint8),
        "f": Tensor(numbers.astype(np.float32)), "f2": Tensor(np.ones((4, 5), np.float32)), "i": Tensor(numbers.astype(np.int32)),
        "i64": Tensor(numbers), "i1": Tensor(np.array([0, 1, 1], np.int32)), "b": Tensor(np.array([[True, False, True], [False, True, True]])),
        "b1": Tensor(True), "b1x": Tensor([True, False]), "u8": Tensor(np.array([[1, 2, 3]], np.uint8)), "i8": Tensor(np.array([[1, 2, 3]], np.int8)),
        "h": Tensor(np.array([[1, 2, 3]], np.float16)), "on": Tensor(1.0, ms.float32), "off": Tensor(0.0, ms.float32),
    }  # fmt: skip


def shown(value):
    """A value as the file holds it."""
    if isinstance(value, Tensor):
        array = value.asnumpy()
        elements = np.round(array.astype(np.float64), 3) if array.dtype.kind == "f" else array
        return f"T[{value.dtype}{list(value.shape)}]{elements.tolist()}"[:300]
    if isinstance(value, (np.ndarray, np.generic)):
        elements = np.round(value.astype(float), 3) if value.dtype.kind == "f" else value
        listed = [str(each) for each in np.ravel(value)] if value.dtype.kind == "S" else elements.tolist()
        return f"A[{value.dtype}{list(value.shape)}]" + json.dumps(listed)
    if isinstance(value, dict):
        return "dict(" + ",".join(f"{key}:{shown(each)}" for key, each in value.items()) + ")"
    if isinstance(value, (tuple, list)):
        return f"{type(value).__name__}({','.join(shown(each) for each in value)})"
    return repr(value)


@pytest.mark.parametrize("wanted, expression", CASES, ids=[expression for _, expression in CASES])
def test_expression(wanted, expression):
    error = {each.__name__: each for each in (TypeError, ValueError, RuntimeError, KeyError, IndexError, AttributeError)}.get(wanted)
    if error is not None:
        with pytest.raises(error):
            eval(expression, names())
    else:
        assert shown(eval(expression, names())) == wanted
