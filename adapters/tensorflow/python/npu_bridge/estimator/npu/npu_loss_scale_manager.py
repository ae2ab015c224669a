"""Loss scales: fixed, or grown and shrunk by what the gradients do. The state lies in variables of the graph, made outside any
control flow that the caller is in."""

import tensorflow.compat.v1 as tf

LARGEST = 3.4e38  # a scale that growing would push past float32 stays as it is


class LossScaleManager:
    """What NPULossScaleOptimizer asks for; subclasses say how the scale changes."""

    def get_loss_scale(self):
        """The scale as a scalar float32 tensor."""
        raise NotImplementedError

    def update_loss_scale(self, finite_grads):
        """An op that changes the state after a step whose gradients were finite or not (a scalar bool tensor)."""
        raise NotImplementedError

    @property
    def enable_overflow_check(self):
        return True


class FixedLossScaleManager(LossScaleManager):
    """One scale. Without the overflow check every step is applied, whatever its gradients hold."""

    def __init__(self, loss_scale, enable_overflow_check=True):
        if loss_scale < 1:
            raise ValueError("loss scale must be at least 1.")
        self._value = float(loss_scale)
        self._enable_overflow_check = enable_overflow_check

    @property
    def enable_overflow_check(self):
        return self._enable_overflow_check

    def get_loss_scale(self):
        return tf.constant(self._value, tf.float32, name="loss_scale")

    def update_loss_scale(self, finite_grads):
        return tf.no_op()


class ExponentialUpdateLossScaleManager(LossScaleManager):
    """Multiplies the scale by `incr_ratio` after that many finite steps in a row, by `decr_ratio` (never below 1) after that many
    steps that were not; those need not follow each other."""

    def __init__(self, init_loss_scale, incr_every_n_steps, decr_every_n_nan_or_inf=2, incr_ratio=2, decr_ratio=0.8):
        self._incr_every_n_steps = incr_every_n_steps
        self._decr_every_n_nan_or_inf = decr_every_n_nan_or_inf
        self._incr_ratio = incr_ratio
        self._decr_ratio = decr_ratio
        with tf.init_scope():
            self._loss_scale = self._variable("loss_scale", float(init_loss_scale), tf.float32)
            self._num_good_steps = self._variable("good_steps", 0, tf.int32)
            self._num_bad_steps = self._variable("bad_steps", 0, tf.int32)

    @staticmethod
    def _variable(name, value, dtype):
        return tf.Variable(tf.constant(value, dtype), trainable=False, name=name, dtype=dtype)

    def get_loss_scale(self):
        return tf.identity(self._loss_scale)

    def update_loss_scale(self, finite_grads):
        scale, good, bad = (tf.identity(v) for v in (self._loss_scale, self._num_good_steps, self._num_bad_steps))

        def after_finite():
            grow = good + 1 >= self._incr_every_n_steps
            larger = tf.where(scale >= LARGEST / self._incr_ratio, scale, scale * self._incr_ratio)
            return tf.where(grow, larger, scale), tf.where(grow, 0, good + 1), tf.where(grow, 0, bad)

        def after_not_finite():
            shrink = bad + 1 >= self._decr_every_n_nan_or_inf
            smaller = tf.maximum(1.0, scale * self._decr_ratio)
            return tf.where(shrink, smaller, scale), tf.zeros_like(good), tf.where(shrink, 0, bad + 1)

        new = tf.cond(finite_grads, after_finite, after_not_finite)
        with tf.control_dependencies(new):  # all three are read before the first is written
            return tf.group(
                tf.assign(self._loss_scale, new[0]),
                tf.assign(self._num_good_steps, new[1]),
                tf.assign(self._num_bad_steps, new[2]),
            )
