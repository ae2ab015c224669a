"""Cells around a network: with a loss, with a training step, with an evaluation."""

import numpy as np
from cairn.ms import core, gradient, refuse
from cairn.ms.numerics import basic, updates
from mindspore._checkparam import Validator
from mindspore.common.parameter import Parameter, ParameterTuple
from mindspore.common.tensor import Tensor
from mindspore.nn.cell import Cell
from mindspore.nn.wrap.grad_reducer import DistributedGradReducer
from mindspore.ops import operations as P
from mindspore.ops.composite import GradOperation, HyperMap
from mindspore.parallel import _utils as parallel


class WithLossCell(Cell):
    """loss_fn(backbone(data), label)"""

    def __init__(self, backbone, loss_fn):
        super().__init__(auto_prefix=False)
        self._backbone, self._loss_fn = backbone, loss_fn

    def construct(self, data, label):
        return self._loss_fn(self._backbone(data), label)

    @property
    def backbone_network(self):
        return self._backbone


class WithGradCell(Cell):
    """Gradients of a network, or of its loss, by the trainable parameters."""

    def __init__(self, network, loss_fn=None, sens=None):
        super().__init__(auto_prefix=False)
        _check_cell("WithGradCell", "network", network)
        self.network, self.loss_fn, self.sens = network, loss_fn, sens
        self.weights = ParameterTuple(network.trainable_params())
        self.network_with_loss = network if loss_fn is None else WithLossCell(network, loss_fn)
        self.network_with_loss.set_train()

    def construct(self, *inputs):
        seed = None if self.sens is None else Tensor(self.sens)
        return tuple(gradient.differentiate(self.network_with_loss, inputs, None, (), tuple(self.weights), seed)[2])


class ForwardValueAndGrad(Cell):
    """Value and gradients of a network."""

    def __init__(self, network, weights=None, get_all=False, get_by_list=False, sens_param=False):
        super().__init__(auto_prefix=False)
        for name, value in (("get_all", get_all), ("get_by_list", get_by_list), ("sens_param", sens_param)):
            Validator.check_bool(value, name, "ForwardValueAndGrad")
        if not callable(network):
            raise TypeError(f"For 'ForwardValueAndGrad', the 'network' must be a Cell or a function, but got {type(network).__name__}.")
        if get_by_list and not all(isinstance(each, Parameter) for each in weights or ()):
            raise TypeError("For 'ForwardValueAndGrad', the 'weights' must be Parameters.")
        self.network, self.weights = network, weights
        self.get_all, self.get_by_list, self.sens_param = get_all, get_by_list, sens_param

    def construct(self, *inputs):
        seed = None
        if self.sens_param:
            *inputs, seed = inputs
        weights = tuple(self.weights) if self.get_by_list else ()
        positions = range(len(inputs)) if self.get_all else () if self.get_by_list else (0,)
        value, of_inputs, of_weights = gradient.differentiate(
            self.network, inputs, None, tuple(positions), weights, seed
        )
        if self.get_by_list:
            return value, (tuple(of_inputs), tuple(of_weights)) if self.get_all else tuple(of_weights)
        return value, tuple(of_inputs) if self.get_all else of_inputs[0]


