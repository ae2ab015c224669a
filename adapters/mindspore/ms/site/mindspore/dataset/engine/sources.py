"""Sources of rows: what is common to them, arrays and generators."""

import copy
import inspect

import numpy as np
from cairn import _data
from cairn.data.nodes import numbered

from mindspore.dataset.engine import samplers
from mindspore.dataset.engine.checks import columns_of, flag, shards, whole, workers
from mindspore.dataset.engine.datasets import Dataset, Shuffle

__all__ = ["GeneratorDataset", "NumpySlicesDataset", "PaddedDataset"]


class Mappable(Dataset):
    """A source that gives any row by its number; a sampler says which, in which order."""

    names = ("image", "label")
    may_shuffle = True

    def __init__(self, num_samples=None, num_parallel_workers=None, shuffle=None, sampler=None, num_shards=None, shard_id=None, cache=None):
        super().__init__()
        self.cache = cache_of(cache)
        workers(num_parallel_workers)
        if num_samples is not None:
            num_samples = whole(num_samples, "num_samples", 0) or None
        if shuffle is not None and not isinstance(shuffle, (bool, Shuffle)):
            raise TypeError(f"Argument shuffle with value {shuffle} is not of type [<class 'bool'>], but got {type(shuffle)}.")
        self.sampler = self._sampler(num_samples, shuffle, sampler, num_shards, shard_id)

    def _sampler(self, num_samples, shuffle, sampler, num_shards, shard_id):
        shared = shards(num_shards, shard_id)
        if sampler is not None:
            if shuffle is not None:
                raise RuntimeError("sampler and shuffle cannot be specified at the same time.")
            if shared:
                raise RuntimeError("sampler and sharding cannot be specified at the same time.")
            if num_samples is not None and isinstance(sampler, samplers.BuiltinSampler):
                raise ValueError("Conflicting arguments during sampler assignments: num_samples and sampler cannot be "
                                 "specified at the same time.")
            return _as_sampler(sampler)
        shuffled = self.may_shuffle if shuffle is None else bool(shuffle)
        if shared:
            return samplers.DistributedSampler(num_shards, shard_id, shuffled, num_samples)
        return samplers.RandomSampler(num_samples=num_samples) if shuffled else samplers.SequentialSampler(num_samples=num_samples)

    def count(self):
        """Rows in the source."""
        raise NotImplementedError

    def row(self, index):
        """One row."""
        raise NotImplementedError

    def column_list(self):
        return list(self.names)

    def node(self, build):
        return _data.numbered(self.count(), self.row, self.column_list(), self.sampler.native(), self.where)

    def size(self):
        return self.node(None).size()

    def in_order(self):
        """The same rows without the random order."""
        plain = copy.copy(self)
        if isinstance(self.sampler, samplers.RandomSampler) and not self.sampler.replacement:
            plain.sampler = samplers.SequentialSampler(num_samples=self.sampler.num_samples)
        return plain

    def use_sampler(self, new_sampler):
        """Another sampler."""
        if new_sampler is None:
            raise TypeError("Input sampler can not be None.")
        if not isinstance(new_sampler, samplers.BuiltinSampler):
            raise TypeError("Input sampler is not an instance of a sampler.")
        self.sampler = new_sampler

    def add_sampler(self, new_sampler):
        """A sampler that chooses before the one there is."""
        if self.sampler is not None:
            new_sampler.add_child(self.sampler)
        self.use_sampler(new_sampler)


class Native(Mappable):
    """A source of the library's."""

    _opened = None

    def open(self, sampler):
        """The library's source, with its columns."""
        raise NotImplementedError

    def source(self):
        """The library's source, of all rows in order."""
        if self._opened is None:
            self._opened = self.open(_data.sequential_sampler(0, 0))
        return self._opened

    def column_list(self):
        return self.source().columns

    def count(self):
        return self.source().count()

    def row(self, index):
        return self.source().read(index)

    def node(self, build):
        return keeping(_data.chosen(self.source(), *self.padding(), self.sampler.native(), self.where), self.cache, self.where)

    def padding(self):
        """A row that follows the others, and how often."""
        return [], 0


def cache_of(cache):
    """(the library's cache, a region of it), or None."""
    from mindspore.dataset.engine.files import DatasetCache

    if cache is None:
        return None
    if not isinstance(cache, DatasetCache):
        raise TypeError(f"Argument cache with value {cache} is not of type [<class 'DatasetCache'>], but got {type(cache)}.")
    return cache.kept.rows, cache.kept.region()


def keeping(node, cache, where):
    """The node, with its rows kept."""
    return node if cache is None else _data.cached(node, *cache, where)


def _as_sampler(value):
    if isinstance(value, samplers.BuiltinSampler):
        return value
    if isinstance(value, (list, tuple, np.ndarray)):
        return samplers.SubsetSampler([int(each) for each in value])
    if hasattr(value, "__iter__"):
        sampler = samplers.Sampler()
        sampler.order = lambda _size: [int(np.asarray(each)) for each in value]
        return sampler
    raise TypeError("Unsupported sampler object of type ({})".format(type(value)))


def _array(value):
    if isinstance(value, np.ndarray):
        return value
    if hasattr(value, "asnumpy"):
        return value.asnumpy()
    return np.asarray(value)


