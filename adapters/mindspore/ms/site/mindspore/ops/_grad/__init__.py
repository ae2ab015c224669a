"""Gradients of primitives of one's own."""
