"""Image transforms that change the values of pixels, or replace parts, over HWC arrays."""

import math
import numbers

import numpy as np

from mindspore.dataset.transforms.transforms import Transform
from mindspore.dataset.vision.geometry import RandomResizedCrop
from mindspore.dataset.vision.pixels import Perhaps, image_of, probability, range_of, size_of, to_kind
from mindspore.dataset.vision.utils import ImageBatchFormat

__all__ = [
    "AdjustBrightness", "AdjustContrast", "AdjustGamma", "AdjustHue", "AdjustSaturation", "AdjustSharpness", "AutoContrast",
    "CutMixBatch", "CutOut", "Equalize", "GaussianBlur", "Grayscale", "Invert", "MixUp", "MixUpBatch", "Normalize",
    "NormalizePad", "Posterize", "RandomAdjustSharpness", "RandomAutoContrast", "RandomColor", "RandomColorAdjust",
    "RandomEqualize", "RandomErasing", "RandomGrayscale", "RandomInvert", "RandomLighting", "RandomPosterize",
    "RandomSelectSubpolicy", "RandomSharpness", "RandomSolarize", "Rescale", "Solarize", "UniformAugment",
]  # fmt: skip


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


class RandomColorAdjust(Transform):
    """Brightness, contrast, saturation and hue, in a random order."""

    def __init__(self, brightness=(1, 1), contrast=(1, 1), saturation=(1, 1), hue=(0, 0)):
        self.ranges = {_brightness: range_of(brightness, "brightness"), _contrast: range_of(contrast, "contrast"),
                       _saturation: range_of(saturation, "saturation"), _hue: range_of(hue, "hue", 0.0, -0.5, 0.5)}

    def apply(self, value):
        image = image_of(value, "RandomColorAdjust")
        changes = list(self.ranges.items())
        for place in self.rng.permutation(len(changes)):
            change, (low, high) = changes[place]
            amount = self.rng.uniform(low, high)
            if amount != (0 if change is _hue else 1):
                image = to_kind(change(image.astype(np.float32), amount), value.dtype)
        return image


GRAY = np.array([0.299, 0.587, 0.114], np.float32)


def _brightness(image, amount):
    return image * amount


def _contrast(image, amount):
    middle = np.rint((image @ GRAY).mean())
    return middle + (image - middle) * amount


def _saturation(image, amount):
    gray = (image @ GRAY)[..., None]
    return gray + (image - gray) * amount


def _hue(image, amount):
    high, low = image.max(-1), image.min(-1)
    spread = np.where(high > low, high - low, 1)
    red, green, blue = image[..., 0], image[..., 1], image[..., 2]
    hue = np.where(high == red, (green - blue) / spread, np.where(high == green, 2 + (blue - red) / spread, 4 + (red - green) / spread))
    hue = ((hue / 6 + amount) % 1.0) * 6
    parts = [high - (high - low) * np.clip(np.minimum(k, 4 - k), 0, 1) for k in ((n + hue) % 6 for n in (5, 3, 1))]
    return np.stack(parts, -1)


class Grayscale(Transform):
    """Shades of gray."""

    def __init__(self, num_output_channels=1):
        self.channels = num_output_channels

    def apply(self, value):
        gray = to_kind(image_of(value, "Grayscale")[..., :3] @ GRAY, value.dtype)
        return np.repeat(gray[..., None], self.channels, 2) if self.channels > 1 else gray


class RandomGrayscale(Perhaps, Grayscale):
    """Shades of gray, with a probability."""

    def __init__(self, prob=0.1):
        Perhaps.__init__(self, prob)
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


class _Blend(Transform):
    """A change of colours by an amount, fixed or drawn from a range."""

    change, least = None, 0.0

    def __init__(self, factor):
        if isinstance(factor, bool) or not isinstance(factor, numbers.Real):
            raise TypeError(f"Argument factor with value {factor} is not of type [<class 'float'>, <class 'int'>], but got {type(factor)}.")
        if factor < self.least:
            raise ValueError(f"Input factor is not within the required interval of [{self.least}, 16777216].")
        self.range = (factor, factor)

    def apply(self, value):
        image = image_of(value, type(self).__name__)
        return to_kind(type(self).change(image.astype(np.float32), self.rng.uniform(*self.range)), image.dtype)


class _RandomBlend(_Blend):
    def __init__(self, degrees=(0.1, 1.9)):
        if not isinstance(degrees, (list, tuple)):
            raise TypeError(f"Argument degrees with value {degrees} is not of type [<class 'list'>, <class 'tuple'>].")
        if len(degrees) != 2 or degrees[0] < 0 or degrees[1] < degrees[0]:
            raise ValueError("degrees should be in (min,max) format of numbers that are not negative.")
        self.range = tuple(degrees)


def _sharpness(image, amount):
    smooth = np.array(image)
    middle = image[1:-1, 1:-1]
    total = 4 * middle
    for i in range(3):
        for j in range(3):
            total = total + image[i : image.shape[0] - 2 + i, j : image.shape[1] - 2 + j]
    smooth[1:-1, 1:-1] = np.rint(total / 13)
    return smooth + (image - smooth) * amount


