"""What training through the door costs beside stock TensorFlow: time and memory of a step, and of a run with next to nothing to do."""

import json
import os

import pytest
from tensorflow_adapter import ROOT, run_python

QUIET = os.environ.get("CAIRN_TEST_ALL") == "1"  # else other programs on the machine take time from one side by chance
ABOVE = 50  # microseconds that a run may take longer
NOISE = 1.02  # of the peak of one and the same program, between runs
LONG = [pytest.param(name, marks=pytest.mark.long) for name in ("lenet", "resnet32", "resnet224", "bert")]


def rows(tmp_path, script, *arguments):
    file = tmp_path / "rows.json"
    done = run_python([ROOT / "bench" / script, *arguments, "--json", file], "cairn", timeout=1800)
    assert done.returncode == 0, done.stderr[-3000:]
    print(done.stdout)
    return json.loads(file.read_text())


@pytest.mark.parametrize("name", ["mlp", *LONG])
def test_a_step_takes_no_more_memory_and_no_more_time(name, tmp_path):
    row = rows(tmp_path, "training_steps.py", name, "--rounds", 5 if QUIET else 1)["rows"][0]
    here, stock = row["first_losses"]
    assert here == pytest.approx(stock, rel=1e-4)  # it is the same step
    here, stock = row["peak_mib"]
    assert here <= NOISE * stock
    assert min(row["ratio"], row["processor_ratio"]) <= 1 or not QUIET


@pytest.mark.long  # a time
def test_a_run_with_nothing_to_do_costs_little_more(tmp_path):
    found = rows(tmp_path, "door_fixed_cost.py", "--runs", 1000)
    assert [row["variables"] for row in found] == ["reference", "resource"]
    assert max(row["above"] for row in found) <= ABOVE
