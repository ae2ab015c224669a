"""Text transforms."""

import re
import unicodedata

import numpy as np
from cairn.ms import refuse

from mindspore.dataset.text.utils import NormalizeForm, Vocab, to_str
from mindspore.dataset.transforms.transforms import Transform, to_numpy_type

__all__ = ["BasicTokenizer", "BertTokenizer", "CaseFold", "Lookup", "Ngram", "NormalizeUTF8", "PythonTokenizer", "RegexReplace",
           "RegexTokenizer", "SlidingWindow", "ToNumber", "TruncateSequencePair", "UnicodeCharTokenizer", "WhitespaceTokenizer",
           "WordpieceTokenizer"]  # fmt: skip


class _Words(Transform):
    """A text to an array of words, or each text to another."""

    def apply(self, value):
        words = self.words(str(to_str(value)[()]))
        return np.array(words if words else [""])


class _Each(Transform):
    def apply(self, value):
        texts = to_str(value)
        return np.array([self.text(str(each)) for each in texts.ravel()]).reshape(texts.shape)


class WhitespaceTokenizer(_Words):
    """Words between spaces."""

    def __init__(self, with_offsets=False):
        if with_offsets:
            refuse("with_offsets", "offsets of tokens are not supported")

    def words(self, text):
        return text.split()


class UnicodeCharTokenizer(WhitespaceTokenizer):
    """Characters."""

    def words(self, text):
        return list(text)


class PythonTokenizer(_Words):
    """Words by a function."""

    def __init__(self, tokenizer):
        if not callable(tokenizer):
            raise TypeError("Argument tokenizer is not a callable.")
        self.words = lambda text: list(tokenizer(text))


class RegexTokenizer(_Words):
    """Words between what a pattern matches; parts that keep_delim_pattern matches are kept."""

    def __init__(self, delim_pattern, keep_delim_pattern="", with_offsets=False):
        self.pattern, self.kept = re.compile(f"({delim_pattern})"), re.compile(keep_delim_pattern) if keep_delim_pattern else None

    def words(self, text):
        parts = self.pattern.split(text)
        return [part for place, part in enumerate(parts) if part and (place % 2 == 0 or (self.kept and self.kept.fullmatch(part)))]


class CaseFold(_Each):
    """Lower case."""

    def text(self, text):
        return text.casefold()


class NormalizeUTF8(_Each):
    """A normal form of Unicode."""

    def __init__(self, normalize_form=NormalizeForm.NFKC):
        self.form = normalize_form

    def text(self, text):
        return text if self.form == NormalizeForm.NONE else unicodedata.normalize(self.form.name, text)


class RegexReplace(_Each):
    """Other text for what a pattern matches."""

    def __init__(self, pattern, replace, replace_all=True):
        self.pattern, self.replace, self.count = re.compile(pattern), replace, 0 if replace_all else 1

    def text(self, text):
        return self.pattern.sub(self.replace, text, count=self.count)


class BasicTokenizer(_Words):
    """Words and punctuation, as BERT cuts them."""

    def __init__(self, lower_case=False, keep_whitespace=False, normalization_form=NormalizeForm.NONE, preserve_unused_token=True,
                 with_offsets=False):
        self.lower_case = lower_case

    def words(self, text):
        if self.lower_case:
            text = "".join(each for each in unicodedata.normalize("NFD", text.casefold()) if unicodedata.category(each) != "Mn")
        spaced = "".join(f" {each} " if unicodedata.category(each)[0] in "P" or each in "$+<=>^`|~" or "\u4e00" <= each <= "\u9fff" else each
                         for each in text if unicodedata.category(each) not in ("Cc", "Cf") or each.isspace())
        return re.sub(r"\[\s+(UNK|CLS|SEP|PAD|MASK|unused\d+)\s+\]", r"[\1]", spaced).split()


class WordpieceTokenizer(Transform):
    """Words to pieces that are in a vocabulary."""

    def __init__(self, vocab, suffix_indicator="##", max_bytes_per_token=100, unknown_token="[UNK]", with_offsets=False):
        self.vocab, self.suffix, self.most, self.unknown = vocab.vocab(), suffix_indicator, max_bytes_per_token, unknown_token

    def apply(self, value):
        return np.array([piece for word in np.atleast_1d(to_str(value)) for piece in self.pieces(str(word))])

    def pieces(self, word):
        """Pieces of a word, longest first."""
        if len(word) > self.most:
            return [self.unknown or word]
        pieces, place = [], 0
        while place < len(word):
            end = len(word)
            while end > place and (self.suffix if place else "") + word[place:end] not in self.vocab:
                end -= 1
            if end == place:
                return [self.unknown or word]
            pieces.append((self.suffix if place else "") + word[place:end])
            place = end
        return pieces


