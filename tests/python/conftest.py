"""What every Python test shares: shards, long tests, the test models and how outputs are compared."""

import json
import os
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
BIN = ROOT / ".venv" / "bin"
for choice in ("CAIRN_NEW_SIZES", "CAIRN_IN_DOUBT"):
    os.environ.setdefault(choice, "engine")  # what runs where must not depend on measured times


def pytest_collection_modifyitems(config, items):
    index, count = map(int, os.environ.get("CAIRN_TEST_SHARD", "1/1").split("/"))
    everything = os.environ.get("CAIRN_TEST_ALL") == "1"

    def wanted(item):
        mine = zlib.crc32(item.nodeid.encode()) % count == index - 1
        return mine and (everything or item.get_closest_marker("long") is None)

    config.hook.pytest_deselected(items=[item for item in items if not wanted(item)])
    items[:] = [item for item in items if wanted(item)]


class TestModel:
    """One folder written by tests/models/make_models.py."""

    __test__ = False

    def __init__(self, folder):
        self.folder = folder
        self.saved_model = folder / "saved_model"
        self.frozen = folder / "frozen.pb"
        self.info = json.loads((folder / "info.json").read_text())

    def cases(self):
        """(inputs, expected outputs) by the signature's names."""
        for file in sorted(self.folder.glob("inputs-*.npz")):
            expected = file.with_name(file.name.replace("inputs", "expected"))
            yield dict(np.load(file)), dict(np.load(expected))

    def spread(self, output):
        return self.info["spread"][output]


# Their steps have kernels of the fast engine. Every process that a test starts adds those that fall to `reference` to one file.
WATCHED = ("test_networks", "test_equality", "test_kernels", "test_tensorflow_door", "test_door_", "test_examples_tensorflow", "test_tf1",
           "test_npu_optimizers")  # fmt: skip


# What would make a process of a test a rank of somebody's job, or change how it waits and prints.
FOREIGN = ("CAIRN_JOB", "CAIRN_RESTART", "RANK_", "DEVICE_ID", "JOB_ID", "MINDSPORE_HCCL_", "HCCL_", "CM_", "OMPI_", "PMIX_", "FUSION_TENSOR_SIZE",
           "PYTHONUNBUFFERED")  # fmt: skip
WATCHED_FILES = ("CAIRN_REFERENCE_STEPS", "CAIRN_REFUSED_REPLACEMENTS")


def pytest_configure(config):
    for name in [name for name in os.environ if name.startswith(FOREIGN)]:
        del os.environ[name]
    for name in WATCHED_FILES:
        handle, os.environ[name] = tempfile.mkstemp(prefix=name.lower() + "_")
        os.close(handle)


def pytest_unconfigure(config):
    for name in WATCHED_FILES:
        Path(os.environ.pop(name)).unlink(missing_ok=True)


@pytest.fixture(autouse=True)
def no_replacement_is_refused():
    """A rule or pass whose replacement an op refuses is at fault."""
    file = Path(os.environ["CAIRN_REFUSED_REPLACEMENTS"])
    before = file.stat().st_size
    yield
    with file.open() as refused:
        refused.seek(before)
        refused = sorted(set(refused))
    assert not refused, "replacements that an op refused (rule, op, why):\n" + "".join(refused)


@pytest.fixture(autouse=True)
def no_step_falls_to_reference(request):
    """Unless tests/reference_steps.tsv has it, or the test asks for the engine."""
    if not request.module.__name__.split(".")[-1].startswith(WATCHED) or request.node.get_closest_marker("reference"):
        yield
        return
    file = Path(os.environ["CAIRN_REFERENCE_STEPS"])
    before = file.stat().st_size
    yield
    rows = [line.split("\t") for line in (ROOT / "tests" / "reference_steps.tsv").read_text().splitlines() if line[0] != "#"]
    operators, reasons = {row[0] for row in rows}, {row[1] for row in rows if row[0] == "*"}
    with file.open() as steps:
        steps.seek(before)
        steps = [line.rstrip("\n").split("\t") for line in steps]
    fallen = sorted({"  ".join(step) for step in steps if step[0] not in operators and step[3] not in reasons})
    assert not fallen, "steps on the reference engine (operator, types, node, reason):\n" + "\n".join(fallen)


@pytest.fixture(scope="session")
def models():
    """models(name) -> TestModel."""
    folder = os.environ.get("CAIRN_TEST_MODELS")
    if not folder:
        folder = subprocess.check_output([sys.executable, ROOT / "tools/dev/models.py"], text=True).strip()
    return lambda name: TestModel(Path(folder) / name)


@pytest.fixture
def command(tmp_path):
    """command("atc", "--help") runs one of Cairn's commands in an empty folder."""

    def run(name, *arguments, **options):
        words = [str(BIN / name), *map(str, arguments)]
        return subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=300, **options)

    return run


def spread_error(found, expected):
    """Largest difference as a share of the spread of `expected`: the root mean square over its elements of the standard
    deviation over the batch."""
    spread = np.sqrt(np.var(np.asarray(expected, np.float64), axis=0).mean())
    return np.abs(np.asarray(found, np.float64) - expected).max() / spread
