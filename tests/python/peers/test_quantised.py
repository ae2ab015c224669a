"""Quantised ONNX models run on integers and give what ONNX Runtime gives, within one unit of the result's scale. Runs in
.venv-peers; every kind of model also with less of the processor (CAIRN_ISA)."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

ISAS = ("", "avx512", "avx2_vnni", "avx2")


class Graph:
    """A model under construction: constants, nodes and one input x."""

    def __init__(self, seed=7):
        self.random = np.random.default_rng(seed)
        self.nodes, self.constants = [], []

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def add(self, op, *inputs, outputs=1, **attributes):
        names = [f"n{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def quantised(self, x, scale, zero):
        """x through QuantizeLinear and DequantizeLinear."""
        by = self.constant(np.float32(scale)), self.constant(zero)
        return self.add("DequantizeLinear", self.add("QuantizeLinear", x, *by), *by)

    def weights(self, *dims, axis=0, dtype=np.int8, zero=0, each=True):
        """Integers of 8 bits, dequantised by a scale of each index along the axis."""
        low, high = (0, 256) if dtype == np.uint8 else (-127, 128)
        values = self.random.integers(low, high, dims).astype(dtype)
        count = (dims[axis],) if each else ()
        scale = self.random.uniform(0.5, 1.5, count).astype(np.float32) / np.float32(70 * np.sqrt(np.prod(dims) / dims[axis]))
        zeros = np.full(count, zero, dtype)
        more = {"axis": axis} if each else {}
        return self.add("DequantizeLinear", self.constant(values), self.constant(scale), self.constant(zeros), **more)

    def bias(self, channels):
        return self.constant(self.random.normal(size=channels).astype(np.float32) * np.float32(0.3))

    def save(self, path, x, y, y_type=TensorProto.FLOAT, x_type=TensorProto.FLOAT):
        graph = helper.make_graph(
            self.nodes,
            "graph",
            [helper.make_tensor_value_info("x", x_type, x)],
            [helper.make_tensor_value_info(y, y_type, None)],
            self.constants,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)], ir_version=8)
        Path(path).write_bytes(model.SerializeToString())


U8 = np.uint8
IN, OUT = (0.02, U8(117)), (0.03, U8(121))


def convolution(path, relu=True, channels=19, filters=37, group=1, kernel=3, stride=1, zero=U8(117), dtype=np.int8, w_zero=0):
    g = Graph()
    x = g.quantised("x", 0.02, zero)
    w = g.weights(filters, channels // group, kernel, kernel, dtype=dtype, zero=w_zero)
    pads = [kernel // 2] * 4
    y = g.add("Conv", x, w, g.bias(filters), pads=pads, strides=[stride, stride], group=group)
    y = g.quantised(g.add("Relu", y), 0.02, U8(0)) if relu else g.quantised(y, *OUT)
    g.save(path, [2, channels, 13, 11], y)


def residual(path):
    """Two convolutions added, with a rounding before the addition, pooled."""
    g = Graph()
    x = g.quantised("x", *IN)
    a = g.quantised(g.add("Conv", x, g.weights(24, 16, 1, 1), g.bias(24)), 0.03, U8(120))
    b = g.quantised(g.add("Conv", x, g.weights(24, 16, 3, 3), g.bias(24), pads=[1] * 4), 0.025, U8(131))
    y = g.quantised(g.add("Relu", g.add("Add", b, a)), *(0.02, U8(0)))
    y = g.quantised(g.add("MaxPool", y, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4), 0.02, U8(0))
    y = g.quantised(g.add("Conv", y, g.weights(40, 24, 3, 3), g.bias(40), strides=[2, 2], pads=[1] * 4), *OUT)
    g.save(path, [1, 16, 14, 15], y)


def products(path):
    """Two layers on sequences, and a product of two activations."""
    g = Graph()
    x = g.quantised("x", *IN)
    w = g.weights(33, 65, axis=1)
    q = g.quantised(g.add("Add", g.add("MatMul", x, w), g.bias(65)), *OUT)
    k = g.quantised(g.add("MatMul", x, g.weights(33, 65, axis=1, each=False)), *OUT)
    scores = g.add("MatMul", q, g.add("Transpose", k, perm=[0, 2, 1]))
    g.save(path, [3, 9, 33], g.quantised(scores, 0.2, U8(128)))


def dynamic(path):
    g = Graph()
    x, scale, zero = g.add("DynamicQuantizeLinear", "x", outputs=3)
    w = g.constant(g.random.integers(-127, 128, (40, 24)).astype(np.int8))
    sums = g.add("Cast", g.add("MatMulInteger", x, w, zero), to=TensorProto.FLOAT)
    factor = g.add("Mul", scale, g.constant(np.float32(0.01)))
    g.save(path, [5, 40], g.add("Add", g.add("Mul", sums, factor), g.bias(24)))


def in_operators(path):
    """QLinearConv and QLinearMatMul."""
    g = Graph()
    by = g.constant(np.float32(0.02)), g.constant(U8(117))
    x = g.add("QuantizeLinear", "x", *by)
    w, w_scale = g.random.integers(-127, 128, (12, 5, 3, 3)).astype(np.int8), np.linspace(0.001, 0.003, 12, dtype=np.float32)
    bias = g.random.integers(-9000, 9000, 12).astype(np.int32)
    inputs = [g.constant(each) for each in (w, w_scale, np.zeros(12, np.int8), np.float32(0.03), U8(121), bias)]
    y = g.add("QLinearConv", x, *by, *inputs, pads=[1] * 4)
    right = [g.constant(g.random.integers(0, 256, (7, 10)).astype(U8)), g.constant(np.float32(0.004)), g.constant(U8(131))]
    out = g.constant(np.float32(0.05)), g.constant(U8(120))
    y = g.add("QLinearMatMul", y, g.constant(np.float32(0.03)), g.constant(U8(121)), *right, *out)
    g.save(path, [1, 5, 6, 7], g.add("DequantizeLinear", y, *out))


def integers(path):
    g = Graph()
    x = g.add("QuantizeLinear", "x", g.constant(np.float32(0.02)), g.constant(U8(117)))
    w = g.constant(g.random.integers(-127, 128, (6, 5, 3, 3)).astype(np.int8))
    g.save(path, [1, 5, 6, 7], g.add("ConvInteger", x, w, g.constant(U8(117)), pads=[1] * 4), y_type=TensorProto.INT32)


def few_bits(path, bits=4, block=32, zeros=None, rows=3):
    """MatMulNBits: `zeros` are none, packed or floats."""
    g, k, n = Graph(), 200, 72
    blocks = -(-k // block)
    inputs = ["x", g.constant(g.random.integers(0, 256, (n, blocks, block * bits // 8)).astype(U8))]
    inputs.append(g.constant(g.random.uniform(0.01, 0.02, n * blocks).astype(np.float32)))
    if zeros == "packed":
        inputs.append(g.constant(g.random.integers(0, 256, n * -(-blocks * bits // 8)).astype(U8)))
    elif zeros == "floats":
        inputs.append(g.constant(g.random.uniform(6, 10, (n, blocks)).astype(np.float32)))
    g.save(path, [rows, k], g.add("MatMulNBits", *inputs, K=k, N=n, bits=bits, block_size=block, domain="com.microsoft"))


def weights_alone(path, rows=3, dtype=np.int8, zero=0):
    g = Graph()
    y = g.add("MatMul", "x", g.weights(65, 256, axis=1, dtype=dtype, zero=zero))
    g.save(path, [rows, 65], g.add("Add", y, g.bias(256)))


STORED = {
    "few_bits": (few_bits, {}, 1e-4),
    "few_bits_of_many_rows": (few_bits, {"rows": 70, "block": 64}, 1e-4),
    "few_bits_with_zeros": (few_bits, {"zeros": "packed", "block": 16}, 1e-4),
    "few_bits_with_zeros_of_floats": (few_bits, {"zeros": "floats", "block": 128}, 1e-4),
    "few_bits_8": (few_bits, {"bits": 8, "zeros": "packed"}, 5e-4),
    "weights_alone": (weights_alone, {}, 1e-5),
    "weights_alone_of_many_rows": (weights_alone, {"rows": 70}, 1e-5),
    "weights_alone_unsigned": (weights_alone, {"dtype": np.uint8, "zero": 130}, 1e-5),
}
CASES = {
    **STORED,
    "convolution": (convolution, {}, 0.02),
    "convolution_of_aligned_channels": (convolution, {"channels": 64, "filters": 64}, 0.02),
    "convolution_1x1": (convolution, {"channels": 64, "filters": 72, "kernel": 1, "relu": False}, 0.03),
    "convolution_of_images": (convolution, {"channels": 3, "filters": 64, "kernel": 7, "stride": 2}, 0.02),
    "convolution_of_unsigned_weights": (convolution, {"dtype": np.uint8, "w_zero": 130}, 0.02),
    "convolution_of_signed": (convolution, {"zero": np.int8(-11), "relu": False}, 0.03),
    "depthwise": (convolution, {"channels": 70, "filters": 70, "group": 70}, 0.02),
    "depthwise_with_stride": (convolution, {"channels": 70, "filters": 70, "group": 70, "stride": 2, "relu": False}, 0.03),
    "depthwise_of_signed": (convolution, {"channels": 24, "filters": 24, "group": 24, "zero": np.int8(-11)}, 0.02),
    "in_groups": (convolution, {"channels": 24, "filters": 36, "group": 3}, 0.02),
    "residual": (residual, {}, 0.03, 0.2),  # what one layer rounds otherwise moves some results of the next
    "products": (products, {}, 0.2, 0.05),
    "dynamic": (dynamic, {}, 1e-4),
    "in_operators": (in_operators, {}, 0.05),
    "integers": (integers, {}, 0),
}


def run(path):
    """What Cairn gives, in this process: CAIRN_ISA is read once."""
    import cairn

    model = cairn.load(path)
    dims = model.inputs[0].shape
    x = np.random.default_rng(11).normal(size=dims).astype(np.float32)
    return x, next(iter(model.run({"x": x}).values()))


@pytest.mark.parametrize("isa", ISAS)
def test_equals_onnx_runtime_within_a_unit(tmp_path, isa):
    import onnxruntime

    for name, (make, options, *_) in CASES.items():
        make(tmp_path / f"{name}.onnx", **options)
    environment = {**os.environ, "CAIRN_ISA": isa}
    subprocess.run([sys.executable, __file__, tmp_path], env=environment, check=True)
    settings = onnxruntime.SessionOptions()
    settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    problems = []
    for name, (_, _, unit, *share) in CASES.items():
        path = str(tmp_path / f"{name}.onnx")
        x, found = np.load(tmp_path / f"{name}.x.npy"), np.load(tmp_path / f"{name}.y.npy")
        expected = onnxruntime.InferenceSession(path, settings, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
        assert np.ptp(expected) > 0
        difference = np.abs(found.astype(np.float64) - expected)
        if found.shape != expected.shape or difference.max() > unit * 1.001 or (difference > unit * 0.5).mean() > (share or [0.01])[0]:
            problems.append(f"{name}: {difference.max()} of unit {unit}, {(difference > unit * 0.5).mean():.3f} of the elements")
    assert not problems, problems


@pytest.mark.parametrize("name", sorted(set(CASES) - set(STORED) - {"in_groups"}))
def test_runs_on_integers(command, tmp_path, name):
    make, options, *_ = CASES[name]
    make(tmp_path / "model.onnx", **options)
    answer = command("cairn", "why", "model.onnx")
    assert answer.returncode == 0, answer.stderr
    chosen = "".join(line for line in answer.stdout.splitlines(True) if not line.startswith("  not "))
    assert "cpu/integer_" in chosen
    assert "reference/" not in chosen and "cpu/tile" not in chosen and "cpu/depthwise" not in chosen, chosen


def test_maxima_of_words_have_a_kernel(command, tmp_path):
    g = Graph()
    y = g.add("MaxPool", g.quantised("x", 1e-4, np.uint16(30000)), kernel_shape=[2, 2], strides=[2, 2])
    g.save(tmp_path / "model.onnx", [1, 3, 8, 8], g.quantised(y, 1e-4, np.uint16(30000)))
    model = onnx.load(tmp_path / "model.onnx")
    model.opset_import[0].version, model.ir_version = 21, 10
    onnx.save(model, tmp_path / "model.onnx")
    answer = command("cairn", "why", "model.onnx")
    assert answer.returncode == 0, answer.stderr
    chosen = "".join(line for line in answer.stdout.splitlines(True) if not line.startswith("  not "))
    assert "cpu/max_pool" in chosen and "reference/" not in chosen, chosen


@pytest.mark.parametrize("name", sorted(STORED))
def test_weights_stay_as_small(command, tmp_path, name):
    make, options, *_ = CASES[name]
    make(tmp_path / "model.onnx", **options)
    answer = command("cairn", "why", "model.onnx")
    assert answer.returncode == 0, answer.stderr
    chosen = "".join(line for line in answer.stdout.splitlines(True) if not line.startswith("  not "))
    assert "cpu/tile" in chosen and f"weights of {4 if options.get('bits', 4) == 4 and 'few' in name else 8} bits" in chosen


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for file in folder.glob("*.onnx"):
        given, made = run(str(file))
        np.save(folder / f"{file.stem}.x.npy", given)
        np.save(folder / f"{file.stem}.y.npy", made)
