"""Cells: names, containers, insertion, flags, hooks, parameters."""

import numpy as np
import pytest
import mindspore as ms
import mindspore.nn as nn
from mindspore import Tensor, Parameter, ParameterTuple, context
from mindspore.common.initializer import initializer, Normal, One
from mindspore.ops import operations as P
from collections import OrderedDict

context.set_context(mode=context.PYNATIVE_MODE)


def t(*shape):
    return Tensor(np.ones(shape, np.float32))


class Sub(nn.Cell):

    def __init__(self, n=2):
        super().__init__()
        self.w = Parameter(t(n), name="w")

    def construct(self, x):
        return x + self.w


def names(net):
    return [p.name for p in net.get_parameters()]


def test_prefixes():

    class Net(nn.Cell):

        def __init__(self):
            super().__init__()
            self.a = Sub()
            self.seq = nn.SequentialCell(Sub(), nn.SequentialCell([Sub()]))
            self.list = nn.CellList([Sub(), Sub()])
            self.p = Parameter(t(1), name="p")

    net = Net()
    assert sorted(names(net)) == sorted(["p", "a.w", "seq.0.w", "seq.1.0.w", "list.0.w", "list.1.w"])
    assert [n for n, _ in net.cells_and_names()][:3] == ["", "a", "seq"]
    net.update_parameters_name("pre.")
    assert all((n.startswith("pre.") for n in names(net)))
    assert list(net.parameters_dict()) == names(net)
    net.update_cell_prefix()
    assert net.a.param_prefix == "a" and net.seq[1][0].param_prefix == "seq.1.0"


def test_sequential_edits():
    seq = nn.SequentialCell(nn.ReLU(), nn.Dense(2, 3))
    seq.append(nn.Tanh())
    assert len(seq) == 3 and isinstance(seq[-1], nn.Tanh)
    seq[0] = nn.Sigmoid()
    assert isinstance(seq[0], nn.Sigmoid)
    del seq[2]
    assert len(seq) == 2
    part = seq[:1]
    assert isinstance(part, nn.SequentialCell) and len(part) == 1
    ordered = nn.SequentialCell(OrderedDict([("first", nn.Dense(2, 2)), ("act", nn.ReLU())]))
    assert names(ordered) == ["first.weight", "first.bias"]
    with pytest.raises(TypeError):
        nn.SequentialCell([nn.ReLU(), 3])
    with pytest.raises((IndexError, TypeError)):
        seq[7]
    with pytest.raises(TypeError):
        seq["a"]
    with pytest.raises((TypeError, ValueError)):
        seq.append(3)


def test_cell_list_edits():
    cells = nn.CellList([nn.ReLU()])
    cells.append(nn.Tanh())
    cells.insert(0, nn.Sigmoid())
    cells.extend([nn.Flatten(), nn.Dense(2, 2)])
    assert len(cells) == 5 and isinstance(cells[0], nn.Sigmoid) and isinstance(cells[-1], nn.Dense)
    assert isinstance(cells[1:3], nn.CellList) and len(cells[1:3]) == 2
    cells += [nn.ELU()]
    assert len(cells) == 6
    cells[1] = nn.GELU()
    del cells[0]
    assert isinstance(cells[0], nn.GELU)
    assert [i for i, _ in enumerate(cells)] == list(range(5))
    with pytest.raises(TypeError):
        cells.append(1)
    with pytest.raises(TypeError):
        cells.extend(3)
    with pytest.raises(IndexError):
        cells[10]
    with pytest.raises((NotImplementedError, AttributeError)):
        cells(t(2))


def test_insert_child_and_parameter():
    net = nn.Cell()
    net.insert_child_to_cell("c", Sub())
    net.insert_param_to_cell("q", Parameter(t(2), name="q"))
    assert names(net)[0] == "q"
    assert isinstance(net.c, Sub)
    for call, error in (
        (lambda: net.insert_child_to_cell("d", 3), TypeError),
        (lambda: net.insert_child_to_cell(3, Sub()), TypeError),
        (lambda: net.insert_param_to_cell("a.b", Parameter(t(1), name="z")), KeyError),
        (lambda: net.insert_param_to_cell("", Parameter(t(1), name="z")), KeyError),
        (lambda: net.insert_param_to_cell("q2", 3), TypeError),
        (lambda: net.insert_param_to_cell(5, Parameter(t(1), name="z")), TypeError),
        (lambda: net.insert_param_to_cell("c", Parameter(t(1), name="z")), KeyError),
    ):
        with pytest.raises(error):
            call()


