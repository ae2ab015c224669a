"""Tensors of complex64 and complex128: arithmetic, functions, moves of elements and gradients, against NumPy."""
import numpy as np
import pytest
import mindspore as ms
import mindspore.nn as nn
from mindspore import Tensor, context, ops
from mindspore.ops import functional as F
from mindspore.ops import operations as P
from mindspore.ops.operations import _grad_ops as G

context.set_context(mode=context.GRAPH_MODE, device_target='CPU')
rs = np.random.RandomState(3)
MODES = [context.GRAPH_MODE, context.PYNATIVE_MODE]
TYPES = [np.complex64, np.complex128]


class Net(nn.Cell):
    def __init__(self, op, *constants):
        super().__init__()
        self.op = op
        self.constants = constants

    def construct(self, *inputs):
        return self.op(*inputs, *self.constants)


def numbers(dtype, *shape):
    return (rs.randn(*shape) + 1j * rs.randn(*shape)).astype(dtype)


def same(out, expect, dtype):
    assert out.asnumpy().dtype == np.asarray(expect).dtype
    np.testing.assert_allclose(out.asnumpy(), expect, rtol=2e-5 if dtype == np.complex64 else 1e-10, atol=1e-6)


@pytest.mark.level0
@pytest.mark.platform_x86_cpu
@pytest.mark.env_onecard
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name,f", [("Exp", np.exp), ("Log", np.log), ("Sqrt", np.sqrt), ("Square", np.square), ("Sin", np.sin),
                                    ("Cos", np.cos), ("Tan", np.tan), ("Asin", np.arcsin), ("ACos", np.arccos), ("Atan", np.arctan),
                                    ("Sinh", np.sinh), ("Cosh", np.cosh), ("Tanh", np.tanh), ("Asinh", np.arcsinh), ("Acosh", np.arccosh),
                                    ("Atanh", np.arctanh), ("Neg", np.negative), ("Abs", np.abs), ("Reciprocal", np.reciprocal),
                                    ("Log1p", np.log1p), ("Expm1", np.expm1), ("Rsqrt", lambda x: 1 / np.sqrt(x)),
                                    ("Sigmoid", lambda x: 1 / (1 + np.exp(-x)))])
def test_functions(mode, dtype, name, f):
    context.set_context(mode=mode)
    x = numbers(dtype, 2, 3)
    same(Net(getattr(P, name)())(Tensor(x)), f(x), dtype)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name,f", [("Add", np.add), ("Sub", np.subtract), ("Mul", np.multiply), ("RealDiv", np.divide), ("Pow", np.power)])
def test_arithmetic_broadcasts(mode, dtype, name, f):
    context.set_context(mode=mode)
    x, y = numbers(dtype, 2, 3), numbers(dtype, 3)
    same(Net(getattr(P, name)())(Tensor(x), Tensor(y)), f(x, y), dtype)


@pytest.mark.parametrize("dtype", TYPES)
def test_operators_with_numbers(dtype):
    x = numbers(dtype, 4)
    same(Tensor(x) * 2, x * dtype(2), dtype)
    same(Tensor(x) + 1.5, x + dtype(1.5), dtype)
    same(-Tensor(x), -x, dtype)


