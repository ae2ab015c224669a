"""Parts of tensors, read and written, against NumPy."""

import numpy as np
import pytest
from mindspore import Tensor, ops

from cairn.ms import gradient

SHAPE = (3, 4, 5)
A = np.arange(60, dtype=np.float32).reshape(SHAPE)
MASK = A[:, :, 0] % 3 == 0
INDICES = [
    0, -1, (1, 2), (1, 2, 3), slice(None), slice(1, None), slice(None, None, 2), slice(None, None, -1), slice(2, 0, -1),
    (slice(None), 1), (Ellipsis, 1), (1, Ellipsis), (0, Ellipsis, 2), None, (None, 1), (slice(None), None, 2),
    (slice(0, 2), slice(1, 3), slice(2, 5)), (slice(5, 2),), np.array([0, 2]), [0, 2], [2, 2, 0], np.array([[0, 1], [2, 0]]),
    np.array([-1, 0]), (np.array([0, 1]), np.array([1, 3])), (slice(None), np.array([0, 3])),
    (np.array([0, 1]), slice(None), np.array([1, 3])), (slice(None), np.array([0, 1]), np.array([1, 3])),
    (0, slice(None), np.array([1, 3])), (np.array([0, 1]), 2), (np.array([[0], [1]]), np.array([1, 3])),
    (slice(0, 2), np.array([0, 1]), slice(None, None, 2)), (None, np.array([0, 1]), None), A > 30, MASK, MASK[:, 0],
    (slice(None), np.array([True, False, True, True])), (Ellipsis, np.array([0, 4])), (np.array(1), 2),
]  # fmt: skip


def given(index):
    if isinstance(index, np.ndarray):
        return Tensor(index)
    return tuple(given(each) for each in index) if isinstance(index, tuple) else index


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_reading(index):
    found = Tensor(A)[given(index)].asnumpy()
    assert found.shape == A[index].shape
    np.testing.assert_array_equal(found, A[index])


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_writing(index):
    for value in (7.0, np.full(A[index].shape, 3, np.float32) + np.arange(A[index].size).reshape(A[index].shape)):
        expected = A.copy()
        rows = np.unique(np.arange(60).reshape(SHAPE)[index])
        if np.size(value) > 1 and rows.size < A[index].size:
            continue  # one place twice: which value stays is open
        expected[index] = value
        x = Tensor(A)
        x[given(index)] = Tensor(value) if np.size(value) > 1 else float(np.sum(value))
        np.testing.assert_array_equal(x.asnumpy(), expected)


@pytest.mark.parametrize("index", [index for index in INDICES if A[index].size], ids=str)
def test_gradients_of_reading(index):
    w = np.asarray(np.random.rand(*A[index].shape), np.float32)
    _, (dx,), _ = gradient.differentiate(lambda x: x[given(index)] * Tensor(w), [Tensor(A)], positions=[0])
    expected = np.zeros(60, np.float32)
    np.add.at(expected, np.arange(60).reshape(SHAPE)[index].ravel(), w.ravel())
    np.testing.assert_allclose(dx.asnumpy().ravel(), expected, rtol=1e-6)


def test_gradients_of_writing():
    def f(x, v):
        y = x * 2.0
        y[1] = v
        return y

    x, v = Tensor(np.ones((3, 2), np.float32)), Tensor(np.ones(2, np.float32))
    dx, dv = ops.GradOperation(get_all=True)(f)(x, v)
    assert dx.asnumpy().tolist() == [[2, 2], [0, 0], [2, 2]] and dv.asnumpy().tolist() == [1, 1]


def test_a_chain_of_parts_writes_to_the_parent():
    x = Tensor(np.zeros((2, 3), np.float32))
    x[1][2] = 5.0
    assert x.asnumpy()[1, 2] == 5


def test_writing_casts_to_the_tensors_type():
    x = Tensor(np.zeros(3, np.int32))
    x[1] = 2.0
    assert x.asnumpy().tolist() == [0, 2, 0] and x.asnumpy().dtype == np.int32


@pytest.mark.parametrize("index", [3, -4, (0, 9), (0, 0, 0, 0), (Ellipsis, Ellipsis), "a", 1.5])
def test_bad_indices(index):
    with pytest.raises(IndexError):
        Tensor(A)[index]


def test_a_value_of_another_shape_is_an_error():
    with pytest.raises(ValueError):
        Tensor(A)[0] = Tensor(np.ones(3, np.float32))


def test_iteration_and_length():
    assert [row.shape for row in Tensor(A)] == [(4, 5)] * 3 and len(Tensor(A)) == 3
    with pytest.raises(TypeError):
        iter(Tensor(1.0))
