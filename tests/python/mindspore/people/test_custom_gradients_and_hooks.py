"""bprop of Cells, of primitives of one's own, and hooks."""
import numpy as np
import pytest
import mindspore as ms
import mindspore.nn as nn
import mindspore.ops.operations as P
from mindspore import Tensor, Parameter, context, ms_function
from mindspore.common import dtype as mstype
from mindspore.common.initializer import initializer
from mindspore.ops import composite as C
from mindspore.ops import prim_attr_register
from mindspore.ops._grad.grad_base import bprop_getters
from mindspore.ops.composite import GradOperation
from mindspore.ops.primitive import PrimitiveWithInfer
from mindspore.ops.signature import sig_rw, sig_dtype, make_sig

grad_all = C.GradOperation(get_all=True)
MODES = [context.GRAPH_MODE, context.PYNATIVE_MODE]


class GradOfAllInputs(nn.Cell):
    def __init__(self, net, sens_param=True):
        super().__init__()
        self.grad = GradOperation(get_all=True, sens_param=sens_param)
        self.net = net

    def construct(self, *inputs):
        return self.grad(self.net)(*inputs)


class MulAdd(nn.Cell):
    def construct(self, x, y):
        return 2 * x + y

    def bprop(self, x, y, out, dout):
        # wrong on purpose
        return 2 * dout, 2 * y


class InlineMulAdd(nn.Cell):
    def __init__(self):
        super().__init__()
        self.mul_add = MulAdd()
        self.param = 2

    def construct(self, x, y):
        return self.mul_add(x, y) + x + self.param * y


@pytest.mark.parametrize("mode", MODES)
def test_bprop_of_ints(mode):
    context.set_context(mode=mode)
    x, y = Tensor(1, dtype=ms.int32), Tensor(2, dtype=ms.int32)
    assert grad_all(MulAdd())(x, y) == (2, 4)
    assert grad_all(InlineMulAdd())(x, y) == (3, 6)


@pytest.mark.parametrize("mode", MODES)
def test_bprop_inside(mode):
    context.set_context(mode=mode)

    class One(nn.Cell):
        def __init__(self):
            super().__init__()
            self.op = P.ReLU()

        def construct(self, x):
            return self.op(x)

        def bprop(self, x, out, dout):
            return (5 * x,)

    out = grad_all(One())(Tensor(np.ones([2, 2]).astype(np.float32)))
    assert (out[0].asnumpy() == np.full((2, 2), 5, np.float32)).all()


class Two(nn.Cell):
    def construct(self, x, y):
        return x * y


class TwoWithBprop(nn.Cell):
    def __init__(self):
        super().__init__()
        self.op = P.Mul()

    def construct(self, x, y):
        return self.op(x, y)

    def bprop(self, x, y, out, dout):
        return 5 * x, 8 * y


class TwoWithParameter(nn.Cell):
    def __init__(self):
        super().__init__()
        self.op = P.Mul()
        self.inputdata = Parameter(initializer(1, (2, 2), mstype.float32), name="global_step")

    def construct(self, x, y):
        x = self.inputdata + x
        return self.op(x, y)


class ManyCells(nn.Cell):
    def __init__(self):
        super().__init__()
        self.f1 = TwoWithBprop()
        self.f2 = Two()
        self.f3 = TwoWithParameter()

    def construct(self, x, y):
        return self.f1(x, y) + self.f2(x, y) + self.f3(x, y)


@pytest.mark.parametrize("mode", MODES)
def test_bprop_among_others(mode):
    context.set_context(mode=mode)
    x, y = Tensor(np.ones([2, 2]).astype(np.float32)), Tensor(np.ones([2, 2]).astype(np.float32))
    net = ManyCells()
    net.init_parameters_data()
    grads = grad_all(net)(x, y)
    assert (grads[0].asnumpy() == 5 + 1 + 1).all()
    assert (grads[1].asnumpy() == 8 + 1 + 2).all()
    assert len(grads) == 2


