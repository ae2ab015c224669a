"""mindspore.numpy against NumPy: the same expression with both."""

import numpy
import pytest

import mindspore as ms
import mindspore.numpy as mnp

A = numpy.random.RandomState(0).normal(0, 1, (3, 4)).astype(numpy.float32)
B = numpy.random.RandomState(1).normal(0, 1, (4,)).astype(numpy.float32)
N = numpy.random.RandomState(2).randint(-4, 5, (3, 4)).astype(numpy.int32)
V = numpy.array([3, 1, 2, 3, 1], numpy.int32)

EXPRESSIONS = """
np.add(a, b); np.subtract(a, b); np.multiply(a, 2); np.divide(n, 2); np.power(n, 2); np.maximum(a, b); np.minimum(a, 0.5); np.floor_divide(a, 0.5)
np.mod(n, 3); np.remainder(n, 3); np.fmod(n, 3); np.hypot(a, b); np.arctan2(a, b); np.logaddexp(a, b); np.logaddexp2(a, b); np.heaviside(a, 0.5)
np.abs(n); np.negative(a); np.square(a); np.sign(a); np.exp(a); np.expm1(a); np.exp2(a); np.log(np.abs(a)); np.log1p(np.abs(a)); np.log2(np.abs(a))
np.log10(np.abs(a)); np.sqrt(np.abs(a)); np.cbrt(a); np.reciprocal(a); np.sin(a); np.cos(a); np.tan(a); np.arctan(a); np.sinh(a); np.cosh(a); np.tanh(a)
np.arcsinh(a); np.deg2rad(a); np.rad2deg(a); np.floor(a); np.ceil(a); np.rint(a); np.trunc(a); np.isnan(a); np.isfinite(a); np.isinf(a)
np.equal(n, 0); np.not_equal(n, 0); np.less(a, b); np.less_equal(n, 0); np.greater(a, b); np.greater_equal(n, 0)
np.logical_and(n, v[0]); np.logical_or(n, 0); np.logical_xor(n, 1); np.logical_not(n); np.gcd(n, 4); np.lcm(n, 4); np.bitwise_and(n, 3)
np.sum(a); np.sum(a, axis=1, keepdims=True); np.sum(n > 0); np.prod(a, axis=0); np.mean(a, axis=(0, 1)); np.amax(a, axis=1)
np.amin(a); np.all(n, axis=0); np.any(n, axis=1); np.std(a, axis=1); np.var(a, axis=0, ddof=1); np.average(a, axis=1, weights=b); np.ptp(a, axis=1)
np.argmax(a, axis=1); np.argmin(a); np.cumsum(a, axis=1); np.cumsum(a); np.cumprod(a, axis=0); np.count_nonzero(n); np.clip(a, -0.5, 0.5)
np.around(a, 1); np.matmul(a, b); np.dot(a, a.T); np.tensordot(a, a, ((0, 1), (0, 1))); np.outer(b, b); np.inner(a, b); np.kron(a, b)
np.diff(a); np.trapz(a); np.isclose(a, a); np.sort(a, axis=0); np.argsort(a); np.median(a, axis=1); np.median(a); np.bincount(v)
np.transpose(a); np.expand_dims(a, (0, 2)); np.squeeze(a[None]); np.reshape(a, (2, -1)); np.ravel(a); np.moveaxis(a, 0, 1); np.swapaxes(a, 0, 1)
np.concatenate((a, n), axis=1); np.append(a, b); np.stack((a, a), 1); np.vstack((a, b)); np.hstack((a, a)); np.dstack((a, a)); np.column_stack((b, b))
np.atleast_2d(b); np.atleast_3d(a); np.array_split(b, 3); np.split(a, 2, 1); np.vsplit(a, 3); np.hsplit(a, 2); np.flip(a); np.fliplr(a); np.flipud(a)
np.rot90(a); np.rot90(a, 3); np.roll(a, 1, 0); np.roll(a, 2); np.tile(a, (2, 1)); np.repeat(a, 2, 1); np.repeat(b, (1, 2, 0, 1)); np.broadcast_to(b, (2, 4))
np.where(n > 0, a, 0.0); np.take(a, v, axis=1); np.take_along_axis(a, np.argsort(a), 1)
np.select([n > 2, n < 0], [a, -a]); np.trace(a); np.diag(b); np.diag(a, 1); np.diag(b, -1); np.diagonal(a); np.tril(a, 1); np.triu(a, -1)
np.meshgrid(b, v); np.full((2, 3), 1.5); np.zeros((2, 3)); np.ones(3); np.zeros_like(n); np.full_like(a, 2); np.arange(5); np.arange(1, 2, 0.25)
np.linspace(0, 1, 5); np.linspace(0, 1, 5, endpoint=False); np.logspace(0, 2, 3); np.geomspace(1, 8, 4); np.eye(3, k=1); np.identity(3); np.tri(3)
np.array([[1, 2], [3, 4]]); np.asarray([1.5, 2]); np.cross(a[:, :3], a[:, 1:]); np.rollaxis(a[None], 2, 1)
np.cross(a, b[:3], axisa=0); np.cross(a[:, :2], a[:, 2:]); np.cross(a[:, :2], a[:, 1:]); np.diff(a, prepend=0, append=a); np.sum(a, 1, initial=2)
np.amax(a, axis=1, where=n > 0, initial=0); np.amin(a, 0, initial=-5); np.take_along_axis(a, v[None, :1], 1); np.meshgrid(b, v, sparse=True)
np.copy(a); np.trapz(n, n + 2.0)
"""


