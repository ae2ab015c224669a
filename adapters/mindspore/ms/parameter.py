"""Parameters: tensors with a name, whose memory stays theirs."""

import numpy

from cairn.ms import core, dtypes, promote, ranks
from cairn.ms.refusal import Uncaptured
from cairn.ms.refusal import Wrong
from cairn.ms.tensor import Tensor, wrap

DEFAULT_NAME = "Parameter"


def _content(given):
    """The tensor that a parameter begins with."""
    if isinstance(given, bool):
        raise Wrong("For Parameter, the argument 'default_input' cannot be bool.")
    if isinstance(given, Tensor):
        return given.init_data() if given._array is None and given.init is not None else given
    if isinstance(given, int):
        return Tensor(given, dtypes.types["int32"])
    if isinstance(given, float):
        return Tensor(given, dtypes.types["float32"])
    if isinstance(given, (numpy.ndarray, numpy.generic, list, tuple)):
        return Tensor(given)
    raise Wrong(
        "For Parameter, the argument 'default_input' should be a Tensor, int, float, numpy.ndarray or list, "
        f"but got {type(given).__name__}."
    )


class Parameter(Tensor):
    """Parameter(default_input, name=None, requires_grad=True, layerwise_parallel=False, parallel_optimizer=True)"""

    unique = sliced = cache_enable = parallel_optimizer_comm_recompute = False  # kept for scripts that set them
    cache_shape = key = None

    def __init__(self, default_input, name=None, requires_grad=True, layerwise_parallel=False, parallel_optimizer=True, *,
                 sparse_grad="", has_indexed_slices_grad=False):  # fmt: skip
        content = _content(default_input)
        if content._value is not None:
            raise Uncaptured("a Parameter is made of what the captured function computes")
        if content._array is None:
            raise ValueError("For Parameter, the elements of 'default_input' are not known.")
        self._array = content._array if isinstance(content, Tensor) and content is not default_input else content._array.copy()
        self.name = name
        self.requires_grad = requires_grad
        self.layerwise_parallel, self.parallel_optimizer = layerwise_parallel, parallel_optimizer
        self.is_init, self.sliced, self.unique, self.cache_enable, self.comm_fusion = True, False, False, False, 1
        self.owner = None  # the rank that has the elements, where an optimizer's state is spread over the ranks
        self.inited_param = None
        self.held = False  # whether a Cell has it, which sees to its name

    @property
    def name(self):
        return self._name

    @name.setter
    def name(self, name):
        if name is None:
            name = DEFAULT_NAME
        elif not isinstance(name, str):
            raise ValueError(f"For Parameter, the type of the name should be str, but got {type(name).__name__}.")
        elif not name.strip() or len(name) > 1024:
            raise ValueError(f"For Parameter, the length of the name should be 1 to 1024, but got {len(name.strip())}.")
        self._name = name.strip()

    @property
    def requires_grad(self):
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, value):
        if not isinstance(value, bool):
            raise TypeError(f"For Parameter, 'requires_grad' should be bool, but got {type(value).__name__}.")
        self._requires_grad = value

    @property
    def comm_fusion(self):
        """The number of the bucket in which the gradient is exchanged; 1: one that the parallel context cuts, 0: by itself."""
        return self._comm_fusion

    @comm_fusion.setter
    def comm_fusion(self, number):
        if isinstance(number, bool) or not isinstance(number, int):
            raise TypeError(f"For 'Parameter', the type of 'comm_fusion' must be int, but got {type(number).__name__}.")
        if number < 0:
            raise ValueError(f"For 'Parameter', 'comm_fusion' must be at least 0, but got {number}.")
        self._comm_fusion = number

    @property
    def is_here(self):
        """Whether this rank has the elements."""
        return self.owner is None or self.owner == ranks.group().rank

    @property
    def layerwise_parallel(self):
        return self._layerwise_parallel

    @layerwise_parallel.setter
    def layerwise_parallel(self, value=True):
        if not isinstance(value, bool):
            raise TypeError(f"For Parameter, 'layerwise_parallel' should be bool, but got {type(value).__name__}.")
        self._layerwise_parallel = value

    def asnumpy(self):
        """The elements, as an array of the parameter's memory."""
        if core.here.recorder is not None and core.here.recorder.symbolic:
            raise Uncaptured("the elements of a Parameter are known only when the captured function runs")
        return self._array

    @property
    def data(self):
        return self

    def value(self):
        """What it holds: a Tensor of the parameter's memory, or where somebody records the parameter itself."""
        return self if core.here.recorder is not None else wrap(self._array)

    @property
    def default_input(self):
        return self

    @default_input.setter
    def default_input(self, data):
        self.set_data(data)

    def set_data(self, data, slice_shape=False):
        """The parameter takes the elements of `data`, of its own shape and of no higher element type."""
        if isinstance(data, bool) or not isinstance(data, (Tensor, int, float)):
            raise TypeError(f"Parameter {self.name} can be set to a Tensor, int or float, but got {type(data).__name__}.")
        if not isinstance(data, Tensor):
            refused = isinstance(data, float) and promote.nptype(self).kind in "iu"
            data = Tensor(data, dtypes.types["float32"] if refused else self.dtype)
        elif data._array is None and data.init is not None:
            data.init_data()
        if data.shape != self.shape and not slice_shape:
            raise ValueError(f"Can not change the shape of Parameter {self.name}, which is {self.shape}, to {data.shape}.")
        own, given = promote.nptype(self), promote.nptype(data)
        if own != given and promote.together(own, given) != own:
            raise TypeError(
                f"Data type conversion of 'Parameter' is not supported, so data type {data.dtype} cannot be converted "
                f"to data type {self.dtype} automatically."
            )
        if data.shape != self.shape:
            self._array = data.asnumpy().astype(own)
            return self
        return core.assign(self, promote.cast(data, own))

    def set_parameter_data(self, data, slice_shape=False):
        """set_data as releases before 1.0 call it."""
        return self.set_data(data, slice_shape)

    def _take(self, made):
        core.assign(self, made)

    def set_dtype(self, dtype):
        """Changes the element type."""
        self._array = self._array.astype(dtypes.numpy_of(dtype))

    def init_data(self, layout=None, set_sliced=False):
        return self

    def clone(self, init="same"):
        """A parameter like it, of the same elements, or of what an initializer gives."""
        made = Parameter(self, self.name, self.requires_grad, self.layerwise_parallel, self.parallel_optimizer)
        if not isinstance(init, str) or init != "same":
            from mindspore.common.initializer import initializer

            made._array = initializer(init, self.shape, self.dtype).init_data().asnumpy()
        content, made._array = made._array, numpy.empty_like(self._array)  # in memory as this one
        numpy.copyto(made._array, content)
        return made

    def lay(self, order):
        """Keeps the elements in memory by these axes, slowest first: what reads them so need not move them."""
        self._array = numpy.ascontiguousarray(self._array.transpose(order)).transpose(numpy.argsort(order))

    def set_param_ps(self, init_in_server=False):
        """Accepted; there is one process."""

    def __repr__(self):
        return (
            f"Parameter (name={self.name}, shape={self.shape}, dtype={self.dtype}, requires_grad={self.requires_grad})"
        )

    __str__ = __repr__
    __hash__ = Tensor.__hash__

    def __eq__(self, other):
        if isinstance(other, Parameter) and any(a != b and 1 not in (a, b) for a, b in zip(self.shape[::-1], other.shape[::-1])):
            return False  # `p in parameters` looks for one among those of other shapes
        return Tensor.__eq__(self, other)


def named_twice(parameter):
    """What is said of a Parameter that has another one's name."""
    return f"The value {parameter}, its name '{parameter.name}' already exists. Please set a unique name for the parameter."


class ParameterTuple(tuple):
    """A tuple of parameters of different names."""

    def __new__(cls, iterable):
        parameters, names, seen = [], set(), set()
        for each in iterable:
            if not isinstance(each, Parameter):
                raise TypeError(f"For ParameterTuple, each element should be a Parameter, but got {type(each).__name__}.")
            parameters.append(each)
            if id(each) in seen:
                continue
            seen.add(id(each))
            if each.name in names:
                raise ValueError(named_twice(each))
            names.add(each.name)
        return tuple.__new__(cls, parameters)

    def clone(self, prefix, init="same"):
        """Parameters named `prefix.name` like these."""
        if not isinstance(prefix, str):
            raise TypeError(f"For ParameterTuple.clone, 'prefix' should be str, but got {type(prefix).__name__}.")
        made = []
        for each in self:
            copy = each.clone(init)
            copy.name = f"{prefix}.{copy.name}"
            made.append(copy)
        return ParameterTuple(made)
