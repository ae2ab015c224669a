"""mindspore.numpy against NumPy: functions, indexing, refusals."""

import numpy as onp
import pytest
import mindspore as ms
import mindspore.numpy as mnp
from mindspore import Tensor, context, ms_function

context.set_context(mode=context.PYNATIVE_MODE)
R = onp.random.RandomState(0)
A = R.rand(3, 4).astype(onp.float32) + 0.1
B = R.rand(3, 4).astype(onp.float32) + 0.1
V = onp.array([3, 1, 2, 2], onp.float32)
I = onp.array([[6, 4, 9, 2]], onp.int32)


def check(mine, theirs, tol=0.0001):
    if isinstance(theirs, (tuple, list)):
        assert len(mine) == len(theirs)
        for a, b in zip(mine, theirs):
            check(a, b, tol)
        return
    mine = mine.asnumpy() if isinstance(mine, Tensor) else mine
    onp.testing.assert_allclose(onp.asarray(mine, dtype=onp.asarray(theirs).dtype), theirs, tol, 1e-05)


UNARY = [
    "abs",
    "absolute",
    "arccos",
    "arcsin",
    "arctan",
    "arctanh",
    "arcsinh",
    "cbrt",
    "ceil",
    "cos",
    "cosh",
    "deg2rad",
    "exp",
    "exp2",
    "expm1",
    "fix",
    "floor",
    "log",
    "log10",
    "log1p",
    "log2",
    "negative",
    "positive",
    "rad2deg",
    "degrees",
    "radians",
    "reciprocal",
    "rint",
    "sign",
    "signbit",
    "sin",
    "sinc",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "trunc",
    "isfinite",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "ravel",
    "transpose",
    "flipud",
    "fliplr",
    "flip",
    "rot90",
    "diff",
    "ediff1d",
    "cumsum",
    "cumprod",
    "nancumsum",
    "sort_x",
    "max_x",
    "amax",
    "amin",
    "mean",
    "std",
    "var",
    "sum",
    "prod_x",
    "ptp",
    "average",
    "median_x",
    "nansum",
    "nanmean",
    "nanstd",
    "nanvar",
    "nanmax",
    "nanmin",
    "argmax",
    "argmin",
    "count_nonzero",
    "trace",
    "diagonal",
    "triu",
    "tril",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "squeeze",
    "size",
    "ndim_x",
    "copy",
    "zeros_like",
    "ones_like",
    "gradient",
    "cov",
    "corrcoef",
    "diagflat",
    "logical_not",
    "array",
    "asarray",
    "vsplit_x",
    "msort_x",
]


@pytest.mark.parametrize("name", [n for n in UNARY if not n.endswith("_x")])
def test_unary(name):
    x = A * 0.7
    check(getattr(mnp, name)(Tensor(x)), getattr(onp, name)(x), 0.001)


BINARY = [
    "add",
    "subtract",
    "multiply",
    "divide",
    "true_divide",
    "power",
    "float_power",
    "floor_divide",
    "mod",
    "fmod",
    "remainder",
    "maximum",
    "minimum",
    "fmax",
    "fmin",
    "arctan2",
    "hypot",
    "heaviside",
    "logaddexp",
    "logaddexp2",
    "copysign",
    "equal",
    "not_equal",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "logical_and",
    "logical_or",
    "logical_xor",
    "isclose",
    "vstack_x",
    "inner",
    "outer",
    "kron",
    "nextafter_x",
]


@pytest.mark.parametrize("name", [n for n in BINARY if not n.endswith("_x")])
def test_binary(name):
    check(getattr(mnp, name)(Tensor(A), Tensor(B)), getattr(onp, name)(A, B), 0.001)


