"""Optimizers."""

from cairn.ms import modules

import sys

from mindspore.nn.optim import first_order
from mindspore.nn.optim.first_order import *  # noqa: F403
from mindspore.nn.optim.optimizer import Optimizer
from mindspore.nn.optim.thor import THOR, thor

__all__ = ["Optimizer", "THOR", "thor", *first_order.__all__]

# Where MindSpore has a module for each; scripts import from there.
for _name in ("ada_grad", "adadelta", "adafactor", "adam", "adamax", "adasum", "asgd", "ftrl", "lamb", "lars", "lazyadam", "momentum",
              "proximal_ada_grad", "rmsprop", "rprop", "sgd"):  # fmt: skip
    sys.modules[f"{__name__}.{_name}"] = first_order
modules.share(__name__)
