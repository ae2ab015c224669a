"""Primitives of sparse tensors as (indices, values, shape), of matrices as CSR, and of ragged rows. Which elements there are is found in
NumPy, which ends a captured graph; values are computed by operators, so gradients go through them."""

import numpy as np
from cairn.ms import core
from cairn.ms.numerics import arrays, basic, sparse
from mindspore.common.sparse_tensor import CSRTensor
from mindspore.common.tensor import Tensor
from mindspore.ops.operations._form import REQUIRED, primitive, same_type, static

from cairn.ms.tensor import wrap


def _array(x):
    return x.asnumpy() if isinstance(x, Tensor) else np.asarray(x)


def _shape(x):
    return tuple(int(n) for n in _array(x))


def _picked(values, places):
    return core.gather(values, np.asarray(places, np.int64), axis=0)


def _joined(*values):
    return core.concat(*values, axis=0)


def _check_coo(name, indices, values, shape):
    """What every (indices, values, shape) must hold."""
    rank = len(_array(shape))
    if len(indices.shape) != 2 or len(values.shape) != 1:
        raise ValueError(f"For '{name}', indices must be [n, rank] and values [n], but they are {tuple(indices.shape)} and {tuple(values.shape)}.")
    if indices.shape[0] != values.shape[0] or indices.shape[1] != rank:
        raise ValueError(f"For '{name}', indices {tuple(indices.shape)} do not fit {values.shape[0]} values of rank {rank}.")


def _merged(first, second, shape):
    """(sorted distinct places, for each of both: values at those places, 0 elsewhere)."""
    flat = [np.ravel_multi_index(tuple(_array(indices).T), shape) for indices, _ in (first, second)]
    kinds, numbers = np.unique(np.concatenate(flat), return_inverse=True)
    numbers = numbers.reshape(-1)
    parts = np.split(numbers, [len(flat[0])])
    spread = [arrays.unsorted_segment(values, Tensor(part), len(kinds), "sum") for (_, values), part in zip((first, second), parts)]
    return np.stack(np.unravel_index(kinds, shape), 1).astype(basic.nptype(first[0])), spread


def _sparse_add(self, x1_indices, x1_values, x1_shape, x2_indices, x2_values, x2_shape, thresh):
    for each in ((x1_indices, x1_values, x1_shape), (x2_indices, x2_values, x2_shape)):
        _check_coo("SparseAdd", *each)
    shape = _shape(x1_shape)
    if shape != _shape(x2_shape):
        raise ValueError(f"For 'SparseAdd', the shapes must be equal, but they are {shape} and {_shape(x2_shape)}.")
    if basic.nptype(x1_values) != basic.nptype(x2_values):
        raise TypeError(f"For 'SparseAdd', the dtypes of the values must be equal, but they are {x1_values.dtype} and {x2_values.dtype}.")
    places, (a, b) = _merged((x1_indices, x1_values), (x2_indices, x2_values), shape)
    made = core.add(a, b)
    least = _array(thresh)
    kept = np.nonzero(np.abs(_array(made)) >= least)[0] if least > 0 else np.arange(len(places))
    return wrap(places[kept]), _picked(made, kept), wrap(np.array(shape, basic.nptype(x1_shape) if isinstance(x1_shape, Tensor) else np.int64))


SparseAdd = primitive("SparseAdd", _sparse_add, "(indices, values, shape) of the sum, without values below the threshold.")


def _dense_add(self, x1_indices, x1_values, x1_shape, x2):
    shape = static(x1_shape, "SparseTensorDenseAdd", "x1_shape")
    if len(x1_indices.shape) != 2 or len(x1_values.shape) != 1 or x1_indices.shape[0] != x1_values.shape[0]:
        raise ValueError(f"For 'SparseTensorDenseAdd', indices of {tuple(x1_indices.shape)} do not fit values of {tuple(x1_values.shape)}.")
    if tuple(shape) != tuple(x2.shape):
        raise ValueError(f"For 'SparseTensorDenseAdd', x1_shape must be {tuple(x2.shape)}, but it is {shape}.")
    return core.add(arrays.scatter_new(x1_indices, x1_values, shape), x2)


