"""Operators that early releases chose by device: here those of mindspore.ops.operations."""

from mindspore.ops import operations


def __getattr__(name):
    return getattr(operations, name)
