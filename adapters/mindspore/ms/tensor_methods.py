"""Methods of Tensor: shapes, reductions and conversions over the core; the others are functions of mindspore.ops."""

import functools
import importlib
import math

import numpy

from cairn.ms import core, dtypes, promote
from cairn.ms.numerics.basic import permutation
from cairn.ms.tensor import Tensor, wrap

_FLOAT = numpy.dtype("float32")
_INT = numpy.dtype("int32")


def _dims(given):
    """reshape(2, 3), reshape((2, 3)) and reshape([2, 3])."""
    if len(given) == 1 and isinstance(given[0], (tuple, list)):
        given = given[0]
    for each in given:
        if type(each) is not int and (isinstance(each, bool) or not isinstance(each, (int, numpy.integer))):
            raise TypeError(f"the sizes of a shape should be int, but got {type(each).__name__}")
    return [int(each) for each in given]


def _axes(x, axis):
    """Axes as a list of numbers from 0; all of them for None and ()."""
    rank = len(x.shape)
    if axis is None or axis == ():
        return list(range(rank))
    if type(axis) is int and -rank <= axis < rank:
        return [axis % rank]
    made = []
    for each in axis if isinstance(axis, (tuple, list)) else (axis,):
        if isinstance(each, bool) or not isinstance(each, int):
            raise TypeError(f"axis should be int, tuple or list, but got {type(each).__name__}")
        if not -max(rank, 1) <= each < max(rank, 1):
            raise ValueError(f"axis should be in [{-rank}, {rank}), but got {each}")
        made.append(each % max(rank, 1))
    if len(set(made)) != len(made):
        raise ValueError(f"duplicate value in axis: {axis}")
    return made if rank else []


def reshape(self, *shape):
    """The elements in row-major order under another shape; one size may be -1."""
    dims = _dims(shape)
    if dims.count(-1) > 1 or (-1 not in dims and math.prod(dims) != math.prod(self.shape)):
        raise ValueError(f"cannot reshape a tensor of shape {self.shape} into {tuple(dims)}")
    return core.reshape(self, dims)


def transpose(self, *axes):
    """The dims in another order, reversed where none is given."""
    rank = len(self.shape)
    order = _dims(axes) if axes and axes != (None,) else range(rank)[::-1]
    made = permutation(tuple(order), rank)
    if made is None:
        raise ValueError(f"the axes {tuple(order)} are no order of {rank} dims")
    return core.transpose(self, permutation=made)


def swapaxes(self, axis1, axis2):
    """Two dims exchanged."""
    a, b = _axes(self, axis1)[0], _axes(self, axis2)[0]
    order = list(range(len(self.shape)))
    order[a], order[b] = b, a
    return core.transpose(self, permutation=order)


def squeeze(self, axis=None):
    """Without dims of size 1."""
    axes = _axes(self, axis) if axis is not None and axis != () else [i for i, d in enumerate(self.shape) if d == 1]
    for each in axes:
        if self.shape[each] != 1:
            raise ValueError(f"cannot select an axis to squeeze out which has size not equal to one: axis {each}")
    return core.reshape(self, [d for i, d in enumerate(self.shape) if i not in axes])


def expand_dims(self, axis):
    """With a new dim of size 1."""
    rank = len(self.shape) + 1
    if isinstance(axis, bool) or not isinstance(axis, int):
        raise TypeError(f"axis should be int, but got {type(axis).__name__}")
    if not -rank <= axis < rank:
        raise ValueError(f"axis should be in [{-rank}, {rank}), but got {axis}")
    dims = list(self.shape)
    dims.insert(axis % rank, 1)
    return core.reshape(self, dims)


def flatten(self, order="C"):
    """In one dim."""
    if not isinstance(order, str):
        raise TypeError(f"order should be str, but got {type(order).__name__}")
    if order not in ("C", "F"):
        raise ValueError(f"order should be 'C' or 'F', but got '{order}'")
    return core.reshape(self if order == "C" else transpose(self), [-1])


def broadcast_to(self, shape):
    """Repeated along new dims and those of size 1; -1 keeps a size."""
    extra = len(shape) - len(self.shape)
    dims = [self.shape[i - extra] if size == -1 and i >= extra else size for i, size in enumerate(shape)]
    return core.broadcast_to(self, dims)


