"""LAMB's two steps and Keras' PReLU, as compositions of stock TensorFlow."""

import tensorflow.compat.v1 as tf

from npu_bridge.estimator.npu_aicore_ops import prelu
from npu_bridge.estimator.npu_ops import _graph_only, _store


def lamb_apply_optimizer_assign(input0, input1, input2, input3, mul0_x, mul1_x, mul2_x, mul3_x, add2_y, steps,
                                do_use_weight, weight_decay_rate, name=None):  # fmt: skip
    """Adam's direction with bias correction: gradient, v, m, weight; b1, 1 - b1, b2, 1 - b2; epsilon. Returns update, v, m, and
    writes v and m where they are variables."""
    _graph_only("lamb_apply_optimizer_assign")
    with tf.name_scope(name, "LambApplyOptimizerAssign"):
        gradient, weight = tf.convert_to_tensor(input0), tf.convert_to_tensor(input3)
        m = mul0_x * tf.convert_to_tensor(input2) + mul1_x * gradient
        v = mul2_x * tf.convert_to_tensor(input1) + mul3_x * tf.square(gradient)
        corrected_m = m / (1.0 - tf.pow(mul0_x, steps))
        corrected_v = v / (1.0 - tf.pow(mul2_x, steps))
        update = corrected_m / (tf.sqrt(corrected_v) + add2_y) + do_use_weight * weight_decay_rate * weight
        with tf.control_dependencies([update]):
            v, m = _store((input1, input2), (v, m))
        return update, v, m


def lamb_apply_weight_assign(input0, input1, input2, input3, input4, name=None):
    """The weight after its step: |w|, |update|, rate, update, weight; written where it is a variable."""
    _graph_only("lamb_apply_weight_assign")
    with tf.name_scope(name, "LambApplyWeightAssign"):
        input0, input1, update = (tf.convert_to_tensor(value) for value in (input0, input1, input3))
        both = tf.logical_and(input0 > 0, input1 > 0)
        ratio = tf.where(both, input0 / tf.where(both, input1, tf.ones_like(input1)), tf.ones_like(input0))
        return _store((input4,), (tf.convert_to_tensor(input4) - ratio * input2 * update,))[0]


class PReLU(tf.keras.layers.Layer):
    """Keras' PReLU. `shared_axes` share one weight, as in Keras."""

    def __init__(self, alpha_initializer="zeros", alpha_regularizer=None, alpha_constraint=None, shared_axes=None, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.alpha_initializer = tf.keras.initializers.get(alpha_initializer)
        self.alpha_regularizer = tf.keras.regularizers.get(alpha_regularizer)
        self.alpha_constraint = tf.keras.constraints.get(alpha_constraint)
        self.shared_axes = [shared_axes] if isinstance(shared_axes, int) else list(shared_axes or [])

    def build(self, input_shape):
        shape = tf.TensorShape(input_shape).as_list()[1:]
        for axis in self.shared_axes:
            shape[axis - 1] = 1
        self.alpha = self.add_weight(
            name="alpha", shape=shape, initializer=self.alpha_initializer, regularizer=self.alpha_regularizer,
            constraint=self.alpha_constraint,
        )  # fmt: skip
        super().build(input_shape)

    def call(self, inputs):
        return prelu(inputs, self.alpha)

    def get_config(self):
        return {
            **super().get_config(),
            "alpha_initializer": tf.keras.initializers.serialize(self.alpha_initializer),
            "alpha_regularizer": tf.keras.regularizers.serialize(self.alpha_regularizer),
            "alpha_constraint": tf.keras.constraints.serialize(self.alpha_constraint),
            "shared_axes": self.shared_axes,
        }
