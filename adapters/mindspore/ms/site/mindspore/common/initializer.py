"""Initializers of parameters."""

import math

import numpy as np
from cairn.ms import dtypes, level
from mindspore.common.tensor import Tensor

_fixed = np.random.RandomState(1)


def _stream():
    """NumPy's stream, which set_seed begins; before 1.1 a fixed one unless a seed is set."""
    from mindspore.common.seed import get_seed

    return np.random if level.at_least("1.1") or get_seed() is not None else _fixed


def _fans(shape):
    """(fan in, fan out) of a weight [out, in, ...]."""
    if not shape:
        return 1, 1
    if len(shape) == 1:
        return shape[0], shape[0]
    rest = int(np.prod(shape[2:]))
    return shape[1] * rest, shape[0] * rest


def _fans_of_weight(shape):
    """The same of a weight that has both."""
    if len(shape) < 2:
        raise ValueError(f"'fan_in' and 'fan_out' can not be computed for tensor with fewer than 2 dimensions, but got dimensions {len(shape)}.")
    return _fans(shape)


def _gain(nonlinearity, slope):
    gains = {
        "tanh": 5.0 / 3,
        "relu": math.sqrt(2.0),
        "leaky_relu": math.sqrt(2.0 / (1 + (slope or 0) ** 2)),
        "selu": 0.75,
    }
    if nonlinearity in gains:
        return gains[nonlinearity]
    if nonlinearity in ("linear", "sigmoid", "conv1d", "conv2d", "conv3d"):
        return 1.0
    raise ValueError(f"For initializers, the 'nonlinearity' '{nonlinearity}' is not supported.")


class Initializer:
    """The base class: a subclass fills a NumPy array in _initialize."""

    def __init__(self, **kwargs):
        self._kwargs = kwargs

    def __call__(self, arr):
        return self._initialize(arr)

    def _initialize(self, *args, **kwargs):
        raise NotImplementedError("Must be overridden!")


class Zero(Initializer):
    """Zeros."""

    def _initialize(self, arr):
        arr[...] = 0


class One(Initializer):
    """Ones."""

    def _initialize(self, arr):
        arr[...] = 1


class Constant(Initializer):
    """One value."""

    def __init__(self, value):
        super().__init__(value=value)
        self.value = value

    def _initialize(self, arr):
        arr[...] = self.value


class Normal(Initializer):
    """Normal numbers."""

    def __init__(self, sigma=0.01, mean=0.0):
        super().__init__(sigma=sigma, mean=mean)
        self.sigma, self.mean = sigma, mean

    def _initialize(self, arr):
        arr[...] = _stream().normal(self.mean, self.sigma, arr.shape)


def _truncated(mean, sigma, low, high, shape):
    """Normal numbers, thrown again where outside of mean + [low, high] * sigma."""
    stream = _stream()
    values = stream.normal(0, 1, shape)
    outside = (values < low) | (values > high)
    while outside.any():
        values[outside] = stream.normal(0, 1, int(outside.sum()))
        outside = (values < low) | (values > high)
    return values * sigma + mean


class TruncatedNormal(Initializer):
    """Normal numbers within two deviations."""

    def __init__(self, sigma=0.01, mean=0.0, a=-2.0, b=2.0):
        super().__init__(sigma=sigma, mean=mean, a=a, b=b)
        self.sigma, self.mean, self.a, self.b = sigma, mean, a, b

    def _initialize(self, arr):
        arr[...] = _truncated(self.mean, self.sigma, self.a, self.b, np.shape(arr) or (1,)).reshape(arr.shape)


class Uniform(Initializer):
    """Numbers in [-scale, scale)."""

    def __init__(self, scale=0.07):
        super().__init__(scale=scale)
        self.scale = scale

    def _initialize(self, arr):
        arr[...] = _stream().uniform(-self.scale, self.scale, arr.shape)


class XavierUniform(Initializer):
    """Numbers in +-gain * sqrt(6 / (fan in + fan out))."""

    def __init__(self, gain=1):
        super().__init__(gain=gain)
        self.gain = gain

    def _initialize(self, arr):
        bound = self.gain * math.sqrt(6.0 / sum(_fans_of_weight(arr.shape)))
        arr[...] = _stream().uniform(-bound, bound, arr.shape)


