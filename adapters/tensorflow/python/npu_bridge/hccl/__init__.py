"""Collectives as graph operations."""
