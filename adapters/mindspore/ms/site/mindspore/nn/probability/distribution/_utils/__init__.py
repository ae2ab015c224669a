"""Helpers of distributions."""

from mindspore.nn.probability.distribution._utils.utils import *  # noqa: F403
from mindspore.nn.probability.distribution._utils.utils import __all__  # noqa: F401