def astype(self, dtype, copy=True):
    """With another element type."""
    if not isinstance(dtype, (dtypes.Type, str, type, numpy.dtype)):
        raise TypeError(f"dtype should be a mindspore or NumPy type, but got {dtype}")
    made = promote.converted(self, dtypes.numpy_of(dtype.lower() if isinstance(dtype, str) else dtype))
    return core.identity(self) if made is self and copy else made


def _numbers(x):
    """Bools are counted as int32."""
    return promote.cast(x, _INT) if promote.nptype(x).kind == "b" else x


def _floats(x):
    return x if promote.nptype(x).kind in "fc" else promote.cast(x, _FLOAT)


def sum_(self, axis=None, dtype=None, keepdims=False, initial=None):
    """Sum of the elements along axes."""
    x = _numbers(self if dtype is None else astype(self, dtype))
    made = core.reduce_sum(x, axes=_axes(self, axis), keep_dims=bool(keepdims))
    return made if initial is None else made + initial


def mean(self, axis=(), keep_dims=False):
    """Mean of the elements along axes; of integers as integers."""
    made = core.reduce_mean(_floats(self), axes=_axes(self, axis), keep_dims=keep_dims)
    return promote.cast(made, promote.nptype(self)) if promote.nptype(self).kind in "iu" else made


def prod(self, axis=(), keep_dims=False):
    """Product of the elements along axes."""
    return core.reduce_prod(_numbers(self), axes=_axes(self, axis), keep_dims=keep_dims)


def _extreme(row, pair):
    def reduce(self, axis=None, keepdims=False, initial=None, where=True):
        made = core.reduce_min if row == "min" else core.reduce_max
        made = made(_numbers(self), axes=_axes(self, axis), keep_dims=keepdims)
        made = promote.cast(made, promote.nptype(self))
        return made if initial is None else pair(*promote.promote(made, initial))

    reduce.__doc__ = f"The {'least' if row == 'min' else 'largest'} of the elements along axes."
    return reduce


def _logical(row):
    def reduce(self, axis=(), keep_dims=False):
        x = self if promote.nptype(self).kind == "b" else core.not_equal(self, numpy.zeros((), promote.nptype(self)))
        return row(x, axes=_axes(self, axis), keep_dims=keep_dims)

    reduce.__doc__ = f"Whether {row.__name__[7:]} of the elements along axes are true."
    return reduce


def _place(row):
    def reduce(self, axis=None):
        x = _numbers(self)
        if axis is None:
            return row(core.reshape(x, [-1]), axis=0, dtype="int32")
        return row(x, axis=_axes(self, axis)[0], dtype="int32")

    reduce.__doc__ = "The index of it along the axis, or in the flattened tensor."
    return reduce


def var(self, axis=None, ddof=0, keepdims=False):
    """Mean of the squared distances from the mean."""
    x, axes = _floats(self), _axes(self, axis)
    squares = core.square(x - core.reduce_mean(x, axes=axes, keep_dims=True))
    count = math.prod(self.shape[each] for each in axes)
    return core.reduce_sum(squares, axes=axes, keep_dims=keepdims) / float(count - ddof)


def std(self, axis=None, ddof=0, keepdims=False):
    """Root of var()."""
    return core.sqrt(var(self, axis, ddof, keepdims))


def cumsum(self, axis=None, dtype=None):
    """Sums of the elements up to each."""
    x = _numbers(self if dtype is None else astype(self, dtype))
    if axis is None:
        return core.cumsum(core.reshape(x, [-1]), axis=0)
    return core.cumsum(x, axis=_axes(self, axis)[0])


def clip(self, xmin, xmax, dtype=None):
    """Elements between two bounds."""
    from mindspore.ops.composite import clip_by_value

    made = clip_by_value(self, xmin, xmax)
    return made if dtype is None else astype(made, dtype)


def fill(self, value):
    """A tensor of the same shape and element type, all of one value."""
    if not isinstance(value, (int, float, bool, type(None))):
        raise TypeError(f"The value of 'fill' should be a number, but got {type(value).__name__}.")
    return core.broadcast_to(wrap(numpy.array(0 if value is None else value, promote.nptype(self))), self.shape)


def item(self, index=None):
    """One element as a tensor of no dims."""
    if index is None:
        if math.prod(self.shape) != 1:
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        return reshape(self, ())
    if isinstance(index, tuple):
        if len(index) != len(self.shape):
            raise ValueError(f"index should name one place of a tensor of shape {self.shape}, but got {index}")
        return self[index]
    if not isinstance(index, int):
        raise TypeError(f"index should be int or tuple of int, but got {type(index).__name__}")
    return core.reshape(self, [-1])[index]


