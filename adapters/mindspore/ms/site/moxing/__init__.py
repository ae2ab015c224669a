"""What cloud scripts ask of the package moxing, on local paths."""

from moxing import framework
from moxing.framework import file

__all__ = ["file", "framework"]
