"""Primitives of each element and of pairs: values against NumPy and SciPy, gradients against differences, types."""

import numpy as np
import pytest
import scipy.special as special
import mindspore as ms
import mindspore.nn as nn
import mindspore.ops as ops
from mindspore import Tensor, context
from mindspore.ops import operations as P
from mindspore.ops import composite as C
from mindspore.ops.operations import math_ops, array_ops, nn_ops

context.set_context(mode=context.GRAPH_MODE, device_target="CPU")
X = np.array([[0.21, 0.44, 0.63], [0.75, 0.81, 0.97]], np.float32)
Y = np.array([[1.5, 2.0, 0.5], [3.0, 0.25, 1.0]], np.float32)
UNARY = [
    (P.Abs(), np.abs),
    (P.ACos(), np.arccos),
    (P.Asin(), np.arcsin),
    (P.Atan(), np.arctan),
    (P.Cos(), np.cos),
    (P.Sin(), np.sin),
    (P.Tan(), np.tan),
    (P.Cosh(), np.cosh),
    (P.Sinh(), np.sinh),
    (P.Asinh(), np.arcsinh),
    (P.Atanh(), np.arctanh),
    (P.Exp(), np.exp),
    (P.Expm1(), np.expm1),
    (P.Log(), np.log),
    (P.Log1p(), np.log1p),
    (P.Erf(), special.erf),
    (P.Erfc(), special.erfc),
    (P.Erfinv(), special.erfinv),
    (P.Sqrt(), np.sqrt),
    (P.Rsqrt(), lambda x: 1 / np.sqrt(x)),
    (P.Square(), np.square),
    (P.Neg(), np.negative),
    (P.Inv(), lambda x: 1 / x),
    (P.Reciprocal(), lambda x: 1 / x),
    (P.Lgamma(), special.gammaln),
    (P.Digamma(), special.digamma),
    (math_ops.Sinc(), np.sinc),
    (P.BesselI0(), special.i0),
    (P.BesselI1(), special.i1),
    (P.BesselI0e(), special.i0e),
    (P.BesselI1e(), special.i1e),
    (math_ops.BesselJ0(), special.j0),
    (math_ops.BesselJ1(), special.j1),
    (math_ops.BesselK0(), special.k0),
    (math_ops.BesselK1(), special.k1),
    (math_ops.BesselK0e(), special.k0e),
    (math_ops.BesselK1e(), special.k1e),
    (math_ops.BesselY0(), special.y0),
    (math_ops.BesselY1(), special.y1),
]
FLAT = [
    (P.Ceil(), np.ceil),
    (P.Floor(), np.floor),
    (P.Rint(), np.rint),
    (P.Round(), np.round),
    (math_ops.Trunc(), np.trunc),
    (P.Sign(), np.sign),
    (P.IsFinite(), np.isfinite),
    (P.IsInf(), np.isinf),
    (P.IsNan(), np.isnan),
]
BINARY = [
    (P.Add(), np.add),
    (P.Sub(), np.subtract),
    (P.Mul(), np.multiply),
    (P.Div(), np.divide),
    (P.RealDiv(), np.divide),
    (P.DivNoNan(), np.divide),
    (P.Pow(), np.power),
    (P.Maximum(), np.maximum),
    (P.Minimum(), np.minimum),
    (P.Atan2(), np.arctan2),
    (P.SquaredDifference(), lambda a, b: (a - b) ** 2),
    (P.Xlogy(), special.xlogy),
    (P.Xdivy(), np.divide),
    (P.Hypot(), np.hypot),
    (P.Sub(), np.subtract),
    (P.MulNoNan(), np.multiply),
    (P.TruncateMod(), np.fmod),
    (P.FloorMod(), np.mod),
    (P.Mod(), np.fmod),
]
FLAT2 = [
    (P.FloorDiv(), np.floor_divide),
    (P.TruncateDiv(), lambda a, b: np.trunc(a / b)),
    (P.Heaviside(), np.heaviside),
    (P.NextAfter(), np.nextafter),
    (P.Equal(), np.equal),
    (P.Less(), np.less),
    (P.GreaterEqual(), np.greater_equal),
]