SparseTensorDenseAdd = primitive("SparseTensorDenseAdd", _dense_add, "A dense tensor with the elements of a sparse one added.")


def _elementwise(name, row):
    def compute(self, x1_indices, x1_values, x1_shape, x2):
        return row(x1_values, same_type(sparse.at(x2, x1_indices, static(x1_shape, name, "x1_shape")), x1_values))

    return primitive(name, compute, "The values combined with those of a dense tensor, which broadcasts, at their places.")


SparseDenseCwiseAdd = _elementwise("SparseDenseCwiseAdd", core.add)
SparseDenseCwiseMul = _elementwise("SparseDenseCwiseMul", core.mul)
SparseDenseCwiseDiv = _elementwise("SparseDenseCwiseDiv", core.div)


def _softmax(self, indices, values, shape):
    _check_coo("SparseSoftmax", indices, values, shape)
    _, rows = np.unique(_array(indices)[:, :-1], axis=0, return_inverse=True)
    rows = rows.reshape(-1).astype(np.int64)
    count = int(rows.max()) + 1
    raised = core.exp(core.sub(values, _picked(arrays.unsorted_segment(values, Tensor(rows), count, "max"), rows)))
    return core.div(raised, _picked(arrays.unsorted_segment(raised, Tensor(rows), count, "sum"), rows))


SparseSoftmax = primitive("SparseSoftmax", _softmax, "Softmax over the elements of each row.")


def _slice(self, indices, values, shape, start, size):
    _check_coo("SparseSlice", indices, values, shape)
    places, start, size, whole = _array(indices), _array(start), _array(size), _array(shape)
    size = np.minimum(size, np.maximum(whole - start, 0))
    kept = np.nonzero(((places >= start) & (places < start + size)).all(1))[0]
    return wrap((places[kept] - start).astype(np.int64)), _picked(values, kept), wrap(size.astype(np.int64))


SparseSlice = primitive("SparseSlice", _slice, "(indices, values, shape) of a part.")


def _addmm(self, x1_indices, x1_values, x1_shape, x2_indices, x2_values, x2_shape, x3_dense, alpha, beta):
    rows, columns = _array(x2_indices)
    alpha, beta = (same_type(each, x1_values) for each in (alpha, beta))
    width = x3_dense.shape[1]
    terms = core.mul(_picked(x3_dense, columns), basic.reshape(core.mul(x2_values, alpha), (-1, 1)))
    kinds, numbers = np.unique(rows, return_inverse=True)
    product = arrays.unsorted_segment(terms, Tensor(numbers.reshape(-1).astype(np.int64)), len(kinds), "sum")
    places = np.stack([np.repeat(kinds, width), np.tile(np.arange(width), len(kinds))]).astype(basic.nptype(x1_indices))
    indices = np.concatenate([_array(x1_indices), places], 1)
    return wrap(indices), _joined(core.mul(x1_values, beta), basic.reshape(product, (-1,))), x1_shape


Sspaddmm = primitive("Sspaddmm", _addmm, "(indices, values, shape) of beta * x1 + alpha * x2 @ x3, as elements behind each other.")


def _concat(self, indices, values, shapes):
    axis, base, places = self.concat_dim, 0, []
    for each, shape in zip(indices, shapes):
        moved = np.array(_array(each))
        moved[:, axis] += base
        base += _shape(shape)[axis]
        places.append(moved)
    places = np.concatenate(places)
    order = np.lexsort(places.T[::-1])
    whole = np.array(_shape(shapes[0]))
    whole[axis] = base
    return wrap(places[order]), _picked(_joined(*values), order), wrap(whole.astype(np.int64))


SparseConcat = primitive("SparseConcat", _concat, "(indices, values, shape) of several joined along an axis.", concat_dim=0)


def _extreme(name, row):
    def compute(self, x1_indices, x1_values, x1_shape, x2_indices, x2_values, x2_shape):
        places, spread = _merged((x1_indices, x1_values), (x2_indices, x2_values), _shape(x1_shape))
        return wrap(places), row(*spread)

    return primitive(name, compute, "(indices, values) of the elements of either, of which missing ones are 0.")


