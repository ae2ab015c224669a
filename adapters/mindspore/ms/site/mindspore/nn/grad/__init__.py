"""Jvp and Vjp as Cells."""

from mindspore.nn.grad.cell_grad import Jvp, Vjp

__all__ = ["Jvp", "Vjp"]
