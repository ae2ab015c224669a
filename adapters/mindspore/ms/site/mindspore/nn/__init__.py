"""Layers."""

from mindspore.nn.cell import Cell, GraphCell, GraphKernel
from mindspore.nn.layer.container import CellList, SequentialCell

from cairn.ms import names as _names

__getattr__ = _names.lazy("mindspore.nn")
