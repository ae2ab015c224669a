"""Functions of COOTensor, CSRTensor and RowTensor."""

from mindspore.common.sparse_tensor import COOTensor, CSRTensor, RowTensor, sparse_of_dense
from mindspore.common.tensor import Tensor

from cairn.ms import core
from cairn.ms.numerics import arrays, sparse

make_coo_tensor = make_sparse_tensor = COOTensor
make_csr_tensor, make_row_tensor, make_row_tensor_inner = CSRTensor, RowTensor, RowTensor


def _part(name):
    return lambda x: getattr(x, name)


coo_tensor_get_indices = row_tensor_get_indices = csr_tensor_get_indices = sparse_tensor_get_indices = _part("indices")
coo_tensor_get_values = row_tensor_get_values = csr_tensor_get_values = sparse_tensor_get_values = _part("values")
coo_tensor_get_dense_shape = row_tensor_get_dense_shape = csr_tensor_get_shape = sparse_tensor_get_dense_shape = _part("shape")
csr_tensor_get_indptr = _part("indptr")


def dense_to_sparse_coo(tensor):
    """The elements that are not 0 as a COOTensor."""
    return _of_dense(tensor, COOTensor)


def dense_to_sparse_csr(tensor):
    """The elements that are not 0 of a matrix as a CSRTensor."""
    return _of_dense(tensor, CSRTensor)


def _of_dense(tensor, kind):
    if not isinstance(tensor, Tensor):
        raise TypeError(f"For a sparse tensor, the input should be a Tensor, but got {type(tensor).__name__}.")
    if len(tensor.shape) != 2:
        raise ValueError(f"For a sparse tensor, the input should have 2 dimensions, but got {len(tensor.shape)}.")
    return sparse_of_dense(tensor, kind)


def _expect(x, kind):
    if not isinstance(x, kind):
        raise TypeError(f"The input should be a {kind.__name__}, but got {type(x).__name__}.")
    return x


def csr_to_coo(tensor):
    return _expect(tensor, CSRTensor).to_coo()


def csr_to_dense(csr_tensor):
    return _expect(csr_tensor, CSRTensor).to_dense()


def coo_to_csr(tensor):
    return _expect(tensor, COOTensor).to_csr()


def coo_to_dense(tensor):
    return _expect(tensor, COOTensor).to_dense()


def csr2coo(indptr, nnz):
    """The row of each of nnz elements."""
    return sparse.rows_of(indptr, nnz)


def coo2csr(row_indices, height):
    """The ends of the rows, from the row of each element."""
    counts = arrays.unsorted_segment(core.identity(Tensor([1] * row_indices.shape[0], row_indices.dtype)), row_indices, height, "sum")
    return core.concat(Tensor([0], row_indices.dtype), core.cumsum(counts, axis=0), axis=0)


def csr_mv(csr_tensor, dense_vector):
    return _expect(csr_tensor, CSRTensor).mv(dense_vector)


def csr_mm(csr_tensor, dense):
    return _expect(csr_tensor, CSRTensor).mm(dense)


def csr_reduce_sum(csr_tensor, axis):
    return _expect(csr_tensor, CSRTensor).sum(axis)


def csr_mul(x, y):
    return (_expect(x, CSRTensor) * y).values


def csr_div(x, y):
    return (_expect(x, CSRTensor) / y).values


def csr_add(a, b, alpha, beta):
    return _expect(a, CSRTensor).add(_expect(b, CSRTensor), alpha, beta)


def csr_gather(indptr, indices, dense, sparse_shape):
    """Elements of a dense tensor at the places of a CSRTensor."""
    places = sparse.paired(sparse.rows_of(indptr, indices.shape[0]), indices)
    return sparse.at(dense, places, tuple(sparse_shape))


def csr_softmax(logits, dtype):
    """Softmax over the elements of each row."""
    from cairn.ms.numerics.basic import cast

    rows, count = logits.rows(), logits.shape[0]
    raised = core.exp(core.sub(logits.values, core.gather(arrays.segment(logits.values, rows, count, "max"), arrays.wide(rows), axis=0)))
    total = core.gather(arrays.segment(raised, rows, count, "sum"), arrays.wide(rows), axis=0)
    return logits.of_parts((logits.indptr, logits.indices, cast(core.div(raised, total), dtype)))


def coo_add(x1, x2, thresh):
    return _expect(x1, COOTensor).add(x2, thresh)


def sparse_add(x1, x2, thresh):
    return _expect(x1, COOTensor).add(x2, thresh)


def coo_concat(sp_input, concat_dim=0):
    """COOTensors joined along an axis."""
    from mindspore import ops

    base, places = 0, []
    rank = len(sp_input[0].shape)
    for each in sp_input:
        offset = [0] * rank
        offset[concat_dim] = base
        places.append(each.indices + Tensor([offset], each.indices.dtype))
        base += each.shape[concat_dim]
    shape = list(sp_input[0].shape)
    shape[concat_dim] = base
    made = COOTensor(ops.concat(places, 0), ops.concat([each.values for each in sp_input], 0), tuple(shape))
    return made.coalesce()


sparse_concat = coo_concat


def _of_values(name):
    def function(x):
        from mindspore import ops

        return x.of_parts((*x.parts()[:-1], getattr(ops, name)(x.values)))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name} of the elements that are held."
    return function


_UNARY = ("cos tan exp inv relu expm1 sigmoid isfinite asin sqrt log tanh ceil atan square cosh softsign log1p atanh round sin acosh floor sinh "
          "neg asinh isinf abs acos isnan relu6").split()  # fmt: skip
for _name in _UNARY:
    for _kind in ("csr", "coo"):
        globals()[f"{_kind}_{_name}"] = _of_values(_name)
