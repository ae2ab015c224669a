"""Tests of the MindSpore door run in one process, in which cairn.ms answers to `import mindspore`."""

import os
import pathlib
import subprocess

import cairn.ms  # noqa: F401, I001
import numpy as np
import pytest
from cairn.ms import level, modes

collect_ignore = ["people"]  # test_people.py runs them as scripts of other people are run


@pytest.fixture(autouse=True)
def settings():
    """Each test begins at level 1.10, in eager mode, with numbers of one seed."""
    modes.mode = modes.PYNATIVE
    np.random.seed(0)
    yield
    level.select("1.10")


@pytest.fixture
def graph_mode():
    """What is called is captured."""
    modes.mode = modes.GRAPH


@pytest.fixture
def mindspore_itself(tmp_path_factory):
    """Runs a script by MindSpore's own Python, in a folder of its own, for it leaves files behind."""
    python = pathlib.Path(__file__).resolve().parents[3] / ".venv-mindspore" / "bin" / "python"
    if not python.exists():
        pytest.skip("MindSpore is not installed in .venv-mindspore")
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    folder = tmp_path_factory.mktemp("mindspore")
    return lambda *words, check=True: subprocess.run([python, *words], check=check, cwd=folder, env=environment, capture_output=True, text=True)
