"""Text transforms: what MindSpore 2.10 answers (data/text_cases.json), in the caller's thread and in workers."""

import json
import pathlib
import pickle
import sys

import mindspore.dataset as ds
import numpy as np
import pytest
from mindspore import dtype
from mindspore.dataset import text

import text_cases

HERE = pathlib.Path(__file__).resolve().parents[1]
EXPECTED = json.loads((HERE / "data" / "text_cases.json").read_text())

# MindSpore 2.10 gives what precedes a word such as [UNK] once more behind it, and more offsets than pieces where a word has none
OTHERWISE = {(f"{name} {offsets}", place) for name in ("basic lower", "bert lower") for offsets in (False, True) for place in (0, 5)}
OTHERWISE |= {("bert True", 0), ("pieces True", 0), ("pieces no unknown True", 0), *(("bert short True", place) for place in (0, 4, 5, 6))}


@pytest.mark.parametrize("name", EXPECTED)
def test_tokens_numbers_and_offsets_are_those_of_mindspore(name):
    transform, inputs = text_cases.cases(text, dtype)[name]
    for place, (value, expected) in enumerate(zip(inputs, EXPECTED[name])):
        assert (text_cases.answer(transform, value) == expected) == ((name, place) not in OTHERWISE), (place, value)


@pytest.mark.long
def test_the_expected_tokens_are_what_mindspore_gives(mindspore_itself, tmp_path):
    mindspore_itself(text_cases.__file__, tmp_path / "told.json")
    assert json.loads((tmp_path / "told.json").read_text()) == EXPECTED


def test_words_that_stay_and_offsets_of_pieces():
    vocab = text.Vocab.from_list(text_cases.WORDS)
    tokens, begins, ends = text.BertTokenizer(vocab, lower_case=True, with_offsets=True)(np.array("Stop [UNK] WELCOME xyz"))
    assert tokens.tolist() == ["stop", "[UNK]", "wel", "##come", "[UNK]"]
    assert list(zip(begins.tolist(), ends.tolist())) == [(0, 4), (5, 10), (11, 14), (14, 18), (19, 22)]


def test_a_pipeline_of_texts_runs_in_workers_and_gives_columns_of_offsets():
    vocab = text.Vocab.from_list(text_cases.WORDS)
    source = ds.NumpySlicesDataset(["welcome to", "a stop", "plain words"], ["text"], shuffle=False)
    rows = source.map(text.BertTokenizer(vocab, with_offsets=True), "text", ["text", "begin", "end"])
    rows = rows.map([text.AddToken("[CLS]"), text.Lookup(vocab, "[UNK]", dtype.int64)], "text")
    told = [{name: value.tolist() for name, value in row.items()} for row in rows.create_dict_iterator(num_epochs=1, output_numpy=True)]
    assert told[0] == {"text": [14, 0, 1, 2], "begin": [0, 3, 8], "end": [3, 7, 10]}
    assert [row["text"] for row in told[1:]] == [[14, 12, 8], [14, 20, 21, 22]]


def test_a_word_that_is_missing_is_told_with_its_row():
    rows = ds.NumpySlicesDataset(["to", "nothing"], ["text"], shuffle=False).map(text.Lookup(text.Vocab.from_list(["to"])), "text")
    iterator = rows.create_tuple_iterator(num_epochs=1, output_numpy=True)
    assert next(iterator)[0].tolist() == 0
    with pytest.raises(RuntimeError, match=r"row 1 \(test_text.py:.*lookup: word: nothing does not exist in vocab"):
        next(iterator)


@pytest.mark.parametrize("error, make", [
    (TypeError, lambda: text.WordpieceTokenizer(["a"])), (RuntimeError, lambda: text.RegexTokenizer("(")(np.array("a"))),
    (ValueError, lambda: text.SlidingWindow(0)), (TypeError, lambda: text.BasicTokenizer(1)),
    (RuntimeError, lambda: text.CaseFold()(np.array(3))), (RuntimeError, lambda: text.Lookup(text.Vocab.from_list(["a"]), "b")),
])  # fmt: skip
def test_what_is_wrong_is_refused(error, make):
    with pytest.raises(error):
        make()


def test_transforms_can_be_sent_to_processes():
    transform = text.BasicTokenizer(True)
    transform(np.array("x"))
    assert pickle.loads(pickle.dumps(transform))(np.array("A b")).tolist() == ["a", "b"]
    assert sys.modules["mindspore.dataset.text"].transforms.BasicTokenizer is text.BasicTokenizer
