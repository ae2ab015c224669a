"""The path of 0.5 to mindspore.dataset.vision.py_transforms."""

from mindspore.dataset.vision.py_transforms import *  # noqa: F403
