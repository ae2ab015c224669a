"""What goes wrong in training is told as stock TensorFlow tells it, and what comes after goes on."""

from pathlib import Path

import pytest
from test_tensorflow_door import assert_close, case, on_engine  # noqa: F401

FAULTS = Path(__file__).parent / "door" / "faults.py"


@pytest.fixture
def fault(case):  # noqa: F811
    return lambda name: case(name, script=FAULTS)


def test_a_loop_with_an_unsupported_operator_stays_with_tensorflow(fault):
    (stock, engine), report = fault("unsupported_in_a_loop")
    assert_close(engine, stock)
    step = max(report["graphs"], key=lambda graph: graph["numeric_on_engine"])
    assert step["clusters"] and any("AsString" in each["reason"] or "AsString" == each["op"] for each in step["host"])


def test_shapes_that_do_not_fit_are_refused_and_the_next_run_works(fault):
    (stock, engine), _ = fault("inconsistent_shapes")
    assert stock[0][0] == engine[0][0] == "InvalidArgumentError"
    assert "layer/product" in engine[0][1] and "faults.py" in engine[0][1]
    assert engine[1] == stock[1]


def test_a_step_ends_where_its_time_is_over_or_its_session_is_closed(fault):
    found, report = fault("cancelled_steps")
    assert found == [["DeadlineExceededError", True], 64.0, ["CancelledError", True]]
    assert any(len(graph["clusters"]) == 1 and graph["numeric"] > 3 for graph in report["graphs"])


def test_a_step_ends_while_its_code_is_made(fault):
    found, report = fault("cancelled_compilations")
    assert found == ["DeadlineExceededError", True] and not report["run_by_tensorflow"]  # it is not taken for a refusal


def test_a_place_out_of_range_is_an_error_as_on_tensorflow(fault):
    found, report = fault("places_out_of_range")
    assert not report["run_by_tensorflow"] and len(found) > 15
    for name, (stock, engine) in found.items():
        assert_close(engine[0], stock[0])
        assert engine[1] == stock[1] == ["InvalidArgumentError"] * len(stock[1]), name
        assert all(engine[2]) or name == "broadcast_to"  # whose gradient asks TensorFlow about the shapes first


def test_a_row_that_is_none_is_refused(fault):
    (stock, engine), _ = fault("rows_that_are_none")
    assert engine[0] == stock[0] and stock[0] == ["InvalidArgumentError"] * 3 + [""] + ["InvalidArgumentError", ""] * 3
    assert_close(engine[1], stock[1])


def test_a_loss_that_is_no_number_goes_through_as_on_tensorflow(fault):
    (stock, engine), _ = fault("not_a_number")
    assert stock[0][0] == engine[0][0] == "InvalidArgumentError" and "the loss is lost" in engine[0][1]
    assert_close(engine[1], stock[1])
    assert engine[2] == stock[2] and engine[2][0]


def test_assertions_say_what_they_say_on_tensorflow(fault):
    (stock, engine), report = fault("assertions")
    assert_close([engine[0], engine[2]], [stock[0], stock[2]])
    assert engine[0][1] == engine[2][0]  # a step that an assertion stops changes nothing
    assert engine[1] == stock[1] and len(set(stock[1])) == 4
    step = max(report["graphs"], key=lambda graph: graph["numeric"])
    assert step["numeric_on_engine"] == step["numeric"] and len(step["clusters"]) == 1, step["host"]


def test_an_interrupt_ends_the_loop_and_not_the_session(fault):
    assert fault("interrupted")[0] == [True, True, True]


def test_an_exception_of_python_reaches_the_caller(fault):
    (stock, engine), _ = fault("exception_in_a_py_func")
    assert engine[1][0] == stock[1][0] and "the reader lost its file" in engine[1][1]
    assert_close([engine[0], engine[2]], [stock[0], stock[2]])


def test_a_session_closed_in_the_middle_of_a_step(fault):
    kinds, alive, after = fault("closed_while_running")[0]
    assert kinds in (["RuntimeError"], ["CancelledError"]) and not alive and after == 0


def test_a_process_that_forks_trains_on(fault):
    ends, falls = fault("forked")[0]
    assert ends == [8, 8, 8] and falls