class Net(nn.Cell):

    def __init__(self, op):
        super().__init__()
        self.op = op

    def construct(self, *args):
        return self.op(*args)


@pytest.mark.parametrize("op, expect", UNARY, ids=lambda x: getattr(x, "name", ""))
def test_unary(op, expect):
    net = Net(op)
    out = net(Tensor(X))
    np.testing.assert_allclose(out.asnumpy(), expect(X.astype(np.float64)), 0.0002, 1e-05)
    dx = C.GradOperation()(net)(Tensor(X)).asnumpy()
    x = X.astype(np.float64)
    np.testing.assert_allclose(dx, (expect(x + 0.0001) - expect(x - 0.0001)) / 0.0002, 0.002, 0.002)


@pytest.mark.parametrize("op, expect", FLAT, ids=lambda x: getattr(x, "name", ""))
def test_flat(op, expect):
    x = np.array([-2.5, -1.5, -0.2, 0.0, 0.5, 1.5, 2.7, np.inf, np.nan], np.float32)
    if op.name in ("Ceil", "Floor", "Rint", "Round", "Trunc", "Sign"):
        x = x[:7]
    np.testing.assert_array_equal(Net(op)(Tensor(x)).asnumpy(), expect(x))


@pytest.mark.parametrize("op, expect", BINARY, ids=lambda x: getattr(x, "name", ""))
def test_binary(op, expect):
    net = Net(op)
    np.testing.assert_allclose(net(Tensor(X), Tensor(Y)).asnumpy(), expect(X, Y), 0.0001, 1e-05)
    a, b = (X.astype(np.float64), Y.astype(np.float64))
    da, db = C.GradOperation(get_all=True)(net)(Tensor(X), Tensor(Y))
    h = 1e-05
    np.testing.assert_allclose(da.asnumpy(), (expect(a + h, b) - expect(a - h, b)) / (2 * h), 0.002, 0.002)
    if op.name not in ("Mod",):
        np.testing.assert_allclose(db.asnumpy(), (expect(a, b + h) - expect(a, b - h)) / (2 * h), 0.002, 0.002)


@pytest.mark.parametrize("op, expect", FLAT2, ids=lambda x: getattr(x, "name", ""))
def test_flat_binary(op, expect):
    out = Net(op)(Tensor(X), Tensor(Y)).asnumpy()
    np.testing.assert_allclose(out, expect(X, Y), 1e-06)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.float16, np.float32, np.float64])
@pytest.mark.parametrize("op, expect", [(P.Add(), np.add), (P.Mul(), np.multiply), (P.Sub(), np.subtract)], ids=lambda x: getattr(x, "name", ""))
def test_types(op, expect, dtype):
    a, b = (np.array([[3, 4], [7, 2]], dtype), np.array([1, 2], dtype))
    out = Net(op)(Tensor(a), Tensor(b))
    assert out.asnumpy().dtype == dtype
    np.testing.assert_array_equal(out.asnumpy(), expect(a, b))


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64])
def test_bits(dtype):
    a, b = (np.array([12, 10, 7], dtype), np.array([10, 3, 1], dtype))
    np.testing.assert_array_equal(P.BitwiseAnd()(Tensor(a), Tensor(b)).asnumpy(), a & b)
    np.testing.assert_array_equal(P.BitwiseOr()(Tensor(a), Tensor(b)).asnumpy(), a | b)
    np.testing.assert_array_equal(P.BitwiseXor()(Tensor(a), Tensor(b)).asnumpy(), a ^ b)
    np.testing.assert_array_equal(P.RightShift()(Tensor(a), Tensor(b)).asnumpy(), a >> b)
    np.testing.assert_array_equal(
        array_ops.LeftShift()(Tensor(a), Tensor(np.array([1, 2, 3], dtype))).asnumpy(), (a << np.array([1, 2, 3], dtype)).astype(dtype)
    )


@pytest.mark.parametrize("name, expect", [("gcd", np.gcd), ("lcm", np.lcm)])
def test_gcd_lcm(name, expect):
    a, b = (np.array([12, 14, 25]).astype(np.int32), np.array([18, 21, 10]).astype(np.int32))
    np.testing.assert_array_equal(getattr(ops, name)(Tensor(a), Tensor(b)).asnumpy(), expect(a, b))
    np.testing.assert_array_equal(getattr(Tensor(a), name)(Tensor(b)).asnumpy(), expect(a, b))


