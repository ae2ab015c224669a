"""Operators that the platform wrote by hand."""
