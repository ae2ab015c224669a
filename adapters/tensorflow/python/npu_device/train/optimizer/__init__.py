"""Keras' loss scaling under the platform's names."""

from npu_device.train.optimizer.npu_loss_scale_optimizer import NpuExperimentalLossScaleOptimizer, NpuLossScaleOptimizer

__all__ = ["NpuExperimentalLossScaleOptimizer", "NpuLossScaleOptimizer"]
