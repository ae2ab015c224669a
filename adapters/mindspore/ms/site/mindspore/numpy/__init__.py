"""NumPy's functions on Tensors: `mindspore.numpy`."""

import numpy as _np
from cairn.ms import modules
from mindspore.common.dtype import (  # noqa: F401
    bool_,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from mindspore.common.tensor import Tensor  # noqa: F401
from mindspore.numpy import creation, maths, rest, shapes
from mindspore.numpy.creation import *  # noqa: F403
from mindspore.numpy.maths import *  # noqa: F403
from mindspore.numpy.rest import *  # noqa: F403
from mindspore.numpy.shapes import *  # noqa: F403

pi, e, inf, nan, newaxis = _np.pi, _np.e, _np.inf, _np.nan, None
PI = _np.pi
PINF, NINF = _np.inf, -_np.inf
float_, int_ = float32, int32

__all__ = [*creation.__all__, *shapes.__all__, *maths.__all__, *rest.__all__]
modules.share(__name__)
