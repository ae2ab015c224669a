"""Image transforms, of all eras."""

from cairn.ms import names

from mindspore.dataset.vision import c_transforms, py_transforms, transforms, utils
from mindspore.dataset.vision.transforms import *  # noqa: F403
from mindspore.dataset.vision.utils import *  # noqa: F403

__all__ = ["c_transforms", "py_transforms", "transforms", "utils", *transforms.__all__, *utils.__all__]
__getattr__ = names.lazy("mindspore.dataset.vision")
