"""Image transforms that move pixels, over HWC arrays."""

import math
import numbers

import numpy as np

from mindspore.dataset.engine.checks import whole
from mindspore.dataset.transforms.transforms import Native, Transform, mixture_of
from mindspore.dataset.vision.pixels import (
    border_of,
    crop_of,
    cut,
    fill_of,
    image_of,
    inter_of,
    number,
    ordered,
    probability,
    sides_of,
    size_of,
    to_kind,
)
from mindspore.dataset.vision.utils import Border, Inter, SliceMode

__all__ = ["Affine", "CHW2HWC", "CenterCrop", "Crop", "FiveCrop", "HWC2CHW", "HorizontalFlip", "Pad", "PadToSize", "Perspective", "RandomAffine", "RandomCrop",
           "RandomCropDecodeResize", "RandomHorizontalFlip", "RandomPerspective", "RandomResize", "RandomResizedCrop", "RandomRotation", "RandomVerticalFlip",
           "Resize", "ResizedCrop", "Rotate", "SlicePatches", "TenCrop", "VerticalFlip"]  # fmt: skip


class Resize(Native):
    """int: the shorter edge, the ratio is kept; (h, w): that size."""

    name = "resize"

    def __init__(self, size, interpolation=Inter.LINEAR):
        self.pair, self.shorter, self.inter = size_of(size), isinstance(size, int), inter_of(interpolation)

    def options(self):
        return {"size": self.pair, "shorter": self.shorter, "interpolation": int(self.inter)}


class RandomResize(Transform):
    """Resize by a random interpolation."""

    def __init__(self, size):
        self.choices = [Resize(size, inter) for inter in (Inter.NEAREST, Inter.LINEAR, Inter.CUBIC, Inter.AREA)]

    def native(self):
        """The library's, one of the four."""
        return mixture_of(self.choices, shuffled=True, count=1)

    def apply(self, value):
        return self.choices[self.rng.randint(4)].apply(value)


_BORDERS = list(Border)  # the library's numbers


def _border(fill_value, mode):
    fill = list(fill_value) if isinstance(fill_of(fill_value), (list, tuple)) else [fill_value]
    return {"fill_value": fill, "padding_mode": _BORDERS.index(border_of(mode))}


class RandomCrop(Native):
    """A part at a random place, of the image with a border."""

    name, random = "random_crop", True

    def __init__(self, size, padding=None, pad_if_needed=False, fill_value=0, padding_mode=Border.CONSTANT):
        self.pair, self.sides = size_of(size), (0,) * 4 if padding is None else sides_of(padding)
        self.pad_if_needed, self.border = pad_if_needed, _border(fill_value, padding_mode)

    def options(self):
        return {"size": self.pair, "padding": self.sides, "pad_if_needed": self.pad_if_needed, **self.border}


class Crop(Native):
    """A part at a place told: (top, left)."""

    name = "crop"

    def __init__(self, coordinates, size):
        if not isinstance(coordinates, (list, tuple)) or len(coordinates) != 2:
            raise TypeError("Coordinates should be a list/tuple (y, x) of length 2.")
        for place, each in enumerate(coordinates):
            whole(each, f"coordinates[{place}]", 0)
        self.place, self.pair = tuple(coordinates), crop_of(size)

    def options(self):
        return {"coordinates": self.place, "size": self.pair}


class CenterCrop(Native):
    """The middle, with a border of zeros where the image is smaller."""

    name = "center_crop"

    def __init__(self, size):
        self.pair = crop_of(size)

    def options(self):
        return {"size": self.pair}


class Pad(Native):
    """A border."""

    name = "pad"

    def __init__(self, padding, fill_value=0, padding_mode=Border.CONSTANT):
        self.sides, self.border = sides_of(padding), _border(fill_value, padding_mode)

    def options(self):
        return {"padding": self.sides, **self.border}


class HorizontalFlip(Native):
    """Left for right."""

    name = "horizontal_flip"


class VerticalFlip(Native):
    """Top for bottom."""

    name = "vertical_flip"


