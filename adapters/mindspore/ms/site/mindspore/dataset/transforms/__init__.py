"""Transforms of any column."""

from mindspore.dataset.transforms import c_transforms, py_transforms, transforms, vision
from mindspore.dataset.transforms.transforms import *  # noqa: F403

__all__ = ["c_transforms", "py_transforms", "vision", *transforms.__all__]
