"""Graph mode: the statements, expressions and builtins of the language, those that are refused, and what Python keeps."""

import functools

import numpy as np
import pytest
from cairn.ms import capture, modes
from graphs import Function, both, captured, refused, tensor
from mindspore import Parameter, Tensor, ms_function
from mindspore.nn import Cell, CellList
from mindspore.ops import composite as C
from mindspore.ops import constexpr
from mindspore.ops import functional as F
from mindspore.ops import operations as P

X = tensor(1, -2, 3)
M = tensor([[1, 2, 3], [4, 5, 6]])
scale = 3


def module_function(x, factor=2, *, shift=1):
    return x * factor + shift


def changed_global(x):
    global scale
    scale = 3
    return x * scale


@constexpr
def half(n):
    return np.arange(n).sum().item() // 2


def literals(x):
    table = {"a": (x, x + 1), "b": [x * 2]}
    first, *rest = table["a"]
    (p, q), r = (first, rest[0]), table["b"][0]
    return p, q, r, {"sum": p + q}


def augmented(x):
    x += 1
    x *= 2
    y = x
    y -= 3
    return x, y


def functions(x):
    def inner(y, n=2):
        def deeper(z):
            return z + n

        return deeper(y) * n

    double = lambda z: z * 2  # noqa: E731
    return inner(x), double(x), module_function(x, shift=3), functools.partial(module_function, factor=5)(x)


def nonlocals(x):
    count = 0

    def bump(y):
        nonlocal count
        if y[0] > 0:
            count = count + 2
        return y

    for _ in range(3):
        x = bump(x) + 1
    return x * count


def comprehensions(x):
    made = [x * i for i in range(4) if i != 2]
    table = {f"k{i}": each for i, each in enumerate(made)}
    total = sum(each for each in made)
    return made, table, total, tuple(a + b for a, b in zip(made, made[1:]))


def slices(x):
    return x[0], x[:, 1], x[..., -1], x[0, 1:], x[::1, ::2], x[None], x[-1][0]


def stores(x):
    x = x + 0
    x[0] = 5
    x[1, 2] = x[0, 0] * 2
    x[:, 0] += 1
    return x


def stores_in_branches(x):
    x = x + 0
    if x[0, 0] > 0:
        x[0] = 7
    else:
        x[1, 1] = -7
    return x


def builtins_of_python(x):
    a = len(x) + len((1, 2)) + int(2.5) + round(1.6) + abs(-3) + min(3, 4) + max([1, 2]) + pow(2, 3)
    b = all([True, 1]) and any((0, 1)) and isinstance(x, Tensor) and hasattr(x, "shape") and bool(1)
    c = list(map(lambda v: v * 2, [x, x + 1])) + list(filter(lambda v: v is not None, [None, x]))
    return x * a, b, c, str(2) + "s", float(3), tuple([1, 2]), sum([x, x, x]), getattr(x, "shape")


def builtins_of_tensors(x):
    return max(x[0], x[1]), min(x), abs(x), float(x[0]), bool(x[0] > 0), all([x[0] > 0, x[1] > 0]), any(x > 0)


def texts(x):
    name = f"axis {len(x.shape)}"
    if name == "axis 1":
        return x
    return x * 2


def loops_over_dicts(x):
    total = x * 0
    for key, value in {"a": 1, "b": 2}.items():
        if key == "a":
            continue
        total += x * value
    while len(total.shape) < 3:
        total = total[None]
    return total


def asserts_and_with(x):
    assert x.shape == (3,), "shape"
    assert len(x) == 3

    class Scope:
        def __enter__(self):
            return 3

        def __exit__(self, *given):
            return None

    with Scope() as n:
        y = x * n
    try:
        k = {}["none"]
    except KeyError:
        k = 4
    finally:
        y = y + 1
    del n
    return y * k


def chained_calls(x):
    import math

    return (x if x is not None else -x).astype("float32") * math.floor(2.7), half(x.shape[0])


