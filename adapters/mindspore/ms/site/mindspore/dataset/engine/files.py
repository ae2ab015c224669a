"""Sources that read files of rows: texts, tables, TFRecord and MindRecord."""

import os

import numpy as np
from cairn.ms import refuse

from mindspore.dataset.engine.checks import columns_of
from mindspore.dataset.engine.datasets import Shuffle
from mindspore.dataset.engine.sources import Mappable, numpy_type

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
    files = [value] if isinstance(value, (str, os.PathLike)) else list(value)
    missing = [os.fspath(file) for file in files if not os.path.isfile(file)]
    if not files or missing:
        raise ValueError(f"The following patterns did not match any files: {missing}" if files else f"{who}: no file is given.")
    return [os.fspath(file) for file in files]


class Lines(Mappable):
    """A source of files whose rows are read one after the other; shuffled among themselves."""

    def __init__(self, dataset_files, num_samples=None, num_parallel_workers=None, shuffle=Shuffle.GLOBAL, num_shards=None, shard_id=None):
        self.files = _files(dataset_files, type(self).__name__)
        super().__init__(num_samples, num_parallel_workers, shuffle if shuffle is not None else True, None, num_shards, shard_id)
        self._held = None

    @property
    def held(self):
        if self._held is None:
            self._held = [row for file in self.files for row in self.read(file)]
        return self._held

    def count(self):
        return len(self.held)

    def row(self, index):
        return self.held[index]


class TextFileDataset(Lines):
    """Lines of text files: text."""

    names = ("text",)

    def __init__(self, dataset_files, num_samples=None, num_parallel_workers=None, shuffle=Shuffle.GLOBAL, num_shards=None,
                 shard_id=None, cache=None):
        super().__init__(dataset_files, num_samples, num_parallel_workers, shuffle, num_shards, shard_id)

    def read(self, file):
        with open(file, encoding="utf-8") as text:
            return [(np.asarray(line.rstrip("\n")),) for line in text if line.strip("\n")]


class CSVDataset(Lines):
    """Rows of CSV files."""

    def __init__(self, dataset_files, field_delim=",", column_defaults=None, column_names=None, num_samples=None,
                 num_parallel_workers=None, shuffle=Shuffle.GLOBAL, num_shards=None, shard_id=None, cache=None):
        self.delimiter, self.defaults, self._names_told = field_delim, column_defaults, column_names
        super().__init__(dataset_files, num_samples, num_parallel_workers, shuffle, num_shards, shard_id)

    def column_list(self):
        if self._names_told is None:
            with open(self.files[0], encoding="utf-8") as text:
                return text.readline().strip().split(self.delimiter)
        return list(self._names_told)

    def read(self, file):
        import csv

        with open(file, newline="", encoding="utf-8") as text:
            rows = list(csv.reader(text, delimiter=self.delimiter))[0 if self._names_told else 1 :]
        kinds = [type(each) for each in self.defaults] if self.defaults else [str] * len(self.column_list())
        return [tuple(self._value(kind, place, cell) for place, (kind, cell) in enumerate(zip(kinds, row))) for row in rows]

    def _value(self, kind, place, cell):
        if cell == "" and self.defaults:
            cell = self.defaults[place]
        return np.asarray(kind(cell), {int: np.int32, float: np.float32}.get(kind))


class TFRecordDataset(Lines):
    """Examples of TFRecord files; columns by schema, or as the first example has them."""

    def __init__(self, dataset_files, schema=None, columns_list=None, num_samples=None, num_parallel_workers=None,
                 shuffle=Shuffle.GLOBAL, num_shards=None, shard_id=None, shard_equal_rows=False, cache=None):
        self.schema = Schema(schema) if isinstance(schema, (str, os.PathLike)) else schema
        self.columns_list = columns_of(columns_list, "columns_list") if columns_list else None
        super().__init__(dataset_files, num_samples, num_parallel_workers, shuffle, num_shards, shard_id)

    def column_list(self):
        if self.columns_list:
            return self.columns_list
        if self.schema is not None:
            return self.schema.names()
        from mindspore.dataset.engine.tfrecord import examples

        return sorted(next(examples(self.files[0])))

    def read(self, file):
        from mindspore.dataset.engine.tfrecord import examples

        told = {each["name"]: each for each in self.schema.columns} if self.schema else {}
        names = self.column_list()
        for number, example in enumerate(examples(file)):
            yield tuple(self._value(name, example, told.get(name), f"{file}, example {number}") for name in names)

    @staticmethod
    def _value(name, example, told, where):
        if name not in example:
            raise RuntimeError(f"Invalid data, no column '{name}' in {where}, which has {sorted(example)}")
        value = example[name]
        if told is not None:
            if told["type"].kind != "S":
                value = np.frombuffer(value[0], np.uint8) if value.dtype.kind == "S" else value.astype(told["type"])
            if told["shape"] is not None:
                value = value.reshape(told["shape"])
        return value


class MindDataset(Mappable):
    """Rows of MindRecord files."""

    def __init__(self, dataset_files=None, columns_list=None, num_parallel_workers=None, shuffle=None, num_shards=None,
                 shard_id=None, *more, sampler=None, padded_sample=None, num_padded=None, num_samples=None, cache=None,
                 dataset_file=None, block_reader=False):
        from mindspore.mindrecord.files import Reader

        if more and isinstance(more[0], bool):  # block_reader, which 0.5 has before sampler
            more = more[1:]
        sampler = more[0] if more else sampler
        self.reader = Reader(dataset_files if dataset_files is not None else dataset_file)
        self.names = columns_of(columns_list, "columns_list") if columns_list else self.reader.columns
        unknown = [name for name in self.names if name not in self.reader.columns]
        if unknown:
            raise RuntimeError(f"Invalid column, '{unknown[0]}' is not in the MindRecord file, which has {self.reader.columns}")
        if (padded_sample is None) != (num_padded is None):
            raise RuntimeError("padded_sample and num_padded must be given together.")
        self.padded, self.num_padded = padded_sample, num_padded or 0
        super().__init__(num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id)

    def count(self):
        return len(self.reader) + self.num_padded

    def row(self, index):
        held = self.reader[index] if index < len(self.reader) else self.padded
        return tuple(np.asarray(held[name]) for name in self.names)


class DatasetCache:
    """A cache server has nothing to do here: rows are read from memory or the page cache."""

    def __init__(self, session_id=0, size=0, spilling=False, hostname=None, port=None, num_connections=None, prefetch_size=None):
        self.session_id, self.size, self.spilling = session_id, size, spilling

    def get_stat(self):
        """Refused: there is no server."""
        refuse("DatasetCache.get_stat", "there is no cache server")
