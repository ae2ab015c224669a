"""Functions of functions, and gradients."""

from mindspore.ops.composite.gradients import GradOperation

__all__ = ["GradOperation"]