class BertTokenizer(_Words):
    """Words, then pieces."""

    def __init__(self, vocab, suffix_indicator="##", max_bytes_per_token=100, unknown_token="[UNK]", lower_case=False,
                 keep_whitespace=False, normalization_form=NormalizeForm.NONE, preserve_unused_token=True, with_offsets=False):
        self.basic = BasicTokenizer(lower_case)
        self.wordpiece = WordpieceTokenizer(vocab, suffix_indicator, max_bytes_per_token, unknown_token)

    def words(self, text):
        return [piece for word in self.basic.words(text) for piece in self.wordpiece.pieces(word)]


class Lookup(Transform):
    """Numbers of words."""

    def __init__(self, vocab, unknown_token=None, data_type=np.int32):
        if not isinstance(vocab, Vocab):
            raise TypeError(f"Argument vocab with value {vocab} is not of type [<class 'Vocab'>], but got {type(vocab)}.")
        self.numbers, self.kind = vocab.vocab(), to_numpy_type(data_type)
        if unknown_token is not None and unknown_token not in self.numbers:
            raise RuntimeError(f"Lookup: unknown_token: {unknown_token} does not exist in vocab.")
        self.unknown = self.numbers.get(unknown_token)

    def apply(self, value):
        words = to_str(value)
        numbers = [self.numbers.get(str(word), self.unknown) for word in words.ravel()]
        if None in numbers:
            raise RuntimeError(f"Lookup: word {words.ravel()[numbers.index(None)]} does not exist in vocab, and unknown_token "
                               "is not specified.")
        return np.array(numbers, self.kind).reshape(words.shape)


class ToNumber(Transform):
    """Numbers of texts."""

    def __init__(self, data_type):
        self.kind = to_numpy_type(data_type)

    def apply(self, value):
        try:
            made = to_str(value).astype(self.kind)
            if self.kind.kind in "iu" and np.any(made != np.asarray(to_str(value)).astype(object).astype(float).astype(np.float64)):
                raise OverflowError(f"the number does not fit {self.kind}")
            return made
        except (ValueError, OverflowError) as error:
            raise RuntimeError(f"ToNumber: {error}") from None


class SlidingWindow(Transform):
    """Neighbours side by side."""

    def __init__(self, width, axis=0):
        if isinstance(width, bool) or not isinstance(width, int) or width < 1:
            raise ValueError("Input width is not within the required interval of [1, 2147483647].")
        self.width = width

    def apply(self, value):
        value = np.asarray(value)
        count = len(value) - self.width + 1
        return value[np.arange(count)[:, None] + np.arange(self.width)] if count > 0 else value[:0].reshape(0, self.width)


class Ngram(Transform):
    """Runs of n words as one text."""

    def __init__(self, n, left_pad=("", 0), right_pad=("", 0), separator=" "):
        self.lengths = [n] if isinstance(n, int) else n
        if not isinstance(self.lengths, list) or not self.lengths or not all(isinstance(each, int) for each in self.lengths):
            raise ValueError("n needs to be a non-empty list of positive integers.")
        if any(each <= 0 for each in self.lengths):
            raise ValueError("Input gram_0 must be greater than 0.")
        self.left, self.right, self.separator = left_pad, right_pad, separator

    def apply(self, value):
        words = [str(each) for each in to_str(value)]
        made = []
        for length in self.lengths:
            padded = [self.left[0]] * min(self.left[1], length - 1) + words + [self.right[0]] * min(self.right[1], length - 1)
            made += [self.separator.join(padded[place : place + length]) for place in range(len(padded) - length + 1)]
        return np.array(made if made else [""])


class TruncateSequencePair(Transform):
    """Two sequences, cut from the longer one's end until both fit."""

    one_column = False

    def __init__(self, max_length):
        self.max_length = max_length

    def __call__(self, first, second):
        first_size, second_size = len(first), len(second)
        while first_size + second_size > self.max_length:
            if first_size > second_size:
                first_size -= 1
            else:
                second_size -= 1
        return first[:first_size], second[:second_size]