def itemset(self, *arguments):
    """A tensor with one element changed: itemset(value) or itemset(index, value)."""
    *where, value = arguments
    made = wrap(self.asnumpy().copy())
    if not where and made.size != 1:
        raise ValueError(f"itemset(value) needs a tensor of one element, but the shape is {self.shape}")
    if not where:
        made[()] = value
    else:
        index = where[0] if isinstance(where[0], tuple) else numpy.unravel_index(where[0], self.shape)
        made[tuple(int(each) for each in index)] = value
    return made


def repeat(self, repeats, axis=None):
    """Each element repeats times, or as often as a list says for its place."""
    if axis is None:
        self, axis = core.reshape(self, [-1]), 0
    axis = _axes(self, axis)[0]
    for each in repeats if isinstance(repeats, (tuple, list)) else [repeats]:
        if isinstance(each, bool) or not isinstance(each, int):
            raise TypeError(f"repeats should be int, tuple or list of int, but got {type(each).__name__}")
        if each < 0:
            raise ValueError(f"repeats should not be negative, but got {each}")
    places = numpy.repeat(numpy.arange(self.shape[axis]), repeats)
    return core.gather(self, places, axis=axis)


def take(self, indices, axis=None, mode="clip"):
    """Elements by index along the axis; indices outside are clipped, or wrapped around."""
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f"mode should be 'raise', 'wrap' or 'clip', but got '{mode}'")
    if axis is None:
        self, axis = core.reshape(self, [-1]), 0
    axis = _axes(self, axis)[0]
    if not isinstance(indices, Tensor):
        indices = Tensor(numpy.array(indices, numpy.int64))
    indices, size = promote.cast(indices, numpy.dtype("int64")), numpy.int64(self.shape[axis])
    if mode == "wrap":
        indices = core.mod(indices, size)
    elif mode == "clip":
        indices = core.clip(indices, low=0.0, high=float(size - 1))
    return core.gather(self, indices, axis=axis)


def choose(self, choices, mode="clip"):
    """At each place the element of that one of the choices which the tensor names."""
    made = [each if isinstance(each, Tensor) else Tensor(each) for each in choices]
    dims = numpy.broadcast_shapes(self.shape, *(each.shape for each in made))
    stacked = core.concat([core.reshape(core.broadcast_to(each, dims), [1, *dims]) for each in made], axis=0)
    index = core.broadcast_to(promote.cast(self, numpy.dtype("int64")), dims)
    size = len(made)
    index = core.mod(index, numpy.int64(size)) if mode == "wrap" else core.clip(index, low=0.0, high=float(size - 1))
    return stacked[(index, *(Tensor(each) for each in numpy.indices(dims)))]


def diagonal(self, offset=0, axis1=0, axis2=1):
    """The elements whose places along two axes differ by the offset, as a new last dim."""
    a, b = _axes(self, axis1)[0], _axes(self, axis2)[0]
    if len(self.shape) < 2 or a == b:
        raise ValueError("diagonal needs two different axes")
    order = [each for each in range(len(self.shape)) if each not in (a, b)] + [a, b]
    rows = numpy.arange(max(0, -offset), max(0, min(self.shape[a], self.shape[b] - offset)))
    return core.transpose(self, permutation=order)[(Ellipsis, Tensor.from_numpy(rows), Tensor.from_numpy(rows + offset))]


def trace(self, offset=0, axis1=0, axis2=1, dtype=None):
    """Sum along the diagonal."""
    return diagonal(self if dtype is None else astype(self, dtype), offset, axis1, axis2).sum(-1)


def resize(self, *new_shape):
    """The elements under another shape: the first ones, or with zeros behind them."""
    dims = _dims(new_shape)
    count, flat = math.prod(dims), core.reshape(self, [-1])
    if count > flat.shape[0]:
        flat = core.concat([flat, numpy.zeros(count - flat.shape[0], promote.nptype(self))], axis=0)
    return core.reshape(core.slice(flat, [0], [count]), dims)


def select(self, condition, y):
    """The tensor's elements where the condition holds, else y."""
    x, y = promote.promote(self, y)
    return core.select(condition, x, y)


