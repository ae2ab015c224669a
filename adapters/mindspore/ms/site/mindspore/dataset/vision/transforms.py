"""Image transforms over HWC arrays."""

import functools
import math
import numbers

import numpy as np

from mindspore.dataset.transforms.transforms import Transform, to_numpy_type
from mindspore.dataset.vision.codec import decode
from mindspore.dataset.vision.utils import Border, ImageBatchFormat, Inter

__all__ = ["AdjustGamma", "AutoContrast", "CHW2HWC", "CenterCrop", "Crop", "CutMixBatch", "CutOut", "Decode", "Equalize", "GaussianBlur",
           "Grayscale", "HWC2CHW", "HorizontalFlip", "Invert", "MixUp", "MixUpBatch", "Normalize", "NormalizePad", "Pad", "RandomColorAdjust", "RandomCrop",
           "RandomCropDecodeResize", "RandomErasing", "RandomGrayscale", "RandomHorizontalFlip", "RandomResize", "RandomResizedCrop",
           "RandomRotation", "RandomVerticalFlip", "Rescale", "Resize", "Rotate", "ToNumpy", "ToPIL", "ToTensor", "ToType",
           "VerticalFlip"]  # fmt: skip


def image_of(value, who):
    """HW or HWC."""
    value = np.asarray(value)
    if value.ndim not in (2, 3):
        raise RuntimeError(f"{who}: the shape of input must be <H,W,C> or <H,W>, but got rank: {value.ndim}")
    return value


def size_of(size, name="size"):
    """(height, width) of a size; an int is a square."""
    if isinstance(size, bool) or not isinstance(size, (int, list, tuple)):
        raise TypeError(f"Argument {name} with value {size} is not of type [<class 'int'>, <class 'list'>, <class 'tuple'>], "
                        f"but got {type(size)}.")
    pair = (size, size) if isinstance(size, int) else tuple(size)
    if len(pair) != 2:
        raise TypeError(f"{name} should be a single integer or a list/tuple (h, w) of length 2.")
    for each in pair:
        if isinstance(each, bool) or not isinstance(each, (int, np.integer)):
            raise TypeError(f"Argument {name} with value {size} is not of type [<class 'int'>], but got {type(each)}.")
        if not 0 < each < 2**31:
            raise ValueError(f"Input {name} is not within the required interval of [1, 2147483647].")
    return pair


def probability(prob):
    """A number from 0 to 1."""
    if isinstance(prob, bool) or not isinstance(prob, numbers.Real):
        raise TypeError(f"Argument prob with value {prob} is not of type [<class 'float'>, <class 'int'>], but got {type(prob)}.")
    if not 0 <= prob <= 1:
        raise ValueError("Input prob is not within the required interval of [0.0, 1.0].")
    return prob


@functools.lru_cache(64)
def _weights(before, after, inter):
    """The matrix [after, before] that resizes one axis; pixels have their centres at halves."""
    centres = (np.arange(after) + 0.5) * before / after - 0.5
    if inter == Inter.NEAREST:
        places = np.minimum((np.arange(after) * before / after).astype(int), before - 1)
        return np.eye(before, dtype=np.float32)[places]
    if inter == Inter.AREA and after < before:
        edges = np.arange(after + 1) * before / after
        cells = np.arange(before)
        cover = np.clip(np.minimum(edges[1:, None], cells + 1) - np.maximum(edges[:-1, None], cells), 0, None)
        return (cover / cover.sum(1, keepdims=True)).astype(np.float32)
    matrix = np.zeros((after, before), np.float32)
    if inter in (Inter.CUBIC, Inter.PILCUBIC):
        sharp, offsets = -0.75 if inter == Inter.CUBIC else -0.5, range(-1, 3)

        def kernel(x):
            x = abs(x)
            return np.where(x <= 1, (sharp + 2) * x**3 - (sharp + 3) * x**2 + 1,
                            np.where(x < 2, sharp * x**3 - 5 * sharp * x**2 + 8 * sharp * x - 4 * sharp, 0))
    else:
        offsets = range(2)

        def kernel(x):
            return np.clip(1 - abs(x), 0, 1)

    first = np.floor(centres).astype(int)
    for offset in offsets:
        np.add.at(matrix, (np.arange(after), np.clip(first + offset, 0, before - 1)), kernel(centres - (first + offset)))
    return matrix


