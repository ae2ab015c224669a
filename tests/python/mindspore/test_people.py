"""Tests in the manner of those that people wrote for MindSpore 1.10 on CPU run unmodified under `cairn ms -m pytest`."""

import pathlib
import shutil
import subprocess
import sys

import pytest

PEOPLE = pathlib.Path(__file__).parent / "people"


@pytest.mark.parametrize("file", sorted(each.name for each in PEOPLE.glob("test_*.py")))
def test_a_file_passes(file, tmp_path):
    shutil.copy(PEOPLE / file, tmp_path)  # apart from the settings of this folder
    command = [pathlib.Path(sys.executable).parent / "cairn", "ms", "-m", "pytest", "-q", "-W", "ignore", "-p", "no:cacheprovider", file]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert " passed" in ran.stdout and " failed" not in ran.stdout
