"""The same transforms under the names that Python's had; images are HWC arrays, and Normalize stands after ToTensor: CHW."""

from mindspore.dataset.transforms.transforms import Compose, RandomApply, RandomChoice, RandomOrder  # noqa: F401
from mindspore.dataset.vision import transforms as _all
from mindspore.dataset.vision.transforms import *  # noqa: F403
from mindspore.dataset.vision.utils import Border, Inter  # noqa: F401

ComposeOp = Compose
RandomColorAdjust, Cutout = _all.RandomColorAdjust, _all.CutOut


class Normalize(_all.Normalize):
    """(x - mean) / std of a CHW array."""

    def __init__(self, mean, std):
        super().__init__(mean, std, is_hwc=False)


class NormalizePad(_all.NormalizePad):
    """Normalize of a CHW array, and a channel of zeros after the others."""

    def __init__(self, mean, std, dtype="float32"):
        super().__init__(mean, std, dtype, is_hwc=False)
