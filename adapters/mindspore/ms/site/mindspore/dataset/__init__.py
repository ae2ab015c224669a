"""Data pipelines: sources, operations, transforms and iterators."""

import sys

from cairn.ms import refuse

from mindspore.dataset.core import config
from mindspore.dataset.engine import *  # noqa: F403
from mindspore.dataset.engine import datasets, samplers, sources
from mindspore.dataset import text, transforms, vision

sys.modules[__name__ + ".config"] = config
sys.modules[__name__ + ".samplers"] = samplers

__all__ = ["config", "text", "transforms", "vision", *datasets.__all__, *samplers.__all__, *sources.__all__]

_SOURCES = ("CelebADataset", "CocoDataset", "VOCDataset", "ManifestDataset", "CLUEDataset", "GraphData", "FlickrDataset", "SBUDataset",
            "StorageDataset", "OBSMindDataset", "InMemoryGraphDataset", "RandomDataset")  # fmt: skip


def __getattr__(name):
    if name in _SOURCES or name.endswith("Dataset"):
        refuse(f"mindspore.dataset.{name}", "this source is not supported yet", "GeneratorDataset over a reader of your own")
    raise AttributeError(f"module 'mindspore.dataset' has no attribute '{name}'")
