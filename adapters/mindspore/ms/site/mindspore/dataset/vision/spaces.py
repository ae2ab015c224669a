"""Image transforms between colour spaces, by a matrix, and a part replaced."""

import numbers

import numpy as np

from mindspore.dataset.transforms.transforms import Transform
from mindspore.dataset.vision.pixels import image_of, number
from mindspore.dataset.vision.utils import ConvertMode

__all__ = ["ConvertColor", "Erase", "HsvToRgb", "LinearTransformation", "RgbToHsv"]


def _gray(image, red, blue):
    channels = image.astype(np.int64 if image.dtype.kind == "u" else image.dtype)
    if image.dtype.kind == "u":  # OpenCV's weights of 15 bits
        return ((channels[..., red] * 9798 + channels[..., 1] * 19235 + channels[..., blue] * 3735 + (1 << 14)) >> 15).astype(image.dtype)
    return channels[..., red] * 0.299 + channels[..., 1] * 0.587 + channels[..., blue] * 0.114


class ConvertColor(Transform):
    """Channels in another order, with an alpha or without, or as shades of gray."""

    # channels before, and the channels that are taken ("a": an alpha of the highest value)
    _orders = {0: (3, "012a"), 1: (4, "012"), 2: (3, "210a"), 3: (4, "210"), 4: (3, "210"), 5: (4, "2103"), 8: (1, "000"), 9: (1, "000a")}
    _grays = {6: (3, 2, 0), 7: (3, 0, 2), 10: (4, 2, 0), 11: (4, 0, 2)}  # channels before, places of red and blue

    def __init__(self, convert_mode):
        if not isinstance(convert_mode, ConvertMode):
            raise TypeError(f"Argument convert_mode with value {convert_mode} is not of type [<enum 'ConvertMode'>], "
                            f"but got {type(convert_mode)}.")  # fmt: skip
        self.mode = convert_mode

    def apply(self, value):
        image = image_of(value, "ConvertColor")
        if image.dtype not in (np.uint8, np.uint16, np.float32):
            raise RuntimeError(f"ConvertColor: expects uint8, uint16 or float32, found {image.dtype}.")
        image = image[..., None] if image.ndim == 2 else image
        least, most = {1: (1, 1), 3: (3, 4), 4: (3, 4)}[(self._grays.get(self.mode) or self._orders[self.mode])[0]]
        if not least <= image.shape[2] <= most:
            raise RuntimeError(f"ConvertColor: {self.mode.name} expects {least} or {most} channels, found an image of shape {list(image.shape)}.")
        if self.mode in self._grays:
            return _gray(image, *self._grays[self.mode][1:])
        opaque = 1 if image.dtype.kind == "f" else np.iinfo(image.dtype).max
        return np.stack([np.full(image.shape[:2], opaque, image.dtype) if each == "a" or int(each) >= image.shape[2] else image[..., int(each)]
                         for each in self._orders[self.mode][1]], -1)  # fmt: skip


class _Hsv(Transform):
    """Of CHW, or of HWC, or of batches of them."""

    def __init__(self, is_hwc=False):
        if not isinstance(is_hwc, bool):
            raise TypeError(f"Argument is_hwc with value {is_hwc} is not of type [<class 'bool'>], but got {type(is_hwc)}.")
        self.axis = -1 if is_hwc else -3

    def apply(self, value):
        value = np.asarray(value)
        if value.ndim not in (3, 4):
            raise TypeError(f"img shape should be (H, W, C)/(N, H, W, C)/(C ,H, W)/(N, C, H, W). Got {value.shape}.")
        if value.shape[self.axis] != 3:
            raise TypeError(f"img should be 3 channels {self.space} img. Got {value.shape[self.axis]} channels.")
        made = np.stack(self.converted(*np.moveaxis(value.astype(np.float64), self.axis, 0)), self.axis)
        return made.astype(value.dtype) if value.dtype.kind == "f" else made


class RgbToHsv(_Hsv):
    """Hue and saturation from 0 to 1, the value as it is; float64 of integers."""

    space = "RGB"

    @staticmethod
    def converted(red, green, blue):
        """The three channels."""
        high = np.maximum(np.maximum(red, green), blue)
        spread = high - np.minimum(np.minimum(red, green), blue)
        by = np.where(spread == 0, 1, spread)
        away = [(high - each) / by for each in (red, green, blue)]
        hue = np.where(red == high, away[2] - away[1], np.where(green == high, 2 + away[0] - away[2], 4 + away[1] - away[0])) / 6 % 1
        return np.where(spread == 0, 0, hue), np.where(spread == 0, 0, spread / np.where(high == 0, 1, high)), high


class HsvToRgb(_Hsv):
    """From hue and saturation from 0 to 1; float64 of integers."""

    space = "HSV"

    @staticmethod
    def converted(hue, saturation, value):
        """The three channels."""
        sector = np.trunc(hue * 6)
        rest = hue * 6 - sector
        low, falls, rises = value * (1 - saturation), value * (1 - saturation * rest), value * (1 - saturation * (1 - rest))
        parts = [[value, falls, low, low, rises, value], [rises, value, value, falls, low, low], [low, low, rises, value, value, falls]]
        place = sector.astype(np.int64) % 6
        return [np.where(saturation == 0, value, np.choose(place, part)) for part in parts]


class LinearTransformation(Transform):
    """The values of an image as one row, less a mean, times a square matrix."""

    def __init__(self, transformation_matrix, mean_vector):
        for name, value in (("transformation_matrix", transformation_matrix), ("mean_vector", mean_vector)):
            if not isinstance(value, np.ndarray):
                raise TypeError(f"Argument {name} with value {value} is not of type [<class 'numpy.ndarray'>], but got {type(value)}.")
        self.matrix, self.mean = transformation_matrix, mean_vector

    def apply(self, value):
        value = np.asarray(value)
        if self.matrix.ndim != 2 or self.matrix.shape[0] != self.matrix.shape[1]:
            raise ValueError(f"transformation_matrix should be a square matrix. Got shape {self.matrix.shape} instead")
        if value.size != len(self.matrix):
            raise ValueError(f"transformation_matrix shape {self.matrix.shape} not compatible with Numpy image shape {value.shape}.")
        if len(self.mean) != len(self.matrix):
            raise ValueError(f"mean_vector length {len(self.mean)} should match either one dimension of the square transformation_matrix "
                             f"{self.matrix.shape}.")  # fmt: skip
        return ((value.reshape(1, -1) - self.mean) @ self.matrix).reshape(value.shape)


class Erase(Transform):
    """A box gets a value, as far as it lies in the image."""

    def __init__(self, top, left, height, width, value=0.0, inplace=False):
        for name, each, least in (("top", top, 0), ("left", left, 0), ("height", height, 1), ("width", width, 1)):
            number(each, name, least, 2**31 - 1)
        if not isinstance(value, numbers.Real) and not (isinstance(value, (list, tuple)) and len(value) == 3):
            raise TypeError("value should be a number or three of them.")
        for each in np.ravel(value).tolist():
            number(each, "value", 0, 255)
        self.box, self.value = (slice(top, top + height), slice(left, left + width)), value

    def apply(self, value):
        made = np.array(image_of(value, "Erase"))
        if made.shape[2:] != (3,):
            raise RuntimeError(f"Erase: expects an RGB image, found the shape {list(made.shape)}.")
        if any(each.stop - each.start > size for each, size in zip(self.box, made.shape)):
            raise RuntimeError(f"Erase: the box of {[each.stop - each.start for each in self.box]} is larger than the image of shape {list(made.shape)}.")
        made[self.box] = self.value
        return made
