"""Transforms of any column; Transform is the base of all, here and in vision and text."""

import copy
import enum

import numpy as np
from cairn import _data
from cairn.data.transforms import make, mixed
from cairn.ms import level

from mindspore.dataset.core.remembered import Remembered

__all__ = ["Compose", "Concatenate", "Duplicate", "Fill", "Mask", "OneHot", "PadEnd", "RandomApply", "RandomChoice", "RandomOrder", "Relational",
           "Slice", "Transform", "TypeCast", "Unique"]  # fmt: skip


class Transform(Remembered):
    """A callable over arrays. Random ones draw from `self.rng`, which a pipeline seeds for each row."""

    one_column = True
    transforms = ()  # that it applies in turn
    _rng = _place = None

    @property
    def rng(self):
        if self._rng is None:
            from mindspore.dataset.core import config

            place = self._place or (config.get_seed() if config.seed_is_fixed() else None)
            self._rng = np.random.RandomState(place)
        return self._rng

    def reseed(self, place):
        """Takes its random numbers from those of a place, a list of integers, from now on."""
        self._rng, self._place = None, place
        if self.transforms:
            self.transforms = [copy.copy(each) for each in self.transforms]
            for number, each in enumerate(self.transforms):
                if hasattr(each, "reseed"):
                    each.reseed([*place, number])

    def __call__(self, value):
        if hasattr(value, "asnumpy"):
            value = value.asnumpy()
        return self.apply(value)

    def apply(self, value):
        """The value transformed."""
        raise NotImplementedError


class Native(Transform):
    """One of the library's transforms, which workers run: `name` and `options` say which."""

    name, random = None, False
    _made = None

    def options(self):
        """Numbers by name."""
        return {}

    def transform(self):
        """The library's transform."""
        if self._made is None:
            self._made = make(self.name, **self.options())
        return self._made

    def native(self):
        """What a pipeline runs in its stead, or None."""
        return self.transform()

    def __getstate__(self):  # for processes and copies
        return {**self.__dict__, "_made": None}

    def apply(self, value):
        return self.transform().apply([np.asarray(value)], int(self.rng.randint(2**31)) if self.random else 0)[0]


def to_numpy_type(data_type):
    """The NumPy type of a MindSpore or NumPy type."""
    if isinstance(data_type, (type, np.dtype)) and not hasattr(data_type, "element_type"):
        try:
            return np.dtype(data_type)
        except TypeError:
            pass
    from mindspore.common import dtype as mstype

    try:
        if isinstance(data_type, str):
            raise TypeError
        if data_type is mstype.string:
            return np.dtype(np.str_)
        return np.dtype(mstype.dtype_to_nptype(data_type))
    except (TypeError, KeyError, ValueError):
        raise TypeError(f"Argument data_type with value {data_type} is not of type [mindspore.dtype, numpy.dtype], but got "
                        f"{type(data_type)}.") from None


class TypeCast(Native):
    """Another element type."""

    name = "type_cast"

    def __init__(self, data_type):
        self.kind = to_numpy_type(data_type)

    def options(self):
        return {"kind": _data.kind(self.kind.name)}


class OneHot(Native):
    """A label as a vector of num_classes."""

    name = "one_hot"

    def __init__(self, num_classes, smoothing_rate=0.0):
        if isinstance(num_classes, bool) or not isinstance(num_classes, int):
            raise TypeError(f"Argument num_classes with value {num_classes} is not of type [<class 'int'>], but got {type(num_classes)}.")
        if num_classes <= 0:
            raise ValueError("Input num_classes is not within the required interval of [1, 2147483647].")
        self.num_classes, self.smoothing_rate = num_classes, smoothing_rate

    def options(self):
        return {"classes": self.num_classes, "smoothing_rate": self.smoothing_rate, "vectors": level.at_least("1.10")}


