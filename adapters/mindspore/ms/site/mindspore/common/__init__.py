"""Tensors, parameters, element types, seeds."""

from cairn.ms import modules

from mindspore.common import dtype
from mindspore.common.api import JitConfig, jit, jit_class, ms_class, ms_function, mutable
from mindspore.common.dtype import *  # noqa: F403
from mindspore.common.parameter import Parameter, ParameterTuple
from mindspore.common.sparse_tensor import COOTensor, CSRTensor, RowTensor, SparseTensor
from mindspore.common.seed import get_seed, set_seed
from mindspore.common.tensor import Tensor

__all__ = [
    "COOTensor", "CSRTensor", "JitConfig", "Parameter", "ParameterTuple", "RowTensor", "SparseTensor", "Tensor", "dtype", "get_seed", "jit", "jit_class", "ms_class",
    "ms_function", "mutable", "set_seed", *dtype.__all__,
]  # fmt: skip
modules.share(__name__)
