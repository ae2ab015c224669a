"""Published sets of texts and handwritten characters, whose files are lines, CSV, folders of texts or idx."""

import os

import numpy as np
from cairn import _data

from mindspore.dataset.engine.files import Lines
from mindspore.dataset.engine.images import MnistDataset, folder_of, usage_of
from mindspore.dataset.engine.sources import Native

__all__ = ["AGNewsDataset", "AmazonReviewDataset", "DBpediaDataset", "EMnistDataset", "IMDBDataset", "KMnistDataset",
           "PennTreebankDataset", "SogouNewsDataset", "WikiTextDataset", "YahooAnswersDataset", "YelpReviewDataset"]  # fmt: skip


class KMnistDataset(MnistDataset):
    """Files in MNIST's format."""


class EMnistDataset(MnistDataset):
    """Letters and digits; name: byclass, bymerge, balanced, letters, digits, mnist."""

    def __init__(self, dataset_dir, name, usage=None, num_samples=None, num_parallel_workers=None, shuffle=None, sampler=None,
                 num_shards=None, shard_id=None, cache=None):
        self.name = usage_of(name, ("byclass", "bymerge", "balanced", "letters", "digits", "mnist"), "name")
        super().__init__(dataset_dir, usage, num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id, cache)

    kinds = {"train": ["train"], "test": ["test"], "all": ["test", "train"]}

    def _file(self, begin, rank):
        return super()._file(f"emnist-{self.name}-{begin}", rank)


class Parts(Lines):
    """Lines or rows of the files of a folder, one for each usage."""

    parts = {"train": "train.csv", "test": "test.csv"}

    def __init__(self, dataset_dir, usage=None, num_samples=None, num_parallel_workers=None, shuffle="global", num_shards=None, shard_id=None,
                 cache=None):
        folder, usage = folder_of(dataset_dir), usage_of(usage, (*self.parts, "all"))
        names = sorted(self.parts.values()) if usage == "all" else [self.parts[usage]]
        found = [path for path in (os.path.join(folder, name) for name in names) if os.path.isfile(path)]
        if not found:
            raise ValueError(f"none of the files {names} is in {folder}, which holds: {', '.join(sorted(os.listdir(folder))[:8]) or 'nothing'}")
        super().__init__(found, num_samples, num_parallel_workers, shuffle, num_shards, shard_id, cache)

    def open(self, sampler):
        return _data.text_files(self.files, sampler, self.where)


class Table(Parts):
    """Rows of CSV files without a line of names: texts."""

    def open(self, sampler):
        return _data.csv_files(self.files, ",", [[name, "str", ""] for name in self.names], False, sampler, self.where)


class AGNewsDataset(Table):
    """News: index, title, description."""

    names = ("index", "title", "description")


class SogouNewsDataset(Table):
    """News: index, title, content."""

    names = ("index", "title", "content")


class AmazonReviewDataset(Table):
    """Reviews: label, title, content."""

    names = ("label", "title", "content")


class DBpediaDataset(Table):
    """Articles: class, title, content."""

    names = ("class", "title", "content")


class YahooAnswersDataset(Table):
    """Questions: class, title, content, answer."""

    names = ("class", "title", "content", "answer")


class YelpReviewDataset(Table):
    """Reviews: label, text."""

    names = ("label", "text")


class PennTreebankDataset(Parts):
    """Lines: text."""

    parts = {"train": "ptb.train.txt", "test": "ptb.test.txt", "valid": "ptb.valid.txt"}


class WikiTextDataset(Parts):
    """Lines: text."""

    parts = {"train": "wiki.train.tokens", "test": "wiki.test.tokens", "valid": "wiki.valid.tokens"}


class IMDBDataset(Native):
    """Reviews of films: text, label int32 (0 negative, 1 positive)."""

    def __init__(self, dataset_dir, usage=None, num_samples=None, num_parallel_workers=None, shuffle=None, sampler=None, num_shards=None,
                 shard_id=None, cache=None):
        self.folder, self.usage = folder_of(dataset_dir), usage_of(usage, ("train", "test", "all"))
        super().__init__(num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id, cache)

    def open(self, sampler):
        texts, labels = [], []
        for part in ("train", "test") if self.usage == "all" else (self.usage,):
            for label, kind in ((1, "pos"), (0, "neg")):
                folder = os.path.join(self.folder, part, kind)
                for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
                    with open(os.path.join(folder, name), encoding="utf-8") as file:
                        texts.append(np.array(file.read()))
                    labels.append(label)
        if not texts:
            raise RuntimeError(f"Invalid data, no texts in {self.folder}/train/pos and the like, which holds: "
                               f"{', '.join(sorted(os.listdir(self.folder))[:8]) or 'nothing'}")  # fmt: skip
        return _data.table("imdb", [("text", "rows", texts), ("label", "slices", np.array(labels, np.int32))], sampler, self.where)
