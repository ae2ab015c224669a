"""Operators of the platform's host processor."""
