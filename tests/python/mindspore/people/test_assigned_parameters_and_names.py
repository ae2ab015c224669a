"""Gradients by Parameters that are assigned, by integers beside indices; names that nobody defined; small things by their class."""

import numpy as np
import pytest

import mindspore as ms
import mindspore.nn as nn
from mindspore import Parameter, ParameterTuple, Tensor, context, ops
from mindspore.common.api import _pynative_executor
from mindspore.nn.grad import Jvp
from mindspore.ops import composite as C
from mindspore.ops import operations as P
from mindspore.train.callback import LossMonitor
from mindspore.train.serialization import export, load_checkpoint

MODES = pytest.mark.parametrize("mode", [context.GRAPH_MODE, context.PYNATIVE_MODE])
both = C.GradOperation(get_all=True, get_by_list=True)


class Weight(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = Parameter(Tensor([2.0], ms.float32), name="w")
        self.assign = P.Assign()


class Assigned(Weight):
    def construct(self, x):
        self.assign(self.w, x * 3)
        return self.w * x


class Stored(Weight):
    def construct(self, x):
        self.w = x * 3
        return self.w * x


class Added(Weight):
    def construct(self, x):
        ops.assign_add(self.w, x)
        return self.w * x


class ReadBefore(Weight):
    def construct(self, x):
        y = self.w * self.w
        self.assign(self.w, x * 3)
        return self.w * x + y


@MODES
@pytest.mark.parametrize("net, by_x, by_w", [(Assigned, 15, 5), (Stored, 15, 5), (Added, 7, 5), (ReadBefore, 15, 9)])
def test_what_is_assigned_passes_no_gradient_on(mode, net, by_x, by_w):
    context.set_context(mode=mode)
    made = net()
    (dx,), (dw,) = both(made, ParameterTuple([made.w]))(Tensor([5.0], ms.float32))
    assert dx.asnumpy() == by_x and dw.asnumpy() == by_w


@MODES
def test_assigned_in_a_branch(mode):
    context.set_context(mode=mode)

    class Net(Weight):
        def construct(self, x):
            if x > 0:
                self.assign(self.w, x * 3)
            return self.w * x

    for x, by_x, by_w in ((5.0, 15, 5), (-1.0, 2, -1)):
        made = Net()
        (dx,), (dw,) = both(made, ParameterTuple([made.w]))(Tensor([x], ms.float32))
        assert dx.asnumpy() == by_x and dw.asnumpy() == by_w


@MODES
@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.float32])
def test_gradient_of_values_beside_indices(mode, dtype):
    context.set_context(mode=mode)

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.dense = P.SparseToDense()

        def construct(self, indices, values):
            return self.dense(indices, values, (3, 3))

    given = Tensor(np.array([[0, 1], [1, 2]])), Tensor(np.array([7, 8]).astype(dtype))
    made = C.GradOperation(get_all=True, sens_param=True)(Net())(*given, Tensor(np.arange(9).reshape(3, 3).astype(dtype)))
    assert made[1].asnumpy().tolist() == [1, 5] and made[1].asnumpy().dtype == dtype and not made[0].asnumpy().any()


def test_sparse_to_dense_of_flags():
    made = P.SparseToDense()(Tensor([[0, 1], [1, 0]]), Tensor([True, True]), (2, 2))
    assert made.asnumpy().tolist() == [[False, True], [True, False]]


@pytest.mark.parametrize("place", ["plain", "branch", "loop"])
def test_a_name_that_nobody_defined(place):
    context.set_context(mode=context.GRAPH_MODE)

    class Plain(nn.Cell):
        def construct(self, x):
            return x + nobody  # noqa: F821

    class Branch(nn.Cell):
        def construct(self, x):
            if x > 0:
                nobody  # noqa: B018, F821
            return x

    class Loop(nn.Cell):
        def construct(self, x):
            while x < 0:
                x = x - nobody  # noqa: F821
            return x

    net, line = {"plain": (Plain, "return x + nobody"), "branch": (Branch, "nobody"), "loop": (Loop, "x = x - nobody")}[place]
    with pytest.raises(NameError) as info:
        net()(Tensor([1, 2, 3], ms.float32))
    assert "The symbol 'nobody' is not defined" in str(info.value) and line in str(info.value)
    number = open(__file__).read().split("\n").index(next(each for each in open(__file__).read().split("\n") if each.strip().startswith(line + "  #"))) + 1
    assert f"test_assigned_parameters_and_names.py({number})" in str(info.value)


def test_a_loop_that_grows_a_tensor_runs_eagerly():
    context.set_context(mode=context.GRAPH_MODE)

    class Net(nn.Cell):
        def construct(self, x, n):
            i = n - n
            while i < n:
                x = ops.concat((x, x))
                i = i + 1
            return x

    assert Net()(Tensor([1.0], ms.float32), Tensor(3)).asnumpy().tolist() == [1] * 8


def test_iterators_come_back_as_tuples():
    context.set_context(mode=context.GRAPH_MODE)

    class Net(nn.Cell):
        def construct(self):
            return map(lambda a: a + 1, [22, 66])

    assert Net()() == (23, 67)


def test_gathering_outside_in_a_compiled_function():
    context.set_context(mode=context.GRAPH_MODE)

    class Net(nn.Cell):
        def construct(self, x, i):
            return P.Gather()(x, i, 0)

    with pytest.raises(RuntimeError) as info:
        Net()(Tensor([1.0, 2.0]), Tensor([0, 2]))
    assert "For 'Gather', the 'input_indices' should be in the range [-2, 2), but got 2" in str(info.value)


