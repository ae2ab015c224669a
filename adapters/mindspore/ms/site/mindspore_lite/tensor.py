"""Inputs and results of models: a name, a shape, a type and elements."""

import enum
import math

import numpy


class DataType(enum.Enum):
    """Types of elements, by their numbers in MindSpore Lite."""

    UNKNOWN = 0
    BOOL = 30
    INT8 = 32
    INT16 = 33
    INT32 = 34
    INT64 = 35
    UINT8 = 37
    UINT16 = 38
    UINT32 = 39
    UINT64 = 40
    FLOAT16 = 42
    FLOAT32 = 43
    FLOAT64 = 44
    INVALID = 2147483647


class Format(enum.Enum):
    """Orders of axes, by their numbers in MindSpore Lite."""

    DEFAULT = -1
    NCHW = 0
    NHWC = 1


def type_of(dtype):
    return DataType.__members__.get(numpy.dtype(dtype).name.upper(), DataType.UNKNOWN)


class Tensor:
    """A tensor of a model; its members are properties, and methods get_... and set_... as up to 1.10."""

    def __init__(self, name="", shape=(), dtype=DataType.FLOAT32, array=None):
        self.name, self.format, self._shape, self._dtype, self._array = name, Format.NCHW, list(shape), dtype, array

    @property
    def shape(self):
        return list(self._shape)

    @shape.setter
    def shape(self, shape):
        if not isinstance(shape, (list, tuple)) or not all(type(each) is int for each in shape):
            raise TypeError(f"shape must be a list of int, but got {shape}.")
        self._shape, self._array = list(shape), None

    @property
    def dtype(self):
        return self._dtype

    @dtype.setter
    def dtype(self, dtype):
        if not isinstance(dtype, DataType):
            raise TypeError(f"data_type must be DataType, but got {type(dtype)}.")
        self._dtype, self._array = dtype, None

    element_num = property(lambda self: math.prod(self._shape))
    data_size = property(lambda self: self.element_num * self.numpy_type.itemsize)
    numpy_type = property(lambda self: numpy.dtype(self._dtype.name.lower()))

    def set_data_from_numpy(self, numpy_obj):
        """Takes the elements of an array of the tensor's shape and type."""
        if not isinstance(numpy_obj, numpy.ndarray):
            raise TypeError(f"numpy_obj must be numpy.ndarray, but got {type(numpy_obj)}.")
        if numpy_obj.dtype != self.numpy_type:
            raise RuntimeError(f"data type not equal! Numpy type: {numpy_obj.dtype}, Tensor type: {self._dtype}")
        if list(numpy_obj.shape) != self._shape:
            raise RuntimeError(f"data size not equal! Numpy shape: {numpy_obj.shape}, Tensor shape: {tuple(self._shape)}")
        self._array = numpy.ascontiguousarray(numpy_obj)

    def get_data_to_numpy(self):
        """The elements, zeros where none were set."""
        return numpy.zeros(self._shape, self.numpy_type) if self._array is None else self._array

    def get_tensor_name(self):
        return self.name

    def set_tensor_name(self, name):
        self.name = name

    def get_shape(self):
        return self.shape

    def set_shape(self, shape):
        self.shape = shape

    def get_data_type(self):
        return self.dtype

    def set_data_type(self, data_type):
        self.dtype = data_type

    def get_format(self):
        return self.format

    def set_format(self, tensor_format):
        self.format = tensor_format

    def get_element_num(self):
        return self.element_num

    def get_data_size(self):
        return self.data_size

    def __str__(self):
        return f"tensor_name: {self.name}, data_type: {self._dtype}, shape: {self._shape}, format: {self.format}."
