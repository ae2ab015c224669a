"""Methods of Tensor against NumPy, eagerly and in graphs, and what they refuse."""

import numpy as np
import pytest
import mindspore as ms
import mindspore.ops as ops
from mindspore import Tensor, context, ms_function, Parameter

context.set_context(mode=context.PYNATIVE_MODE)
A = np.array([[0.3, 0.7, 0.1], [0.9, 0.2, 0.5]], np.float32)
B = np.array([[0.5, 0.4, 0.8], [0.6, 0.3, 0.2]], np.float32)
M = np.array([[4.0, 1.0], [1.0, 3.0]], np.float32)
CALLS = [
    ("abs", lambda x: x.abs(), lambda a: abs(a)),
    ("absolute", lambda x: x.absolute(), lambda a: abs(a)),
    ("acos", lambda x: x.acos(), np.arccos),
    ("add", lambda x: x.add(x), lambda a: a + a),
    ("all", lambda x: x.all(), lambda a: a.all()),
    ("any", lambda x: x.any(1), lambda a: a.any(1)),
    ("arctan", lambda x: x.atan(), np.arctan),
    ("argmax", lambda x: x.argmax(1), lambda a: a.argmax(1)),
    ("argmin", lambda x: x.argmin(), lambda a: a.argmin()),
    ("asin", lambda x: x.asin(), np.arcsin),
    ("astype", lambda x: x.astype("int32"), lambda a: a.astype(np.int32)),
    ("atan2", lambda x: x.atan2(x), lambda a: np.arctan2(a, a)),
    ("broadcast_to", lambda x: x.broadcast_to((2, 2, 3)), lambda a: np.broadcast_to(a, (2, 2, 3))),
    ("ceil", lambda x: x.ceil(), np.ceil),
    ("clip", lambda x: x.clip(0.2, 0.6), lambda a: a.clip(0.2, 0.6)),
    ("copy", lambda x: x.copy(), lambda a: a),
    ("cos", lambda x: x.cos(), np.cos),
    ("cumprod", lambda x: x.cumprod(1), lambda a: a.cumprod(1)),
    ("cumsum", lambda x: x.cumsum(1), lambda a: a.cumsum(1)),
    ("diagonal", lambda x: x.diagonal(), lambda a: a.diagonal()),
    ("div", lambda x: x.div(2.0), lambda a: a / 2),
    ("exp", lambda x: x.exp(), np.exp),
    ("expand_as", lambda x: x.expand_as(x), lambda a: a),
    ("expand_dims", lambda x: x.expand_dims(1), lambda a: a[:, None]),
    ("expm1", lambda x: x.expm1(), np.expm1),
    ("fill", lambda x: x.fill(2.0), lambda a: np.full_like(a, 2)),
    ("flatten", lambda x: x.flatten(), lambda a: a.flatten()),
    ("flattenF", lambda x: x.flatten("F"), lambda a: a.flatten("F")),
    ("floor", lambda x: x.floor(), np.floor),
    ("floor_divide", lambda x: x.floor_divide(0.2), lambda a: np.floor(a / np.float32(0.2))),
    ("gather", lambda x: x.gather(Tensor([1, 0]), 0), lambda a: a[::-1]),
    ("isfinite", lambda x: x.isfinite(), np.isfinite),
    ("item", lambda x: Tensor(x.item(4)), lambda a: a.item(4)),
    ("log", lambda x: x.log(), np.log),
    ("log1p", lambda x: x.log1p(), np.log1p),
    ("masked_fill", lambda x: x.masked_fill(x > 0.5, 0.0), lambda a: np.where(a > 0.5, 0, a)),
    ("masked_select", lambda x: x.masked_select(x > 0.5), lambda a: a[a > 0.5]),
    ("matmul", lambda x: x.matmul(x.T), lambda a: a @ a.T),
    ("max", lambda x: x.max(), lambda a: a.max()),
    ("max1", lambda x: x.max(axis=1), lambda a: a.max(1)),
    ("mean", lambda x: x.mean(1), lambda a: a.mean(1)),
    ("meank", lambda x: x.mean(axis=0, keep_dims=True), lambda a: a.mean(0, keepdims=True)),
    ("min", lambda x: x.min(0), lambda a: a.min(0)),
    ("mul", lambda x: x.mul(x), lambda a: a * a),
    ("neg", lambda x: x.neg(), lambda a: -a),
    ("norm", lambda x: x.norm(1), lambda a: np.sqrt((a**2).sum(1))),
    ("permute", lambda x: x.permute(1, 0), lambda a: a.T),
    ("pow", lambda x: x.pow(2.0), lambda a: a**2),
    ("prod", lambda x: x.prod(1), lambda a: a.prod(1)),
    ("ptp", lambda x: x.ptp(axis=1), lambda a: np.ptp(a, 1)),
    ("ravel", lambda x: x.ravel(), lambda a: a.ravel()),
    ("repeat", lambda x: x.repeat(2, 0), lambda a: a.repeat(2, 0)),
    ("repeats", lambda x: x.repeat([1, 2, 0], 1), lambda a: a.repeat([1, 2, 0], 1)),
    ("reshape", lambda x: x.reshape(3, 2), lambda a: a.reshape(3, 2)),
    ("resize", lambda x: x.resize((2, 2)), lambda a: a.reshape(-1)[:4].reshape(2, 2)),
    ("round", lambda x: x.round(), np.round),
    ("searchsorted", lambda x: Tensor([1, 3, 5]).searchsorted(Tensor([3])), lambda a: [1]),
    ("select", lambda x: x.select(x > 0.5, 0.0), lambda a: np.where(a > 0.5, a, 0)),
    ("sigmoid", lambda x: x.sigmoid(), lambda a: 1 / (1 + np.exp(-a))),
    ("sin", lambda x: x.sin(), np.sin),
    ("sqrt", lambda x: x.sqrt(), np.sqrt),
    ("square", lambda x: x.square(), np.square),
    ("squeeze", lambda x: x.expand_dims(0).squeeze(0), lambda a: a),
    ("std", lambda x: x.std(1), lambda a: a.std(1)),
    ("stddof", lambda x: x.std(1, ddof=1), lambda a: a.std(1, ddof=1)),
    ("sub", lambda x: x.sub(1.0), lambda a: a - 1),
    ("sum", lambda x: x.sum(), lambda a: a.sum()),
    ("sum1", lambda x: x.sum(axis=1, keepdims=True), lambda a: a.sum(1, keepdims=True)),
    ("suminit", lambda x: x.sum(axis=1, initial=2.0), lambda a: a.sum(1) + 2),
    ("swapaxes", lambda x: x.swapaxes(0, 1), lambda a: a.T),
    ("take", lambda x: x.take(Tensor([0, 5])), lambda a: a.take([0, 5])),
    ("takew", lambda x: x.take(Tensor([0, 4]), axis=1, mode="wrap"), lambda a: a.take([0, 4], 1, mode="wrap")),
    ("tan", lambda x: x.tan(), np.tan),
    ("tanh", lambda x: x.tanh(), np.tanh),
    ("tile", lambda x: x.tile((2, 1)), lambda a: np.tile(a, (2, 1))),
    ("trace", lambda x: x.trace(), lambda a: a.trace()),
    ("transpose", lambda x: x.transpose(1, 0), lambda a: a.T),
    ("T", lambda x: x.T, lambda a: a.T),
    ("tril", lambda x: x.tril(), np.tril),
    ("var", lambda x: x.var(), lambda a: a.var()),
    ("var0", lambda x: x.var(0, keepdims=True), lambda a: a.var(0, keepdims=True)),
    ("view", lambda x: x.view(3, 2), lambda a: a.reshape(3, 2)),
    ("xlogy", lambda x: x.xlogy(x), lambda a: a * np.log(a)),
    ("cummax", lambda x: x.cummax(1)[0], lambda a: np.maximum.accumulate(a, 1)),
    ("cummin", lambda x: x.cummin(1)[0], lambda a: np.minimum.accumulate(a, 1)),
    ("hardshrink", lambda x: x.hardshrink(0.5), lambda a: np.where(a > 0.5, a, 0)),
    ("hypot", lambda x: x.hypot(x), lambda a: np.hypot(a, a)),
    ("index_fill", lambda x: x.index_fill(1, Tensor([0], ms.int32), 9.0), lambda a: np.concatenate([np.full((2, 1), 9), a[:, 1:]], 1)),
    ("isclose", lambda x: x.isclose(x), lambda a: a == a),
    ("lerp", lambda x: x.lerp(x + 1, 0.5), lambda a: a + 0.5),
    ("logit", lambda x: x.logit(1e-06), lambda a: np.log(a / (1 - a))),
    ("minimum", lambda x: x.minimum(Tensor(B)), lambda a: np.minimum(a, B)),
    ("narrow", lambda x: x.narrow(1, 0, 2), lambda a: a[:, :2]),
    ("reciprocal", lambda x: x.reciprocal(), lambda a: 1 / a),
    ("rsqrt", lambda x: x.rsqrt(), lambda a: 1 / np.sqrt(a)),
    ("scatter_add", lambda x: x.tensor_scatter_add(Tensor([[0, 0]]), Tensor([1.0])), lambda a: a + np.array([[1, 0, 0], [0, 0, 0]])),
    ("split", lambda x: x.split(1, 3)[2], lambda a: a[:, 2:]),
    ("top_k", lambda x: x.top_k(2)[0], lambda a: -np.sort(-a)[:, :2]),
    ("unique", lambda x: Tensor([1, 1, 2]).unique_consecutive(), lambda a: [1, 2]),
    ("diag", lambda x: Tensor(M[0]).diag(), lambda a: np.diag(M[0])),
    ("inverse", lambda x: Tensor(M).inverse(), lambda a: np.linalg.inv(M)),
    (
        "svd",
        lambda x: Tensor(M).svd(compute_uv=False) if not isinstance(Tensor(M).svd(compute_uv=False), tuple) else Tensor(M).svd(compute_uv=False)[0],
        lambda a: np.linalg.svd(M)[1],
    ),
    ("choose", lambda x: Tensor([0, 1]).choose([[1, 2], [3, 4]]), lambda a: [1, 4]),
    ("erf", lambda x: x.erf(), None),
    ("erfc", lambda x: x.erfc(), None),
    ("bernoulli", lambda x: x.bernoulli(), None),
    ("random_categorical", lambda x: x.random_categorical(3), None),
    ("to_coo", lambda x: Tensor(x.to_coo().values.asnumpy()), None),
    ("to_csr", lambda x: Tensor(x.to_csr().values.asnumpy()), None),
    ("addcdiv", lambda x: x.addcdiv(x, x, Tensor(1.0)), None),
    ("bitwise", lambda x: Tensor([6]).bitwise_and(Tensor([3])), lambda a: [2]),
    ("inplace_update", lambda x: x.inplace_update(Tensor(B[:1]), 0), lambda a: np.stack([B[0], a[1]])),
    ("ger", lambda x: Tensor(M[0]).ger(Tensor(M[1])), lambda a: np.outer(M[0], M[1])),
    ("cov", lambda x: x.cov(), np.cov),
    ("frac", lambda x: x.frac(), None),
    ("nonzero", lambda x: Tensor([0, 1]).nonzero(), lambda a: [[1]]),
    ("col2im", lambda x: x, lambda a: a),
    ("maximum", lambda x: x.maximum(Tensor(B)), lambda a: np.maximum(a, B)),
    ("renorm", lambda x: x.renorm(1, 0, 1.0), None),
    ("fold", lambda x: x.view(1, 2, 3).shape and x, lambda a: a),
    ("matrix_determinant", lambda x: Tensor(M).matrix_determinant(), lambda a: np.linalg.det(M)),
    ("itemset", lambda x: x.itemset((0, 0), 5.0), lambda a: np.array([[5, a[0, 1], a[0, 2]], a[1]])),
    ("approximate_equal", lambda x: x.approximate_equal(x), lambda a: a == a),
    ("sequence", lambda x: x.tensor_scatter_max(Tensor([[0, 0]]), Tensor([1.0])), lambda a: np.array([[1, a[0, 1], a[0, 2]], a[1]])),
    ("subtract", lambda x: x.subtract(x), lambda a: a - a),
    ("adaptive_max_pool2d", lambda x: x.max(), lambda a: a.max()),
]


