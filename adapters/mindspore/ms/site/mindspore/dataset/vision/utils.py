"""Names of interpolations, borders and image modes."""

from enum import Enum, IntEnum

__all__ = ["Border", "ConvertMode", "ImageBatchFormat", "ImageReadMode", "Inter", "SliceMode"]


class Inter(IntEnum):
    NEAREST = 0
    ANTIALIAS = 1
    LINEAR = 2
    BILINEAR = 2
    CUBIC = 3
    BICUBIC = 3
    AREA = 4
    PILCUBIC = 5


class Border(str, Enum):
    CONSTANT = "constant"
    EDGE = "edge"
    REFLECT = "reflect"
    SYMMETRIC = "symmetric"


class ImageBatchFormat(IntEnum):
    NHWC = 0
    NCHW = 1


class ImageReadMode(IntEnum):
    UNCHANGED = 0
    GRAYSCALE = 1
    COLOR = 2


class ConvertMode(IntEnum):
    COLOR_BGR2BGRA = 0
    COLOR_BGR2RGB = 4
    COLOR_RGB2BGR = 4
    COLOR_BGR2GRAY = 6
    COLOR_RGB2GRAY = 7


class SliceMode(IntEnum):
    PAD = 0
    DROP = 1