SparseSparseMaximum, SparseSparseMinimum = _extreme("SparseSparseMaximum", core.maximum), _extreme("SparseSparseMinimum", core.minimum)


def _reshape(self, indices, shape, new_shape):
    old, new = _shape(shape), list(_shape(new_shape))
    if -1 in new:
        new[new.index(-1)] = int(np.prod(old)) // -int(np.prod(new))
    flat = np.ravel_multi_index(tuple(_array(indices).T), old)
    return wrap(np.stack(np.unravel_index(flat, new), 1).astype(np.int64)), wrap(np.array(new, np.int64))


SparseReshape = primitive("SparseReshape", _reshape, "(indices, shape) of the same elements in another shape.")


def _split(self, split_dim, indices, values, shape):
    axis, places, whole = int(_array(split_dim).reshape(-1)[0]), _array(indices), np.array(_shape(shape))
    sizes = [len(part) for part in np.array_split(np.arange(whole[axis]), self.num_split)]
    made, start = [], 0
    for size in sizes:
        kept = np.nonzero((places[:, axis] >= start) & (places[:, axis] < start + size))[0]
        moved, part = np.array(places[kept]), np.array(whole)
        moved[:, axis] -= start
        part[axis] = size
        made.append((wrap(moved), _picked(values, kept), wrap(part.astype(np.int64))))
        start += size
    return tuple(zip(*made))


SparseSplit = primitive("SparseSplit", _split, "(all indices, all values, all shapes) of parts along an axis.", num_split=1)


def _fill_rows(self, indices, values, shape, default):
    places, (rows, *_) = _array(indices), _shape(shape)
    empty = np.setdiff1d(np.arange(rows), places[:, 0])
    more = np.zeros((len(empty), places.shape[1]), places.dtype)
    more[:, 0] = empty
    whole = np.concatenate([places, more])
    order = np.argsort(whole[:, 0], kind="stable")
    filled = _joined(values, core.broadcast_to(basic.reshape(same_type(default, values), (1,)), [len(empty)])) if len(empty) else values
    indicator = np.zeros(rows, bool)
    indicator[empty] = True
    return wrap(whole[order]), _picked(filled, order), wrap(indicator), wrap(np.argsort(order)[: len(places)].astype(np.int64))


SparseFillEmptyRows = primitive("SparseFillEmptyRows", _fill_rows, "(indices, values, which rows were empty, where each element is now).")


# Matrices as (shape, ends of batches, ends of rows, columns, values).


def _csr_of(places, values, shape, kind=np.int32):
    """places are sorted by rows."""
    *batch, rows, _ = shape
    count = batch[0] if batch else 1
    number = places[:, 0] if batch else np.zeros(len(places), np.int64)
    ends = np.zeros((count, rows + 1), np.int64)
    np.add.at(ends, (number, places[:, -2] + 1), 1)
    batches = np.concatenate([[0], np.cumsum(np.bincount(number, minlength=count))])
    return (wrap(np.array(shape, kind)), wrap(batches.astype(kind)), wrap(ends.cumsum(1).reshape(-1).astype(kind)),
            wrap(places[:, -1].astype(kind)), values)  # fmt: skip


def _places(shape, batches, ends, columns):
    """[n, rank] of all elements of a CSR matrix."""
    shape = _shape(shape)
    rows, count = shape[-2], len(_array(batches)) - 1
    lengths = np.diff(_array(ends).reshape(count, rows + 1), axis=1)
    within = [np.repeat(np.arange(rows), each) for each in lengths]
    made = [np.concatenate(within), _array(columns)]
    if len(shape) == 3:
        made.insert(0, np.repeat(np.arange(count), lengths.sum(1)))
    return np.stack(made, 1).astype(np.int64)


def _of_coo(self, indices, values, shape):
    places = _array(indices)
    order = np.lexsort(places.T[::-1])
    return _csr_of(places[order].astype(np.int64), _picked(values, order), _shape(shape), basic.nptype(indices))


def _to_coo(self, shape, batches, ends, columns, values):
    return wrap(_places(shape, batches, ends, columns).astype(basic.nptype(columns))), values, shape


def _to_dense(self, shape, batches, ends, columns, values):
    return arrays.scatter_new(wrap(_places(shape, batches, ends, columns)), values, _shape(shape))


