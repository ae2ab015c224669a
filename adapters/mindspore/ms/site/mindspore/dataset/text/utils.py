"""Vocabularies, and text to bytes and back."""

from collections import Counter
from enum import IntEnum

import numpy as np

__all__ = ["NormalizeForm", "Vocab", "to_bytes", "to_str"]


class NormalizeForm(IntEnum):
    NONE = 0
    NFC = 1
    NFKC = 2
    NFD = 3
    NFKD = 4


def _all(values, name, kinds):
    """The values, which are a list of one kind."""
    if not isinstance(values, (list, tuple, np.ndarray)):
        raise TypeError(f"Argument {name} with value {values} is not of type [{kinds[0]}, <class 'list'>], but got {type(values)}.")
    for place, each in enumerate(values):
        if not isinstance(each, kinds):
            raise TypeError(f"Argument {name}[{place}] with value {each} is not of type [{kinds[0]}], but got {type(each)}.")
    return values


class Vocab:
    """Words and their numbers."""

    def __init__(self, words=None):
        if not isinstance(words, (dict, type(None))):
            raise TypeError(f"Vocab: a dict of words and numbers is wanted, but got {type(words)}.")
        self._numbers = dict(words or {})

    def vocab(self):
        """{word: number}."""
        return dict(self._numbers)

    def tokens_to_ids(self, tokens):
        """Numbers of words; -1 for one that is not there."""
        if isinstance(tokens, str):
            return self._numbers.get(tokens, -1)
        return [self._numbers.get(str(each), -1) for each in _all(tokens, "tokens", (str, np.str_))]

    def ids_to_tokens(self, ids):
        """Words of numbers."""
        words = {number: word for word, number in self._numbers.items()}
        return words.get(ids, "") if isinstance(ids, int) else [words.get(int(each), "") for each in _all(ids, "ids", (int, np.integer))]

    @classmethod
    def _numbered(cls, words, special_tokens, special_first):
        special = list(special_tokens or ())
        if len(set(special)) != len(special):
            raise ValueError("special_tokens contains duplicate.")
        clash = [each for each in special if each in set(words)]
        if clash:
            raise ValueError(f"special_tokens and word_list contain duplicate word: {clash[0]}.")
        ordered = special + words if special_first else words + special
        return cls({word: number for number, word in enumerate(ordered)})

    @classmethod
    def from_list(cls, word_list, special_tokens=None, special_first=True):
        """Numbered in the list's order."""
        if not isinstance(word_list, (list, tuple)):
            raise TypeError(f"Argument word_list with value {word_list} is not of type [<class 'list'>], but got {type(word_list)}.")
        words = list(word_list)
        if len(set(words)) != len(words):
            raise ValueError("word_list contains duplicate words.")
        return cls._numbered(words, special_tokens, special_first)

    @classmethod
    def from_dict(cls, word_dict):
        """Numbers as told."""
        if not isinstance(word_dict, dict):
            raise TypeError(f"Argument word_dict with value {word_dict} is not of type [<class 'dict'>], but got {type(word_dict)}.")
        if any(isinstance(number, bool) or not isinstance(number, int) or number < 0 for number in word_dict.values()):
            raise ValueError("Input word_dict: a number is not within the required interval of [0, 2147483647].")
        return cls(word_dict)

    @classmethod
    def from_file(cls, file_path, delimiter="", vocab_size=None, special_tokens=None, special_first=True):
        """The first word of each line."""
        with open(file_path, encoding="utf-8") as text:
            words = [line.rstrip("\n").split(delimiter)[0] if delimiter else line.rstrip("\n") for line in text]
        return cls._numbered(words[:vocab_size], special_tokens, special_first)

    @classmethod
    def from_dataset(cls, dataset, columns=None, freq_range=None, top_k=None, special_tokens=None, special_first=True):
        """The words of a dataset, most frequent first."""
        columns = [columns] if isinstance(columns, str) else columns or dataset.get_col_names()
        counts = Counter()
        for row in dataset.create_dict_iterator(num_epochs=1, output_numpy=True):
            for column in columns:
                counts.update(np.asarray(to_str(row[column])).ravel().tolist())
        low, high = freq_range or (None, None)
        kept = [(word, count) for word, count in counts.items() if count >= (low or 0) and (high is None or count <= high)]
        words = [word for word, _ in sorted(kept, key=lambda each: (-each[1], each[0]))]
        return cls._numbered(words[:top_k], special_tokens, special_first)


def to_str(array, encoding="utf8"):
    """Text of bytes."""
    array = np.asarray(array)
    return np.char.decode(array, encoding) if array.dtype.kind == "S" else array


def to_bytes(array, encoding="utf8"):
    """Bytes of text."""
    array = np.asarray(array)
    return np.char.encode(array, encoding) if array.dtype.kind == "U" else array
