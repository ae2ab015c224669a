"""Windows, indices, polynomials, sets, histograms, and reductions without NaN: constants and functions that nobody differentiates
are NumPy's own on the elements."""

import functools

import numpy as np
from cairn.ms import core, promote
from cairn.ms.numerics import basic, images, reductions
from cairn.ms.tensor import wrap
from mindspore.common.tensor import Tensor
from mindspore.numpy.creation import as_tensor
from mindspore.numpy.maths import matmul


def _array(x):
    """Elements, of which float64 of Python's numbers are float32."""
    if isinstance(x, Tensor):
        return x.asnumpy()
    if isinstance(x, (list, tuple)) and any(isinstance(each, Tensor) for each in x):
        return type(x)(_array(each) for each in x)
    return x


def _result(made, inputs):
    if isinstance(made, (tuple, list)):
        return type(made)(_result(each, inputs) for each in made)
    if not isinstance(made, (np.ndarray, np.generic)):
        return made
    wide = any(isinstance(x, np.ndarray) and x.dtype in (np.float64, np.int64) for x in inputs)
    if made.dtype == np.float64 and not wide:
        made = made.astype(np.float32)
    elif made.dtype == np.int64 and not wide:
        made = made.astype(np.int32)
    return wrap(np.array(made))  # which may be empty, as Tensor(array) may not


def _numpy(name):
    function = getattr(np, name)

    def apply(*args, **kwargs):
        dtype = kwargs.pop("dtype", None)
        given = [_array(x) for x in args]
        made = _result(function(*given, **{key: _array(x) for key, x in kwargs.items()}), given)
        return made if dtype is None else basic.cast(made, dtype)

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = f"numpy.{name} of the elements."
    return apply


_NAMES = """
array_equiv bartlett blackman choose corrcoef correlate convolve cov diag_indices diagflat digitize ediff1d gradient hamming hanning histogram
histogram2d histogram_bin_edges histogramdd in1d indices interp intersect1d isin isneginf isposinf nancumsum polyadd polyder polyint
polymul polysub polyval ravel_multi_index setdiff1d signbit tril_indices tril_indices_from triu_indices
triu_indices_from unravel_index unwrap vander copysign argwhere apply_over_axes array_str
""".split()
for _name in _NAMES:
    globals()[_name] = _numpy(_name)


def array_equal(a1, a2, equal_nan=False):
    """Whether shapes and elements are equal."""
    return Tensor(np.array_equal(_array(a1), _array(a2), equal_nan))


def apply_along_axis(func1d, axis, arr, *args, **kwargs):
    """func1d of each row along an axis."""
    rows = basic.moved(as_tensor(arr), axis, -1)
    lead = rows.shape[:-1]
    flat = basic.reshape(rows, (-1, rows.shape[-1]))
    made = [as_tensor(func1d(basic.at(flat, 0, i), *args, **kwargs)) for i in range(flat.shape[0])]
    out = basic.reshape(basic.stack(made), (*lead, *made[0].shape))
    axis %= len(rows.shape)
    order = [*range(axis), *range(len(lead), len(out.shape)), *range(axis, len(lead))]
    return core.transpose(out, permutation=order)


def bitwise_not(x, dtype=None):
    """Each bit turned; not of bools."""
    x = as_tensor(x)
    made = core.not_(x) if basic.nptype(x).kind == "b" else core.bit_not(x)
    return made if dtype is None else basic.cast(made, dtype)


invert = bitwise_not


def fabs(x, dtype=None):
    """Magnitudes as floats."""
    x = as_tensor(x)
    made = core.abs(x if basic.is_float(x) else basic.cast(x, np.float32))
    return made if dtype is None else basic.cast(made, dtype)


def divmod_(x1, x2, dtype=None):
    """(quotient rounded down, rest)"""
    from mindspore.numpy import maths

    return maths.floor_divide(x1, x2, dtype), maths.remainder(x1, x2, dtype)


divmod = divmod_  # noqa: A001


def copy(a):
    """A tensor of the same elements."""
    return core.identity(as_tensor(a))


def matrix_power(a, n):
    """A matrix times itself."""
    from mindspore.ops import operations as P

    return P.MatrixPower(n)(as_tensor(a))


def isscalar(element):
    """Whether it is a number or text of Python's."""
    return isinstance(element, (int, float, bool, complex, str))


def size(a, axis=None):
    """How many elements, all or along an axis."""
    shape = as_tensor(a).shape
    return int(np.prod(shape)) if axis is None else shape[axis]


def ix_(*args):
    """Vectors as an open grid."""
    return tuple(
        basic.reshape(as_tensor(x), [-1 if i == place else 1 for i in range(len(args))]) for place, x in enumerate(args)
    )


def multi_dot(arrays):
    """The product of matrices, in an order of few operations."""
    return functools.reduce(matmul, [as_tensor(each) for each in arrays])


