"""Names of parameters are paths of attributes."""

from collections import OrderedDict

import numpy as np
import pytest
from mindspore import Parameter, ParameterTuple, Tensor, nn

from cairn.ms import modes


def weight(name=None, size=2):
    return Parameter(Tensor(np.ones(size, np.float32)), name=name)


class Leaf(nn.Cell):
    def __init__(self, name="weight"):
        super().__init__()
        self.weight = weight(name)

    def construct(self, x):
        return x * self.weight


class Norm(nn.Cell):
    def __init__(self):
        super().__init__()
        self.moving_mean = weight("mean")
        self.moving_variance = weight("variance")


def names(cell):
    return [param.name for param in cell.get_parameters()]


def test_a_parameter_without_a_name_is_called_by_its_attribute():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.scale = weight()

    assert names(Net()) == ["scale"]


def test_a_child_puts_its_attribute_in_front():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.conv1 = Leaf()
            self.layer1 = nn.SequentialCell([Leaf(), nn.SequentialCell(Leaf(), Leaf())])

    assert names(Net()) == ["conv1.weight", "layer1.0.weight", "layer1.1.0.weight", "layer1.1.1.weight"]


def test_an_attached_cell_has_paths_instead_of_own_names():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.bn = Norm()

    assert names(Norm()) == ["mean", "variance"]
    assert names(Net()) == ["bn.moving_mean", "bn.moving_variance"]


def test_wrappers_without_auto_prefix_keep_the_names():
    class Wrapper(nn.Cell):
        def __init__(self, net):
            super().__init__(auto_prefix=False)
            self.net = net

    net = nn.SequentialCell(Leaf(), Leaf())
    before = names(net)
    assert names(Wrapper(net)) == before == ["0.weight", "1.weight"]


def test_an_ordered_dict_names_the_cells_of_a_sequence():
    cells = nn.SequentialCell(OrderedDict([("a", Leaf()), ("b", Leaf())]))
    assert names(cells) == ["a.weight", "b.weight"]


def test_cell_list_numbers_its_cells():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.blocks = nn.CellList([Leaf(), Leaf()])

    net = Net()
    assert names(net) == ["blocks.0.weight", "blocks.1.weight"]
    net.blocks.append(Leaf())
    assert names(net)[-1] == "blocks.2.weight"
    net.blocks.insert(0, Leaf())
    assert sorted(names(net)) == [f"blocks.{i}.weight" for i in range(4)]


def test_cell_list_without_auto_prefix_leaves_names():
    assert [each.weight.name for each in nn.CellList([Leaf("a"), Leaf("b")], auto_prefix=False)] == ["a", "b"]


def test_parameter_tuples_are_kept_under_the_names_of_their_parameters():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.net = Leaf()
            self.moments = ParameterTuple(self.net.trainable_params()).clone(prefix="moments", init="same")

    assert sorted(names(Net())) == ["moments.net.weight", "net.weight"]


def test_queries():
    net = nn.SequentialCell(Leaf(), Norm())
    net[1].moving_mean.requires_grad = False
    assert [name for name, _ in net.parameters_and_names()] == ["0.weight", "1.moving_mean", "1.moving_variance"]
    assert [name for name, _ in net.cells_and_names()] == ["", "0", "1"]
    assert [each.name for each in net.trainable_params()] == ["0.weight", "1.moving_variance"]
    assert [each.name for each in net.untrainable_params()] == ["1.moving_mean"]
    assert list(net.parameters_dict()) == ["0.weight", "1.moving_mean", "1.moving_variance"]
    assert list(net.name_cells()) == ["0", "1"]
    assert list(net.get_parameters(expand=False)) == []


def test_a_shared_cell_is_named_by_its_last_place_and_listed_once():
    leaf = Leaf()
    net = nn.SequentialCell(leaf, leaf)
    assert len(list(net.get_parameters())) == 1


def test_two_parameters_of_one_name_are_an_error():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.a = weight("same")
            self.b = weight("same")

    with pytest.raises(ValueError, match="already exists"):
        Net().check_names()
    modes.mode = modes.GRAPH
    with pytest.raises(ValueError, match="already exists"):
        Net()(Tensor([1.0]))
    with pytest.raises(ValueError, match="already exists"):
        ParameterTuple([weight("same"), weight("same")])


@pytest.mark.parametrize("name, error", [("a.b", KeyError), ("", KeyError), ("construct", KeyError), (1, TypeError)])
def test_names_that_children_and_parameters_cannot_have(name, error):
    cell = nn.Cell()
    with pytest.raises(error):
        cell.insert_child_to_cell(name, Leaf())
    with pytest.raises(error):
        cell.insert_param_to_cell(name, weight())


def test_children_before_init_are_an_error():
    class Net(nn.Cell):
        def __init__(self):
            self.leaf = Leaf()
            super().__init__()

    with pytest.raises(AttributeError, match="__init__"):
        Net()