class _Flip(Native):
    random = True

    def __init__(self, prob=0.5):
        self.prob = probability(prob)

    def options(self):
        return {"prob": self.prob}


class RandomHorizontalFlip(_Flip):
    """Left for right, with a probability."""

    name = "horizontal_flip"


class RandomVerticalFlip(_Flip):
    """Top for bottom, with a probability."""

    name = "vertical_flip"


class HWC2CHW(Native):
    """Channels first."""

    name = "hwc2chw"


class CHW2HWC(Native):
    """Channels last."""

    name = "chw2hwc"


class RandomResizedCrop(Native):
    """A part of random area and shape, resized."""

    name, random = "random_resized_crop", True

    def __init__(self, size, scale=(0.08, 1.0), ratio=(3.0 / 4.0, 4.0 / 3.0), interpolation=Inter.BILINEAR, max_attempts=10):
        self.pair, self.inter = size_of(size), inter_of(interpolation)
        self.scale, self.ratio, self.max_attempts = ordered(scale, "scale"), ordered(ratio, "ratio"), whole(max_attempts, "max_attempts")

    def options(self):
        return {"size": self.pair, "scale": self.scale, "ratio": self.ratio, "interpolation": int(self.inter),
                "max_attempts": self.max_attempts}  # fmt: skip


class RandomCropDecodeResize(RandomResizedCrop):
    """The same, of the bytes of an image file, of which only the part is decoded."""

    name = "random_crop_decode_resize"


def _filled(value):
    return {"fill_value": [value] if isinstance(value, int) else list(value)}


class Rotate(Native):
    """Turned by degrees, against the clock, the size kept unless `expand`."""

    name, random = "rotate", True

    def __init__(self, degrees, resample=Inter.NEAREST, expand=False, center=None, fill_value=0):
        number(degrees, "degrees", -math.inf, math.inf)
        self._settle(degrees, resample, expand, center, fill_value)

    def _settle(self, degrees, resample, expand, center, fill_value):
        self.degrees, self.inter, self.expand, self.center = degrees, inter_of(resample), expand, center
        fill_value = fill_of(fill_value)
        self.fill_value = fill_value if isinstance(fill_value, int) else tuple(fill_value)[::-1]  # blue comes first, as in the original

    def options(self):
        return {"degrees": self.range(), "interpolation": int(self.inter), "expand": self.expand, **_filled(self.fill_value),
                **({"center": list(self.center)} if self.center else {})}  # fmt: skip

    def range(self):
        """Bounds of the degrees."""
        return (self.degrees, self.degrees)


class RandomRotation(Rotate):
    """Turned by random degrees."""

    def __init__(self, degrees, resample=Inter.NEAREST, expand=False, center=None, fill_value=0):
        if isinstance(degrees, (list, tuple)):
            if len(degrees) != 2:
                raise TypeError("If degrees is a sequence, the length must be 2.")
            if degrees[0] > degrees[1]:
                raise ValueError("degrees should be in (min,max) format. Got (max,min).")
        else:
            number(degrees, "degrees")
        self._settle(degrees, resample, expand, center, fill_value)

    def range(self):
        """Bounds of the degrees."""
        return (-self.degrees, self.degrees) if isinstance(self.degrees, numbers.Real) else self.degrees


class Affine(Native):
    """Turned by degrees, moved by shares of the size, scaled and sheared about the middle."""

    name, random = "affine", True

    def __init__(self, degrees, translate, scale, shear, resample=Inter.NEAREST, fill_value=0):
        if scale <= 0:
            raise ValueError("Input scale must be greater than 0.")
        lean_x, lean_y = (shear, 0) if isinstance(shear, numbers.Real) else shear
        self.ranges = {"degrees": (degrees, degrees), "translate": [each for each in translate for _ in range(2)], "scale": (scale, scale),
                       "shear": (lean_x, lean_x, lean_y, lean_y)}
        self.inter, self.fill_value = inter_of(resample), fill_value

    def options(self):
        return {**self.ranges, "interpolation": int(self.inter), **_filled(self.fill_value)}


