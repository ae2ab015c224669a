"""Quantised and fused operators of com.microsoft, as ONNX Runtime's tools write them, equal ONNX Runtime's. Runs in .venv-peers."""

import numpy as np
import onnxruntime
import pytest
from onnx import helper

import cairn

random = np.random.default_rng(3)


def f(*shape):
    return random.standard_normal(shape).astype(np.float32)


def u8(*shape):
    return random.integers(0, 255, shape, dtype=np.uint8)


def i8(*shape):
    return random.integers(-127, 127, shape, dtype=np.int8)


def steps(scale, zero, kind=np.uint8):
    return np.float32(scale), kind(zero)


IMAGES, OTHERS = (u8(2, 4, 6, 6), *steps(0.02, 120)), (u8(2, 4, 6, 6), *steps(0.03, 100))
TO = steps(0.05, 110)
SHARES = steps(1 / 256, 0)
POOL = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
CONV = (f(2, 3, 7, 7), f(4, 3, 3, 3), f(4))
LSTM = (f(5, 2, 4), i8(1, 4, 24), i8(1, 6, 24), f(1, 48), *[None] * 4, *[np.float32([0.005]), np.int8([0])] * 2)
EXPERTS = (f(6, 8), f(6, 4), f(4, 16, 8), f(4, 16), f(4, 8, 16), f(4, 8))
# name: (op, inputs, how many results, attributes); None: left out
CASES = {
    "QLinearAdd": ("QLinearAdd", (*IMAGES, u8(6), *OTHERS[1:], *TO), 1, {}),
    "QLinearAdd, signed": ("QLinearAdd", (i8(2, 5), *steps(0.02, 3, np.int8), i8(2, 5), *steps(0.03, -4, np.int8), *steps(0.05, 0, np.int8)), 1, {}),
    "QLinearMul": ("QLinearMul", (*IMAGES, *OTHERS, *TO), 1, {}),
    "QLinearSigmoid": ("QLinearSigmoid", (*IMAGES, *SHARES), 1, {}),
    "QLinearLeakyRelu": ("QLinearLeakyRelu", (*IMAGES, *TO), 1, {"alpha": 0.2}),
    "QLinearAveragePool": ("QLinearAveragePool", (*IMAGES, *TO), 1, POOL),
    "QLinearAveragePool, channels last": ("QLinearAveragePool", (*IMAGES, *TO), 1, {"kernel_shape": [2, 2], "channels_last": 1}),
    "QLinearGlobalAveragePool": ("QLinearGlobalAveragePool", (*IMAGES, *TO), 1, {}),
    "QLinearGlobalAveragePool, channels last": ("QLinearGlobalAveragePool", (*IMAGES, *TO), 1, {"channels_last": 1}),
    "QLinearSoftmax": ("QLinearSoftmax", (u8(3, 7), *steps(0.02, 120), *SHARES), 1, {"axis": -1, "opset": 13}),
    "QLinearConcat": ("QLinearConcat", (*TO, *IMAGES, *OTHERS), 1, {"axis": 1}),
    "QLinearWhere": ("QLinearWhere", (random.random((2, 5)) > 0.5, u8(2, 5), *steps(0.02, 120), u8(5), *steps(0.03, 90), *TO), 1, {}),
    "QGemm": ("QGemm", (u8(3, 6), *steps(0.02, 120), i8(6, 5), *steps(0.01, 0, np.int8), random.integers(-999, 999, 5, dtype=np.int32), *TO), 1, {}),
    "QGemm, floats": ("QGemm", (u8(3, 6), *steps(0.02, 120), i8(5, 6), f(5) ** 2 / 50 + np.float32(0.001), np.zeros(5, np.int8)), 1, {"transB": 1}),
    "MatMulIntegerToFloat": (
        "MatMulIntegerToFloat", (u8(3, 6), i8(6, 5), np.float32(0.02), f(5) ** 2 / 50 + np.float32(0.001), np.uint8(120), np.zeros(5, np.int8), f(5)), 1, {}),
    "DynamicQuantizeMatMul": ("DynamicQuantizeMatMul", (f(2, 3, 6), i8(6, 5), *steps(0.01, 0, np.int8), f(5)), 1, {}),
    "QAttention": (
        "QAttention", (u8(2, 5, 8), i8(8, 24), f(24), np.float32(0.02), np.float32(0.01), np.int32([[1] * 5, [1, 1, 1, 0, 0]]), np.uint8(120), np.int8(0)),
        1, {"num_heads": 2}),
    "DynamicQuantizeLSTM": ("DynamicQuantizeLSTM", LSTM, 3, {"hidden_size": 6}),
    "QuantizeLinear": ("QuantizeLinear", (f(3, 4), *TO), 1, {}),
    "DequantizeLinear": ("DequantizeLinear", (u8(3, 4), f(4) ** 2 + np.float32(0.01), u8(4)), 1, {"axis": 1}),
    "FusedConv": ("FusedConv", CONV, 1, {"activation": "Relu", "pads": [1, 1, 1, 1]}),
    "FusedConv, added": ("FusedConv", (*CONV, f(2, 4, 5, 5)), 1, {"activation": "Relu"}),
    "FusedConv, leaky": ("FusedConv", CONV, 1, {"activation": "LeakyRelu", "activation_params": [0.3]}),
    "FusedConv, cut": ("FusedConv", CONV, 1, {"activation": "Clip", "activation_params": [-0.5, 1.5]}),
    "FusedConv, line": ("FusedConv", CONV, 1, {"activation": "HardSigmoid", "activation_params": [0.3, 0.4]}),
    "FusedGemm": ("FusedGemm", (f(3, 4), f(4, 5), f(5)), 1, {"activation": "Relu", "alpha": 0.5}),
    "FusedGemm, leaky": ("FusedGemm", (f(3, 4), f(5, 4), f(5)), 1, {"activation": "LeakyRelu", "activation_alpha": 0.3, "transB": 1}),
    "FusedMatMul, batches": ("FusedMatMul", (f(5, 2, 3, 4), f(2, 3, 4, 6)), 1, {"transBatchA": 1}),
    "NhwcMaxPool": ("NhwcMaxPool", (u8(2, 6, 6, 4),), 1, POOL),
    "CDist": ("CDist", (f(4, 3), f(5, 3)), 1, {"metric": "euclidean"}),
    "CDist, squares": ("CDist", (f(4, 3), f(5, 3)), 1, {"metric": "sqeuclidean"}),
    "Inverse": ("Inverse", (f(2, 3, 3),), 1, {}),
    "Trilu": ("Trilu", (f(3, 4),), 1, {"upper": 0}),
    "GridSample": ("GridSample", (f(1, 2, 4, 5), np.clip(f(1, 3, 3, 2), -1, 1)), 1, {"mode": "bilinear"}),
    "GroupQueryAttention, smooth": (
        "GroupQueryAttention", (f(2, 5, 32), f(2, 5, 16), f(2, 5, 16), None, None, np.int32([4, 4]), np.int32(5)), 3,
        {"num_heads": 4, "kv_num_heads": 2, "smooth_softmax": 1}),
    "MaxRoiPool": (
        "MaxRoiPool", (f(2, 3, 8, 8), np.float32([[0, 1, 2, 6, 7], [1, 0, 0, 30, 9], [0, 5, 5, 2, 2]])), 1, {"pooled_shape": [3, 2], "spatial_scale": 0.5}),
    "CropAndResize": ("CropAndResize", (f(2, 3, 8, 7), np.float32([[0.1, 0.1, 0.8, 0.9], [0, 0, 1.2, 1]]), np.int32([1, 0]), np.int32([3, 4])), 1, {"extrapolation_value": 2.0}),
    "GatherND": ("GatherND", (f(3, 4), np.array([[0, 1], [2, 2]])), 1, {}),
    "MatMulBnb4, nf4": ("MatMulBnb4", (f(3, 32), u8(16 * 32 // 2), f(32) ** 2), 1, {"K": 32, "N": 16, "block_size": 16, "quant_type": 1}),
    "MatMulBnb4, fp4": ("MatMulBnb4", (f(3, 24), u8(5 * 24 // 2), f(4) ** 2), 1, {"K": 24, "N": 5, "block_size": 32, "quant_type": 0}),
    "MatMulInteger16": ("MatMulInteger16", (*(random.integers(-999, 999, dims).astype(np.int16) for dims in ((2, 3, 4), (4, 5))),), 1, {}),
    **{f"MurmurHash3, {dtype}": ("MurmurHash3", (np.array([[0, 1], [5, 100], [7, 9]], dtype),), 1, {"seed": 3, "positive": bits % 2})
       for bits, dtype in enumerate(("int32", "uint32", "int64", "float32", "float64"))},
    "MurmurHash3, texts": ("MurmurHash3", (np.array(["", "a", "hello world", "müll", "of 8 byt"], object),), 1, {"seed": 42}),
    "NGramRepeatBlock": ("NGramRepeatBlock", (np.array([[1, 2, 3, 1, 2], [4, 4, 4, 4, 4], [1, 2, 3, 4, 5]]), f(3, 6)), 1, {"ngram_size": 3}),
    "NGramRepeatBlock, words": ("NGramRepeatBlock", (np.array([[1, 2, 0]]), f(1, 6)), 1, {"ngram_size": 1}),
    "Pad": ("Pad", (f(3, 4), np.array([1, 0, 1, 2]), np.float32([4])), 1, {}),
    "Range": ("Range", (np.float32([1]), np.float32([7]), np.float32([2.5])), 1, {}),
    "UnfoldTensor": ("UnfoldTensor", (f(2, 9, 3),), 1, {"dim": 1, "size": 3, "step": 2}),
    "Unique": ("Unique", (np.float32([2, 1, 1, 3, 4, 3]),), 3, {}),
    "MoE": ("MoE", EXPERTS, 1, {"k": 2, "activation_type": "gelu", "normalize_routing_weights": 1}),
    "MoE, one": ("MoE", (f(2, 3, 8), f(6, 4), f(4, 16, 8), None, f(4, 8, 16)), 1, {"k": 1}),
    "MoE, swiglu": ("MoE", (f(6, 8), f(6, 4), f(4, 32, 8), f(4, 32), f(4, 8, 16), f(4, 8)), 1,
                    {"k": 2, "activation_type": "swiglu", "swiglu_fusion": 1, "activation_alpha": 1.702, "activation_beta": 1.0, "swiglu_limit": 1.0}),
    "QMoE": ("QMoE", (f(6, 32), f(6, 4), u8(4, 16, 32), f(4, 16) ** 2 / 99, None, u8(4, 32, 16), f(4, 32) ** 2 / 99), 1, {"k": 2, "expert_weight_bits": 8}),
    "QMoE, four bits": ("QMoE", (f(6, 32), f(6, 4), u8(4, 16, 16), f(4, 16) ** 2 / 9, None, u8(4, 32, 8), f(4, 32) ** 2 / 9), 1,
                        {"k": 2, "normalize_routing_weights": 1, "activation_type": "silu"}),
}  # fmt: skip
UNITS = {"DynamicQuantizeLSTM": 0.03}  # its state is rounded as well there


def made(case, file):
    """The operator alone in a file, and its inputs by name."""
    op, inputs, results, attributes = CASES[case]
    feeds = {f"x{i}": np.asarray(x) for i, x in enumerate(inputs) if x is not None}
    names = [f"y{i}" for i in range(results)]
    domain = "" if op == "MaxRoiPool" else "com.microsoft"
    node = helper.make_node(op, ["" if x is None else f"x{i}" for i, x in enumerate(inputs)], names, domain=domain, **attributes)
    values = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for name, x in feeds.items()]
    graph = helper.make_graph([node], "g", values, [helper.make_empty_tensor_value_info(name) for name in names])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    file.write_bytes(helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString())
    return feeds, names


@pytest.mark.parametrize("case", CASES)
def test_an_operator_equals_that_of_onnx_runtime(case, tmp_path):
    feeds, names = made(case, tmp_path / "m.onnx")
    theirs = onnxruntime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"]).run(None, feeds)
    found = cairn.load(tmp_path / "m.onnx").run(feeds)
    for name, right in zip(names, theirs, strict=True):
        unit = 1 if right.dtype.kind in "iu" else UNITS.get(CASES[case][0], 1e-5)  # halves are rounded either way
        assert found[name].dtype == right.dtype
        np.testing.assert_allclose(found[name].astype(np.float64), right, rtol=1e-4, atol=unit, err_msg=name)


def only(op, inputs, file, **attributes):
    """The result of an operator that ONNX Runtime has for other devices alone."""
    feeds = {f"x{i}": x for i, x in enumerate(inputs)}
    node = helper.make_node(op, list(feeds), ["y"], domain="com.microsoft", **attributes)
    values = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for name, x in feeds.items()]
    graph = helper.make_graph([node], "g", values, [helper.make_empty_tensor_value_info("y")])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    file.write_bytes(helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString())
    return cairn.load(file).run(feeds)["y"]


@pytest.mark.parametrize("transposed", [0, 1])
@pytest.mark.parametrize("right", [(4,), (4, 3)])
def test_linear_systems_are_solved(transposed, right, tmp_path):
    a, b = f(4, 4) + 3 * np.eye(4, dtype=np.float32), f(*right)
    found = only("Solve", (a, b), tmp_path / "m.onnx", lower=1, transposed=transposed)
    np.testing.assert_allclose(found, np.linalg.solve(a.T if transposed else a, b), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("skips", [False, True])
def test_group_norm_with_channels_last(skips, tmp_path):
    x, scale, offset, skip, bias = f(2, 5, 4, 8), f(8), f(8), f(2, 5, 4, 8), f(8)
    more = [skip, bias] if skips else []
    found = only("SkipGroupNorm" if skips else "GroupNorm", [x, scale, offset, *more], tmp_path / "m.onnx", groups=4, activation=1, epsilon=1e-3)
    parts = (x + skip + bias if skips else x).reshape(2, 20, 4, 2)
    normed = (parts - parts.mean((1, 3), keepdims=True)) / np.sqrt(parts.var((1, 3), keepdims=True) + 1e-3)
    y = normed.reshape(x.shape) * scale + offset
    np.testing.assert_allclose(found, y / (1 + np.exp(-y)), atol=1e-5)


@pytest.mark.parametrize("both", [0, 1])
def test_relative_position_bias(both, tmp_path):
    table = f(32, 4)
    found = only("RelativePositionBias", [table, np.int64(9), np.int64(40)], tmp_path / "m.onnx", max_distance=20, is_bidirectional=both)
    ranges = 16 if both else 32
    ahead = np.arange(40)[None] - np.arange(9)[:, None]
    far = np.abs(ahead) if both else np.maximum(-ahead, 0)
    grown = ranges // 2 + (np.log(np.maximum(far, 1) / (ranges // 2)) / np.log(20 / (ranges // 2)) * (ranges - ranges // 2)).astype(int)
    place = np.where(far < ranges // 2, far, np.minimum(grown, ranges - 1)) + ranges * both * (ahead > 0)
    np.testing.assert_array_equal(found, table[place].transpose(2, 0, 1)[None])


@pytest.mark.parametrize("packed", [3, 2])
def test_packed_queries_keys_and_values(packed, tmp_path):
    whole = f(2, 6, 2, packed, 4)
    inputs = [whole] if packed == 3 else [f(2, 5, 8), whole]
    found = only("MultiHeadAttention", inputs, tmp_path / "m.onnx", num_heads=2)
    q = whole[:, :, :, 0] if packed == 3 else inputs[0].reshape(2, 5, 2, 4)
    k, v = whole[:, :, :, -2], whole[:, :, :, -1]
    scores = np.einsum("bqhd,bkhd->bhqk", q, k) / 2
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    shares /= shares.sum(-1, keepdims=True)
    np.testing.assert_allclose(found, np.einsum("bhqk,bkhd->bqhd", shares, v).reshape(2, -1, 8), atol=1e-5)


@pytest.mark.parametrize("packed", [False, True], ids=["bytes", "nibbles"])
def test_rows_of_a_table_of_few_bits(packed, tmp_path):
    codes, scales, zeros = random.integers(0, 16, (7, 32), dtype=np.uint8), f(7, 2), random.integers(0, 16, (7, 2), dtype=np.uint8)
    pack = (lambda x: x[:, ::2] | x[:, 1::2] << 4) if packed else (lambda x: x)
    at = np.int64([[3, 0], [6, 6]])
    found = only("GatherBlockQuantized", [pack(codes), at, scales, pack(zeros)], tmp_path / "m.onnx", block_size=16, bits=4 if packed else 8,
                 gather_axis=0, quantize_axis=1)  # fmt: skip
    table = (codes.astype(np.float32) - zeros.repeat(16, 1)) * scales.repeat(16, 1)
    np.testing.assert_allclose(found, table[at], rtol=1e-6)