class PadEnd(Native):
    """Filled up to a shape."""

    name = "pad_end"

    def __init__(self, pad_shape, pad_value=None):
        if not isinstance(pad_shape, (list, tuple)):
            raise TypeError(f"Argument pad_shape with value {pad_shape} is not of type [<class 'list'>], but got {type(pad_shape)}.")
        if any(each is not None and each < 1 for each in pad_shape):
            raise ValueError("Input pad_shape is not within the required interval of [1, 9223372036854775807].")
        self.pad_shape, self.pad_value = [-1 if each is None else each for each in pad_shape], 0 if pad_value is None else pad_value

    def options(self):
        value = {"text": self.pad_value} if isinstance(self.pad_value, (str, bytes)) else {"value": self.pad_value}
        return {"shape": self.pad_shape, **value}


class Concatenate(Native):
    """Columns, and constants before and after them, one after the other."""

    name, one_column = "concatenate", False

    def __init__(self, axis=0, prepend=None, append=None):
        if isinstance(axis, bool) or not isinstance(axis, int):
            raise TypeError(f"Argument axis with value {axis} is not of type [<class 'int'>], but got {type(axis)}.")
        if axis not in (0, -1):
            raise ValueError("only 1D concatenation supported.")
        for name, value in (("prepend", prepend), ("append", append)):
            if value is not None and np.asarray(value).ndim != 1:
                raise ValueError(f"can only {name} 1D arrays.")
        self.ends = {name: np.asarray(value) for name, value in (("prepend", prepend), ("append", append)) if value is not None}

    def options(self):
        return self.ends

    def __call__(self, *values):
        return self.transform().apply([np.asarray(each) for each in values], 0)[0]


class Duplicate(Native):
    """A column twice."""

    name, one_column = "duplicate", False

    def __call__(self, value):
        return self.transform().apply([np.asarray(value)], 0)


class Fill(Transform):
    """Every element the same."""

    def __init__(self, fill_value):
        if not isinstance(fill_value, (str, float, bool, int, bytes)):
            raise TypeError(f"Argument fill_value with value {fill_value} is not of type [str, float, bool, int, bytes], but got {type(fill_value)}.")
        self.fill_value = fill_value

    def apply(self, value):
        return np.full_like(value, self.fill_value)


class Relational(enum.IntEnum):
    """The comparisons of Mask."""

    EQ, NE, GT, GE, LT, LE = range(6)


_COMPARISONS = {Relational.EQ: np.equal, Relational.NE: np.not_equal, Relational.GT: np.greater, Relational.GE: np.greater_equal,
                Relational.LT: np.less, Relational.LE: np.less_equal}  # fmt: skip


class Mask(Transform):
    """Which elements compare as told with a constant."""

    def __init__(self, operator, constant, dtype=None):
        if not isinstance(operator, Relational):
            raise TypeError(f"Argument operator with value {operator} is not of type [<enum 'Relational'>], but got {type(operator)}.")
        self.compare, self.constant, self.kind = _COMPARISONS[operator], constant, np.dtype(np.bool_) if dtype is None else to_numpy_type(dtype)

    def apply(self, value):
        value = np.asarray(value)
        if (value.dtype.kind in "SU") != isinstance(self.constant, (str, bytes)):
            raise RuntimeError("Mask: invalid parameter, input datatype does not match the value datatype.")
        if self.kind.kind in "SU":
            raise RuntimeError("Mask: invalid parameter, Only supports bool or numeric datatype for generated mask type.")
        return self.compare(value, np.array(self.constant, value.dtype.kind if value.dtype.kind in "SU" else value.dtype)).astype(self.kind)