def resized(image, height, width, inter=Inter.LINEAR):
    """An image in another size."""
    image = image_of(image, "Resize")
    if image.shape[:2] == (height, width):
        return image
    rows, columns = _weights(image.shape[0], height, inter), _weights(image.shape[1], width, inter)
    flat = image.reshape(image.shape[0], -1).astype(np.float32)
    made = (rows @ flat).reshape(height, image.shape[1], -1).transpose(1, 0, 2).reshape(image.shape[1], -1)
    made = (columns @ made).reshape(width, height, -1).transpose(1, 0, 2).reshape(height, width, *image.shape[2:])
    return to_kind(made, image.dtype)


def to_kind(values, kind):
    """Rounded and cut to an integer type's range."""
    if np.dtype(kind).kind in "iu":
        bounds = np.iinfo(kind)
        values = np.clip(np.rint(values), bounds.min, bounds.max)
    return values.astype(kind)


def filled(image, left, top, right, bottom, fill_value=0, mode=Border.CONSTANT):
    """An image with a border."""
    width = ((top, bottom), (left, right)) + ((0, 0),) * (image.ndim - 2)
    mode = Border(mode)
    if mode != Border.CONSTANT:
        return np.pad(image, width, mode={"edge": "edge", "reflect": "reflect", "symmetric": "symmetric"}[mode.value])
    made = np.pad(image, width)
    if np.any(fill_value):
        inside = np.pad(np.ones(image.shape[:2], bool), width[:2])
        made[~inside] = fill_value
    return made


def sides_of(padding):
    """(left, top, right, bottom) of one, two or four numbers."""
    if isinstance(padding, int):
        return (padding,) * 4
    padding = tuple(padding)
    if len(padding) == 2:
        return padding * 2
    if len(padding) != 4:
        raise ValueError("The size of the padding list or tuple should be 2 or 4.")
    return padding


class Resize(Transform):
    """int: the shorter edge, the ratio is kept; (h, w): that size."""

    def __init__(self, size, interpolation=Inter.LINEAR):
        self.pair, self.shorter, self.inter = size_of(size), isinstance(size, int), inter_of(interpolation)

    def apply(self, value):
        height, width = self.pair
        have = image_of(value, "Resize").shape[:2]
        if self.shorter:
            height, width = (height, int(height * have[1] / have[0])) if have[0] < have[1] else (int(width * have[0] / have[1]), width)
        return resized(value, height, width, self.inter)


def inter_of(value):
    """An Inter."""
    if not isinstance(value, Inter):
        raise TypeError(f"Argument interpolation with value {value} is not of type [<enum 'Inter'>], but got {type(value)}.")
    return value


class RandomResize(Resize):
    """Resize by a random interpolation."""

    def __init__(self, size):
        super().__init__(size)

    def apply(self, value):
        self.inter = (Inter.NEAREST, Inter.LINEAR, Inter.CUBIC, Inter.AREA)[self.rng.randint(4)]
        return super().apply(value)


def cut(image, top, left, height, width, who):
    """A part of an image."""
    if top < 0 or left < 0 or top + height > image.shape[0] or left + width > image.shape[1]:
        raise RuntimeError(f"{who}: the crop box [{top}, {left}, {height}, {width}] is out of the image of shape {list(image.shape)}")
    return image[top : top + height, left : left + width]


