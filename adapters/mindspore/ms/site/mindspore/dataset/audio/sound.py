"""What transforms of sounds share: checks of arguments in the words of MindSpore's, and the form of waves and spectrograms."""

import numbers

import numpy as np

from mindspore.dataset.transforms.transforms import Transform

_INT, _FLOAT = 2147483647, 16777216
NUMBER, REVERSED = (float, int), (int, float)  # the order in which a sentence names both


class Bounds:
    """What values an argument takes: types, and an interval in which zero may be missing."""

    def __init__(self, types, least=None, most=None, open_left=False, zero=True, may_be_none=False, open_right=False, called=None):
        self.types, self.least, self.most, self.zero, self.may_be_none, self.called = types, least, most, zero, may_be_none, called
        self.open_left, self.open_right = open_left, open_right

    def check(self, value, name):
        name = self.called or name
        if value is None and self.may_be_none:
            return
        if not isinstance(value, self.types) or isinstance(value, bool) and bool not in self.types:
            shown = '""' if isinstance(value, str) and not value else value
            raise TypeError(f"Argument {name} with value {shown} is not of type {list(self.types)}, but got {type(value)}.")
        if self.least is None:
            return
        above = value > self.least if self.open_left else value >= self.least
        below = value < self.most if self.open_right else value <= self.most
        if not (above and below and (self.zero or value)):
            interval = f"{'(' if self.open_left else '['}{self.least}, {self.most}{')' if self.open_right else ']'}"
            if not self.zero:
                interval = f"[{self.least}, 0) and (0, {self.most}]"
            raise ValueError(f"Input {name} is not within the required interval of {interval}.")

    def optional(self):
        """The same, or None."""
        return Bounds(self.types, self.least, self.most, self.open_left, self.zero, True, self.open_right)


def between(least, most, types=NUMBER, **options):
    """Numbers of an interval."""
    return Bounds(types, least, most, **options)


FLAG = Bounds((bool,))
RATE = Bounds((int,), -_INT - 1, _INT, zero=False)
INTEGER = Bounds((int,), -_INT - 1, _INT)
COUNT, WHOLE = Bounds((int,), 1, _INT), Bounds((int,), 0, _INT)
REAL, REAL_NOT_ZERO = between(-_FLOAT, _FLOAT), between(-_FLOAT, _FLOAT, zero=False)
POSITIVE, NOT_NEGATIVE = between(0, _FLOAT, REVERSED, open_left=True), between(0, _FLOAT, REVERSED)
ANY_REAL = between(-_FLOAT, _FLOAT, REVERSED)
Q = between(0, 1, open_left=True)


def one_of(kind):
    """Members of an enumeration."""
    return Bounds((kind,))


class Sound(Transform):
    """A transform whose arguments are checked and kept under their names."""

    least_rank, form = 1, "<..., time>"

    def take(self, given, **bounds):
        """Keeps the arguments of __init__ that bounds name, in this order."""
        for name, each in bounds.items():
            each.check(given[name], name)
            setattr(self, name, given[name])

    def wave(self, value):
        """The input as floating numbers, float32 for integers."""
        value = np.asarray(value)
        name = type(self).__name__
        if value.dtype.kind not in "iufb":
            raise RuntimeError(f"{name}: input tensor type should be int, float or double, but got: {'string' if value.dtype.kind in 'US' else value.dtype}.")
        if value.ndim < self.least_rank or value.size == 0:
            raise RuntimeError(f"{name}: input tensor is not in shape of {self.form}.")
        return value if value.dtype.kind == "f" else value.astype(np.float32)

    def __call__(self, value):
        if not isinstance(value, (np.ndarray, numbers.Number, list, tuple)) and not hasattr(value, "asnumpy"):
            raise TypeError(f"Input should be NumPy audio, got {type(value)}.")
        return super().__call__(value)

    def apply(self, value):
        value = self.wave(value)
        made = self.compute(value.astype(np.float64))
        return made if isinstance(made, tuple) else np.asarray(made).astype(value.dtype)

    def compute(self, x):
        """The result for float64 numbers."""
        raise NotImplementedError


def unit(x):
    """Clipped to [-1, 1]."""
    return np.clip(x, -1, 1)
