"""Graph mode: control flow on tensors equals eager mode to the bit."""

import numpy as np
import pytest
from cairn.ms import core
from graphs import Function, both, captured, refused, tensor, total
from mindspore import Parameter, Tensor
from mindspore.nn import Cell

UP, DOWN = tensor(1, 2, 3), tensor(-1, -2, -3)


def test_a_branch_assigns():
    def f(x):
        y = x
        if x[0] > 0:
            y = x * 2
        return y + 1

    up, down = both(f, UP, DOWN)
    assert up.tolist() == [3, 5, 7] and down.tolist() == [0, -1, -2]


def test_elif_and_nested_branches():
    def f(x):
        if x[0] > 2:
            y = x
        elif x[0] > 0:
            if x[1] > 5:
                y = x * 3
            else:
                y = x * 4
        else:
            y = -x
        return y

    both(f, tensor(3, 0), tensor(1, 6), tensor(1, 0), tensor(-1, 0))


def test_early_returns():
    def f(x):
        if x[0] > 0:
            return x * 2
        if x[1] > 0:
            return x * 3
        y = x * 4
        return y

    both(f, tensor(1, 0), tensor(-1, 1), tensor(-1, -1))


def test_returns_deep_inside():
    def f(x):
        if x[0] > 0:
            y = x + 1
            if x[1] > 0:
                return y
            y = y * 2
        else:
            y = x
        return y - 1

    both(f, tensor(1, 1), tensor(1, -1), tensor(-1, 1))


def test_tuples_and_dicts_are_joined():
    def f(x):
        if x[0] > 0:
            pair, table = (x, x * 2), {"a": x}
        else:
            pair, table = (x * 3, x), {"a": -x}
        return pair, table["a"]

    both(f, UP, DOWN)


def test_numbers_are_joined():
    def f(x):
        if x[0] > 0:
            scale = 2.0
        else:
            scale = 3.0
        return x * scale

    both(f, UP, DOWN)


def test_a_number_that_both_branches_set_stays_python():
    def f(x):
        if x[0] > 0:
            axis, y = 0, x
        else:
            axis, y = 0, -x
        return core.reduce_sum(y, axes=[axis])

    both(f, UP, DOWN)


def test_while_with_carried_tensors():
    def f(x, n):
        i, y = n * 0, x
        while i < n:
            y = y * 2
            i = i + 1
        return y, i

    for n in (0, 1, 5):
        both(f, (UP, tensor(n, dtype=np.int32)))


def test_while_with_numbers_that_change():
    def f(x):
        count = 0
        while total(x) < 100:
            x = x * 2
            count += 1
        return x, count

    made = captured(Function(f), UP)
    assert made[0].tolist() == [32, 64, 96] and made[1] == 5


def test_break_and_continue():
    def f(x, limit):
        total = x * 0
        i = limit * 0
        while i < 10:
            i = i + 1
            if i == 3:
                continue
            if i > limit:
                break
            total = total + x * i
        return total, i

    both(f, (UP, tensor(5, dtype=np.int32)), (UP, tensor(50, dtype=np.int32)))


def test_return_inside_a_loop():
    def f(x, n):
        i = n * 0
        while i < n:
            x = x + 1
            if total(x) > 20:
                return x * 100
            i = i + 1
        return x

    both(f, (UP, tensor(2, dtype=np.int32)), (UP, tensor(20, dtype=np.int32)))


def test_nested_loops_and_branches():
    def f(x, n):
        i = n * 0
        while i < n:
            j = n * 0
            while j < i:
                if x[0] > 10:
                    x = x - j
                else:
                    x = x + i
                j = j + 1
            i = i + 1
        return x

    both(f, (UP, tensor(7, dtype=np.int32)))


def test_for_over_python_unrolls_with_break_on_a_tensor():
    def f(x):
        for i in range(5):
            if total(x) > 10:
                break
            x = x + i
        return x

    both(f, UP, tensor(50, 1, 1), DOWN)


def test_for_over_rows_lists_and_zip():
    def f(x):
        total = x[0] * 0
        for row in x:
            total = total + row
        for i, (a, b) in enumerate(zip([x[0], x[1]], (1, 2))):
            total = total + a * b + i
        return total

    both(f, tensor([[1, 2], [3, 4]]))


def test_for_over_a_range_of_tensors():
    def f(x, n):
        for i in range(n):
            x = x + i
        return x

    made = captured(Function(f), UP, tensor(4, dtype=np.int32))
    assert made.tolist() == [7, 8, 9]


def test_boolean_operators_ternaries_and_chains():
    def f(x):
        a, b = x[0] > 0, x[1] > 0
        y = x if a and b else -x
        z = x * 2 if a or not b else x * 3
        w = x if 0 < x[0] < 2 else x + 1
        return y, z, w

    both(f, tensor(1, 1), tensor(1, -1), tensor(-1, 1), tensor(-1, -1), tensor(3, 1))


