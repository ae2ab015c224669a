"""RowTensor, COOTensor and CSRTensor: a tensor as the places and values of its elements. What they compute is computed by operators on
their parts, so gradients and graphs go through them."""

from cairn.ms.numerics import sparse
from cairn.ms.refusal import Wrong
from mindspore.common import dtype as mstype
from mindspore.common.tensor import Tensor

__all__ = ["COOTensor", "CSRTensor", "RowTensor", "RowTensorInner", "SparseTensor"]


class _Sparse:
    """`_names`: of the tensors that it consists of, in order of the constructor's arguments; the shape follows them."""

    _names = ()

    def _hold(self, given, shape, other, form):
        if other is not None:
            if not isinstance(other, type(self)):
                raise TypeError(f"The input of {type(self).__name__} should be a {type(self).__name__}, but got {type(other).__name__}.")
            given, shape = other.parts(), other._shape
        if not all(isinstance(each, Tensor) for each in given) or not isinstance(shape, tuple):
            raise TypeError(f"Inputs must follow: {form}.")
        if not all(isinstance(each, int) and not isinstance(each, bool) for each in shape):
            raise TypeError(f"For '{type(self).__name__}', the 'shape' should be a tuple of int, but got {shape}.")
        if any(each <= 0 for each in shape):
            raise ValueError(f"For '{type(self).__name__}', the elements of 'shape' should be positive, but got {shape}.")
        for name, each in zip(self._names, given):
            if name != "values" and each.dtype not in (mstype.int16, mstype.int32, mstype.int64):
                raise TypeError(f"For '{type(self).__name__}', the dtype of '{name}' should be an integer, but got {each.dtype}.")
            setattr(self, "_" + name, each)
        self._shape = shape

    def parts(self):
        """The tensors that it consists of."""
        return tuple(getattr(self, "_" + name) for name in self._names)

    def of_parts(self, parts):
        """The same with other tensors."""
        made = object.__new__(type(self))
        made._shape = self._shape
        for name, each in zip(self._names, parts):
            setattr(made, "_" + name, each)
        return made

    def capture_shape(self):
        return self._shape

    values = property(lambda self: self._values)
    indices = property(lambda self: self._indices)
    shape = property(lambda self: self._shape)
    dtype = property(lambda self: self._values.dtype)
    size = property(lambda self: self._values.shape[0])
    itemsize = property(lambda self: self._values.itemsize)
    ndim = property(lambda self: len(self._shape))

    def to_tuple(self):
        """Its tensors and its shape."""
        return (*self.parts(), self._shape)

    def astype(self, dtype):
        """The same with values of another type."""
        return self.of_parts((*self.parts()[:-1], self._values.astype(dtype)))

    def abs(self):
        return self.of_parts((*self.parts()[:-1], self._values.abs()))

    def __repr__(self):
        told = ", ".join(f"{name}={getattr(self, '_' + name)!r}" for name in self._names)
        return f"{type(self).__name__}(shape={list(self._shape)}, dtype={self.dtype}, {told})"

    def __neg__(self):
        return self.of_parts((*self.parts()[:-1], -self._values))


class RowTensor(_Sparse):
    """RowTensor(indices, values, shape): some rows of a tensor."""

    _names = ("indices", "values")

    def __init__(self, indices=None, values=None, shape=None, row_tensor=None):
        self._hold((indices, values), shape, row_tensor, "RowTensor(indices, values, shape)")
        if self._values.shape[1:] != self._shape[1:] or self._indices.shape != self._values.shape[:1]:
            raise TypeError(
                f"For 'RowTensor', 'values' should be [count, *{list(self._shape[1:])}] for 'indices' [count], but they are "
                f"{self._values.shape} and {self._indices.shape}."
            )

    dense_shape = property(lambda self: self._shape)

    def to_dense(self):
        return sparse.rows_dense(self._indices, self._values, self._shape)


RowTensorInner = RowTensor


class COOTensor(_Sparse):
    """COOTensor(indices, values, shape): elements by their places, [count, dims]."""

    _names = ("indices", "values")

    def __init__(self, indices=None, values=None, shape=None, coo_tensor=None):
        self._hold((indices, values), shape, coo_tensor, "COOTensor(indices, values, shape)")
        if self._indices.shape == self._values.shape == (0,):
            return  # without an element
        if len(self._indices.shape) != 2 or len(self._values.shape) != 1 or self._indices.shape[0] != self._values.shape[0]:
            raise ValueError(
                f"For 'COOTensor', 'indices' should be [count, dims] and 'values' [count], but got {self._indices.shape} and {self._values.shape}.")
        if self._indices.shape[1] != len(self._shape):
            raise Wrong(f"For 'COOTensor', 'indices' have {self._indices.shape[1]} dims, but 'shape' is {self._shape}.")

    dense_shape = property(lambda self: self._shape)

    def to_dense(self):
        """The whole tensor; elements of one place are added."""
        return sparse.dense(self._indices, self._values, self._shape)

    def coalesce(self):
        """The same with each place once, in order of rows."""
        return COOTensor(*sparse.coalesced(self._indices, self._values, self._shape), self._shape)

    def to_csr(self):
        """The same matrix by rows."""
        if len(self._shape) != 2:
            raise ValueError(f"Currently only supports 2-dimensional COOTensor, but got {len(self._shape)} dimensions.")
        indptr, columns, values = sparse.by_rows(self._indices, self._values, self._shape)
        return CSRTensor(indptr, columns, values, self._shape)

    def add(self, other, thresh):
        """The sum, without elements whose magnitude is at most the threshold."""
        if not isinstance(other, COOTensor):
            raise TypeError(f"The other operand should be a COOTensor, but got {type(other).__name__}.")
        return COOTensor(*sparse.added(self.parts(), other.parts(), self._shape, thresh), self._shape)

    def __add__(self, other):
        if isinstance(other, COOTensor):
            return self.add(other, Tensor(0, self.dtype))
        if isinstance(other, Tensor):
            return self.to_dense() + other
        raise TypeError(f"COOTensor add with {type(other).__name__} is not supported.")

    __radd__ = __add__

    def __sub__(self, other):
        return self + (-other)

    def __rsub__(self, other):
        return other - self.to_dense()

    def __mul__(self, other):
        return self.of_parts((self._indices, self._values * sparse.at(other, self._indices, self._shape)))

    __rmul__ = __mul__

    def __truediv__(self, other):
        return self.of_parts((self._indices, self._values / sparse.at(other, self._indices, self._shape)))


