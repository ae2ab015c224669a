"""Tensor."""

from cairn.ms.tensor import Tensor

__all__ = ["Tensor"]


def __getattr__(name):
    from mindspore.common import sparse_tensor  # which stands on this module

    if name not in sparse_tensor.__all__:
        raise AttributeError(name)
    return getattr(sparse_tensor, name)
