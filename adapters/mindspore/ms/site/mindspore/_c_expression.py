"""Names of the compiled module that tests import: types, signatures, switches. The engine itself is cairn's."""

from enum import Enum

from cairn.ms import names
from mindspore import _typing as typing  # noqa: F401
from mindspore.common.parameter import Parameter as ParamInfo  # noqa: F401
from mindspore.common.tensor import Tensor  # noqa: F401
from mindspore.ops.composite import GradOperation as GradOperation_  # noqa: F401
from mindspore.ops.composite import HyperMap as HyperMap_  # noqa: F401
from mindspore.ops.composite import Map as Map_  # noqa: F401
from mindspore.ops.composite import MultitypeFuncGraph as MultitypeFuncGraph_  # noqa: F401
from mindspore.ops.primitive import Primitive as Primitive_  # noqa: F401
from mindspore.ops.signature import sig_dtype as signature_dtype  # noqa: F401
from mindspore.ops.signature import sig_kind as signature_kind  # noqa: F401
from mindspore.ops.signature import sig_rw as signature_rw  # noqa: F401



class MetaTensor:
    """MetaTensor(dtype, shape): type and sizes of a tensor, without elements."""

    def __init__(self, dtype, shape):
        self.dtype, self.shape = dtype, tuple(shape)


prim_type = Enum("prim_type", ["unknown", "builtin", "py_infer_shape", "py_infer_check"])


class security:  # noqa: N801
    """Whether dumps and profiles were compiled out."""

    @staticmethod
    def enable_security():
        return False


def reset_op_id():
    """Operators are numbered by graph."""


init_pipeline = reset_op_id_with_offset = reset_op_id
__getattr__ = names.lazy(__name__)
