"""The release whose interface this is."""

__version__ = "1.10.1"
