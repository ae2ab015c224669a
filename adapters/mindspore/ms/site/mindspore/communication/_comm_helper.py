"""The private path to the groups."""

from mindspore.communication.management import GlobalComm

__all__ = ["GlobalComm"]