class SparseTensor(COOTensor):
    """SparseTensor(indices, values, dense_shape): the name of COOTensor before 1.7."""

    def __init__(self, indices=None, values=None, dense_shape=None):
        super().__init__(indices, values, dense_shape)


class CSRTensor(_Sparse):
    """CSRTensor(indptr, indices, values, shape): the elements of a matrix by rows."""

    _names = ("indptr", "indices", "values")

    def __init__(self, indptr=None, indices=None, values=None, shape=None, csr_tensor=None):
        self._hold((indptr, indices, values), shape, csr_tensor, "CSRTensor(indptr, indices, values, shape)")
        if len(self._indptr.shape) != 1 or len(self._indices.shape) != 1:
            raise ValueError(f"For 'CSRTensor', 'indptr' and 'indices' should be vectors, but got {self._indptr.shape} and {self._indices.shape}.")
        if self._indptr.shape[0] != self._shape[0] + 1 or self._indices.shape[0] != self._values.shape[0]:
            raise ValueError(
                f"For 'CSRTensor', indptr of {self._indptr.shape}, indices of {self._indices.shape} and values of {self._values.shape} "
                f"do not fit a tensor of shape {self._shape}.")

    indptr = property(lambda self: self._indptr)

    def rows(self):
        """The row of each element."""
        return sparse.rows_of(self._indptr, self._values.shape[0])

    def places(self):
        """The place of each element, [count, 2]."""
        return sparse.paired(self.rows(), self._indices)

    def to_coo(self):
        if len(self._shape) != 2:
            raise ValueError(f"Currently only supports 2-dimensional CSRTensor, but got {len(self._shape)} dimensions.")
        return COOTensor(self.places(), self._values, self._shape)

    def to_dense(self):
        return sparse.dense(self.places(), self._values, self._shape)

    def mv(self, dense_vector):
        """The product with a vector, [n, 1]."""
        if not isinstance(dense_vector, Tensor):
            raise TypeError(f"For 'mv', the operand should be a Tensor, but got {type(dense_vector).__name__}.")
        return sparse.product(self.rows(), self._indices, self._values, self._shape, dense_vector)

    def mm(self, matrix):
        """The product with a matrix, or another CSRTensor."""
        if isinstance(matrix, CSRTensor):
            return sparse_of_dense(sparse.product(self.rows(), self._indices, self._values, self._shape, matrix.to_dense()), CSRTensor)
        return sparse.product(self.rows(), self._indices, self._values, self._shape, matrix)

    def sum(self, axis):
        """The sums along an axis, which stays with size 1."""
        if axis not in (0, 1, -1, -2):
            raise ValueError(f"For 'sum', the axis should be 0 or 1, but got {axis}.")
        return sparse.summed(self.rows(), self._indices, self._values, self._shape, axis % 2)

    def _each(self, other, combine):
        if isinstance(other, (int, float)):
            return self.of_parts((self._indptr, self._indices, combine(self._values, other)))
        if not isinstance(other, Tensor):
            raise TypeError(f"CSRTensor and {type(other).__name__} cannot be combined.")
        return self.of_parts((self._indptr, self._indices, combine(self._values, sparse.at(other, self.places(), self._shape, self._values.shape))))

    def __mul__(self, other):
        return self._each(other, lambda x, y: x * y)

    __rmul__ = __mul__

    def __truediv__(self, other):
        return self._each(other, lambda x, y: x / y)

    def add(self, b, alpha, beta):
        """alpha * self + beta * b"""
        mine, other = (Tensor.__mul__(each.values, factor) for each, factor in ((self, alpha), (b, beta)))
        places, values = sparse.added((self.places(), mine), (b.places(), other), self._shape, None)
        return CSRTensor(*sparse.by_rows(places, values, self._shape, self._indptr.dtype), self._shape)

    def __add__(self, other):
        if isinstance(other, CSRTensor):
            return self.add(other, Tensor(1, self.dtype), Tensor(1, self.dtype))
        return self.to_dense() + other

    def __sub__(self, other):
        if isinstance(other, CSRTensor):
            return self.add(other, Tensor(1, self.dtype), Tensor(-1, self.dtype))
        return self.to_dense() - other


def sparse_of_dense(tensor, kind):
    """The elements that are not 0 of a tensor."""
    indices, values = sparse.elements_of(tensor)
    made = COOTensor(indices, values, tuple(tensor.shape))
    return made if kind is COOTensor else made.to_csr()
