"""A data pipeline: nodes that describe what the library of data pipelines (cairn.data) does, from sources (sources.py) through the
operations below to an iterator.

What changes while rows flow belongs to the iterator, and follows from the seed, the node's place, the number of the pass and of the row:
an iterator that starts at a later epoch sees what an unbroken one sees there.
"""

import copy
import os
import random
import warnings
from enum import Enum

import numpy as np
from cairn import data
from cairn.data.nodes import script_line
from cairn.ms import level

from mindspore.dataset.core import config
from mindspore.dataset.core.remembered import Remembered
from mindspore.dataset import engine
from mindspore.dataset.engine import row_shapes
from mindspore.dataset.engine.checks import columns_of, flag, whole
from mindspore.dataset.engine.iterators import DictIterator, Transfer, TupleIterator

__all__ = ["BatchInfo", "Dataset", "Shuffle", "concat", "zip"]

_zip = zip
ENDLESS = -1


class Shuffle(str, Enum):
    """How sources of several files are shuffled."""

    GLOBAL = "global"
    FILES = "files"
    INFILE = "infile"
    ADAPTIVE = "adaptive"


class BatchInfo:
    """What per_batch_map and a batch size that is a function are told."""

    def __init__(self, epoch, batch):
        self._epoch, self._batch = epoch, batch

    def get_epoch_num(self):
        """The number of the pass."""
        return self._epoch

    def get_batch_num(self):
        """The number of the batch in the pass."""
        return self._batch


class Build:
    """Makes the library's nodes of one iterator."""

    def __init__(self, told=None):
        self.told = told  # a list of the callbacks of maps, where they are to be told
        self.seed = config.get_seed() if config.seed_is_fixed() else random.SystemRandom().randrange(2**32)
        self._nodes = {}

    def __call__(self, dataset):
        if id(dataset) not in self._nodes:
            self._nodes[id(dataset)] = dataset.node(self)
        return self._nodes[id(dataset)]

    def place(self):
        """A number for the node that is being made: how many were made before."""
        return len(self._nodes)

    def iterator(self, dataset, epoch=0):
        """The library's iterator over a dataset, from a pass on."""
        node = self(dataset)
        workers = 0 if self.told else min(config.get_num_parallel_workers(), os.cpu_count() or 1)  # callbacks see rows when they are asked for
        return data.Iterator(data.Dataset(node), workers, state={"seed": self.seed, "epoch": epoch, "row": 0})