class RandomAffine(Affine):
    """The same by random amounts within ranges."""

    def __init__(self, degrees, translate=None, scale=None, shear=None, resample=Inter.NEAREST, fill_value=0):
        if isinstance(degrees, numbers.Real) and degrees < 0:
            raise ValueError("If degrees is a single number, it cannot be negative.")
        if translate is not None and (len(translate) not in (2, 4) or any(not -1 <= each <= 1 for each in translate)):
            raise ValueError("translate should be a list or tuple of 2 or 4 numbers from -1 to 1.")
        if scale is not None and (len(scale) != 2 or scale[0] < 0 or scale[1] <= 0 or scale[0] > scale[1]):
            raise ValueError("scale should be (min, max) of numbers that are not negative.")
        moves = translate or (0, 0)
        lean = shear if shear is not None else 0
        self.ranges = {"degrees": (-degrees, degrees) if isinstance(degrees, numbers.Real) else tuple(degrees), "scale": scale or (1, 1),
                       "translate": moves if len(moves) == 4 else (-moves[0], moves[0], -moves[1], moves[1]),
                       "shear": (-lean, lean, 0, 0) if isinstance(lean, numbers.Real) else (*lean, 0, 0)[:4]}
        self.inter, self.fill_value = inter_of(resample), fill_value


def _points(points, name):
    if not isinstance(points, (list, tuple)) or len(points) != 4 or any(len(each) != 2 for each in points):
        raise TypeError(f"{name} should be a list or tuple of four points (x, y).")
    return [number(each, name, -(2**31), 2**31 - 1) for point in points for each in point]


class Perspective(Native):
    """Four points go to four others."""

    name = "perspective"

    def __init__(self, start_points, end_points, interpolation=Inter.BILINEAR):
        self.start, self.end = _points(start_points, "start_points"), _points(end_points, "end_points")
        self.inter = inter_of(interpolation)

    def options(self):
        return {"start_points": self.start, "end_points": self.end, "interpolation": int(self.inter)}


class RandomPerspective(Transform):
    """The corners go to random places near them, with a probability."""

    def __init__(self, distortion_scale=0.5, prob=0.5, interpolation=Inter.BICUBIC):
        self.scale, self.prob, self.inter = number(distortion_scale, "distortion_scale", 0, 1), probability(prob), inter_of(interpolation)

    def apply(self, value):
        image = image_of(value, "RandomPerspective")
        if self.rng.random_sample() >= self.prob:
            return image
        down, right = (each - 1 for each in image.shape[:2])
        far = [int(each / 2 * self.scale) for each in (image.shape[1], image.shape[0])]
        start = [(0, 0), (right, 0), (right, down), (0, down)]
        end = [tuple(at - self.rng.randint(most + 1) if at else self.rng.randint(most + 1) for at, most in zip(corner, far)) for corner in start]
        return Perspective(start, end, self.inter)(image)


def _two(value, name, least):
    """A number twice, or the numbers of a sequence."""
    if isinstance(value, bool) or not isinstance(value, (int, list, tuple)):
        raise TypeError(f"Argument {name} with value {value} is not of type [<class 'int'>, <class 'list'>, <class 'tuple'>], but got {type(value)}.")
    if isinstance(value, int):
        return (whole(value, name, least),) * 2
    return tuple(whole(each, f"{name}[{place}]", least) for place, each in enumerate(value))


