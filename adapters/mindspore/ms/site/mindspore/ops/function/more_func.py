"""Functions that came late, those of NumPy's names, and those on numbers and tuples."""

import builtins
import math
import operator

import numpy as np
from cairn.ms import core
from cairn.ms.numerics import basic, images, losses, norms
from mindspore.common.tensor import Tensor
from mindspore.ops import operations as P
from mindspore.ops.operations import more_ops, searching_ops


def _of_numpy(name):
    """A function of mindspore.numpy, which stands above this module."""

    def function(*args, **kwargs):
        from mindspore import numpy as mnp

        return getattr(mnp, name)(*args, **kwargs)

    return function


for _name in ("hstack", "vstack", "dstack", "column_stack", "kron", "inner", "rot90", "atleast_2d", "atleast_3d", "array_split", "take",
              "vsplit", "hsplit", "dsplit", "rand", "randn"):  # fmt: skip
    globals()[_name] = _of_numpy(_name)
row_stack, tensor_split = _of_numpy("vstack"), _of_numpy("array_split")
for _name, _function in {
    "scalar_add": operator.add, "scalar_sub": operator.sub, "scalar_mul": operator.mul, "scalar_div": operator.truediv,
    "scalar_floordiv": operator.floordiv, "scalar_mod": operator.mod, "scalar_pow": operator.pow, "scalar_uadd": operator.pos,
    "scalar_usub": operator.neg, "scalar_eq": operator.eq, "scalar_ne": operator.ne, "scalar_lt": operator.lt, "scalar_le": operator.le,
    "scalar_gt": operator.gt, "scalar_ge": operator.ge, "bool_not": operator.not_, "tuple_getitem": operator.getitem,
    "list_getitem": operator.getitem, "dict_getitem": operator.getitem, "tuple_len": len, "list_len": len, "tuple_equal": operator.eq,
    "string_eq": operator.eq, "string_concat": operator.add, "string_lt": operator.lt, "list_equal": operator.eq, "bool_eq": operator.eq,
    "scalar_log": math.log, "dict_len": len, "typeof": type, "is_": operator.is_, "is_not": operator.is_not,
}.items():  # fmt: skip
    globals()[_name] = _function


def make_tuple(*values):
    """A tuple of the values."""
    return values


def make_list(*values):
    """A list of the values."""
    return list(values)


def tuple_setitem(values, index, value):
    """The tuple with another value."""
    return (*values[:index], value, *values[index + 1 :])


def list_setitem(values, index, value):
    """The list with another value."""
    return [*values[:index], value, *values[index + 1 :]]


def dict_setitem(values, key, value):
    """The dict with another value."""
    return {**values, key: value}


def make_dict(keys, values):
    """A dict of keys and their values."""
    return dict(zip(keys, values))


def make_slice(start, stop, step):
    """A slice."""
    return builtins.slice(start, stop, step)


def tuple_reversed(values):
    """The values from the last to the first."""
    return values[::-1]


