"""Text transforms, which the library of data pipelines runs."""

import numpy as np
from cairn import _data

from mindspore.dataset.text.utils import NormalizeForm, Vocab, to_str
from mindspore.dataset.transforms.transforms import Native, Transform, to_numpy_type

__all__ = ["AddToken", "BasicTokenizer", "BertTokenizer", "CaseFold", "Lookup", "Ngram", "NormalizeUTF8", "PythonTokenizer", "RegexReplace",
           "RegexTokenizer", "SlidingWindow", "ToNumber", "Truncate", "TruncateSequencePair", "UnicodeCharTokenizer",
           "UnicodeScriptTokenizer", "WhitespaceTokenizer", "WordpieceTokenizer"]  # fmt: skip


class _Text(Native):
    """`settings` holds numbers and texts by name."""

    settings = {}

    def options(self):
        return self.settings

    def apply(self, value):
        made = self.transform().apply([np.asarray(to_str(value))], 0)
        return made[0] if len(made) == 1 else made

    def __getstate__(self):  # for processes and copies
        return {**self.__dict__, "_made": None}


class _Tokenizer(_Text):
    """A text to an array of words, and with offsets also where they begin and end, in bytes."""

    @property
    def one_column(self):
        """Whether one column comes out."""
        return not self.settings.get("with_offsets")


def _flag(value, name):
    if not isinstance(value, bool):
        raise TypeError(f"Argument {name} with value {value} is not of type [<class 'bool'>], but got {type(value)}.")
    return value


def _text(value, name):
    if not isinstance(value, str):
        raise TypeError(f"Argument {name} with value {value} is not of type [<class 'str'>], but got {type(value)}.")
    return value


def _whole(value, name, least):
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"Argument {name} with value {value} is not of type [<class 'int'>], but got {type(value)}.")
    if value < least:
        raise ValueError(f"Input {name} is not within the required interval of [{least}, 2147483647].")
    return value


def _form(value):
    if not isinstance(value, NormalizeForm):
        raise TypeError(f"Argument normalization_form with value {value} is not of type [<enum 'NormalizeForm'>], but got {type(value)}.")
    return int(value)


def _words(vocab):
    if not isinstance(vocab, Vocab):
        raise TypeError(f"Argument vocab with value {vocab} is not of type [<class 'Vocab'>], but got {type(vocab)}.")
    words = vocab.vocab()
    return {"words": np.array(list(words), dtype=np.str_), "numbers": np.array(list(words.values()), np.int64)}


class WhitespaceTokenizer(_Tokenizer):
    """Words between spaces."""

    name = "whitespace_tokenizer"

    def __init__(self, with_offsets=False):
        self.settings = {"with_offsets": _flag(with_offsets, "with_offsets")}


class UnicodeCharTokenizer(WhitespaceTokenizer):
    """Characters."""

    name = "character_tokenizer"


class UnicodeScriptTokenizer(_Tokenizer):
    """Runs of characters of one script."""

    name = "script_tokenizer"

    def __init__(self, keep_whitespace=False, with_offsets=False):
        self.settings = {"keep_whitespace": _flag(keep_whitespace, "keep_whitespace"), "with_offsets": _flag(with_offsets, "with_offsets")}


class RegexTokenizer(_Tokenizer):
    """Words between what a pattern matches; matches that keep_delim_pattern matches as well are kept."""

    name = "regex_tokenizer"

    def __init__(self, delim_pattern, keep_delim_pattern="", with_offsets=False):
        self.settings = {"delim_pattern": _text(delim_pattern, "delim_pattern"), "with_offsets": _flag(with_offsets, "with_offsets"),
                         "keep_delim_pattern": _text(keep_delim_pattern, "keep_delim_pattern")}  # fmt: skip


def _basic(lower_case, keep_whitespace, normalization_form, preserve_unused_token, with_offsets):
    return {"lower_case": _flag(lower_case, "lower_case"), "keep_whitespace": _flag(keep_whitespace, "keep_whitespace"),
            "form": _form(normalization_form), "preserve_unused": _flag(preserve_unused_token, "preserve_unused_token"),
            "with_offsets": _flag(with_offsets, "with_offsets")}  # fmt: skip


class BasicTokenizer(_Tokenizer):
    """Words and punctuation, as BERT cuts them."""

    name = "basic_tokenizer"

    def __init__(self, lower_case=False, keep_whitespace=False, normalization_form=NormalizeForm.NONE, preserve_unused_token=True,
                 with_offsets=False):
        self.settings = _basic(lower_case, keep_whitespace, normalization_form, preserve_unused_token, with_offsets)


def _pieces(vocab, suffix_indicator, max_bytes_per_token, unknown_token):
    return {**_words(vocab), "suffix_indicator": _text(suffix_indicator, "suffix_indicator"),
            "unknown_token": _text(unknown_token, "unknown_token"),
            "max_bytes_per_token": _whole(max_bytes_per_token, "max_bytes_per_token", 0)}  # fmt: skip