@MODES
@pytest.mark.parametrize("deep", [False, True])
def test_vmap_of_an_update_writes_the_parameters(mode, deep):
    context.set_context(mode=mode)

    def update(var, accum, lr, grad):
        return P.ApplyAdagrad()(var, accum, lr, grad)

    class Net(nn.Cell):
        def __init__(self, var, accum):
            super().__init__()
            self.var, self.accum = Parameter(Tensor(var), name="var"), Parameter(Tensor(accum), name="accum")
            self.mapped = ops.vmap(update, in_axes=(0, 0, 0, 0))
            if deep:
                self.mapped = ops.vmap(self.mapped, in_axes=(0, 0, 0, 0))

        def construct(self, lr, grad):
            return self.mapped(self.var, self.accum, lr, grad)

    shape = (2, 3, 4) if deep else (3, 4)
    random = np.random.RandomState(0)
    var, accum, grad = (random.rand(*shape).astype(np.float32) for _ in range(3))
    lr = random.rand(*shape[:-1]).astype(np.float32)
    net = Net(var, accum)
    made = net(Tensor(lr), Tensor(grad))
    expected = var - lr[..., None] * grad / np.sqrt(accum + grad * grad)
    assert np.allclose(made[0].asnumpy(), expected) and np.allclose(net.var.asnumpy(), expected)
    assert np.allclose(net.accum.asnumpy(), accum + grad * grad)


def test_all_of_the_largest_in_no_order_are_as_they_are():
    x = np.random.rand(3, 4).astype(np.float32)
    values, places = P.TopK(sorted=False)(Tensor(x), 4)
    assert np.array_equal(values.asnumpy(), x) and places.asnumpy().tolist() == [[0, 1, 2, 3]] * 3


def test_an_optimizer_of_nothing():
    with pytest.raises(ValueError, match="Optimizer got an empty parameter list"):
        nn.Adam(nn.Flatten().trainable_params())


@pytest.mark.parametrize("dtype", [np.int32, np.int8, np.float32])
def test_reciprocals(dtype):
    x = np.array([1, -1, 2, -3]).astype(dtype)
    for operator in (P.Reciprocal(), P.Inv()):
        assert np.allclose(operator(Tensor(x)).asnumpy(), np.reciprocal(x)) and operator(Tensor(x)).asnumpy().dtype == dtype


def test_running_extremes_of_nan():
    x = Tensor(np.array([4, np.inf, 1.5, -np.inf, 0, np.nan, 1], np.float32))
    values, places = P.Cummin(0)(x)
    assert np.allclose(values.asnumpy(), [4, 4, 1.5, -np.inf, -np.inf, np.nan, np.nan], equal_nan=True)
    assert places.asnumpy().tolist() == [0, 0, 2, 3, 3, 5, 5]


def test_power_sign():
    var, m = (Parameter(Tensor(np.array([each], np.float32)), name=name) for each, name in ((0.6, "var"), (0.5, "m")))
    P.ApplyPowerSign()(var, m, 0.001, np.e, 0.99, 0.9, Tensor(np.array([0.3], np.float32)))
    assert np.allclose(var.asnumpy(), 0.6 - 0.001 * np.exp(np.e * 0.99) * 0.3) and np.allclose(m.asnumpy(), 0.5 * 0.9 + 0.3 * 0.1)


def test_boxes_of_whole_pixels():
    image = np.arange(2 * 8 * 6, dtype=np.float32).reshape(2, 8, 6, 1)
    boxes = Tensor(np.array([[0, 0, 0.5, 0.5]], np.float32))
    made = P.CropAndResize(method="bilinear_v2")(Tensor(image), boxes, Tensor(np.array([1], np.int32)), (5, 4)).asnumpy()
    assert np.allclose(made[0, :, :, 0], image[1, :5, :4, 0])  # 5 x 4 pixels of the second image, as they are


@MODES
@pytest.mark.parametrize(
    "operator, inputs, error",
    [
        (P.BatchNorm(), [np.ones((5, 3))] * 3 + [None, None], TypeError),
        (P.Conv2D(2, (5, 5)), [np.ones(5, bool)] * 2, TypeError),
        (P.Conv2D(2, (5, 5)), [np.ones(5), np.ones(5, np.float16)], TypeError),
        (P.BatchMatMul(), [np.ones((2, 3)), np.ones((3, 2))], ValueError),
        (P.BroadcastTo((2, -1, 4, 5)), [np.ones((4, 5))], ValueError),
    ],
)
def test_primitives_refuse(mode, operator, inputs, error):
    context.set_context(mode=mode)
    with pytest.raises(error):
        operator(*(each if each is None else Tensor(each.astype(np.float32) if each.dtype == np.float64 else each) for each in inputs))


def test_directions_must_be_like_the_inputs():
    class Cube(nn.Cell):
        def construct(self, x):
            return x**3

    x = Tensor([1.0, 2.0])
    for wrong in ((x, (x, x)), (x, (x,)), (x, x, x)):
        with pytest.raises(TypeError):
            Jvp(Cube())(*wrong)


def test_files_and_callbacks_by_class():
    with pytest.raises(ValueError):
        load_checkpoint(1)
    with pytest.raises(ValueError):
        LossMonitor(has_trained_epoch=-100)
    with pytest.raises(ValueError):
        export(nn.ReLU(), Tensor([1.0]), file_name="net", file_format="AIR")
    _pynative_executor.sync()
