"""Primitives of sparse tensors against the dense arithmetic, and those that hold state outside of graphs."""

import numpy as np
import pytest
import mindspore as ms
import mindspore.nn as nn
import mindspore.ops.operations as P
import mindspore.ops.operations.sparse_ops as S
from mindspore import Parameter, Tensor


def parts(dense):
    """(indices, values, shape) of the elements that are not 0."""
    places = np.argwhere(dense)
    return Tensor(places.astype(np.int64)), Tensor(dense[tuple(places.T)]), Tensor(np.array(dense.shape, np.int64))


def whole(indices, values, shape):
    made = np.zeros(tuple(shape.asnumpy() if isinstance(shape, Tensor) else shape), values.asnumpy().dtype)
    np.add.at(made, tuple(indices.asnumpy().T), values.asnumpy())
    return made


A = np.array([[1, 0, 2, 0], [0, 0, 3, 4], [5, 0, 0, 0]], np.float32)
B = np.array([[0, 6, -2, 0], [0, 0, 1, 0], [0, 0, 0, 7]], np.float32)


def test_sums():
    made = S.SparseAdd()(*parts(A), *parts(B), Tensor(0, ms.float32))
    assert np.array_equal(whole(*made), A + B)
    kept = S.SparseAdd()(*parts(A), *parts(B), Tensor(4.5, ms.float32))
    assert sorted(kept[1].asnumpy()) == [5, 6, 7]
    assert np.array_equal(S.SparseTensorDenseAdd()(*parts(A), Tensor(B)).asnumpy(), A + B)


@pytest.mark.parametrize("name, apply", [("Add", np.add), ("Mul", np.multiply), ("Div", np.divide)])
def test_elements_with_those_of_a_dense_tensor(name, apply):
    dense = np.array([2, 4, 8, 16], np.float32)
    made = getattr(S, f"SparseDenseCwise{name}")()(*parts(A), Tensor(dense))
    assert np.allclose(made.asnumpy(), apply(A, dense)[A != 0])


def test_extremes_and_softmax():
    for name, apply in (("SparseSparseMaximum", np.maximum), ("SparseSparseMinimum", np.minimum)):
        indices, values = getattr(S, name)()(*parts(A), *parts(B))
        assert np.array_equal(whole(indices, values, A.shape), apply(A, B))
    rows = np.where(A != 0, np.exp(A), 0)
    made = whole(parts(A)[0], S.SparseSoftmax()(*parts(A)), A.shape)
    assert np.allclose(made, rows / rows.sum(1, keepdims=True))


def test_parts_and_shapes():
    made = S.SparseSlice()(*parts(A), Tensor([0, 1], ms.int64), Tensor([2, 3], ms.int64))
    assert np.array_equal(whole(*made), A[:2, 1:])
    indices, shape = S.SparseReshape()(parts(A)[0], parts(A)[2], Tensor([2, -1], ms.int64))
    assert np.array_equal(whole(indices, parts(A)[1], shape), A.reshape(2, 6))
    indices, values, shapes = S.SparseSplit(2)(Tensor(1, ms.int64), *parts(A))
    for at, part in enumerate(np.split(A, 2, 1)):
        assert np.array_equal(whole(indices[at], values[at], shapes[at]), part)
    a, b = parts(A), parts(B)
    made = S.SparseConcat(1)([a[0], b[0]], [a[1], b[1]], [a[2], b[2]])
    assert np.array_equal(whole(*made), np.concatenate([A, B], 1))


def test_empty_rows_are_filled():
    holed = np.array([[0, 0], [3, 0], [0, 0]], np.float32)
    indices, values, empty, moved = S.SparseFillEmptyRows()(*parts(holed), Tensor(9, ms.float32))
    assert indices.asnumpy().tolist() == [[0, 0], [1, 0], [2, 0]] and values.asnumpy().tolist() == [9, 3, 9]
    assert empty.asnumpy().tolist() == [True, False, True] and moved.asnumpy().tolist() == [1]


def csr(dense):
    return S.SparseTensorToCSRSparseMatrix()(*parts(dense))


def dense_of(matrix):
    return S.CSRSparseMatrixToDense()(*matrix).asnumpy()


def test_matrices_in_csr_form():
    assert np.array_equal(dense_of(csr(A)), A)
    assert np.array_equal(whole(*S.CSRSparseMatrixToSparseTensor()(*csr(A))), A)
    assert np.array_equal(dense_of(S.SparseMatrixTranspose()(*csr(A))), A.T)
    assert S.SparseMatrixNNZ()(*csr(A)).asnumpy().tolist() == [5]
    two = Tensor(2, ms.float32), Tensor(3, ms.float32)
    assert np.array_equal(dense_of(S.SparseMatrixAdd()(*csr(A), *csr(B), *two)), 2 * A + 3 * B)
    assert np.array_equal(dense_of(S.SparseMatrixSparseMatMul(transpose_b=True)(*csr(A), *csr(B))), A @ B.T)
    wide = np.arange(8, dtype=np.float32).reshape(4, 2)
    assert np.array_equal(S.SparseMatrixMatMul()(*csr(A), Tensor(wide)).asnumpy(), A @ wide)


