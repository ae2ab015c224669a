"""Image transforms that change the values of pixels, or replace parts, over HWC arrays."""

import math
import numbers

import numpy as np
from cairn.data.transforms import mixed

from mindspore.dataset.transforms.transforms import Native, Transform, mixture_of
from mindspore.dataset.vision.pixels import Perhaps, image_of, number, ordered, probability, range_of, size_of, to_kind
from mindspore.dataset.vision.utils import ImageBatchFormat

__all__ = [
    "AdjustBrightness", "AdjustContrast", "AdjustGamma", "AdjustHue", "AdjustSaturation", "AdjustSharpness", "AutoContrast",
    "CutMixBatch", "CutOut", "Equalize", "GaussianBlur", "Grayscale", "Invert", "MixUp", "MixUpBatch", "Normalize",
    "NormalizePad", "Posterize", "RandomAdjustSharpness", "RandomAutoContrast", "RandomColor", "RandomColorAdjust",
    "RandomEqualize", "RandomErasing", "RandomGrayscale", "RandomInvert", "RandomLighting", "RandomPosterize",
    "RandomSelectSubpolicy", "RandomSharpness", "RandomSolarize", "Rescale", "Solarize", "UniformAugment",
]  # fmt: skip


class Rescale(Native):
    """x * rescale + shift as float32."""

    name = "rescale"

    def __init__(self, rescale, shift):
        for name, value in (("rescale", rescale), ("shift", shift)):
            if isinstance(value, bool) or not isinstance(value, numbers.Real):
                raise TypeError(f"Argument {name} with value {value} is not of type [<class 'numbers.Number'>], but got {type(value)}.")
        self.rescale, self.shift = rescale, shift

    def options(self):
        return {"rescale": self.rescale, "shift": self.shift}


def _channel_numbers(values, name):
    if not isinstance(values, (list, tuple)):
        raise TypeError(f"Argument {name} with value {values} is not of type [<class 'list'>, <class 'tuple'>], but got {type(values)}.")
    return np.array(values, np.float32)


class Normalize(Native):
    """(x - mean) / std for each channel, as float32."""

    name = "normalize"

    def __init__(self, mean, std, is_hwc=True):
        self.mean, self.std, self.is_hwc = _channel_numbers(mean, "mean"), _channel_numbers(std, "std"), is_hwc
        if ((self.mean < 0) | (self.mean > 255)).any():
            raise ValueError("Input mean is not within the required interval of [0, 255].")
        if len(self.mean) != len(self.std):
            raise ValueError("Length of mean and std must be equal.")
        if (self.std <= 0).any():
            raise ValueError("std must not be zero or negative.")

    def options(self):
        return {"mean": self.mean.tolist(), "std": self.std.tolist(), "is_hwc": self.is_hwc}


class NormalizePad(Normalize):
    """Normalize, and a channel of zeros after the others."""

    name = "normalize_pad"

    def __init__(self, mean, std, dtype="float32", is_hwc=True):
        super().__init__(mean, std, is_hwc)
        if dtype not in ("float32", "float16"):
            raise ValueError("dtype can only be 'float32' or 'float16'.")
        self.kind = dtype

    def options(self):
        return {**super().options(), "half": self.kind == "float16"}


class RandomColorAdjust(Native):
    """Brightness, contrast, saturation and hue, in a random order."""

    name, random = "random_color_adjust", True

    def __init__(self, brightness=(1, 1), contrast=(1, 1), saturation=(1, 1), hue=(0, 0)):
        self.ranges = {"brightness": range_of(brightness, "brightness"), "contrast": range_of(contrast, "contrast"),
                       "saturation": range_of(saturation, "saturation"), "hue": range_of(hue, "hue", 0.0, -0.5, 0.5)}

    def options(self):
        return self.ranges


class Grayscale(Native):
    """Shades of gray."""

    name = "grayscale"

    def __init__(self, num_output_channels=1):
        self.channels = num_output_channels

    def options(self):
        return {"channels": self.channels}


class RandomGrayscale(Grayscale):
    """Shades of gray, with a probability."""

    random = True

    def __init__(self, prob=0.1):
        super().__init__(3)
        self.prob = probability(prob)

    def options(self):
        return {"channels": 3, "prob": self.prob}


class Invert(Native):
    """255 - x."""

    name = "invert"


class AdjustGamma(Native):
    """gain * x ** gamma of values from 0 to 1."""

    name = "adjust_gamma"

    def __init__(self, gamma, gain=1):
        self.gamma, self.gain = number(gamma, "gamma"), number(gain, "gain", -math.inf)

    def options(self):
        return {"gamma": self.gamma, "gain": self.gain}


