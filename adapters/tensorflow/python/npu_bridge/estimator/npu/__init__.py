"""Estimator, optimizers and helpers of the platform."""
