"""Keras' LossScaleOptimizer already tests every gradient by itself, which is what this platform needs."""

import tensorflow as _tf


def NpuLossScaleOptimizer(inner_optimizer, dynamic=True, initial_scale=None, dynamic_growth_steps=None):  # noqa: N802
    return _tf.keras.mixed_precision.LossScaleOptimizer(inner_optimizer, dynamic, initial_scale, dynamic_growth_steps)


def NpuExperimentalLossScaleOptimizer(optimizer, loss_scale="dynamic"):  # noqa: N802
    """`loss_scale` is "dynamic" or a number."""
    if loss_scale == "dynamic":
        return NpuLossScaleOptimizer(optimizer)
    return NpuLossScaleOptimizer(optimizer, dynamic=False, initial_scale=float(loss_scale))
