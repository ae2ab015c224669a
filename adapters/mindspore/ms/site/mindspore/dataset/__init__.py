"""Data pipelines: sources, operations, transforms and iterators."""

import sys

from cairn.ms import names

from mindspore.dataset.core import config
from mindspore.dataset.engine import *  # noqa: F403
from mindspore.dataset.engine import datasets, samplers, sources
from mindspore.dataset import text, transforms, vision

sys.modules[__name__ + ".config"] = config
sys.modules[__name__ + ".samplers"] = samplers

__all__ = ["config", "text", "transforms", "vision", *datasets.__all__, *samplers.__all__, *sources.__all__]
__getattr__ = names.lazy("mindspore.dataset")