@pytest.mark.parametrize("dtype", TYPES)
def test_comparisons(dtype):
    x, y = numbers(dtype, 4), numbers(dtype, 4)
    y[1] = x[1]
    assert P.Equal()(Tensor(x), Tensor(y)).asnumpy().tolist() == (x == y).tolist()
    assert P.NotEqual()(Tensor(x), Tensor(y)).asnumpy().tolist() == (x != y).tolist()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("op,constants,f", [
    (P.ReduceSum(), (0,), lambda x: x.sum(0)),
    (P.ReduceProd(), (1,), lambda x: x.prod(1)),
    (P.Transpose(), ((1, 0),), lambda x: x.T),
    (P.Reshape(), ((3, 2),), lambda x: x.reshape(3, 2)),
    (P.Tile(), ((2, 1),), lambda x: np.tile(x, (2, 1))),
    (P.StridedSlice(), ((0, 0), (2, 3), (1, 2)), lambda x: x[:, ::2]),
    (P.ReverseV2([1]), (), lambda x: x[:, ::-1]),
    (P.Pad(((1, 0), (0, 1))), (), lambda x: np.pad(x, ((1, 0), (0, 1)))),
    (P.ZerosLike(), (), np.zeros_like),
    (P.OnesLike(), (), np.ones_like),
    (P.ExpandDims(), (1,), lambda x: x[:, None]),
    (P.Gather(), (Tensor(np.array([1, 0], np.int32)), 0), lambda x: x[[1, 0]]),
    (P.GatherNd(), (Tensor(np.array([[0, 1]], np.int32)),), lambda x: x[[0], [1]]),
    (P.CumSum(), (1,), lambda x: x.cumsum(1)),
    (P.BroadcastTo((2, 2, 3)), (), lambda x: np.broadcast_to(x, (2, 2, 3))),
    (P.Squeeze(), (), lambda x: x),
])
def test_elements_move(mode, dtype, op, constants, f):
    context.set_context(mode=mode)
    x = numbers(dtype, 2, 3)
    same(Net(op, *constants)(Tensor(x)), f(x), dtype)


@pytest.mark.parametrize("dtype", TYPES)
def test_several_inputs(dtype):
    x = numbers(dtype, 2, 3)
    same(P.Concat(0)((Tensor(x), Tensor(x))), np.concatenate([x, x]), dtype)
    same(P.Stack()([Tensor(x), Tensor(2 * x)]), np.stack([x, 2 * x]), dtype)
    same(P.Split(0, 2)(Tensor(x))[1], x[1:], dtype)
    same(ops.addn([Tensor(x), Tensor(x)]), x + x, dtype)
    same(P.Select()(Tensor(x.real > 0), Tensor(x), Tensor(-x)), np.where(x.real > 0, x, -x), dtype)
    same(P.MatMul()(Tensor(x), Tensor(x.T.copy())), x @ x.T, dtype)


@pytest.mark.parametrize("mode", MODES)
def test_parts(mode):
    context.set_context(mode=mode)
    x = np.array([1 + 2j, 3 - 4j], np.complex64)
    assert ops.real(Tensor(x)).asnumpy().tolist() == [1, 3]
    assert ops.imag(Tensor(x)).asnumpy().tolist() == [2, -4]
    assert ops.conj(Tensor(x)).asnumpy().tolist() == [1 - 2j, 3 + 4j]
    assert P.ComplexAbs()(Tensor(x)).asnumpy()[1] == 5


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name,slope", [("AtanGrad", lambda x: 1 / (1 + x * x)), ("AsinGrad", lambda x: 1 / np.sqrt(1 - x * x)),
                                        ("ACosGrad", lambda x: -1 / np.sqrt(1 - x * x))])
def test_gradient_primitives(dtype, name, slope):
    x, dy = numbers(dtype, 3), numbers(dtype, 3)
    same(Net(getattr(G, name)())(Tensor(x), Tensor(dy)), dy * np.conj(slope(x)), dtype)


@pytest.mark.parametrize("mode", MODES)
def test_gradients_are_conjugated(mode):
    context.set_context(mode=mode)
    x, y = numbers(np.complex64, 3), numbers(np.complex64, 3)

    def f(a, b):
        return a * a * b

    by_x, by_y = F.grad(f, grad_position=(0, 1))(Tensor(x), Tensor(y))
    same(by_x, np.conj(2 * x * y), np.complex64)
    same(by_y, np.conj(x * x), np.complex64)


def test_casts():
    x = np.array([1.5 + 2j, -3 + 1j], np.complex64)
    assert Tensor(x).astype(ms.float32).asnumpy().tolist() == [1.5, -3]
    assert Tensor(x).astype(ms.complex128).dtype == ms.complex128
    assert Tensor([1.0, 2.0], ms.float32).astype(ms.complex64).asnumpy().tolist() == [1, 2]
