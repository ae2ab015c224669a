"""What the engine refuses in a run, and what waits inside one: numbers and variables as on stock TensorFlow."""

from pathlib import Path

import pytest
from test_tensorflow_door import assert_close, case  # noqa: F401

REFUSALS = Path(__file__).parent / "door" / "refusals.py"


@pytest.fixture
def refusal(case):  # noqa: F811
    return lambda *words: case(*words, script=REFUSALS)


def test_a_cluster_is_cut_again_around_what_the_engine_refuses(refusal):
    found, report = refusal("sizes_of_the_run", "split")
    for stock, engine in found:
        assert_close(engine, stock, 1e-5)
    refused = {each["cluster"] for each in report["run_by_tensorflow"]}
    assert refused and all(each["nodes"] for each in report["run_by_tensorflow"])
    kept = [cluster["ops"] for graph in report["graphs"] for cluster in graph["clusters"] if cluster["name"] not in refused]
    assert any("MatMul" in ops for ops in kept) and any("RandomUniform" in ops for ops in kept)


def test_the_run_tells_what_a_broadcast_adds_up(refusal):
    found, report = refusal("sizes_of_the_run", "masked")
    for stock, engine in found:
        assert_close(engine, stock, 1e-5)
    assert not report["run_by_tensorflow"]
    assert all(graph["numeric_on_engine"] == graph["numeric"] for graph in report["graphs"] if graph["numeric"] > 20)


def test_one_run_puts_into_a_queue_and_takes_out(refusal):
    (stock, engine), report = refusal("a_queue_between_two_parts")
    assert_close(engine, stock, 1e-5)
    assert max(len(graph["clusters"]) for graph in report["graphs"]) == 2
