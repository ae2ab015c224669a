"""Optimizers for several ranks, whose gradients are averaged over the ranks before they are applied. With one rank each passes
everything through unchanged."""

import functools

import tensorflow.compat.v1 as tf

from hccl.manage.api import WORLD, get_rank_size
from npu_bridge import options
from npu_bridge.estimator.npu.npu_loss_scale_optimizer import NPULossScaleOptimizer
from npu_bridge.hccl import collectives, hccl_ops

_MARK = "_npu_distributed"  # of an optimizer whose gradients are reduced already


def allreduce(tensor, average=True):
    """The mean over the ranks, or the sum; of IndexedSlices, the slices of all ranks."""
    return npu_allreduce(tensor, "mean" if average else "sum")


def reduce(tensor, root_rank, average=True, fusion=0, fusion_id=-1):
    """The mean over the ranks, or the sum, on `root_rank`."""
    total = hccl_ops.reduce(tensor, "sum", root_rank, fusion, fusion_id)
    return tf.div(total, tf.cast(get_rank_size(), total.dtype)) if average and get_rank_size() > 1 else total


def npu_allreduce(values, reduction="mean", fusion=1, fusion_id=-1, group=WORLD):
    """One tensor or a list; None stays None."""
    if reduction not in ("mean", "sum", "max", "min", "prod"):
        raise ValueError(f"reduction is {reduction}, should be one of: mean, sum, max, min, prod")
    several = isinstance(values, (list, tuple))
    if get_rank_size(group) == 1:
        return [_alone(value) for value in values] if several else _alone(values)
    return collectives.reduce_all(values, reduction, group) if several else collectives.reduce_all([values], reduction, group)[0]


def _alone(value):
    if isinstance(value, tf.IndexedSlices):
        return tf.IndexedSlices(tf.identity(value.values), tf.identity(value.indices), value.dense_shape)
    return None if value is None else hccl_ops.allreduce(value, "sum")


def reduce_pairs(grads_and_vars, reduction="mean", group=WORLD):
    """[(gradient, variable)] with each gradient reduced. Under NPUStrategy losses are divided by the number of ranks already, so
    that their gradients are summed."""
    pairs = list(grads_and_vars)
    if get_rank_size(group) == 1 or not pairs:
        return pairs
    if reduction == "mean" and getattr(tf.distribute.get_strategy(), _MARK, False):
        reduction = "sum"
    names = [f"gradient of {getattr(variable, 'path', variable.name).split(':')[0]}" for _, variable in pairs]
    reduced = collectives.reduce_all([gradient for gradient, _ in pairs], reduction, group, names)
    return [(gradient, variable) for gradient, (_, variable) in zip(reduced, pairs)]


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
    """Averages the gradients over the ranks in compute_gradients. Every rank updates all variables: with is_weight_update_sharding it
    says so, since a checkpoint of rank 0 would lack the slots of variables that others update. Weights are the same either way."""

    def __init__(self, optimizer, is_weight_update_sharding=False, name=None):
        self._is_weight_update_sharding = is_weight_update_sharding
        if is_weight_update_sharding and get_rank_size() > 1:
            options.warn_once("NPUDistributedOptimizer: is_weight_update_sharding has no effect: every rank updates all variables")
        super().__init__(optimizer, name or f"Distributed{type(optimizer).__name__}")
        self._reduces = not getattr(optimizer, _MARK, False)
        setattr(self, _MARK, True)

    def compute_gradients(self, *args, **kwargs):
        pairs = self._optimizer.compute_gradients(*args, **kwargs)
        if self._is_weight_update_sharding and len(pairs) < get_rank_size():
            raise ValueError(f"is_weight_update_sharding: there are {len(pairs)} gradients for {get_rank_size()} ranks")
        return reduce_pairs(pairs) if self._reduces else pairs


class NPUOptimizer(_Wrapper):
    """Averages gradients and scales the loss, as asked."""

    def __init__(self, opt, loss_scale_manager=None, is_distributed=False, is_loss_scale=False,
                 is_tailing_optimization=False, name=None):  # fmt: skip
        if is_loss_scale and loss_scale_manager is None:
            raise ValueError("is_loss_scale is True, but the loss_scale_manager is None")
        name = name or f"NPUOptimizer{type(opt).__name__}"
        inner = NPUDistributedOptimizer(opt) if is_distributed else opt
        if is_loss_scale:
            inner = NPULossScaleOptimizer(inner, loss_scale_manager, is_distributed)
        super().__init__(inner, name)
        if is_distributed:
            setattr(self, _MARK, True)


class KerasDistributeOptimizer:
    """KerasDistributeOptimizer(optimizer) is `optimizer` itself, which averages its gradients from then on: a saved model needs no
    class of ours to be read again."""

    def __new__(cls, optimizer, name="NpuKerasOptimizer", **kwargs):
        return npu_distributed_optimizer_wrapper(optimizer)


def npu_distributed_optimizer_wrapper(optimizer, reduction="mean", group=WORLD):
    """The optimizer (TensorFlow's or Keras', or Keras' name of one), which averages its gradients over the ranks."""
    if isinstance(optimizer, str):
        optimizer = tf.keras.optimizers.get(optimizer)
    if get_rank_size(group) == 1 or getattr(optimizer, _MARK, False):
        return optimizer
    if isinstance(optimizer, tf.train.Optimizer):
        plain = optimizer.compute_gradients
        optimizer.compute_gradients = functools.wraps(plain)(lambda *args, **kwargs: reduce_pairs(plain(*args, **kwargs), reduction, group))
    else:
        _reduce_before_update(optimizer, reduction, group)
        _agree_on_overflow()
    object.__setattr__(optimizer, _MARK, True)
    return optimizer


def _reduce_before_update(optimizer, reduction, group):
    """Every way to train with Keras' optimizers ends in apply_gradients. One that scales the loss applies gradients only where they
    are finite: what it wraps must not reduce, as ranks would not come to it together."""
    plain = optimizer.apply_gradients

    @functools.wraps(plain)
    def apply_gradients(grads_and_vars, *args, **kwargs):
        return plain(reduce_pairs(grads_and_vars, reduction, group), *args, **kwargs)

    object.__setattr__(optimizer, "apply_gradients", apply_gradients)


def _agree_on_overflow():
    """Keras' LossScaleOptimizer leaves out a step on all ranks or on none."""
    from keras.src.mixed_precision import loss_scale_optimizer as module

    if not hasattr(module._is_all_finite, _MARK):
        plain = module._is_all_finite
        module._is_all_finite = functools.wraps(plain)(lambda grads: collectives.all_agree(plain(grads)))
        setattr(module._is_all_finite, _MARK, True)
