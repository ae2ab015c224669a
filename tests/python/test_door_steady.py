"""A steady training step allocates nothing of the door's or the engine's; tensors that leave are TensorFlow's own."""

import shutil
import subprocess
from pathlib import Path

import pytest
from test_tensorflow_door import case  # noqa: F401

DOOR = Path(__file__).parent / "door"


@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.parametrize("net", ["allocations", "allocations_with_convolutions", "allocations_with_rows_and_random_numbers"])
def test_a_steady_step_allocates_nothing(case, net, resource, tmp_path):  # noqa: F811
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    counter = tmp_path / "count_allocations.so"
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", counter, DOOR / "count_allocations.c"], check=True)
    found, report = case(net, resource, script=DOOR / "steady.py", LD_PRELOAD=str(counter))
    assert any(graph["clusters"] for graph in report["graphs"])
    assert found == 0