def test_nested_rows():
    splits, values = Tensor([0, 2, 2, 3], ms.int64), Tensor([4.0, 5, 6], ms.float32)
    made = S.RaggedTensorToSparse()([splits], values)
    assert np.array_equal(whole(*made), [[4, 5], [0, 0], [6, 0]])
    from mindspore.ops.operations.sparse_ops import RaggedTensorToTensor

    dense = RaggedTensorToTensor(1, ["ROW_SPLITS"])(Tensor([-1, 3], ms.int64), values, Tensor(-1, ms.float32), [splits])
    assert dense.asnumpy().tolist() == [[4, 5, -1], [-1, -1, -1], [6, -1, -1]]


@pytest.mark.parametrize("operation, wanted", [("a-b", [[1], [4, 5]]), ("intersection", [[2], []]), ("union", [[1, 2, 3], [4, 5, 6, 7]])])
def test_sets_of_each_row(operation, wanted):
    x, y = Tensor([[1, 2, 2], [4, 5, 5]], ms.int32), Tensor([[2, 3], [6, 7]], ms.int32)
    indices, values, shape = S.DenseToDenseSetOperation(operation)(x, y)
    rows = [[], []]
    for (row, _), value in zip(indices.asnumpy(), values.asnumpy()):
        rows[row].append(int(value))
    assert rows == wanted and shape.asnumpy().tolist() == [2, max(map(len, wanted))]


def test_a_buffer_goes_round():
    held = [Parameter(Tensor(np.zeros((3, 2), np.float32)), name="state"), Parameter(Tensor(np.zeros((3, 1), np.int32)), name="action")]
    count, head = (Parameter(Tensor(0, ms.int32), name=name) for name in ("count", "head"))
    form = [(2,), (1,)], [ms.float32, ms.int32]
    append, item, sample = P.BufferAppend(3, *form), P.BufferGetItem(3, *form), P.BufferSample(3, 2, *form)
    for i in range(4):
        append(held, [Tensor(np.full(2, i, np.float32)), Tensor(np.array([i], np.int32))], count, head)
    assert [int(item(held, count, head, Tensor(i, ms.int64))[1].asnumpy()[0]) for i in (0, 1, -1)] == [1, 2, 3]
    state, action = sample(held, Tensor([2, 0], ms.int64), count, head)
    assert action.asnumpy().reshape(-1).tolist() == [3, 1] and state.asnumpy()[0].tolist() == [3, 3]
    with pytest.raises(ValueError):
        item(held, count, head, Tensor(3, ms.int64))


def test_arrays_and_queues_of_tensors():
    array = nn.TensorArray(ms.float32, (2,), dynamic_size=True, size=3)
    for i in range(4):
        array.write(i, Tensor(np.full(2, i, np.float32)))
    assert array.size().asnumpy() == 4 and array.read(2).asnumpy().tolist() == [2, 2]
    assert array.stack().asnumpy()[:, 0].tolist() == [0, 1, 2, 3]
    array.clear(), array.close()
    queue = nn.TensorsQueue(ms.float32, ((2,),), 2, "queue")
    for i in range(2):
        queue.put((Tensor(np.full(2, i, np.float32)),))
    with pytest.raises(RuntimeError):
        queue.put((Tensor(np.zeros(2, np.float32)),))
    assert queue.get()[0].asnumpy()[0] == 0 and queue.size().asnumpy() == 2
    assert queue.pop()[0].asnumpy()[0] == 0 and queue.size().asnumpy() == 1
    queue.close()


def test_functions_of_arrays():
    split = P.PyFunc(lambda x: (x.sum(keepdims=True), np.sort(x)), [ms.float32], [(3,)], [ms.float32, ms.float32], [(1,), (3,)])
    total, ordered = split(Tensor([3.0, 1, 2], ms.float32))
    assert total.asnumpy().tolist() == [6] and ordered.asnumpy().tolist() == [1, 2, 3]
    wrong = P.PyFunc(lambda x: x.astype(np.float64), [ms.float32], [(3,)], [ms.float32], [(3,)])
    with pytest.raises(TypeError):
        wrong(Tensor([3.0, 1, 2], ms.float32))
    cube = ms.ops.Custom(lambda x: x**3, (3,), ms.float32, "pyfunc", bprop=lambda x, out, slope: 3 * x * x * slope)
    assert ms.ops.grad(lambda x: cube(x))(Tensor([1.0, 2, 3], ms.float32)).asnumpy().tolist() == [3, 12, 27]


@pytest.mark.parametrize("norm", ["backward", "forward", "ortho"])
def test_fourier_transforms_of_some_size(norm):
    from mindspore.ops.operations.math_ops import FFTWithSize

    x = np.random.default_rng(0).random((2, 6)).astype(np.float32)
    half = FFTWithSize(1, False, True, norm)(Tensor(x))
    assert np.allclose(half.asnumpy(), np.fft.rfft(x, norm=norm), atol=1e-5)
    back = FFTWithSize(1, True, True, norm, signal_sizes=(6,))(half)
    assert np.allclose(back.asnumpy(), x, atol=1e-5)
