"""The path of 0.5 to ParallelMode."""

from mindspore.context import ParallelMode

__all__ = ["ParallelMode"]
