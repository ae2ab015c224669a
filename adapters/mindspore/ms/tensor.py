"""What a tensor is: elements in a NumPy array (eager), or a value of the function that is being captured.

Operators and methods are attached by cairn.ms.methods, which stands above cairn.ms.core."""

import numpy

from cairn.ms import dtypes, level
from cairn.ms.refusal import Uncaptured, Wrong

_PLAIN = (bool, int, float, complex, list, tuple, numpy.ndarray, numpy.generic)


def _default_dtype(data):
    """The element type of data that is no array: NumPy's, but float32 for Python's floats from level 1.10 on."""
    if isinstance(data, (float, list, tuple)) and level.at_least("1.10"):
        if numpy.asarray(data).dtype == numpy.float64:
            return numpy.dtype("float32")
    return None


def _elements(data, dtype):
    if isinstance(data, Tensor):
        data = data.asnumpy()
    elif not isinstance(data, _PLAIN):
        raise TypeError(f"For Tensor, the type of input_data should be Tensor, ndarray, number, list or tuple, but got {type(data).__name__}.")
    if isinstance(data, (list, tuple)):
        data = _nested(data)
    try:
        try:
            made = numpy.array(data, dtype if dtype is not None else _default_dtype(data), order="C")
        except OverflowError:  # numbers that the type does not hold are converted as elements of arrays are
            with numpy.errstate(invalid="ignore"):
                made = numpy.array(data).astype(dtype)
    except ValueError as error:  # lists of unequal length, or texts where numbers are wanted
        raise TypeError(f"For Tensor, the input_data is {data} that contain unsupported element: {error}") from None
    texts = isinstance(data, (numpy.ndarray, numpy.str_)) and made.dtype.kind == "U"
    if made.dtype.kind not in "biufc" and not texts:
        raise TypeError(f"For Tensor, input_data should hold numbers, but got elements of {made.dtype}.")
    if isinstance(data, numpy.ndarray) and made.ndim and not made.size:
        raise ValueError("input_data can not contain zero dimension.")
    return made


def _nested(data):
    """Lists in which some elements are tensors."""
    return [
        _nested(each) if isinstance(each, (list, tuple)) else each.asnumpy() if isinstance(each, Tensor) else each
        for each in data
    ]


class Tensor:
    """Tensor(input_data, dtype, shape, init): elements of one type in memory that NumPy shares (asnumpy())."""

    _array = None
    _value = None  # of a captured function: has dtype (a numpy.dtype) and shape
    _mark = None  # what a tape knows of it
    init = None
    const_arg = False
    is_mutable = fixed = False  # parts of a container: made by mutable(); an input of a graph that is not

    def __init__(self, input_data=None, dtype=None, shape=None, init=None, internal=False, const_arg=False):
        if const_arg is not False:
            self.set_const_arg(const_arg, "Tensor")
        if dtype is not None:
            if isinstance(dtype, (str, type)):
                raise TypeError(f"For 'Tensor', the 'dtype' should be a type of mindspore, as mindspore.float32, but got {dtype!r}.")
            dtype = dtypes.numpy_of(dtype)
        if input_data is not None:
            if shape is not None and init is None:
                if isinstance(input_data, numpy.ndarray) and tuple(numpy.atleast_1d(shape)) != input_data.shape:
                    raise ValueError("If input_data is available, shape doesn't need to be set.")
            self._array = _elements(input_data, dtype)
            return
        if init is None or shape is None or dtype is None:
            if shape is None or dtype is None:
                raise Wrong("init, shape and dtype must have values when input_data is None.")
            if None in numpy.atleast_1d(numpy.array(shape, object)):  # tells Cell.set_inputs of sizes that change
                self._lazy = (tuple(-1 if each is None else each for each in shape), dtype)
            else:
                self._array = numpy.zeros(shape, dtype)
            return
        self.init, self._lazy = init, (shape if isinstance(shape, (tuple, list)) else (shape,), dtype)

    def set_const_arg(self, const_arg=True, of="set_const_arg"):
        """As an argument of a graph its elements are compiled in, and it has no gradient."""
        if not isinstance(const_arg, bool):
            given = f"got '{const_arg}' with type '{type(const_arg).__name__}'"
            raise TypeError(f"For '{of}', the type of 'const_arg' should be 'bool', but {given}.")
        self.const_arg = const_arg

    def init_data(self, slice_index=None, shape=None, opt_shard_group=None):
        """Computes the elements of a tensor that was made from an initializer."""
        if self._array is None and self.init is not None:
            dims, dtype = self._lazy
            self._array = numpy.zeros(tuple(shape or dims), dtype)
            self.init(self._array)
        return self

    @property
    def shape(self):
        if self._array is not None:
            return self._array.shape
        return self._value.shape if self._value is not None else tuple(self._lazy[0])

    @property
    def dtype(self):
        if self._array is not None:
            return dtypes.of(self._array.dtype)
        return dtypes.of(self._value.dtype if self._value is not None else self._lazy[1])

    def asnumpy(self):
        """The elements, as an array of the same memory."""
        if self._array is None:
            if self._value is not None:
                raise Uncaptured("the elements of a tensor are known only when the captured function runs")
            self.init_data()
        return self._array

    def __deepcopy__(self, memo):
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        made.__dict__.update(self.__dict__)
        made._mark = None
        if self._array is not None:
            made._array = self._array.copy(order="K")
        return made

    def __getstate__(self):
        return {key: value for key, value in self.__dict__.items() if key not in ("_mark", "_value")}

    def __setstate__(self, state):
        self.__dict__.update(state)


def order_of(array):
    """The axes of an array by their places in memory, slowest first; None for those of a row-major one."""
    if array.flags.c_contiguous:
        return None
    order = sorted(range(array.ndim), key=lambda axis: -array.strides[axis])
    return tuple(order) if array.transpose(order).flags.c_contiguous else None


def laid(array, order):
    """The array as it lies in memory: a row-major one."""
    return array if order is None else array.transpose(order)


def unlaid(array, order):
    """The array of which laid() made this."""
    return array if order is None else array.transpose(numpy.argsort(order))


_new = Tensor.__new__


def wrap(array):
    """A tensor of this very array."""
    made = _new(Tensor)
    made._array = array
    return made
