"""COOTensor, CSRTensor and RowTensor: what they hold, what they compute, in graphs and with gradients."""
import numpy as np
import pytest
import mindspore as ms
import mindspore.nn as nn
from mindspore import COOTensor, CSRTensor, RowTensor, Tensor, context, ops
from mindspore.ops import composite as C
from mindspore.ops import functional as F

context.set_context(mode=context.GRAPH_MODE, device_target='CPU')
DENSE = np.array([[0, 1, 0], [2, 0, 3]], np.float32)
MODES = [context.GRAPH_MODE, context.PYNATIVE_MODE]


def csr():
    return CSRTensor(Tensor([0, 1, 3], ms.int32), Tensor([1, 0, 2], ms.int32), Tensor([1, 2, 3], ms.float32), (2, 3))


def coo():
    return COOTensor(Tensor([[0, 1], [1, 0], [1, 2]], ms.int32), Tensor([1, 2, 3], ms.float32), (2, 3))


@pytest.mark.level0
@pytest.mark.platform_x86_cpu
@pytest.mark.env_onecard
def test_what_they_hold():
    x = csr()
    assert x.shape == (2, 3) and x.dtype == ms.float32 and x.size == 3 and x.itemsize == 4 and x.ndim == 2
    assert x.indptr.asnumpy().tolist() == [0, 1, 3] and x.indices.asnumpy().tolist() == [1, 0, 2]
    assert coo().indices.shape == (3, 2) and coo().values.asnumpy().tolist() == [1, 2, 3]
    rows = RowTensor(Tensor([0], ms.int32), Tensor([[1, 2]], ms.float32), (3, 2))
    assert rows.dense_shape == (3, 2) and rows.indices.asnumpy().tolist() == [0]
    assert len(x.to_tuple()) == 4 and len(coo().to_tuple()) == 3


@pytest.mark.parametrize("mode", MODES)
def test_conversions(mode):
    context.set_context(mode=mode)
    for x in (csr(), coo(), csr().to_coo(), coo().to_csr(), ops.dense_to_sparse_coo(Tensor(DENSE)), ops.dense_to_sparse_csr(Tensor(DENSE))):
        np.testing.assert_array_equal(x.to_dense().asnumpy(), DENSE)


@pytest.mark.parametrize("mode", MODES)
def test_products_and_sums(mode):
    context.set_context(mode=mode)
    vector, matrix = np.array([[1], [2], [3]], np.float32), np.arange(6).reshape(2, 3).astype(np.float32) + 1
    np.testing.assert_allclose(csr().mv(Tensor(vector)).asnumpy(), DENSE @ vector)
    np.testing.assert_allclose(csr().sum(1).asnumpy(), DENSE.sum(1, keepdims=True))
    np.testing.assert_allclose((csr() * Tensor(matrix)).to_dense().asnumpy(), DENSE * matrix)
    np.testing.assert_allclose((csr() / Tensor(matrix)).to_dense().asnumpy(), DENSE / matrix)
    one = Tensor(1, ms.float32)
    np.testing.assert_allclose(ops.csr_add(csr(), csr(), one, one).to_dense().asnumpy(), 2 * DENSE)


def test_functions_of_the_elements():
    np.testing.assert_allclose(ops.csr_sin(csr()).values.asnumpy(), np.sin([1, 2, 3]), rtol=1e-6)
    np.testing.assert_allclose(ops.coo_exp(coo()).values.asnumpy(), np.exp([1, 2, 3]), rtol=1e-6)
    assert csr().astype(ms.float64).dtype == ms.float64
    assert (csr().abs().values.asnumpy() == [1, 2, 3]).all()


def test_coalesce_adds_equal_places():
    x = COOTensor(Tensor([[0, 0], [0, 1], [0, 0]], ms.int64), Tensor([1, 2, 4], ms.float32), (1, 2)).coalesce()
    assert x.values.asnumpy().tolist() == [5, 2] and x.indices.asnumpy().tolist() == [[0, 0], [0, 1]]


class Scaled(nn.Cell):
    def construct(self, x, y):
        made = x * y
        return made, made.sum(1), x.values


class Made(nn.Cell):
    def construct(self, indptr, indices, values):
        return CSRTensor(indptr, indices, values, (2, 3))


def test_graphs_take_and_return_them():
    context.set_context(mode=context.GRAPH_MODE)
    made, sums, values = Scaled()(csr(), Tensor(np.full((2, 3), 2, np.float32)))
    assert isinstance(made, CSRTensor) and made.values.asnumpy().tolist() == [2, 4, 6]
    assert sums.asnumpy().tolist() == [[2], [10]] and values.asnumpy().tolist() == [1, 2, 3]
    x = csr()
    np.testing.assert_array_equal(Made()(x.indptr, x.indices, x.values).to_dense().asnumpy(), DENSE)


@pytest.mark.parametrize("mode", MODES)
def test_gradients_by_the_elements(mode):
    context.set_context(mode=mode)

    def product(indptr, indices, values, vector):
        return CSRTensor(indptr, indices, values, (2, 3)).mv(vector)

    x, vector = csr(), Tensor(np.array([[1], [2], [3]], np.float32))
    by_values, by_vector = F.grad(product, grad_position=(2, 3))(x.indptr, x.indices, x.values, vector)
    assert by_values.asnumpy().tolist() == [2, 1, 3] and by_vector.asnumpy().ravel().tolist() == DENSE.sum(0).tolist()

    def of_sparse(a, b):
        return a.mv(b)

    made = C.GradOperation(get_all=True)(of_sparse)(x, vector)
    assert made[0].values.asnumpy().tolist() == [2, 1, 3]


def test_parts_of_a_wrong_kind():
    with pytest.raises(TypeError):
        COOTensor(1, 2, 3)
    with pytest.raises(TypeError):
        CSRTensor(Tensor([0.5, 1.0]), Tensor([1]), Tensor([1.0]), (1, 1))
    with pytest.raises(ValueError):
        COOTensor(Tensor([0, 1]), Tensor([1.0, 2.0]), (2, 2))


def test_rows_that_do_not_fit_the_shape():
    indices = Tensor(np.int32([0, 1]))
    for values, shape in (((2, 4, 5), (3, 4)), ((2, 4), (3, 4, 5)), ((2, 4), (3, 5)), ((3, 4), (3, 4))):
        with pytest.raises(TypeError):
            RowTensor(indices, Tensor(np.zeros(values, np.float32)), shape)


def test_a_branch_makes_rows():
    class Net(nn.Cell):
        def construct(self, a, indices, values):
            x = RowTensor(indices, values, (5, 2))
            if a > 0:
                x = RowTensor(x.indices, x.values * 2, x.dense_shape)
            else:
                x = RowTensor(x.indices, x.values + 2, x.dense_shape)
            return x.indices, x.values

    context.set_context(mode=context.GRAPH_MODE)
    for a, wanted in ((1, 6), (0, 5)):
        indices, values = Net()(Tensor(a), Tensor(np.int32([0, 2])), Tensor(np.full((2, 2), 3, np.float32)))
        assert indices.asnumpy().tolist() == [0, 2] and (values.asnumpy() == wanted).all()
