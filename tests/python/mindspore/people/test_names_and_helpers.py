"""Names that tests of 1.10 take from private modules, and helpers beside layers and primitives."""
from unittest import mock
import numpy as np
import pytest
import mindspore as ms
import mindspore.nn as nn
import mindspore.ops as ops
from mindspore import Parameter, ParameterTuple, Tensor, context, ms_function
from mindspore import dtype as mstype
from mindspore.ops import composite as C
from mindspore.ops import functional as F
from mindspore.ops import operations as P
from mindspore.train.callback import Callback, _CallbackManager

context.set_context(mode=context.GRAPH_MODE)


class Net(nn.Cell):
    def __init__(self, op, *constants):
        super().__init__()
        self.op, self.constants = op, constants

    def construct(self, *inputs):
        return self.op(*inputs, *self.constants)


def test_numpy_names_of_that_time():
    x = Tensor(np.array([1, 0]).astype(np.bool))
    assert x.dtype == mstype.bool_ and np.float is float and np.int is int
    assert np.product([2, 3]) == 6


def test_private_modules():
    from mindspore._c_expression import signature_dtype, signature_kind, signature_rw, security
    from mindspore._extends import cell_attr_register
    from mindspore.common._register_for_tensor import tensor_operator_registry
    from mindspore.common._utils import is_shape_unknown
    from mindspore.ops._utils.utils import get_broadcast_shape, get_concat_offset
    from mindspore.version import __version__

    assert security.enable_security() is False and signature_rw.RW_READ != signature_rw.RW_WRITE
    assert hasattr(signature_kind, "KIND_POSITIONAL_KEYWORD") and hasattr(signature_dtype, "T1")
    assert __version__ == ms.__version__ and is_shape_unknown((2, -1)) and not is_shape_unknown((2,))
    assert list(get_broadcast_shape([2, 1, 3], [4, 1], "Add")) == [2, 4, 3]
    with pytest.raises(ValueError):
        get_broadcast_shape([2], [3], "Add")
    assert get_concat_offset([[2, 3], [4, 3]], [mstype.tensor_type(mstype.float32)] * 2, 0, "Concat") == ([0, 2], 6, 0)
    assert callable(tensor_operator_registry.get("sqrt"))

    class Layer(nn.Cell):
        @cell_attr_register
        def __init__(self, size, scale=2.0):
            super().__init__()
            self.scale = scale

        def construct(self, x):
            return x * self.scale

    assert Layer(3)(Tensor([1.0])).asnumpy() == 2 and "size" in Layer(3).cell_init_args


@pytest.mark.parametrize("dynamic", [True, False])
def test_inner_primitives_of_shapes(dynamic):
    from mindspore.ops.operations import _inner_ops as inner

    class Neg(nn.Cell):
        def __init__(self):
            super().__init__()
            self.to, self.neg = inner.ConvertToDynamic(is_dynamic_rank=dynamic), P.Neg()

        def construct(self, x):
            return self.neg(self.to(x))

    net = Neg()
    net.set_inputs(Tensor(shape=[None, 2], dtype=mstype.float32))
    for rows in (1, 3):
        assert (net(Tensor(np.ones((rows, 2), np.float32))).asnumpy() == -1).all()
    with pytest.raises(TypeError):
        inner.ConvertToDynamic(is_dynamic_rank=1)


def test_inner_primitives_of_values():
    from mindspore.ops.operations import _inner_ops as inner

    made = inner.DynamicStitch()([Tensor([2, 0], mstype.int32), Tensor([1], mstype.int32)], [Tensor([[5], [1]], mstype.int32), Tensor([[3]], mstype.int32)])
    assert made.asnumpy().ravel().tolist() == [1, 3, 5]
    x = Tensor(np.array([[3.0, 4.0], [0.3, 0.4]], np.float32))
    np.testing.assert_allclose(inner.ClipByNorm()(x, Tensor([1.0])).asnumpy(), x.asnumpy() / np.sqrt(25.25), 1e-5)
    first, second = inner.FlattenConcat()([x, Tensor([1, 2]), Tensor([[9.0]])])
    assert first.shape == (5,) and second.asnumpy().tolist() == [1, 2]
    assert inner.MixedPrecisionCast()(mstype.float16, (x, Tensor([1])))[0].dtype == mstype.float16
    made = inner.TensorCopySlices()(Tensor(np.zeros((3, 2), np.float32)), Tensor(np.ones((1, 2), np.float32)), (1, 0), (2, 2), (1, 1))
    assert made.asnumpy().tolist() == [[0, 0], [1, 1], [0, 0]]
    assert ops.sequence_mask(Tensor([1, 3]), 3).asnumpy().tolist() == [[True, False, False], [True] * 3]


