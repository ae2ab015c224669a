"""GradOperation, grad, value_and_grad, Jvp, Vjp, vmap, hooks, in both modes."""

import numpy as np
import pytest
import mindspore as ms
import mindspore.nn as nn
import mindspore.ops as ops
from mindspore import Tensor, context, ms_function, Parameter, ParameterTuple
from mindspore.ops import operations as P
from mindspore.ops import functional as F
from mindspore.ops import composite as C
from mindspore.ops import grad, value_and_grad, vmap, jvp, vjp
from mindspore.nn import Jvp, Vjp

context.set_context(mode=context.GRAPH_MODE)


def t(x, dtype=np.float32):
    return Tensor(np.array(x, dtype))


class Square(nn.Cell):

    def construct(self, x):
        return x * x * x


class Two(nn.Cell):

    def construct(self, x, y):
        return (x**2 * y, x * y**2)


class MulW(nn.Cell):

    def __init__(self):
        super().__init__()
        self.w = Parameter(t([2.0, 3.0]), name="w")
        self.b = Parameter(t([1.0, 1.0]), name="b")

    def construct(self, x):
        return x * self.w + self.b


@pytest.mark.parametrize("mode", [context.GRAPH_MODE, context.PYNATIVE_MODE])
class TestModes:

    def test_grad_single(self, mode):
        context.set_context(mode=mode)
        x = t([[1, 2], [3, 4]])
        np.testing.assert_allclose(grad(Square())(x).asnumpy(), 3 * x.asnumpy() ** 2)

    def test_grad_positions(self, mode):
        context.set_context(mode=mode)
        x, y = (t([1.0, 2.0]), t([3.0, 5.0]))
        out = grad(Two(), grad_position=(0, 1))(x, y)
        np.testing.assert_allclose(out[0].asnumpy(), [2 * 3 + 9, 4 * 5 + 25])
        np.testing.assert_allclose(out[1].asnumpy(), [1 + 6, 4 + 20])
        np.testing.assert_allclose(grad(Two(), 1)(x, y).asnumpy(), [7, 24])

    def test_grad_weights(self, mode):
        context.set_context(mode=mode)
        net = MulW()
        out = grad(net, 0, ParameterTuple(net.trainable_params()))(t([5.0, 7.0]))
        np.testing.assert_allclose(out[0].asnumpy(), [2, 3])
        np.testing.assert_allclose(out[1][0].asnumpy(), [5, 7])
        np.testing.assert_allclose(out[1][1].asnumpy(), [1, 1])
        out = grad(net, None, ParameterTuple(net.trainable_params()))(t([5.0, 7.0]))
        np.testing.assert_allclose(out[0].asnumpy(), [5, 7])

    def test_has_aux(self, mode):
        context.set_context(mode=mode)

        def f(x, y):
            return (2 * x + y, x + 10, y * 3)

        g, aux = grad(f, 0, None, has_aux=True)(t([1.0]), t([2.0]))
        assert g.asnumpy() == 2 and aux[0].asnumpy() == 11 and (aux[1].asnumpy() == 6)

    def test_value_and_grad(self, mode):
        context.set_context(mode=mode)
        value, g = value_and_grad(Two(), (0, 1))(t([1.0]), t([3.0]))
        assert value[0].asnumpy() == 3 and g[0].asnumpy() == 15
        net = MulW()
        value, g = value_and_grad(net, 0, net.trainable_params())(t([5.0, 7.0]))
        np.testing.assert_allclose(value.asnumpy(), [11, 22])
        np.testing.assert_allclose(g[1][0].asnumpy(), [5, 7])
        value, g = value_and_grad(net, None, net.trainable_params())(t([5.0, 7.0]))
        np.testing.assert_allclose(g[0].asnumpy(), [5, 7])

    def test_second_order(self, mode):
        context.set_context(mode=mode)
        np.testing.assert_allclose(grad(grad(Square()))(t([2.0])).asnumpy(), 12)
        g = C.GradOperation()
        np.testing.assert_allclose(g(g(g(Square())))(t([2.0])).asnumpy(), 6)

    def test_sens(self, mode):
        context.set_context(mode=mode)
        g = C.GradOperation(sens_param=True)
        np.testing.assert_allclose(g(Square())(t([1.0, 2.0]), t([10.0, 1.0])).asnumpy(), [30, 12])
        g = C.GradOperation(get_all=True, sens_param=True)
        out = g(Two())(t([1.0]), t([3.0]), (t([1.0]), t([2.0])))
        assert out[0].asnumpy() == 6 + 18

    def test_jvp_vjp(self, mode):
        context.set_context(mode=mode)
        x, v = (t([[1, 2], [3, 4]]), t([[1, 1], [1, 2]]))
        primal, tangent = Jvp(Square())(x, v)
        np.testing.assert_allclose(tangent.asnumpy(), 3 * x.asnumpy() ** 2 * v.asnumpy())
        primal, cot = Vjp(Square())(x, v)
        np.testing.assert_allclose(cot[0].asnumpy() if isinstance(cot, tuple) else cot.asnumpy(), 3 * x.asnumpy() ** 2 * v.asnumpy())
        primal, tangent = jvp(Square(), x, v)
        np.testing.assert_allclose(primal.asnumpy(), x.asnumpy() ** 3)
        outputs = None

    def test_vmap(self, mode):
        context.set_context(mode=mode)

        def f(x, y):
            return P.ReduceSum()(x * y)

        x, y = (t(np.arange(6).reshape(2, 3)), t([1.0, 2.0, 3.0]))
        np.testing.assert_allclose(vmap(f, in_axes=(0, None))(x, y).asnumpy(), x.asnumpy() @ y.asnumpy())
        np.testing.assert_allclose(vmap(f, (1, None), 0)(x, t([1.0, 2.0])).asnumpy(), x.asnumpy().T @ [1, 2])
        np.testing.assert_allclose(vmap(vmap(lambda a: a * 2))(x).asnumpy(), 2 * x.asnumpy())
        out = vmap(lambda a: a + 1, 0, 1)(x)
        assert out.shape == (3, 2)

    def test_unused_and_int(self, mode):
        context.set_context(mode=mode)
        out = C.GradOperation(get_all=True)(lambda x, y: x)(t([1.0]), t([2.0]))
        assert out[1].asnumpy() == 0

    def test_custom_bprop(self, mode):
        context.set_context(mode=mode)

        class Net(nn.Cell):

            def construct(self, x, y):
                return x * y

            def bprop(self, x, y, out, dout):
                return (dout * 5, dout * out)

        out = C.GradOperation(get_all=True)(Net())(t([2.0]), t([3.0]))
        assert out[0].asnumpy() == 5 and out[1].asnumpy() == 6

    def test_grad_of_dict_and_list_arguments(self, mode):
        context.set_context(mode=mode)

        class Net(nn.Cell):

            def construct(self, x, d):
                return x * d["a"]

        assert grad(Net())(t([2.0]), {"a": t([3.0])}).asnumpy() == 3


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda: C.GradOperation(get_all=1), TypeError),
        (lambda: C.GradOperation(sens_param="x"), TypeError),
        (lambda: grad(Square(), "0"), TypeError),
        (lambda: grad(Square(), -1), ValueError),
        (lambda: grad(Square(), None, None), ValueError),
        (lambda: grad(Square(), (0, "1")), TypeError),
        (lambda: value_and_grad(Square(), None, None), ValueError),
        (lambda: grad(1), (TypeError, ValueError, AttributeError)),
        (lambda: vmap(Square(), "x"), TypeError),
        (lambda: vmap(3), (TypeError, ValueError, RuntimeError)),
        (lambda: vmap(Square(), in_axes=5)(t([[1.0]])), (ValueError, RuntimeError)),
        (lambda: vmap(Two(), in_axes=(0, 0))(t([[1.0], [2.0]]), t([[1.0]])), (ValueError, RuntimeError)),
    ],
)
def test_refusals(call, error):
    context.set_context(mode=context.PYNATIVE_MODE)
    with pytest.raises(error):
        call()