@pytest.mark.parametrize("mode", MODES)
def test_grad_inside_a_bprop(mode):
    context.set_context(mode=mode)

    class F1(nn.Cell):
        def __init__(self):
            super().__init__()
            self.relu = P.ReLU()

        def construct(self, x, y):
            return self.relu(x)

    class F2(nn.Cell):
        def __init__(self):
            super().__init__()
            self.f = F1()

        def construct(self, x, y):
            return self.f(x, y), grad_all(self.f)(x, y)

        def bprop(self, x, y, out, dout):
            grads = grad_all(self.f)(x, y)
            return out[1][0], grads[1]

    class F3(nn.Cell):
        def __init__(self):
            super().__init__()
            self.f = F2()

        def construct(self, x, y):
            return self.f(x, y)

    one = Tensor(np.ones([2, 2]).astype(np.float32))
    grads = grad_all(F3())(one, one)
    assert (grads[0].asnumpy() == np.ones([2, 2])).all()
    assert (grads[1].asnumpy() == np.zeros([2, 2])).all()


def test_bprop_with_a_wrong_number_of_gradients():
    class Wrong(nn.Cell):
        def construct(self, x, y):
            return x + y

        def bprop(self, x, y, out, dout):
            return (dout,)

    with pytest.raises((TypeError, ValueError)):
        grad_all(Wrong())(Tensor(np.ones(2, np.float32)), Tensor(np.ones(2, np.float32)))


class OwnOp(PrimitiveWithInfer):
    @prim_attr_register
    def __init__(self, factor):
        super().__init__('OwnOp')

    def __call__(self, x, y):
        return x * self.factor + y

    def infer_shape(self, x_shape, y_shape):
        return x_shape

    def infer_dtype(self, x_type, y_type):
        return x_type


@bprop_getters.register(OwnOp)
def get_bprop_own_op(self):
    """Generate bprop for OwnOp"""
    factor = self.factor

    def bprop(x, y, out, dout):
        return dout * factor * 10, dout

    return bprop


@pytest.mark.parametrize("mode", MODES)
def test_bprop_of_an_own_primitive(mode):
    context.set_context(mode=mode)

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.op = OwnOp(3)

        def construct(self, x, y):
            return self.op(x, y)

    x, y = Tensor(np.array([1., 2.], np.float32)), Tensor(np.array([5., 6.], np.float32))
    np.testing.assert_array_equal(Net()(x, y).asnumpy(), [8, 12])
    grads = grad_all(Net())(x, y)
    np.testing.assert_array_equal(grads[0].asnumpy(), [30, 30])
    np.testing.assert_array_equal(grads[1].asnumpy(), [1, 1])


def own(name, answer):
    class Own(PrimitiveWithInfer):
        @prim_attr_register
        def __init__(self):
            super(Own, self).__init__(name)

        def __call__(self, x, y):
            return x

        def infer_shape(self, x_shape, y_shape):
            return x_shape

        def infer_dtype(self, x_type, y_type):
            return x_type

    @bprop_getters.register(Own)
    def get_bprop(self):
        def bprop(x, y, out, dout):
            return answer(x, y, dout)
        return bprop

    class Net(nn.Cell):
        def construct(self, x, y):
            return Own()(x, y)

    return Net()


@pytest.mark.parametrize("answer,error", [
    (lambda x, y, d: (d,), ValueError), (lambda x, y, d: (1, d), TypeError),
    (lambda x, y, d: (Tensor(np.ones(7, np.float32)), d), ValueError),
])
def test_check_bprop_of_primitives(answer, error):
    context.set_context(mode=context.GRAPH_MODE, check_bprop=True)
    try:
        with pytest.raises(error):
            grad_all(own("Wrong", answer))(Tensor(np.ones(2, np.float32)), Tensor(np.ones(2, np.float32)))
    finally:
        context.set_context(check_bprop=False)


