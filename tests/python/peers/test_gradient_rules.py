"""Gradients of single ONNX operators, and of operators of the core that ONNX lacks, equal torch's. Runs in .venv-peers."""

import numpy as np
import onnx
import pytest
import torch
import torch.nn.functional as F
from onnx import TensorProto, helper, numpy_helper

import cairn

OPSET = 20
random = np.random.default_rng(5)


def floats(*shape, low=None, high=None):
    """Away from 0, or in a range."""
    if low is not None:
        return random.uniform(low, high, shape).astype(np.float32)
    return (random.choice([-1, 1], shape) * random.uniform(0.3, 3, shape)).astype(np.float32)


def ints(*values):
    return np.array(values, np.int64)


class Case:
    """An operator on float inputs that are differentiated by and on constants (other types, and those named), and torch's
    function of both. None stands for an input that is left out."""

    def __init__(self, op, inputs, function, *, outputs=1, constants=(), **attributes):
        self.op, self.inputs, self.function = op, inputs, function
        self.outputs, self.constants, self.attributes = outputs, constants, attributes

    def is_wanted(self, i):
        return self.inputs[i] is not None and self.inputs[i].dtype == np.float32 and i not in self.constants

    def wanted(self):
        return {f"x{i}": x for i, x in enumerate(self.inputs) if self.is_wanted(i)}

    def torch(self, weight=None):
        tensors = [None if x is None else torch.tensor(x, requires_grad=self.is_wanted(i)) for i, x in enumerate(self.inputs)]
        y = self.function(*tensors)
        if weight is None:
            return y.detach().numpy()
        (y * torch.tensor(weight)).sum().backward()
        return {f"x{i}": x.grad.numpy() for i, x in enumerate(tensors) if x is not None and x.requires_grad}

    def model(self, weight):
        names = ["" if x is None else f"x{i}" for i, x in enumerate(self.inputs)]
        wanted = self.wanted()
        constants = [numpy_helper.from_array(x, name) for name, x in zip(names, self.inputs) if name and name not in wanted]
        constants.append(numpy_helper.from_array(weight, "weight"))
        nodes = [
            helper.make_node(self.op, names, ["y"] + [f"more{i}" for i in range(1, self.outputs)], **self.attributes),
            helper.make_node("Mul", ["y", "weight"], ["weighted"]),
            helper.make_node("ReduceSum", ["weighted"], ["loss"], keepdims=0),
        ]
        inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, x.shape) for name, x in wanted.items()]
        loss = helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])
        graph = helper.make_graph(nodes, self.op, inputs, [loss], constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])


def unary(op, function, low=None, high=None, **attributes):
    return Case(op, [floats(3, 7, low=low, high=high)], function, **attributes)


def reduction(op, function, axes=(1,), **options):
    return Case(op, [floats(3, 5, 4), ints(*axes)], lambda x, axes: function(x, tuple(axes.tolist())), **options)


def image(*shape):
    return floats(*shape)


def padded(mode, torch_mode):
    return Case("Pad", [image(1, 2, 5, 6), ints(0, 0, 1, 2, 0, 0, 3, 1)],
                lambda x, pads: F.pad(x, (2, 1, 1, 3), torch_mode), mode=mode)  # fmt: skip


def resized(mode, torch_mode, scale=(1, 1, 2, 2), **attributes):
    options = {} if torch_mode == "nearest" else {"align_corners": attributes.get("coordinate_transformation_mode") == "align_corners"}
    return Case("Resize", [image(1, 2, 4, 5), None, np.array(scale, np.float32)],
                lambda x, roi, scales: F.interpolate(x, scale_factor=tuple(scale[2:]), mode=torch_mode, **options),
                constants=(2,), mode=mode, **attributes)  # fmt: skip


