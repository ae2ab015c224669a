"""Communication: the job's ranks and groups."""

from cairn.ms import names

from mindspore.communication import management
from mindspore.communication.management import *  # noqa: F403

__all__ = list(management.__all__)
__getattr__ = names.lazy("mindspore.communication")