def test_signatures_can_be_declared():
    class Custom(PrimitiveWithInfer):
        __mindspore_signature__ = (make_sig('p1', sig_rw.RW_WRITE, dtype=sig_dtype.T), make_sig('p2', dtype=sig_dtype.T))

        @prim_attr_register
        def __init__(self, axis=1):
            self.add_prim_attr("side_effect_mem", True)

    op = Custom(2)
    assert op.name == "Custom" and op.axis == 2 and op.side_effect_mem is True
    assert op.__mindspore_signature__[0].name == 'p1'


class MulDouble(nn.Cell):
    def construct(self, x):
        return x * 2


class AddFour(nn.Cell):
    def construct(self, x):
        return x + 4


class Chain(nn.Cell):
    def __init__(self):
        super().__init__()
        self.add = AddFour()
        self.mul = MulDouble()
        self.relu = nn.ReLU()
        self.seen = []

    def record(self, cell_id, grad_input, grad_output):
        self.seen.append((grad_input[0].asnumpy(), grad_output[0].asnumpy()))

    def double(self, cell_id, grad_input, grad_output):
        return (grad_output[0] * 2,)

    def construct(self, x):
        return self.relu(self.mul(self.add(x)))


@pytest.fixture(name="pynative")
def _pynative():
    context.set_context(mode=context.PYNATIVE_MODE)


def test_backward_hooks_record(pynative):
    net = Chain()
    net.set_grad()
    for cell in (net.mul, net.add, net.relu):
        cell.register_backward_hook(net.record)
    x = Tensor(np.ones([2, 2]).astype(np.float32))
    out = net(x)
    GradOfAllInputs(net)(x, out)
    assert [(a[0, 0], b[0, 0]) for a, b in net.seen] == [(10, 10), (10, 20), (20, 20)]


def test_backward_hook_changes(pynative):
    net = Chain()
    net.mul.register_backward_hook(net.double)
    x = Tensor(np.ones([2, 2]).astype(np.float32))
    grads = GradOfAllInputs(net)(x, net(x))
    np.testing.assert_array_equal(grads[0].asnumpy(), np.full((2, 2), 40))


def test_backward_hook_of_the_outermost(pynative):
    net = Chain()
    net.register_backward_hook(net.record)
    x = Tensor(np.ones([2, 2]).astype(np.float32))
    GradOfAllInputs(net)(x, net(x))
    assert net.seen[0][0][0, 0] == 10 and net.seen[0][1][0, 0] == 20


def test_removing_a_hook(pynative):
    net = Chain()
    handle = net.mul.register_backward_hook(net.double)
    x = Tensor(np.ones([2, 2]).astype(np.float32))
    grad = GradOfAllInputs(net, False)
    assert grad(x)[0].asnumpy()[0, 0] == 4
    handle.remove()
    assert grad(x)[0].asnumpy()[0, 0] == 2


def test_forward_hooks(pynative):
    def pre(cell_id, inputs):
        return inputs[0] + 1

    def post(cell_id, inputs, output):
        return output * 10

    net = Chain()
    a = net.register_forward_pre_hook(pre)
    b = net.register_forward_hook(post)
    assert net(Tensor([1.], ms.float32)).asnumpy()[0] == 120
    a.remove()
    b.remove()
    assert net(Tensor([1.], ms.float32)).asnumpy()[0] == 10


@pytest.mark.parametrize("hook", [1, "x", None, nn.ReLU()])
def test_hooks_must_be_functions(pynative, hook):
    for name in ("register_forward_pre_hook", "register_forward_hook", "register_backward_hook"):
        with pytest.raises(TypeError):
            getattr(nn.ReLU(), name)(hook)


