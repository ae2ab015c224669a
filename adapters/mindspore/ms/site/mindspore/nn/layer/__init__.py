"""Layers by family."""
