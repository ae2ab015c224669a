"""What the documentation says to type is typed: shell and Python blocks of README.md and docs/ run, file by file, in a
folder that holds the digits model as saved_model/, test images as test_images.npy, a TensorFlow 1 script as train.py, a project of several
files as my_project/ and a Caffe net as deploy.prototxt and net.caffemodel. So do the lines behind `$` of blocks marked `console`, and
the commands that READMEs of examples/ show. Blocks marked `text` are not run."""

import os
import re
import shutil
import subprocess

import numpy as np
import pytest
from conftest import BIN, ROOT

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)
CONSOLE = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
EXAMPLES = sorted((ROOT / "examples").glob("*/README.md"))
NEEDS_ANOTHER = ("--torch", "PYTHON", "--weights")  # an environment that has PyTorch, or its files
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
    shutil.copytree(ROOT / "examples/migrate/rnn_project", tmp_path / "my_project")
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


def pages_with_consoles():
    return [page for page in PAGES if CONSOLE.search(page.read_text())]


@pytest.mark.parametrize("page", pages_with_consoles(), ids=lambda page: str(page.relative_to(ROOT)))
def test_the_lines_behind_a_prompt_work(page, folder):
    shutil.copy(ROOT / "examples/pytorch/digits.py", folder / "net.py")
    lines = [line[2:] for block in CONSOLE.findall(page.read_text()) for line in block.splitlines() if line.startswith("$ ")]
    run_lines([line for line in lines if "mindspore" not in line], folder)
    for name in ("train.py", "fit.py", "project/train.py"):
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(folder / "net.py", folder / name)
    run_lines([line for line in lines if "mindspore" in line], folder)


@pytest.mark.long
@pytest.mark.parametrize("page", EXAMPLES, ids=lambda page: page.parent.name)
def test_the_commands_beside_the_examples_work(page, tmp_path):
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    run_lines(re.findall(r"^    ((?:\w+=\w+ )?cairn .*)$", page.read_text(), re.MULTILINE), tmp_path)


def run_lines(lines, folder):
    """Each by itself; differences that `cairn migrate` shows without writing them, and what is left to do, are its status 1."""
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    for line in lines:
        if any(word in line for word in NEEDS_ANOTHER):
            continue
        done = subprocess.run(["bash", "-c", line], cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode in ((0, 1) if line.startswith("cairn migrate") else (0,)), f"{line}\n{done.stdout}{done.stderr}"


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
