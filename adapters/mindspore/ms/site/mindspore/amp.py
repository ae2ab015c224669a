"""Mixed precision for training functions: loss scalers, and what tells whether gradients are finite."""

from cairn.ms import core

from mindspore import ops
from mindspore.common import dtype as mstype
from mindspore.common.parameter import Parameter
from mindspore.common.tensor import Tensor
from mindspore.train.amp import auto_mixed_precision, build_train_network, custom_mixed_precision, get_black_list, get_white_list
from mindspore.train.loss_scale_manager import DynamicLossScaleManager, FixedLossScaleManager, LossScaleManager

__all__ = ["DynamicLossScaleManager", "DynamicLossScaler", "FixedLossScaleManager", "LossScaleManager", "LossScaler", "StaticLossScaler",
           "all_finite", "auto_mixed_precision", "build_train_network", "custom_mixed_precision", "get_black_list", "get_white_list",
           "init_status"]  # fmt: skip


def _mapped(function, value):
    return type(value)(_mapped(function, each) for each in value) if isinstance(value, (tuple, list)) else function(value)


def _flat(value):
    return [leaf for each in value for leaf in _flat(each)] if isinstance(value, (tuple, list)) else [value]


def init_status():
    """The device's overflow flag, which all_finite does not need here."""
    return Tensor([0.0], mstype.float32)


def all_finite(inputs, status=None):
    """Whether no element is infinite or NaN, as a bool Tensor."""
    found = None
    for each in _flat(inputs):
        finite = ops.ReduceAll()(ops.IsFinite()(each))
        found = finite if found is None else ops.LogicalAnd()(found, finite)
    return found


class LossScaler:
    """Base: scale a loss, unscale gradients, adjust to whether they were finite."""

    def scale(self, inputs):
        """inputs * scale."""
        raise NotImplementedError

    def unscale(self, inputs):
        """inputs / scale."""
        raise NotImplementedError

    def adjust(self, grads_finite):
        """Changes the scale after a step."""
        raise NotImplementedError


def _positive(value, name, least=1):
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"The argument '{name}' must be a number, but got {type(value)}.")
    if value < least:
        raise ValueError(f"The argument '{name}' must be >= {least}, but got {value}.")
    return value


class StaticLossScaler(LossScaler):
    """One scale."""

    def __init__(self, scale_value):
        self.scale_value = Parameter(Tensor(_positive(scale_value, "scale_value"), mstype.float32), name="scale_value", requires_grad=False)

    def scale(self, inputs):
        return _mapped(lambda each: each * ops.cast(self.scale_value, each.dtype), inputs)

    def unscale(self, inputs):
        return _mapped(lambda each: each / ops.cast(self.scale_value, each.dtype), inputs)

    def adjust(self, grads_finite):
        return False


class DynamicLossScaler(StaticLossScaler):
    """Divided by scale_factor on overflow, multiplied after scale_window finite steps."""

    def __init__(self, scale_value, scale_factor, scale_window):
        super().__init__(scale_value)
        self.scale_factor, self.scale_window = _positive(scale_factor, "scale_factor"), _positive(scale_window, "scale_window")
        self.counter = Parameter(Tensor(0, mstype.int32), name="counter", requires_grad=False)

    def adjust(self, grads_finite):
        factor = Tensor(self.scale_factor, mstype.float32)
        lower = ops.Maximum()(self.scale_value / factor, Tensor(1.0, mstype.float32))
        full = ops.Equal()(self.counter, Tensor(self.scale_window - 1, mstype.int32))
        higher = ops.Select()(full, self.scale_value * factor, self.scale_value * Tensor(1.0, mstype.float32))
        one, none = Tensor(1, mstype.int32), Tensor(0, mstype.int32)
        counter = ops.Select()(ops.LogicalAnd()(grads_finite, ops.LogicalNot()(full)), self.counter + one, none)
        core.assign(self.scale_value, ops.Select()(grads_finite, higher, lower))
        core.assign(self.counter, counter)
        return True