def searchsorted(self, v, side="left", sorter=None):
    """Where in the sorted vector each of v belongs."""
    if side not in ("left", "right"):
        raise ValueError(f"side should be 'left' or 'right', but got '{side}'")
    row = self if sorter is None else core.gather(self, sorter)
    x, v = promote.promote(row, v if isinstance(v, Tensor) else Tensor(v))
    v = core.reshape(v, [*v.shape, 1])
    below = (core.less if side == "left" else core.less_equal)(x, v)
    return core.reduce_sum(core.cast(below, dtype="int32"), axes=[len(v.shape) - 1])


def _with_value(place, extreme):
    def reduce(self, axis=0, keep_dims=False):
        at = _axes(self, axis)[0]
        index = place(self, axis=at, dtype="int32", keep_dims=keep_dims)
        return index, extreme(self, axes=[at], keep_dims=keep_dims)

    reduce.__doc__ = "(index, value) of it along the axis."
    return reduce


def assign_value(self, value):
    """Takes the elements of another tensor."""
    self._take(value)
    return self


def set_dtype(self, dtype):
    """Changes the element type of this tensor."""
    self._take(astype(self, dtype, copy=False))
    return self.dtype


def from_numpy(array):
    """A tensor of the same memory."""
    if not isinstance(array, numpy.ndarray):
        raise TypeError(f"The input of from_numpy should be numpy.ndarray, but got {type(array).__name__}.")
    return wrap(numpy.ascontiguousarray(array))


def fill_diagonal(self, fill_value, wrap=False):
    """With a value on the diagonal."""
    from mindspore.ops import operations as P

    return P.FillDiagonal(float(fill_value), wrap)(self)


def _like(value):
    def new(self, size, dtype=None):
        wanted = promote.nptype(self) if dtype is None else dtypes.numpy_of(dtype)
        return core.broadcast_to(numpy.asarray(value, wanted), list(size) if isinstance(size, (tuple, list)) else [size])

    new.__doc__ = "A tensor of this element type."
    return new


def to_coo(self):
    """The elements other than 0 and their places."""
    return importlib.import_module("mindspore.ops").dense_to_sparse_coo(self)


def to_csr(self):
    """The elements other than 0, row by row."""
    return importlib.import_module("mindspore.ops").dense_to_sparse_csr(self)


def to_tensor(self, slice_index=None, shape=None, opt_shard_group=None):
    return self.init_data(slice_index, shape, opt_shard_group)


_OWN = {
    "to_coo": to_coo, "to_csr": to_csr, "reshape": reshape, "view": reshape, "transpose": transpose, "swapaxes": swapaxes, "squeeze": squeeze,
    "expand_dims": expand_dims, "flatten": flatten, "ravel": lambda self: core.reshape(self, [-1]),
    "broadcast_to": broadcast_to, "expand_as": lambda self, x: broadcast_to(self, x.shape), "astype": astype,
    "copy": lambda self: core.identity(self) if math.prod(self.shape) else wrap(self._array.copy()), "sum": sum_, "mean": mean,
    "prod": prod, "max": _extreme("max", core.maximum), "min": _extreme("min", core.minimum),
    "all": _logical(core.reduce_all), "any": _logical(core.reduce_any), "argmax": _place(core.arg_max),
    "argmin": _place(core.arg_min), "var": var, "std": std, "cumsum": cumsum, "clip": clip, "fill": fill,
    "ptp": lambda self, axis=None, keepdims=False: self.max(axis, keepdims) - self.min(axis, keepdims), "item": item,
    "itemset": itemset, "assign_value": assign_value, "from_numpy": staticmethod(from_numpy), "to_tensor": to_tensor,
    "abs": lambda self: core.abs(self), "tolist": lambda self: self.asnumpy().tolist(),
    "value": lambda self: self, "dim": lambda self: len(self.shape),
    "set_dtype": set_dtype, "flush_from_cache": lambda self: None,
    "float": lambda self: astype(self, "float32"), "half": lambda self: astype(self, "float16"),
    "int": lambda self: astype(self, "int32"), "long": lambda self: astype(self, "int64"),
    "bool": lambda self: astype(self, "bool"), "unsqueeze": expand_dims, "numel": lambda self: math.prod(self.shape),
    "permute": transpose, "repeat": repeat, "take": take, "choose": choose, "diagonal": diagonal, "trace": trace,
    "resize": resize, "select": select, "searchsorted": searchsorted, "fills": fill,
    "argmax_with_value": _with_value(core.arg_max, core.reduce_max),
    "argmin_with_value": _with_value(core.arg_min, core.reduce_min), "bitwise_not": lambda self: (core.not_ if promote.nptype(self).kind == "b" else core.bit_not)(self),
    "fill_diagonal": fill_diagonal, "new_ones": _like(1), "new_zeros": _like(0), "nelement": lambda self: math.prod(self.shape),
    "ndimension": lambda self: len(self.shape), "is_signed": lambda self: promote.nptype(self).kind in "if",
    "view_as": lambda self, other: reshape(self, other.shape), "reshape_as": lambda self, other: reshape(self, other.shape),
    "to": astype, "type": lambda self, dtype=None: str(self.dtype) if dtype is None else astype(self, dtype),
    "numpy": lambda self: self.asnumpy(), "data": property(lambda self: self),
    "where": lambda self, condition, y: importlib.import_module("mindspore.ops").where(condition, self, y),
    "mT": property(lambda self: swapaxes(self, -1, -2)), "short": lambda self: astype(self, "int16"), "double": lambda self: astype(self, "float64"),
    "clone": lambda self: core.identity(self),
}  # fmt: skip
for _name, _method in _OWN.items():
    setattr(Tensor, _name, _method)