class XavierNormal(XavierUniform):
    """Normal numbers of deviation gain * sqrt(2 / (fan in + fan out))."""

    def _initialize(self, arr):
        arr[...] = _stream().normal(0, self.gain * math.sqrt(2.0 / sum(_fans_of_weight(arr.shape))), arr.shape)


class HeUniform(Initializer):
    """Numbers in +-sqrt(3) * gain / sqrt(fan)."""

    def __init__(self, negative_slope=0, mode="fan_in", nonlinearity="leaky_relu"):
        super().__init__(negative_slope=negative_slope, mode=mode, nonlinearity=nonlinearity)
        self.negative_slope, self.mode, self.nonlinearity = negative_slope, mode, nonlinearity

    def _deviation(self, arr):
        if self.mode not in ("fan_in", "fan_out"):
            raise ValueError(f"For initializers, the 'mode' must be 'fan_in' or 'fan_out', but got '{self.mode}'.")
        fan = _fans_of_weight(arr.shape)[self.mode == "fan_out"]
        return _gain(self.nonlinearity, self.negative_slope) / math.sqrt(fan)

    def _initialize(self, arr):
        bound = math.sqrt(3.0) * self._deviation(arr)
        arr[...] = _stream().uniform(-bound, bound, arr.shape)


class HeNormal(HeUniform):
    """Normal numbers of deviation gain / sqrt(fan)."""

    def _initialize(self, arr):
        arr[...] = _stream().normal(0, self._deviation(arr), arr.shape)


class VarianceScaling(Initializer):
    """Numbers of variance scale / fan."""

    def __init__(self, scale=1.0, mode="fan_in", distribution="truncated_normal"):
        if scale <= 0:
            raise ValueError(f"For VarianceScaling, the 'scale' must be greater than 0, but got {scale}.")
        if mode not in ("fan_in", "fan_out", "fan_avg"):
            raise ValueError(
                f"For VarianceScaling, the 'mode' must be 'fan_in', 'fan_out' or 'fan_avg', but got {mode}."
            )
        if distribution not in ("uniform", "truncated_normal", "untruncated_normal"):
            raise ValueError(f"For VarianceScaling, the 'distribution' '{distribution}' is not supported.")
        super().__init__(scale=scale, mode=mode, distribution=distribution)
        self.scale, self.mode, self.distribution = scale, mode, distribution

    def _initialize(self, arr):
        fan_in, fan_out = _fans(arr.shape)
        fan = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[self.mode]
        deviation = math.sqrt(self.scale / max(1.0, fan))
        if self.distribution == "uniform":
            bound = math.sqrt(3.0) * deviation
            arr[...] = _stream().uniform(-bound, bound, arr.shape)
        elif self.distribution == "untruncated_normal":
            arr[...] = _stream().normal(0, deviation, arr.shape)
        else:
            arr[...] = _truncated(0, deviation / 0.87962566103423978, -2, 2, arr.shape)


class Orthogonal(Initializer):
    """Orthonormal rows or columns."""

    def __init__(self, gain=1.0):
        super().__init__(gain=gain)
        self.gain = gain

    def _initialize(self, arr):
        if arr.ndim < 2:
            raise ValueError(f"For Orthogonal, the tensor must have two or more dimensions, but got {arr.ndim}.")
        rows, columns = arr.shape[0], int(np.prod(arr.shape[1:]))
        q, r = np.linalg.qr(_stream().normal(0, 1, (max(rows, columns), min(rows, columns))))
        q = q * np.sign(np.diag(r))
        arr[...] = self.gain * (q.T if rows < columns else q).reshape(arr.shape)


class Identity(Initializer):
    """Ones on the diagonal of a matrix."""

    def _initialize(self, arr):
        if arr.ndim != 2:
            raise ValueError(f"For Identity, the tensor must have 2 dimensions, but got {arr.ndim}.")
        arr[...] = np.eye(*arr.shape)


