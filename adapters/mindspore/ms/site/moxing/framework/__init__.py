"""The file functions of moxing."""

from moxing.framework import file

__all__ = ["file"]
