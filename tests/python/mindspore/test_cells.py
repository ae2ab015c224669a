"""Cells: attributes, flags, containers, texts, and errors by class."""

import copy

import numpy as np
import pytest
from mindspore import Parameter, ParameterTuple, Tensor, nn
from mindspore import dtype as mstype
from mindspore.ops import Primitive, PrimitiveWithInfer, prim_attr_register

from cairn.ms import core


def parameter(value=1.0, name="w"):
    return Parameter(Tensor(np.full(2, value, np.float32)), name=name)


class Scale(nn.Cell):
    def __init__(self, factor=2.0):
        super().__init__()
        self.w = parameter(factor)

    def construct(self, x):
        return x * self.w

    def extend_repr(self):
        return "factor"


def test_attributes_go_where_they_belong():
    net = nn.Cell()
    net.a, net.b, net.c, net.d, net.e = parameter(), Scale(), Tensor([1.0]), Primitive("P"), 5
    assert list(net._params) == ["a"] and list(net._cells) == ["b"] and list(net._primitives) == ["d"]
    assert isinstance(net.c, Tensor) and net.e == 5
    del net.b
    with pytest.raises(AttributeError):
        net.b


def test_a_tensor_assigned_to_a_parameter_is_its_new_content():
    net = Scale()
    memory = net.w.asnumpy()
    net.w = Tensor(np.array([5, 6], np.float32))
    assert isinstance(net.w, Parameter) and memory.tolist() == [5, 6]
    with pytest.raises(TypeError):
        net.w = "text"


def test_a_parameter_cannot_become_a_cell_nor_the_other_way_round():
    net = nn.SequentialCell(Scale())
    with pytest.raises(TypeError):
        net[0].w = Scale()
    net.child = Scale()
    with pytest.raises(TypeError):
        net.child = parameter()


def test_numpy_arguments_are_an_error():
    with pytest.raises(TypeError):
        Scale()(np.ones(2, np.float32))


def test_a_cell_without_construct_is_refused():
    for error in (NotImplementedError, AttributeError):
        with pytest.raises(error, match="construct"):
            nn.Cell()(Tensor([1.0]))


def test_training_is_off_at_first_and_set_for_all_below():
    net = nn.SequentialCell(Scale(), nn.SequentialCell(Scale()))
    assert not net.training
    assert net.set_train() is net and net[1][0].training
    net.set_train(False)
    assert not any(cell.training for _, cell in net.cells_and_names())
    net.add_flags_recursive(fast=True)
    assert net[1][0].fast and net[1][0].get_flags()["fast"]


def test_to_float_computes_in_another_type():
    net = Scale().to_float(mstype.float16)
    made = net(Tensor(np.ones(2, np.float32)))
    assert made.dtype is mstype.float16 and net._params["w"].dtype is mstype.float32
    with pytest.raises(ValueError):
        net.to_float(mstype.int32)


def test_text():
    assert repr(Scale()) == "Scale<factor>"
    assert repr(nn.SequentialCell(Scale())) == "SequentialCell<\n  (0): Scale<factor>\n  >"


def test_apply_and_deepcopy():
    net, seen = nn.SequentialCell(Scale(), Scale()), []
    net.apply(lambda cell: seen.append(type(cell).__name__))
    assert seen == ["Scale", "Scale", "SequentialCell"]
    other = copy.deepcopy(net)
    other[0].w.set_data(Tensor(np.zeros(2, np.float32)))
    assert net[0].w.asnumpy().tolist() == [2, 2] and other[0].w.name == "0.w"


def test_sequence():
    net = nn.SequentialCell([Scale(2.0), Scale(3.0)])
    assert net(Tensor(np.ones(2, np.float32))).asnumpy().tolist() == [6, 6]
    net.append(Scale(4.0))
    assert len(net) == 3 and net(Tensor(np.ones(2, np.float32))).asnumpy().tolist() == [24, 24]
    del net[0]
    assert net(Tensor(np.ones(2, np.float32))).asnumpy().tolist() == [12, 12]
    net[0] = Scale(5.0)
    assert net[0].w.name == "0.w" and len(net[0:1]) == 1 and net[-1].w.asnumpy()[0] == 4
    for index, error in ((5, IndexError), ("a", TypeError)):
        with pytest.raises(error):
            net[index]
    with pytest.raises(TypeError):
        nn.SequentialCell([1])


def test_cell_list():
    cells = nn.CellList([Scale(1.0)])
    cells += [Scale(2.0), Scale(3.0)]
    cells.insert(1, Scale(9.0))
    assert [each.w.asnumpy()[0] for each in cells] == [1, 9, 2, 3]
    del cells[0]
    assert len(cells) == 3 and len(cells[1:]) == 2
    with pytest.raises(NotImplementedError):
        cells(Tensor([1.0]))
    with pytest.raises(TypeError):
        cells.append(3)


@pytest.mark.parametrize("given, error", [(True, TypeError), ("a", TypeError), (None, TypeError)])
def test_what_no_parameter_begins_with(given, error):
    for each in (error, ValueError):
        with pytest.raises(each):
            Parameter(given)