ELEMENTWISE = [
    *(unary(op, getattr(torch, op.lower())) for op in ("Abs", "Exp", "Sigmoid", "Tanh", "Erf", "Sin", "Cos", "Neg")),
    *(unary(op, getattr(torch, op.lower())) for op in ("Sinh", "Cosh", "Atan", "Asinh", "Sign", "Floor", "Ceil", "Round")),
    *(unary(op, getattr(torch, op.lower()), 0.3, 3) for op in ("Log", "Sqrt", "Reciprocal")),
    *(unary(op, getattr(torch, op.lower()), -0.8, 0.8) for op in ("Asin", "Acos", "Atanh", "Tan")),
    unary("Acosh", torch.acosh, 1.2, 3),
    *(unary(op, getattr(F, op.lower())) for op in ("Relu", "Elu", "Selu", "Softplus", "Softsign", "Mish", "Gelu")),
    unary("Gelu", lambda x: F.gelu(x, approximate="tanh"), approximate="tanh"),
    unary("LeakyRelu", lambda x: F.leaky_relu(x, 0.1), alpha=0.1),
    unary("HardSigmoid", F.hardsigmoid, alpha=1 / 6, beta=0.5),
    unary("HardSwish", F.hardswish),
    unary("Celu", F.celu),
    unary("ThresholdedRelu", lambda x: F.threshold(x, 1, 0), alpha=1.0),
    Case("Clip", [floats(4, 5), np.float32(-1), np.float32(1.5)], torch.clamp, constants=(1, 2)),
    Case("PRelu", [floats(2, 3, 4), floats(3, 1, low=0.1, high=0.4)], lambda x, slope: torch.where(x > 0, x, x * slope)),
    *(Case(op, [floats(3, 1, 4), floats(5, 4)], function) for op, function in
      {"Add": torch.add, "Sub": torch.sub, "Mul": torch.mul, "Div": torch.div, "Max": torch.maximum, "Min": torch.minimum}.items()),
    Case("Pow", [floats(3, 4, low=0.3, high=3), floats(4)], torch.pow),
    Case("Mod", [floats(3, 4), floats(4)], torch.fmod, fmod=1),
    Case("Where", [random.random((3, 4)) < 0.5, floats(3, 4), floats(4)], torch.where),
]  # fmt: skip

