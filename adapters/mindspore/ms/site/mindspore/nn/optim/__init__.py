"""Optimizers."""

from mindspore.nn.optim import first_order
from mindspore.nn.optim.first_order import *  # noqa: F403
from mindspore.nn.optim.optimizer import Optimizer

__all__ = ["Optimizer", *first_order.__all__]
