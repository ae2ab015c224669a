"""Image transforms over HWC arrays: reading, types, and the names of all."""

import numpy as np

from mindspore.dataset.transforms.transforms import Transform, to_numpy_type
from mindspore.dataset.vision import colours, geometry
from mindspore.dataset.vision.codec import decode
from mindspore.dataset.vision.colours import *  # noqa: F403
from mindspore.dataset.vision.geometry import *  # noqa: F403

__all__ = ["Decode", "ToNumpy", "ToPIL", "ToTensor", "ToType", *colours.__all__, *geometry.__all__]


class Decode(Transform):
    """The bytes of an image file as HWC."""

    def __init__(self, rgb=True, to_pil=False):
        for each in (rgb, to_pil):
            if not isinstance(each, bool):
                raise TypeError(f"Argument rgb with value {each} is not of type [<class 'bool'>], but got {type(each)}.")
        self.rgb = rgb

    def apply(self, value):
        if np.ndim(value) != 1:
            raise RuntimeError(f"Decode: invalid input shape, only support 1D input, got rank: {np.ndim(value)}")
        image = decode(value)
        return image if self.rgb else image[..., ::-1]


class ToTensor(Transform):
    """CHW from 0 to 1."""

    def __init__(self, output_type=np.float32):
        self.kind = to_numpy_type(output_type)

    def apply(self, value):
        image = np.atleast_3d(value) if np.ndim(value) == 2 else np.asarray(value)
        made = np.ascontiguousarray(image.transpose(2, 0, 1))
        return (made / np.float32(255.0)).astype(self.kind) if made.dtype == np.uint8 else made.astype(self.kind)


class ToType(Transform):
    """Another element type."""

    def __init__(self, output_type):
        self.kind = to_numpy_type(output_type)

    def apply(self, value):
        return np.asarray(value).astype(self.kind)


class ToPIL(Transform):
    """Images stay arrays here."""

    def apply(self, value):
        return np.asarray(value)


class ToNumpy(ToPIL):
    """An array."""