@pytest.mark.parametrize("mode", MODES)
def test_hook_backward_primitive(mode):
    context.set_context(mode=mode)

    def hook(grad):
        return grad[0] * 2

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.relu = nn.ReLU()
            self.hook = P.HookBackward(hook)

        def construct(self, x):
            x = x + x
            x = x * x
            x = self.hook(x)
            return self.relu(x)

    out = grad_all(Net())(Tensor(np.array([1., 2.], np.float32)))
    if mode == context.PYNATIVE_MODE:
        np.testing.assert_array_equal(out[0].asnumpy(), [16, 32])
    else:
        assert out[0].shape == (2,)


def test_insert_gradient_of():
    context.set_context(mode=context.GRAPH_MODE)

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.get = P.InsertGradientOf(self.clip)

        def clip(self, dout):
            return C.clip_by_value(dout, Tensor(-0.5, ms.float32), Tensor(0.5, ms.float32))

        def construct(self, x):
            return self.get(x) * 3

    assert grad_all(Net())(Tensor([1.], ms.float32))[0].asnumpy()[0] == 0.5


def test_insert_gradient_of_assigns():
    context.set_context(mode=context.GRAPH_MODE)

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.gather = P.GatherV2()
            self.damping = Tensor(np.array([0.03, 0.03]).astype(np.float32))
            self.cov_step = ms.Parameter(0, name="cov_step", requires_grad=False)
            self.freq = Tensor(278, ms.int32)
            self.get = P.InsertGradientOf(self.save_gradient)

        def save_gradient(self, dout):
            self.cov_step = self.cov_step + self.freq
            return dout

        def construct(self, x):
            self.gather(self.damping, self.cov_step, 0)
            out = P.ReLU()(x)
            return self.get(out)

    class GradNet(nn.Cell):
        def __init__(self, net):
            super().__init__()
            self.net = net

        def construct(self, *inputs):
            out = self.net(*inputs)
            return out, grad_all(self.net)(*inputs)

    net = Net()
    GradNet(net)(Tensor(np.array([[1.2, 2.1]], np.float32)))
    assert net.cov_step.asnumpy() == 278


@pytest.mark.parametrize("mode", MODES)
def test_stop_gradient(mode):
    context.set_context(mode=mode)

    def f(x, y):
        return x * y + ms.ops.stop_gradient(x * x)

    grads = grad_all(f)(Tensor([2.], ms.float32), Tensor([3.], ms.float32))
    assert grads[0].asnumpy()[0] == 3 and grads[1].asnumpy()[0] == 2


def test_ms_function_cells_inside_a_pynative_net(pynative):
    class Inner(nn.Cell):
        def __init__(self):
            super().__init__()
            self.param = Parameter(Tensor(0.5, ms.float32), name="p")

        @ms_function
        def construct(self, x):
            x = x + x
            x = x * self.param
            return x * x

    class Outer(nn.Cell):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def construct(self, x):
            return self.inner(x) + x

    net = Outer()
    grad = C.GradOperation(get_all=True, get_by_list=True)
    out = grad(net, ms.ParameterTuple(net.trainable_params()))(Tensor([3.], ms.float32))
    assert net(Tensor([3.], ms.float32)).asnumpy()[0] == 12
    assert out[0][0].asnumpy()[0] == 7 and out[1][0].asnumpy() == 36


def test_layers_made_inside_a_function(pynative):
    @ms_function
    def conv_bn_relu(x):
        conv = nn.Conv2d(1, 2, kernel_size=2, stride=1, padding=0, weight_init="ones", pad_mode="valid")
        bn = nn.BatchNorm2d(2, momentum=0.99, eps=0.00001, gamma_init="ones")
        relu = nn.ReLU()
        x = conv(x)
        x = bn(x)
        return relu(x)

    x = Tensor(np.ones([1, 1, 2, 2]).astype(np.float32))
    np.testing.assert_allclose(conv_bn_relu(x).asnumpy(), np.full((1, 2, 1, 1), 3.99998), 1e-4)
    grad = ms.ops.GradOperation(get_all=True)
    np.testing.assert_allclose(grad(conv_bn_relu)(x)[0].asnumpy(), np.full((1, 1, 2, 2), 1.99999), 1e-4)
