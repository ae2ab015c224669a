"""Models by name."""

from .lstm import lstm


def get_model(name):
    return {"lstm": lstm}[name]
