"""The command, what an import brings, settings, refusals."""

import os
import subprocess
import sys

import mindspore
import numpy as np
import pytest
from mindspore import Tensor, context, nn

from cairn.ms import Unsupported, level, modes


def run(*arguments, folder, code=0, **environment):
    environment = {key: value for key, value in {**os.environ, **environment}.items() if key != "CAIRN_TEST_SHARD"}
    words = [sys.executable, "-m", "cairn.ms", *map(str, arguments)]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


def test_a_script_runs_with_its_arguments(tmp_path):
    (tmp_path / "helper.py").write_text("x = 5\n")
    (tmp_path / "train.py").write_text(
        "import sys, os, helper, mindspore\nprint(sys.argv, helper.x, mindspore.Tensor([1.0]).dtype, os.environ['RANK_SIZE'])\n"
    )
    assert run("train.py", "--epochs", 1, folder=tmp_path) == "['train.py', '--epochs', '1'] 5 Float32 1\n"
    assert "Float64" in run("--level", "0.5", "train.py", folder=tmp_path)
    assert "Float64" in run("train.py", folder=tmp_path, CAIRN_MS_LEVEL="1.1")
    assert "Float64" in run("--level=1.1", "-m", "train", folder=tmp_path)


def test_pytest_runs_as_a_module(tmp_path):
    (tmp_path / "test_it.py").write_text("from mindspore import nn\ndef test_cell():\n    assert nn.SequentialCell\n")
    assert "1 passed" in run("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py", folder=tmp_path)


@pytest.mark.parametrize("arguments, sentence", [
    ((), "a script or -m MODULE is needed"), (("missing.py",), "missing.py: no such file"), (("-m",), "-m needs a module"),
    (("--levle", "1"), "no option is called --levle"), (("--level", "3.0", "x.py"), "expected one of 0.5, 1.1, 1.10"),
])  # fmt: skip
def test_faults_of_the_command_line(arguments, sentence, tmp_path):
    said = run(*arguments, folder=tmp_path, code=1)
    assert said.startswith("error: ms: ") and sentence in said and "Traceback" not in said


def test_help(tmp_path):
    said = run("--help", folder=tmp_path)
    assert "Examples:" in said and max(map(len, said.splitlines())) <= 100


@pytest.mark.parametrize("option", ["--help", "--support"])
@pytest.mark.parametrize("lost", ["", "/dev/full", "closed"])
def test_output_that_is_lost_is_an_error(option, lost, tmp_path):
    """Given to a reader that has left, to a full disk, to nobody."""
    redirected = {"": "| true; exit ${PIPESTATUS[0]}", "/dev/full": "> /dev/full", "closed": ">&-"}[lost]
    line = f"{sys.executable} -m cairn.ms {option} {redirected}"
    done = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr, done.stderr
    assert done.returncode == 1 or (lost == "" and option == "--help"), done.stderr


def test_another_mindspore_is_not_shadowed(tmp_path):
    (tmp_path / "mindspore.py").write_text("")
    (tmp_path / "a.py").write_text(
        "import sys\nsys.path.insert(0, '.')\nimport mindspore, cairn\ntry:\n    import cairn.ms\nexcept ImportError as e:\n    print(e)\n"
    )
    done = subprocess.run([sys.executable, "a.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert "imported already" in done.stdout, done.stderr


@pytest.mark.parametrize("chosen, mode", [("0.5", 1), ("1.1", 1), ("1.10", 0)])
def test_the_default_mode_by_level(chosen, mode):
    level.select(chosen)
    assert context.get_context("mode") == mode


def test_context(capsys):
    context.set_context(mode=context.GRAPH_MODE, device_target="Ascend", save_graphs=True, device_id=3)
    assert modes.mode == modes.GRAPH and context.get_context("device_target") == "Ascend"
    assert context.get_context("save_graphs") is True and context.get_context("device_id") == 3
    context.set_context(device_target="Ascend")
    assert capsys.readouterr().err.count("Ascend") <= 1  # told once in a process
    with pytest.raises(ValueError):
        context.set_context(nothing=1)
    with pytest.raises(ValueError):
        context.set_context(device_target="TPU")
    with pytest.raises(ValueError):
        context.set_context(mode=3)
    with pytest.raises(ValueError):
        context.get_context("nothing")


def test_old_keys_are_ignored_with_one_warning():
    with pytest.warns(UserWarning, match="enable_task_sink"):
        context.set_context(enable_task_sink=True)


def test_parallel_context():
    context.set_auto_parallel_context(device_num=4, mirror_mean=True, parallel_mode=context.ParallelMode.DATA_PARALLEL)
    assert context.get_auto_parallel_context("gradients_mean") is True
    context.reset_auto_parallel_context()
    assert context.get_auto_parallel_context("device_num") == 1
    with pytest.raises(ValueError):
        context.set_auto_parallel_context(parallel_mode="other")


def test_names_that_are_not_there_are_refused_with_the_nearest():
    with pytest.raises(Unsupported, match=r"mindspore.nn.SequentialCel is not supported; the nearest that works is .*SequentialCell"):
        nn.SequentialCel
    assert not hasattr(mindspore, "nothing_like_this")
    with pytest.raises(ImportError, match="mindspore.nn.CelList is not supported; the nearest that works is"):
        from mindspore.nn import CelList  # noqa: F401


def test_objects_of_the_parser_are_dumped(tmp_path):
    from mindspore._extends.parse import dump_obj, load_obj

    assert load_obj(tmp_path / dump_obj((1, "two", [3.0]), tmp_path)) == (1, "two", [3.0])


def test_seeds():
    mindspore.set_seed(3)
    assert mindspore.get_seed() == 3
    first = np.random.rand()
    mindspore.set_seed(3)
    assert np.random.rand() == first
    for seed, error in ((-1, ValueError), (1.0, TypeError), (True, TypeError)):
        with pytest.raises(error):
            mindspore.set_seed(seed)


@pytest.mark.parametrize("made, text", [
    (Tensor(1.5), "Tensor(shape=[], dtype=Float32, value= 1.5)"),
    (Tensor([1, 2]), "Tensor(shape=[2], dtype=Int64, value= [1, 2])"),
    (Tensor([1.0, 2.0]), "Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  2.00000000e+00])"),
])  # fmt: skip
def test_text_of_tensors(made, text):
    assert repr(made) == text
