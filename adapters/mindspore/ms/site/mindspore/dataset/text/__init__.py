"""Text: vocabularies and tokenizers."""

from cairn.ms import names

from mindspore.dataset.text import transforms, utils
from mindspore.dataset.text.transforms import *  # noqa: F403
from mindspore.dataset.text.utils import *  # noqa: F403

c_transforms = py_transforms = transforms

__all__ = ["transforms", "utils", *transforms.__all__, *utils.__all__]
__getattr__ = names.lazy("mindspore.dataset.text")