class Slice(Transform):
    """A part of an array."""

    def __init__(self, *slices):
        for place, option in enumerate(slices):
            if option is not None and option is not Ellipsis and not isinstance(option, (slice, bool, int, list)):
                kinds = "int, bool, list of int, slice, None, Ellipsis"
                raise TypeError(f"Argument slice_option[{place}] with value {option} is not of type [{kinds}], but got {type(option)}.")
            for each in option if isinstance(option, list) else ():
                if isinstance(each, bool) or not isinstance(each, int):
                    raise TypeError(f"Argument slice_option[{place}] with value {each} is not of type [<class 'int'>], but got {type(each)}.")
        self.slices = tuple(slice(None) if each is None or each is True else [each] if isinstance(each, int) else each for each in slices)

    def apply(self, value):
        value, slices = np.asarray(value), list(self.slices)
        if Ellipsis in slices:
            place = slices.index(Ellipsis)
            slices[place : place + 1] = [slice(None)] * (value.ndim + 1 - len(slices))
        for axis, each in enumerate(slices):  # axis by axis: two lists choose rows and columns, not pairs
            if isinstance(each, list) and not each:
                raise RuntimeError("Slice: Both indices and slices can not be empty.")
            for index in each if isinstance(each, list) else ():
                if not -value.shape[axis] <= index < value.shape[axis]:
                    raise RuntimeError(f"Slice: Index {index} is out of bounds.")
            value = value[(slice(None),) * axis + (each,)]
        return value


class Unique(Transform):
    """Distinct values in the order of their first places, which of them stands where, and how often each came."""

    one_column = False

    def __call__(self, value):
        value = np.asarray(value).ravel()
        values, first, places, counts = np.unique(value, return_index=True, return_inverse=True, return_counts=True)
        order = np.argsort(first)  # as they came
        return values[order], np.argsort(order)[places].astype(np.int32), counts[order].astype(np.int32)


def mixture_of(transforms, **how):
    """The library's mixture of transforms, or None where one of them is not the library's."""
    parts = [each.native() if hasattr(each, "native") else None for each in transforms]
    return None if None in parts else mixed(parts, **how)


def _many(function, values):
    if getattr(function, "one_column", False):
        return tuple(function(value) for value in values)
    result = function(*values)
    return result if isinstance(result, tuple) else (result,)


class Compose(Transform):
    """Several transforms, one after the other."""

    one_column = False
    EMPTY = "transforms list is empty."

    def __init__(self, transforms):
        if not isinstance(transforms, (list, tuple)):
            raise TypeError(f"Argument transforms with value {transforms} is not of type [<class 'list'>], but got {type(transforms)}.")
        if not transforms:
            raise ValueError(self.EMPTY)
        for place, each in enumerate(transforms):
            if not callable(each):
                self.refused(place)
        self.transforms = list(transforms)

    @staticmethod
    def refused(place):
        """Says which of the transforms is none."""
        raise ValueError(f"transforms[{place}] is neither a transform op or a callable pyfunc.")

    def chosen(self):
        """What this call applies."""
        return self.transforms

    def mixture(self):
        """How the library mixes them."""
        return {}

    def native(self):
        """The library's mixture, where all parts are the library's."""
        return mixture_of(self.transforms, **self.mixture())

    def __call__(self, *values):
        if not values:  # before 1.0 a call without images gave what to map
            return self
        for each in self.chosen():
            values = _many(each, values)
        return values[0] if len(values) == 1 else values


class RandomApply(Compose):
    """All, with a probability."""

    def __init__(self, transforms, prob=0.5):
        super().__init__(transforms)
        if not 0 <= prob <= 1:
            raise ValueError("Input prob is not within the required interval of [0, 1].")
        self.prob = prob

    def chosen(self):
        return self.transforms if self.rng.random_sample() < self.prob else []

    def mixture(self):
        return {"prob": self.prob}


class RandomChoice(Compose):
    """One of several."""

    def chosen(self):
        return [self.transforms[self.rng.randint(len(self.transforms))]]

    def mixture(self):
        return {"shuffled": True, "count": 1}


class RandomOrder(Compose):
    """All, in a random order."""

    def chosen(self):
        return [self.transforms[place] for place in self.rng.permutation(len(self.transforms))]

    def mixture(self):
        return {"shuffled": True}
