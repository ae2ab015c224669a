"""The examples in both modes: what they print agrees, and what they train learns."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[3] / "examples" / "mindspore"
RUNS = {"lenet": ("0.5", "--epochs", "1"), "resnet": ("1.1", "--epochs", "1"), "mobilenet_v2": ("1.10", "--epochs", "1"),
        "lstm_sentiment": ("1.1", "--epochs", "1"), "bert_tiny": ("1.10", "--steps", "40"), "gan": ("1.1", "--steps", "100"),
        "policy_gradient": ("1.10", "--updates", "5")}  # fmt: skip


def run(name, folder, mode, *words):
    folder.mkdir()
    level, *arguments = RUNS[name]
    command = [sys.executable, "-m", "cairn.ms", "--level", level, EXAMPLES / f"{name}.py", "--mode", mode, *(words or arguments)]
    made = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert made.returncode == 0, made.stderr[-3000:]
    assert "runs eagerly" not in made.stderr
    return [line for line in made.stdout.splitlines() if "time" not in line]


def numbers(line):
    return [float(each) for each in re.findall(r"-?\d+\.\d+(?:e-?\d+)?", line)]


@pytest.mark.parametrize("name", RUNS)
def test_both_modes_print_the_same(tmp_path, name):
    graph, eager = (run(name, tmp_path / mode, mode) for mode in ("graph", "pynative"))
    assert len(graph) == len(eager) and sum(len(numbers(line)) for line in graph) > 0
    for first, second in zip(graph, eager):
        np.testing.assert_allclose(numbers(first), numbers(second), rtol=2e-3, atol=2e-3, err_msg=f"{first}\n{second}")


def test_lenet_learns_the_digits(tmp_path):
    accuracy = numbers(run("lenet", tmp_path / "run", "graph", "--epochs", "15")[-1])[0]
    assert accuracy > 0.96


def test_the_language_model_learns_topics(tmp_path):
    assert numbers(run("bert_tiny", tmp_path / "run", "graph", "--steps", "120")[-1])[0] < 2.4
