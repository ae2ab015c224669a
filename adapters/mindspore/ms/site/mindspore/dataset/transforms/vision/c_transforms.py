"""The path of 0.5 to mindspore.dataset.vision.c_transforms."""

from mindspore.dataset.vision.c_transforms import *  # noqa: F403