def tuple_div(values, others):
    """Quotients of numbers, which leave no rest."""
    if len(values) != len(others):
        raise ValueError(f"The size of inputs of 'tuple_div' operator must be the same, but got {len(values)} and {len(others)}.")
    if not all(type(each) is int for each in (*values, *others)):
        raise ValueError(f"The data type of inputs of 'tuple_div' operator should be an int64 number, but got {values} and {others}.")
    if 0 in others:
        raise ValueError("The divisor value should not be 0!")
    if any(m % n for m, n in zip(values, others)):
        raise ValueError(f"The inputs of 'tuple_div' operator should be divisible, but they are not divisible now, got {values} and {others}.")
    return tuple(m // n for m, n in zip(values, others))


def bool_and(x, y):
    """Whether both are true."""
    return x and y


def bool_or(x, y):
    """Whether one is true."""
    return x or y


def shape_mul(shape):
    """The number of elements."""
    return math.prod(shape)


def array_to_scalar(x):
    """The number that a tensor of one element holds."""
    return x.asnumpy().item()


def broadcast_gradient_args(x_shape, y_shape):
    """The axes over which gradients of two operands are summed."""
    rank = max(len(x_shape), len(y_shape))
    wide = [[1] * (rank - len(shape)) + list(shape) for shape in (x_shape, y_shape)]
    return tuple(tuple(i for i in range(rank) if own[i] == 1 and (other[i] != 1 or i < rank - len(shape)))
                 for own, other, shape in ((wide[0], wide[1], x_shape), (wide[1], wide[0], y_shape)))  # fmt: skip


def reduced_shape(shape, axes):
    """The shape with sizes of 1 at the axes."""
    axes = range(len(shape)) if axes == () else [each % len(shape) for each in ((axes,) if isinstance(axes, int) else axes)]
    return tuple(1 if i in axes else size for i, size in enumerate(shape))


def switch(condition, first, second):
    """first where the condition holds, else second."""
    return first if condition else second


def switch_layer(index, layers):
    """The layer of that number."""
    return layers[int(index)]


def isconstant(x):
    """Whether a value is known when a graph is compiled: tensors are not."""
    return not isinstance(x, Tensor)


def pack(x):
    """Tensors along a new first axis."""
    return P.Stack()(x)


def embed(x):
    """x itself."""
    return x


def in_dict(key, values):
    """Whether the key is there."""
    return key in values


def not_in_dict(key, values):
    """Whether the key is not there."""
    return key not in values


def tanhshrink(x):
    """x - tanh(x)"""
    return core.sub(x, core.tanh(x))


def rrelu(x, lower=1.0 / 8, upper=1.0 / 3):
    """x above 0, else the mean of both slopes times x."""
    return core.leaky_relu(x, alpha=(lower + upper) / 2)


def _blocks(x, factor, name, what):
    """(sizes before the last three, number of these, the last three) of what has images as its last axes."""
    if isinstance(factor, bool) or not isinstance(factor, int):
        raise TypeError(f"For '{name}', the '{what}' must be int, but got {type(factor).__name__}.")
    if factor <= 0:
        raise ValueError(f"For '{name}', the '{what}' must be greater than 0, but got {factor}.")
    if len(x.shape) < 3:
        raise ValueError(f"For '{name}', the input must have 3 dimensions or more, but got the shape {tuple(x.shape)}.")
    return tuple(x.shape[:-3]), len(x.shape) - 3, x.shape[-3:]


def pixel_shuffle(x, upscale_factor):
    """Channels as blocks of pixels."""
    lead, k, (c, h, w) = _blocks(x, upscale_factor, "pixel_shuffle", "upscale_factor")
    r = upscale_factor
    if c % (r * r):
        raise ValueError(f"For 'pixel_shuffle', the channels must be a multiple of upscale_factor squared, {r * r}, but got {c}.")
    x = basic.reshape(x, (*lead, c // (r * r), r, r, h, w))
    x = core.transpose(x, permutation=[*range(k), *(k + axis for axis in (0, 3, 1, 4, 2))])
    return basic.reshape(x, (*lead, c // (r * r), h * r, w * r))


def pixel_unshuffle(x, downscale_factor):
    """Blocks of pixels as channels."""
    lead, k, (c, h, w) = _blocks(x, downscale_factor, "pixel_unshuffle", "downscale_factor")
    r = downscale_factor
    if h % r or w % r:
        raise ValueError(f"For 'pixel_unshuffle', height and width must be multiples of downscale_factor, {r}, but got {h} and {w}.")
    x = basic.reshape(x, (*lead, c, h // r, r, w // r, r))
    x = core.transpose(x, permutation=[*range(k), *(k + axis for axis in (0, 2, 4, 1, 3))])
    return basic.reshape(x, (*lead, c * r * r, h // r, w // r))


def mirror_pad(input_x, paddings, mode="REFLECT"):
    """x mirrored around."""
    return P.MirrorPad(mode)(input_x, paddings)


def padding(x, pad_dim_size=8):
    """The last axis, of size 1, filled up with zeros."""
    return P.Padding(pad_dim_size)(x)


def group_norm(x, num_groups, weight=None, bias=None, eps=1e-5):
    """Over groups of channels of each image."""
    one, zero = (np.full(x.shape[1], value, basic.nptype(x)) for value in (1, 0))
    return norms.by_groups(x, num_groups, one if weight is None else weight, zero if bias is None else bias, eps)


def crop_and_resize(image, boxes, box_indices, crop_size, method="bilinear", extrapolation_value=0.0):
    """Parts of NHWC images at one size."""
    return P.CropAndResize(method, extrapolation_value)(image, boxes, box_indices, crop_size)


def multi_margin_loss(inputs, target, p=1, margin=1, weight=None, reduction="mean"):
    """Hinge loss of classes."""
    return losses.reduced(more_ops.multi_margin(inputs, target, p, margin, weight), reduction)


def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, reduction="mean"):
    """Hinge loss of distances."""
    return losses.reduced(more_ops.triplet_margin(anchor, positive, negative, p, margin, eps, swap), reduction)


def multilabel_soft_margin_loss(x, target, weight=None, reduction="mean"):
    """Mean over classes of binary cross entropies of logits."""
    terms = losses.sigmoid_cross_entropy(x, target)
    terms = terms if weight is None else core.mul(terms, weight)
    return losses.reduced(core.reduce_mean(terms, axes=[len(x.shape) - 1], keep_dims=False), reduction)


def multilabel_margin_loss(input, target, reduction="mean"):
    """Hinge loss of several labels, which stand before the first -1."""
    return losses.reduced(searching_ops.multilabel_margin(input, target)[0], reduction)


def poisson_nll_loss(x, target, log_input=True, full=False, eps=1e-8, reduction="mean"):
    """Of Poisson's distributions of that rate, or of its logarithm."""
    if log_input:
        terms = core.sub(core.exp(x), core.mul(target, x))
    else:
        terms = core.sub(x, core.mul(target, core.log(core.add(x, basic.number(eps, x)))))
    if full:
        one = basic.number(1, target)
        safe = core.maximum(target, one)
        more = core.add(core.sub(core.mul(safe, core.log(safe)), safe), core.mul(basic.number(0.5, safe), core.log(core.mul(basic.number(2 * np.pi, safe), safe))))
        terms = core.add(terms, core.select(core.greater(target, one), more, basic.number(0, more)))
    return losses.reduced(terms, reduction)


def gaussian_nll_loss(x, target, var, full=False, eps=1e-6, reduction="mean"):
    """Of normal distributions of that mean and variance."""
    var = core.maximum(var, basic.number(eps, var))
    terms = core.add(core.log(var), core.div(core.square(core.sub(x, target)), var))
    terms = core.mul(terms, basic.number(0.5, terms))
    if full:
        terms = core.add(terms, basic.number(0.5 * np.log(2 * np.pi), terms))
    return losses.reduced(terms, reduction)


def inplace_update(x, v, indices):
    """x with rows replaced."""
    return P.InplaceUpdate(indices)(x, v)


def inplace_add(x, v, indices):
    """x with rows added to."""
    return P.InplaceAdd(indices)(x, v)


def inplace_sub(x, v, indices):
    """x with rows subtracted from."""
    return P.InplaceSub(indices)(x, v)


def upsample(x, size, mode="nearest", align_corners=False):
    """Images at another size."""
    return images.resize(x, size, mode, align_corners, mode != "nearest" and not align_corners)


del _name, _function