def walrus_and_conditions(x):
    if (n := len(x.shape)) > 0 and x is not None:
        return x * n
    return x


def unpacked_calls(x):
    arguments, keywords = (x, 3), {"shift": 4}
    return module_function(*arguments, **keywords)


def primitives(x):
    y = P.Add()(x, P.Neg()(x) * 2)
    y = F.depend(y, P.Shape()(x))
    y = P.Cast()(y, P.DType()(x))
    hyper = C.HyperMap(module_function)
    return hyper((x, (y, y + 1)))


@pytest.mark.parametrize(
    "function",
    [
        literals, augmented, functions, nonlocals, comprehensions, builtins_of_python, texts, loops_over_dicts,
        asserts_and_with, chained_calls, walrus_and_conditions, unpacked_calls, changed_global, primitives,
    ],
    ids=lambda each: each.__name__,
)  # fmt: skip
def test_syntax_of_vectors(function):
    both(function, X, X * -1)


@pytest.mark.parametrize("function", [slices, stores, stores_in_branches], ids=lambda each: each.__name__)
def test_syntax_of_matrices(function):
    both(function, M, M * -1)


def test_builtins_of_tensors():
    made = captured(Function(builtins_of_tensors), X)
    assert [np.asarray(each).tolist() for each in made] == [1, -2, [1, 2, 3], 1, True, False, True]


def yields(x):
    yield x


def awaits(x):
    async def later():
        return x

    return later


def prints(x):
    print("x is", x)
    return x


def prints_in_a_branch(x):
    if x[0] > 0:
        print(x)
    return x


def reads(x):
    return x * float(x.asnumpy()[0])


def returns_in_try(x):
    try:
        if x[0] > 0:
            return x
    except ValueError:
        pass
    return -x


def test_what_is_refused():
    with pytest.raises(ValueError, match="Unsupported expression 'Yield'"):
        strictly(yields, X)
    assert "tensors are printed in a branch or loop" in refused(prints_in_a_branch, X)
    told = refused(reads, X)
    assert "known only when the captured function runs" in told and "test_graph_syntax.py:" in told
    assert "'try' with an early return" in refused(returns_in_try, X)
    typed = eval(compile("lambda x: x + 1", "<stdin>", "eval"))
    assert "source of '<lambda>' is not available" in refused(typed, X)


def strictly(function, *inputs):
    import os

    os.environ["CAIRN_MS_STRICT"] = "1"
    try:
        return captured(Function(function), *inputs)
    finally:
        del os.environ["CAIRN_MS_STRICT"]


def test_printed_tensors_have_elements(capsys):
    modes.mode = modes.GRAPH
    before = capture.statistics["eager"]
    for i in (1.0, 2.0):
        Function(prints)(Tensor(np.array([i], np.float32)))
    shown = capsys.readouterr().out.splitlines()
    assert shown == [each for i in (1, 2) for each in ("x is", f"Tensor(shape=[1], dtype=Float32, value=[ {i}.00000000e+00])")]
    assert capture.statistics["eager"] == before


def test_strict_makes_refusals_errors():
    with pytest.raises(ValueError, match="print"):
        strictly(prints_in_a_branch, X)


def test_a_notice_is_given_once(capsys):
    capture._told.clear()
    modes.mode = modes.GRAPH
    net = Function(reads)
    for _ in range(3):
        net(X)
    assert capsys.readouterr().err.count("runs eagerly") == 1


class Base(Cell):
    def __init__(self):
        super().__init__()
        self.w = Parameter(tensor(2.0), name="w")
        self.__private = 3

    def construct(self, x):
        return self.helper(x) * self.__private

    def helper(self, x):
        return x * self.w if x[0] > 0 else x


class Derived(Base):
    def construct(self, x):
        return super().construct(x) + super(Derived, self).helper(x)


