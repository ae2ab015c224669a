"""Image transforms over HWC arrays: reading, types, and the names of all."""

import numpy as np
from cairn import _data

from mindspore.dataset.transforms.transforms import Native, Transform, TypeCast, to_numpy_type
from mindspore.dataset.vision import boxes, colours, geometry, policies, spaces
from mindspore.dataset.vision.boxes import *  # noqa: F403
from mindspore.dataset.vision.colours import *  # noqa: F403
from mindspore.dataset.vision.geometry import *  # noqa: F403
from mindspore.dataset.vision.policies import *  # noqa: F403
from mindspore.dataset.vision.spaces import *  # noqa: F403

__all__ = ["Decode", "ToNumpy", "ToPIL", "ToTensor", "ToType"]
for _each in (boxes, colours, geometry, policies, spaces):
    __all__ += _each.__all__


class Decode(Native):
    """The bytes of an image file as HWC."""

    name = "decode"

    def __init__(self, rgb=True, to_pil=False):
        for each in (rgb, to_pil):
            if not isinstance(each, bool):
                raise TypeError(f"Argument rgb with value {each} is not of type [<class 'bool'>], but got {type(each)}.")
        self.rgb = rgb

    def options(self):
        return {"rgb": self.rgb}


class ToTensor(Native):
    """CHW, 255 as 1."""

    name = "to_tensor"

    def __init__(self, output_type=np.float32):
        self.kind = to_numpy_type(output_type)

    def options(self):
        return {"kind": _data.kind(self.kind.name)}


class ToType(TypeCast):
    """Another element type."""


class ToPIL(Transform):
    """Images stay arrays here."""

    def apply(self, value):
        value = np.asarray(value)
        return value[..., 0] if value.ndim == 3 and value.shape[2] == 1 else value


class ToNumpy(Transform):
    """An array."""

    def apply(self, value):
        return np.asarray(value)
