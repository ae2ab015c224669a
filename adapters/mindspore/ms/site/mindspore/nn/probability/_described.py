"""What distributions and bijectors share: a name, a dtype, and parameters of one kind and shape."""

from mindspore.nn.cell import Cell
from mindspore.nn.probability import _values as _v


class Described(Cell):
    """Subclasses list their PARAMETERS, which become properties unless a function has such a name."""

    PARAMETERS = ()

    def __init_subclass__(cls, **keywords):
        super().__init_subclass__(**keywords)
        for name in cls.PARAMETERS:
            if not hasattr(cls, name):
                setattr(cls, name, property(lambda self, name=f"_{name}": getattr(self, name)))

    def __init__(self, name, dtype, values):
        super().__init__()
        owner = type(self).__name__
        _v.check_name(name, owner)
        self._name, self._dtype = name, dtype
        self._parameter_type = _v.common_kind(values, dtype, owner)
        self._batch_shape = _v.shape_of(values.values(), owner) if values else None
        self.default_parameters, self.parameter_names = [], []

    @property
    def name(self):
        return self._name

    @property
    def dtype(self):
        return self._dtype

    @property
    def parameter_type(self):
        return self._parameter_type

    @property
    def batch_shape(self):
        return self._batch_shape

    @property
    def is_scalar_batch(self):
        return not self._batch_shape

    def _add_parameter(self, value, name):
        value = _v.as_tensor(value, self._parameter_type)
        self.parameter_names.append(name)
        self.default_parameters.append(value)
        return value

    def _add_parameters(self, values):
        """Adds all of PARAMETERS."""
        for name in self.PARAMETERS:
            value = self._add_parameter(values[name], name)
            if not callable(getattr(type(self), name)):
                setattr(self, f"_{name}", value)
