"""Listing 5-9: an addition, to see that all is installed."""

import numpy as np
from mindspore import Tensor
import mindspore.ops as ops
import mindspore.context as context
context.set_context(device_target="Ascend")
x = Tensor(np.ones([1,2]).astype(np.float32))
y = Tensor(np.ones([1,2]).astype(np.float32))
print(ops.tensor_add(x, y))