@pytest.mark.parametrize("name,expect", [("Sum", [[3, 5], [1, 2]]), ("Mean", [[1.5, 2.5], [1, 2]]), ("SqrtN", [[3 / 2**0.5, 5 / 2**0.5], [1, 2]])])
def test_segments_of_picked_rows(name, expect):
    from mindspore.ops.operations import sparse_ops

    op = getattr(P, f"SparseSegment{name}") if hasattr(P, f"SparseSegment{name}") else getattr(sparse_ops, f"SparseSegment{name}")
    x = Tensor(np.array([[1, 2], [2, 3]], np.float32))
    made = Net(op())(x, Tensor([0, 1, 0], mstype.int32), Tensor([0, 0, 1], mstype.int32))
    np.testing.assert_allclose(made.asnumpy(), expect, 1e-6)


def test_sparse_matrices_by_indices():
    indices, values = Tensor([[0, 1], [1, 2]], mstype.int32), Tensor([1, 2], mstype.float32)
    dense = np.array([[0, 1, 0], [0, 0, 2]], np.float32)
    assert (P.SparseToDense()(indices, values, (2, 3)).asnumpy() == dense).all()
    x = np.arange(6).reshape(3, 2).astype(np.float32)
    np.testing.assert_allclose(P.SparseTensorDenseMatmul()(indices, values, (2, 3), Tensor(x)).asnumpy(), dense @ x)


def test_layers_by_a_tensor():
    class Layers(nn.Cell):
        def __init__(self):
            super().__init__()
            self.layers, self.listed = (nn.ReLU(), nn.Sigmoid()), nn.CellList([nn.ReLU(), nn.Tanh()])

        def construct(self, index, x):
            return F.switch_layer(index, self.layers)(x) + self.listed[index](x)

    net, x = Layers(), Tensor([0.5])
    np.testing.assert_allclose(net(Tensor(0, mstype.int32), x).asnumpy(), [1.0])
    np.testing.assert_allclose(net(Tensor(1, mstype.int32), x).asnumpy(), 1 / (1 + np.exp(-0.5)) + np.tanh(0.5), 1e-6)
    grads = C.GradOperation(get_all=True)(net)(Tensor(0, mstype.int32), x)
    assert grads[-1].asnumpy() == 2


@ms_function
def down(x):
    if x > 0:
        return down(x - 1)
    return x


def test_recursion_of_a_function_of_the_module():
    assert down(10) == 0 and down(Tensor(3, mstype.int32)).asnumpy() == 0


def larger(a, b):
    if a > b:
        return 3 * a
    return 2 * b


def test_gradients_by_numbers():
    context.set_context(mode=context.PYNATIVE_MODE)
    assert C.GradOperation(get_all=True)(larger)(5, 4) == (3, 0)
    assert C.GradOperation()(lambda x: x * x * 6)(5) == 60
    context.set_context(mode=context.GRAPH_MODE)


def test_derivatives_along_a_path():
    from mindspore.ops.functional import jet

    net = Net(ops.Sin())
    x = np.array([0.3, 1.0], np.float32)
    value, made = jet(net, Tensor(x), Tensor(np.array([[1, 1], [0, 0], [0, 0]], np.float32)))
    np.testing.assert_allclose(value.asnumpy(), np.sin(x), 1e-6)
    np.testing.assert_allclose(made.asnumpy(), [np.cos(x), -np.sin(x), -np.cos(x)], 1e-5)


def test_arrays_and_tensors():
    apart = np.ones(2) - Tensor(np.array([1, 3], np.float32))
    assert np.all(apart < np.array([1e-6] * 2)) and np.abs(Tensor([-1.0]))[0] == 1