def _blend(name, base, change, doc):
    return type(name, (base,), {"change": staticmethod(change), "__doc__": doc, "__module__": __name__})


AdjustBrightness = _blend("AdjustBrightness", _Blend, _brightness, "Lighter or darker.")
AdjustContrast = _blend("AdjustContrast", _Blend, _contrast, "Away from the mean or towards it.")
AdjustSaturation = _blend("AdjustSaturation", _Blend, _saturation, "Away from gray or towards it.")
AdjustSharpness = _blend("AdjustSharpness", _Blend, _sharpness, "Away from the smoothed image or towards it.")
AdjustHue = _blend("AdjustHue", _Blend, _hue, "Colours turned.")
AdjustHue.least = -0.5
RandomColor = _blend("RandomColor", _RandomBlend, _saturation, "Away from gray or towards it, by a random amount.")
RandomSharpness = _blend("RandomSharpness", _RandomBlend, _sharpness, "Sharper or smoother, by a random amount.")


class RandomAdjustSharpness(Perhaps, AdjustSharpness):
    """Sharper or smoother, with a probability."""

    def __init__(self, degree, prob=0.5):
        AdjustSharpness.__init__(self, degree)
        Perhaps.__init__(self, prob)


class RandomInvert(Perhaps, Invert):
    """255 - x, with a probability."""


class RandomEqualize(Perhaps, Equalize):
    """Equalize, with a probability."""


class RandomAutoContrast(Perhaps, AutoContrast):
    """AutoContrast, with a probability."""

    def __init__(self, cutoff=0.0, ignore=None, prob=0.5):
        AutoContrast.__init__(self, cutoff, ignore)
        Perhaps.__init__(self, prob)


class Posterize(Transform):
    """The highest bits of each value."""

    def __init__(self, bits):
        self.range = _bits((bits, bits) if isinstance(bits, int) else bits)

    def apply(self, value):
        low, high = self.range
        return image_of(value, "Posterize") & np.uint8(256 - (1 << (8 - self.rng.randint(low, high + 1))))


def _bits(pair):
    if not isinstance(pair, (list, tuple)) or len(pair) != 2 or any(isinstance(each, bool) or not isinstance(each, int) for each in pair):
        raise TypeError("bits must be an int or a pair of ints.")
    if not 0 <= pair[0] <= pair[1] <= 8:
        raise ValueError("Input bits is not within the required interval of [0, 8].")
    return tuple(pair)


class RandomPosterize(Posterize):
    """A random number of the highest bits."""

    def __init__(self, bits=(8, 8)):
        super().__init__(bits)


class Solarize(Transform):
    """Values within the threshold turned round."""

    def __init__(self, threshold):
        pair = (threshold, threshold) if isinstance(threshold, numbers.Real) else tuple(threshold)
        if len(pair) != 2 or not 0 <= pair[0] <= pair[1] <= 255:
            raise ValueError("threshold must be (min, max) of numbers from 0 to 255.")
        self.pair = pair if pair[0] != pair[1] else (pair[0], 255)

    def chosen(self):
        """The bounds for an image."""
        return self.pair

    def apply(self, value):
        image = image_of(value, "Solarize")
        low, high = self.chosen()
        return np.where((image >= low) & (image <= high), 255 - image, image)


class RandomSolarize(Solarize):
    """Values within a random part of the threshold turned round."""

    def __init__(self, threshold=(0, 255)):
        super().__init__(threshold)

    def chosen(self):
        """The bounds for an image."""
        return sorted(self.rng.randint(self.pair[0], self.pair[1] + 1, 2))


class RandomLighting(Transform):
    """AlexNet's noise of colours."""

    def __init__(self, alpha=0.05):
        if isinstance(alpha, bool) or not isinstance(alpha, numbers.Real):
            raise TypeError(f"Argument alpha with value {alpha} is not of type [<class 'float'>, <class 'int'>], but got {type(alpha)}.")
        if alpha < 0:
            raise ValueError("Input alpha is not within the required interval of [0, 16777216].")
        self.alpha = alpha

    def apply(self, value):
        values = np.array([55.46, 4.794, 1.148])
        vectors = np.array([[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]])
        image = image_of(value, "RandomLighting")
        return to_kind(image + vectors @ (values * self.rng.normal(0, self.alpha, 3)), image.dtype)


class UniformAugment(Transform):
    """Some of the transforms, each with probability one half."""

    def __init__(self, transforms, num_ops=2):
        self.transforms, self.count = list(transforms), num_ops
        if num_ops > len(self.transforms):
            raise ValueError("num_ops is greater than transforms list size.")

    def apply(self, value):
        for place in self.rng.permutation(len(self.transforms))[: self.count]:
            if self.rng.random_sample() < 0.5:
                value = self.transforms[place](value)
        return value


class RandomSelectSubpolicy(Transform):
    """One of several lists of (transform, probability)."""

    def __init__(self, policy):
        if not isinstance(policy, list) or not policy:
            raise (ValueError if policy == [] else TypeError)("policy must be a list of lists of (transform, probability).")
        self.policy = policy

    def apply(self, value):
        for operation, share in self.policy[self.rng.randint(len(self.policy))]:
            if self.rng.random_sample() < share:
                value = operation(value)
        return value