def _of_dense(self, dense, indices):
    return _csr_of(_array(indices).astype(np.int64), core.gather_nd(dense, arrays.wide(indices)), tuple(dense.shape), basic.nptype(indices))


def _turned(places, values, shape):
    places = np.concatenate([places[:, :-2], places[:, :-3:-1]], 1)
    order = np.lexsort(places.T[::-1])
    return places[order], _picked(values, order), (*shape[:-2], shape[-1], shape[-2])


def _transpose(self, shape, batches, ends, columns, values):
    values = core.conj(values) if self.conjugate and basic.nptype(values).kind == "c" else values
    return _csr_of(*_turned(_places(shape, batches, ends, columns), values, _shape(shape)), basic.nptype(columns))


SparseTensorToCSRSparseMatrix = primitive("SparseTensorToCSRSparseMatrix", _of_coo, "The CSR form of elements by their places.")
CSRSparseMatrixToSparseTensor = primitive("CSRSparseMatrixToSparseTensor", _to_coo, "(indices, values, shape) of a CSR matrix.")
CSRSparseMatrixToDense = primitive("CSRSparseMatrixToDense", _to_dense, "The dense form of a CSR matrix.")
DenseToCSRSparseMatrix = primitive("DenseToCSRSparseMatrix", _of_dense, "The CSR form of elements of a dense matrix.")
SparseMatrixTranspose = primitive("SparseMatrixTranspose", _transpose, "The CSR form of the transposed matrix.", conjugate=False)
SparseMatrixNNZ = primitive(
    "SparseMatrixNNZ", lambda self, shape, batches, ends, columns, values: wrap(np.diff(_array(batches)).astype(np.int32)), "Elements of each matrix."
)
SparseMatrixMul = primitive(
    "SparseMatrixMul",
    lambda self, shape, batches, ends, columns, values, dense: (
        shape, batches, ends, columns, core.mul(values, sparse.at(dense, wrap(_places(shape, batches, ends, columns)), _shape(shape)))),
    "The CSR form of a matrix times a dense one, element by element.",
)  # fmt: skip


def _matrix_softmax(self, shape, batches, ends, columns, values):
    return shape, batches, ends, columns, _softmax(self, wrap(_places(shape, batches, ends, columns)), values, shape)


SparseMatrixSoftmax = primitive("SparseMatrixSoftmax", _matrix_softmax, "The CSR form of the softmax of each row.", dtype=None)


def _matrix_add(self, *inputs):
    *matrices, alpha, beta = inputs
    first, second = matrices[:5], matrices[5:]
    parts = [(wrap(_places(*each[:4])), core.mul(each[4], same_type(factor, each[4]))) for each, factor in ((first, alpha), (second, beta))]
    places, (a, b) = _merged(*parts, _shape(first[0]))
    return _csr_of(places.astype(np.int64), core.add(a, b), _shape(first[0]), basic.nptype(first[3]))


SparseMatrixAdd = primitive("SparseMatrixAdd", _matrix_add, "The CSR form of alpha * a + beta * b.")


def _side(dense, turned, adjoint):
    made = basic.swapped(dense, -1, -2) if turned or adjoint else dense
    return core.conj(made) if adjoint and basic.nptype(made).kind == "c" else made


def _sparse_matmul(self, *inputs):
    a = _side(_to_dense(self, *inputs[:5]), self.transpose_a, self.adjoint_a)
    b = _side(_to_dense(self, *inputs[5:]), self.transpose_b, self.adjoint_b)
    made = basic.matmul(a, b)
    places = np.argwhere(_array(made))
    return _csr_of(places, core.gather_nd(made, places), tuple(made.shape), basic.nptype(inputs[3]))


def _matmul(self, shape, batches, ends, columns, values, dense):
    a = _side(_to_dense(self, shape, batches, ends, columns, values), self.transpose_x1, self.adjoint_x1)
    made = basic.matmul(a, _side(dense, self.transpose_x2, self.adjoint_x2))
    made = basic.swapped(made, -1, -2) if self.transpose_output else made
    return core.conj(made) if self.conjugate_output and basic.nptype(made).kind == "c" else made