def test_train_and_grad_flags():
    net = nn.SequentialCell(Sub(), nn.Dropout(0.5))
    assert net.training is False
    assert net.set_train() is net and net[1].training is True
    net.set_train(False)
    assert net[1].training is False
    net.set_grad()
    assert net.requires_grad is True and net[0].requires_grad is True
    net.set_grad(False)
    assert net[0].requires_grad is False
    assert net.phase == "predict" or isinstance(net.phase, str)
    with pytest.raises((TypeError, ValueError)):
        net.to_float(ms.int32)
    assert net.to_float(ms.float16) is net
    net.add_flags(fp16=False)
    assert net.get_flags()["fp16"] is False
    net.add_flags_recursive(own=True)
    assert net[0].get_flags()["own"] is True
    assert net.recompute() is None


def test_requires_grad_and_trainables():
    net = nn.SequentialCell(Sub(), nn.BatchNorm2d(2))
    assert len(net.trainable_params()) == 3 and len(net.untrainable_params()) == 2
    for p in net.get_parameters():
        p.requires_grad = False
    assert net.trainable_params() == []


def test_apply_and_init_parameters():
    seen = []
    net = nn.SequentialCell(Sub(), nn.ReLU())
    assert net.apply(lambda c: seen.append(type(c).__name__)) is net
    assert seen == ["Sub", "ReLU", "SequentialCell"]
    net.init_parameters_data()
    assert isinstance(repr(nn.Dense(2, 3)), str) and "input_channels=2" in repr(nn.Dense(2, 3))
    assert net.cls_name == "SequentialCell" and isinstance(net.get_scope() or "", str)


def test_parameter_of_a_parameter_name_clash():

    class Net(nn.Cell):

        def __init__(self):
            super().__init__()
            self.a = Parameter(t(1), name="same")
            self.b = Parameter(t(1), name="same")

        def construct(self, x):
            return x + self.a + self.b

    with pytest.raises((ValueError, RuntimeError)):
        net = Net()
        net.check_names()
        list(net.parameters_dict())


def test_check_names_and_keep():
    a = Sub()
    b = nn.SequentialCell(a, a)
    assert len(names(b)) == 1
    b.check_names()
    with pytest.raises(ValueError):
        Parameter(t(1), name="x" * 2000)
    with pytest.raises(ValueError):
        Parameter(t(1), name="")
    assert Parameter(t(1)).name == "Parameter"
    assert Parameter(t(1), name="k", requires_grad=False).requires_grad is False


def test_parameter_kinds():
    assert Parameter(3, name="i").dtype == ms.int32
    assert Parameter(3.0, name="f").dtype == ms.float32
    assert Parameter([1, 2], name="l").shape == (2,)
    assert Parameter(np.ones(2, np.float16), name="n").dtype == ms.float16
    with pytest.raises(TypeError):
        Parameter("a", name="s")
    with pytest.raises(TypeError):
        Parameter(t(1), name="k", layerwise_parallel=3)
    p = Parameter(initializer(Normal(0.1), [3, 4], ms.float32), name="init")
    assert p.init_data().shape == (3, 4)
    q = p.clone()
    assert q.name == "init" and q.shape == (3, 4)
    q = p.clone(init="zeros")
    assert q.init_data().asnumpy().sum() == 0
    assert "Parameter (name=init, shape=(3, 4), dtype=Float32, requires_grad=True)" == str(p)
    p.comm_fusion = 2
    assert p.comm_fusion == 2
    p.parallel_optimizer = False
    p.unique = True
    assert p.unique and p.layerwise_parallel is False
    tup = ParameterTuple([Parameter(t(1), name="u"), Parameter(t(1), name="v")])
    copy = tup.clone(prefix="new", init="ones")
    assert [each.name for each in copy] == ["new.u", "new.v"]


def test_call_errors():
    with pytest.raises(TypeError):
        Sub()(np.ones(2, np.float32))

    class Bare(nn.Cell):
        pass

    with pytest.raises((NotImplementedError, AttributeError)):
        Bare()(t(1))
    with pytest.raises(AttributeError):
        Sub().nothing
    with pytest.raises((TypeError, ValueError)):
        Sub()(t(2), t(2), t(2))

    class Wrong(nn.Cell):

        def __init__(self):
            self.a = Sub()

    with pytest.raises(AttributeError):
        Wrong()


