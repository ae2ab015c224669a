"""Quantisation-aware training: TensorFlow's fake-quant operators on the engine beside stock TensorFlow, and the frozen result in integers."""

import json
from pathlib import Path

import numpy as np
import pytest
from tensorflow_adapter import run_python

import cairn

SCRIPT = Path(__file__).parent / "door" / "quantised_training.py"


def trained(kind, engine, path, **more):
    done = run_python([SCRIPT, kind, path], engine, **more)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("kind", ["keras", "tf1"])
def test_weights_and_bounds_train_as_on_stock_tensorflow(kind, tmp_path):
    report = tmp_path / "report.json"
    found = trained(kind, "cairn", tmp_path / "found.pb", CAIRN_REPORT=str(report))
    stock = trained(kind, "tensorflow", tmp_path / "stock.pb")
    graphs = json.loads(report.read_text())["graphs"]
    assert not [each["op"] for graph in graphs for each in graph["host"] if "FakeQuant" in each["op"]]
    assert stock["losses"][-1] < 0.95 * stock["losses"][0]
    np.testing.assert_allclose(found["losses"][0], stock["losses"][0], rtol=1e-5)
    np.testing.assert_allclose(found["losses"], stock["losses"], rtol=2e-3)  # a value between two steps may go to either
    for name, value in stock["values"].items():
        np.testing.assert_allclose(found["values"][name], value, atol=2e-3, err_msg=name)
    assert abs(stock["values"]["low"] + 1.5) > 0.05 and abs(stock["values"]["conv_low"][0] + 0.6) > 0.05  # bounds were trained


def test_the_frozen_graph_computes_in_integers(command, tmp_path):
    stock = trained("tf1", "tensorflow", tmp_path / "frozen.pb")
    model = cairn.load(str(tmp_path / "frozen.pb"))
    images = np.random.default_rng(5).normal(size=(64, 6, 6, 3)).astype("float32")[:16]
    logits = np.array(stock["logits"])
    found = next(iter(model.run({"images": images}).values()))
    assert np.abs(found - logits).max() < 0.02 * np.abs(logits).max()
    assert np.median(np.abs(found - logits)) < 1e-4 * np.abs(logits).max()
    told = command("cairn", "why", "frozen.pb").stdout
    assert any("cpu/integer" in line for line in told.splitlines() if not line.startswith("  not")), told
