"""Methods of tensors as functions: `standard_method.sum(x, axis=0)`."""

from mindspore.common.tensor import Tensor


ms_len, ms_iter, ms_next, enumerate_ = len, iter, next, enumerate


def while_cond(x):
    """The condition of a loop: whether a tensor of one element is true, and other values as they are."""
    return bool(x) if isinstance(x, Tensor) else x


def __getattr__(name):
    if name.startswith("_") or not hasattr(Tensor([0.0]), name.rstrip("_")):
        raise AttributeError(f"module 'mindspore._extends.parse.standard_method' has no attribute '{name}'")
    return lambda x, *arguments, **keywords: getattr(x, name.rstrip("_"))(*arguments, **keywords)
