"""Operators."""

from mindspore.ops import composite
from mindspore.ops.composite import *  # noqa: F403
from mindspore.ops.primitive import Primitive, PrimitiveWithCheck, PrimitiveWithInfer, constexpr, prim_attr_register

from cairn.ms import names

__getattr__ = names.lazy("mindspore.ops")
