"""Sources, operations and samplers of the data pipeline."""

from mindspore.dataset.core import config
from mindspore.dataset.engine import datasets, samplers, sources
from mindspore.dataset.engine.datasets import *  # noqa: F403
from mindspore.dataset.engine.samplers import *  # noqa: F403
from mindspore.dataset.engine.sources import *  # noqa: F403

for _name in sources.__all__:
    setattr(datasets, _name, getattr(sources, _name))  # scripts import sources from `engine.datasets` too

__all__ = ["config", *datasets.__all__, *samplers.__all__, *sources.__all__]
