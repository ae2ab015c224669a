"""Functions under ms_kernel: Python of its own words, called with arrays and as operators."""

import numpy as np
import pytest

import mindspore as ms
from mindspore import Tensor, context, nn, ops
from mindspore.ops import ms_kernel


@ms_kernel
def distances(a, b):
    out = output_tensor((a.shape[0], b.shape[0]), a.dtype)  # noqa: F821
    part = allocate((1,), a.dtype)  # noqa: F821
    for i in range(a.shape[0]):
        for j in serial(b.shape[0]):  # noqa: F821
            part[0] = 0.0
            for k in range(a.shape[1]):
                part[0] = part[0] + abs(a[i, k] - b[j, k])
            out[i, j] = sqrt(part[0])  # noqa: F821
    return out


@ms_kernel
def added(a, b):
    out = output_tensor(a.shape, a.dtype)  # noqa: F821
    for place in grid(a.shape):  # noqa: F821
        out[place] = float32(a[place]) + b[place[0], place[1]]  # noqa: F821
    return out


A, B = np.random.RandomState(3).randn(2, 3, 4).astype(np.float32)


def wanted(kernel):
    return A + B if kernel is added else np.sqrt(np.abs(A[:, None] - B[None]).sum(-1))


@pytest.mark.parametrize("kernel", [distances, added])
def test_a_kernel_is_a_function_of_arrays(kernel):
    assert np.allclose(kernel(A, B), wanted(kernel), atol=1e-6)


@pytest.mark.parametrize("mode", [context.GRAPH_MODE, context.PYNATIVE_MODE])
@pytest.mark.parametrize("kind", ["hybrid", "pyfunc"])
@pytest.mark.parametrize("kernel", [distances, added])
def test_a_kernel_is_an_operator(kernel, kind, mode):
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            shape = (lambda x, y: (3, 3)) if kernel is distances else lambda x, y: x
            self.operator = ops.Custom(kernel, out_shape=shape, out_dtype=lambda x, y: x, func_type=kind)

        def construct(self, x, y):
            return self.operator(x, y)

    context.set_context(mode=mode)
    assert np.allclose(Net()(Tensor(A), Tensor(B)).asnumpy(), wanted(kernel), atol=1e-6)


def test_a_decorator_with_settings():
    assert ms_kernel(reg_info=None)(lambda x: x)(4) == 4


def test_a_tuple_of_one_result():
    operator = ops.Custom(lambda x: x * 2, ((3, 4),), (ms.float32,), "pyfunc")
    made = operator(Tensor(A))
    assert isinstance(made, tuple) and len(made) == 1 and np.allclose(made[0].asnumpy(), 2 * A)
    assert np.allclose(ops.Custom(lambda x: x * 2, (3, 4), ms.float32, "pyfunc")(Tensor(A)).asnumpy(), 2 * A)