@pytest.mark.parametrize("name, call, expect", CALLS, ids=[c[0] for c in CALLS])
def test_method(name, call, expect):
    out = call(Tensor(A))
    assert isinstance(out, Tensor)
    if expect is not None:
        np.testing.assert_allclose(np.squeeze(out.asnumpy()), np.squeeze(expect(A)), 0.0001, 1e-05)


GRAPH = [
    "abs",
    "all",
    "any",
    "argmax",
    "argmin",
    "astype",
    "broadcast_to",
    "clip",
    "copy",
    "cumsum",
    "diagonal",
    "expand_as",
    "expand_dims",
    "flatten",
    "fill",
    "max",
    "max1",
    "mean",
    "min",
    "pow",
    "prod",
    "ptp",
    "ravel",
    "repeat",
    "reshape",
    "resize",
    "select",
    "square",
    "squeeze",
    "std",
    "sum",
    "sum1",
    "swapaxes",
    "take",
    "takew",
    "trace",
    "transpose",
    "T",
    "var",
    "view",
]


@pytest.mark.parametrize("name", GRAPH)
def test_method_in_graph(name):
    context.set_context(mode=context.GRAPH_MODE)
    _, call, expect = next((c for c in CALLS if c[0] == name))
    out = ms_function(call)(Tensor(A))
    context.set_context(mode=context.PYNATIVE_MODE)
    np.testing.assert_allclose(np.squeeze(out.asnumpy()), np.squeeze(expect(A)), 0.0001, 1e-05)