class GeneratorDataset(Mappable):
    """Rows from a Python object: a function that returns an iterator, an iterable, or something with __getitem__ and __len__."""

    remembers = False

    def __init__(self, source, column_names=None, column_types=None, schema=None, num_samples=None, num_parallel_workers=1,
                 shuffle=None, sampler=None, num_shards=None, shard_id=None, python_multiprocessing=True, max_rowsize=6):
        if not callable(source) and not hasattr(source, "__iter__") and not hasattr(source, "__getitem__"):
            raise TypeError("Input `source` function of GeneratorDataset should be callable, iterable or random accessible, "
                            f"but got {type(source)}.")
        if column_names is None and schema is None:
            raise ValueError("Neither columns_names nor schema are provided.")
        if column_names is not None:
            if isinstance(column_names, str):
                column_names = column_names.split(",")
            column_names = columns_of(column_names, "column_names")
            if not column_names:
                raise ValueError("column_names should not be empty.")
        self.source, self.names = source, column_names or schema.names()
        self.types = column_types or (schema.types() if schema is not None else None)
        if self.types is not None and len(self.types) != len(self.names):
            raise ValueError("The length of column_types must be equal to that of column_names.")
        self.by_number = hasattr(source, "__getitem__") and hasattr(source, "__len__") and not inspect.isclass(source)
        if not self.by_number:
            if sampler is not None:
                raise RuntimeError("sampler and shuffle are only supported for a source with __getitem__ and __len__.")
            if shuffle:
                raise RuntimeError("shuffle is only supported for a source with __getitem__ and __len__.")
            if num_shards is not None:
                raise RuntimeError("num_shards is only supported for a source with __getitem__ and __len__.")
        self.limit, self.processes = num_samples, flag(python_multiprocessing, "python_multiprocessing")
        self.workers = whole(num_parallel_workers, "num_parallel_workers") if num_parallel_workers is not None else 1
        super().__init__(num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id)

    def count(self):
        return len(self.source)

    def row(self, index):
        return self._row(self.source[index])

    def _row(self, values):
        values = values if isinstance(values, (tuple, list)) else (values,)
        if len(values) != len(self.names):
            raise RuntimeError(f"Invalid Python function, the 'source' of 'GeneratorDataset' should return same number of NumPy arrays as "
                               f"specified in column_names, the size of column_names is: {len(self.names)} and number of returned NumPy array is: {len(values)}")
        rows = [_array(value) for value in values]
        if self.types is not None:
            rows = [value if kind is None else value.astype(numpy_type(kind)) for value, kind in zip(rows, self.types)]
        for value, name in zip(rows, self.names):
            if value.dtype == object:
                raise RuntimeError(f"Invalid data type, column '{name}' of GeneratorDataset must hold numbers or strings.")
        return rows

    def node(self, build):
        if self.by_number:
            needs_labels = isinstance(self.sampler, samplers.PKSampler)  # which reads the rows of the source
            return numbered(self.count(), self.row, self.names, self.sampler.native(), self.where,
                            0 if needs_labels or self.workers == 1 else self.workers, self.processes)  # fmt: skip

        def opened(_epoch):
            rows, end = iter(self.source() if callable(self.source) else self.source), object()

            def read():
                values = next(rows, end)
                return None if values is end else self._row(values)

            return read

        rows = _data.generator(opened, self.names, self.where)
        return _data.take(rows, self.limit, self.where) if self.limit else rows

    def size(self):
        if self.by_number:
            return super().size()
        if not callable(self.source) and hasattr(self.source, "__len__"):
            return min(len(self.source), self.limit or len(self.source))
        return None


def numpy_type(kind):
    from mindspore.common import dtype as mstype

    if isinstance(kind, (type, np.dtype, str)):
        return np.dtype(kind)
    return mstype.dtype_to_nptype(kind)


class NumpySlicesDataset(Native):
    """Rows of arrays: of one array, of several side by side, or of a dict by name."""

    remembers = False

    def __init__(self, data, column_names=None, num_samples=None, num_parallel_workers=1, shuffle=None, sampler=None,
                 num_shards=None, shard_id=None):
        if not isinstance(data, (list, tuple, dict, np.ndarray)) and not hasattr(data, "to_dict"):
            raise TypeError(f"Unsupported data type: {type(data)}, only support some common python data type, like list, "
                            "tuple, dict, and numpy array.")
        if hasattr(data, "to_dict") and not isinstance(data, dict):
            data = data.to_dict("list")
        if len(data) == 0:
            raise ValueError("Argument data cannot be empty")
        if isinstance(data, dict):
            column_names, columns = list(data) if column_names is None else column_names, list(data.values())
        elif isinstance(data, tuple):
            columns = list(data)
        else:
            columns = [data]
        columns = [np.asarray(column) for column in columns]
        if any(len(column) != len(columns[0]) for column in columns):
            raise ValueError("The input arrays must have the same length.")
        if column_names is None:
            column_names = [f"column_{place}" for place in range(len(columns))]
        column_names = columns_of(column_names, "column_names")
        if not column_names:
            raise ValueError("column_names should not be empty.")
        if len(column_names) != len(columns):
            raise ValueError(f"Num of input column names is {len(column_names)}, but required is {len(columns)}.")
        self.columns, self.names = columns, column_names
        super().__init__(num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id)

    def open(self, sampler):
        return _data.table("slices", [(name, "slices", column) for name, column in zip(self.names, self.columns)], sampler, self.where)


class PaddedDataset(GeneratorDataset):
    """Rows that fill up another dataset."""

    def __init__(self, padded_samples):
        if not isinstance(padded_samples, (list, tuple)) or not padded_samples:
            raise TypeError("padded_samples must be a list of dicts.")
        names = list(padded_samples[0])
        super().__init__([tuple(_array(row[name]) for name in names) for row in padded_samples], names, shuffle=False)
        self.padded_samples = padded_samples
