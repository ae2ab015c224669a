"""How much of a real training step runs on the engine: by the report of clusters, and by TensorFlow's own list of what it ran."""

import json
from pathlib import Path

import pytest
from tensorflow_adapter import EXAMPLES, run_python

TRACED = Path(__file__).parent / "door" / "traced.py"
# What TensorFlow may still run in a step: ends of the graph, variables, input, the odd number for the host.
ALLOWED = {
    "CairnCluster",
    "Const",
    "IteratorGetNext",
    "MakeIterator",
    "NoOp",
    "OneShotIterator",
    "PrintV2",
    "StringFormat",
    "VarHandleOp",
    "VariableV2",
    "IteratorV2",
    "_Arg",
    "_Retval",
    "_SOURCE",
}
MOST_CLUSTERS, LEAST_SHARE = 3, 0.95


def training_step(report):
    """Of the graphs that write variables the one with most numbers in it."""
    graphs = [graph for graph in report["graphs"] if graph["clusters"]]
    return max(graphs, key=lambda graph: graph["numeric"])


def traced(name, tmp_path, *arguments):
    report, times = tmp_path / "report.json", tmp_path / "times.json"
    command = [TRACED, times, EXAMPLES / f"{name}.py", "--steps=4", "--output", tmp_path / "out", *arguments]
    done = run_python(command, "cairn", CAIRN_REPORT=str(report))
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(report.read_text()), json.loads(times.read_text())


@pytest.mark.parametrize("name", ["lenet_session", "bert_finetune", "slim_resnet_v2"])
def test_a_training_step_is_on_the_engine(name, tmp_path):
    report, times = traced(name, tmp_path)
    assert not report["run_by_tensorflow"]
    step = training_step(report)
    share = step["numeric_on_engine"] / step["numeric"]
    clusters = sum(op == "CairnCluster" for op, _, _ in times["nodes"])
    engine = sum(micros for op, _, micros in times["nodes"] if op == "CairnCluster")
    print(f"{name}: {share:.1%} of numeric nodes, {engine / times['wall']:.0%} of the traced run, {clusters} clusters")
    assert share >= LEAST_SHARE, step["host"]
    assert 1 <= len(step["clusters"]) <= MOST_CLUSTERS
    assert 1 <= clusters <= MOST_CLUSTERS
    texts = {each["op"] for each in step["host"] if "DT_STRING" in each["reason"]}  # a conditional that would print
    assert {op for op, _, _ in times["nodes"]} <= ALLOWED | texts
