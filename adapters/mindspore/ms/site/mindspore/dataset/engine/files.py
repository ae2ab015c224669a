"""Sources that read files of rows: texts, tables, TFRecord and MindRecord."""

import glob
import os
from collections import namedtuple

import numpy as np
from cairn import _data
from cairn.data import Cache

from mindspore.dataset.engine.checks import columns_of, flag, whole
from mindspore.dataset.engine.datasets import Shuffle
from mindspore.dataset.engine.sources import Native, numpy_type

__all__ = ["CSVDataset", "DatasetCache", "MindDataset", "Schema", "TFRecordDataset", "TextFileDataset"]


class Schema:
    """Names, types and shapes of columns, from a JSON file or column by column."""

    def __init__(self, schema_file=None):
        self.columns, self.num_rows, self.dataset_type = [], None, ""
        if schema_file:
            import json

            with open(schema_file, encoding="utf-8") as text:
                self.parse_columns(json.load(text)["columns"])

    def add_column(self, name, de_type, shape=None):
        """One column."""
        if shape is not None and not isinstance(shape, (list, tuple)):
            raise TypeError("shape must be a list of integers.")
        self.columns.append({"name": name, "type": np.dtype(numpy_type(de_type) if de_type != "string" else "S"), "shape": shape})

    def parse_columns(self, columns):
        """Columns from a list of dicts, or from a dict by name."""
        if isinstance(columns, dict):
            columns = [{"name": name, **told} for name, told in columns.items()]
        if not isinstance(columns, list):
            raise TypeError("columns must be dict or list, columns contain name, type, shape(optional).")
        for each in columns:
            if "name" not in each or "type" not in each:
                raise AttributeError("Column's name or type is missing.")
            self.add_column(each["name"], each["type"], each.get("shape"))

    def names(self):
        """Names of the columns."""
        return [each["name"] for each in self.columns]

    def types(self):
        """NumPy types of the columns."""
        return [each["type"] for each in self.columns]


def _files(value, who):
    patterns = [os.fspath(each) for each in ([value] if isinstance(value, (str, os.PathLike)) else value)]
    found = {each: [each] if os.path.isfile(each) else sorted(filter(os.path.isfile, glob.glob(each, recursive=True))) for each in patterns}
    missing = [each for each in patterns if not found[each]]
    if not patterns or missing:
        raise ValueError(f"The following patterns did not match any files: {missing}" if patterns else f"{who}: no file is given.")
    return [file for each in patterns for file in found[each]]


class Lines(Native):
    """A source of files whose rows are read one after the other; shuffled among themselves."""

    def __init__(self, dataset_files, num_samples=None, num_parallel_workers=None, shuffle=Shuffle.GLOBAL, num_shards=None, shard_id=None,
                 cache=None):
        self.files = _files(dataset_files, type(self).__name__)
        super().__init__(num_samples, num_parallel_workers, shuffle if shuffle is not None else True, None, num_shards, shard_id,
                         cache)  # fmt: skip


class TextFileDataset(Lines):
    """Lines of text files: text."""

    def __init__(self, dataset_files, num_samples=None, num_parallel_workers=None, shuffle=Shuffle.GLOBAL, num_shards=None,
                 shard_id=None, cache=None):
        super().__init__(dataset_files, num_samples, num_parallel_workers, shuffle, num_shards, shard_id, cache)

    def open(self, sampler):
        return _data.text_files(self.files, sampler, self.where)


class CSVDataset(Lines):
    """Rows of CSV files."""

    def __init__(self, dataset_files, field_delim=",", column_defaults=None, column_names=None, num_samples=None,
                 num_parallel_workers=None, shuffle=Shuffle.GLOBAL, num_shards=None, shard_id=None, cache=None):
        self.delimiter, self.defaults, self._names_told = field_delim, column_defaults, column_names
        super().__init__(dataset_files, num_samples, num_parallel_workers, shuffle, num_shards, shard_id, cache)

    def open(self, sampler):
        names = list(self._names_told) if self._names_told else _data.csv_header(self.files[0], self.delimiter)
        defaults = list(self.defaults or [""] * len(names))
        kinds = [{int: "int32", float: "float32"}.get(type(each), "str") for each in defaults]
        told = [[name, kind, str(otherwise)] for name, kind, otherwise in zip(names, kinds, defaults)]
        return _data.csv_files(self.files, self.delimiter, told, self._names_told is None, sampler, self.where)


class TFRecordDataset(Lines):
    """Examples of TFRecord files; columns by schema, or as the first example has them."""

    def __init__(self, dataset_files, schema=None, columns_list=None, num_samples=None, num_parallel_workers=None,
                 shuffle=Shuffle.GLOBAL, num_shards=None, shard_id=None, shard_equal_rows=False, cache=None):
        self.schema = Schema(schema) if isinstance(schema, (str, os.PathLike)) else schema
        self.columns_list = columns_of(columns_list, "columns_list") if columns_list else None
        super().__init__(dataset_files, num_samples, num_parallel_workers, shuffle, num_shards, shard_id, cache)

    def open(self, sampler):
        told = {each["name"]: each for each in self.schema.columns} if self.schema else {}
        names = self.columns_list or list(told)
        features = [(name, None, None) if name not in told else self._feature(told[name]) for name in names]
        return _data.tfrecord(self.files, features, sampler, self.where)

    @staticmethod
    def _feature(told):
        kind = None if told["type"].kind == "S" else told["type"].name
        return told["name"], kind, None if told["shape"] is None else list(told["shape"])


class MindDataset(Native):
    """Rows of MindRecord files."""

    def __init__(self, dataset_files=None, columns_list=None, num_parallel_workers=None, shuffle=None, num_shards=None,
                 shard_id=None, *more, sampler=None, padded_sample=None, num_padded=None, num_samples=None, cache=None,
                 dataset_file=None, block_reader=False):
        if more and isinstance(more[0], bool):  # block_reader, which 0.5 has before sampler
            more = more[1:]
        sampler = more[0] if more else sampler
        from mindspore.mindrecord import shards_of

        self.files = shards_of(dataset_files if dataset_files is not None else dataset_file)
        self.columns = columns_of(columns_list, "columns_list") if columns_list else []
        if (padded_sample is None) != (num_padded is None):
            raise RuntimeError("padded_sample and num_padded must be given together.")
        self.padded, self.num_padded = padded_sample, num_padded or 0
        super().__init__(num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id, cache)
        self.source()  # whose faults belong here

    def open(self, sampler):
        return _data.mindrecord(self.files, self.columns, sampler, self.where)

    def padding(self):
        return [np.asarray(self.padded[name]) for name in self.column_list()] if self.num_padded else [], self.num_padded

    def count(self):
        return super().count() + self.num_padded


class DatasetCache:
    """Rows kept from one epoch to the next, in this process: size in MB, 0 for any number; with `spilling` the rest lies in a file.
    There is no server: sessions, hosts and ports are not used."""

    def __init__(self, session_id=None, size=0, spilling=False, hostname=None, port=None, num_connections=None, prefetch_size=None):
        whole(0 if session_id is None else session_id, "session_id", 0)
        self.session_id, self.size, self.spilling = session_id, whole(size, "size", 0), flag(spilling, "spilling")
        self.kept = Cache(size << 20, spilling)

    def get_stat(self):
        """Rows in memory and on disk, and the mean size of those in memory."""
        told = self.kept.stats()
        return CacheStat(told["bytes"] // max(told["rows_in_memory"], 1), told["rows_in_memory"], told["rows_in_file"])


CacheStat = namedtuple("CacheStat", ("avg_cache_sz", "num_mem_cached", "num_disk_cached"))