def pad(arr, pad_width, mode="constant", stat_length=None, constant_values=0, end_values=0, reflect_type="even", **kwargs):
    """arr with something around."""
    arr = as_tensor(arr)
    widths = np.broadcast_to(np.asarray(pad_width), (len(arr.shape), 2)).tolist()
    if mode == "constant" and np.ndim(constant_values) == 0:
        return images.pad(arr, [tuple(each) for each in widths], float(_array(constant_values)))
    options = {"constant": {"constant_values": constant_values}, "linear_ramp": {"end_values": end_values},
               "reflect": {"reflect_type": reflect_type}, "symmetric": {"reflect_type": reflect_type}}.get(mode, {})  # fmt: skip
    if mode in ("maximum", "minimum", "mean", "median"):
        options = {"stat_length": stat_length}
    if callable(mode):
        options = kwargs
    return Tensor(np.pad(arr.asnumpy(), widths, mode, **options))


def piecewise(x, condlist, funclist, *args, **kw):
    """Of each element the function whose condition holds last."""
    x = as_tensor(x)
    conditions = list(condlist) if isinstance(condlist, (list, tuple)) else [condlist]
    functions = list(funclist)
    out = as_tensor(0.0)
    if len(functions) == len(conditions) + 1:
        out = functions.pop()
        out = out(x, *args, **kw) if callable(out) else as_tensor(out)
    out = core.broadcast_to(basic.cast(out, basic.nptype(x)), basic.ints(x.shape))
    for condition, function in zip(conditions, functions):
        value = function(x, *args, **kw) if callable(function) else as_tensor(function)
        condition = basic.cast(as_tensor(condition), np.bool_)
        value = core.broadcast_to(basic.cast(value, basic.nptype(x)), basic.ints(x.shape))
        out = core.select(core.broadcast_to(condition, basic.ints(x.shape)), value, out)
    return out


def promote_types(type1, type2):
    """The type that two have together."""
    from cairn.ms import dtypes

    return dtypes.of(promote.together(basic.as_np(type1), basic.as_np(type2)))


def result_type(*arrays_and_dtypes):
    """The type that tensors and types have together."""
    from cairn.ms import dtypes

    found = [basic.nptype(as_tensor(x)) if isinstance(x, (Tensor, int, float, list, tuple)) and not isinstance(x, type) else basic.as_np(x)
             for x in arrays_and_dtypes]  # fmt: skip
    return dtypes.of(functools.reduce(promote.together, found))


def searchsorted(a, v, side="left", sorter=None):
    """Where in a sorted vector each value belongs."""
    return as_tensor(a).searchsorted(as_tensor(v), side, sorter)


def sometrue(a, axis=None, keepdims=False):
    """Whether any element is true."""
    return reductions.any_of(as_tensor(a), () if axis is None else axis, bool(keepdims))


def _without_nan(fill, function):
    def apply(a, axis=None, dtype=None, keepdims=False, **others):
        a = as_tensor(a)
        a = a if basic.is_float(a) else basic.cast(a, np.float32)
        made = function(
            core.select(core.is_nan(a), basic.number(fill, a), a), () if axis is None else axis, keep_dims=keepdims
        )
        return made if dtype is None else basic.cast(made, dtype)

    return apply


nansum, nanmax, nanmin = (
    _without_nan(fill, function)
    for fill, function in ((0, reductions.total), (-np.inf, reductions.maximum), (np.inf, reductions.minimum))
)


def _counted(a, axis, keepdims):
    a = as_tensor(a)
    a = a if basic.is_float(a) else basic.cast(a, np.float32)
    axis = () if axis is None else axis
    there = basic.cast(core.not_(core.is_nan(a)), basic.nptype(a))
    clean = core.select(core.is_nan(a), basic.number(0, a), a)
    return clean, there, axis, reductions.total(there, axis, keepdims)


def nanmean(a, axis=None, dtype=None, keepdims=False):
    """Mean of what is no NaN."""
    clean, _, axis, count = _counted(a, axis, keepdims)
    made = core.div(reductions.total(clean, axis, keepdims), count)
    return made if dtype is None else basic.cast(made, dtype)


def nanvar(a, axis=None, dtype=None, ddof=0, keepdims=False):
    """Variance of what is no NaN."""
    clean, there, axis, count = _counted(a, axis, keepdims)
    mean = nanmean(a, axis, keepdims=True)
    apart = core.mul(core.square(core.sub(clean, mean)), there)
    made = core.div(reductions.total(apart, axis, keepdims), core.sub(count, basic.number(ddof, count)))
    return made if dtype is None else basic.cast(made, dtype)


def nanstd(a, axis=None, dtype=None, ddof=0, keepdims=False):
    """Deviation of what is no NaN."""
    return core.sqrt(nanvar(a, axis, dtype, ddof, keepdims))


class _Grid:
    """Grids by slices: numpy.mgrid and ogrid."""

    def __init__(self, grid):
        self._grid = grid

    def __getitem__(self, index):
        return _result(self._grid[index], [])


mgrid, ogrid = _Grid(np.mgrid), _Grid(np.ogrid)

__all__ = [
    *_NAMES, "array_equal", "apply_along_axis", "bitwise_not", "invert", "fabs", "divmod", "isscalar", "size", "ix_", "multi_dot", "pad",
    "piecewise", "promote_types", "result_type", "searchsorted", "sometrue", "nansum", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd",
    "mgrid", "ogrid", "copy", "matrix_power",
]  # fmt: skip
