"""Primitives that a script defines itself: how they compute, their gradients, and hooks around compiled functions."""

import numpy as np
import pytest

from mindspore import Tensor, context, nn
from mindspore.common.api import ms_function
from mindspore.ops import PrimitiveWithInfer, prim_attr_register
from mindspore.ops import composite as C
from mindspore.ops.functional import stop_gradient

grad = C.GradOperation()
grad_all = C.GradOperation(get_all=True)


class Cube(PrimitiveWithInfer):
    """Computes in NumPy; its gradient is told by rule."""

    @prim_attr_register
    def __init__(self, factor=1):
        pass

    def infer_shape(self, x):
        return x

    def infer_dtype(self, x):
        return x

    def vm_impl(self, x):
        return Tensor(x.asnumpy() ** 3 * self.factor)

    def get_bprop(self):
        def bprop(x, out, dout):
            return (dout * x * x * 3 * self.factor,)

        return bprop


class Swap(PrimitiveWithInfer):
    """Two results; a gradient that tells itself apart from the true one."""

    @prim_attr_register
    def __init__(self):
        pass

    def __call__(self, x, y):
        return y, x

    def get_bprop(self):
        def bprop(x, y, out, dout):
            return dout[0] * 10, dout[1] * 100

        return bprop


class NoRule(PrimitiveWithInfer):
    @prim_attr_register
    def __init__(self):
        pass

    def __call__(self, x):
        return x + 0


class CubeNet(nn.Cell):
    def __init__(self, factor):
        super().__init__()
        self.cube = Cube(factor)

    def construct(self, x):
        return self.cube(x) + x


def ones(*shape):
    return Tensor(np.ones(shape, np.float32))


@pytest.mark.parametrize("mode", [context.GRAPH_MODE, context.PYNATIVE_MODE])
@pytest.mark.parametrize("factor", [1, 4])
def test_vm_impl_computes_and_get_bprop_is_the_gradient(mode, factor):
    context.set_context(mode=mode)
    x = Tensor(np.array([1, 2, -3], np.float32))
    net = CubeNet(factor)
    assert np.allclose(net(x).asnumpy(), x.asnumpy() ** 3 * factor + x.asnumpy())
    assert np.allclose(grad(net)(x).asnumpy(), 3 * factor * x.asnumpy() ** 2 + 1)


def test_gradient_of_two_results_is_what_get_bprop_says():
    context.set_context(mode=context.PYNATIVE_MODE)
    swap = Swap()

    def function(x, y):
        a, b = swap(x, y)
        return a * 2 + b

    dx, dy = grad_all(function)(ones(2), ones(2))
    assert (dx.asnumpy() == 20).all()
    assert (dy.asnumpy() == 100).all()


def test_gradient_through_a_primitive_without_get_bprop():
    context.set_context(mode=context.PYNATIVE_MODE)
    prim = NoRule()
    with pytest.raises(RuntimeError, match="bprop not defined"):
        grad(lambda x: prim(x) * 2)(ones(2))


def test_a_primitive_without_get_bprop_behind_stop_gradient():
    context.set_context(mode=context.PYNATIVE_MODE)
    prim = NoRule()
    made = grad(lambda x: stop_gradient(prim(x)) * x)(ones(2) * 3)
    assert (made.asnumpy() == 3).all()


class Halved(nn.Cell):
    """Its hooks act where it runs eagerly."""

    def __init__(self):
        super().__init__()
        self.relu = nn.ReLU()
        self.relu.register_forward_pre_hook(lambda cell, inputs: inputs[0] * 4)
        self.relu.register_forward_hook(lambda cell, inputs, output: output + 100)


class HalvedEager(Halved):
    def construct(self, x):
        return self.relu(x) / 2


class HalvedCompiled(Halved):
    @ms_function
    def construct(self, x):
        return self.relu(x) / 2


def test_hooks_inside_of_a_compiled_method_do_not_act():
    context.set_context(mode=context.PYNATIVE_MODE)
    x = ones(3)
    assert (HalvedEager()(x).asnumpy() == 52).all()
    assert (HalvedCompiled()(x).asnumpy() == 0.5).all()
    assert (grad(HalvedEager())(x).asnumpy() == 2).all()
    assert (grad(HalvedCompiled())(x).asnumpy() == 0.5).all()


def test_number_of_gradients_of_a_bprop_in_a_graph():
    class Wrong(nn.Cell):
        def construct(self, x, y):
            return x + y

        def bprop(self, x, y, out, dout):
            return (dout,)

    context.set_context(mode=context.GRAPH_MODE, check_bprop=True)
    with pytest.raises(ValueError, match="the gradients number: 1 is not equal to the args number: 2"):
        grad_all(Wrong())(ones(2), ones(2))
    context.set_context(check_bprop=False)


def test_a_hook_of_the_first_cell_acts_where_only_parameters_are_differentiated():
    seen = []

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.dense = nn.Dense(3, 2, weight_init="ones")
            self.dense.register_backward_hook(lambda cell, results, inputs: seen.append((results[0].shape, inputs[0].asnumpy())))

        def construct(self, x):
            return self.dense(x) * 2

    context.set_context(mode=context.PYNATIVE_MODE)
    net = Net()
    made = C.GradOperation(get_by_list=True)(net, net.trainable_params())(ones(4, 3))
    assert (made[0].asnumpy() == 8).all()
    (of_results, of_inputs), = seen
    assert of_results == (4, 2)
    assert (of_inputs == 4).all()