def test_callbacks_are_left_with_the_error():
    with mock.patch.object(Callback, "__exit__", return_value=None) as left:
        with pytest.raises(ValueError):
            with _CallbackManager([Callback(), Callback()]):
                raise ValueError()
    assert left.call_args_list == [mock.call(*[mock.ANY] * 4)] * 2


def test_seeds_of_primitives():
    for make, inputs in (
        (P.StandardNormal, ((3, 4),)), (P.UniformReal, ((3, 4),)), (P.RandomShuffle, (Tensor(np.arange(50)),)),
        (P.Multinomial, (Tensor([0.1, 0.2, 0.7]), 30)),
    ):
        one, same, other = (Net(make(*seeds)) for seeds in ((3, 4), (3, 4), (5, 4)))
        first = one(*inputs).asnumpy()
        assert (first == same(*inputs).asnumpy()).all() and not (first == other(*inputs).asnumpy()).all()
        assert not (first == one(*inputs).asnumpy()).all()


@pytest.mark.parametrize("mode", [context.GRAPH_MODE, context.PYNATIVE_MODE])
def test_assert_of_many_types(mode):
    context.set_context(mode=mode)
    values = [Tensor(np.array([1, 2]).astype(each)) for each in ("float16", "float64", "int8", "uint64", "bool")]
    Net(P.Assert(10))(True, values)
    with pytest.raises(RuntimeError, match="assert failed"):
        Net(P.Assert(10))(False, values)
    context.set_context(mode=context.GRAPH_MODE)


def test_images_and_boxes():
    assert P.DataFormatDimMap()(Tensor([0, 1, 2, 3, -1], mstype.int32)).asnumpy().tolist() == [0, 3, 1, 2, 2]
    x = Tensor(np.array([[[[1, 2], [3, 4]]]], np.float32))
    made = P.ROIAlign(2, 2, 0.5, 2)(x, Tensor(np.array([[0, 0.2, 0.3, 0.2, 0.3]], np.float32)))
    np.testing.assert_allclose(made.asnumpy().ravel(), [1.775, 2.025, 2.275, 2.525], 1e-5)
    boxes = np.array([[0, 0, 2, 2, 0.3], [5, 5, 7, 7, 0.9], [0, 0, 2, 2.1, 0.5]], np.float32)
    rows, places, kept = P.NMSWithMask(0.5)(Tensor(boxes))
    assert places.asnumpy().tolist() == [0, 1, 2] and kept.asnumpy().tolist() == [True, True, False]
    assert rows.asnumpy()[:, 4].tolist() == boxes[[1, 2, 0], 4].tolist()
    assert nn.CentralCrop(0.5)(Tensor(np.ones((4, 3, 4, 4), np.float32))).shape == (4, 3, 2, 2)


def test_what_an_update_returns_is_a_tensor():
    p = Parameter(Tensor([1.0, 2.0]), name="p")
    made = P.ScatterAdd()(p, Tensor([1], mstype.int32), Tensor([3.0]))
    assert str(made) == "[1. 5.]" and str(p.value()) == "[1. 5.]" and p.asnumpy()[1] == 5


def test_weights_by_name_of_old():
    net = nn.Dense(2, 1, has_bias=False, weight_init="ones")
    weights = ParameterTuple(net.trainable_params())
    grads = C.grad_by_list(net, weights)(Tensor([[1.0, 2.0]]))
    assert grads[0].asnumpy().tolist() == [[1, 2]] and C.tail((1, 2, 3)) == (2, 3)


def test_an_own_initializer():
    import mindspore.common.initializer as init

    class Two(init.Initializer):
        def _initialize(self, arr):
            init._assignment(arr, 2)

    assert (init.initializer(Two(), [2, 2], mstype.int32).init_data().asnumpy() == 2).all()
    assert init._calculate_fan_in_and_fan_out((4, 3, 2, 2)) == (12, 16) and init._calculate_correct_fan((4, 3), "fan_out") == 4
    for kind in (init.XavierUniform(), init.HeUniform()):
        with pytest.raises(ValueError):
            init.initializer(kind, [6], mstype.float32).init_data()


