"""Methods of Tensor against NumPy."""

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor

from cairn.ms import tensor_methods

A = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
V = np.array([3, 1, 2, 7], np.int32)

CASES = {
    "reshape": (lambda x: x.reshape(3, 8), lambda a: a.reshape(3, 8)),
    "reshape of a tuple": (lambda x: x.reshape((4, -1)), lambda a: a.reshape(4, -1)),
    "view": (lambda x: x.view(24), lambda a: a.reshape(24)),
    "transpose": (lambda x: x.transpose(), lambda a: a.transpose()),
    "transpose by axes": (lambda x: x.transpose(1, 2, 0), lambda a: a.transpose(1, 2, 0)),
    "transpose by a tuple": (lambda x: x.transpose((0, -1, 1)), lambda a: a.transpose(0, 2, 1)),
    "T": (lambda x: x.T, lambda a: a.T),
    "swapaxes": (lambda x: x.swapaxes(0, -1), lambda a: a.swapaxes(0, -1)),
    "squeeze": (lambda x: x[:1].squeeze(), lambda a: a[:1].squeeze()),
    "squeeze an axis": (lambda x: x[:1].squeeze(0), lambda a: a[0]),
    "expand_dims": (lambda x: x.expand_dims(-2), lambda a: np.expand_dims(a, -2)),
    "flatten": (lambda x: x.flatten(), lambda a: a.flatten()),
    "flatten by columns": (lambda x: x.flatten(order="F"), lambda a: a.flatten(order="F")),
    "ravel": (lambda x: x.ravel(), lambda a: a.ravel()),
    "broadcast_to": (lambda x: x.broadcast_to((5, 2, -1, 4)), lambda a: np.broadcast_to(a, (5, 2, 3, 4))),
    "sum": (lambda x: x.sum(), lambda a: a.sum()),
    "sum of axes": (lambda x: x.sum((0, -1), keepdims=True), lambda a: a.sum((0, -1), keepdims=True)),
    "sum from": (lambda x: x.sum(axis=1, initial=3.0), lambda a: a.sum(1) + 3),
    "mean": (lambda x: x.mean(), lambda a: a.mean()),
    "mean of axes": (lambda x: x.mean((0, 1), keep_dims=True), lambda a: a.mean((0, 1), keepdims=True)),
    "prod": (lambda x: x.prod(1), lambda a: a.prod(1)),
    "max": (lambda x: x.max(), lambda a: a.max()),
    "max of an axis": (lambda x: x.max(axis=-1, keepdims=True), lambda a: a.max(-1, keepdims=True)),
    "max from": (lambda x: x.max(axis=0, initial=0.5), lambda a: a.max(0, initial=0.5)),
    "min": (lambda x: x.min(axis=0), lambda a: a.min(0)),
    "all": (lambda x: (x > -9).all(), lambda a: (a > -9).all()),
    "any": (lambda x: (x > 1).any(axis=2), lambda a: (a > 1).any(2)),
    "argmax": (lambda x: x.argmax(), lambda a: a.argmax()),
    "argmin of an axis": (lambda x: x.argmin(axis=1), lambda a: a.argmin(1)),
    "var": (lambda x: x.var(axis=1, ddof=1), lambda a: a.var(1, ddof=1)),
    "std": (lambda x: x.std(keepdims=True), lambda a: a.std(keepdims=True)),
    "ptp": (lambda x: x.ptp(axis=1), lambda a: a.ptp(1)),
    "cumsum": (lambda x: x.cumsum(axis=1), lambda a: a.cumsum(1)),
    "cumsum of all": (lambda x: x.cumsum(), lambda a: a.cumsum()),
    "clip": (lambda x: x.clip(-0.5, 0.5), lambda a: a.clip(-0.5, 0.5)),
    "abs": (lambda x: x.abs(), np.abs),
    "fill": (lambda x: x.fill(3.0), lambda a: np.full_like(a, 3)),
    "repeat": (lambda x: x.repeat(2, axis=1), lambda a: a.repeat(2, 1)),
    "repeat of all": (lambda x: x.repeat(2), lambda a: a.repeat(2)),
    "repeat by a list": (lambda x: x.repeat([1, 0, 2], axis=1), lambda a: a.repeat([1, 0, 2], 1)),
    "take": (lambda x: x.take(Tensor([0, 5, 2]), axis=1), lambda a: a.take([0, 5, 2], 1, mode="clip")),
    "take wrapped": (lambda x: x.take(Tensor([0, 30, -1]), mode="wrap"), lambda a: a.take([0, 30, -1], mode="wrap")),
    "diagonal": (lambda x: x.diagonal(1, 1, 2), lambda a: a.diagonal(1, 1, 2)),
    "trace": (lambda x: x.trace(-1, 0, 2), lambda a: a.trace(-1, 0, 2)),
    "resize smaller": (lambda x: x.resize(2, 5), lambda a: np.resize(a.ravel()[:10], (2, 5))),
    "resize larger": (lambda x: x.resize((5, 5)), lambda a: np.append(a.ravel(), np.zeros(1)).reshape(5, 5)),
    "select": (lambda x: x.select(x > 0, x * 2.0), lambda a: np.where(a > 0, a, a * 2)),
    "searchsorted": (lambda x: Tensor([1, 2, 5]).searchsorted(Tensor([[0, 2], [3, 9]])),
                     lambda a: np.searchsorted([1, 2, 5], [[0, 2], [3, 9]])),
    "searchsorted right": (lambda x: Tensor([1, 2, 5]).searchsorted([2, 5], side="right"),
                           lambda a: np.searchsorted([1, 2, 5], [2, 5], "right")),
    "choose": (lambda x: Tensor([2, 0, 1]).choose([Tensor([0, 1, 2]), Tensor([3, 4, 5]), Tensor([6, 7, 8])]),
               lambda a: np.choose([2, 0, 1], [[0, 1, 2], [3, 4, 5], [6, 7, 8]])),
    "argmax_with_value": (lambda x: x.argmax_with_value(axis=1)[1], lambda a: a.max(1)),
    "item": (lambda x: x.item((1, 2, 3)), lambda a: a.item(1, 2, 3)),
    "itemset": (lambda x: x.itemset((0, 1, 2), 9.0)[0, 1, 2], lambda a: 9),
    "exp": (lambda x: x.exp(), np.exp),
    "tanh": (lambda x: x.tanh(), np.tanh),
    "square": (lambda x: x.square(), np.square),
    "pow": (lambda x: x.pow(2), lambda a: a**2),
    "matmul": (lambda x: x.matmul(Tensor(A.swapaxes(1, 2))), lambda a: a @ A.swapaxes(1, 2)),
    "log1p": (lambda x: x.abs().log1p(), lambda a: np.log1p(np.abs(a))),
    "isfinite": (lambda x: x.isfinite(), np.isfinite),
}  # fmt: skip


