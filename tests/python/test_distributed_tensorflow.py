"""TensorFlow scripts as several ranks: the same training as one process with the whole batch, on collectives of every kind, and
what becomes of a job when a rank fails. The scripts are in tests/python/distributed."""

import os
import signal
import subprocess

import numpy as np
import pytest
import tensorflow_adapter
from conftest import BIN, ROOT

tensorflow_adapter.use_packages()

SCRIPTS = ROOT / "tests" / "python" / "distributed"
ALONE = {}  # what one process makes, by its words


def launch(ranks, *words, options=(), timeout=280, **more):
    command = [str(BIN / "cairn"), "launch", "-n", str(ranks), "--grace", "15", *map(str, options), *map(str, words)]
    environment = tensorflow_adapter.environment("cairn", **more)
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout)


def train(folder, ranks, *words, options=(), expect=0, **more):
    """What each rank saved."""
    done = launch(ranks, SCRIPTS / "train.py", *words[:2], folder / "out", *words[2:], options=options, **more)
    assert done.returncode == expect, done.stderr[-3000:]
    return done if expect else [dict(np.load(folder / f"out.{rank}.npz")) for rank in range(ranks)]


def alone(tmp_path_factory, *words):
    if words not in ALONE:
        (ALONE[words],) = train(tmp_path_factory.mktemp("alone"), 1, *words)
    return ALONE[words]


def check_equal(ranks, whole):
    """Equal weights on all ranks; the first change, which is the gradient times the rate, is that of one process within 1e-5 of
    its largest element, beside the rounding of the weights."""
    weights = [name for name in whole if name != "losses"]
    for name in weights:
        for other in ranks[1:]:
            np.testing.assert_array_equal(other[name], ranks[0][name])
    np.testing.assert_allclose(np.mean([rank["losses"] for rank in ranks], 0), whole["losses"], rtol=2e-5)
    wide = {name: value.astype(np.float64) for name, value in whole.items()}
    largest = max(np.abs(wide[name] - wide["start" + name[5:]]).max() for name in weights if name.startswith("first/"))
    firsts = [name.removeprefix("first/") for name in weights if name.startswith("first/")]
    assert firsts
    for i in firsts:
        start, change = wide[f"start/{i}"], wide[f"first/{i}"] - wide[f"start/{i}"]
        rounding = float(np.spacing(np.float32(np.abs(start).max())))
        ours = ranks[0][f"first/{i}"] - start
        np.testing.assert_allclose(ours, change, atol=1e-5 * np.abs(change).max() + 1e-7 * largest + rounding, rtol=0)
        np.testing.assert_allclose(ranks[0][f"last/{i}"], wide[f"last/{i}"], atol=1e-4 * np.abs(change).max() + 2e-6, rtol=0)


CASES = [("lenet", "feed"), ("resnet", "estimator"), ("bert", "keras"), ("lenet", "keras"), ("resnet", "feed"), ("bert", "feed"),
         ("lenet", "estimator"), ("bert", "estimator"), ("resnet", "keras")]  # fmt: skip


@pytest.mark.parametrize(
    ("net", "style", "ranks"),
    [pytest.param(net, style, ranks, marks=[] if i < 3 and ranks == 2 else pytest.mark.long)
     for i, (net, style) in enumerate(CASES) for ranks in (2, 4)],
)  # fmt: skip
def test_ranks_train_as_one_process_with_the_whole_batch(net, style, ranks, tmp_path, tmp_path_factory):
    whole = alone(tmp_path_factory, net, style, "--parts", str(ranks if net == "resnet" else 1))
    check_equal(train(tmp_path, ranks, net, style), whole)
