"""Clusters in doubt (f64, complex numbers, linear algebra, conditionals in loops): on the engine, on TensorFlow's kernels, or in turns, and equal each time;
and clusters in loops that stay with TensorFlow."""

from pathlib import Path

import pytest
from test_tensorflow_door import assert_close, case  # noqa: F401

DOUBTS = Path(__file__).parent / "door" / "doubts.py"
TOLERANCE = {"doubles": 1e-12, "complex_doubles": 1e-12, "complex_floats": 1e-5, "complex_weights": 1e-5, "solved": 1e-5, "branches_in_loops": 1e-5}


def trained(case, name, kind="references", steps="20", **environment):  # noqa: F811
    ((stock, ran), (engine, counted)), report = case("doubts", name, kind, steps, script=DOUBTS, **environment)
    assert_close(engine, stock, TOLERANCE[name])
    assert ran == counted == int(steps)  # no update is lost or made twice
    assert not report["run_by_tensorflow"]
    return report


# Complex numbers of 16 bytes are moved by `reference`.
NAMES = [pytest.param(name, marks=[pytest.mark.reference] if name == "complex_doubles" else []) for name in TOLERANCE]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("rule", ["engine", "tensorflow"])
def test_a_cluster_in_doubt_may_run_on_either_side(case, name, rule):  # noqa: F811
    report = trained(case, name, CAIRN_IN_DOUBT=rule)
    step = max(report["graphs"], key=lambda graph: graph["numeric"])
    assert step["numeric_on_engine"] == step["numeric"] and report["in_doubt"] == {}


@pytest.mark.parametrize("kind", ["references", "resources"])
def test_sides_take_turns_and_then_one_has_the_cluster(case, kind):  # noqa: F811
    report = trained(case, "doubles", kind, "1500", CAIRN_IN_DOUBT="measured")
    assert len(report["in_doubt"]) == 1
    assert next(iter(report["in_doubt"].values())).split(":")[0] in ("engine", "tensorflow")


def test_few_steps_are_made_by_one_side(case):  # noqa: F811
    assert trained(case, "doubles", CAIRN_IN_DOUBT="measured", steps="3")["in_doubt"] == {}


def test_deterministic_runs_measure_nothing(case):  # noqa: F811
    report = trained(case, "doubles", "deterministic", CAIRN_IN_DOUBT="measured")
    step = max(report["graphs"], key=lambda graph: graph["numeric"])
    assert {kept["reason"] for kept in step["host"] if kept["op"] == "MatMul"} == {"computes in f64 or complex numbers, and nothing is measured"}
    assert report["in_doubt"] == {}


def test_a_wrong_rule_for_doubts_is_refused(case):  # noqa: F811
    with pytest.raises(AssertionError, match="CAIRN_IN_DOUBT should be engine, tensorflow or measured"):
        case("doubts", "doubles", script=DOUBTS, CAIRN_IN_DOUBT="often")


def test_a_loop_that_stays_with_tensorflow_has_clusters_inside(case):  # noqa: F811
    (stock, engine), report = case("loop_over_data", script=DOUBTS)
    assert_close(engine, stock, 1e-5)
    body = max(report["graphs"], key=lambda graph: graph["numeric_on_engine"])
    assert "body" in body["function"] and body["numeric_on_engine"] > 10
    assert {kept["op"] for kept in body["host"]} >= {"IteratorGetNext"}
