"""Keras' augmentation and TensorFlow's generators on the engine beside stock TensorFlow."""

import json
from pathlib import Path

import numpy as np
from tensorflow_adapter import run_python

SCRIPT = Path(__file__).parent / "door" / "augmented.py"


def test_pictures_that_layers_change_anew_and_draws_of_a_generator_equal_stock_tensorflow(tmp_path):
    runs = {}
    for engine in ("tensorflow", "cairn"):
        report = tmp_path / f"{engine}.json"
        done = run_python([SCRIPT], engine, CAIRN_REPORT=str(report))
        assert done.returncode == 0, done.stderr[-3000:]
        runs[engine] = json.loads(done.stdout.splitlines()[-1])
    np.testing.assert_allclose(runs["cairn"]["losses"], runs["tensorflow"]["losses"], rtol=1e-5)
    (found, state), (stock, stock_state) = runs["cairn"]["draws"], runs["tensorflow"]["draws"]
    assert state == stock_state
    for ours, theirs in zip(found, stock):
        np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-5)
        assert ours[1:] == theirs[1:]
    graphs = json.loads((tmp_path / "cairn.json").read_text())["graphs"]
    left = {each["op"] for graph in graphs for each in graph["host"]}
    assert not left & {"ImageProjectiveTransformV3", "RngReadAndSkip", "StatelessRandomUniformFullIntV2"}, left
