"""What graph mode prints, ignores and refuses as release 1.10 does."""

import functools

import mindspore.nn as nn
import numpy as np
import pytest
from mindspore import Parameter, Tensor, context, ms_function, ops
from mindspore import dtype as mstype
from mindspore.ops import operations as P
from mindspore.ops._grad.grad_math_ops import binop_grad_common
from mindspore.ops.primitive import PrimitiveWithInfer, prim_attr_register


@pytest.fixture(autouse=True)
def graph_mode():
    context.set_context(mode=context.GRAPH_MODE)
    yield
    context.set_context(mode=context.PYNATIVE_MODE)


def test_prints_are_lines_of_values_each_time(capfd):
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.p = Parameter(Tensor(1, mstype.int32), name="p")
            self.print = P.Print()

        def construct(self, x):
            print("x", x, (1, 2))
            self.print("before", self.p)
            self.p = self.p + 1
            self.print("after", self.p)
            return x

    net = Net()
    for _ in range(2):
        net(Tensor([1, 2], mstype.int32))
    first = ["x", "Tensor(shape=[2], dtype=Int32, value=[1 2])", "(1, 2)"]
    states = [["before", f"Tensor(shape=[], dtype=Int32, value={i})", "after", f"Tensor(shape=[], dtype=Int32, value={i + 1})"] for i in (1, 2)]
    assert capfd.readouterr().out.splitlines() == first + states[0] + first + states[1]


def test_hooks_are_for_eager_calls():
    net = nn.SequentialCell(nn.ReLU())
    net[0].register_forward_hook(lambda cell, inputs, output: output * 10)
    net[0].register_forward_pre_hook(lambda cell, inputs: (inputs[0] * 10,))
    assert net(Tensor([2.0])).asnumpy() == 2
    context.set_context(mode=context.PYNATIVE_MODE)
    assert net(Tensor([2.0])).asnumpy() == 200

    @ms_function
    def hook(cell, inputs, output):
        return output

    with pytest.raises(TypeError, match="ms_function"):
        net[0].register_forward_hook(hook)


def tripled(x):
    return x * 3


@pytest.mark.parametrize(
    "function, error, words",
    [
        (lambda x: tripled, RuntimeError, "Function in output is not supported"),
        (lambda x: (x, x.abs), RuntimeError, "Function in output is not supported"),
        (lambda x: np.array([1, 2]), RuntimeError, "Should not use Python object in runtime"),
        (lambda x: x + 5 / 0, ValueError, "The divisor could not be zero"),
        (lambda x: x + 5 % 0, ValueError, "Cannot perform modulo operation on zero"),
        (lambda x: tuple(zip()), ValueError, "must have at least 1 argument"),
        (lambda x: tuple(map(tripled, 3)), TypeError, "Map can only be applied to list, tuple"),
        (lambda x: tuple(map(tripled, [x], (x,))), TypeError, "must be consistent"),
        (lambda x: tuple(map(tripled, [x], [x, x])), ValueError, "the length of lists must be the same"),
        (lambda x: tuple(enumerate((x, x), 1.5)), TypeError, "For 'enumerate', the 'start'"),
        (lambda x: ops.functional.tuple_div((8, 6), (2,)), ValueError, "size of inputs of 'tuple_div' operator must be the same"),
        (lambda x: ops.functional.tuple_div((8, 6), (2, 0)), ValueError, "The divisor value should not be 0"),
        (lambda x: ops.functional.tuple_div((8, 6), (3, 2)), ValueError, "should be divisible"),
    ],
)
def test_refusals_have_their_words(function, error, words):
    with pytest.raises(error, match=words):
        ms_function(function)(Tensor([1.0]))


def test_an_error_of_the_scripts_own_keeps_its_class():
    def raises(x):
        raise ZeroDivisionError("nothing to share")

    with pytest.raises(ZeroDivisionError, match="nothing to share"):
        ms_function(raises)(Tensor([1.0]))


def test_a_parameter_is_not_narrowed_into():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.p = Parameter(Tensor([1.0], mstype.float32), name="p")

        def construct(self, x):
            self.p = x
            return self.p

    net = Net()
    assert net(Tensor([3], mstype.int32)).dtype == mstype.float32
    with pytest.raises(TypeError, match="Data type conversion of 'Parameter' is not supported"):
        net(Tensor([3.0], mstype.float64))


@ms_function
def halved(x):
    if x > 1:
        return halved(x / 2) + halved(x / 2)
    return x


def test_a_recursion_over_tensors_is_given_up_at_once(capfd):
    assert halved(Tensor([4.0])).asnumpy() == 4
    assert "a recursion has no end that is known when it is compiled" in capfd.readouterr().err


def test_a_list_that_a_loop_fills_runs_eagerly(capfd):
    @ms_function
    def fill(x):
        seen = []
        for _ in range(2):
            while x < 10:
                seen.append(x)
                x = x * 2
        return ops.addn(seen)

    assert fill(Tensor([3.0])).asnumpy() == 9 and "runs eagerly" in capfd.readouterr().err


def test_arguments_given_twice_and_names_that_nobody_defined():
    class Net(nn.Cell):
        def construct(self, x):
            return functools.partial(lambda a, b: a + b, a=x)(x, x)

    with pytest.raises(TypeError, match="Multiply values for specific argument: a"):
        Net()(Tensor([1.0]))

    class Unknown(nn.Cell):
        def construct(self, x):
            return x + nobody  # noqa: F821

    with pytest.raises(NameError, match="The name 'nobody' is not defined"):
        Unknown()(Tensor([1.0]))