def test_parameters():
    assert Parameter(3).dtype is mstype.int32 and Parameter(3.0).dtype is mstype.float32
    made = Parameter(Tensor(np.ones((2, 3), np.float32)), name="w", requires_grad=False)
    assert repr(made) == "Parameter (name=w, shape=(2, 3), dtype=Float32, requires_grad=False)"
    copied = made.clone()
    copied.asnumpy()[:] = 0
    assert made.asnumpy().sum() == 6 and not copied.requires_grad
    made.default_input = Tensor(np.zeros((2, 3), np.float32))
    assert made.asnumpy().sum() == 0
    with pytest.raises(ValueError):
        made.set_data(Tensor(np.ones(4, np.float32)))
    with pytest.raises(TypeError):
        made.set_data(Tensor(np.ones((2, 3), np.float64)))
    with pytest.raises(TypeError):
        made.requires_grad = 1
    with pytest.raises(TypeError):
        Parameter(3).set_data(1.5)
    assert Parameter(Tensor(np.float16(1))).set_data(0.5).dtype is mstype.float16
    made.set_data(Tensor(np.full((2, 3), 2, np.int32)))
    assert made.asnumpy().tolist() == [[2, 2, 2]] * 2 and made.dtype is mstype.float32


def test_memory_is_shared_with_numpy():
    made = parameter()
    made.asnumpy()[0] = 7
    assert (made + 0.0).asnumpy().tolist() == [7, 1]
    array = np.ones(2, np.float32)
    shared = Tensor.from_numpy(array)
    array[1] = 5
    assert shared.asnumpy().tolist() == [1, 5]


def test_parameter_tuples():
    with pytest.raises(TypeError):
        ParameterTuple([Tensor([1.0])])
    assert len(ParameterTuple(iter([parameter(name="a"), parameter(name="b")]))) == 2


def test_a_primitive_of_the_scripts_own():
    class Halve(PrimitiveWithInfer):
        @prim_attr_register
        def __init__(self, factor=0.5, axis=-1):
            self.init_prim_io_names(inputs=["x"], outputs=["y"])

        def __call__(self, x):
            return core.mul(x, self.factor)

    made = Halve(axis=1)
    assert made.name == "Halve" and made.attrs["axis"] == 1 and made.input_names == ["x"]
    assert made(Tensor([4.0])).asnumpy() == 2
    with pytest.raises(NotImplementedError):
        Primitive("Nothing")(Tensor([1.0]))


def test_two_parameters_of_one_name_do_not_compile():
    from mindspore.common.api import _executor

    class Nothing(nn.Cell):
        def construct(self):
            return ()

    net = Nothing()
    net.one, net.two = parameter(name="same"), parameter(name="same")
    with pytest.raises(ValueError, match="same"):
        _executor.compile(net)
    net.two = net.one
    assert _executor.compile(net)[1]


def test_checks_of_level_0_5_take_the_value_alone():
    from mindspore._checkparam import check_input_format, check_int, check_int_positive, twice

    assert check_int(3) == 3 and check_int_positive(1) == 1 and check_input_format("NCHW") == "NCHW"
    assert twice(5) == (5, 5) and twice((1, 2)) == (1, 2)
    for check, wrong in ((check_int, True), (check_int, 3.3), (twice, 0.5), (twice, (1, 2, 3)), (twice, (3.3, 4))):
        with pytest.raises(TypeError):
            check(wrong)
    for check, wrong in ((check_int_positive, -1), (check_input_format, "NHW")):
        with pytest.raises(ValueError):
            check(wrong)


def test_wrong_dtypes_of_primitives_are_type_errors():
    from mindspore import ops as P

    number = Tensor([1.0])
    flag = Parameter(Tensor([True]), name="flag")
    for call in (
        lambda: P.AssignAdd()(flag, Tensor([True])),
        lambda: P.AssignSub()(flag, Tensor([True])),
        lambda: P.EqualCount()(5.0, number),
        lambda: P.EqualCount()(number, Tensor([1], mstype.int32)),
        lambda: P.LayerNorm(begin_norm_axis="a"),
        lambda: P.L2Normalize(epsilon="a"),
        lambda: P.AddN()(number),
        lambda: P.AddN()((number, Tensor([1, 2], mstype.int32))),
    ):
        with pytest.raises(TypeError):
            call()


def test_composite_answers_to_functions_of_arrays():
    from mindspore.ops import composite as C

    x = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    assert C.count_nonzero(x).asnumpy() == 5
    ones = C.ones_like(Tensor(np.zeros((3, 2), np.float32)))
    np.testing.assert_allclose(C.dot(x, ones).asnumpy(), [[3, 3], [12, 12]])
    np.testing.assert_allclose(C.tensor_dot(x, x, ((1,), (1,))).asnumpy(), [[5, 14], [14, 50]])


def test_the_stage_of_a_cell_is_checked():
    cell = nn.Cell()
    cell.pipeline_stage = 1
    assert cell.pipeline_stage == 1
    for stage, error in ((-1, ValueError), (True, TypeError), ("1", TypeError)):
        with pytest.raises(error, match="pipeline_stage"):
            cell.pipeline_stage = stage
