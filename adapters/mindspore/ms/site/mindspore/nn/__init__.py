"""Layers."""

from mindspore.nn.cell import Cell, GraphCell, GraphKernel
from mindspore.nn.layer.container import CellList, SequentialCell

from cairn.ms import names

__getattr__ = names.lazy("mindspore.nn")
