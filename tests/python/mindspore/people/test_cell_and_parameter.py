"""Cells, their children, parameters and names."""
from collections import OrderedDict
import copy
import numpy as np
import pytest
import mindspore as ms
import mindspore.nn as nn
from mindspore import Tensor, Parameter, ParameterTuple, context
from mindspore._checkparam import Validator as validator
from mindspore.common import dtype as mstype
from mindspore.common.api import _cell_graph_executor
from mindspore.common.initializer import initializer
from mindspore.nn import TrainOneStepCell, WithLossCell, ParameterUpdate
from mindspore.nn.optim import Momentum
from mindspore.ops import operations as P


class ModA(nn.Cell):
    def __init__(self, tensor):
        super(ModA, self).__init__()
        self.weight = Parameter(tensor, name="weight")

    def construct(self, *inputs):
        pass


class ModC(nn.Cell):
    def __init__(self, ta, tb):
        super(ModC, self).__init__()
        self.mod1 = ModA(ta)
        self.mod2 = ModA(tb)

    def construct(self, *inputs):
        pass


class Net(nn.Cell):
    name_len = 4
    cells_num = 3

    def __init__(self, ta, tb):
        super(Net, self).__init__()
        self.mod1 = ModA(ta)
        self.mod2 = ModA(tb)
        self.mod3 = ModC(ta, tb)

    def construct(self, *inputs):
        pass


class NetNoPrefix(nn.Cell):
    def __init__(self, ta, tb):
        super().__init__(auto_prefix=False)
        self.mod1 = ModA(ta)
        self.mod2 = ModA(tb)
        self.mod3 = ModC(ta, tb)

    def construct(self, *inputs):
        pass


@pytest.fixture(name="net")
def _net():
    return Net(Tensor(np.ones([2, 3])), Tensor(np.ones([1, 4])))


_PATHS = ["mod1.weight", "mod2.weight", "mod3.mod1.weight", "mod3.mod2.weight"]


def test_names_in_parameters_dict(net):
    assert list(net.parameters_dict().keys()) == _PATHS


def test_names_in_parameters_and_names(net):
    assert [m[0] for m in net.parameters_and_names() if m[0]] == _PATHS


def test_cells_and_names(net):
    net.insert_child_to_cell('modNone', None)
    names = [m[0] for m in net.cells_and_names() if m[0]]
    assert names == ["mod1", "mod2", "mod3", "mod3.mod1", "mod3.mod2"]


def test_number_of_cells(net):
    assert len(list(net.cells())) == net.cells_num
    assert list(net.name_cells()) == ["mod1", "mod2", "mod3"]


def test_without_prefix_names_collide():
    n = NetNoPrefix(Tensor(np.ones([2, 3])), Tensor(np.ones([1, 4])))
    assert list(n.parameters_dict()) == ["weight", "mod1.weight", "mod2.weight"]


def test_deleting_children_and_parameters(net):
    del net.mod1
    assert len(net.parameters_dict()) == net.name_len - 1
    with pytest.raises(AttributeError):
        del net.mod1.weight
    del net.mod2.weight
    assert len(net.parameters_dict()) == net.name_len - 2
    with pytest.raises(AttributeError):
        del net.mod


def test_assigning_before_super_init():
    class ModError(nn.Cell):
        def __init__(self, tensor):
            self.weight = Parameter(tensor, name="weight")
            super(ModError, self).__init__()

        def construct(self, *inputs):
            pass

    with pytest.raises(AttributeError):
        ModError(Tensor(np.ones([2, 3])))


def test_a_parameter_does_not_become_a_cell():
    class ModError(nn.Cell):
        def __init__(self, tensor):
            super().__init__()
            self.weight = Parameter(tensor, name="weight")
            self.weight = None
            self.weight = ModA(tensor)

        def construct(self, *inputs):
            pass

    with pytest.raises(TypeError):
        ModError(Tensor(np.ones([2, 3])))


def test_a_cell_does_not_become_a_tensor():
    class ModError(nn.Cell):
        def __init__(self, tensor):
            super().__init__()
            self.mod = ModA(tensor)
            self.mod = None
            self.mod = tensor

        def construct(self, *inputs):
            pass

    with pytest.raises(TypeError):
        ModError(Tensor(np.ones([2, 3])))