# Methods that are functions of mindspore.ops with the tensor as first argument.
FUNCTIONS = frozenset("""
absolute acos acosh add addbmm addcdiv addcmul addmm addmv addr amax amin aminmax angle approximate_equal arccos arccosh
arcsin arcsinh arctan arctan2 arctanh argsort argwhere asin asinh atan atan2 atanh baddbmm bernoulli bincount bitwise_and
bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor bmm ceil cholesky cholesky_inverse cholesky_solve chunk clamp
col2im conj copysign cos cosh count_nonzero cov cross cummax cummin cumprod deg2rad det diag diff digamma div divide dot
dsplit eigvals eq equal erf erfc erfinv exp expand expm1 flip fliplr flipud float_power floor floor_divide fmax fmin fmod
fold frac gather gather_elements gather_nd gcd ge geqrf ger greater greater_equal gt hardshrink heaviside histc hsplit hypot
igamma igammac imag index_add index_fill index_select inner inplace_update inv inverse invert is_complex is_floating_point
isclose isfinite isinf isnan isneginf isposinf isreal lcm ldexp le lerp less less_equal lgamma log log10 log1p log2
log_matrix_determinant logaddexp logaddexp2 logcumsumexp logdet logical_and logical_not logical_or logical_xor logit
logsumexp lstsq lt lu_solve masked_fill masked_select matmul matrix_determinant matrix_power maximum median minimum mm
moveaxis movedim msort mul multinomial multiply mvlgamma nan_to_num nansum narrow ne neg negative nextafter nonzero norm
not_equal orgqr ormqr outer positive pow qr quantile rad2deg random_categorical real reciprocal remainder renorm
repeat_interleave reverse reverse_sequence roll rot90 round rsqrt scatter scatter_add scatter_div scatter_max scatter_min
scatter_mul scatter_sub sgn sigmoid sign signbit sin sinc sinh slogdet soft_shrink softmax sort split sqrt square sub
subtract svd swapdims t tan tanh tensor_scatter_add tensor_scatter_div tensor_scatter_max tensor_scatter_min
tensor_scatter_mul tensor_scatter_sub tensor_scatter_update tensor_split tile top_k topk tril triu true_divide trunc type_as
unbind unfold unique unique_consecutive unique_with_pad unsorted_segment_max unsorted_segment_min unsorted_segment_prod
unsorted_segment_sum vsplit xdivy xlogy
""".split())
_ELSEWHERE = {"top_k": "topk", **{f"scatter_{each}": f"tensor_scatter_{each}" for each in ("add", "sub", "mul", "div", "max", "min")}}


def _function(self, name):
    if name in FUNCTIONS:
        for module, known in (("mindspore.ops", _ELSEWHERE.get(name, name)), ("mindspore.ops", name), ("mindspore.numpy", name)):
            try:
                function = getattr(importlib.import_module(module), known, None)
            except ModuleNotFoundError:
                continue
            if callable(function):
                return functools.partial(function, self)
    raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")


Tensor.__getattr__ = _function