class WordpieceTokenizer(_Tokenizer):
    """Words to pieces that are in a vocabulary."""

    name = "wordpiece_tokenizer"

    def __init__(self, vocab, suffix_indicator="##", max_bytes_per_token=100, unknown_token="[UNK]", with_offsets=False):
        self.settings = {**_pieces(vocab, suffix_indicator, max_bytes_per_token, unknown_token),
                         "with_offsets": _flag(with_offsets, "with_offsets")}  # fmt: skip


class BertTokenizer(_Tokenizer):
    """Words, then pieces."""

    name = "bert_tokenizer"

    def __init__(self, vocab, suffix_indicator="##", max_bytes_per_token=100, unknown_token="[UNK]", lower_case=False,
                 keep_whitespace=False, normalization_form=NormalizeForm.NONE, preserve_unused_token=True, with_offsets=False):
        self.settings = {**_pieces(vocab, suffix_indicator, max_bytes_per_token, unknown_token),
                         **_basic(lower_case, keep_whitespace, normalization_form, preserve_unused_token, with_offsets)}  # fmt: skip


class PythonTokenizer(Transform):
    """Words by a function."""

    def __init__(self, tokenizer):
        if not callable(tokenizer):
            raise TypeError("Argument tokenizer is not a callable.")
        self.tokenizer = tokenizer

    def apply(self, value):
        words = list(self.tokenizer(str(to_str(value)[()])))
        return np.array(words if words else [""])


class CaseFold(_Text):
    """Lower case, for comparison: Unicode's NFKC_Casefold."""

    name = "case_fold"


class NormalizeUTF8(_Text):
    """A normal form of Unicode."""

    name = "normalize_utf8"

    def __init__(self, normalize_form=NormalizeForm.NFKC):
        self.settings = {"form": _form(normalize_form)}


class RegexReplace(_Text):
    """Other text for what a pattern matches; $1 is its first group."""

    name = "regex_replace"

    def __init__(self, pattern, replace, replace_all=True):
        self.settings = {"pattern": _text(pattern, "pattern"), "replace": _text(replace, "replace"), "replace_all": _flag(replace_all, "replace_all")}


class Lookup(_Text):
    """Numbers of words."""

    name = "lookup"

    def __init__(self, vocab, unknown_token=None, data_type=np.int32):
        if isinstance(data_type, str):
            told = "<class 'mindspore._c_expression.typing.Type'>"
            raise TypeError(f"Argument data_type with value {data_type} is not of type [{told}], but got {type(data_type)}.")
        kind = to_numpy_type(data_type)
        if kind.kind not in "biuf":
            raise RuntimeError("Lookup : The parameter data_type must be numeric including bool.")
        self.settings = {**_words(vocab), "kind": _data.kind(kind.name)}
        if unknown_token is not None:
            if _text(unknown_token, "unknown_token") not in vocab.vocab():
                raise RuntimeError(f"Lookup: unknown_token: [{unknown_token}], doesn't exist in vocab.")
            self.settings["unknown"] = vocab.vocab()[unknown_token]


class ToNumber(_Text):
    """Numbers of texts."""

    name = "to_number"

    def __init__(self, data_type):
        kind = to_numpy_type(data_type)
        if kind.kind not in "iuf":
            raise TypeError(f"data_type: {data_type} is not numeric data type.")
        self.settings = {"kind": _data.kind(kind.name)}


class SlidingWindow(_Text):
    """Neighbours side by side."""

    name = "sliding_window"

    def __init__(self, width, axis=0):
        self.settings = {"width": _whole(width, "width", 1)}


class Ngram(_Text):
    """Runs of n words as one text."""

    name = "ngram"

    def __init__(self, n, left_pad=("", 0), right_pad=("", 0), separator=" "):
        lengths = [n] if isinstance(n, int) else n
        if not isinstance(lengths, list) or not lengths or not all(isinstance(each, int) for each in lengths):
            raise ValueError("n needs to be a non-empty list of positive integers.")
        if any(each <= 0 for each in lengths):
            raise ValueError("Input gram_0 must be greater than 0.")
        self.settings = {"n": lengths, "left": _text(left_pad[0], "left_pad"), "left_count": _whole(left_pad[1], "left_pad", 0),
                         "right": _text(right_pad[0], "right_pad"), "right_count": _whole(right_pad[1], "right_pad", 0),
                         "separator": _text(separator, "separator")}  # fmt: skip


class Truncate(_Text):
    """The first elements."""

    name = "truncate"

    def __init__(self, max_seq_len):
        self.settings = {"max_seq_len": _whole(max_seq_len, "max_seq_len", 0)}


class AddToken(_Text):
    """A word before the others, or behind them."""

    name = "add_token"

    def __init__(self, token, begin=True):
        self.settings = {"token": _text(token, "token"), "begin": _flag(begin, "begin")}


class TruncateSequencePair(_Text):
    """Two sequences, cut from the longer one's end until both fit."""

    name, one_column = "truncate_pair", False

    def __init__(self, max_length):
        self.settings = {"max_length": _whole(max_length, "max_length", 0)}

    def __call__(self, first, second):
        return self.transform().apply([np.asarray(first), np.asarray(second)], 0)
