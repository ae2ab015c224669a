"""Optimizers."""

from npu_device.train import optimizer

__all__ = ["optimizer"]
