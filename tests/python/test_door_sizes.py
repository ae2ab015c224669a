"""Clusters whose inputs have other sizes in every step: compiled once with what varies open, and equal to stock TensorFlow."""

from pathlib import Path

import pytest
from test_tensorflow_door import assert_close, case  # noqa: F401

SIZES = Path(__file__).parent / "door" / "sizes.py"


@pytest.mark.parametrize("name", ["words", "edges", "nonzeros", "lengths", "told", "parts"])
def test_forty_sizes_need_few_compilations(case, name):  # noqa: F811
    (stock, engine), report = case("sizes", name, script=SIZES)
    assert_close(engine, stock, 1e-4)
    assert not report["run_by_tensorflow"]
    assert report["changing_sizes"]
    for cluster in report["changing_sizes"].values():  # the first sizes, then those that differ open
        assert cluster == {"compilations": 2, "compiled_per_set": ""}


@pytest.mark.parametrize("name", ["words", "edges", "told"])
def test_new_sizes_may_run_on_tensorflow(case, name):  # noqa: F811
    (stock, engine), report = case("sizes", name, script=SIZES, CAIRN_NEW_SIZES="tensorflow")
    assert_close(engine, stock, 1e-4)
    assert not report["run_by_tensorflow"]


def test_a_wrong_rule_for_new_sizes_is_refused(case):  # noqa: F811
    with pytest.raises(AssertionError, match="CAIRN_NEW_SIZES should be engine, tensorflow or measured"):
        case("sizes", "edges", script=SIZES, CAIRN_NEW_SIZES="sometimes")
