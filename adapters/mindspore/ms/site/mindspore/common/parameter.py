"""Parameter and ParameterTuple."""

from cairn.ms.parameter import DEFAULT_NAME, Parameter, ParameterTuple

PARAMETER_NAME_DEFAULT = DEFAULT_NAME
__all__ = ["Parameter", "ParameterTuple"]