class RandomCrop(Transform):
    """A part at a random place, of the image with a border."""

    def __init__(self, size, padding=None, pad_if_needed=False, fill_value=0, padding_mode=Border.CONSTANT):
        self.pair, self.sides = size_of(size), None if padding is None else sides_of(padding)
        self.pad_if_needed, self.fill_value, self.mode = pad_if_needed, fill_value, padding_mode

    def apply(self, value):
        image = image_of(value, "RandomCrop")
        height, width = self.pair
        if self.sides is not None:
            image = filled(image, *self.sides, self.fill_value, self.mode)
        if self.pad_if_needed:
            more = [max(want - have, 0) for want, have in zip(self.pair, image.shape)]
            if any(more):
                image = filled(image, more[1], more[0], more[1], more[0], self.fill_value, self.mode)
        if image.shape[0] < height or image.shape[1] < width:
            raise RuntimeError(f"RandomCrop: invalid crop size, crop size {list(self.pair)} is bigger than the image "
                               f"dimensions {list(image.shape[:2])}")
        top, left = self.rng.randint(image.shape[0] - height + 1), self.rng.randint(image.shape[1] - width + 1)
        return cut(image, top, left, height, width, "RandomCrop")


class Crop(Transform):
    """A part at a place told: (top, left)."""

    def __init__(self, coordinates, size):
        self.place, self.pair = tuple(coordinates), size_of(size)

    def apply(self, value):
        return cut(image_of(value, "Crop"), *self.place, *self.pair, "Crop")


