"""Operators as functions, with the names of all releases: `F.tensor_add(x, y)`."""

from mindspore.ops.composite import *  # noqa: F403
from mindspore.ops.function import *  # noqa: F403
from mindspore.ops.function import __all__  # noqa: F401

from cairn.ms import names

__getattr__ = names.lazy(__name__)
