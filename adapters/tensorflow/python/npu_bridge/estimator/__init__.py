"""Operators and Estimator of the platform."""
