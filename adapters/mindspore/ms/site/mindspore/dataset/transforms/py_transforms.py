"""The same transforms, under the name that Python's had."""

from mindspore.dataset.transforms.transforms import *  # noqa: F403
from mindspore.dataset.transforms.transforms import OneHot

OneHotOp = OneHot