@pytest.mark.parametrize("made,error", [(np.ones((2, 2), np.float32), ValueError), (np.ones((2, 3), np.float16), TypeError)])
def test_check_bprop(made, error):
    class Own(nn.Cell):
        def construct(self, x):
            return x * 2

        def bprop(self, x, out, dout):
            return (Tensor(made),)

    context.set_context(mode=context.PYNATIVE_MODE, check_bprop=True)
    x = Tensor(np.ones((2, 3), np.float32))
    try:
        with pytest.raises(error):
            C.GradOperation(get_all=True, sens_param=True)(Own())(x, x)
    finally:
        context.set_context(mode=context.GRAPH_MODE, check_bprop=False)


def test_candidates_other_than_the_true_ones():
    true = Tensor(np.array([[1], [0]], np.int32))
    for unique in (True, False):
        sampled, of_true, of_sampled = P.UniformCandidateSampler(1, 4, unique, 6, seed=1, remove_accidental_hits=True)(true)
        assert sampled.dtype == mstype.int32 and of_true.shape == (2, 1) and of_sampled.shape == (4,)
        assert not unique or sorted(sampled.asnumpy().tolist()) == [2, 3, 4, 5]


def test_a_text_is_no_input_of_a_layer():
    with pytest.raises(TypeError):
        nn.L1Regularizer(0.5)("weights")


def test_gradients_by_list_of_a_function():
    def square(x):
        return x * x

    inputs, weights = C.GradOperation(get_all=True, get_by_list=True)(square)(Tensor(3.0))
    assert inputs[0].asnumpy() == 6 and len(weights) == 0


def test_arguments_of_wrong_types_are_refused():
    from mindspore._checkparam import args_type_check

    @args_type_check(text=str, count=int)
    def check(text, count=1):
        return text * count

    assert check("ab", 2) == "abab"
    for given in ((1, 2), ("a", "b")):
        with pytest.raises(TypeError):
            check(*given)


def test_arrays_of_texts_are_tensors():
    texts = Tensor(np.array(["a", "bc"]))
    assert texts.dtype == mstype.string and texts.shape == (2,) and (texts.asnumpy() == ["a", "bc"]).all()

    @ms_function
    def upper():
        return Tensor(np.char.upper("graph"))

    assert upper().asnumpy() == "GRAPH"
    with pytest.raises(TypeError):
        Tensor(["a", "bc"])
    with pytest.raises((TypeError, ValueError)):
        texts + 1


def test_helpers_of_distributions():
    from mindspore.nn.probability.distribution._utils.utils import CheckTensor, CheckTuple, cast_to_tensor, check_greater_zero, check_prob, check_sum_equal_one, set_param_type

    half, single, double = (Tensor(0.1, each) for each in (mstype.float16, mstype.float32, mstype.float64))
    for given, expect in (([half, half], "float16"), ([single, 1.0], "float32"), ([double, double], "float32"), ([1.0], "float32"), ([Tensor(1, mstype.int32)], "float32")):
        assert set_param_type(dict(enumerate(given)), mstype.float32) == getattr(mstype, expect)
    with pytest.raises(TypeError):
        set_param_type({"a": single, "b": double}, mstype.float32)
    assert isinstance(cast_to_tensor([1.0, 2.0]), Tensor) and isinstance(cast_to_tensor(Parameter(single, "p")), Parameter)
    for given, error in ((None, ValueError), (True, TypeError), ("a", TypeError)):
        with pytest.raises(error):
            cast_to_tensor(given, mstype.float32)
    for check, wrong in ((lambda x: check_greater_zero(x, "sd"), [1.0, 0.0]), (check_prob, [0.5, 1.5]), (check_sum_equal_one, [0.5, 0.4])):
        with pytest.raises(ValueError):
            check(Tensor(wrong, mstype.float32))
    for mode in (context.PYNATIVE_MODE, context.GRAPH_MODE):
        context.set_context(mode=mode)
        assert CheckTuple()((1, 2), "input") == (1, 2)
        assert CheckTensor()(single, "input").shape == ()
        with pytest.raises(TypeError):
            CheckTuple()("tuple", "input")
    context.set_context(mode=context.PYNATIVE_MODE)
