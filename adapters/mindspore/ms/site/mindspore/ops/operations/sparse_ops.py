"""Primitives of sparse matrices as (indices, values, shape), and of segments that rows are picked for."""

import numpy as np
from cairn.ms import core
from cairn.ms.numerics import arrays, basic
from mindspore.ops.operations._form import host, primitive, same_type, static, tensor


def _dense(indices, values, shape, default=None):
    made = arrays.scatter_new(indices, values, shape)
    if default is None:
        return made
    ones = basic.filled(values.shape, 1, np.int32)
    there = core.greater(arrays.scatter_new(indices, ones, shape), np.int32(0))
    return core.select(there, made, same_type(default, made))


def _pairs(indices, name):
    """Places in a matrix, as rows of two numbers."""
    if len(tensor(indices, name, "int", "indices").shape) != 2:
        raise ValueError(f"For '{name}', the 'indices' must have 2 dimensions, but got shape {tuple(indices.shape)}.")
    return indices


def _to_dense_v2(self, indices, shape, values, default):
    indices = indices if len(indices.shape) == 2 else basic.reshape(indices, (-1, 1))
    values = values if values.shape else core.broadcast_to(basic.reshape(values, (1,)), [indices.shape[0]])
    return _dense(indices, values, static(shape, "SparseToDenseV2", "output_shape"), default)


SparseToDense = primitive(
    "SparseToDense", lambda self, indices, values, shape: _dense(_pairs(indices, self.name), values, static(shape, self.name, "dense_shape")),
    "The tensor of given elements, 0 elsewhere.",
)  # fmt: skip
SparseToDenseV2 = primitive("SparseToDenseV2", _to_dense_v2, "The tensor of given elements, a default elsewhere.", validate_indices=True)


def _product(self, indices, values, shape, dense):
    matrix = _dense(_pairs(indices, "SparseTensorDenseMatmul"), values, static(shape, "SparseTensorDenseMatmul", "sparse_shape"))
    turned = [basic.swapped(x, 0, 1) if adjoint else x for x, adjoint in ((matrix, self.adjoint_st), (dense, self.adjoint_dt))]
    return basic.matmul(*turned)


SparseTensorDenseMatmul = primitive("SparseTensorDenseMatmul", _product, "A sparse matrix times a matrix.", adjoint_st=False, adjoint_dt=False)


def _addmm(self, indices, values, shape, dense, more, alpha, beta):
    product = basic.matmul(_dense(_pairs(indices, "SparseAddmm"), values, static(shape, "SparseAddmm", "sparse_shape")), dense)
    return core.add(core.mul(product, same_type(alpha, product)), core.mul(more, same_type(beta, product)))


SparseAddmm = primitive("SparseAddmm", _addmm, "alpha * sparse @ dense + beta * more")


def _scaled(rows, segments, count, mode, each):
    """Rows divided by the size of their segment, or its root, before they are added."""
    if mode == "sum":
        return rows
    sizes = arrays.segment(basic.filled(segments.shape, 1, basic.nptype(rows)), segments, count, "sum")
    share = core.gather(core.maximum(sizes, basic.number(1, sizes)), arrays.wide(segments), axis=0)
    share = core.sqrt(share) if mode == "sqrt" else share
    return each(rows, basic.reshape(share, (-1, *[1] * (len(rows.shape) - 1))))


def _picked(name, mode, counted):
    def compute(self, x, indices, segments, count=None):
        if counted:
            count = static(count, name, "num_segments")
            count = count[0] if isinstance(count, tuple) else count
        else:
            count = int(segments.asnumpy().max()) + 1
        rows = arrays.gather(tensor(x, name), indices)
        return arrays.segment(_scaled(rows, segments, count, mode, core.div), segments, count, "sum")

    return primitive(name, compute, f"The {mode} of the rows that are picked for each segment.")


def _picked_gradient(name, mode):
    def compute(self, dy, indices, segments, size):
        size = static(size, name, "output_dim0")
        size = size[0] if isinstance(size, tuple) else size
        rows = _scaled(arrays.gather(dy, segments), segments, dy.shape[0], mode, core.div)
        return arrays.segment(rows, indices, size, "sum")

    return primitive(name, compute, f"The gradient of x for that of its {mode} by segments.")


for _name, _mode in {"Sum": "sum", "Mean": "mean", "SqrtN": "sqrt"}.items():
    globals()[f"SparseSegment{_name}"] = _picked(f"SparseSegment{_name}", _mode, False)
    globals()[f"SparseSegment{_name}WithNumSegments"] = _picked(f"SparseSegment{_name}WithNumSegments", _mode, True)
    globals()[f"SparseSegment{_name}Grad"] = _picked_gradient(f"SparseSegment{_name}Grad", _mode)


def _reorder(self, indices, values, shape):
    order = np.lexsort(indices.T[::-1])
    return indices[order], values[order]


def _set_size(self, indices, values, shape):
    made = np.zeros(tuple(int(n) for n in shape[:-1]), np.int32)
    for place in {tuple(row[:-1]) for row in indices.tolist()}:
        made[place] = len(set(values[(indices[:, :-1] == place).all(1)].tolist()))
    return made


SparseReorder = host("SparseReorder", _reorder, "(indices, values) in the order of rows.")
SetSize = host("SetSize", _set_size, "How many different values each row has.", validate_indices=True)
del _name, _mode