class Dataset(Remembered):
    """A node of a pipeline."""

    def __init__(self, *children):
        for child in children:
            if not isinstance(child, Dataset):
                raise TypeError(f"children must be datasets, but got {type(child)}.")
        self.children = list(children)
        self.where = script_line()
        self._input_indexs = ()
        self._size = None
        self._dynamic_columns = None

    # What a kind of node defines.

    def column_list(self):
        """Names of the columns."""
        return self.children[0].column_list()

    def node(self, build):
        """The library's node."""
        raise NotImplementedError

    def rows(self):
        """The rows of the first pass."""
        rows = Build().iterator(self)
        try:
            while True:
                yield rows.next_row()
        except StopIteration:
            return
        finally:
            rows.stop()

    def size(self):
        """Rows in a pass where that is known without one, else None."""
        return self.children[0].size()

    def repeats(self):
        """How often a pass goes through the sources."""
        return self.children[0].repeats() if self.children else 1

    def batch_rows(self):
        """Source rows in one row."""
        return self.children[0].batch_rows() if self.children else 1

    def walk(self):
        """This node and all below."""
        yield self
        for child in self.children:
            yield from child.walk()

    # Operations.

    def batch(self, batch_size, drop_remainder=False, num_parallel_workers=None, per_batch_map=None, input_columns=None,
              output_columns=None, column_order=None, pad_info=None, python_multiprocessing=False, max_rowsize=16):
        """Rows of batch_size rows each."""
        team = team_of(num_parallel_workers, python_multiprocessing)
        batch_size = int(batch_size) if isinstance(batch_size, bool) else batch_size
        return engine.transforming.Batch(self, batch_size, drop_remainder, per_batch_map, input_columns, output_columns, column_order, pad_info, team)

    def padded_batch(self, batch_size, drop_remainder=False, num_parallel_workers=None, pad_info=None):
        """A batch whose rows are filled up to a shape."""
        return engine.transforming.Batch(self, batch_size, drop_remainder, pad_info={} if pad_info is None else pad_info)

    def map(self, *arguments, **named):
        """Applies transforms to columns. The order of arguments is the level's: columns before operations in 0.5, after them since;
        where the first two stand in the other order their types tell."""
        return engine.transforming.Map(self, **_map_arguments(arguments, named))

    def filter(self, predicate, input_columns=None, num_parallel_workers=1):
        """The rows of which the predicate is true."""
        return engine.nodes.Filter(self, predicate, input_columns)

    def repeat(self, count=None):
        """Goes through the rows `count` times; None or -1 without end."""
        count = ENDLESS if count is None else whole(count, "count", 1, (ENDLESS,))
        return self if count == 1 and level.at_least("1.1") else engine.nodes.Repeat(self, count)

    def shuffle(self, buffer_size):
        """Rows in random order, drawn from a buffer."""
        if any(self._syncs()):
            raise RuntimeError("No shuffle after sync operators.")
        return engine.nodes.ShuffleRows(self, whole(buffer_size, "buffer_size", 2))

    def take(self, count=-1):
        """The first rows."""
        count = whole(count, "count", 1, (ENDLESS,))
        return self if count == ENDLESS else engine.nodes.Take(self, count)

    def skip(self, count):
        """All but the first rows."""
        return engine.nodes.Skip(self, whole(count, "count", 0))

    def zip(self, datasets):
        """Columns of several pipelines side by side."""
        return engine.nodes.Zip(self, *(datasets if isinstance(datasets, (list, tuple)) else [datasets]))

    def concat(self, datasets):
        """Rows of several pipelines one after the other."""
        return engine.nodes.Concat(self, *(datasets if isinstance(datasets, (list, tuple)) else [datasets]))

    __add__ = concat

    def rename(self, input_columns, output_columns):
        """Gives columns other names."""
        return engine.nodes.Rename(self, columns_of(input_columns, "input_columns"), columns_of(output_columns, "output_columns"))

    def project(self, columns):
        """Some columns, in the order given."""
        return engine.nodes.Project(self, columns_of(columns, "columns"))

    def apply(self, apply_func):
        """apply_func(self)."""
        if not callable(apply_func):
            raise TypeError("apply_func must be a function.")
        result = apply_func(self)
        if not isinstance(result, Dataset):
            raise TypeError("apply_func must return a dataset.")
        return result

    def flat_map(self, func):
        """The rows of the pipelines that func makes of each row."""
        if not callable(func):
            raise TypeError("func must be a function.")
        parts = [func(*row) for row in self.rows()]
        if not all(isinstance(part, Dataset) for part in parts):
            raise TypeError("flat_map: func must return a dataset.")
        return parts[0] if len(parts) == 1 else engine.nodes.Concat(*parts)

    def bucket_batch_by_length(self, column_names, bucket_boundaries, bucket_batch_sizes, element_length_function=None,
                               pad_info=None, pad_to_bucket_boundary=False, drop_remainder=False):
        """Batches of rows of like length."""
        return engine.transforming.Buckets(self, columns_of(column_names, "column_names"), bucket_boundaries, bucket_batch_sizes,
                       element_length_function, pad_info, pad_to_bucket_boundary, drop_remainder)

    def split(self, sizes, randomize=True):
        """Several pipelines that share the rows: numbers of rows, or shares that add up to 1."""
        total = self.get_dataset_size()
        counts = _split_sizes(sizes, total)
        whole_order = copy.copy(self)
        if hasattr(whole_order, "in_order"):
            whole_order = whole_order.in_order()
        if flag(randomize, "randomize"):
            whole_order = engine.nodes.ShuffleRows(whole_order, max(total, 2), once=True)
        begins = np.cumsum([0, *counts])
        return [whole_order.skip(int(begin)).take(count) for begin, count in _zip(begins, counts)]

    def sync_wait(self, condition_name, num_batch=1, callback=None):
        """Calls `callback` with what sync_update was given; rows are made when they are asked for, so nothing waits."""
        if isinstance(num_batch, int) and num_batch <= 0:
            raise ValueError("num_batch need to be greater than 0.")
        if any(each.condition_name == condition_name for each in self._syncs()):
            raise RuntimeError("Condition name is already in use.")
        return engine.nodes.Sync(self, condition_name, whole(num_batch, "num_batch"), callback)

    def _syncs(self):
        return (each for each in self.walk() if isinstance(each, engine.nodes.Sync))

    def sync_update(self, condition_name, num_batch=None, data=None):
        """Hands `data` to the callback of the sync_wait of that name."""
        if num_batch is not None and num_batch <= 0:
            raise RuntimeError(f"Sync_update batch size can only be positive, got : {num_batch}.")
        for node in self._syncs():
            if node.condition_name == condition_name:
                return node.update(data)
        raise RuntimeError(f"Condition name not found: {condition_name}")

    def disable_sync(self):
        """Nothing waits as it is."""

    def save(self, file_name, num_files=1, file_type="mindrecord"):
        """Writes the rows as MindRecord files."""
        from mindspore.mindrecord import save_dataset

        save_dataset(self, file_name, num_files, file_type)

    # Iterators and what is asked of a pipeline.

    def create_dict_iterator(self, num_epochs=-1, output_numpy=False):
        """Rows as {column: value}; NumPy arrays in 0.5 and with output_numpy, else Tensors."""
        whole(num_epochs, "num_epochs", 1, (-1,))
        flag(output_numpy, "output_numpy")
        return DictIterator(self, num_epochs, output_numpy)

    def create_tuple_iterator(self, columns=None, num_epochs=-1, output_numpy=False, do_copy=True):
        """Rows as lists of values."""
        whole(num_epochs, "num_epochs", 1, (-1,))
        flag(output_numpy, "output_numpy")
        if columns is not None:
            columns = columns_of(columns, "columns")
        return TupleIterator(self, num_epochs, output_numpy, columns)

    def __iter__(self):
        return self.create_tuple_iterator(num_epochs=1)

    def __len__(self):
        return self.get_dataset_size()

    def device_que(self, *_, **__):
        """What sink mode reads from."""
        return Transfer(self)

    to_device = device_que

    def get_dataset_size(self, estimate=False):
        """Rows in a pass. In 0.5 repeat does not count: an epoch of Model.train is one pass through what is repeated."""
        if self._size is None:
            known = self.size()
            self._size = sum(1 for _ in self.rows()) if known is None else known
        return self._size

    def get_batch_size(self):
        """Source rows in one row."""
        return self.batch_rows()

    def get_repeat_count(self):
        """How often a pass goes through the sources."""
        return self.repeats()

    def get_col_names(self):
        """Names of the columns."""
        return list(self.column_list())

    def get_class_indexing(self):
        """{class name: label} of a source that has it."""
        return self.children[0].get_class_indexing() if self.children else {}

    def num_classes(self):
        """The number of classes of a source that has them."""
        return self.children[0].num_classes() if self.children else None

    def output_shapes(self, estimate=False):
        """Shapes of the columns of the first row; with estimate, and of columns that set_dynamic_columns() told, of all rows."""
        return row_shapes.told(self, self._dynamic_columns, estimate)

    def output_types(self):
        """NumPy types of the columns of the first row."""
        return [np.dtype(value.dtype.type) if value.dtype.kind in "SU" else value.dtype for value in next(self.rows(), [])]

    def dynamic_min_max_shapes(self):
        """The smallest and largest shapes of the columns that set_dynamic_columns() told."""
        return row_shapes.bounds(self, self._dynamic_columns)

    @property
    def input_indexs(self):
        """The columns that inputs of a network come from."""
        return self._input_indexs

    @input_indexs.setter
    def input_indexs(self, value):
        self._input_indexs = value

    def reset(self):
        """A pass begins anew with each iterator: nothing to do."""

    def set_dynamic_columns(self, columns=None):
        """{name of a column: its sizes}, None for those that change from row to row."""
        if not isinstance(columns, dict):
            raise TypeError("Pass a dict to set dynamic shape, example: {\"data1\": [16, None, 256]}")
        self._dynamic_columns = columns

    def close_pool(self):
        """There are no worker processes."""