SparseMatrixSparseMatMul = primitive(
    "SparseMatrixSparseMatMul", _sparse_matmul, "The CSR form of a product.", transpose_a=False, transpose_b=False, adjoint_a=False, adjoint_b=False
)
SparseMatrixMatMul = primitive(
    "SparseMatrixMatMul", _matmul, "A CSR matrix times a dense one.", transpose_x1=False, transpose_x2=False, adjoint_x1=False, adjoint_x2=False,
    transpose_output=False, conjugate_output=False,
)  # fmt: skip


# Parts of CSRTensor as inputs of their own.


def _of_csr(name, function, doc):
    def compute(self, indptr, indices, values, shape, *others):
        return function(CSRTensor(indptr, indices, values, tuple(static(shape, name, "shape"))), *others)

    return primitive(name, compute, doc)


CSRReduceSum = _of_csr("CSRReduceSum", lambda x, axis: x.sum(axis), "Sums along an axis.")
CSRMV = _of_csr("CSRMV", lambda x, y: x.mv(y), "The product with a vector.")
CSRMM = _of_csr("CSRMM", lambda x, y: x.mm(y), "The product with a matrix.")
CSRMul = _of_csr("CSRMul", lambda x, y: (x * y).values, "The values times those of a dense tensor.")
CSRDiv = _of_csr("CSRDiv", lambda x, y: (x / y).values, "The values divided by those of a dense tensor.")
CSRGather = primitive(
    "CSRGather",
    lambda self, indptr, indices, dense, shape: sparse.at(
        dense, sparse.paired(sparse.rows_of(indptr, indices.shape[0]), indices), tuple(static(shape, "CSRGather", "shape"))),
    "Elements of a dense tensor at the places of a CSR matrix.",
)  # fmt: skip
CSR2COO = primitive("CSR2COO", lambda self, indptr, count: sparse.rows_of(indptr, count), "The row of each element.")
COO2CSR = primitive("COO2CSR", lambda self, rows, height: _row_ends(rows, height), "The ends of the rows.")


def _row_ends(rows, height):
    from mindspore.ops.function.sparse_func import coo2csr

    return coo2csr(rows, height)


# Ragged rows and sets.


def _ragged_places(splits):
    """[n, rank] of the values of nested rows, and the shape that holds them."""
    ends = [_array(each) for each in splits]
    places = np.arange(ends[-1][-1])[:, None]
    shape = [len(ends[0]) - 1]
    for each in reversed(ends):
        row = np.searchsorted(each, places[:, 0], side="right") - 1
        places = np.concatenate([row[:, None], (places[:, 0] - each[row])[:, None], places[:, 1:]], 1)
    shape += [int(np.diff(each).max(initial=0)) for each in ends]
    return places, shape


def _ragged_sparse(self, splits, values):
    places, shape = _ragged_places(splits)
    inner = tuple(values.shape[1:])
    if inner:
        grid = np.stack(np.meshgrid(*(np.arange(n) for n in inner), indexing="ij"), -1).reshape(-1, len(inner))
        places = np.concatenate([np.repeat(places, len(grid), 0), np.tile(grid, (len(places), 1))], 1)
    return wrap(places.astype(np.int64)), basic.reshape(values, (-1,)), wrap(np.array([*shape, *inner], np.int64))


RaggedTensorToSparse = primitive("RaggedTensorToSparse", _ragged_sparse, "(indices, values, shape) of nested rows.", Tsplits=None)


def _row_splits(kind, partition):
    """The ends of rows by one of the forms that a partition has."""
    if kind == "ROW_SPLITS":
        return _array(partition)
    return np.concatenate([[0], np.cumsum(np.bincount(_array(partition)))])