REDUCTIONS = [
    reduction("ReduceSum", lambda x, axes: x.sum(axes, keepdim=True)),
    reduction("ReduceMean", torch.mean, (0, 2), keepdims=0),
    reduction("ReduceMax", lambda x, axes: x.amax(axes, keepdim=True)),
    reduction("ReduceMin", torch.amin, (-1,), keepdims=0),
    reduction("ReduceProd", lambda x, axes: x.prod(axes[0], keepdim=True)),
    reduction("ReduceL1", lambda x, axes: x.abs().sum(axes, keepdim=True)),
    reduction("ReduceL2", lambda x, axes: x.square().sum(axes, keepdim=True).sqrt()),
    reduction("ReduceLogSumExp", lambda x, axes: x.logsumexp(axes, keepdim=True)),
    reduction("ReduceSumSquare", lambda x, axes: x.square().sum(axes, keepdim=True)),
    Case("CumSum", [floats(3, 5), np.array(1)], lambda x, axis: x.cumsum(1)),
    Case("TopK", [floats(3, 8), ints(3)], lambda x, k: x.topk(3).values, outputs=2),
    unary("Softmax", lambda x: F.softmax(x, -1)),
    unary("LogSoftmax", lambda x: F.log_softmax(x, -1)),
]
LAYERS = [
    Case("MatMul", [floats(2, 1, 4, 5), floats(3, 5, 2)], torch.matmul),
    Case("MatMul", [floats(6, 3, 4), floats(4, 2)], torch.matmul),
    Case("Gemm", [floats(5, 3), floats(4, 5), floats(4)], lambda a, b, c: 0.5 * a.T @ b.T + 2 * c,
         transA=1, transB=1, alpha=0.5, beta=2.0),
    Case("Einsum", [floats(2, 3, 4), floats(2, 4, 5)], lambda a, b: torch.einsum("bij,bjk->bik", a, b), equation="bij,bjk->bik"),
    Case("Conv", [image(2, 3, 8, 9), floats(4, 3, 3, 3), floats(4)],
         lambda x, w, b: F.conv2d(x, w, b, stride=2, padding=1), strides=[2, 2], pads=[1, 1, 1, 1]),
    Case("Conv", [image(1, 4, 7, 7), floats(8, 1, 3, 3), floats(8)],
         lambda x, w, b: F.conv2d(x, w, b, dilation=2, groups=4), dilations=[2, 2], group=4),
    Case("Conv", [floats(2, 3, 11), floats(4, 3, 3)], F.conv1d),
    Case("ConvTranspose", [image(1, 3, 4, 5), floats(3, 2, 3, 3)],
         lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1), strides=[2, 2], pads=[1, 1, 1, 1]),
    Case("MaxPool", [image(2, 3, 7, 8)], lambda x: F.max_pool2d(x, 3, 2, 1), kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4),
    Case("AveragePool", [image(2, 3, 7, 8)], lambda x: F.avg_pool2d(x, 3, 2, 1),
         kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4, count_include_pad=1),
    Case("Conv", [image(2, 3, 4, 6, 5), floats(4, 3, 2, 3, 3), floats(4)],
         lambda x, w, b: F.conv3d(x, w, b, stride=(1, 2, 1), padding=(1, 0, 1)), strides=[1, 2, 1], pads=[1, 0, 1, 1, 0, 1]),
    Case("ConvTranspose", [image(1, 3, 3, 4, 5), floats(3, 2, 2, 3, 3)],
         lambda x, w: F.conv_transpose3d(x, w, stride=2, padding=1), strides=[2, 2, 2], pads=[1] * 6),
    Case("MaxPool", [image(2, 3, 5, 7, 8)], lambda x: F.max_pool3d(x, 3, 2, 1), kernel_shape=[3] * 3, strides=[2] * 3, pads=[1] * 6),
    Case("AveragePool", [image(2, 3, 5, 7, 8)], lambda x: F.avg_pool3d(x, 3, 2, 1),
         kernel_shape=[3] * 3, strides=[2] * 3, pads=[1] * 6, count_include_pad=1),
    Case("GlobalAveragePool", [image(2, 3, 5, 6)], lambda x: x.mean((2, 3), keepdim=True)),
    Case("GlobalMaxPool", [image(2, 3, 5, 6)], lambda x: x.amax((2, 3), keepdim=True)),
    Case("BatchNormalization", [image(4, 3, 5, 5), floats(3), floats(3), floats(3), floats(3, low=0.5, high=2)],
         lambda x, scale, bias, mean, var: (x - mean[:, None, None]) / (var[:, None, None] + 1e-3).sqrt()
         * scale[:, None, None] + bias[:, None, None], epsilon=1e-3),
    Case("LayerNormalization", [floats(3, 4, 5), floats(5), floats(5)],
         lambda x, scale, bias: F.layer_norm(x, (5,), scale, bias, 1e-3), epsilon=1e-3),
    Case("InstanceNormalization", [image(2, 3, 5, 6), floats(3), floats(3)],
         lambda x, scale, bias: F.instance_norm(x, weight=scale, bias=bias, eps=1e-3), epsilon=1e-3),
    Case("GroupNormalization", [image(2, 6, 3, 4), floats(3), floats(3)],
         lambda x, scale, bias: F.group_norm(x, 3, eps=1e-3) * scale.repeat_interleave(2)[:, None, None]
         + bias.repeat_interleave(2)[:, None, None], num_groups=3, epsilon=1e-3),
    Case("LpNormalization", [floats(3, 5)], lambda x: F.normalize(x, dim=1), axis=1),
    Case("GridSample", [image(1, 2, 5, 6), floats(1, 3, 4, 2, low=-0.9, high=0.9)],
         lambda x, grid: F.grid_sample(x, grid, align_corners=False), mode="linear"),
    Case("LRN", [image(2, 6, 3, 4)], lambda x: F.local_response_norm(x, 3, 0.1, 0.75, 1.0), size=3, alpha=0.1, beta=0.75, bias=1.0),
    Case("Det", [floats(2, 3, 3) + 3 * np.eye(3, dtype=np.float32)], torch.linalg.det),
]  # fmt: skip