_MAP_SINCE_10 = ["operations", "input_columns", "output_columns", "column_order", "num_parallel_workers",
                 "python_multiprocessing", "cache", "callbacks", "max_rowsize", "offload"]  # fmt: skip
_MAP_05 = ["input_columns", "operations", "output_columns", "columns_order", "num_parallel_workers", "python_multiprocessing"]


def _map_arguments(arguments, named):
    def is_columns(value):
        values = [value] if isinstance(value, str) else value
        return isinstance(values, (list, tuple)) and len(values) > 0 and all(isinstance(each, str) for each in values)

    first_is_columns = not level.at_least("1.1")
    if arguments and arguments[0] is not None:
        first_is_columns = is_columns(arguments[0])
    order = _MAP_05 if first_is_columns else _MAP_SINCE_10
    if len(arguments) > len(order):
        raise TypeError("map() takes too many arguments")
    given = dict(_zip(order, arguments))
    for name, value in named.items():
        if name not in _MAP_SINCE_10 and name not in _MAP_05:
            raise TypeError(f"map() got an unexpected keyword argument '{name}'")
        if name in given:
            raise TypeError(f"map() got multiple values for argument '{name}'")
        given[name] = value
    if given.get("operations") is None:
        raise TypeError("map() missing the argument 'operations'")
    order_of_columns = given.get("column_order", given.get("columns_order"))
    team = team_of(given.get("num_parallel_workers"), given.get("python_multiprocessing"))
    return {"operations": given["operations"], "input_columns": given.get("input_columns"),
            "output_columns": given.get("output_columns"), "column_order": order_of_columns, "callbacks": given.get("callbacks"),
            "team": team, "cache": given.get("cache")}


