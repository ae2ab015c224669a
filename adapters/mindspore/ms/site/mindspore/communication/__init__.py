"""Communication: there is one rank."""

from mindspore.communication import management
from mindspore.communication.management import *  # noqa: F403

__all__ = list(management.__all__)
