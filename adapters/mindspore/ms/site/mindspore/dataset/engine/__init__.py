"""Sources, operations and samplers of the data pipeline."""

from cairn.ms import modules

from mindspore.dataset.core import config
from mindspore.dataset.engine import annotated, datasets, files, graphdata, images, nodes, published, samplers, serialized, sources, transforming  # noqa: F401
from mindspore.dataset.engine.datasets import *  # noqa: F403
from mindspore.dataset.engine.samplers import *  # noqa: F403
from mindspore.dataset.engine.serialized import *  # noqa: F403

_SOURCES = {name: getattr(module, name) for module in (sources, images, annotated, files, graphdata, published) for name in module.__all__}
globals().update(_SOURCES)
vars(datasets).update(_SOURCES)  # scripts import sources from `engine.datasets` too

__all__ = ["config", *datasets.__all__, *samplers.__all__, *serialized.__all__, *_SOURCES]
modules.share(__name__)
