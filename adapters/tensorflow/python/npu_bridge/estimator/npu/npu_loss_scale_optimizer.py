"""An optimizer that scales the loss, divides the gradients again, and leaves out a step whose gradients are not all finite."""

import sys

import tensorflow.compat.v1 as tf

from npu_bridge.estimator.npu.npu_loss_scale_manager import FixedLossScaleManager
from npu_bridge.hccl import collectives


class NPULossScaleOptimizer(tf.train.Optimizer):
    """Wraps `opt`. Each gradient is tested by itself, so that two optimizers in one graph (a GAN) do not disturb each other. Where
    the gradients are reduced over ranks, a step that one rank leaves out is left out on all."""

    def __init__(self, opt, loss_scale_manager, is_distributed=False):
        if not isinstance(opt, tf.train.Optimizer):
            raise ValueError(f'"opt" must be an instance of Optimizer, but got: {type(opt)}')
        self._opt = opt
        self._loss_scale_manager = loss_scale_manager
        self._is_distributed = is_distributed or getattr(opt, "_npu_distributed", False)
        self._made = {}  # id of a variable: (its gradient as the backward pass made it, as it was handed out)
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
        handed = [(_times(gradient, 1.0 / scale), variable) for gradient, variable in pairs]
        self._made.update({id(variable): (made, out) for (made, variable), (out, _) in zip(pairs, handed) if made is not None})
        return handed

    @staticmethod
    def _scaled(loss, scale):
        return loss * tf.cast(scale, loss.dtype)

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        pairs = list(grads_and_vars)
        if not self._checks_overflow():
            return self._opt.apply_gradients(pairs, global_step, name)
        tests = self._finite_tests(pairs)
        are_finite = tf.stack([test for _, test in tests]) if tests else tf.constant([True])
        finite = tf.reduce_all(are_finite)
        if self._is_distributed:
            finite = collectives.all_agree(finite)
        applied = tf.cond(finite, lambda: self._opt.apply_gradients(pairs, global_step, name), tf.no_op)
        # A condition of its own: what prints stays with TensorFlow, and would keep the update there if both had one Switch. Which
        # one it names is found outside, where the engine does it.
        first = tf.argmin(tf.cast(are_finite, tf.int32))  # of equal ones the first
        scale = tf.maximum(self._loss_scale_manager.get_loss_scale(), 0.0)  # a copy: the variable changes while it is printed
        told = tf.cond(tf.logical_not(tf.reduce_all(are_finite)), lambda: self._tell([name for name, _ in tests], first, scale), tf.no_op)
        with tf.control_dependencies([applied, scale]):  # what divides by the scale reads the variable's own memory
            changed = self._loss_scale_manager.update_loss_scale(finite)
        return tf.group(applied, told, changed, name=name)

    def _finite_tests(self, pairs):
        """[(what is tested, whether it is finite)] in the order in which the backward pass makes the gradients. They are tested as
        it made them, so that clipping, which spreads one NaN to all, does not hide where it came from; what is applied instead
        is tested as well."""
        tested = []
        for gradient, variable in pairs:
            if gradient is not None:
                made, handed_out = self._made.get(id(variable), (gradient, gradient))
                tested.append((made, variable))
                if gradient is not handed_out:
                    tested.append((gradient, variable))
        tested.sort(key=lambda pair: _maker(pair[0])._id)
        return [
            (f"{_maker(gradient).name}, the gradient of {variable.op.name}", tf.reduce_all(tf.math.is_finite(_values(gradient))))
            for gradient, variable in tested
        ]

    def _tell(self, names, first, scale):
        """Names the first op whose gradient is not finite, for each step that is left out."""
        name = tf.gather(names, first)
        return tf.print(
            "npu_bridge: the step is left out at loss scale", scale, "because of what is not finite:", name, output_stream=sys.stderr
        )

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


def _maker(gradient):
    """The op that computes it, behind what only hands it on."""
    op = _values(gradient).op
    while op.type == "Identity":
        op = op.inputs[0].op
    return op


def _times(gradient, factor):
    if gradient is None:
        return None
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(_times(gradient.values, factor), gradient.indices, gradient.dense_shape)
    return gradient * tf.cast(factor, gradient.dtype)