def test_a_bare_cell_has_no_construct():
    with pytest.raises((NotImplementedError, AttributeError)):
        nn.Cell().construct()


def test_inserting_into_a_cell():
    ta = Tensor(np.ones([2, 3]))
    p = Parameter(ta, name="weight")
    m = nn.Cell()
    m.insert_param_to_cell('weight', p)
    with pytest.raises(TypeError):
        m.insert_child_to_cell("network", p)
    with pytest.raises(KeyError):
        m.insert_param_to_cell('', p)
    with pytest.raises(KeyError):
        m.insert_param_to_cell('a.b', p)
    m.insert_param_to_cell('weight', p)
    with pytest.raises(KeyError):
        m.insert_child_to_cell('', ModA(ta))
    with pytest.raises(KeyError):
        m.insert_child_to_cell('a.b', ModA(ta))
    with pytest.raises(TypeError):
        m.insert_child_to_cell('buffer', ta)
    with pytest.raises(TypeError):
        m.insert_param_to_cell('w', ta)
    with pytest.raises(TypeError):
        m.insert_child_to_cell('m', p)


def test_train_flag():
    m = nn.Cell()
    assert not m.training
    m.set_train()
    assert m.training
    m.set_train(False)
    assert not m.training


def test_equal_names_do_not_compile():
    class Names(nn.Cell):
        def __init__(self, tensor):
            super().__init__()
            self.w2 = Parameter(tensor, name="weight")
            self.w1 = Parameter(tensor, name="weight")

        def construct(self, *inputs):
            return self.w1

    context.set_context(mode=context.GRAPH_MODE)
    with pytest.raises(ValueError):
        _cell_graph_executor.compile(Names(Tensor(np.ones([2, 3]))))


def test_numpy_into_a_cell_is_refused():
    with pytest.raises(TypeError):
        nn.ReLU()(np.ones((2, 2), np.float32))


def test_unexpected_argument_of_init():
    with pytest.raises(TypeError):
        nn.Dense(3, 4, foo=1)


def test_repr_of_nested_cells():
    text = repr(nn.SequentialCell([nn.Dense(2, 3), nn.ReLU()]))
    assert text.startswith("SequentialCell<") and "(0): Dense<input_channels=2, output_channels=3, has_bias=True>" in text
    assert "(1): ReLU<>" in text


def test_cells_deep_copy():
    net = nn.Dense(2, 3)
    other = copy.deepcopy(net)
    assert other.weight is not net.weight
    np.testing.assert_array_equal(other.weight.asnumpy(), net.weight.asnumpy())


def test_apply_visits_all_cells():
    net = nn.SequentialCell([nn.Dense(2, 3), nn.SequentialCell([nn.ReLU()])])
    seen = []
    net.apply(lambda cell: seen.append(type(cell).__name__))
    assert seen == ["Dense", "ReLU", "SequentialCell", "SequentialCell"]


def test_flags():
    net = nn.Dense(2, 3)
    net.add_flags(has_effect=True)
    assert net.get_flags()["has_effect"] is True
    assert net.has_effect


@pytest.mark.parametrize("bad", ["x", ("2", "1"), "[2,3]", 3, [Parameter(Tensor([1]), name="p"), "str"]])
def test_parameter_tuple_refuses(bad):
    with pytest.raises(TypeError):
        ParameterTuple(bad)


def test_parameter_tuple_of_one_parameter_is_refused():
    with pytest.raises(TypeError):
        ParameterTuple(Parameter(Tensor([1]), name="p"))


def test_parameter_tuple_clone():
    tup = ParameterTuple([Parameter(initializer('ones', [2]), name="a"), Parameter(initializer('zeros', [3]), name="b")])
    made = tup.clone(prefix="moments", init='zeros')
    assert [p.name for p in made] == ["moments.a", "moments.b"]
    assert made[0].asnumpy().tolist() == [0, 0]


_TENSOR = Tensor(np.array([[1, 2, 3], [2, 3, 4]]))


@pytest.mark.parametrize("name", [np.ones(2), _TENSOR, True, 3, [1, "2"], (1, 2)])
def test_parameter_name_must_be_str(name):
    with pytest.raises(ValueError):
        Parameter(_TENSOR, name=name)


@pytest.mark.parametrize("flag", [None, np.ones(2), _TENSOR, "nicai", 3, [1], (1,)])
def test_parameter_requires_grad_must_be_bool(flag):
    with pytest.raises(TypeError):
        Parameter(_TENSOR, name="p", requires_grad=flag)