def test_special_functions_of_two():
    a, x = (np.array([0.5, 1.0, 2.5], np.float32), np.array([0.3, 1.2, 4.0], np.float32))
    np.testing.assert_allclose(P.Igamma()(Tensor(a), Tensor(x)).asnumpy(), special.gammainc(a, x), 0.0001)
    np.testing.assert_allclose(math_ops.Igammac()(Tensor(a), Tensor(x)).asnumpy(), special.gammaincc(a, x), 0.0001)
    np.testing.assert_allclose(P.Zeta()(Tensor(np.array([1.5, 2, 4], np.float32)), Tensor(a)).asnumpy(), special.zeta([1.5, 2, 4], a), 0.0001)
    np.testing.assert_allclose(
        P.Betainc()(Tensor(a), Tensor(x), Tensor(np.array([0.1, 0.5, 0.9], np.float32))).asnumpy(), special.betainc(a, x, [0.1, 0.5, 0.9]), 0.001
    )
    np.testing.assert_allclose(math_ops.Polygamma()(Tensor(1), Tensor(x)).asnumpy(), special.polygamma(1, x), 0.0001)
    np.testing.assert_allclose(P.Mvlgamma(p=3)(Tensor(np.array([3.0, 4.0, 5.0], np.float32))).asnumpy(), [2.694925, 5.402975, 9.140645], 0.0001)


def test_compare_with_tolerance():
    a, b = (Tensor(np.array([1.3, 2.1, 3.2, 4.1, 5.1], np.float32)), Tensor(np.array([1.3, 3.3, 2.3, 3.1, 5.1], np.float32)))
    np.testing.assert_array_equal(P.IsClose()(a, b).asnumpy(), [True, False, False, False, True])
    np.testing.assert_array_equal(P.ApproximateEqual(2.0)(a, b).asnumpy(), [True] * 5)
    with pytest.raises(ValueError):
        P.IsClose(rtol=-1.0)
    with pytest.raises(TypeError):
        P.ApproximateEqual(tolerance="a")


def test_addcdiv_addcmul_lerp_fma():
    x, a, b, v = (Tensor(np.array(each, np.float32)) for each in ([1, 1, 1, 1], [1, 2, 3, 4], [4, 3, 2, 1], [1]))
    np.testing.assert_allclose(P.Addcdiv()(x, a, b, v).asnumpy(), [1.25, 1.6666667, 2.5, 5.0], 1e-05)
    np.testing.assert_allclose(ops.addcmul(x, a, b, v).asnumpy(), [5, 7, 7, 5])
    np.testing.assert_allclose(P.Lerp()(a, b, Tensor(0.5, ms.float32)).asnumpy(), [2.5] * 4)
    np.testing.assert_allclose(P.LinSpace()(Tensor(1, ms.float32), Tensor(10, ms.float32), 5).asnumpy(), [1, 3.25, 5.5, 7.75, 10])
    np.testing.assert_allclose(
        P.LogSpace(steps=10, base=10)(Tensor(1, ms.float32), Tensor(10, ms.float32)).asnumpy(), 10.0 ** np.arange(1, 11), 0.0001
    )


def test_wrong_types():
    for op in (P.ACos(), P.Exp(), P.Log(), P.Sqrt(), P.Erf(), P.Lgamma()):
        with pytest.raises(TypeError):
            op(Tensor(np.array([True, False])))
    for op in (P.Exp(), P.Neg(), P.Square()):
        with pytest.raises(TypeError):
            op("a")
    with pytest.raises(ValueError):
        P.Add()(Tensor(np.ones((2, 3), np.float32)), Tensor(np.ones((4,), np.float32)))
    with pytest.raises(TypeError):
        P.BitwiseAnd()(Tensor(np.ones(2, np.float32)), Tensor(np.ones(2, np.float32)))
    with pytest.raises(TypeError):
        P.LogicalAnd()(Tensor(np.ones(2, np.float32)), Tensor(np.ones(2, np.bool_)))
