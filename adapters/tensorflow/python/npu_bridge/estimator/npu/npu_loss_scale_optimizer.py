"""An optimizer that scales the loss, divides the gradients again, and leaves out a step whose gradients are not all finite."""

import tensorflow.compat.v1 as tf

from npu_bridge import environment
from npu_bridge.estimator.npu.npu_loss_scale_manager import FixedLossScaleManager


class NPULossScaleOptimizer(tf.train.Optimizer):
    """Wraps `opt`. Each gradient is tested by itself, so that two optimizers in one graph (a GAN) do not disturb each other."""

    def __init__(self, opt, loss_scale_manager, is_distributed=False):
        if not isinstance(opt, tf.train.Optimizer):
            raise ValueError(f'"opt" must be an instance of Optimizer, but got: {type(opt)}')
        if is_distributed:
            environment.require_one_rank("NPULossScaleOptimizer")
        self._opt = opt
        self._loss_scale_manager = loss_scale_manager
        self._is_distributed = is_distributed
        super().__init__(opt._use_locking, f"NPULossScaleOptimizer{type(opt).__name__}")

    def __getattr__(self, name):
        if name == "_opt":  # not set yet: copying asks before __init__ ran
            raise AttributeError(name)
        return getattr(self._opt, name)

    def compute_gradients(self, loss, var_list=None, gate_gradients=tf.train.Optimizer.GATE_OP, aggregation_method=None,
                          colocate_gradients_with_ops=False, grad_loss=None):  # fmt: skip
        scale = self._loss_scale_manager.get_loss_scale()
        if callable(loss):
            scaled = lambda: self._scaled(loss(), scale)
        else:
            scaled = self._scaled(loss, scale)
        pairs = self._opt.compute_gradients(
            scaled, var_list, gate_gradients, aggregation_method, colocate_gradients_with_ops, grad_loss
        )
        return [(_times(gradient, 1.0 / scale), variable) for gradient, variable in pairs]

    @staticmethod
    def _scaled(loss, scale):
        return loss * tf.cast(scale, loss.dtype)

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        pairs = list(grads_and_vars)
        if not self._checks_overflow():
            return self._opt.apply_gradients(pairs, global_step, name)
        finite = _all_finite([gradient for gradient, _ in pairs if gradient is not None])
        applied = tf.cond(finite, lambda: self._opt.apply_gradients(pairs, global_step, name), tf.no_op)
        return tf.group(applied, self._loss_scale_manager.update_loss_scale(finite), name=name)

    def _checks_overflow(self):
        manager = self._loss_scale_manager
        return not isinstance(manager, FixedLossScaleManager) or manager.enable_overflow_check

    def get_slot(self, var, name):
        return self._opt.get_slot(var, name)

    def get_slot_names(self):
        return self._opt.get_slot_names()

    def variables(self):
        return self._opt.variables()

    def get_name(self):
        return self._name


def _values(gradient):
    return gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient


def _times(gradient, factor):
    if gradient is None:
        return None
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(_times(gradient.values, factor), gradient.indices, gradient.dense_shape)
    return gradient * tf.cast(factor, gradient.dtype)


def _all_finite(gradients):
    tests = [tf.reduce_all(tf.math.is_finite(_values(gradient))) for gradient in gradients]
    return tf.reduce_all(tf.stack(tests)) if tests else tf.constant(True)