@pytest.mark.parametrize("mode", [1, 0], ids=["eager", "graph"])
@pytest.mark.parametrize("name", CASES)
def test_a_method_equals_numpys(name, mode):
    of_tensor, of_array = CASES[name]
    ms.set_context(mode=mode)
    function = of_tensor if mode or name == "itemset" else ms.ms_function(of_tensor)  # itemset reads elements
    found, wanted = function(Tensor(A)).asnumpy(), np.asarray(of_array(A))
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("call, error", [
    (lambda x: x.reshape(5, 5), ValueError), (lambda x: x.reshape(-1, -1), ValueError), (lambda x: x.reshape(2.0), TypeError),
    (lambda x: x.transpose(0, 0, 1), ValueError), (lambda x: x.squeeze(0), ValueError), (lambda x: x.sum(3), ValueError),
    (lambda x: x.sum("a"), TypeError), (lambda x: x.sum((0, 0)), ValueError), (lambda x: x.expand_dims(9), ValueError),
    (lambda x: x.flatten(order="K"), ValueError), (lambda x: x.flatten(order=1), TypeError), (lambda x: x.item(), ValueError),
    (lambda x: x.astype("nothing"), TypeError), (lambda x: x.repeat(-1), ValueError), (lambda x: x.repeat(1.5), TypeError),
    (lambda x: x.take(Tensor([0]), mode="other"), ValueError), (lambda x: x.diagonal(0, 1, 1), ValueError),
    (lambda x: x.searchsorted(1, side="up"), ValueError), (lambda x: x.nothing, AttributeError),
])  # fmt: skip
def test_errors(call, error):
    with pytest.raises(error):
        call(Tensor(A))


def test_element_types():
    x = Tensor(V)
    assert x.astype(ms.float16).dtype is ms.float16 and x.astype("float32").dtype is ms.float32
    assert x.astype(np.int8).dtype is ms.int8 and x.sum().dtype is ms.int32 and x.mean().dtype is ms.int32
    assert (x > 1).sum().asnumpy() == 3 and x.argmax().dtype is ms.int32
    assert x.set_dtype(ms.float32) is ms.float32 and x.dtype is ms.float32
    assert Tensor(A).copy().asnumpy() is not A and x.tolist() == [3, 1, 2, 7]


def test_every_method_that_is_a_function_is_there():
    missing = [name for name in sorted(tensor_methods.FUNCTIONS) if not callable(getattr(Tensor(A), name, None))]
    assert not missing
