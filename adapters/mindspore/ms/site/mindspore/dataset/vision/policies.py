"""Augmentation by policies: AutoAugment (Cubuk et al. 2019, tables of its appendix), RandAugment (Cubuk et al. 2020), TrivialAugment
(Müller and Hutter 2021)."""

import math

import numpy as np

from mindspore.dataset.transforms.transforms import Transform
from mindspore.dataset.vision import colours
from mindspore.dataset.vision.geometry import Affine, Rotate
from mindspore.dataset.vision.pixels import fill_of, inter_of, number
from mindspore.dataset.vision.utils import AutoAugmentPolicy, Inter

__all__ = ["AutoAugment", "RandAugment", "TrivialAugmentWide"]

# Two operations each: name, probability, one of ten magnitudes.
_TABLES = {
    AutoAugmentPolicy.IMAGENET:
        "Posterize .4 8 Rotate .6 9, Solarize .6 5 AutoContrast .6 0, Equalize .8 0 Equalize .6 0, Posterize .6 7 Posterize .6 6, "
        "Equalize .4 0 Solarize .2 4, Equalize .4 0 Rotate .8 8, Solarize .6 3 Equalize .6 0, Posterize .8 5 Equalize 1 0, "
        "Rotate .2 3 Solarize .6 8, Equalize .6 0 Posterize .4 6, Rotate .8 8 Color .4 0, Rotate .4 9 Equalize .6 0, "
        "Equalize 0 0 Equalize .8 0, Invert .6 0 Equalize 1 0, Color .6 4 Contrast 1 8, Rotate .8 8 Color 1 2, Color .8 8 Solarize .8 7, "
        "Sharpness .4 7 Invert .6 0, ShearX .6 5 Equalize 1 0, Color .4 0 Equalize .6 0, Equalize .4 0 Solarize .2 4, "
        "Solarize .6 5 AutoContrast .6 0, Invert .6 0 Equalize 1 0, Color .6 4 Contrast 1 8, Equalize .8 0 Equalize .6 0",
    AutoAugmentPolicy.CIFAR10:
        "Invert .1 0 Contrast .2 6, Rotate .7 2 TranslateX .3 9, Sharpness .8 1 Sharpness .9 3, ShearY .5 8 TranslateY .7 9, "
        "AutoContrast .5 0 Equalize .9 0, ShearY .2 7 Posterize .3 7, Color .4 3 Brightness .6 7, Sharpness .3 9 Brightness .7 9, "
        "Equalize .6 0 Equalize .5 0, Contrast .6 7 Sharpness .6 5, Color .7 7 TranslateX .5 8, Equalize .3 0 AutoContrast .4 0, "
        "TranslateY .4 3 Sharpness .2 6, Brightness .9 6 Color .2 8, Solarize .5 2 Invert 0 0, Equalize .2 0 AutoContrast .6 0, "
        "Equalize .2 0 Equalize .6 0, Color .9 9 Equalize .6 0, AutoContrast .8 0 Solarize .2 8, Brightness .1 3 Color .7 0, "
        "Solarize .4 5 AutoContrast .9 0, TranslateY .9 9 TranslateY .7 9, AutoContrast .9 0 Solarize .8 3, Equalize .8 0 Invert .1 0, "
        "TranslateY .7 9 AutoContrast .9 0",
    AutoAugmentPolicy.SVHN:
        "ShearX .9 4 Invert .2 0, ShearY .9 8 Invert .7 0, Equalize .6 0 Solarize .6 6, Invert .9 0 Equalize .6 0, Equalize .6 0 Rotate .9 3, "
        "ShearX .9 4 AutoContrast .8 0, ShearY .9 8 Invert .4 0, ShearY .9 5 Solarize .2 6, Invert .9 0 AutoContrast .8 0, "
        "Equalize .6 0 Rotate .9 3, ShearX .9 4 Solarize .3 3, ShearY .8 8 Invert .7 0, Equalize .9 0 TranslateY .6 6, "
        "Invert .9 0 Equalize .6 0, Contrast .3 3 Rotate .8 4, Invert .8 0 TranslateY 0 2, ShearY .7 6 Solarize .4 8, "
        "Invert .6 0 Rotate .8 4, ShearY .3 7 TranslateX .9 3, ShearX .1 6 Invert .6 0, Solarize .7 2 TranslateY .6 7, "
        "ShearY .8 4 Invert .8 0, ShearX .7 9 TranslateY .8 3, ShearY .8 5 AutoContrast .7 0, ShearX .7 2 Invert .1 0",
}  # fmt: skip
_SIGNED = ("ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate", "Brightness", "Color", "Contrast", "Sharpness")
_ALL = ("Identity", *_SIGNED, "Posterize", "Solarize", "AutoContrast", "Equalize")


