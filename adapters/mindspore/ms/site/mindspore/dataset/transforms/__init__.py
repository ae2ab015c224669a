"""Transforms of any column."""

from cairn.ms import names

from mindspore.dataset.transforms import c_transforms, py_transforms, transforms, vision
from mindspore.dataset.transforms.transforms import *  # noqa: F403

__all__ = ["c_transforms", "py_transforms", "vision", *transforms.__all__]
__getattr__ = names.lazy("mindspore.dataset.transforms")