CALLS = [
    ("gcd", lambda m, t: m.gcd(t(I), t(I // 2))),
    ("lcm", lambda m, t: m.lcm(t(I), t(onp.array([4], onp.int32)))),
    ("bitwise_and", lambda m, t: m.bitwise_and(t(I), t(I // 2))),
    ("bitwise_or", lambda m, t: m.bitwise_or(t(I), t(I // 2))),
    ("bitwise_xor", lambda m, t: m.bitwise_xor(t(I), t(I // 2))),
    ("invert", lambda m, t: m.invert(t(I))),
    ("divmod", lambda m, t: m.divmod(t(I), t(onp.array([4], onp.int32)))),
    ("sum1", lambda m, t: m.sum(t(A), axis=1, keepdims=True)),
    ("mean01", lambda m, t: m.mean(t(A), axis=(0, 1))),
    ("std0", lambda m, t: m.std(t(A), axis=0, ddof=1)),
    ("average_w", lambda m, t: m.average(t(A), axis=1, weights=t(V))),
    ("prod", lambda m, t: m.prod(t(A), axis=1)),
    ("cumsum1", lambda m, t: m.cumsum(t(A), 1)),
    ("max1", lambda m, t: m.amax(t(A), axis=1, keepdims=True)),
    ("argmax1", lambda m, t: m.argmax(t(A), 1)),
    ("percentile_like", lambda m, t: m.clip(t(A), 0.2, 0.5)),
    ("concatenate", lambda m, t: m.concatenate((t(A), t(B)), 1)),
    ("append", lambda m, t: m.append(t(A), t(B), 0)),
    ("stack", lambda m, t: m.stack((t(A), t(B)), 1)),
    ("vstack", lambda m, t: m.vstack((t(A), t(B)))),
    ("hstack", lambda m, t: m.hstack((t(A), t(B)))),
    ("dstack", lambda m, t: m.dstack((t(A), t(B)))),
    ("column_stack", lambda m, t: m.column_stack((t(A), t(B)))),
    ("split", lambda m, t: m.split(t(A), 2, 1)),
    ("array_split", lambda m, t: m.array_split(t(A), 3, 1)),
    ("hsplit", lambda m, t: m.hsplit(t(A), 2)),
    ("vsplit", lambda m, t: m.vsplit(t(A), 3)),
    ("dsplit", lambda m, t: m.dsplit(t(A[None]), 2)),
    ("tile", lambda m, t: m.tile(t(A), (2, 1))),
    ("repeat", lambda m, t: m.repeat(t(A), 2, 0)),
    ("roll", lambda m, t: m.roll(t(A), 2)),
    ("roll2", lambda m, t: m.roll(t(A), (1, 2), (0, 1))),
    ("moveaxis", lambda m, t: m.moveaxis(t(A), 0, 1)),
    ("swapaxes", lambda m, t: m.swapaxes(t(A), 0, 1)),
    ("rollaxis", lambda m, t: m.rollaxis(t(A), 1, 0)),
    ("expand_dims", lambda m, t: m.expand_dims(t(A), 1)),
    ("reshape", lambda m, t: m.reshape(t(A), (4, 3))),
    ("broadcast_to", lambda m, t: m.broadcast_to(t(V), (2, 4))),
    ("broadcast_arrays", lambda m, t: m.broadcast_arrays(t(A), t(V))),
    ("where", lambda m, t: m.where(t(A > 0.5), t(A), t(B))),
    ("select", lambda m, t: m.select([t(A > 0.8), t(A > 0.4)], [t(A), t(B)], 0.0)),
    (
        "choose",
        lambda m, t: m.choose(t(onp.array([0, 1])), [t(onp.array([1, 2])), t(onp.array([3, 4]))]) if m is onp else m.choose([0, 1], [[1, 2], [3, 4]]),
    ),
    ("take", lambda m, t: m.take(t(A), t(onp.array([0, 2])), 1)),
    ("take_along", lambda m, t: m.take_along_axis(t(A), t(onp.array([[0], [1], [2]])), 1)),
    ("unique", lambda m, t: m.unique(t(onp.array([1.0, 2.0, 2.0, 5.0])))),
    ("pad", lambda m, t: m.pad(t(A), ((1, 1), (0, 2)), "constant", constant_values=3)),
    ("pad_edge", lambda m, t: m.pad(t(A), 1, "edge")),
    ("pad_reflect", lambda m, t: m.pad(t(A), 1, "reflect")),
    ("pad_wrap", lambda m, t: m.pad(t(A), 1, "wrap")),
    ("pad_mean", lambda m, t: m.pad(t(A), 1, "mean")),
    ("apply_along", lambda m, t: m.apply_along_axis(lambda a: a.sum(), 1, t(A))),
    ("apply_over", lambda m, t: m.apply_over_axes(m.sum, t(A), [0])),
    ("piecewise", lambda m, t: m.piecewise(t(A), [t(A < 0.5), t(A >= 0.5)], [-1, 1])),
    ("arange", lambda m, t: m.arange(1, 10, 3)),
    ("linspace", lambda m, t: m.linspace(0, 5, 6)),
    ("linspace2", lambda m, t: m.linspace(0, 5, 5, endpoint=False)),
    ("logspace", lambda m, t: m.logspace(0, 2, 3)),
    ("geomspace", lambda m, t: m.geomspace(1, 100, 3)),
    ("eye", lambda m, t: m.eye(3, 4, 1)),
    ("identity", lambda m, t: m.identity(3)),
    ("full", lambda m, t: m.full((2, 2), 3)),
    ("full_like", lambda m, t: m.full_like(t(A), 3)),
    ("ones", lambda m, t: m.ones((2, 2))),
    ("zeros", lambda m, t: m.zeros(3)),
    ("empty", lambda m, t: m.empty((2, 3)) * 0),
    ("tri", lambda m, t: m.tri(3, 4, 1)),
    ("vander", lambda m, t: m.vander(t(V), 3)),
    ("diag", lambda m, t: m.diag(t(V))),
    ("meshgrid", lambda m, t: m.meshgrid(t(V), t(V), indexing="ij")),
    (
        "indices",
        lambda m, t: (
            m.indices((2, 3))
            if m is onp
            else onp.stack([e.asnumpy() for e in m.indices((2, 3))]) if isinstance(m.indices((2, 3)), tuple) else m.indices((2, 3))
        ),
    ),
    ("mgrid", lambda m, t: m.mgrid[0:2, 0:3]),
    ("ogrid", lambda m, t: m.ogrid[0:2, 0:3]),
    ("tril_indices", lambda m, t: m.tril_indices(3)),
    ("triu_indices", lambda m, t: m.triu_indices(3, 1)),
    ("diag_indices", lambda m, t: m.diag_indices(3)),
    ("ix_", lambda m, t: m.ix_(t(onp.array([0, 1])), t(onp.array([2, 3])))),
    ("hanning", lambda m, t: m.hanning(5)),
    ("hamming", lambda m, t: m.hamming(5)),
    ("blackman", lambda m, t: m.blackman(5)),
    ("bartlett", lambda m, t: m.bartlett(5)),
    ("ravel_multi", lambda m, t: m.ravel_multi_index((t(onp.array([1, 2])), t(onp.array([0, 1]))), (3, 4))),
    ("unravel", lambda m, t: m.unravel_index(t(onp.array([5, 6])), (3, 4))),
    ("histogram", lambda m, t: m.histogram(t(V), bins=3)),
    ("histogram2d", lambda m, t: m.histogram2d(t(V), t(V), bins=2)),
    ("bincount", lambda m, t: m.bincount(t(onp.array([1, 2, 2], onp.int32)))),
    ("digitize", lambda m, t: m.digitize(t(V), t(onp.array([1.5, 2.5], onp.float32)))),
    ("searchsorted", lambda m, t: m.searchsorted(t(onp.array([1, 2, 3], onp.float32)), t(V))),
    (
        "interp",
        lambda m, t: m.interp(t(onp.array([1.5, 2.5], onp.float32)), t(onp.array([1, 2, 3], onp.float32)), t(onp.array([3, 2, 0], onp.float32))),
    ),
    ("histogram_edges", lambda m, t: m.histogram_bin_edges(t(V), 3)),
    ("trapz", lambda m, t: m.trapz(t(V))),
    ("convolve", lambda m, t: m.convolve(t(V), t(onp.array([1, 2], onp.float32)), mode="same")),
    ("correlate", lambda m, t: m.correlate(t(V), t(onp.array([1, 2], onp.float32)), mode="valid")),
    ("polyval", lambda m, t: m.polyval(t(onp.array([3, 0, 1], onp.float32)), 5)),
    ("polyadd", lambda m, t: m.polyadd(t(V), t(V))),
    ("polyder", lambda m, t: m.polyder(t(V))),
    ("polyint", lambda m, t: m.polyint(t(V))),
    ("polymul", lambda m, t: m.polymul(t(V), t(V))),
    ("dot", lambda m, t: m.dot(t(A), t(A.T))),
    ("matmul", lambda m, t: m.matmul(t(A), t(A.T))),
    ("tensordot", lambda m, t: m.tensordot(t(A), t(B), ((0, 1), (0, 1)))),
    ("s2", lambda m, t: m.sum(t(A))),
    ("norm", lambda m, t: (m if m is mnp else m.linalg).norm(t(A))),
    ("multi_dot", lambda m, t: (m if m is mnp else m.linalg).multi_dot([t(A), t(A.T), t(A)])),
    (
        "matrix_power",
        lambda m, t: (m if m is mnp else m.linalg).matrix_power(t(onp.array([[1, 2], [0, 1]], onp.float32)), 3),
    ),
    ("cross", lambda m, t: m.cross(t(A[:, :3]), t(B[:, :3]))),
    ("s3", lambda m, t: m.sum(t(A))),
    ("in1d", lambda m, t: m.in1d(t(V), t(onp.array([1, 2], onp.float32)))),
    ("isin", lambda m, t: m.isin(t(V), t(onp.array([1, 2], onp.float32)))),
    ("array_equal", lambda m, t: m.array_equal(t(A), t(A))),
    ("clip", lambda m, t: m.clip(t(A), 0.3, 0.6)),
    ("sometrue", lambda m, t: m.sometrue(t(A > 0.5))),
    ("logical_reduce", lambda m, t: m.all(t(A > 0.0))),
    ("squeeze0", lambda m, t: m.squeeze(t(A[None]), 0)),
    ("maximum_scalar", lambda m, t: m.maximum(t(A), 0.5)),
    ("promote", lambda m, t: m.add(t(I), 1.5)),
    ("around", lambda m, t: m.around(t(A), 1)),
]


@pytest.mark.parametrize("name, call", CALLS, ids=[c[0] for c in CALLS])
def test_calls(name, call):
    check(call(mnp, Tensor), call(onp, lambda x: x), 0.001)


GET = [
    lambda x: x[0],
    lambda x: x[-1, 2],
    lambda x: x[1:, ::2],
    lambda x: x[..., 1],
    lambda x: x[None],
    lambda x: x[:, None, 1:3],
    lambda x: x[[0, 2]],
    lambda x: x[[True, False, True]],
    lambda x: x[1:3],
    lambda x: x[(0, 1), (2, 3)],
    lambda x: x[1][2],
    lambda x: x[0:2],
    lambda x: x[:, [1, 3]],
    lambda x: x[..., None],
    lambda x: x[1, :, None],
    lambda x: x[True],
]


@pytest.mark.parametrize("index", range(len(GET)))
@pytest.mark.parametrize("mode", [context.GRAPH_MODE, context.PYNATIVE_MODE])
def test_getitem(index, mode):
    context.set_context(mode=mode)
    out = ms_function(GET[index])(Tensor(A)) if mode == context.GRAPH_MODE else GET[index](Tensor(A))
    context.set_context(mode=context.PYNATIVE_MODE)
    check(out, GET[index](A))


SET = [
    (0, 5.0),
    ((1, 2), 3.0),
    (slice(1, None), 2.0),
    ((slice(None), 1), 4.0),
    (Ellipsis, 1.0),
    ([0, 2], 7.0),
    ((slice(None, None, 2), slice(1, 3)), 8.0),
    ((Ellipsis, 3), 6.0),
    (([0, 1], [2, 3]), 9.0),
    (-1, onp.array([1, 2, 3, 4], onp.float32)),
    ((slice(None), slice(0, 2)), onp.ones((3, 2), onp.float32)),
    (None, 2.0),
]


@pytest.mark.parametrize("index", range(len(SET)))
def test_setitem(index):
    where, value = SET[index]
    x, y = (Tensor(A), A.copy())
    x[where] = Tensor(value) if isinstance(value, onp.ndarray) else value
    y[where] = value
    check(x, y)


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda: mnp.arange("a"), (TypeError, ValueError)),
        (lambda: mnp.reshape(Tensor(A), (5, 5)), ValueError),
        (lambda: mnp.concatenate((Tensor(A), Tensor(V))), ValueError),
        (lambda: mnp.transpose(Tensor(A), (0, 0)), ValueError),
        (lambda: mnp.add("a", 1), TypeError),
        (lambda: mnp.linspace(0, 1, -1), (ValueError, TypeError)),
        (lambda: mnp.eye(2.5), TypeError),
        (lambda: mnp.full(-1, 2), (ValueError, TypeError)),
        (lambda: mnp.expand_dims(Tensor(A), 7), ValueError),
        (lambda: mnp.squeeze(Tensor(A), 0), ValueError),
        (lambda: mnp.split(Tensor(A), 5, 0), ValueError),
        (lambda: mnp.take(Tensor(A), Tensor([1]), axis=5), ValueError),
        (lambda: mnp.dot(Tensor(A), Tensor(A)), ValueError),
        (lambda: mnp.matmul(Tensor(A), Tensor(A)), ValueError),
        (lambda: mnp.sum(Tensor(A), axis=9), ValueError),
        (lambda: mnp.broadcast_to(Tensor(A), (2, 2)), ValueError),
        (lambda: mnp.asarray("x"), TypeError),
        (lambda: mnp.moveaxis(Tensor(A), 5, 0), ValueError),
        (lambda: mnp.pad(Tensor(A), ((1, 1),) * 3), ValueError),
        (lambda: mnp.tile(Tensor(A), -1), (ValueError, TypeError)),
    ],
)
def test_refusals(call, error):
    with pytest.raises(error):
        call()


def test_random_and_dtypes():
    assert mnp.rand(2, 3).shape == (2, 3) and mnp.randn(2).shape == (2,) and (mnp.randint(1, 5, (3,)).shape == (3,))
    assert mnp.float32 == ms.float32
    assert mnp.result_type("i2", onp.float32, 2) == ms.float32
    assert mnp.pi == pytest.approx(onp.pi) and mnp.inf == onp.inf
    assert (
        mnp.ones((2, 2), mnp.int32).dtype == ms.int32
        and mnp.array([1, 2]).dtype == ms.int32
        and (mnp.array([1.0]).dtype == ms.float32)
        and (mnp.arange(3).dtype == ms.int32)
    )
    assert mnp.asfarray([1]).dtype == ms.float32 and isinstance(mnp.asarray([1]).shape, tuple)
    assert True
