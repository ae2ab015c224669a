"""The tests of onnx.backend.test: those that pass today pass, those that fail are listed with the reason. Runs in .venv-peers."""

import os
import sys

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "bench"))
import onnx_nodes  # noqa: E402

FAILURES = ROOT / "tests" / "python" / "peers" / "onnx_failures.txt"


@pytest.fixture(scope="module")
def results():
    return onnx_nodes.run_all([key for key, why in onnx_nodes.pinned().items() if not why], "cairn")


def failures():
    """{(group, name): reason} of the tests that are expected to fail."""
    lines = (line.split(maxsplit=2) for line in FAILURES.read_text().splitlines())
    return {(group, name): why for group, name, why in lines}


def test_the_tests_of_onnx_that_passed_still_pass(results):
    if os.environ.get("CAIRN_TEST_UPDATE") == "1":
        lines = [f"{group} {name} {why}\n" for (group, name), why in sorted(results.items()) if why]
        FAILURES.write_text("".join(lines))
    expected = failures()
    fallen = {name: why for (group, name), why in results.items() if why and (group, name) not in expected}
    assert not fallen


def test_no_test_of_onnx_is_listed_as_failing_that_passes(results):
    risen = [name for (group, name) in failures() if not results.get((group, name), "is not in the list")]
    assert not risen, "take them off onnx_failures.txt (CAIRN_TEST_UPDATE=1)"


def test_every_skipped_test_has_a_reason():
    assert all(len(why.split()) > 2 for why in onnx_nodes.pinned().values() if why)