def test_cells_are_recomputed_once():
    net = nn.SequentialCell(nn.Dense(2, 2), nn.ReLU())
    net[0].recompute(mp_comm_recompute=False)
    assert net[0].get_scope() == "recompute_" and net[1].get_scope() is None
    with pytest.raises(RuntimeError, match="only once"):
        net.recompute()
    with pytest.raises(ValueError, match="'other' is not recognized"):
        net[1].recompute(other=True)


def test_primitives_without_computation_say_first_what_they_do_not_take():
    class Picky(PrimitiveWithInfer):
        @prim_attr_register
        def __init__(self):
            self.init_prim_io_names(inputs=["x"], outputs=["y"])

        def infer_dtype(self, x):
            if x == mstype.int32:
                raise TypeError("no integers")
            return x

    for mode in (context.GRAPH_MODE, context.PYNATIVE_MODE):
        context.set_context(mode=mode)
        with pytest.raises(TypeError, match="no integers"):
            Picky()(Tensor([1], mstype.int32))
        with pytest.raises(RuntimeError, match="has no computation"):
            Picky()(Tensor([1.0]))


def test_gradients_of_broadcast_operands_come_back_in_their_shapes():
    x, y, d = Tensor(np.ones((2, 3), np.float32)), Tensor(np.ones((3,), np.float32)), Tensor(np.full((2, 3), 2, np.float32))
    dx, dy = binop_grad_common(x, y, d, d)
    assert dx.shape == (2, 3) and dy.asnumpy().tolist() == [4, 4, 4]


def test_flags_of_mixed_precision_cast_inputs_and_weights():
    net = nn.SequentialCell(nn.Dense(2, 2), nn.ReLU())
    net[0].add_flags_recursive(fp16=True)
    assert net(Tensor(np.ones((1, 2), np.float16))).dtype == mstype.float16
    train = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Momentum(net.trainable_params(), 0.1, 0.9)).to_float(mstype.float16)
    train(Tensor(np.ones((1, 2), np.float32)), Tensor(np.zeros((1, 2), np.float32)))
    assert {p.dtype for p in net.trainable_params()} == {mstype.float32}


def test_arrays_that_depend_on_a_tensor_run_eagerly():
    @ms_function
    def count(x):
        a = np.array([1])
        if x > 0:
            a = a + 1
        return Tensor(a) + x

    assert count(Tensor(3)).asnumpy() == [5] and count(Tensor(-3)).asnumpy() == [-2]


class Inferred(PrimitiveWithInfer):
    @prim_attr_register
    def __init__(self, scale=1):
        pass

    def __call__(self, *inputs):
        raise NotImplementedError

    def infer_shape(self, *shapes):
        return shapes[0]

    def infer_dtype(self, *dtypes):
        return dtypes[0]


class InferredLoss(Inferred):
    def get_bprop(self):
        slope = Inferred()
        return lambda x, out, dout: (slope(x, out, dout),)


def test_graphs_of_primitives_that_only_infer_compile_and_refuse_to_run():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.loss = InferredLoss()

        def construct(self, x):
            return self.loss(x * 2)

    class Slopes(nn.Cell):
        def __init__(self):
            super().__init__()
            self.net, self.grad = Net(), ops.GradOperation()

        def construct(self, x):
            return self.grad(self.net)(x)

    for net in (Net(), Slopes()):
        net.compile(Tensor(np.ones((2, 3), np.float32)))
        with pytest.raises(NotImplementedError, match="Primitive Inferred.* has no computation here"):
            net(Tensor(np.ones((2, 3), np.float32)))


def test_a_recursion_ends_at_the_depth_of_the_context():
    class Inner(nn.Cell):
        def construct(self, x):
            return Outer()(x) + 1

    class Outer(nn.Cell):
        def construct(self, x):
            return Inner()(x)

    context.set_context(max_call_depth=40)
    try:
        with pytest.raises(RuntimeError, match="Exceed function call depth limit 40"):
            Outer()(Tensor([1.0]))
    finally:
        context.set_context(max_call_depth=1000)


def test_try_with_finally_is_refused():
    @ms_function
    def f(x):
        try:
            y = x + 1
        finally:
            y = x
        return y

    with pytest.raises(RuntimeError, match="Unsupported statement 'Try'"):
        f(Tensor([1.0]))


@pytest.mark.parametrize("bound", [Tensor([2, 3]), Tensor([2.1])], ids=["two elements", "a float"])
def test_lists_take_no_such_tensors_as_bounds(bound):
    class Net(nn.Cell):
        def construct(self, xs):
            return xs[1:bound]

    with pytest.raises(TypeError):
        Net()([Tensor([1]), Tensor([2]), Tensor([3])])


def test_switches_of_data_flow_can_be_made_and_refuse_to_be_called():
    assert P.GeSwitch().name == "GeSwitch"
    with pytest.raises(NotImplementedError, match="use if, or ops.Select"):
        P.Merge()((Tensor([1.0]),))


def test_errors_say_where_the_network_called_what_raised_them():
    class Inner(nn.Cell):
        def construct(self, x):
            return ops.matmul(x, x)

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def construct(self, x):
            return self.inner(x) + 1

    with pytest.raises(ValueError) as told:
        Net()(Tensor(np.ones((2, 3), np.float32)))
    calls = str(told.value).partition("The function call stack:")[2]
    assert "# 0 In file" in calls and calls.index("self.inner(x) + 1") < calls.index("ops.matmul(x, x)")
    assert f"{__file__}({Inner.construct.__code__.co_firstlineno + 1})" in calls

    class Own(Exception):
        pass

    class Raising(nn.Cell):
        def construct(self, x):
            raise Own("as it is")

    with pytest.raises(Own, match="^as it is$"):
        Raising()(Tensor(1.0))
