"""Which names are supported: the table, what it says of scripts, and the names that official scripts import."""

import json
import os
from pathlib import Path

import pytest

from cairn.ms import support

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "reference" / "mindspore.md"

SCRIPT = """import mindspore.nn as nn
from mindspore import Tensor, context
from mindspore.ops import operations as P
context.set_context(mode=context.GRAPH_MODE)
x = Tensor.from_numpy(1)
net = nn.SequentialCell(
    nn.Nothing())
y = P.NoSuchOperator()(x)
"""


def test_a_script_is_told_what_it_lacks_with_lines(tmp_path, capsys):
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    assert support.main([str(path)]) == 1
    said = capsys.readouterr().out
    assert said.startswith(f"{path}: 6 names of MindSpore, 4 supported\n")
    assert f"{path}:7  mindspore.nn.Nothing is not supported" in said and f"{path}:8  " in said
    assert support.main(["--json", str(path)]) == 1
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)[str(path)]}
    assert rows["mindspore.nn.Nothing"]["lines"] == [7] and rows["mindspore.Tensor.from_numpy"]["works"]


@pytest.mark.parametrize("text", ["def f(:\n", None])
def test_a_script_that_cannot_be_read(text, tmp_path, capsys):
    path = tmp_path / "a.py"
    if text:
        path.write_text(text)
    assert support.main([str(path)]) == 1
    assert capsys.readouterr().err.startswith(f"error: ms: {path}: ")


def test_the_page_lists_names_that_are_there():
    if os.environ.get("CAIRN_TEST_UPDATE") == "1":
        PAGE.write_text(support.markdown())
    known = {row["name"] for row in support.table()}
    module, missing = "", []
    for line in PAGE.read_text().splitlines():
        if line.startswith("## "):
            module = line.split("`")[1]
        elif line.startswith("`"):
            missing += [name for name in line.split("`")[1::2] if f"{module}.{name}" not in known]
    assert not missing


def names_of_official_scripts():
    """(name, models that use it) of tests/python/mindspore/official_names.txt."""
    for line in (Path(__file__).parent / "official_names.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, _, count = line.partition(" ")
            yield name, int(count or 1)


def test_nine_of_ten_uses_of_names_in_official_scripts_are_supported(capsys):
    rows = [(name, count, *support.found(name)) for name, count in names_of_official_scripts()]
    uses, works = sum(row[1] for row in rows), sum(row[1] for row in rows if row[2])
    lacking = [f"{name}: {reason}" for name, _, fine, reason in rows if not fine]
    print("\n".join(lacking))
    with capsys.disabled():
        print(f"[{works} of {uses} uses in official scripts ({works / uses:.1%}), {len(rows) - len(lacking)} of {len(rows)} names]", end=" ")
    assert works >= 0.9 * uses


@pytest.mark.parametrize("line, words", [
    ("from mindspore.nn.probability.bnn_layers import ConvReparam", "probability.bnn_layers: .* use nn.probability.distribution"),
    ("from mindspore.nn.transformer import Transformer", "mindspore.nn.transformer: "),
    ("import mindspore.mint.nn", "mindspore.mint: .* use mindspore.ops"),
    ("import mindspore.hubb", "mindspore.hubb is not supported"),
])
def test_modules_that_are_not_there_are_refused_by_name(line, words):
    with pytest.raises(ModuleNotFoundError, match=words) as refused:
        exec(line)
    assert isinstance(refused.value, NotImplementedError)


def test_modules_that_hold_nothing_answer_with_names_of_their_package():
    from mindspore.nn.layer.math import Range
    from mindspore.ops.operations.nn_ops import ApplyMomentum

    assert Range.__name__ == "Range" and ApplyMomentum.__name__ == "ApplyMomentum"
    with pytest.raises(ImportError, match="nearest that works is mindspore.nn.ReLU"):
        from mindspore.nn.layer.padding import ReLUU  # noqa: F401