class TrainOneStepCell(Cell):
    """One step: the loss, its gradients times sens, in data parallel those of all ranks, the optimizer. Returns the loss."""

    _held = {"depend": lambda self: P.Depend(), "fill": lambda self: P.Fill(), "shape": lambda self: P.Shape(),
             "dtype": lambda self: P.DType(), "cast": lambda self: P.Cast()}  # fmt: skip

    def __init__(self, network, optimizer, sens=1.0):
        super().__init__(auto_prefix=False)
        _check_cell("TrainOneStepCell", "network", network)
        _check_cell("TrainOneStepCell", "optimizer", optimizer)
        self.network = network
        self.network.set_grad()
        self.optimizer = optimizer
        self.weights = optimizer.parameters
        self.sens, self.return_grad = sens, False
        # For steps of a script's own that derive from this one.
        self.grad, self.grad_no_sens = GradOperation(get_by_list=True, sens_param=True), GradOperation(get_by_list=True)
        self.hyper_map, self.reducer_flag = HyperMap(), parallel._reduces_gradients()
        self.parallel_mode, self.mean, self.degree = parallel._get_parallel_mode(), parallel._get_gradients_mean(), parallel._get_device_num()
        self.grad_reducer = DistributedGradReducer(self.weights, self.mean, self.degree) if self.reducer_flag else _as_they_are

    def value_and_gradients(self, inputs, scale=None):
        """The network's result and the gradients of its trained parameters, seeded with the scale."""
        scale = self.sens if scale is None else scale
        if not isinstance(scale, Tensor) and scale == 1.0:
            value, _, gradients = gradient.differentiate(self.network, inputs, None, (), tuple(self.weights))
        else:
            (_, value), _, gradients = gradient.differentiate(
                lambda *given: _scaled(self.network(*given), scale), inputs, None, (), tuple(self.weights), has_aux=True
            )
        return value, self.grad_reducer(tuple(gradients))

    def construct(self, *inputs):
        loss, gradients = self.value_and_gradients(inputs)
        self.optimizer(gradients)
        return loss


def _check_cell(owner, name, value):
    if not isinstance(value, Cell):
        raise TypeError(f"For '{owner}', the '{name}' must be a Cell, but got {type(value).__name__}.")


def _as_they_are(gradients):
    return gradients


def _scaled(value, scale):
    """(each result times the scale, the results)"""
    return gradient.rebuilt(value, lambda each: updates.mul(each, scale)), value


class WithEvalCell(Cell):
    """(loss, output, label)"""

    def __init__(self, network, loss_fn, add_cast_fp32=False):
        super().__init__(auto_prefix=False)
        self._network, self._loss_fn = network, loss_fn
        self.add_cast_fp32 = Validator.check_value_type("add_cast_fp32", add_cast_fp32, [bool], "WithEvalCell")

    def construct(self, data, label):
        outputs = self._network(data)
        if self.add_cast_fp32:
            label, outputs = (basic.cast(each, np.float32) for each in (label, outputs))
        return self._loss_fn(outputs, label), outputs, label


class ParameterUpdate(Cell):
    """Gives a Parameter another value."""

    def __init__(self, param):
        super().__init__(auto_prefix=False)
        if not isinstance(param, Parameter):
            raise TypeError(f"For 'ParameterUpdate', the 'param' must be a Parameter, but got {type(param).__name__}.")
        self._param = param

    def construct(self, x):
        return core.assign(self._param, x)


class GetNextSingleOp(Cell):
    """The next row of a dataset."""

    def __init__(self, dataset_types, dataset_shapes, queue_name):
        super().__init__()
        self.queue_name = queue_name

    def construct(self):
        refuse("nn.GetNextSingleOp", "there is no queue of a device", "create_tuple_iterator() of the dataset")


class VirtualDatasetCellTriple(Cell):
    """A network on the data of this rank."""

    def __init__(self, backbone):
        super().__init__(auto_prefix=False)
        self._backbone = backbone

    def construct(self, a, b, c):
        return self._backbone(a, b, c)


class _VirtualDatasetCell(Cell):
    def __init__(self, backbone):
        super().__init__(auto_prefix=False)
        self._backbone = backbone

    def construct(self, *inputs):
        return self._backbone(*inputs)


class MicroBatchInterleaved(_VirtualDatasetCell):
    """A network on parts of a batch, one after the other; here on all of it."""

    def __init__(self, network, interleave_num=2):
        super().__init__(network)
        self.interleave_num = interleave_num


class PipelineCell(_VirtualDatasetCell):
    """A network on micro batches; here on all of it."""

    def __init__(self, network, micro_size):
        super().__init__(network)
        self.micro_size = micro_size


__all__ = [
    "WithLossCell", "WithGradCell", "ForwardValueAndGrad", "TrainOneStepCell", "WithEvalCell", "ParameterUpdate",
    "VirtualDatasetCellTriple", "MicroBatchInterleaved", "PipelineCell", "GetNextSingleOp",
]  # fmt: skip
