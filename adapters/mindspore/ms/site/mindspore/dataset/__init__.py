"""Data pipelines: sources, operations, transforms and iterators."""

import sys

from cairn.ms import names

from mindspore.dataset import engine
from mindspore.dataset.core import config
from mindspore.dataset.engine import *  # noqa: F403
from mindspore.dataset import audio, text, transforms, vision
from mindspore.dataset.callback import DSCallback, WaitedDSCallback  # noqa: F401

sys.modules[__name__ + ".config"] = config
sys.modules[__name__ + ".samplers"] = engine.samplers

__all__ = ["DSCallback", "WaitedDSCallback", "audio", "text", "transforms", "vision", *engine.__all__]
__getattr__ = names.lazy("mindspore.dataset")
