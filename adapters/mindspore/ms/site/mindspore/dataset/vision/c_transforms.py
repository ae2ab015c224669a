"""Image transforms over HWC arrays."""

from mindspore.dataset.vision.transforms import *  # noqa: F403
from mindspore.dataset.vision.utils import AutoAugmentPolicy, Border, ConvertMode, ImageBatchFormat, ImageReadMode, Inter, SliceMode  # noqa: F401