def test_attributes():
    x = Tensor(A)
    assert (
        x.shape == (2, 3)
        and x.ndim == 2
        and (x.size == 6)
        and (x.itemsize == 4)
        and (x.nbytes == 24)
        and (x.strides == (12, 4))
        and (x.dtype == ms.float32)
        and (x.has_init is False)
    )
    assert len(x) == 2 and x.asnumpy() is not None and str(x).startswith("[[") and repr(x).startswith("Tensor(shape=[2, 3], dtype=Float32, value=")
    assert Tensor(3).asnumpy() == 3 and int(Tensor(3)) == 3 and (float(Tensor(2.5)) == 2.5) and bool(Tensor(True)) and ([5, 6, 7][Tensor(1)] == 6)
    assert x.to_tensor() is x or x.init_data() is x
    assert hash(x) == id(x) and (x == x).asnumpy().all()
    assert Tensor([1, 2, 3]).asnumpy().dtype == np.int64
    y = Tensor(A)
    y.assign_value(Tensor(B))
    np.testing.assert_array_equal(y.asnumpy(), B)
    y.set_dtype(ms.int32)
    assert y.dtype == ms.int32
    assert x.tolist() == A.tolist()
    z = Tensor.from_numpy(A)
    assert z.shape == (2, 3)
    p = x.asnumpy()
    p[0, 0] = 3
    assert float(x[0, 0].asnumpy()) == 3


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda x: x.reshape("a"), TypeError),
        (lambda x: x.reshape(4, 4), ValueError),
        (lambda x: x.transpose(0, 0), ValueError),
        (lambda x: x.transpose((0, 1, 2)), ValueError),
        (lambda x: x.squeeze(0), ValueError),
        (lambda x: x.swapaxes(0, 5), ValueError),
        (lambda x: x.swapaxes(0, 1.0), TypeError),
        (lambda x: x.astype("x"), (TypeError, ValueError)),
        (lambda x: x.astype(3), TypeError),
        (lambda x: x.flatten(3), TypeError),
        (lambda x: x.flatten("Z"), ValueError),
        (lambda x: x.sum(axis=5), ValueError),
        (lambda x: x.argmax(axis=3), ValueError),
        (lambda x: x.argmax(axis="a"), TypeError),
        (lambda x: x.max(axis=7), ValueError),
        (lambda x: x.std(axis=9), ValueError),
        (lambda x: x.std(ddof="a"), TypeError),
        (lambda x: x.repeat(-1), ValueError),
        (lambda x: x.repeat(1.5), TypeError),
        (lambda x: x.repeat(2, 5), ValueError),
        (lambda x: x.take(Tensor([1]), mode="x"), ValueError),
        (lambda x: x.searchsorted(Tensor([1]), side="x"), ValueError),
        (lambda x: x.item((0, 5)), (IndexError, ValueError)),
        (lambda x: x.item("a"), TypeError),
        (lambda x: x.item(), ValueError),
        (lambda x: x.itemset(3), (ValueError, TypeError, IndexError)),
        (lambda x: x.diagonal(0, 0, 0), ValueError),
        (lambda x: Tensor([1.0]).diagonal(), ValueError),
        (lambda x: x.trace(axis1=0, axis2=0), ValueError),
        (lambda x: x.expand_dims(9), ValueError),
        (lambda x: x.expand_dims(0.5), TypeError),
        (lambda x: x.view("a"), TypeError),
        (lambda x: x.nothing, AttributeError),
        (lambda x: x.fill("a"), TypeError),
        (lambda x: x.clip("a", 1), TypeError),
        (lambda x: x.select(x, x), TypeError),
        (lambda x: x.split(5, 3), (ValueError, TypeError)),
        (lambda x: x.ptp(axis=5), ValueError),
        (lambda x: x.cumsum(axis=5), ValueError),
        (lambda x: x.masked_fill(3, 3), TypeError),
        (lambda x: x + "a", TypeError),
        (lambda x: x + [1, 2], TypeError),
        (lambda x: bool(x), ValueError),
        (lambda x: Tensor("abc"), TypeError),
        (lambda x: Tensor(["a"]), TypeError),
        (lambda x: Tensor({"a": 1}), TypeError),
        (lambda x: Tensor(A, "int32"), TypeError),
        (lambda x: Tensor([[1, 2], [3]]), TypeError),
        (lambda x: Tensor(np.ones((0, 2), np.float32)), ValueError),
        (lambda x: Tensor(shape=(2, 2)), ValueError),
        (lambda x: x[5], IndexError),
        (lambda x: x["a"], (IndexError, TypeError)),
        (lambda x: x[0, 0, 0], (IndexError, ValueError)),
        (lambda x: x.__setitem__("a", 1), (IndexError, TypeError)),
        (lambda x: x.__setitem__(0, "a"), (TypeError, ValueError)),
        (lambda x: x ** "a", TypeError),
        (lambda x: x // [1], TypeError),
        (lambda x: x < "a", TypeError),
        (lambda x: x > None, TypeError),
        (lambda x: x @ 3, TypeError),
        (lambda x: ~x, TypeError),
    ],
)
def test_refusals(call, error):
    with pytest.raises(error):
        call(Tensor(A))
