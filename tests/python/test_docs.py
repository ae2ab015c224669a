"""What the documentation says to type is typed: shell and Python blocks of README.md and docs/ run, file by file, in a
folder that holds the digits model as saved_model/, test images as test_images.npy, a TensorFlow 1 script as train.py and a Caffe net as
deploy.prototxt and net.caffemodel. Blocks
marked `text` are not run."""

import os
import re
import shutil
import subprocess

import numpy as np
import pytest
from conftest import BIN, ROOT

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMANDS_OF_DEV = re.compile(r"^\s*\./dev ([\w-]+)", re.MULTILINE)


def pages_with_blocks():
    return [page for page in PAGES if BLOCK.search(page.read_text())]


@pytest.fixture
def folder(models, tmp_path):
    model = models("digits")
    shutil.copytree(model.saved_model, tmp_path / "saved_model")
    inputs, _ = next(iter(model.cases()))
    np.save(tmp_path / "test_images.npy", inputs["x"])
    shutil.copy(ROOT / "examples/digits/train_tf1.py", tmp_path / "train.py")
    for name in ("deploy.prototxt", "net.caffemodel"):
        shutil.copy((ROOT / "tests/frontends/data/caffe/tiny").with_suffix(name[name.rfind(".") :]), tmp_path / name)
    return tmp_path


@pytest.mark.parametrize("page", pages_with_blocks(), ids=lambda page: str(page.relative_to(ROOT)))
def test_the_commands_of_a_page_work(page, folder):
    for language, text in BLOCK.findall(page.read_text()):
        if language == "sh":
            run_shell(text, folder)
        else:
            run_python(text, folder)


def run_shell(text, folder):
    """Lines that start with ./dev are left to the tests of ./dev; here the command must only exist."""
    known = subprocess.check_output([ROOT / "dev", "help"], text=True)
    for command in COMMANDS_OF_DEV.findall(text):
        assert f"\n  {command} " in known, f"./dev {command} does not exist"
    kept = "\n".join(line for line in text.splitlines() if not COMMANDS_OF_DEV.match(line))
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-e"], input=kept, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{kept}\n{done.stdout}{done.stderr}"


def run_python(text, folder):
    prelude = "import numpy as np\nimages = np.load('test_images.npy')\n"
    done = subprocess.run([BIN / "python", "-c", prelude + text], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, f"{text}\n{done.stderr}"