class _Policy(Transform):
    """Operations by name and magnitude, which is a place from 0 to bins - 1."""

    most = {"shear": 0.3, "rotate": 30.0, "colour": 0.9, "bits": 4}

    def __init__(self, bins, interpolation, fill_value):
        self.bins, self.inter, self.fill = bins, inter_of(interpolation), fill_of(fill_value)

    def moved(self, size):
        """The largest move in pixels."""
        return 150 / 331 * size

    def change(self, image, name, place):
        """The image after one operation."""
        share, sign = place / (self.bins - 1), self.rng.choice([-1, 1]) if name in _SIGNED else 1
        if name == "Identity":
            return image
        if name in ("AutoContrast", "Equalize", "Invert"):
            return getattr(colours, name)()(image)
        if name == "Posterize":
            return colours.Posterize(8 - int(round(share * self.most["bits"])))(image)
        if name == "Solarize":
            return colours.Solarize(255 * (1 - share))(image)
        if name == "Rotate":
            return Rotate(sign * share * self.most["rotate"], self.inter, fill_value=self.fill)(image)
        if name.startswith(("Shear", "Translate")):
            amounts, along = [0.0, 0.0], 0 if name.endswith("X") else 1
            size = image.shape[1 - along]
            shear = name.startswith("Shear")
            amounts[along] = sign * (math.degrees(math.atan(share * self.most["shear"])) if shear else share * self.moved(size) / size)
            nothing = [0.0, 0.0]
            return Affine(0.0, *((nothing, 1.0, amounts) if shear else (amounts, 1.0, nothing)), self.inter, self.fill)(image)
        kind = {"Color": "AdjustSaturation"}.get(name, f"Adjust{name}")
        return getattr(colours, kind)(1 + sign * share * self.most["colour"])(image)


def _rgb(value, who):
    """An HWC image of three channels of uint8."""
    image = np.asarray(value)
    wrong = "does not match the requirement of operator. Expecting tensor in"
    if image.ndim != 3:
        raise RuntimeError(f"{who}: the dimension of image tensor {wrong} dimension of (3), in shape of <H, W, C>. But got dimension {image.ndim}.")
    if image.shape[2] != 3:
        raise RuntimeError(f"{who}: the channel of image tensor {wrong} channel of (3). But got channel {image.shape[2]}.")
    if image.dtype != np.uint8:
        raise RuntimeError(f"{who}: the data type of image tensor {wrong} type of (uint8). But got type {image.dtype}.")
    return image


class AutoAugment(_Policy):
    """One of the pairs of operations that were found for ImageNet, CIFAR-10 or SVHN."""

    def __init__(self, policy=AutoAugmentPolicy.IMAGENET, interpolation=Inter.NEAREST, fill_value=0):
        if not isinstance(policy, AutoAugmentPolicy):
            raise TypeError(f"Argument policy with value {policy} is not of type [<enum 'AutoAugmentPolicy'>], but got {type(policy)}.")
        super().__init__(10, interpolation, fill_value)
        self.table = [pair.split() for pair in _TABLES[policy].split(", ")]

    def apply(self, value):
        image = _rgb(value, "AutoAugment")
        words = self.table[self.rng.randint(len(self.table))]
        for name, chance, place in (words[:3], words[3:]):
            if self.rng.random_sample() < float(chance):
                image = self.change(image, name, int(place))
        return image


class RandAugment(_Policy):
    """So many operations of one magnitude."""

    def __init__(self, num_ops=2, magnitude=9, num_magnitude_bins=31, interpolation=Inter.NEAREST, fill_value=0):
        number(num_ops, "num_ops", 0), number(num_magnitude_bins, "num_magnitude_bins", 2)
        number(magnitude, "magnitude", 0, num_magnitude_bins - 1)
        super().__init__(num_magnitude_bins, interpolation, fill_value)
        self.count, self.place = num_ops, magnitude

    def apply(self, value):
        image = _rgb(value, "RandAugment")
        for _ in range(self.count):
            image = self.change(image, _ALL[self.rng.randint(len(_ALL))], self.place)
        return image


class TrivialAugmentWide(_Policy):
    """One operation of a random magnitude, from wide ranges."""

    most = {"shear": 0.99, "rotate": 135.0, "colour": 0.99, "bits": 6}

    def __init__(self, num_magnitude_bins=31, interpolation=Inter.NEAREST, fill_value=0):
        super().__init__(number(num_magnitude_bins, "num_magnitude_bins", 2), interpolation, fill_value)

    def moved(self, size):
        """The largest move in pixels."""
        return 32.0

    def apply(self, value):
        return self.change(_rgb(value, "TrivialAugmentWide"), _ALL[self.rng.randint(len(_ALL))], self.rng.randint(self.bins))