class AutoContrast(Native):
    """The values spread from 0 to 255."""

    name = "auto_contrast"

    def __init__(self, cutoff=0.0, ignore=None):
        number(cutoff, "cutoff", 0, 50)
        self.cutoff, self.ignore = cutoff, [] if ignore is None else [ignore] if isinstance(ignore, int) else list(ignore)

    def options(self):
        return {"cutoff": self.cutoff, "ignore": self.ignore}


class Equalize(Native):
    """A flat histogram for each channel."""

    name = "equalize"


class GaussianBlur(Native):
    """A blur over a window."""

    name = "gaussian_blur"

    def __init__(self, kernel_size, sigma=None):
        self.windows = size_of(kernel_size, "kernel_size")[::-1]
        self.sigmas = tuple(sigma)[::-1] if isinstance(sigma, (list, tuple)) else (sigma, sigma)
        if any(each % 2 == 0 for each in self.windows):
            raise ValueError("Input kernel_size is not an odd value.")
        for each in self.sigmas:
            if each is not None:
                number(each, "sigma")

    def options(self):
        # by the width, for both axes, where none is told
        sigmas = [each or 0.3 * ((self.windows[1] - 1) * 0.5 - 1) + 0.8 for each in self.sigmas]
        return {"window": self.windows, "sigma": sigmas}


class CutOut(Native):
    """Square holes."""

    name, random = "cut_out", True

    def __init__(self, length, num_patches=1, is_hwc=True):
        self.length, self.count, self.is_hwc = number(length, "length", 1), number(num_patches, "num_patches", 1), is_hwc

    def options(self):
        return {"length": self.length, "num_patches": self.count, "is_hwc": self.is_hwc}


class RandomErasing(Transform):
    """A random part of a CHW image gets a value, or "random" ones, with a probability."""

    def __init__(self, prob=0.5, scale=(0.02, 0.33), ratio=(0.3, 3.3), value=0, inplace=False, max_attempts=10):
        self.prob, self.value, self.max_attempts = probability(prob), value, max_attempts
        self.scale, self.ratio = ordered(scale, "scale"), ordered(ratio, "ratio")

    def apply(self, value):
        if self.rng.random_sample() >= self.prob:
            return value
        made = np.array(value)
        height, width = made.shape[1:]
        for _ in range(self.max_attempts):
            area = self.rng.uniform(*self.scale) * height * width
            shape = math.exp(self.rng.uniform(*map(math.log, self.ratio)))
            across, down = int(round(math.sqrt(area * shape))), int(round(math.sqrt(area / shape)))
            if 0 < across <= width and 0 < down <= height:
                top, left = self.rng.randint(height - down + 1), self.rng.randint(width - across + 1)
                made[:, top : top + down, left : left + across] = self._filling(len(made), down, across)
                break
        return made

    def _filling(self, *shape):
        if isinstance(self.value, str):  # "random"
            return self.rng.standard_normal(shape)
        return self.value if np.ndim(self.value) == 0 else np.reshape(self.value, (-1, 1, 1))


class MixUpBatch(Transform):
    """Images and one-hot labels of a batch, mixed pairwise by a Beta share."""

    one_column = False

    def __init__(self, alpha=1.0):
        if alpha <= 0:
            raise ValueError("Input alpha is not within the required interval of (0, 16777216].")
        self.alpha = alpha

    def columns(self, given):
        """The images and labels of a batch, in shapes that can be mixed."""
        name = type(self).__name__
        if len(given) != 2:
            raise RuntimeError(f"{name}: size of input should be 2 (including image and label), but got: {len(given)}")
        images, labels = given
        if images.ndim != 4:
            raise RuntimeError(f"{name}: You must make sure images are HWC or CHW and batched before calling {name}, but got rank {images.ndim}")
        if labels.ndim not in (2, 3):
            raise RuntimeError(
                f"{name}: wrong labels shape. The second column (labels) must have a shape of NC or NLC where N is the batch size, L is the number "
                f"of labels in each row, and C is the number of classes. labels must be in one-hot format and in a batch, but got rank {labels.ndim}")
        return images, labels

    def __call__(self, *given):
        images, labels = self.columns(given)
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

    def __call__(self, *given):
        images, labels = self.columns(given)
        channels, told = (3, "N,H,W,C") if self.format == ImageBatchFormat.NHWC else (1, "N,C,H,W")
        if images.shape[channels] not in (1, 3):
            raise RuntimeError(f"CutMixBatch: image doesn't match the <{told}> format, got shape {images.shape}")
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