def _ragged_dense(self, shape, values, default, partitions):
    kinds, given = list(self.row_partition_types), list(partitions)
    rows = None
    if kinds[0] == "FIRST_DIM_SIZE":
        rows, kinds, given = int(_array(given[0]).reshape(-1)[0]), kinds[1:], given[1:]
    splits = [_row_splits(kind, each) for kind, each in zip(kinds, given)]
    if rows is not None:
        splits[0] = np.concatenate([splits[0], np.full(max(rows + 1 - len(splits[0]), 0), splits[0][-1])])
    places, fit = _ragged_places(splits)
    fit = [*fit, *values.shape[1:]]
    whole = [n if n >= 0 else fit[i] for i, n in enumerate(_shape(shape))]
    kept = np.nonzero((places < whole[: places.shape[1]]).all(1))[0]
    base = core.broadcast_to(same_type(default, values), whole)
    return arrays.scatter_nd(base, wrap(places[kept]), _picked(values, kept), "update")


RaggedTensorToTensor = primitive(
    "RaggedTensorToTensor", _ragged_dense, "Nested rows in a dense tensor with a default elsewhere.", num_row_partition_tensors=REQUIRED,
    row_partition_types=REQUIRED,
)  # fmt: skip
_SETS = {"a-b": set.difference, "b-a": lambda a, b: b - a, "intersection": set.intersection, "union": set.union}


def _set_operation(self, rows, lead):
    """(indices, values, shape) of an operation on each row of two."""
    places, values, width = [], [], 0
    for number, (a, b) in enumerate(rows):
        made = sorted(_SETS[self.set_operation](set(a.tolist()), set(b.tolist())))
        width = max(width, len(made))
        at = np.unravel_index(number, lead)
        places += [(*at, i) for i in range(len(made))]
        values += made
    kind = rows[0][0].dtype
    return (wrap(np.array(places, np.int64).reshape(-1, len(lead) + 1)), wrap(np.array(values, kind)), wrap(np.array([*lead, width], np.int64)))


def _check_set(self):
    if self.set_operation not in _SETS:
        raise ValueError(f"For '{self.name}', 'set_operation' must be one of {', '.join(_SETS)}, but got {self.set_operation}.")


def _dense_sets(self, x1, x2):
    a, b = _array(x1), _array(x2)
    if a.shape[:-1] != b.shape[:-1]:
        raise ValueError(f"For 'DenseToDenseSetOperation', the shapes {a.shape} and {b.shape} must be equal but for the last axis.")
    return _set_operation(self, list(zip(a.reshape(-1, a.shape[-1]), b.reshape(-1, b.shape[-1]))), a.shape[:-1])


def _sparse_sets(self, x1, indices, values, shape):
    a, places, held = _array(x1), _array(indices), _array(values)
    lead = a.shape[:-1]
    number = np.ravel_multi_index(tuple(places[:, :-1].T), lead) if len(lead) else np.zeros(len(places), int)
    return _set_operation(self, [(row, held[number == i]) for i, row in enumerate(a.reshape(-1, a.shape[-1]))], lead)


_SET_ATTRIBUTES = {"set_operation": "a-b", "validate_indices": True}
DenseToDenseSetOperation = primitive("DenseToDenseSetOperation", _dense_sets, "A set operation on rows.", _check_set, **_SET_ATTRIBUTES)
DenseToSparseSetOperation = primitive("DenseToSparseSetOperation", _sparse_sets, "A set operation on rows.", _check_set, **_SET_ATTRIBUTES)


def _counted(self, indices, values, shape, weights):
    places, held, weight = _array(indices), _array(values), _array(weights)
    weight = weight if weight.size else np.ones(len(held))
    totals = {}
    for row, value, each in zip(places[:, 0] if places.shape[1] > 1 else np.zeros(len(held), int), held, weight):
        if self.maxlength < 0 or value < self.maxlength:
            key = (int(row), int(value))
            totals[key] = 1 if self.binary_output else totals.get(key, 0) + each
    width = max([self.minlength, *(key[1] + 1 for key in totals)])
    order = sorted(totals)
    single = places.shape[1] == 1
    whole = [width] if single else [_shape(shape)[0], width]
    return (wrap(np.array([key[1:] if single else key for key in order], np.int64)), wrap(np.array([totals[key] for key in order], _array(weights).dtype)),
            wrap(np.array(whole, np.int64)))  # fmt: skip


SparseCountSparseOutput = primitive(
    "SparseCountSparseOutput", _counted, "(indices, counts, shape) of how often each number is in its row.", binary_output=False, minlength=-1, maxlength=-1
)