def test_set_grad_hooks_pynative():
    context.set_context(mode=context.PYNATIVE_MODE)
    seen = []

    def hook(cell_id, grad_in, grad_out):
        seen.append((cell_id, grad_in[0].asnumpy() if isinstance(grad_in, tuple) else grad_in.asnumpy()))

    class Net(nn.Cell):

        def __init__(self):
            super().__init__()
            self.relu = nn.ReLU()
            self.handle = self.relu.register_backward_hook(hook)

        def construct(self, x):
            return self.relu(x + 1) * 2

    net = Net()
    net.set_grad()
    assert grad(net)(t([1.0])).asnumpy() == 2
    assert len(seen) == 1 and isinstance(seen[0][0], str)
    net.handle.remove()
    grad(net)(t([1.0]))
    assert len(seen) == 1


def test_hook_backward_and_insert_gradient():
    context.set_context(mode=context.PYNATIVE_MODE)

    def hook(g):
        return g[0] * 10

    op = P.HookBackward(hook)
    assert grad(lambda x: op(x * x))(t([3.0])).asnumpy() == 60
    clip = P.InsertGradientOf(lambda dx: dx * 0 + 1)
    assert grad(lambda x: clip(x) * 7)(t([3.0])).asnumpy() == 1
    with pytest.raises(TypeError):
        P.HookBackward(3)


def test_forward_value_and_grad():
    context.set_context(mode=context.GRAPH_MODE)
    net = MulW()
    wrapped = nn.ForwardValueAndGrad(net, weights=net.trainable_params(), get_by_list=True)
    loss, grads = wrapped(t([5.0, 7.0]))
    np.testing.assert_allclose(loss.asnumpy(), [11, 22])
    np.testing.assert_allclose(grads[0].asnumpy(), [5, 7])
    wrapped = nn.ForwardValueAndGrad(net, get_all=True, sens_param=True)
    loss, grads = wrapped(t([5.0, 7.0]), t([1.0, 10.0]))
    np.testing.assert_allclose(grads[0].asnumpy(), [2, 30])
    with pytest.raises(TypeError):
        nn.ForwardValueAndGrad(3)
    with pytest.raises(TypeError):
        nn.ForwardValueAndGrad(net, get_all=1)
    with pytest.raises(TypeError):
        nn.ForwardValueAndGrad(net, weights=[1], get_by_list=True)
