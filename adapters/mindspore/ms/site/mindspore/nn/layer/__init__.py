"""Layers by family."""

from cairn.ms import modules

from mindspore.nn.layer import activation, basic, conv, embedding, image, more, normalization, pooling, rnns, sparse
from mindspore.nn.layer.activation import *  # noqa: F403
from mindspore.nn.layer.basic import *  # noqa: F403
from mindspore.nn.layer.container import CellList, SequentialCell
from mindspore.nn.layer.conv import *  # noqa: F403
from mindspore.nn.layer.embedding import *  # noqa: F403
from mindspore.nn.layer.image import *  # noqa: F403
from mindspore.nn.layer.more import *  # noqa: F403
from mindspore.nn.layer.normalization import *  # noqa: F403
from mindspore.nn.layer.pooling import *  # noqa: F403
from mindspore.nn.layer.rnns import *  # noqa: F403
from mindspore.nn.layer.sparse import *  # noqa: F403

_families = (activation, basic, conv, embedding, image, more, normalization, pooling, rnns, sparse)
__all__ = ["CellList", "SequentialCell", *(name for family in _families for name in family.__all__)]
modules.share(__name__)
