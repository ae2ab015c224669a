"""Containers of inputs in gradients, constants in half precision, and what files and failures tell of them."""

import numpy as np
import pytest

import mindspore as ms
import mindspore.dataset as ds
import mindspore.nn as nn
from mindspore import Parameter, ParameterTuple, Tensor, context, mutable
from mindspore.ops import composite as C
from mindspore.ops import operations as P


class Weighed(nn.Cell):
    def construct(self, x, pair, named, y):
        return x * pair[0] + y * named["of_y"]


@pytest.mark.parametrize("mode", [context.GRAPH_MODE, context.PYNATIVE_MODE])
def test_gradients_of_all_inputs_pass_over_containers(mode):
    context.set_context(mode=mode)
    x, y, pair, named = Tensor([2.0]), Tensor([3.0]), (Tensor([4.0]), Tensor([5.0])), {"of_y": Tensor([6.0])}
    grad_all = C.GradOperation(get_all=True)
    made = grad_all(Weighed())(x, pair, named, y)
    assert [float(each) for each in made] == [4, 6]
    of_x, of_pair, of_y = grad_all(Weighed())(x, mutable(pair), named, y)
    assert (float(of_x), float(of_y)) == (4, 6) and [float(each) for each in of_pair] == [2, 0]


def test_containers_made_in_a_graph_have_gradients():
    class Slope(nn.Cell):
        def __init__(self):
            super().__init__()
            self.net, self.grad_all = Weighed(), C.GradOperation(get_all=True)

        def construct(self, x, y):
            return self.grad_all(self.net)(x, (x, y), {"of_y": y}, y)

    context.set_context(mode=context.GRAPH_MODE)
    of_x, of_pair, of_named, of_y = Slope()(Tensor([2.0]), Tensor([3.0]))
    assert float(of_x) == 2 and float(of_pair[0]) == 2 and float(of_named[0]) == 3 and float(of_y) == 3


def test_constants_join_parameters_in_half_precision():
    class Joined(nn.Cell):
        def __init__(self):
            super().__init__()
            self.concat, self.row = P.Concat(), Tensor(np.zeros([1, 10], np.float32))
            self.weight = Parameter(Tensor(np.zeros([1, 10], np.float32)), name="weight")

        def construct(self, x):
            return self.concat((x, self.row, self.weight))

    context.set_context(mode=context.GRAPH_MODE)
    net = Joined().to_float(ms.float16)
    assert net(Tensor(np.ones([1, 10], np.float32))).dtype == ms.float16
    assert net.row.dtype == ms.float32


class Step(nn.Cell):
    def __init__(self, net):
        super().__init__(auto_prefix=False)
        self.net, self.weights = net, ParameterTuple(net.trainable_params())
        self.optimizer, self.grad = nn.Momentum(self.weights, 0.1, 0.9), C.GradOperation(get_by_list=True)

    def construct(self, x):
        return self.optimizer(self.grad(self.net, self.weights)(x))


def test_a_step_that_returns_what_its_optimizer_does_is_a_file(tmp_path):
    context.set_context(mode=context.GRAPH_MODE)
    net, x = nn.Dense(3, 2), Tensor(np.ones([4, 3], np.float32))
    before = net.weight.asnumpy().copy()
    ms.export(Step(net), x, file_name=str(tmp_path / "step"), file_format="MINDIR")
    assert (net.weight.asnumpy() == before).all()
    loaded = nn.GraphCell(ms.load(str(tmp_path / "step.mindir")))
    assert loaded(x)
    Step(net)(x)
    stepped = {each.name: each.asnumpy() for each in loaded.get_parameters()}
    assert np.allclose(stepped["weight"], net.weight.asnumpy()) and np.allclose(stepped["bias"], net.bias.asnumpy())


def test_a_failed_map_names_the_operation_and_the_file(tmp_path):
    def fails(line):
        raise ValueError("no such word")

    (tmp_path / "lines.txt").write_text("a\nb\n")
    lines = ds.TextFileDataset(str(tmp_path / "lines.txt"), shuffle=False).map(fails, ["text"])
    with pytest.raises(RuntimeError, match=r"map operation: \[PyFunc\] failed. The corresponding data file is: .*lines.txt") as told:
        list(lines.create_dict_iterator(num_epochs=1))
    assert "no such word" in str(told.value)


def test_whole_numbers_are_shown_in_equal_width():
    assert repr(Tensor([2, 10])) == "Tensor(shape=[2], dtype=Int64, value= [ 2, 10])"


@pytest.mark.parametrize("kind", [tuple, list, lambda pair: dict(zip("ab", pair))])
def test_containers_that_are_not_mutable_are_compiled_apart(kind):
    from mindspore.common.api import _CellGraphExecutor

    class First(nn.Cell):
        def construct(self, pair):
            return (pair["a"] if isinstance(pair, dict) else pair[0]) + 1

    executor, net = _CellGraphExecutor(), First()
    made = [kind((Tensor([1.0]), Tensor([2.0]))) for _ in range(2)]
    assert executor.compile(net, made[0])[0] != executor.compile(net, made[1])[0]
    assert executor.compile(net, mutable(made[0]))[0] == executor.compile(net, mutable(made[1]))[0]


def test_a_parameter_among_the_inputs_may_share_its_name():
    outer, given = Parameter(Tensor([1])), Parameter(Tensor([1]))

    class Clears(nn.Cell):
        def construct(self, x):
            P.Assign()(x, Tensor([0]))
            P.Assign()(outer, Tensor([0]))
            return True

    context.set_context(mode=context.GRAPH_MODE)
    assert Clears()(given)
    assert given.asnumpy() == 0 and outer.asnumpy() == 0
