"""Gradients added up over the ranks of a job."""

import numpy as np
from cairn.ms import core, level, modes, ranks
from cairn.ms.numerics import basic, collectives
from mindspore import context
from mindspore import log as logger
from mindspore._checkparam import Validator
from mindspore.common.tensor import Tensor
from mindspore.communication.management import _get_group
from mindspore.nn.cell import Cell
from mindspore.ops.operations.comm_ops import fusion_of

_FIRST_OF_INDICES = 1024  # the number of the first bucket that split indices make: none of Parameter.comm_fusion


class DistributedGradReducer(Cell):
    """Gradients summed over all ranks of a group, times 1 / degree where mean. mean: True up to 1.1, later what gradients_mean of the parallel
    context says; degree: the number of ranks. Parameters with layerwise_parallel keep their own. Which are exchanged together:
    all_reduce_fusion_config of the context, else their comm_fusion."""

    def __init__(self, parameters, mean=None, degree=None, fusion_type=1, group=ranks.WORLD):
        super().__init__(auto_prefix=False)
        if mean is None:
            mean = context.get_auto_parallel_context("gradients_mean") if level.at_least("1.10") else True
        Validator.check_value_type("mean", mean, [bool], "DistributedGradReducer")
        if degree is not None:
            Validator.check_positive_int(degree, "degree", "DistributedGradReducer")
        self.group, self.mean = _get_group(group), mean
        self.size = ranks.group(self.group).size
        self.degree = self.size if degree is None else degree
        if self.degree != self.size and mean and self.size > 1:
            logger.warning(f"DistributedGradReducer divides by degree {self.degree}, but the group has {self.size} ranks.")
        parameters = list(parameters)
        self.names = [each.name for each in parameters]
        self.reduced = [not each.layerwise_parallel for each in parameters]
        self.buckets = self._buckets(parameters, fusion_type)

    @staticmethod
    def _buckets(parameters, fusion_type):
        """The number of the bucket of each gradient."""
        indices = list(context.get_auto_parallel_context("all_reduce_fusion_config"))
        own = [each.comm_fusion for each in parameters]
        if len(set(own)) > 1 and not context.get_auto_parallel_context("enable_parallel_optimizer"):
            return own
        if not indices or fusion_type != 1:
            return [fusion_type if number == 1 else number for number in own]
        for each in indices:
            if each >= len(parameters):
                logger.warning(f"AllReduce's split index {each} is greater than or equal to the total gradient's number of {len(parameters)}")
        return [_FIRST_OF_INDICES + sum(last < i for last in indices) for i in range(len(parameters))]

    def capture_key(self):
        return tuple(self.buckets), self.degree, self.mean, self.group

    def __call__(self, *args, **kwargs):
        if core.here.recorder is None and modes.mode == modes.PYNATIVE and self.size > 1:
            return core.graph_entry(self, args, kwargs)  # one compiled function eagerly, too, in which gradients travel together
        return super().__call__(*args, **kwargs)

    def construct(self, grads):
        if self.size == 1 and self.degree == 1:
            return grads
        if isinstance(grads, Tensor):
            return self.construct((grads,))[0]
        return tuple(
            self._summed(each, name, bucket) if reduced else each
            for each, name, reduced, bucket in zip(grads, self.names, self.reduced, self.buckets)
        )

    def _summed(self, gradient, name, bucket):
        dtype = basic.nptype(gradient)
        made = basic.cast(gradient, np.float32) if dtype.itemsize < 4 else gradient
        made = collectives.all_reduce(made, "sum", self.group, name=name, **fusion_of(bucket))
        if self.mean:
            made = core.mul(made, basic.number(1.0 / self.degree, made))
        return basic.cast(made, dtype)


class PipelineGradReducer(DistributedGradReducer):
    """The same for pipelines."""

    def __init__(self, parameters, scale_sense=1.0):
        super().__init__(parameters)


__all__ = ["DistributedGradReducer", "PipelineGradReducer"]
