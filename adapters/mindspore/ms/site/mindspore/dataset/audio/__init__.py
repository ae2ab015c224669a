"""Transforms of sounds: filters, effects and spectra."""

from cairn.ms import names

from mindspore.dataset.audio import transforms, utils
from mindspore.dataset.audio.transforms import *  # noqa: F403
from mindspore.dataset.audio.utils import *  # noqa: F403

__all__ = ["transforms", "utils", *transforms.__all__, *utils.__all__]
__getattr__ = names.lazy("mindspore.dataset.audio")