def test_operators_of_python_values_stay_lazy():
    def f(x, other=None):
        if other is not None and other[0] > 0:
            return x
        name = "" or "a"
        return x * len(name) if not other else x

    both(f, UP)


def test_type_join_names_line_and_types():
    def f(x):
        if x[0] > 0:
            y = x
        else:
            y = "text"
        return y

    with pytest.raises(TypeError) as told:
        captured(Function(f), UP)
    text = str(told.value)
    assert "Type Join Failed" in text and "'y'" in text and "test_graph_flow.py" in text and "'text'" in text
    assert "Float32" in text


def test_shape_join_names_both_shapes():
    def f(x):
        if x[0] > 0:
            return x
        return x[:2]

    with pytest.raises(TypeError, match=r"Shape Join Failed.*returned value.*\(3,\).*\(2,\)"):
        captured(Function(f), UP)


def test_functions_made_in_branches_are_used_there_and_after():
    def f(x, after=False):
        if x[0] > 0:
            turn = lambda each: each + each  # noqa: E731
            y = turn(x)
        else:
            turn = lambda each: each * each  # noqa: E731
            y = turn(x)
        return turn(y) if after else y

    assert captured(Function(f), UP).tolist() == (UP + UP).tolist()
    assert captured(Function(lambda x: f(x, True)), UP).tolist() == (UP * 4).tolist()


def test_loops_keep_types_and_without_their_shapes_run_eagerly():
    def f(x):
        y = x
        while total(y) < 10:
            y = y[:2] * 2
        return y

    def g(x):
        y = x > 0
        while total(x) < 10:
            y, x = x, x * 2
        return y

    assert "Shape Join Failed: 'y'" in refused(f, UP)
    with pytest.raises(TypeError, match="Type Join Failed: 'y'.*turn"):
        captured(Function(g), UP)


def test_a_variable_of_one_branch_is_told_when_used():
    def f(x):
        if x[0] > 0:
            y = x
        return y + 1

    with pytest.raises(UnboundLocalError, match="'y' is not defined in false branch, but defined in true"):
        captured(Function(f), UP)


class Counting(Cell):
    def __init__(self):
        super().__init__()
        self.count = Parameter(Tensor(np.zeros((), np.int32)), name="count")
        self.best = Parameter(Tensor(np.full((3,), -100, np.float32)), name="best")

    def construct(self, x):
        if total(x) > total(self.best):
            self.best = x
            self.count += 1
        i = self.count * 0
        while i < self.count:
            self.best = self.best + 1
            i = i + 1
        return self.best * self.count


def test_states_in_branches_and_loops():
    both(Counting(), UP, DOWN, UP * 3, UP)


def test_recursion_over_python_values():
    def power(x, n):
        return x if n == 0 else x * power(x, n - 1)

    both(lambda x: power(x, 5), UP)


def test_endless_recursion_is_told():
    def endless(x):
        return endless(x + 1)

    with pytest.raises(RuntimeError, match="Exceed function call depth limit 1000"):
        captured(Function(endless), UP)


def test_raise_under_a_condition_is_refused(graph_mode):
    def f(x):
        if x[0] < 0:
            raise ValueError("negative")
        return x

    with pytest.raises(RuntimeError, match="Currently only supports raise in constant scenarios"):
        Function(f)(UP)


def test_loops_carry_dicts_and_lists():
    def f(x, n):
        table, pair, i = {"a": x, "b": x * 2}, [x, 0], n * 0
        while i < n:
            table = {"a": table["b"], "b": table["a"] + 1}
            pair = [pair[0] + table["a"], pair[1] + 2]
            i = i + 1
        return table, pair[0], pair[1] * 1.5

    made = captured(Function(f), UP, tensor(3, dtype=np.int32))
    assert made[0]["a"].tolist() == [3, 5, 7] and made[1].tolist() == [8, 14, 20] and made[2] == 9


def test_what_a_loop_cannot_carry_runs_eagerly():
    def f(x, n):
        pair, i = (x, None), n * 0
        while i < n:
            pair = (pair[0] + 1, None)
            i = i + 1
        return pair[0]

    assert "'pair' holds tensors and other things" in refused(f, UP, tensor(3, dtype=np.int32))


def test_conditions_known_when_a_graph_is_made_run_one_side_of_numpy():
    def f(x):
        counts, total = np.array([1, 2, 3]), Tensor(0)
        for each in (1, 2, 3):
            total += Tensor(sum(counts)) + each
            if total <= 10:
                counts += 1
        return total + x

    assert captured(Function(f), tensor(1, dtype=np.int32)) == 1 + 7 + 11 + 12