class Listed(Cell):
    def __init__(self):
        super().__init__()
        self.cells_ = CellList([Base(), Derived()])
        self.flag = True

    def construct(self, x):
        for index, cell in enumerate(self.cells_):
            x = cell(x) if self.flag else x
            if index > 5:
                break
        return x


def test_methods_super_private_names_and_lists_of_cells():
    both(Derived(), X, X * -1)
    both(Listed(), X, X * -1)


def test_flags_are_part_of_the_key(graph_mode):
    class Net(Cell):
        def construct(self, x):
            return x * 2 if self.training else x

    net, compiled = Net(), capture.statistics["compiled"]
    for train in (True, False, True):
        net.set_train(train)
        assert net(X).asnumpy()[0] == (2 if train else 1)
    assert capture.statistics["compiled"] == compiled + 2
    net(M)
    net(tensor(1, 2, 3, dtype=np.int32))
    net(X + 1)
    assert capture.statistics["compiled"] == compiled + 4


def test_python_arguments_are_constants(graph_mode):
    net = Function(lambda x, n, options: x * n if options["double"] else x)
    for n, double in ((2, True), (3, True), (2, False), (2, True)):
        assert net(X, n, {"double": double}).asnumpy()[0] == (n if double else 1)


def test_ms_function_captures_in_both_modes():
    @ms_function
    def f(x):
        if x[0] > 0:
            return x
        return -x

    runs = capture.statistics["runs"]
    assert f(X).asnumpy().tolist() == [1, -2, 3] and f(X * -1).asnumpy().tolist() == [1, -2, 3]
    assert capture.statistics["runs"] == runs + 2
    both(lambda x: f(x) + f(x * -1), X)


def test_ms_function_of_methods_knows_their_object():
    class Net(Cell):
        def __init__(self, factor):
            super().__init__()
            self.factor = factor

        @ms_function
        def scaled(self, x, n=1):
            return x * self.factor * n if self.training else x

        def construct(self, x):
            return self.scaled(x, n=2)

    for factor in (2, 3):
        net = Net(factor)
        for train in (False, True):
            net.set_train(train)
            assert net.scaled(X).asnumpy()[0] == (factor if train else 1)
    both(net, X)


def test_handlers_of_the_script_do_not_hide_what_is_not_captured():
    def f(x):
        try:
            n = float(x.asnumpy()[0])
        except Exception:
            n = 100
        return x * n

    assert "known only when" in refused(f, X)


class Ordered(Cell):
    def __init__(self):
        super().__init__()
        self.p = Parameter(tensor(1.0), name="p")

    def construct(self, x):
        before = self.p * 1
        F.assign(self.p, x[0] + 1)
        middle = self.p * 1
        F.depend(x, F.assign(self.p, self.p * 10))
        self.p += x[2]
        return before, middle, self.p


def test_side_effects_keep_their_order():
    both(Ordered(), X, X * 2, X)


def test_results_do_not_share_memory(graph_mode):
    net = Ordered()
    first = net(X)[2].asnumpy()
    kept = first.copy()
    net(X * 2)
    assert first.tolist() == kept.tolist()
    net(net.p.value() * X if hasattr(net.p, "value") else X)


def test_a_parameter_as_input_is_its_memory(graph_mode):
    p = Parameter(tensor(1, 2, 3), name="p")
    net = Function(lambda p, x: F.assign(p, p + x))
    net(p, X)
    net(p, X)
    assert p.asnumpy().tolist() == [3, -2, 9]


def test_inputs_that_are_the_parameters_memory(graph_mode):
    class Net(Cell):
        def __init__(self):
            super().__init__()
            self.p = Parameter(tensor(1, 2, 3), name="p")

        def construct(self, x):
            self.p = self.p * 2
            return self.p + x

    net = Net()
    view = Tensor.__new__(Tensor)
    view._array = net.p.asnumpy()
    assert net(view).asnumpy().tolist() == [3, 6, 9]
    assert net.p.asnumpy().tolist() == [2, 4, 6]
