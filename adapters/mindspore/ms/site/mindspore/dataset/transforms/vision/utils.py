"""The path of 0.5 to mindspore.dataset.vision.utils."""

from mindspore.dataset.vision.utils import *  # noqa: F403