MOVES = [
    Case("Gather", [floats(5, 3), ints(4, 0, 4, -1)], lambda x, i: x[i]),
    Case("Gather", [floats(3, 5, 2), np.array([[0, 4], [1, 1]])], lambda x, i: x[:, i], axis=1),
    Case("GatherElements", [floats(3, 4), random.integers(0, 3, (2, 4))], lambda x, i: x.gather(0, i), axis=0),
    Case("GatherND", [floats(3, 4, 2), np.array([[0, 1], [2, 3], [0, 1]])], lambda x, i: x[i[:, 0], i[:, 1]]),
    Case("ScatterND", [floats(6, 2), np.array([[1], [4]]), floats(2, 2)],
         lambda x, i, updates: x.index_put((i[:, 0],), updates)),
    Case("ScatterND", [floats(6, 2), np.array([[1], [4], [1]]), floats(3, 2)],
         lambda x, i, updates: x.index_put((i[:, 0],), updates, accumulate=True), reduction="add"),
    Case("ScatterElements", [floats(4, 3), np.array([[1, 0, 2], [3, 3, 0]]), floats(2, 3)],
         lambda x, i, updates: x.scatter(0, i, updates), axis=0),
    Case("Slice", [floats(7, 6), ints(1, -1), ints(6, -7), ints(0, 1), ints(2, -1)], lambda x, *_: x[1:6:2].flip(1)),
    Case("Slice", [floats(7, 6), ints(2), ints(5), ints(0)], lambda x, *_: x[2:5]),
    padded("constant", "constant"), padded("reflect", "reflect"), padded("edge", "replicate"),
    Case("Concat", [floats(2, 3), floats(2, 1), floats(2, 4)], lambda *x: torch.cat(x, 1), axis=1),
    Case("Split", [floats(2, 7), ints(3, 4)], lambda x, sizes: x[:, :3], axis=1, outputs=2),
    Case("Tile", [floats(2, 3), ints(2, 3)], lambda x, times: x.repeat(2, 3)),
    Case("Expand", [floats(3, 1), ints(2, 3, 4)], lambda x, shape: x.expand(2, 3, 4)),
    Case("Transpose", [floats(2, 3, 4)], lambda x: x.permute(2, 0, 1), perm=[2, 0, 1]),
    Case("Reshape", [floats(2, 6), ints(3, -1)], lambda x, shape: x.reshape(3, 4)),
    Case("Trilu", [floats(4, 4)], torch.tril, upper=0),
    Case("DepthToSpace", [image(1, 8, 2, 3)], lambda x: F.pixel_shuffle(x, 2), blocksize=2, mode="CRD"),
    resized("nearest", "nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
    resized("linear", "bilinear"),
    resized("linear", "bilinear", coordinate_transformation_mode="align_corners"),
    resized("cubic", "bicubic"),
]  # fmt: skip

CASES = ELEMENTWISE + REDUCTIONS + LAYERS + MOVES


@pytest.mark.parametrize("number", range(len(CASES)), ids=[f"{i}-{case.op}" for i, case in enumerate(CASES)])
def test_the_gradient_of_an_operator_equals_torchs(number, tmp_path):
    case = CASES[number]
    weight = np.random.default_rng(number).uniform(0.5, 1.5, case.torch().shape).astype(np.float32)
    path = tmp_path / "model.onnx"
    onnx.save(case.model(weight), path)
    wanted = case.wanted()
    found, expected = cairn.grad(path, list(wanted))(wanted), case.torch(weight)
    for name, x in wanted.items():
        assert found[name].shape == x.shape and found[name].dtype == np.float32
        largest = max(1e-3, np.abs(expected[name]).max())
        np.testing.assert_allclose(found[name], expected[name], rtol=0, atol=1e-4 * largest, err_msg=name)


class Row:
    """An operator of the core in its text form, on float inputs that are differentiated by and on constants, and torch's
    function of both, which returns the first of so many results."""

    def __init__(self, op, inputs, function, attributes="", results=1):
        self.op, self.inputs, self.function, self.attributes, self.results = op, inputs, function, attributes, results

    def wanted(self):
        return {f"x{i}": x for i, x in enumerate(self.inputs) if x.dtype.kind == "f"}

    def torch(self, wanted=()):
        tensors = [torch.tensor(x, requires_grad=x.dtype.kind == "f") for x in self.inputs]
        results = self.function(*tensors)
        results = results if isinstance(results, tuple) else (results,)
        if not wanted:
            return [y.detach().numpy() for y in results]
        torch.autograd.backward([y for y in results if y.requires_grad], [torch.tensor(dy) for dy in wanted])
        return {f"x{i}": x.grad.numpy() for i, x in enumerate(tensors) if x.requires_grad}

    def text(self):
        wanted, outputs = self.wanted(), self.torch()
        params = ", ".join(f"%{name}: {type_of(x)}" for name, x in wanted.items())
        constants = [f"%x{i} = constant {{value = {type_of(x)} ({', '.join(map(str, x.ravel()))})}} : {type_of(x)}"
                     for i, x in enumerate(self.inputs) if f"x{i}" not in wanted]  # fmt: skip
        results = ", ".join(f"%y{i}: {type_of(y)}" for i, y in enumerate(outputs))
        made = ", ".join(f"%y{i}" for i in range(self.results))
        operands = ", ".join(f"%x{i}" for i in range(len(self.inputs)))
        attributes = f" {{{self.attributes}}}" if self.attributes else ""
        lines = [*constants, f"{made} = {self.op} {operands}{attributes}",
                 "return " + ", ".join(f"%y{i}" for i in range(len(outputs)))]  # fmt: skip
        body = "".join(f"    {line}\n" for line in lines)
        return f"module @row {{\n  func @main({params}) -> ({results}) {{\n{body}  }}\n}}\n"


def type_of(x):
    return f"{ {'f': 'f', 'i': 'i'}[x.dtype.kind]}{8 * x.dtype.itemsize}{list(x.shape)}"


def wide(*shape, low=None, high=None):
    return floats(*shape, low=low, high=high).astype(np.float64)


def positive(n):
    a = wide(2, n, n)
    return a @ a.swapaxes(1, 2) + n * np.eye(n)


def regular(n):
    return wide(2, n, n) + 3 * np.eye(n)


def pairs(z):
    return torch.view_as_real(z)


def solve_triangle(a, b):
    return torch.linalg.solve_triangular(a.tril(), b, upper=False)


def entropy(logits, labels):
    return F.cross_entropy(logits, labels, reduction="none")


def ctc(logits, places, labels, lengths):
    targets = torch.tensor([[0, 2], [1, 0]])
    return F.ctc_loss(logits.log_softmax(-1), targets, lengths, torch.tensor([2, 1]), blank=3, reduction="none")


def segments(mode):
    segments = torch.tensor([1, 0, 1, 3, 0])
    return lambda x, *_: torch.zeros(4, 3, dtype=x.dtype).index_reduce(0, segments, x, mode, include_self=False)


def updated(mode):
    return lambda x, i, updates: x.index_reduce(0, i, updates, mode, include_self=True)


special = torch.special
ROWS = [
    Row("cholesky", [positive(3)], torch.linalg.cholesky),
    Row("matrix_inverse", [regular(3)], torch.linalg.inv),
    Row("matrix_solve", [regular(3), wide(2, 3, 2)], torch.linalg.solve),
    Row("matrix_solve", [regular(3), wide(2, 3, 2)], lambda a, b: torch.linalg.solve(a.mT, b), "adjoint = true"),
    Row("triangular_solve", [regular(3), wide(2, 3, 2)], solve_triangle),
    Row("determinant", [regular(3)], torch.linalg.det),
    Row("log_determinant", [regular(3)], lambda x: tuple(torch.linalg.slogdet(x)), results=2),
    Row("qr", [wide(2, 4, 3)], lambda x: tuple(torch.linalg.qr(x)), results=2),
    Row("qr", [wide(2, 3, 5)], lambda x: tuple(torch.linalg.qr(x)), results=2),
    Row("dft", [wide(3, 6, 2)], lambda x: pairs(torch.fft.fft(torch.view_as_complex(x))), "axis = 1"),
    Row("dft", [wide(7, 3, 2)], lambda x: pairs(torch.fft.ifft(torch.view_as_complex(x), dim=0)), "axis = 0, inverse = true"),
    Row("real_dft", [wide(2, 7), np.array(9)], lambda x, n: pairs(torch.fft.rfft(x, 9))),
    Row("inverse_real_dft", [wide(2, 5, 2), np.array(8)], lambda x, n: torch.fft.irfft(torch.view_as_complex(x), 8)),
    Row("softmax_cross_entropy", [wide(4, 5), wide(4, 5)], entropy, results=2),
    Row("sparse_softmax_cross_entropy", [wide(4, 5), ints(0, 4, 2, 2)], entropy, results=2),
    Row("ctc_loss", [wide(5, 2, 4), np.array([[0, 0], [0, 1], [1, 0]]), ints(0, 2, 1), ints(5, 4)], ctc, results=2),
    *(Row("segment_reduce", [wide(5, 3), ints(1, 0, 1, 3, 0), np.array(4)], segments(mode), f"mode = {ours}, empty_is_zero = true")
      for ours, mode in {"mean": "mean", "prod": "prod", "max": "amax", "min": "amin"}.items()),
    *(Row("scatter_reduce", [wide(5, 3), ints(1, 3, 1), wide(3, 3)], updated(mode), f"mode = {ours}")
      for ours, mode in {"mul": "prod", "max": "amax", "min": "amin"}.items()),
    Row("cumsum", [wide(3, 5)], lambda x: x.flip(1).cumsum(1).flip(1), "axis = 1, reverse = true"),
    Row("log_gamma", [wide(7, low=0.3, high=4)], torch.lgamma),
    Row("digamma", [wide(7, low=0.3, high=4)], torch.digamma),
    Row("erf_inverse", [wide(7, low=-0.9, high=0.9)], torch.erfinv),
    Row("normal_quantile", [wide(7, low=0.1, high=0.9)], special.ndtri),
    Row("bessel_i0e", [wide(7)], special.i0e),
    Row("bessel_i1e", [wide(7)], special.i1e),
    Row("batch_norm_training", [wide(4, 5, 3), wide(3), wide(3)],
        lambda x, scale, bias: F.batch_norm(x.mT, None, None, scale, bias, True, 0, 1e-3).mT, "epsilon = 0.001", results=3),
    Row("self_adjoint_eig", [positive(3)], lambda x: torch.linalg.eigvalsh(x), results=2),
    Row("svd", [wide(2, 4, 3)], lambda x: torch.linalg.svdvals(x), results=3),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(ROWS)), ids=[f"{i}-{row.op}" for i, row in enumerate(ROWS)])
def test_the_gradient_of_a_row_equals_torchs(number, tmp_path):
    row = ROWS[number]
    path = tmp_path / "row.txt"
    path.write_text(row.text())
    outputs = row.torch()
    flows = [np.random.default_rng(number + i).uniform(0.5, 1.5, y.shape) for i, y in enumerate(outputs)]
    wanted = row.wanted()
    results, found = cairn.vjp(path, list(wanted))(wanted, {f"y{i}": dy for i, dy in enumerate(flows)})
    expected = row.torch(flows)
    for name, x in wanted.items():
        assert found[name].shape == x.shape and found[name].dtype == np.float64
        largest = max(1e-3, np.abs(expected[name]).max())
        np.testing.assert_allclose(found[name], expected[name], rtol=0, atol=1e-8 * largest, err_msg=name)
