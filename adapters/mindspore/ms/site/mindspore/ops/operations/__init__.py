"""Primitives: `P.X(attributes)(tensors)`."""

from cairn.ms import modules, names

from mindspore.ops.operations import (
    _inner_ops,
    array_ops,
    buffer_ops,
    comm_ops,
    host_ops,
    image_ops,
    linalg_ops,
    loss_ops,
    math_ops,
    more_ops,
    nn_ops,
    optimizer_ops,
    other_ops,
    padding_ops,
    random_ops,
    recurrent_ops,
    sampling_ops,
    scatter_ops,
    searching_ops,
    sparse_matrix_ops,
    sparse_ops,
    vision_ops,
)
from mindspore.ops.operations._form import Operator
from mindspore.ops.operations._ms_kernel import ms_kernel
from mindspore.ops.operations.comm_ops import ReduceOp, _HostAllGather, _HostReduceScatter, _MirrorOperator, _VirtualDataset  # noqa: F401
from mindspore.ops.primitive import Primitive, PrimitiveWithCheck, PrimitiveWithInfer, prim_attr_register  # noqa: F401

_modules = (
    math_ops, array_ops, scatter_ops, padding_ops, nn_ops, loss_ops, recurrent_ops, random_ops, other_ops, comm_ops, image_ops, optimizer_ops, more_ops,
    linalg_ops, searching_ops, vision_ops, sparse_ops, sparse_matrix_ops, buffer_ops, host_ops, sampling_ops, _inner_ops,
)  # fmt: skip
_found = {
    name: value
    for module in _modules
    for name, value in vars(module).items()
    if isinstance(value, type) and issubclass(value, Operator) and value is not Operator and not name.startswith("_")
}
globals().update(_found)
__all__ = ["ReduceOp", "ms_kernel", *_found]
modules.share(__name__)
__getattr__ = names.lazy(__name__)