class _Blend(Native):
    """A change of colours by an amount, fixed or drawn from a range."""

    name, random, which, least = "random_color_adjust", True, None, 0.0

    def __init__(self, factor):
        if isinstance(factor, bool) or not isinstance(factor, numbers.Real):
            raise TypeError(f"Argument factor with value {factor} is not of type [<class 'float'>, <class 'int'>], but got {type(factor)}.")
        if factor < self.least:
            raise ValueError(f"Input factor is not within the required interval of [{self.least}, 16777216].")
        self.range = (factor, factor)

    def options(self):
        return {"brightness": (1, 1), "contrast": (1, 1), "saturation": (1, 1), "hue": (0, 0), self.which: self.range}


class AdjustBrightness(_Blend):
    """Lighter or darker."""

    which = "brightness"


class AdjustContrast(_Blend):
    """Away from the mean or towards it."""

    which = "contrast"


class AdjustSaturation(_Blend):
    """Away from gray or towards it."""

    which = "saturation"


class AdjustHue(_Blend):
    """Colours turned, also by 0, which rounds."""

    name, random, least = "adjust_hue", False, -0.5

    def __init__(self, factor):
        super().__init__(factor)
        if factor > 0.5:
            raise ValueError("Input hue_factor is not within the required interval of [-0.5, 0.5].")

    def options(self):
        return {"factor": self.range[0]}


def _degrees(degrees):
    if not isinstance(degrees, (list, tuple)):
        raise TypeError(f"Argument degrees with value {degrees} is not of type [<class 'list'>, <class 'tuple'>].")
    if len(degrees) != 2 or degrees[0] < 0 or degrees[1] < degrees[0]:
        raise ValueError("degrees should be in (min,max) format of numbers that are not negative.")
    return tuple(degrees)


class RandomColor(AdjustSaturation):
    """Away from gray or towards it, by a random amount."""

    def __init__(self, degrees=(0.1, 1.9)):
        self.range = _degrees(degrees)


class AdjustSharpness(Native):
    """Away from the smoothed image or towards it."""

    name, random = "sharpness", True

    def __init__(self, factor):
        self.range = _Blend(factor).range

    def options(self):
        return {"factor": self.range}


class RandomSharpness(AdjustSharpness):
    """Sharper or smoother, by a random amount."""

    def __init__(self, degrees=(0.1, 1.9)):
        self.range = _degrees(degrees)


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


class Posterize(Native):
    """The highest bits of each value."""

    name, random = "posterize", True

    def __init__(self, bits):
        self.range = _bits((bits, bits) if isinstance(bits, int) else bits)

    def options(self):
        return {"bits": self.range}


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


class Solarize(Native):
    """Values within the threshold turned round."""

    name, random = "solarize", True

    def __init__(self, threshold):
        pair = (threshold, threshold) if isinstance(threshold, numbers.Real) else tuple(threshold)
        if len(pair) != 2 or not 0 <= pair[0] <= pair[1] <= 255:
            raise ValueError("threshold must be (min, max) of numbers from 0 to 255.")
        self.fixed = pair[0] == pair[1]
        self.pair = (pair[0], 255) if self.fixed else pair

    def options(self):
        return {"threshold": self.pair}


class RandomSolarize(Solarize):
    """Values within a random part of the threshold turned round."""

    def __init__(self, threshold=(0, 255)):
        super().__init__(threshold)

    def options(self):
        return {"threshold": self.pair, "random": not self.fixed}


class RandomLighting(Native):
    """AlexNet's noise of colours."""

    name, random = "lighting", True

    def __init__(self, alpha=0.05):
        if isinstance(alpha, bool) or not isinstance(alpha, numbers.Real):
            raise TypeError(f"Argument alpha with value {alpha} is not of type [<class 'float'>, <class 'int'>], but got {type(alpha)}.")
        if alpha < 0:
            raise ValueError("Input alpha is not within the required interval of [0, 16777216].")
        self.alpha = alpha

    def options(self):
        return {"alpha": self.alpha}


class UniformAugment(Transform):
    """Some of the transforms, each with probability one half."""

    def __init__(self, transforms, num_ops=2):
        self.transforms, self.count = list(transforms), num_ops
        if num_ops > len(self.transforms):
            raise ValueError("num_ops is greater than transforms list size.")

    def native(self):
        """The library's mixture, where all parts are the library's."""
        return mixture_of(self.transforms, chances=[0.5] * len(self.transforms), shuffled=True, count=self.count)

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

    def native(self):
        """The library's mixture, where all parts are the library's."""
        parts = [mixture_of([each for each, _ in policy], chances=[share for _, share in policy]) for policy in self.policy]
        return None if None in parts else mixed(parts, shuffled=True, count=1)

    def apply(self, value):
        for operation, share in self.policy[self.rng.randint(len(self.policy))]:
            if self.rng.random_sample() < share:
                value = operation(value)
        return value
