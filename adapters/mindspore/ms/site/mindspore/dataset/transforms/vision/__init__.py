"""The path of 0.5 to mindspore.dataset.vision."""

from mindspore.dataset.transforms.vision import c_transforms, py_transforms, utils
from mindspore.dataset.vision.utils import Border, Inter

__all__ = ["Border", "Inter", "c_transforms", "py_transforms", "utils"]
