"""LeNet on scikit-learn's digits, trained by two and four ranks in every style of script, is as accurate as trained by one process; so are the
other networks."""

import re
import subprocess

import pytest
import rank_jobs
import tensorflow_adapter
from conftest import BIN, ROOT

tensorflow_adapter.use_packages()

SCRIPTS = ROOT / "tests" / "python" / "distributed"
ALONE = {}


def launch(ranks, *words):
    """The accuracy that each rank tells of its network."""
    command = [BIN / "cairn", "launch", "-n", ranks, "--timeout", 240, *words]
    done = subprocess.run(list(map(str, command)), env=tensorflow_adapter.environment("cairn"), capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    found = [float(each) for each in re.findall(r"^\[\d\] accuracy (\S+)$", done.stdout, re.M)]
    assert len(found) == ranks, done.stdout
    return found


def trained(style, ranks, folder):
    if style == "horovod":
        words = [BIN / "cairn", "migrate", SCRIPTS / "digits_horovod.py", "-o", folder / "migrated"]
        subprocess.run(list(map(str, words)), check=True, capture_output=True)
        return launch(ranks, "cairn", "tf1", folder / "migrated" / "digits_horovod.py")
    if style.startswith("mindspore"):
        return [float(out.split()[-1]) for out in rank_jobs.run("digits.py", ranks, style.split()[1])]
    return launch(ranks, SCRIPTS / "digits.py", style, folder / "model")


USUAL = [("keras", 2), ("mindspore graph", 2)]
STYLES = ("feed", "estimator", "keras", "horovod", "mindspore graph", "mindspore pynative")


@pytest.mark.parametrize(
    ("style", "ranks"),
    [pytest.param(style, ranks, marks=[] if (style, ranks) in USUAL else pytest.mark.long) for style in STYLES for ranks in (2, 4)],
)
def test_ranks_become_as_accurate_as_one_process(style, ranks, tmp_path):
    if style not in ALONE:
        (ALONE[style],) = trained(style, 1, tmp_path / "alone")
    found = trained(style, ranks, tmp_path)
    assert ALONE[style] > 0.9 and set(found) == {found[0]}
    assert found[0] > ALONE[style] - 0.015  # 5 of 360 images


@pytest.mark.long
@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("net", ["lenet", "resnet", "bert"])
def test_every_network_becomes_as_accurate(net, ranks):
    if net not in ALONE:
        (ALONE[net],) = launch(1, SCRIPTS / "accuracy.py", net)
    found = launch(ranks, SCRIPTS / "accuracy.py", net)
    assert ALONE[net] > 0.9 and set(found) == {found[0]}
    assert found[0] > ALONE[net] - 0.05  # 6 of 128; batch norms see parts of a batch