def arrays(tree):
    if isinstance(tree, (list, tuple)):
        return [each for part in tree for each in arrays(part)]
    return [tree.asnumpy() if isinstance(tree, ms.Tensor) else numpy.asarray(tree)]


@pytest.mark.parametrize("text", [each.strip() for each in EXPRESSIONS.replace("\n", ";").split(";") if each.strip()])
def test_as_numpy(text):
    inputs = {"a": A, "b": B, "n": N, "v": V}
    expected = arrays(eval(text, {"np": numpy, **inputs}))
    made = arrays(eval(text, {"np": mnp, **{name: ms.Tensor(array) for name, array in inputs.items()}}))
    assert len(made) == len(expected)
    for x, y in zip(made, expected):
        assert x.shape == y.shape and x.dtype.kind == y.dtype.kind
        numpy.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)


def test_random_numbers_and_constants():
    ms.set_seed(3)
    first = mnp.rand(2, 3).asnumpy(), mnp.randn(4).asnumpy(), mnp.randint(0, 5, (6,)).asnumpy()
    ms.set_seed(3)
    again = mnp.rand(2, 3).asnumpy(), mnp.randn(4).asnumpy(), mnp.randint(0, 5, (6,)).asnumpy()
    assert all(numpy.array_equal(x, y) for x, y in zip(first, again))
    assert mnp.pi == numpy.pi and mnp.newaxis is None


def test_unique_keeps_the_order_of_first_places():
    values, places = mnp.unique(ms.Tensor([[3.0, 1.0], [3.0, 2.0]]), return_inverse=True)
    assert values.asnumpy().tolist() == [3, 1, 2] and places.asnumpy().tolist() == [0, 1, 0, 2]
    assert mnp.unique(ms.Tensor([3, 1, 3])).asnumpy().tolist() == [3, 1]


def test_rules_that_numpy_has_as_well():
    assert mnp.asfarray([1, 2]).dtype == ms.float32 and mnp.asfarray([1, 2], ms.float16).dtype == ms.float16
    assert mnp.blackman(0).shape == (0,) and mnp.hamming(1).asnumpy().tolist() == [1]
    x, places = mnp.arange(6).reshape(2, 3), mnp.array([[0], [1]])
    assert mnp.take_along_axis(x, places, 1).asnumpy().tolist() == [[0], [4]]
    assert mnp.cumsum(mnp.array([100, 100], ms.int8)).asnumpy().tolist() == [100, 200]
    for make in (lambda: mnp.sum(x, axis=(0, 0)), lambda: mnp.rand(-1), lambda: mnp.randint(3, 3)):
        with pytest.raises(ValueError):
            make()