class CenterCrop(Transform):
    """The middle, with a border of zeros where the image is smaller."""

    def __init__(self, size):
        self.pair = size_of(size)

    def apply(self, value):
        image = image_of(value, "CenterCrop")
        more = [max(want - have, 0) for want, have in zip(self.pair, image.shape)]
        if any(more):
            image = filled(image, more[1] // 2, more[0] // 2, more[1] - more[1] // 2, more[0] - more[0] // 2)
        top, left = ((have - want) // 2 for have, want in zip(image.shape, self.pair))
        return cut(image, top, left, *self.pair, "CenterCrop")


class Pad(Transform):
    """A border."""

    def __init__(self, padding, fill_value=0, padding_mode=Border.CONSTANT):
        self.sides, self.fill_value, self.mode = sides_of(padding), fill_value, padding_mode

    def apply(self, value):
        return filled(image_of(value, "Pad"), *self.sides, self.fill_value, self.mode)


class HorizontalFlip(Transform):
    """Left for right."""

    def apply(self, value):
        return image_of(value, type(self).__name__)[:, ::-1]


class VerticalFlip(Transform):
    """Top for bottom."""

    def apply(self, value):
        return image_of(value, type(self).__name__)[::-1]


class _Perhaps:
    def __init__(self, prob=0.5):
        self.prob = probability(prob)

    def apply(self, value):
        return super().apply(value) if self.rng.random_sample() < self.prob else value


class RandomHorizontalFlip(_Perhaps, HorizontalFlip):
    """Left for right, with a probability."""


class RandomVerticalFlip(_Perhaps, VerticalFlip):
    """Top for bottom, with a probability."""


class HWC2CHW(Transform):
    """Channels first."""

    def apply(self, value):
        value = np.asarray(value)
        if value.ndim == 2:
            return value[None]
        if value.ndim != 3:
            raise RuntimeError(f"HWC2CHW: rank of input data should be greater than: 2, but got: {value.ndim}")
        return np.ascontiguousarray(value.transpose(2, 0, 1))


class CHW2HWC(Transform):
    """Channels last."""

    def apply(self, value):
        return np.ascontiguousarray(np.asarray(value).transpose(1, 2, 0))


class Decode(Transform):
    """The bytes of an image file as HWC."""

    def __init__(self, rgb=True, to_pil=False):
        self.rgb = rgb

    def apply(self, value):
        if np.ndim(value) != 1:
            raise RuntimeError(f"Decode: invalid input shape, only support 1D input, got rank: {np.ndim(value)}")
        image = decode(value)
        return image if self.rgb else image[..., ::-1]


class Rescale(Transform):
    """x * rescale + shift as float32."""

    def __init__(self, rescale, shift):
        for name, value in (("rescale", rescale), ("shift", shift)):
            if isinstance(value, bool) or not isinstance(value, numbers.Real):
                raise TypeError(f"Argument {name} with value {value} is not of type [<class 'numbers.Number'>], but got {type(value)}.")
        self.rescale, self.shift = np.float32(rescale), np.float32(shift)

    def apply(self, value):
        return np.asarray(value).astype(np.float32) * self.rescale + self.shift


def _channel_numbers(values, name):
    if not isinstance(values, (list, tuple)):
        raise TypeError(f"Argument {name} with value {values} is not of type [<class 'list'>, <class 'tuple'>], but got {type(values)}.")
    return np.array(values, np.float32)


class Normalize(Transform):
    """(x - mean) / std for each channel, as float32."""

    def __init__(self, mean, std, is_hwc=True):
        self.mean, self.std, self.is_hwc = _channel_numbers(mean, "mean"), _channel_numbers(std, "std"), is_hwc
        if len(self.mean) != len(self.std):
            raise ValueError("Length of mean and std must be equal.")
        if (self.std <= 0).any():
            raise ValueError("std must not be zero or negative.")

    def apply(self, value):
        image = np.asarray(value)
        image = image[..., None] if image.ndim == 2 and self.is_hwc else image[None] if image.ndim == 2 else image
        channels = image.shape[-1 if self.is_hwc else 0]
        if len(self.mean) not in (1, channels):
            raise RuntimeError("Normalize: number of channels does not match the size of mean and std vectors, got channels: "
                               f"{channels}, size of mean: {len(self.mean)}")
        shape = (-1,) if self.is_hwc else (-1, 1, 1)
        made = (image.astype(np.float32) - self.mean.reshape(shape)) / self.std.reshape(shape)
        return made.reshape(np.shape(value)) if np.ndim(value) == 2 else made


class NormalizePad(Normalize):
    """Normalize, and a channel of zeros after the others."""

    def __init__(self, mean, std, dtype="float32", is_hwc=True):
        super().__init__(mean, std, is_hwc)
        if dtype not in ("float32", "float16"):
            raise ValueError("dtype can only be 'float32' or 'float16'.")
        self.kind = dtype

    def apply(self, value):
        made = super().apply(value)
        axis = 2 if self.is_hwc else 0
        return np.concatenate([made, np.zeros_like(np.take(made, [0], axis))], axis).astype(self.kind)


def _range(value, name, centre=1.0, least=0.0, most=math.inf):
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        if value < 0:
            raise ValueError(f"The input value of {name} cannot be negative.")
        value = (max(least, centre - value), centre + value)
    low, high = value
    if not least <= low <= high <= most:
        raise ValueError(f"{name} is not within the required interval.")
    return low, high


class RandomColorAdjust(Transform):
    """Brightness, contrast, saturation and hue, in a random order."""

    def __init__(self, brightness=(1, 1), contrast=(1, 1), saturation=(1, 1), hue=(0, 0)):
        self.ranges = {_brightness: _range(brightness, "brightness"), _contrast: _range(contrast, "contrast"),
                       _saturation: _range(saturation, "saturation"), _hue: _range(hue, "hue", 0.0, -0.5, 0.5)}

    def apply(self, value):
        image = image_of(value, "RandomColorAdjust")
        changes = list(self.ranges.items())
        for place in self.rng.permutation(len(changes)):
            change, (low, high) = changes[place]
            amount = self.rng.uniform(low, high)
            if amount != (0 if change is _hue else 1):
                image = to_kind(change(image.astype(np.float32), amount), value.dtype)
        return image


_GRAY = np.array([0.299, 0.587, 0.114], np.float32)


def _brightness(image, amount):
    return image * amount


def _contrast(image, amount):
    middle = np.rint((image @ _GRAY).mean())
    return middle + (image - middle) * amount


def _saturation(image, amount):
    gray = (image @ _GRAY)[..., None]
    return gray + (image - gray) * amount


def _hue(image, amount):
    high, low = image.max(-1), image.min(-1)
    spread = np.where(high > low, high - low, 1)
    red, green, blue = image[..., 0], image[..., 1], image[..., 2]
    hue = np.where(high == red, (green - blue) / spread, np.where(high == green, 2 + (blue - red) / spread, 4 + (red - green) / spread))
    hue = ((hue / 6 + amount) % 1.0) * 6
    parts = [high - (high - low) * np.clip(np.minimum(k, 4 - k), 0, 1) for k in ((n + hue) % 6 for n in (5, 3, 1))]
    return np.stack(parts, -1)


class RandomResizedCrop(Transform):
    """A part of random area and shape, resized."""

    def __init__(self, size, scale=(0.08, 1.0), ratio=(3.0 / 4.0, 4.0 / 3.0), interpolation=Inter.BILINEAR, max_attempts=10):
        self.pair, self.inter = size_of(size), inter_of(interpolation)
        self.scale, self.ratio, self.max_attempts = _ordered(scale, "scale"), _ordered(ratio, "ratio"), max_attempts

    def box(self, height, width):
        """(top, left, height, width) of the part."""
        for _ in range(self.max_attempts):
            area = self.rng.uniform(*self.scale) * height * width
            shape = math.exp(self.rng.uniform(*map(math.log, self.ratio)))
            across, down = int(round(math.sqrt(area * shape))), int(round(math.sqrt(area / shape)))
            if 0 < across <= width and 0 < down <= height:
                return self.rng.randint(height - down + 1), self.rng.randint(width - across + 1), down, across
        across, down = width, height
        if width / height < self.ratio[0]:
            down = int(round(width / self.ratio[0]))
        elif width / height > self.ratio[1]:
            across = int(round(height * self.ratio[1]))
        return (height - down) // 2, (width - across) // 2, down, across

    def apply(self, value):
        image = image_of(value, type(self).__name__)
        return resized(cut(image, *self.box(*image.shape[:2]), type(self).__name__), *self.pair, self.inter)


def _ordered(pair, name):
    if not isinstance(pair, (list, tuple)) or len(pair) != 2:
        raise TypeError(f"Argument {name} with value {pair} is not of type [<class 'tuple'>, <class 'list'>] of length 2.")
    if pair[0] < 0 or pair[1] <= 0 or pair[0] > pair[1]:
        raise ValueError(f"{name} should be in (min,max) format. Got (max,min).")
    return tuple(pair)


class RandomCropDecodeResize(RandomResizedCrop):
    """The same, of the bytes of an image file."""

    def apply(self, value):
        return super().apply(decode(value))


class Grayscale(Transform):
    """Shades of gray."""

    def __init__(self, num_output_channels=1):
        self.channels = num_output_channels

    def apply(self, value):
        gray = to_kind(image_of(value, "Grayscale")[..., :3] @ _GRAY, value.dtype)
        return np.repeat(gray[..., None], self.channels, 2) if self.channels > 1 else gray


class RandomGrayscale(_Perhaps, Grayscale):
    """Shades of gray, with a probability."""

    def __init__(self, prob=0.1):
        _Perhaps.__init__(self, prob)
        self.channels = 3


class Invert(Transform):
    """255 - x."""

    def apply(self, value):
        return 255 - value


class AdjustGamma(Transform):
    """gain * x ** gamma of values from 0 to 1."""

    def __init__(self, gamma, gain=1):
        self.gamma, self.gain = gamma, gain

    def apply(self, value):
        most = 255.0 if np.asarray(value).dtype.kind in "iu" else 1.0
        return to_kind(np.clip(self.gain * (value / most) ** self.gamma, 0, 1) * most, value.dtype)


class AutoContrast(Transform):
    """The values spread from 0 to 255."""

    def __init__(self, cutoff=0.0, ignore=None):
        self.cutoff = cutoff

    def apply(self, value):
        low, high = np.percentile(value, [self.cutoff, 100 - self.cutoff], axis=(0, 1))
        spread = np.where(high > low, high - low, 255)
        return to_kind(np.where(high > low, (value - low) * 255.0 / spread, value), value.dtype)


class Equalize(Transform):
    """A flat histogram for each channel."""

    def apply(self, value):
        image = np.atleast_3d(value)
        planes = []
        for channel in range(image.shape[2]):
            counts = np.bincount(image[..., channel].ravel(), minlength=256)
            step = (counts.sum() - counts[counts > 0][-1]) // 255
            table = np.arange(256) if step == 0 else np.clip((np.cumsum(counts) - counts + step // 2) // step, 0, 255)
            planes.append(table[image[..., channel]])
        return np.stack(planes, -1).astype(value.dtype).reshape(value.shape)


class GaussianBlur(Transform):
    """A blur over a window."""

    def __init__(self, kernel_size, sigma=None):
        self.windows = size_of(kernel_size, "kernel_size")
        self.sigmas = sigma if isinstance(sigma, (list, tuple)) else (sigma, sigma)

    def apply(self, value):
        made = value.astype(np.float32)
        for axis, (window, sigma) in enumerate(zip(self.windows, self.sigmas)):
            sigma = sigma or 0.3 * ((window - 1) * 0.5 - 1) + 0.8
            weights = np.exp(-((np.arange(window) - window // 2) ** 2) / (2 * sigma**2))
            padded = np.pad(made, [(window // 2, window // 2) if each == axis else (0, 0) for each in range(made.ndim)], mode="reflect")
            size = value.shape[axis]
            made = sum(weight * np.take(padded, np.arange(place, place + size), axis) for place, weight in enumerate(weights / weights.sum()))
        return to_kind(made, value.dtype)


class CutOut(Transform):
    """Square holes."""

    def __init__(self, length, num_patches=1, is_hwc=True):
        self.length, self.count, self.is_hwc = length, num_patches, is_hwc

    def apply(self, value):
        made = np.array(value)
        view = made if self.is_hwc else np.moveaxis(made, 0, -1)
        for _ in range(self.count):
            top, left = self.rng.randint(view.shape[0]), self.rng.randint(view.shape[1])
            half = self.length // 2
            view[max(top - half, 0) : top - half + self.length, max(left - half, 0) : left - half + self.length] = 0
        return made


class RandomErasing(Transform):
    """A random part of a CHW image gets a value, with a probability."""

    def __init__(self, prob=0.5, scale=(0.02, 0.33), ratio=(0.3, 3.3), value=0, inplace=False, max_attempts=10):
        self.prob, self.value, self.crop = probability(prob), value, RandomResizedCrop(1, scale, ratio, max_attempts=max_attempts)

    def apply(self, value):
        if self.rng.random_sample() >= self.prob:
            return value
        self.crop.reseed(self.rng)
        made = np.array(value)
        top, left, height, width = self.crop.box(*made.shape[1:])
        made[:, top : top + height, left : left + width] = self.value if np.ndim(self.value) == 0 else np.reshape(self.value, (-1, 1, 1))
        return made


class Rotate(Transform):
    """Turned by degrees, against the clock, the size kept unless `expand`."""

    def __init__(self, degrees, resample=Inter.NEAREST, expand=False, center=None, fill_value=0):
        self.degrees, self.inter, self.expand, self.center, self.fill_value = degrees, resample, expand, center, fill_value

    def apply(self, value):
        image = image_of(value, type(self).__name__)
        angle = math.radians(self.angle())
        cosine, sine = math.cos(angle), math.sin(angle)
        height, width = image.shape[:2]
        middle = self.center or ((width - 1) / 2, (height - 1) / 2)
        size = (height, width)
        if self.expand:
            box = abs(width * sine) + abs(height * cosine), abs(width * cosine) + abs(height * sine)
            size = tuple(int(math.ceil(round(each, 6))) for each in box)
        down, across = np.indices(size).astype(np.float64)
        turned_about = ((size[1] - 1) / 2, (size[0] - 1) / 2) if self.expand else middle
        across, down = across - turned_about[0], down - turned_about[1]
        x, y = cosine * across - sine * down + middle[0], sine * across + cosine * down + middle[1]
        if self.inter == Inter.NEAREST:
            parts = [(np.rint(y).astype(int), np.rint(x).astype(int), 1.0)]
        else:
            top, left = np.floor(y).astype(int), np.floor(x).astype(int)
            parts = [(top + i, left + j, (1 - abs(y - top - i)) * (1 - abs(x - left - j))) for i in (0, 1) for j in (0, 1)]
        made = np.zeros((*size, *image.shape[2:]), np.float64)
        for rows, columns, share in parts:
            inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
            found = image[np.clip(rows, 0, height - 1), np.clip(columns, 0, width - 1)]
            spread = (lambda each: each[..., None] if image.ndim == 3 else each)
            made += spread(np.broadcast_to(share, size)) * np.where(spread(inside), found, self.fill_value)
        return to_kind(made, image.dtype)

    def angle(self):
        return self.degrees


class RandomRotation(Rotate):
    """Turned by random degrees."""

    def angle(self):
        low, high = (-self.degrees, self.degrees) if isinstance(self.degrees, numbers.Real) else self.degrees
        return self.rng.uniform(low, high)


class MixUpBatch(Transform):
    """Images and one-hot labels of a batch, mixed pairwise by a Beta share."""

    one_column = False

    def __init__(self, alpha=1.0):
        if alpha <= 0:
            raise ValueError("Input alpha is not within the required interval of (0, 16777216].")
        self.alpha = alpha

    def __call__(self, images, labels):
        share, order = np.float32(self.rng.beta(self.alpha, self.alpha)), self.rng.permutation(len(images))
        mixed = to_kind(share * images + (1 - share) * images[order], images.dtype)
        return mixed, (share * labels + (1 - share) * labels[order]).astype(np.float32)


class MixUp(MixUpBatch):
    """The same, under the name that Python's had."""

    def __init__(self, batch_size=None, alpha=1.0, is_single=True):
        super().__init__(alpha)


class CutMixBatch(MixUpBatch):
    """A part of each image of a batch comes from another; labels are mixed by area."""

    def __init__(self, image_batch_format=ImageBatchFormat.NHWC, alpha=1.0, prob=1.0):
        super().__init__(alpha)
        self.format, self.prob = image_batch_format, probability(prob)

    def __call__(self, images, labels):
        if self.rng.random_sample() >= self.prob:
            return images, labels.astype(np.float32)
        made = np.array(images)
        view, source = (made, images) if self.format == ImageBatchFormat.NHWC else (np.moveaxis(made, 1, -1), np.moveaxis(images, 1, -1))
        height, width = view.shape[1:3]
        side, order = math.sqrt(1 - self.rng.beta(self.alpha, self.alpha)), self.rng.permutation(len(images))
        top, left = self.rng.randint(height), self.rng.randint(width)
        down, across = (slice(max(int(at - side * size / 2), 0), int(at + side * size / 2)) for at, size in ((top, height), (left, width)))
        view[:, down, across] = source[order][:, down, across]
        share = np.float32(1 - (min(down.stop, height) - down.start) * (min(across.stop, width) - across.start) / (height * width))
        return made, (share * labels + (1 - share) * labels[order]).astype(np.float32)


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
