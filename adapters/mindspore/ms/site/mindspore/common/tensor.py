"""Tensor."""

from cairn.ms.tensor import Tensor

__all__ = ["Tensor"]
