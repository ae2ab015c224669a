"""Keras' mixed precision policies on the engine beside stock TensorFlow."""

import json
from pathlib import Path

import numpy as np
import pytest
from tensorflow_adapter import run_python

SCRIPT = Path(__file__).parent / "door" / "keras_policies.py"


def run(policy, seeds, engine):
    done = run_python([SCRIPT, policy, seeds], engine)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("policy, unit", [("mixed_float16", 2**-11), ("mixed_bfloat16", 2**-8)])
def test_losses_follow_stock_tensorflow_within_the_spread_of_seeds_and_gradients_are_rounded_once(policy, unit):
    found, stock = run(policy, 1, "cairn"), run(policy, 4, "tensorflow")
    losses = np.array(stock["losses"])
    assert (np.abs(found["losses"][0] - losses[0]) < losses.std(axis=0)).all(), (found["losses"], losses)
    assert found["losses"][0][-1] < 0.8 * found["losses"][0][0]
    for name in ("kernel", "bias"):
        gradient, exact = np.array(found["gradients"][name])
        error = np.abs(gradient - exact).max()
        floor = 2**-24 if policy == "mixed_float16" else 1e-9  # of denormals, and of sums in f32
        assert (np.abs(gradient - exact) <= 1.01 * unit * np.abs(exact) + floor).all()
        gradient, exact = np.array(stock["gradients"][name])
        assert error <= 1.1 * np.abs(gradient - exact).max()