def team_of(workers, processes):
    """(number, whether processes) of what runs a script's functions; 0: the caller's thread, where no number above 1 is told."""
    processes = flag(bool(processes) if processes is None else processes, "python_multiprocessing")
    if workers is None:
        workers = config.get_num_parallel_workers() if processes else 1
    workers = min(whole(workers, "num_parallel_workers"), os.cpu_count() or 1)
    return (workers if processes or workers > 1 else 0), processes


def _split_sizes(sizes, total):
    if not isinstance(sizes, (list, tuple)) or not sizes:
        raise ValueError("sizes cannot be empty, and must be a list.")
    if all(isinstance(each, int) for each in sizes):
        if any(each <= 0 for each in sizes):
            raise ValueError("there should be no negative or zero numbers in sizes.")
        if sum(sizes) != total:
            raise RuntimeError(f"Sum of split sizes {sum(sizes)} is not equal to dataset size {total}.")
        return list(sizes)
    if not all(isinstance(each, float) for each in sizes):
        raise ValueError("sizes should be list of int or list of float.")
    if any(not 0 < each <= 1 for each in sizes) or abs(sum(sizes) - 1) > 1e-5:
        raise ValueError("Sum of percentages should be 1.")
    counts = [int(round(each * total)) for each in sizes]
    counts[0] += total - sum(counts)
    if any(each <= 0 for each in counts):
        raise RuntimeError("Percentage is too small, a split would be empty.")
    return counts


def zip(datasets):  # noqa: A001
    """Columns of several pipelines side by side."""
    if not isinstance(datasets, (list, tuple)):
        raise TypeError(f"Invalid datasets, expected a tuple of datasets, but got {type(datasets)}.")
    if len(datasets) < 2:
        raise ValueError("Can't zip empty or just one dataset!")
    return engine.nodes.Zip(*datasets)


def concat(datasets):
    """Rows of several pipelines one after the other."""
    return engine.nodes.Concat(*datasets)


def warn_epochs(epoch, dataset):
    """In 0.5 the repeat count and the number of epochs should agree."""
    repeats = dataset.get_repeat_count()
    if not level.at_least("1.1") and repeats not in (1, epoch, ENDLESS):
        warnings.warn(f"The epoch {epoch} is not equal to the repeat count {repeats} of the dataset", stacklevel=3)
