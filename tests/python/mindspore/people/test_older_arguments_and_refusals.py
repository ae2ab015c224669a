"""Arguments of releases before 1.9, primitives by their names, gradients by whole numbers, and what graphs refuse in which words."""
import numpy as np
import pytest
import mindspore as ms
import mindspore.nn as nn
from mindspore import Parameter, Tensor, context, ms_function
from mindspore._c_expression import MetaTensor, typing
from mindspore.ops import Primitive
from mindspore.ops import composite as C
from mindspore.ops import functional as F
from mindspore.ops import operations as P

context.set_context(mode=context.GRAPH_MODE, device_target='CPU')
MODES = [context.GRAPH_MODE, context.PYNATIVE_MODE]


@pytest.mark.parametrize("mode", MODES)
def test_grad_takes_the_gradient_of_the_results(mode):
    context.set_context(mode=mode)

    def f(x, y):
        return x * y, x + y

    x, y, v = (Tensor(np.array(each, np.float32)) for each in ([1, 2], [3, 4], [1, 10]))
    by_x, by_y = F.grad(f, grad_position=(0, 1), sens_param=True)(x, y, (v, v))
    assert by_x.asnumpy().tolist() == [4, 50] and by_y.asnumpy().tolist() == [2, 30]
    with pytest.raises(TypeError):
        F.grad(f, sens_param=1)


scalar_add, partial = Primitive('scalar_add'), Primitive('partial')
add = C.MultitypeFuncGraph('add')


@add.register("Number", "Number")
def _add_numbers(x, y):
    return scalar_add(x, y)


@add.register("Tensor", "Tensor")
def _add_tensors(x, y):
    return P.Add()(x, y)


def test_primitives_by_name():
    each = C.HyperMap(add)

    @ms_function
    def f(x, y):
        return each(x, y)

    made = f((1, Tensor(2.0)), (3, Tensor(4.0)))
    assert made[0] == 4 and made[1].asnumpy() == 6
    assert partial(lambda x, y: x - y, 5)(3) == 2
    assert Primitive('ReLU')(Tensor(np.array([-1, 2], np.float32))).asnumpy().tolist() == [0, 2]
    with pytest.raises(TypeError):
        scalar_add("a", 1)


def test_signatures_of_inputs():
    @ms_function(input_signature=(MetaTensor(ms.float32, (2, 3)), MetaTensor(ms.float32, (2, 3))))
    def f(x, y):
        return x + y

    assert f(Tensor(np.ones((2, 3), np.float32)), Tensor(np.ones((2, 3), np.float32))).asnumpy().sum() == 12
    for other in (np.ones((2, 3), np.float64), np.ones((3, 3), np.float32)):
        with pytest.raises(ValueError):
            f(Tensor(other), Tensor(other))


def test_types_by_width():
    assert typing.Int(64) == ms.int64 and typing.Float(16) == ms.float16 and str(typing.Number()) == "Number"


def test_pools_keep_what_they_were_given():
    pool = nn.MaxPool2d(3, stride=2)
    assert pool.kernel_size == 3 and pool.stride == 2
    assert pool(Tensor(np.ones((1, 1, 5, 5), np.float32))).shape == (1, 1, 2, 2)


class Decay(nn.Cell):
    def construct(self, step):
        return 0.1


def test_sgd_takes_no_decay_that_changes():
    params = nn.Dense(2, 3).trainable_params()
    with pytest.raises(TypeError, match="dynamic weight decay is currently not supported"):
        nn.SGD(params, learning_rate=0.1, weight_decay=Decay())
    with pytest.raises(TypeError, match="dynamic weight decay is currently not supported"):
        nn.SGD([{'params': [params[0]], 'weight_decay': Decay()}, {'params': [params[1]]}])


def test_lists_that_graphs_make_are_tuples():
    @ms_function
    def squares():
        return [x * x for x in range(4)]

    @ms_function
    def same(x):
        return x

    assert squares() == (0, 1, 4, 9)
    assert same([1, 2]) == [1, 2]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype,seen", [(np.int32, [-1, -2, 0]), (np.int8, [-1, -2, 0]), (np.bool_, [True, True, False])])
def test_gradients_by_what_is_converted(mode, dtype, seen):
    context.set_context(mode=mode)

    class Net(nn.Cell):
        def construct(self, x, y):
            return x - y

    class Grad(nn.Cell):
        def __init__(self, net):
            super().__init__()
            self.net, self.grad = net, C.GradOperation(get_all=True, sens_param=True)

        def construct(self, x, y, sens):
            return self.grad(self.net)(x, y, sens)

    x, sens = Tensor(np.array([0.5, 1.5, 2.5], np.float32)), Tensor(np.array([1, 2, 0], np.float32))
    by_x, by_y = Grad(Net())(x, Tensor(np.array([1, 0, 1]).astype(dtype)), sens)
    assert by_x.asnumpy().tolist() == [1, 2, 0]
    assert by_y.asnumpy().dtype == dtype and by_y.asnumpy().tolist() == seen


def test_a_path_without_return():
    context.set_context(mode=context.GRAPH_MODE)

    class Net(nn.Cell):
        def construct(self, x):
            if x > 0:
                return 6

    with pytest.raises(TypeError) as info:
        Net()(Tensor(1))
    assert "Function must has 'return' statement, but missing in bound method 'construct'" in str(info.value)


def test_raise_where_a_tensor_decides():
    context.set_context(mode=context.GRAPH_MODE)

    class Net(nn.Cell):
        def construct(self, x):
            if x == 1:
                raise ValueError("one")
            return x

    with pytest.raises(RuntimeError, match="Currently only supports raise in constant scenarios."):
        Net()(Tensor(9, ms.int32))
    with pytest.raises(ValueError, match="one"):
        Net()(1)


def test_isinstance_of_what_is_no_type():
    @ms_function
    def of_none():
        return isinstance(1, None)

    @ms_function
    def of_list():
        return isinstance(1, [int, float])

    with pytest.raises(TypeError, match="The type 'None' is not supported for 'isinstance'"):
        of_none()
    with pytest.raises(TypeError, match="must be a type or a tuple of types, but got a list"):
        of_list()


def test_divmod_of_tensors():
    @ms_function
    def f(x, y):
        return divmod(x, y)

    with pytest.raises(NameError, match="The builtin function 'divmod' of python is not supported in graph mode"):
        f(Tensor([1, 2]), Tensor([3, 4]))


def test_text_is_not_converted():
    with pytest.raises(TypeError, match="For 'Add', the 1th input is a not support implicit conversion type: str"):
        Tensor(np.ones(2, np.float32)) + "text"


def test_indices_that_do_not_broadcast():
    x = Tensor(np.zeros((4, 5, 6), np.float32))
    with pytest.raises(IndexError):
        x[Tensor(np.zeros((2, 3), np.int32)), Tensor(np.zeros((4,), np.int32))]


def test_a_parameter_beside_a_bprop():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.w = Parameter(Tensor(np.ones(2, np.float32)), name="w")

        def construct(self, x):
            return x * self.w

        def bprop(self, x, out, dout):
            return (dout,)

    context.set_context(mode=context.PYNATIVE_MODE, check_bprop=True)
    with pytest.raises(RuntimeError, match="there are 1 parameters that is not supported in the net"):
        C.GradOperation(get_all=True)(Net())(Tensor(np.ones(2, np.float32)))
    context.set_context(mode=context.GRAPH_MODE, check_bprop=False)