@pytest.mark.parametrize("flag", [None, np.ones(2), _TENSOR, "nicai", 3, [1], (1,)])
def test_parameter_layerwise_parallel_must_be_bool(flag):
    with pytest.raises(TypeError):
        Parameter(_TENSOR, name="p", layerwise_parallel=flag)


def test_parameter_of_bool_is_refused():
    with pytest.raises((TypeError, ValueError)):
        Parameter(True, name="p")


@pytest.mark.parametrize("value,dtype", [(3, mstype.int32), (0.5, mstype.float32), (np.ones(2, np.int64), mstype.int64)])
def test_parameter_dtype(value, dtype):
    assert Parameter(value, name="p").dtype == dtype


def test_parameter_arithmetic():
    a = Parameter(initializer('ones', [1, 2, 3], mstype.int32), 'test1')
    b = Parameter(initializer('ones', [1, 2, 3], mstype.int32), 'test2')
    assert np.array_equal((a + b).asnumpy(), np.full((1, 2, 3), 2))
    assert np.array_equal((a * b).asnumpy(), np.ones((1, 2, 3)))
    assert np.array_equal((a + Tensor(np.ones((1, 2, 3)))).asnumpy(), np.full((1, 2, 3), 2))
    assert isinstance(a, Tensor)


def test_set_data_rules():
    p = Parameter(Tensor(0.5, mstype.float32), 'p')
    p.set_data(Tensor(2, mstype.int32))
    assert p.asnumpy() == 2.0 and p.dtype == mstype.float32
    p16 = Parameter(Tensor(0.5, mstype.float16), 'p16')
    with pytest.raises(TypeError):
        p16.set_data(Tensor(1.5, mstype.float32))
    with pytest.raises(ValueError):
        Parameter(Tensor(np.ones((2, 2), np.float32)), 'q').set_data(Tensor(np.ones(3, np.float32)))
    with pytest.raises(TypeError):
        p.set_data("x")


def test_set_data_slice_shape():
    p = Parameter(Tensor(np.ones((1, 2, 3), np.float32)), 'p')
    p.set_data(Tensor(np.zeros((1, 2)).astype(np.float32)), slice_shape=True)
    assert p.shape == (1, 2)


def test_parameter_text():
    p = Parameter(Tensor(np.ones((2, 2), np.float32)), name="weight")
    assert str(p) == "Parameter (name=weight, shape=(2, 2), dtype=Float32, requires_grad=True)"


def test_parameter_clone_and_init():
    p = Parameter(Tensor(np.ones((2, 2), np.float32)), name="weight")
    q = p.clone(init='same')
    assert q.name == "weight" and np.array_equal(q.asnumpy(), p.asnumpy())
    z = p.clone(init=0)
    assert np.all(z.asnumpy() == 0)


def test_layout_of_initializer():
    t = initializer('ones', [1, 2, 3], mstype.float32)
    assert t.shape == (1, 2, 3)
    assert np.all(t.init_data().asnumpy() == 1)


conv2 = nn.Conv2d(3, 64, (3, 3), stride=2, padding=0)
avg_pool = nn.AvgPool2d(3, 2)


class TestSequentialCell:
    def make(self):
        return nn.SequentialCell(OrderedDict([('cov2d', conv2), ('avg_pool', avg_pool)]))

    def test_empty(self):
        assert type(nn.SequentialCell()).__name__ == 'SequentialCell'

    def test_of_list(self):
        assert len(nn.SequentialCell([conv2, avg_pool])) == 2

    def test_of_arguments(self):
        assert len(nn.SequentialCell(conv2, avg_pool)) == 2

    def test_getitem(self):
        m = self.make()
        assert m[0] == conv2
        assert m[-1] == avg_pool

    def test_slices(self):
        m = self.make()
        assert len(m[0:2]) == 2
        assert m[:2][1] == avg_pool

    def test_setitem(self):
        m = self.make()
        m[1] = conv2
        assert m[1] == m[0]

    def test_setitem_float(self):
        with pytest.raises(TypeError):
            self.make()[1.0] = conv2

    def test_index_out_of_range(self):
        with pytest.raises(IndexError):
            self.make()[5]

    def test_delitem(self):
        m = self.make()
        del m[0]
        assert len(m) == 1
        del m[:]
        assert len(m) == 0

    def test_append(self):
        x = Tensor(np.ones((1, 3)).astype(np.float32))
        seq = nn.SequentialCell([nn.ReLU()])
        seq.append(nn.Tanh())
        assert seq(x)[0][0] == nn.SequentialCell([nn.ReLU(), nn.Tanh()])(x)[0][0]

    def test_append_refuses(self):
        with pytest.raises(TypeError):
            self.make().append("relu")


