"""Clusters whose inputs have other sizes in every step: compiled once with what varies open, and equal to stock TensorFlow."""

from pathlib import Path

import pytest
from test_tensorflow_door import assert_close, case  # noqa: F401

SIZES = Path(__file__).parent / "door" / "sizes.py"


@pytest.mark.parametrize("name", ["words", "edges", "nonzeros", "lengths", "told"])
def test_forty_sizes_need_few_compilations(case, name):  # noqa: F811
    (stock, engine), report = case("sizes", name, script=SIZES)
    assert_close(engine, stock, 1e-4)
    assert not report["run_by_tensorflow"]
    assert report["changing_sizes"]
    for cluster in report["changing_sizes"].values():  # the first sizes, then those that differ open
        assert cluster == {"compilations": 2, "compiled_per_set": ""}