class Sparse(Initializer):
    """Normal numbers, a share of each column 0."""

    def __init__(self, sparsity, sigma=0.01):
        super().__init__(sparsity=sparsity, sigma=sigma)
        self.sparsity, self.sigma = sparsity, sigma

    def _initialize(self, arr):
        if arr.ndim != 2:
            raise ValueError(f"For Sparse, the tensor must have 2 dimensions, but got {arr.ndim}.")
        arr[...] = _stream().normal(0, self.sigma, arr.shape)
        count = math.ceil(arr.shape[0] * self.sparsity)
        for column in range(arr.shape[1]):
            arr[_stream().permutation(arr.shape[0])[:count], column] = 0


class Dirac(Initializer):
    """A convolution that keeps its channels."""

    def __init__(self, groups=1):
        super().__init__(groups=groups)
        self.groups = groups

    def _initialize(self, arr):
        if arr.ndim not in (3, 4, 5):
            raise ValueError(f"For Dirac, the tensor must have 3, 4 or 5 dimensions, but got {arr.ndim}.")
        arr[...] = 0
        middle = tuple(size // 2 for size in arr.shape[2:])
        each = arr.shape[0] // self.groups
        for out in range(arr.shape[0]):
            if out % each < arr.shape[1]:
                arr[(out, out % each, *middle)] = 1


_CLASSES = (
    Zero,
    One,
    Normal,
    TruncatedNormal,
    Uniform,
    XavierUniform,
    XavierNormal,
    HeUniform,
    HeNormal,
    Orthogonal,
    Identity,
    Dirac,
)
_ALIASES = {each.__name__.lower(): each for each in _CLASSES} | {
    "zeros": Zero, "ones": One, "xavier_uniform": XavierUniform, "xavier_normal": XavierNormal, "he_uniform": HeUniform,
    "he_normal": HeNormal, "truncated_normal": TruncatedNormal, "variancescaling": VarianceScaling,
}  # fmt: skip


def initializer(init, shape=None, dtype=None):
    """A Tensor that is computed when it is needed; init: a number, an Initializer, its name, or a Tensor."""
    dtype = dtypes.types["float32"] if dtype is None else dtype
    if not isinstance(init, (Tensor, int, float, str, Initializer)) or isinstance(init, bool):
        raise TypeError(
            "For 'initializer', the type of the 'init' argument should be 'Tensor', 'number', 'string' or 'initializer', "
            f"but got {type(init)}."
        )
    if isinstance(init, Tensor):
        wanted = init.shape if shape is None else (shape,) if isinstance(shape, int) else tuple(shape)
        if wanted != tuple(init.shape):
            raise ValueError(f"For 'initializer', the shape of the 'init' argument should be {wanted}, but got {tuple(init.shape)}.")
        return init
    shape = (shape,) if isinstance(shape, int) else tuple(shape if shape is not None else ())
    for each in shape:
        if isinstance(each, bool) or not isinstance(each, (int, np.integer)) or each <= 0:
            raise ValueError(f"For 'initializer', the 'shape' must hold positive integers, but got {shape}.")
    if isinstance(init, str):
        if init.lower() not in _ALIASES:
            raise ValueError(f"For 'initializer', the class corresponding to '{init}' was not found.")
        init = _ALIASES[init.lower()]()
    elif not isinstance(init, Initializer):
        init = Constant(init)
    return Tensor(shape=shape, dtype=dtype, init=init)


__all__ = ["Initializer", "initializer", "Constant", "VarianceScaling", "Sparse", *(each.__name__ for each in _CLASSES)]


# What initializers of one's own are made of.
_calculate_fan_in_and_fan_out, _calculate_gain = _fans_of_weight, _gain


def _assignment(arr, num):
    """Puts a number, or an array, into the array that an initializer fills."""
    arr[...] = num


def _calculate_correct_fan(shape, mode):
    """The fan of a weight that "fan_in" or "fan_out" names."""
    if mode.lower() not in ("fan_in", "fan_out"):
        raise ValueError(f"'mode' {mode} not supported, please use one of fan_in and fan_out")
    return _fans_of_weight(shape)[mode.lower() == "fan_out"]