def test_hooks():
    seen = []

    def pre(cell_id, inputs):
        seen.append("pre")
        return inputs

    def post(cell_id, inputs, output):
        seen.append("post")
        return output * 2

    net = Sub()
    a, b = (net.register_forward_pre_hook(pre), net.register_forward_hook(post))
    np.testing.assert_allclose(net(t(2)).asnumpy(), [4, 4])
    assert seen == ["pre", "post"]
    a.remove()
    b.remove()
    np.testing.assert_allclose(net(t(2)).asnumpy(), [2, 2])
    for bad in (3, "a"):
        with pytest.raises(TypeError):
            net.register_forward_pre_hook(bad)
        with pytest.raises(TypeError):
            net.register_backward_hook(bad)


def test_replacing_attributes():

    class Net(nn.Cell):

        def __init__(self):
            super().__init__()
            self.a = nn.ReLU()
            self.w = Parameter(t(1), name="w")
            self.x = t(2)

    net = Net()
    net.a = nn.Tanh()
    assert isinstance(net.a, nn.Tanh)
    net.w = Parameter(t(3), name="w")
    assert net.w.shape == (3,)
    net.n = 3
    assert net.n == 3
    del net.a
    assert not hasattr(net, "a")
    with pytest.raises(TypeError):
        net.w = nn.ReLU()
    net.x = t(3)
    assert net.x.shape == (3,)


def test_graph_cell_and_compile():
    context.set_context(mode=context.GRAPH_MODE)
    net = Sub()
    net.compile(t(2))
    np.testing.assert_allclose(net(t(2)).asnumpy(), [2, 2])
    assert net.name_cells() == OrderedDict() and len(net.cells()) == 0
    context.set_context(mode=context.PYNATIVE_MODE)
    with pytest.raises((TypeError, ValueError)):
        nn.GraphCell(3)


def laid(net, **how):
    """The elements of a net's chunks, before which its Parameters lie apart."""
    params = net.trainable_params()
    before = [each.asnumpy().copy() for each in params]
    assert not Parameter._is_flattened(params) and Parameter._get_flattened_tensors(params) == []
    net.flatten_weights(**how)
    chunks = Parameter._get_flattened_tensors(params)
    assert Parameter._is_flattened(params) and Parameter._get_fusion_size(chunks) == how.get("fusion_size", 0)
    assert all(np.array_equal(a, b.asnumpy()) for a, b in zip(before, params))
    assert np.array_equal(np.concatenate([each.asnumpy() for each in chunks]), np.concatenate([each.ravel() for each in before]))
    return chunks


@pytest.mark.parametrize("size, wanted", [(0, [26]), (64, [16, 10]), (40, [12, 4, 10])])
def test_weights_lie_behind_each_other(size, wanted):
    net = nn.SequentialCell(nn.Dense(3, 4), nn.Dense(4, 2))
    assert [each.shape for each in laid(net, **({"fusion_size": size} if size else {}))] == [[each] for each in wanted]


def test_flattened_weights_train():
    def trained(flat):
        ms.set_seed(3)
        net = nn.SequentialCell(nn.Dense(3, 4, "ones"), nn.Dense(4, 2, "ones"))
        if flat:
            laid(net)
        step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Momentum(net.trainable_params(), 0.1, 0.9))
        x = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3) / 6)
        for _ in range(3):
            step(x, Tensor(np.zeros((2, 2), np.float32)))
        assert Parameter._is_flattened(net.trainable_params()) == flat
        return [each.asnumpy() for each in net.trainable_params()]

    assert all(np.array_equal(a, b) for a, b in zip(trained(False), trained(True)))


def test_flattened_tensors_by_type():
    tensors = [Tensor(np.full(shape, value, kind)) for value, (shape, kind) in enumerate([(2, np.float64), ((2, 2), np.float32), ((), np.float64)])]
    single, double = Tensor._flatten_tensors(tensors)
    assert single.dtype == ms.float32 and single.shape == [4] and double.asnumpy().tolist() == [0, 0, 2]
    with pytest.raises(ValueError):
        nn.Dense(2, 2).flatten_weights(fusion_size=-1)
