"""Clipping of tensors, and of lists of them together."""

from mindspore.common.tensor import Tensor

from cairn.ms import core, promote


def clip_by_value(x, clip_value_min=None, clip_value_max=None):
    """The tensor, or tensors, with elements between the bounds, which are numbers or tensors."""
    if isinstance(x, (tuple, list)):
        return type(x)(clip_by_value(each, clip_value_min, clip_value_max) for each in x)
    if not isinstance(x, Tensor):
        raise TypeError(
            f"For 'clip_by_value', the type of 'x' should be Tensor, tuple or list, but got {type(x).__name__}."
        )
    if clip_value_min is None and clip_value_max is None:
        raise ValueError(
            "For 'clip_by_value', at least one of 'clip_value_min' and 'clip_value_max' should not be None."
        )
    if clip_value_max is not None:
        x = core.minimum(*promote.promote(x, clip_value_max))
    if clip_value_min is not None:
        x = core.maximum(*promote.promote(x, clip_value_min))
    return x


def clip_by_global_norm(x, clip_norm=1.0, use_norm=None):
    """The tensors scaled together, so that the norm of all their elements is at most clip_norm."""
    if not isinstance(x, (tuple, list)):
        raise TypeError(
            f"For 'clip_by_global_norm', the type of 'x' should be tuple or list, but got {type(x).__name__}."
        )
    if isinstance(clip_norm, bool) or not isinstance(clip_norm, (int, float)):
        raise TypeError(
            f"For 'clip_by_global_norm', 'clip_norm' should be a number, but got {type(clip_norm).__name__}."
        )
    if clip_norm <= 0:
        raise ValueError(f"For 'clip_by_global_norm', 'clip_norm' should be greater than 0, but got {clip_norm}.")
    if use_norm is not None:
        raise ValueError("For 'clip_by_global_norm', 'use_norm' only supports None currently.")
    total = None
    for each in x:
        squares = core.reduce_sum(core.square(core.cast(each, dtype="float32")), axes=list(range(len(each.shape))))
        total = squares if total is None else core.add(total, squares)
    norm = core.sqrt(total)
    scale = clip_norm / core.maximum(*promote.promote(norm, float(clip_norm)))
    return type(x)(core.mul(each, promote.cast(scale, promote.nptype(each))) for each in x)
