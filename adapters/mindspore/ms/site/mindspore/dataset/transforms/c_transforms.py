"""The transforms of any column."""

from mindspore.dataset.transforms.transforms import *  # noqa: F403
