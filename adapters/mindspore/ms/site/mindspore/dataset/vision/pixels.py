"""What image transforms share: checks of their arguments, parts, rounding."""

import math
import numbers

import numpy as np
from cairn.data.transforms import mixed

from mindspore.dataset.vision.utils import Border, Inter


def image_of(value, who):
    """HW or HWC."""
    value = np.asarray(value)
    if value.ndim not in (2, 3):
        raise RuntimeError(f"{who}: the shape of input must be <H,W,C> or <H,W>, but got rank: {value.ndim}")
    return value


def size_of(size, name="size", most=2**31 - 1):
    """(height, width) of a size; an int is a square."""
    if isinstance(size, bool) or not isinstance(size, (int, list, tuple)):
        raise TypeError(f"Argument {name} with value {size} is not of type [<class 'int'>, <class 'list'>, <class 'tuple'>], "
                        f"but got {type(size)}.")
    pair = (size, size) if isinstance(size, int) else tuple(size)
    if len(pair) != 2:
        raise TypeError(f"{name.capitalize()} should be a single integer or a list/tuple (h, w) of length 2.")
    for each in pair:
        if isinstance(each, bool) or not isinstance(each, (int, np.integer)):
            raise TypeError(f"Argument {name} with value {size} is not of type [<class 'int'>], but got {type(each)}.")
        if not 0 < each <= most:
            raise ValueError(f"Input {name} is not within the required interval of [1, {most}].")
    return pair


def crop_of(size):
    """The size of a part of an image."""
    return size_of(size, most=16777216)


def number(value, name, least=0, most=16777216):
    """A number within bounds."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"Argument {name} with value {value} is not of type [<class 'float'>, <class 'int'>], but got {type(value)}.")
    if not least <= value <= most:
        raise ValueError(f"Input {name} is not within the required interval of [{least}, {most}].")
    return value


def probability(prob):
    """A number from 0 to 1."""
    if isinstance(prob, bool) or not isinstance(prob, numbers.Real):
        raise TypeError(f"Argument prob with value {prob} is not of type [<class 'float'>, <class 'int'>], but got {type(prob)}.")
    if not 0 <= prob <= 1:
        raise ValueError("Input prob is not within the required interval of [0.0, 1.0].")
    return prob


def to_kind(values, kind):
    """Rounded and cut to an integer type's range."""
    if np.dtype(kind).kind in "iu":
        bounds = np.iinfo(kind)
        values = np.clip(np.rint(values), bounds.min, bounds.max)
    return values.astype(kind)


def sides_of(padding):
    """(left, top, right, bottom) of one, two or four numbers."""
    if not isinstance(padding, (int, tuple, list)) or isinstance(padding, bool):
        raise TypeError(f"Argument padding with value {padding} is not of type [<class 'tuple'>, <class 'list'>, <class 'numbers.Number'>], "
                        f"but got {type(padding)}.")
    padding = (padding,) * 4 if isinstance(padding, int) else tuple(padding)
    for each in padding:
        number(each, "padding")
    if len(padding) == 2:
        return padding * 2
    if len(padding) != 4:
        raise ValueError("The size of the padding list or tuple should be 2 or 4.")
    return padding


def fill_of(value):
    """A colour: one number or three, from 0 to 255."""
    if not isinstance(value, int) and not (isinstance(value, (tuple, list)) and len(value) == 3):
        raise TypeError("fill_value should be a single integer or a 3-tuple.")
    for place, each in enumerate(value) if isinstance(value, (tuple, list)) else (("", value),):
        name = f"fill_value[{place}]" if place != "" else "fill_value"
        if not isinstance(each, (int, np.integer)):
            raise TypeError(f"Argument {name} with value {each} is not of type [<class 'int'>], but got {type(each)}.")
        number(each, name, 0, 255)
    return value


def border_of(value):
    """A Border."""
    if not isinstance(value, Border):
        raise TypeError(f"Argument padding_mode with value {value} is not of type [<enum 'Border'>], but got {type(value)}.")
    return value


def inter_of(value):
    """An Inter."""
    if not isinstance(value, Inter):
        raise TypeError(f"Argument interpolation with value {value} is not of type [<enum 'Inter'>], but got {type(value)}.")
    return value


def cut(image, top, left, height, width, who):
    """A part of an image."""
    if top < 0 or left < 0 or top + height > image.shape[0] or left + width > image.shape[1]:
        raise RuntimeError(f"{who}: the crop box [{top}, {left}, {height}, {width}] is out of the image of shape {list(image.shape)}")
    return image[top : top + height, left : left + width]


class Perhaps:
    """Before a transform that has no chance of its own: it is applied with a probability."""

    def __init__(self, prob=0.5):
        self.prob = probability(prob)

    def native(self):
        """The library's, with the chance."""
        plain = super().native() if hasattr(super(), "native") else None
        return None if plain is None else mixed([plain], prob=self.prob)

    def apply(self, value):
        return super().apply(value) if self.rng.random_sample() < self.prob else value


def range_of(value, name, centre=1.0, least=0.0, most=math.inf):
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        if value < 0:
            raise ValueError(f"The input value of {name} cannot be negative.")
        value = (max(least, centre - value), centre + value)
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise TypeError(f"Argument {name} with value {value} is not of type [<class 'numbers.Number'>, <class 'list'>, <class 'tuple'>], "
                        f"but got {type(value)}.")
    low, high = value
    if not least <= low <= high <= most:
        raise ValueError(f"{name} is not within the required interval.")
    return low, high


def ordered(pair, name):
    if not isinstance(pair, (list, tuple)) or len(pair) != 2:
        raise TypeError(f"Argument {name} with value {pair} is not of type [<class 'tuple'>, <class 'list'>] of length 2.")
    if pair[0] < 0 or pair[1] <= 0 or pair[0] > pair[1]:
        raise ValueError(f"{name} should be in (min,max) format. Got (max,min).")
    return tuple(pair)
