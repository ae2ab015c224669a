"""Sums of gradients over devices, of which there is one."""

from mindspore._checkparam import Validator
from mindspore.nn.cell import Cell


class DistributedGradReducer(Cell):
    """Gradients summed over all devices, and over their number where mean: of one device its own."""

    def __init__(self, parameters, mean=None, degree=None, fusion_type=1, group="hccl_world_group"):
        super().__init__(auto_prefix=False)
        if mean is not None:
            Validator.check_value_type("mean", mean, [bool], "DistributedGradReducer")
        if degree is not None:
            Validator.check_positive_int(degree, "degree", "DistributedGradReducer")
        self.mean, self.degree = mean, degree

    def construct(self, grads):
        return grads


class PipelineGradReducer(DistributedGradReducer):
    """The same for pipelines."""

    def __init__(self, parameters, scale_sense=1.0):
        super().__init__(parameters)


__all__ = ["DistributedGradReducer", "PipelineGradReducer"]
