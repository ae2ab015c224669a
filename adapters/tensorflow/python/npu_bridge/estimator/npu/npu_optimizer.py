"""Optimizers for several ranks. With one rank, which is what there is, each passes everything through unchanged; more are
refused, because training alone would silently be another training."""

import tensorflow.compat.v1 as tf

from npu_bridge import environment
from npu_bridge.estimator.npu.npu_loss_scale_optimizer import NPULossScaleOptimizer
from npu_bridge.hccl import hccl_ops


def allreduce(tensor, average=True):
    """The sum over the ranks, or the mean; of IndexedSlices, the slices of all ranks."""
    environment.require_one_rank("allreduce")
    if isinstance(tensor, tf.IndexedSlices):
        return tf.IndexedSlices(tf.identity(tensor.values), tf.identity(tensor.indices), tensor.dense_shape)
    return hccl_ops.allreduce(tensor, "sum")


def reduce(tensor, root_rank, average=True, fusion=0, fusion_id=-1):
    """The sum over the ranks, or the mean, on `root_rank`."""
    environment.require_one_rank("reduce")
    return hccl_ops.reduce(tensor, "sum", root_rank, fusion, fusion_id)


def npu_allreduce(values, reduction="mean", fusion=1, fusion_id=-1, group="hccl_world_group"):
    """One tensor or a list; None stays None."""
    if reduction not in ("mean", "sum", "max", "min", "prod"):
        raise ValueError(f"reduction is {reduction}, should be one of: mean, sum, max, min, prod")
    environment.require_one_rank("npu_allreduce")
    if isinstance(values, (list, tuple)):
        return [npu_allreduce(value, reduction, fusion, fusion_id, group) for value in values]
    if values is None or isinstance(values, tf.IndexedSlices):
        return values
    return hccl_ops.allreduce(values, "sum" if reduction == "mean" else reduction, fusion, fusion_id, group)


class _Wrapper(tf.train.Optimizer):
    """Hands every call on to `optimizer`."""

    def __init__(self, optimizer, name):
        self._optimizer = optimizer
        super().__init__(False, name)

    def __getattr__(self, name):
        if name == "_optimizer":
            raise AttributeError(name)
        return getattr(self._optimizer, name)

    def compute_gradients(self, *args, **kwargs):
        return self._optimizer.compute_gradients(*args, **kwargs)

    def apply_gradients(self, *args, **kwargs):
        return self._optimizer.apply_gradients(*args, **kwargs)

    def get_slot(self, *args, **kwargs):
        return self._optimizer.get_slot(*args, **kwargs)

    def get_slot_names(self, *args, **kwargs):
        return self._optimizer.get_slot_names(*args, **kwargs)

    def variables(self, *args, **kwargs):
        return self._optimizer.variables(*args, **kwargs)


class NPUDistributedOptimizer(_Wrapper):
    """Averages the gradients over the ranks in compute_gradients."""

    def __init__(self, optimizer, is_weight_update_sharding=False, name=None):
        environment.require_one_rank("NPUDistributedOptimizer")
        self._is_weight_update_sharding = is_weight_update_sharding
        super().__init__(optimizer, name or f"Distributed{type(optimizer).__name__}")


class NPUOptimizer(_Wrapper):
    """Averages gradients and scales the loss, as asked."""

    def __init__(self, opt, loss_scale_manager=None, is_distributed=False, is_loss_scale=False,
                 is_tailing_optimization=False, name=None):  # fmt: skip
        if is_loss_scale and loss_scale_manager is None:
            raise ValueError("is_loss_scale is True, but the loss_scale_manager is None")
        if is_distributed:
            environment.require_one_rank("NPUOptimizer")
        name = name or f"NPUOptimizer{type(opt).__name__}"
        super().__init__(NPULossScaleOptimizer(opt, loss_scale_manager) if is_loss_scale else opt, name)


class KerasDistributeOptimizer:
    """KerasDistributeOptimizer(optimizer) is `optimizer` itself while there is one rank: a saved model then needs no class of
    ours to be read again."""

    def __new__(cls, optimizer, name="NpuKerasOptimizer", **kwargs):
        return npu_distributed_optimizer_wrapper(optimizer)


def npu_distributed_optimizer_wrapper(optimizer):
    """The optimizer (TensorFlow's or Keras', or Keras' name of one), which averages its gradients over the ranks."""
    environment.require_one_rank("npu_distributed_optimizer_wrapper")
    return tf.keras.optimizers.get(optimizer) if isinstance(optimizer, str) else optimizer