class PadToSize(Transform):
    """Filled up to a size, at the offset or in the middle."""

    def __init__(self, size, offset=None, fill_value=0, padding_mode=Border.CONSTANT):
        self.pair = _two(size, "size", 1)
        if len(self.pair) != 2:
            raise ValueError("The size must be a sequence of length 2.")
        self.offset = _two(() if offset is None else offset, "offset", 0)
        if len(self.offset) not in (0, 2):
            raise ValueError("The offset must be empty or a sequence of length 2.")
        self.border = fill_of(fill_value), border_of(padding_mode)

    def apply(self, value):
        image = np.asarray(value)
        if image.ndim not in (2, 3):
            raise RuntimeError(f"PadToSize: input tensor is not in shape of <H,W> or <H,W,C>, but got rank: {image.ndim}.")
        if image.ndim == 3 and image.shape[2] not in (1, 3):
            raise RuntimeError(f"PadToSize: number of channels for input tensor can only be 1 or 3, but got: {image.shape[2]}.")
        free = [want - have for want, have in zip(self.pair, image.shape)]
        if min(free) < 0:
            raise RuntimeError("PadToSize: the target size to pad should be no less than the original image size, but got target size: "
                               f"{self.pair}, original size: {image.shape[:2]}.")  # fmt: skip
        top, left = self.offset or [each // 2 for each in free]
        if top > free[0] or left > free[1]:
            raise RuntimeError("PadToSize: the sum of offset and original image size should be no more than the target size to pad, but got "
                               f"offset: {self.offset}, original size: {image.shape[:2]}, target size: {self.pair}.")  # fmt: skip
        return Pad((int(left), int(top), int(free[1] - left), int(free[0] - top)), *self.border).apply(image)


class ResizedCrop(Transform):
    """A part of an image, resized."""

    def __init__(self, top, left, height, width, size, interpolation=Inter.BILINEAR):
        self.steps = [Crop((top, left), (height, width)), Resize(size_of(size), interpolation)]

    def native(self):
        """The library's two steps."""
        return mixture_of(self.steps)

    def apply(self, value):
        return self.steps[1].apply(self.steps[0].apply(value))


class FiveCrop(Transform):
    """The four corners and the middle."""

    one_column = False

    def __init__(self, size):
        self.pair = size_of(size)

    def apply(self, value):
        image = image_of(value, type(self).__name__)
        (height, width), (rows, columns) = self.pair, image.shape[:2]
        if height > rows or width > columns:
            raise ValueError(f"Crop size {self.pair} is larger than the image of size {image.shape[:2]}.")
        places = [(0, 0), (0, columns - width), (rows - height, 0), (rows - height, columns - width),
                  ((rows - height) // 2, (columns - width) // 2)]
        return tuple(image[top : top + height, left : left + width] for top, left in places)


class TenCrop(FiveCrop):
    """The same, and of the image turned round."""

    def __init__(self, size, use_vertical_flip=False):
        super().__init__(size)
        self.axis = 0 if use_vertical_flip else 1

    def apply(self, value):
        return super().apply(value) + super().apply(np.flip(value, self.axis))


class SlicePatches(Transform):
    """An image cut into rows and columns of parts."""

    one_column = False

    def __init__(self, num_height=1, num_width=1, slice_mode=SliceMode.PAD, fill_value=0):
        if not isinstance(slice_mode, SliceMode):
            raise TypeError(f"Argument slice_mode with value {slice_mode} is not of type [<enum 'SliceMode'>], but got {type(slice_mode)}.")
        self.counts = number(num_height, "num_height", 1), number(num_width, "num_width", 1)
        self.drops, self.fill_value = slice_mode == SliceMode.DROP, number(fill_value, "fill_value", 0, 255)

    def apply(self, value):
        image = image_of(value, "SlicePatches")
        if any(count > size for count, size in zip(self.counts, image.shape)):
            raise RuntimeError(f"SlicePatches: {list(self.counts)} patches are more than the image of shape {list(image.shape)} has.")
        sizes = [size // count if self.drops else -(-size // count) for size, count in zip(image.shape, self.counts)]
        wide = [(0, max(size * count - have, 0)) for size, count, have in zip(sizes, self.counts, image.shape)]
        image = np.pad(image, wide + [(0, 0)] * (image.ndim - 2), constant_values=self.fill_value)
        return tuple(image[i * sizes[0] : (i + 1) * sizes[0], j * sizes[1] : (j + 1) * sizes[1]]
                     for i in range(self.counts[0]) for j in range(self.counts[1]))