class TestCellList:
    def test_of_strings(self):
        with pytest.raises(TypeError):
            nn.CellList(["test"])

    def test_getitem(self):
        cells = nn.CellList([conv2, avg_pool])
        assert cells[0] == conv2
        assert cells[:][1] == avg_pool

    def test_setitem(self):
        cells = nn.CellList([conv2, avg_pool])
        cells[0] = avg_pool
        assert cells[0] == cells[1]

    def test_delitem(self):
        cells = nn.CellList([conv2, avg_pool])
        del cells[0]
        assert len(cells) == 1

    def test_iter(self):
        assert [type(c).__name__ for c in nn.CellList([conv2, avg_pool])] == ["Conv2d", "AvgPool2d"]

    def test_iadd(self):
        cells = nn.CellList([conv2, avg_pool])
        cells += [conv2]
        assert len(cells) == 3 and cells[0] == cells[2]

    def test_insert(self):
        cells = nn.CellList([conv2, avg_pool])
        cells.insert(0, avg_pool)
        assert len(cells) == 3 and cells[0] == cells[2]

    def test_extend_and_append(self):
        cells = nn.CellList()
        cells.extend([conv2, avg_pool])
        cells.append(nn.ReLU())
        assert len(cells) == 3

    def test_is_not_callable(self):
        with pytest.raises((NotImplementedError, TypeError, AttributeError)):
            nn.CellList([nn.ReLU()])(Tensor([1.]))


class Linear(nn.Cell):
    def __init__(self):
        super().__init__()
        self.weight = Parameter(Tensor(np.ones([64, 10]).astype(np.float32)), name="weight")
        self.bias = Parameter(Tensor(np.ones([10]).astype((np.float32))), name="bias")
        self.matmul = P.MatMul()
        self.bias_add = P.BiasAdd()

    def construct(self, x):
        return self.bias_add(self.matmul(x, self.weight), self.bias)


def test_parameter_update():
    context.set_context(mode=context.GRAPH_MODE)
    net = Linear()
    optimizer = Momentum(net.get_parameters(), Tensor(np.array([0.1, 0.01, 0.001]), mstype.float32), 0.001)
    train = TrainOneStepCell(WithLossCell(net, nn.SoftmaxCrossEntropyWithLogits()), optimizer)
    train.set_train()
    inputs = Tensor(np.ones([1, 64]).astype(np.float32))
    label = Tensor(np.zeros([1, 10]).astype(np.float32))
    _cell_graph_executor.compile(train, inputs, label)
    rates = train.parameters_dict()['learning_rate']
    update = ParameterUpdate(rates)
    update.phase = 'update_param'
    update(Tensor(np.array([0.2, 0.02, 0.002]), mstype.float32))
    np.testing.assert_allclose(rates.asnumpy(), [0.2, 0.02, 0.002])


def test_parameter_update_refuses():
    with pytest.raises(TypeError):
        ParameterUpdate(np.array([1]))


def test_train_one_step_keeps_names():
    net = Linear()
    train = TrainOneStepCell(WithLossCell(net, nn.MSELoss()), nn.Momentum(net.trainable_params(), 0.1, 0.9))
    assert {"weight", "bias", "learning_rate", "momentum", "moments.weight", "moments.bias"} <= set(train.parameters_dict())


def test_validator():
    assert validator.check_positive_int(3, "x") == 3
    with pytest.raises(ValueError):
        validator.check_positive_int(-1, "x")
    with pytest.raises(TypeError):
        validator.check_positive_int(1.5, "x")
    with pytest.raises(TypeError):
        validator.check_bool(1, "x")
    with pytest.raises(TypeError):
        validator.check_value_type("x", 1, [str], "Net")
    with pytest.raises(ValueError):
        validator.check_string("c", ["a", "b"], "mode")
