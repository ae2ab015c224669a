"""All transforms of sounds, where releases have them."""

from mindspore.dataset.audio import effects, filters, spectra
from mindspore.dataset.audio.effects import *  # noqa: F403
from mindspore.dataset.audio.filters import *  # noqa: F403
from mindspore.dataset.audio.spectra import *  # noqa: F403

__all__ = [*filters.__all__, *effects.__all__, *spectra.__all__]
