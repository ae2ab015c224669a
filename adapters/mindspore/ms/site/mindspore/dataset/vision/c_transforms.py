"""Image transforms over HWC arrays."""

from mindspore.dataset.vision.transforms import *  # noqa: F403
from mindspore.dataset.vision.utils import Border, ImageBatchFormat, Inter  # noqa: F401
