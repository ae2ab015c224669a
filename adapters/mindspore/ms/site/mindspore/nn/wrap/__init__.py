"""Cells around a network."""

from cairn.ms import modules

from mindspore.nn.wrap.cell_wrapper import *  # noqa: F403
from mindspore.nn.wrap.cell_wrapper import _VirtualDatasetCell  # noqa: F401
from mindspore.nn.wrap.grad_reducer import *  # noqa: F403
from mindspore.nn.wrap.loss_scale import *  # noqa: F403
modules.share(__name__)
