"""Conditionals and loops of TensorFlow 1 in steps that train: values and variables as on stock TensorFlow, inside clusters."""

from pathlib import Path

import numpy as np
import pytest
from test_tensorflow_door import case, flat, on_engine  # noqa: F401

CONTROL = Path(__file__).parent / "door" / "control.py"


@pytest.fixture
def control(case):  # noqa: F811
    return lambda name: case(name, script=CONTROL)


def assert_equal(engine, stock):
    """Values and variables, what is infinite or no number included."""
    for found, expected in zip([*engine[0], *engine[1]], [*stock[0], *stock[1]], strict=True):
        largest = max([abs(value) for value in flat(expected) if np.isfinite(value)], default=0)
        np.testing.assert_allclose(flat(found), flat(expected), rtol=0, atol=1e-5 * max(1.0, largest))


@pytest.mark.parametrize(
    "name",
    [
        "updates_in_a_branch", "batch_norm_by_a_placeholder", "a_switch_that_is_waited_for", "slopes_in_a_branch", "dropout_in_a_branch",
        "branches_in_branches", "gradients_that_accumulate",
    ],  # fmt: skip
)
def test_a_conditional_is_inside_a_cluster(control, name):
    (stock, engine), report = control(name)
    assert np.array(stock[0][0]).size and len(stock[1]) > 0
    assert_equal(engine, stock)
    step = on_engine(report, least=0.95, clusters=1)
    assert any("Merge" in cluster["ops"] or "Switch" in cluster["ops"] for cluster in step["clusters"])


@pytest.mark.parametrize("name", ["loop_and_its_gradient", "loops_in_loops", "map_and_scan", "recurrent_network", "statistics_behind_a_loop", "loop_from_a_variable"])
def test_a_loop_and_its_gradient_are_inside_a_cluster(control, name):
    (stock, engine), report = control(name)
    assert_equal(engine, stock)
    step = on_engine(report, least=0.95, clusters=1)
    assert any("Enter" in cluster["ops"] for cluster in step["clusters"])


def test_a_count_with_a_new_axis_is_a_shape(control):
    (stock, engine), report = control("new_axis_of_a_number")
    assert_equal(engine, stock)
    on_engine(report, least=0.95, clusters=1)


@pytest.mark.reference
def test_kernels_have_gradients_where_only_the_run_tells_the_images_sizes(control):
    (stock, engine), report = control("convolutions_of_crops")
    assert_equal(engine, stock)
    on_engine(report, least=0.95)


def test_a_conditional_with_a_host_operator_stays_whole(control):
    (stock, engine), report = control("a_branch_with_a_host_operator")
    assert_equal(engine, stock)
    step = max(report["graphs"], key=lambda graph: graph["numeric_on_engine"])
    assert any("stands in TF1 control flow with" in each["reason"] for each in step["host"])


def test_a_conditional_with_a_host_operator_keeps_no_other_of_its_predicate_there(control):
    (stock, engine), report = control("conditionals_of_one_predicate")
    assert_equal(engine, stock)
    step = max(report["graphs"], key=lambda graph: graph["numeric_on_engine"])
    ops = [op for cluster in step["clusters"] for op in cluster["ops"]]
    assert "Merge" in ops and {"Tanh", "Sin"} <= set(ops), step["host"]
    assert any("stands in TF1 control flow with" in each["reason"] for each in step["host"])


def test_a_first_value_may_depend_on_whether_a_variable_has_one(control):
    (stock, engine), report = control("first_values_of_averages")
    assert_equal(engine, stock)
    assert any("may have no value" in each["reason"] for graph in report["graphs"] for each in graph["host"])
