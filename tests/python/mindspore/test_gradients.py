"""Gradients in eager mode: forms of GradOperation, higher orders, gradients of the script's own, hooks."""

import threading

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, ParameterTuple, Tensor, context, nn, ops
from mindspore.ops import GradOperation
from mindspore.ops._grad import grad_base

from cairn.ms import core, kept, tape


def f32(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def differences(function, array, step=1e-3):
    """The gradient of the sum of function(array), in f64, by central differences."""
    made = np.zeros(array.shape)
    for place in np.ndindex(array.shape):
        up, down = array.astype(np.float64), array.astype(np.float64)
        up[place] += step
        down[place] -= step
        made[place] = (function(up).sum() - function(down).sum()) / (2 * step)
    return made


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = Parameter(Tensor(f32(3, 2, seed=1)), name="w")
        self.b = Parameter(Tensor(f32(2, seed=2)), name="b")

    def construct(self, x, y):
        return core.tanh(core.matmul(x, self.w) + self.b) * y


X, Y = f32(4, 3, seed=3), f32(4, 2, seed=4)


def expected():
    w, b = f32(3, 2, seed=1), f32(2, seed=2)
    return {
        "x": differences(lambda x: np.tanh(x @ w + b) * Y, X),
        "y": differences(lambda y: np.tanh(X @ w + b) * y, Y),
        "w": differences(lambda v: np.tanh(X @ v + b) * Y, w),
        "b": differences(lambda v: np.tanh(X @ w + v) * Y, b),
    }


def close(found, wanted):
    np.testing.assert_allclose(found.asnumpy(), wanted, rtol=2e-4, atol=2e-4)


def test_the_four_forms():
    net, wanted = Net(), expected()
    weights = ParameterTuple(net.trainable_params())
    inputs = Tensor(X), Tensor(Y)
    close(GradOperation()(net)(*inputs), wanted["x"])
    dx, dy = GradOperation(get_all=True)(net)(*inputs)
    close(dx, wanted["x"]), close(dy, wanted["y"])
    dw, db = GradOperation(get_by_list=True)(net, weights)(*inputs)
    close(dw, wanted["w"]), close(db, wanted["b"])
    (dx, dy), (dw, db) = GradOperation(get_all=True, get_by_list=True)(net, weights)(*inputs)
    close(dx, wanted["x"]), close(dy, wanted["y"]), close(dw, wanted["w"]), close(db, wanted["b"])


def test_sens_seeds_the_gradient():
    sens = f32(4, 2, seed=9)
    w, b = f32(3, 2, seed=1), f32(2, seed=2)
    wanted = differences(lambda x: np.tanh(x @ w + b) * Y * sens, X)
    close(GradOperation(sens_param=True)(Net())(Tensor(X), Tensor(Y), Tensor(sens)), wanted)
    with pytest.raises(TypeError):
        GradOperation(sens_param=True)(Net())(Tensor(X), Tensor(Y), Tensor(sens[0]))


def test_a_tuple_of_results_needs_a_tuple_of_seeds():
    def both(x):
        return x * x, x * 3.0

    x = Tensor([1.0, 2.0])
    assert GradOperation()(both)(x).asnumpy().tolist() == [5, 7]
    seeds = Tensor([1.0, 0.0]), Tensor([0.0, 1.0])
    assert GradOperation(sens_param=True)(both)(x, seeds).asnumpy().tolist() == [2, 3]
    with pytest.raises(TypeError):
        GradOperation(sens_param=True)(both)(x, seeds[0])


def test_level_0_5_takes_a_name_first():
    assert GradOperation("grad", True)(lambda x: x * x)(Tensor([3.0]))[0].asnumpy() == 6
    with pytest.raises(TypeError):
        GradOperation(get_all=1)


@pytest.mark.parametrize("order, wanted", [(1, 3 * 4), (2, 6 * 2), (3, 6), (4, 0)])
def test_higher_orders(order, wanted):
    function = lambda x: x * x * x  # noqa: E731
    for _ in range(order):
        function = GradOperation()(function)
    assert function(Tensor([2.0])).asnumpy() == wanted


def test_an_inner_gradient_treats_the_outer_input_as_constant():
    def outer(x):
        y = x * x
        return GradOperation()(lambda z: z * y)(x)  # y, by the outer x: 2 x

    assert GradOperation()(outer)(Tensor([3.0])).asnumpy() == 6


def test_one_tensor_as_two_inputs():
    dx, dy = GradOperation(get_all=True)(lambda x, y: x * y * y)(*[Tensor([3.0])] * 2)
    assert (dx.asnumpy(), dy.asnumpy()) == (9, 18)


def test_the_gradient_of_a_gradient_by_weights():
    class Cube(nn.Cell):
        def __init__(self):
            super().__init__()
            self.w = Parameter(Tensor([2.0]), name="w")

        def construct(self, x):
            return self.w * self.w * self.w * x

    net = Cube()
    inner = GradOperation(get_by_list=True)(net, ParameterTuple([net.w]))
    outer = GradOperation(get_by_list=True)(lambda x: inner(x)[0], ParameterTuple([net.w]))
    assert outer(Tensor([5.0]))[0].asnumpy() == 6 * 2 * 5


def test_stop_gradient():
    assert GradOperation()(lambda x: x * core.stop_gradient(x))(Tensor([3.0])).asnumpy() == 3
    assert GradOperation()(lambda x: core.stop_gradient(x))(Tensor([3.0])).asnumpy() == 0


def test_what_no_result_depends_on_has_gradient_zero():
    dx, dy = GradOperation(get_all=True)(lambda x, y: x * 2.0)(Tensor([1.0, 1.0]), Tensor([[1.0]]))
    assert dx.asnumpy().tolist() == [2, 2] and dy.asnumpy().tolist() == [[0]]


@pytest.mark.parametrize("mode", [1, 0], ids=["eager", "graph"])
def test_integers_have_integer_gradients(mode):
    class Net(nn.Cell):
        def construct(self, x, y):
            return 2 * x * y + y

    ms.set_context(mode=mode)
    x, y = Tensor(3, ms.int32), Tensor(4, ms.int32)
    dx, dy = GradOperation(get_all=True)(Net())(x, y)
    assert (dx, dy) == (8, 7) and dx.dtype is ms.int32
    rows = Tensor(np.ones((3, 2), np.float32))
    assert GradOperation()(lambda i: core.gather(rows, i))(Tensor([1])).asnumpy().tolist() == [0]


def test_python_control_flow_and_changing_numbers():
    def steps(x, n):
        for _ in range(n):
            x = x * 2.0 if float(x) < 10 else x + 1.0
        return x

    derivative = GradOperation()(steps)
    assert [float(derivative(Tensor(1.0), n)) for n in (1, 3, 4, 6)] == [2, 8, 16, 16]


def test_a_second_step_compiles_nothing():
    net = Net()
    step = GradOperation(get_by_list=True)(net, ParameterTuple(net.trainable_params()))
    step(Tensor(X), Tensor(Y))
    before = set(tape._compiled)
    step(Tensor(f32(4, 3, seed=7)), Tensor(Y))
    assert set(tape._compiled) == before


def test_a_bprop_that_gives_no_gradient():
    class Opaque(nn.Cell):
        def construct(self, x):
            return x * x

        def bprop(self, x, out, dout):
            return (None,)

    assert GradOperation()(lambda x: Opaque()(x * 2.0))(Tensor([3.0])).asnumpy() == 0


def test_what_was_compiled_is_bounded(monkeypatch):
    monkeypatch.setattr(kept, "MOST_BYTES", 100)
    for size in range(1, 6):
        GradOperation()(lambda x: x * x)(Tensor(np.ones(size, np.float32)))
    assert len(tape._compiled) == 1 and kept.memory() > 100


def test_nothing_is_kept_of_a_step():
    import gc
    import weakref

    class Held(np.ndarray):
        pass

    array = np.ones(4, np.float32).view(Held)
    held = weakref.ref(array)
    x = Tensor.from_numpy(array)
    del array
    result = GradOperation()(lambda x: core.exp(x) * x)(x)
    del x
    gc.collect()
    assert held() is None and result.shape == (4,)


def test_a_parameter_that_is_assigned_after_it_was_read():
    class Running(nn.Cell):
        def __init__(self):
            super().__init__()
            self.mean = Parameter(Tensor([2.0]), name="mean")

        def construct(self, x):
            y = x * self.mean
            core.assign(self.mean, x)
            return y + self.mean * 0.0

    net = Running()
    assert GradOperation()(net)(Tensor([5.0])).asnumpy() == 2
    assert net.mean.asnumpy() == 5


class Tenfold(nn.Cell):
    """x * x, with ten times its gradient."""

    def construct(self, x):
        return x * x

    def bprop(self, x, out, dout):
        assert out.asnumpy() == x.asnumpy() ** 2
        return (dout * x * 20.0,)


def test_bprop_of_a_cell():
    x = Tensor([3.0])
    assert GradOperation()(Tenfold())(x).asnumpy() == 60
    assert GradOperation()(lambda x: Tenfold()(x * 2.0) + x)(x).asnumpy() == 241
    assert GradOperation()(GradOperation()(Tenfold()))(x).asnumpy() == 20
    chain = nn.SequentialCell(Tenfold(), Tenfold())
    assert GradOperation()(chain)(x).asnumpy() == 20 * 9 * 20 * 3


def test_bprop_with_a_wrong_number_of_values():
    class Wrong(nn.Cell):
        def construct(self, x, y):
            return x * y

        def bprop(self, x, y, out, dout):
            return (dout,)

    with pytest.raises(TypeError, match="bprop"):
        GradOperation(get_all=True)(Wrong())(Tensor([1.0]), Tensor([1.0]))


def test_gradients_of_another_shape_and_of_nothing(monkeypatch):
    monkeypatch.setattr("mindspore.context.get_context", lambda name: name == "check_bprop")
    for error in (TypeError, ValueError):  # graphs raise the one, eager calls the other
        with pytest.raises(error, match="same shape"):
            grad_base.checked("Mine", (Tensor([1.0, 2.0]),), (Tensor(1.0),))
    assert GradOperation()(lambda: Tensor(1.0))() == ()


def test_bprop_of_two_inputs_and_results():
    class Two(nn.Cell):
        def construct(self, x, y):
            return x + y, x * y

        def bprop(self, x, y, out, dout):
            return dout[0] * 2.0 + dout[1] * y, dout[1] * x * 3.0

    dx, dy = GradOperation(get_all=True)(Two())(Tensor([5.0]), Tensor([7.0]))
    assert (dx.asnumpy(), dy.asnumpy()) == (9, 15)


def test_backward_hooks_see_and_change_gradients():
    seen = []

    def look(cell, grad_input, grad_output):
        seen.append((grad_input[0].asnumpy().copy(), grad_output[0].asnumpy().copy()))
        return (grad_output[0] * 10.0,)

    class Square(nn.Cell):
        def construct(self, x):
            return x * x

    square = Square()
    handle = square.register_backward_hook(look)
    net = nn.SequentialCell(square, Square())
    assert GradOperation()(net)(Tensor([2.0])).asnumpy() == 10 * 4 * 8
    assert [each.tolist() for each in seen[0]] == [[8], [32]]
    handle.remove()
    assert GradOperation()(net)(Tensor([2.0])).asnumpy() == 32
    with pytest.raises(TypeError):
        square.register_backward_hook("hook")


def test_forward_hooks_see_and_change_what_passes():
    class Double(nn.Cell):
        def construct(self, x):
            return x * 2.0

    net, seen = Double(), []
    net.register_forward_pre_hook(lambda cell, inputs: (inputs[0] + 1.0,))
    handle = net.register_forward_hook(lambda cell, inputs, output: seen.append(float(output)) or output + 100.0)
    assert net(Tensor(3.0)).asnumpy() == 108 and seen == [8]
    assert GradOperation()(net)(Tensor(3.0)).asnumpy() == 2
    handle.remove()
    assert net(Tensor(3.0)).asnumpy() == 8


def test_grad_and_value_and_grad():
    net, wanted = Net(), expected()
    inputs = Tensor(X), Tensor(Y)
    close(ops.grad(net)(*inputs), wanted["x"])
    close(ops.grad(net, 1)(*inputs), wanted["y"])
    dx, dy = ops.grad(net, (0, 1))(*inputs)
    close(dx, wanted["x"]), close(dy, wanted["y"])
    (dx,), (dw, db) = ops.grad(net, (0,), net.trainable_params())(*inputs)
    close(dx, wanted["x"]), close(dw, wanted["w"]), close(db, wanted["b"])
    value, (dw, _) = ms.value_and_grad(net, None, net.trainable_params())(*inputs)
    close(dw, wanted["w"]), close(value, net(*inputs).asnumpy())
    gradient, (aux,) = ops.grad(lambda x: (x * x, x + 1.0), has_aux=True)(Tensor([3.0]))
    assert gradient.asnumpy() == 6 and aux.asnumpy() == 4


@pytest.mark.parametrize("keywords, error", [
    ({"grad_position": None}, ValueError), ({"grad_position": -1}, ValueError), ({"grad_position": 1.0}, TypeError),
    ({"grad_position": (0, 0)}, ValueError), ({"weights": 3}, TypeError),
])  # fmt: skip
def test_bad_arguments_of_grad(keywords, error):
    with pytest.raises(error):
        ops.grad(Net(), **keywords)


def test_vjp_and_jvp():
    x, v = Tensor([1.0, 2.0]), Tensor([0.5, -1.0])
    value, back = ops.vjp(lambda x: x * x, x, v)
    assert value.asnumpy().tolist() == [1, 4] and back.asnumpy().tolist() == [1, -4]
    value, function = ops.vjp(lambda x: x * x, x)
    assert function(v).asnumpy().tolist() == [1, -4]
    value, change = ops.jvp(lambda x, y: x * y, (x, x), (v, Tensor([0.0, 0.0])))
    assert value.asnumpy().tolist() == [1, 4] and change.asnumpy().tolist() == [0.5, -2]
    value, change = nn.Jvp(lambda x: x * x)(x, v)
    assert change.asnumpy().tolist() == [1, -4]
    assert nn.Vjp(lambda x: x * x)(x, v)[1].asnumpy().tolist() == [1, -4]


def test_vmap_maps_over_an_axis():
    a, b = f32(3, 4, seed=1), f32(4, seed=2)
    dot = ops.vmap(lambda x, y: (x * y).sum(), in_axes=(0, None))
    np.testing.assert_allclose(dot(Tensor(a), Tensor(b)).asnumpy(), a @ b, rtol=1e-5)
    columns = ops.vmap(lambda x: x * 2.0, in_axes=1, out_axes=1)
    np.testing.assert_allclose(columns(Tensor(a)).asnumpy(), a * 2)
    with pytest.raises(RuntimeError):
        ops.vmap(lambda x, y: x, in_axes=(None, None))(Tensor(a), Tensor(b))


def test_another_thread_is_not_recorded():
    x, seen = Tensor(f32(3)), []

    def loss(x):
        def other():
            seen.append((core.here.recorder, x * 2 + 1.5))

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        return (x * x).sum()

    assert np.array_equal(ops.grad(loss)(x).asnumpy(), 2 * x.asnumpy())
    assert seen[0][0] is None and np.array_equal(seen[0][1].asnumpy(), x.asnumpy() * 2 + np.float32(1.5))


def test_operators_with_numbers_too_large_for_the_tensor():
    x = Tensor([1.0, -1.0])
    assert (x * 10**39).asnumpy().tolist() == [np.inf, -np.inf]
    assert (x + 1e300).asnumpy().tolist() == [np.inf, np.inf]
    with pytest.raises(OverflowError):
        x * 10**400


@pytest.mark.parametrize("mode", [context.PYNATIVE_MODE, context.GRAPH_MODE])
def test_gradients_of_gradients_of_functions(mode):
    context.set_context(mode=mode)
    function = lambda x: x**4  # noqa: E731
    for wanted in (32, 48, 48, 24):
        function = ops.grad(function)
        assert np.isclose(function(Tensor(2.0)).asnumpy(), wanted)


def test_the_gradient_of_an_argument_that_the_function_overwrites():
    def overwrites(x):
        x[0] = x[1] * 2
        return x

    given = Tensor(np.array([1.0, 3.0], np.float32))
    assert ops.grad(overwrites)(given).asnumpy().tolist() == [0, 3]


def test_gradients_taken_inside_of_a_bprop_leave_the_outer_ones():
    class Inner(nn.Cell):
        def construct(self, x):
            return x * x

    class Outer(nn.Cell):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def construct(self, x):
            return self.inner(x) + ops.grad(self.inner)(x)

        def bprop(self, x, out, dout):
            return (dout * 7,)

    assert ops.grad(lambda x: x * Outer()(x) + x)(Tensor([2.0])).asnumpy() == 8 + 14 + 1


def test_gradients_by_integers_beside_masks_and_weights():
    x, mask = Tensor([1, 2, 3], ms.int32), Tensor([True, False, True])
    by_x = ms.ops.grad(lambda x, mask: (x * x * mask).sum())(x, mask)
    assert by_x.asnumpy().tolist() == [2, 0, 6]
    weight = ms.Parameter(Tensor([4, 5, 6], ms.int32), name="weight")
    net = nn.Cell()
    net.weight = weight
    net.construct = lambda x: (x * net.weight).sum()
    slopes = ms.ops.GradOperation(get_by_list=True)(net, ms.ParameterTuple([weight]))(x)
    assert slopes[0].asnumpy().tolist() == [1, 2, 3] and weight.asnumpy().tolist() == [4, 5, 6]


def test_gradients_where_no_formula_reaches():
    x = Tensor([[0.0, 0.0], [3.0, 4.0]], ms.float32)
    cdist = ms.ops.operations.math_ops.Cdist(p=2.0)
    slope = ms.ops.grad(lambda x: cdist(x, Tensor([[0.0, 0.0]], ms.float32)).sum())(x)
    assert np.allclose(slope.asnumpy(), [[0, 0], [0.6, 0.8]])
    table = Tensor(np.zeros((3, 2), np.float32))
    added = ms.ops.operations.array_ops.IndexAdd(axis=0)
    index, values = Tensor([0, 2], ms.int32), Tensor(np.ones((2, 2), np.float32))
    held = ms.Parameter(table, name="held")
    by_values = ms.ops.grad(lambda values: (added(held, index, values) * 3).sum())(values)
    assert np.allclose(by_values.asnumpy(), 3)


def test_repeated_gradients_follow_what_changes_between_them():
    """A tape like an earlier one runs its function: everything that may differ without another structure is tried."""
    ms.set_context(mode=ms.PYNATIVE_MODE)
    weight = ms.Parameter(ms.Tensor(np.array([2.0, 3.0], np.float32)), name="weight")

    def function(x, factor, by_power):
        y = x * factor
        y = y**2 if by_power else y + weight
        return y * weight

    x = np.array([1.0, -2.0], np.float32)
    grad = ops.GradOperation(get_all=True, get_by_list=True, sens_param=True)
    for step in range(12):
        factor, by_power = 1.0 + step % 3, step % 4 < 2
        given, seed = x + step, np.full(2, 1.0 + step % 5, np.float32)
        weight.set_data(ms.Tensor(np.array([2.0 + step, 3.0], np.float32)))
        w = weight.asnumpy().copy()
        net = lambda each: function(each, factor, by_power)  # noqa: E731, B023
        (of_x,), (of_weight,) = grad(net, [weight])(ms.Tensor(given), ms.Tensor(seed))
        if by_power:
            np.testing.assert_allclose(of_x.asnumpy(), seed * 2 * given * factor**2 * w, rtol=1e-5)
            np.testing.assert_allclose(of_weight.asnumpy(), seed * (given * factor) ** 2, rtol=1e-5)
        else:
            np.testing.assert_allclose(of_x.asnumpy(), seed * factor * w, rtol=1e-5)
            np.testing.assert_allclose(of_weight.asnumpy(), seed * (given * factor + 2 * w), rtol=1e-5)


def test_repeated_gradients_of_other_shapes_layouts_results_and_inputs():
    ms.set_context(mode=ms.PYNATIVE_MODE)

    def function(x, y):
        return (x * y).sum(), x - y

    rng = np.random.default_rng(0)
    for step in range(3):
        for shape in ((2, 3), (4, 3)):
            x, y = (rng.standard_normal(shape).astype(np.float32) for _ in range(2))
            for layout in (np.ascontiguousarray, np.asfortranarray):
                a, b = ms.Tensor(layout(x)), ms.Tensor(y)
                of_x, of_y = ops.grad(function, grad_position=(0, 1))(a, b)
                np.testing.assert_allclose(of_x.asnumpy(), y + 1, rtol=1e-6)
                np.testing.assert_allclose(of_y.asnumpy(), x - 1, rtol=1e-6)
                np.testing.assert_allclose(ops.grad(function, grad_position=1)(a, b).asnumpy(), x - 1, rtol=1e-6)
                first = ops.grad(lambda a, b: function(a, b)[0])(a, b)
                np.testing.assert_allclose(first.asnumpy(), y, rtol=1e-6)
                unused = ops.grad(lambda a, b: a * 2, grad_position=1)(a, b)
                np.testing.assert_array_equal(unused.asnumpy(), np.zeros(shape))


def test_parts_of_tensors_are_the_same_again():
    ms.set_context(mode=ms.PYNATIVE_MODE)
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    indices = [(slice(None), slice(1, 4)), slice(1, None), (slice(None, None, -1), 2), (1, ...), (None, slice(0, 2)), (-1, -2), (..., slice(None)), slice(3, 1)]
    for _ in range(2):
        for index in indices:
            expected = np.zeros_like(x)
            expected[index] = 3
            made = ops.grad(lambda each: each[index] * 3)(ms.Tensor(x))  # noqa: B023
            np.testing.assert_array_equal(made.asnumpy(), expected)


@pytest.mark.parametrize("mode", [context.GRAPH_MODE, context.PYNATIVE_MODE])
def test_gradients_pass_through_casts_to_integers(mode):
    context.set_context(mode=mode)

    class Rounded(nn.Cell):
        def construct(self, x):
            y = ops.cast(ops.cast(x * 2, ms.int32), ms.float32)
            return y * y

    class Whole(nn.Cell):
        def construct(self, x):
            return x.astype(ms.int32)

    class Compared(nn.Cell):
        def construct(self, x):
            return x * ops.cast(x > 1, ms.float32)

    x = Tensor(np.array([1.3, 2.7], np.float32))
    np.testing.assert_allclose(GradOperation()(Rounded())(x).asnumpy(), [8, 20])  # 2 y times the 2 of x * 2
    np.testing.assert_allclose(GradOperation()(Whole())(x).asnumpy(), [1, 1])
    np.testing.assert_allclose(GradOperation(sens_param=True)(Whole())(x, Tensor([3, 4], ms.int32)).asnumpy(), [3, 4])
    np.testing.assert_allclose(GradOperation()(Compared())(x).asnumpy(), [1, 1])
