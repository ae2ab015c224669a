"""The tests of people/ under MindSpore 2.10 itself: what differs from it is in people_drifts.txt, with the reason, and nothing else."""

import pathlib
import shutil
import xml.etree.ElementTree

import pytest

HERE = pathlib.Path(__file__).parent
LATER = "# Not compared with 2.10 yet: "
WAITING = {name for line in (HERE / "people_drifts.txt").read_text().splitlines() if line.startswith(LATER) for name in line[len(LATER) :].split()}
FILES = sorted(each.name for each in (HERE / "people").glob("test_*.py") if each.name not in WAITING)


def drifts(file):
    """{name of a test of the file: why MindSpore 2.10 does otherwise}"""
    rows = (line.split(" | ") for line in (HERE / "people_drifts.txt").read_text().splitlines() if not line.startswith("#"))
    return {name: reason for of, name, reason in rows if of == file}


def failed(report):
    """Names of the tests of a report of pytest that failed, and how many there are."""
    cases = list(xml.etree.ElementTree.parse(report).iter("testcase"))
    bad = {each.get("name") for each in cases if each.find("failure") is not None or each.find("error") is not None}
    return bad, len(cases)


@pytest.mark.long
@pytest.mark.parametrize("file", FILES)
def test_mindspore_itself_agrees(file, tmp_path, mindspore_itself):
    shutil.copy(HERE / "people" / file, tmp_path)
    shutil.copy(HERE / "mindspore_elder.py", tmp_path / "conftest.py")
    report = tmp_path / "report.xml"
    words = ("-m", "pytest", "-q", "-W", "ignore", "-p", "no:cacheprovider", "--rootdir", tmp_path, f"--junitxml={report}", tmp_path / file)
    ran = mindspore_itself(*words, check=False)
    assert report.exists(), ran.stderr
    bad, count = failed(report)
    assert count > 5 and bad == set(drifts(file))


def test_each_drift_names_a_test_and_a_reason():
    lines = [line for line in (HERE / "people_drifts.txt").read_text().splitlines() if not line.startswith("#")]
    for line in lines:
        file, name, reason = line.split(" | ")
        assert f"def {name.split('[')[0]}(" in (HERE / "people" / file).read_text() and len(reason) > 10
    assert len(lines) == len(set(lines)) > 40
