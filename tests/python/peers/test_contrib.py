"""Operators of com.microsoft equal ONNX Runtime's. Runs in .venv-peers."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

import cairn

TYPES = {np.dtype(np.float32): 1, np.dtype(np.int32): 6, np.dtype(np.int64): 7}
random = np.random.default_rng(3)


def f(*shape):
    return random.standard_normal(shape).astype(np.float32)


def i32(*values):
    return np.array(values, np.int32)


def mask(*lengths, width=5):
    return (np.arange(width) < np.array(lengths)[:, None]).astype(np.int32)


def angles(rows, half):
    places = np.outer(np.arange(rows), 10.0 ** -np.arange(half))
    return np.cos(places).astype(np.float32), np.sin(places).astype(np.float32)


HEADS = {"num_heads": 2}
ATTENTION = (f(2, 5, 8), f(8, 24), f(24))
QKV = (f(2, 5, 8), f(2, 6, 8), f(2, 6, 8))
CACHE = (f(2, 2, 7, 16), f(2, 2, 7, 16))
# name: (op, inputs, how many results, attributes); None: left out
CASES = {
    "FastGelu": ("FastGelu", (f(3, 4), f(4)), 1, {}),
    "FastGelu, no bias": ("FastGelu", (f(3, 4),), 1, {}),
    "BiasGelu": ("BiasGelu", (f(2, 3, 4), f(4)), 1, {}),
    "Gelu": ("Gelu", (f(3, 4),), 1, {}),
    "QuickGelu": ("QuickGelu", (f(3, 4),), 1, {"alpha": 1.5}),
    "FusedMatMul": ("FusedMatMul", (f(2, 4, 3), f(2, 5, 4)), 1, {"transA": 1, "transB": 1, "alpha": 0.5}),
    "SimplifiedLayerNormalization": ("SimplifiedLayerNormalization", (f(2, 3, 8), f(8)), 1, {"epsilon": 1e-5, "axis": -1}),
    "SkipLayerNormalization": ("SkipLayerNormalization", (f(2, 3, 8), f(2, 3, 8), f(8), f(8), f(8)), 1, {"epsilon": 1e-5}),
    "SkipLayerNormalization, sum": ("SkipLayerNormalization", (f(2, 3, 8), f(2, 3, 8), f(8)), (0, 3), {}),
    "SkipSimplifiedLayerNormalization": ("SkipSimplifiedLayerNormalization", (f(2, 3, 8), f(2, 3, 8), f(8), f(8)), (0, 3), {}),
    "EmbedLayerNormalization": (
        "EmbedLayerNormalization",
        (i32([1, 4, 2], [0, 3, 3]), i32([0, 0, 1], [1, 1, 0]), f(5, 8), f(6, 8), f(2, 8), f(8), f(8), mask(3, 2, width=3)),
        2, {"epsilon": 1e-5}),
    "Attention": ("Attention", ATTENTION, 1, HEADS),
    "Attention, mask": ("Attention", (*ATTENTION, mask(5, 3)), 1, HEADS),
    "Attention, lengths": ("Attention", (*ATTENTION, i32(5, 2)), 1, HEADS),
    "Attention, causal": ("Attention", ATTENTION, 1, {**HEADS, "unidirectional": 1}),
    "Attention, past": ("Attention", (*ATTENTION, mask(7, 8, width=8), f(2, 2, 2, 3, 4)), 2, {**HEADS, "unidirectional": 1}),
    "Attention, bias": ("Attention", (*ATTENTION, None, None, f(2, 2, 5, 5)), 1, {**HEADS, "scale": 0.3}),
    "Attention, sizes": ("Attention", (f(2, 5, 8), f(8, 20), f(20)), 1, {**HEADS, "qkv_hidden_sizes": [8, 8, 4]}),
    "MultiHeadAttention": ("MultiHeadAttention", QKV, 1, HEADS),
    "MultiHeadAttention, bias": ("MultiHeadAttention", (*QKV, f(24)), 1, HEADS),
    "MultiHeadAttention, mask": ("MultiHeadAttention", (*QKV, None, mask(6, 2, width=6)), 1, HEADS),
    "MultiHeadAttention, added": ("MultiHeadAttention", (*QKV, None, None, f(1, 2, 5, 6)), 1, HEADS),
    "MultiHeadAttention, causal": ("MultiHeadAttention", (QKV[0], f(2, 5, 8), f(2, 5, 8)), 1, {**HEADS, "unidirectional": 1}),
    "MultiHeadAttention, heads": ("MultiHeadAttention", (QKV[0], f(2, 2, 6, 4), f(2, 2, 6, 4)), 1, HEADS),
    "MultiHeadAttention, past": ("MultiHeadAttention", (*QKV, None, None, None, f(2, 2, 3, 4), f(2, 2, 3, 4)), 3, HEADS),
    "RotaryEmbedding": ("RotaryEmbedding", (f(2, 5, 16), np.array([3]), *angles(20, 4)), 1, {}),
    "RotaryEmbedding, interleaved": ("RotaryEmbedding", (f(2, 5, 16), np.arange(10).reshape(2, 5), *angles(20, 4)), 1, {"interleaved": 1}),
    "RotaryEmbedding, heads": ("RotaryEmbedding", (f(2, 2, 5, 8), np.arange(10).reshape(2, 5), *angles(20, 4)), 1, {}),
    "GroupQueryAttention, prompt": (
        "GroupQueryAttention", (f(2, 5, 32), f(2, 5, 16), f(2, 5, 16), None, None, i32(4, 4), i32(5).reshape(())), 3,
        {"num_heads": 4, "kv_num_heads": 2}),
    "GroupQueryAttention, rotary": (
        "GroupQueryAttention", (f(2, 5, 128), None, None, None, None, i32(4, 4), i32(5).reshape(()), *angles(20, 8)), 3,
        {"num_heads": 4, "kv_num_heads": 2, "do_rotary": 1}),
    "GroupQueryAttention, one more": (
        "GroupQueryAttention", (f(2, 1, 64), f(2, 1, 32), f(2, 1, 32), *CACHE, i32(7, 7), i32(8).reshape(()), *angles(20, 8)), 3,
        {"num_heads": 4, "kv_num_heads": 2, "do_rotary": 1, "local_window_size": 4}),
    "GroupQueryAttention, capped": (
        "GroupQueryAttention", (f(2, 1, 64), f(2, 1, 32), f(2, 1, 32), *CACHE, i32(7, 7), i32(8).reshape(())), 3,
        {"num_heads": 4, "kv_num_heads": 2, "softcap": 3.0}),
}  # fmt: skip


def value(name, array, fixed):
    """Batches and lengths are open, sizes of weights and heads are not."""
    dims = list(array.shape) if fixed else [f"{name}{axis}" if axis < min(2, array.ndim - 1) and array.ndim > 2 else size for axis, size in enumerate(array.shape)]
    return helper.make_tensor_value_info(name, TYPES[array.dtype], dims)


@pytest.mark.parametrize("fixed", [True, False], ids=["fixed", "open"])
@pytest.mark.parametrize("case", CASES)
def test_an_operator_equals_that_of_onnx_runtime(case, fixed, tmp_path):
    op, inputs, results, attributes = CASES[case]
    fixed = fixed or any(x is not None and x.ndim == 4 for x in inputs)
    wanted = range(results) if isinstance(results, int) else results
    names = [f"y{i}" if i in wanted else "" for i in range(max(wanted) + 1)]
    feeds = {f"x{i}": x for i, x in enumerate(inputs) if x is not None}
    domain = "" if op == "SimplifiedLayerNormalization" else "com.microsoft"
    node = helper.make_node(op, [f"x{i}" if x is not None else "" for i, x in enumerate(inputs)], names, domain=domain, **attributes)
    outputs = [helper.make_empty_tensor_value_info(name) for name in names if name]
    graph = helper.make_graph([node], "g", [value(name, array, fixed) for name, array in feeds.items()], outputs)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    file = tmp_path / "m.onnx"
    file.write_bytes(helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString())
    theirs = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"]).run(None, feeds)
    found = cairn.load(file).run(feeds)
    for name, right in zip([name for name in names if name], theirs, strict=True):
        np.testing.assert_allclose(found[name], right, rtol=1e-4, atol=1e-5, err_msg=name)


def test_a_mask_that_is_a_number_is_refused(tmp_path):
    node = helper.make_node("Attention", ["x", "w", "b", "m"], ["y"], domain="com.microsoft", num_heads=2)
    shapes = {"x": [1, 5, 8], "w": [8, 24], "b": [24], "m": []}
    inputs = [helper.make_tensor_value_info(k, TensorProto.INT32 if k == "m" else TensorProto.FLOAT, v) for k, v in shapes.items()]
    graph = helper.make_graph([node], "g", inputs, [helper.make_empty_tensor_value_info("y")])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    file = tmp_path / "m.onnx"
    file.write_bytes(helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString())
    with pytest.raises(cairn.Error, match="a mask of 0 dims is not supported"):
        cairn.load(file)
