"""A data pipeline: nodes that pass rows on, from sources (sources.py) through the operations below to an iterator.

A row is a tuple of NumPy arrays, one for each column. A node is only a description. What changes while rows flow (random
numbers, copies of transforms) belongs to a Run, of which each iterator has its own, and follows from the seed, the node's place and the
number of the pass: a run that starts at a later epoch sees what an unbroken one sees there.
"""

import copy
import random
import warnings
from enum import Enum

import numpy as np
from cairn.ms import level

from mindspore.dataset.core import config
from mindspore.dataset.engine.iterators import DictIterator, Transfer, TupleIterator

__all__ = ["BatchInfo", "Dataset", "Shuffle", "concat", "zip"]

_zip = zip
_ENDLESS = -1


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


class Run:
    """What belongs to one iterator over a pipeline."""

    def __init__(self, root):
        self.seed = config.get_seed() if config.seed_is_fixed() else random.SystemRandom().randrange(2**32)
        self._places = {id(node): place for place, node in enumerate(root.walk())}
        self._copies = {}

    def rng(self, node, epoch, more=0):
        """Random numbers of a node in a pass."""
        return np.random.RandomState([self.seed, self._places.get(id(node), 0), epoch, more])

    def operations(self, node, operations, epoch):
        """Copies of a map's transforms, seeded for a pass."""
        copies = self._copies.setdefault(id(node), [copy.copy(each) for each in operations])
        for place, each in enumerate(copies):
            if hasattr(each, "reseed"):
                each.reseed(self.rng(node, epoch, 1 + place))
        return copies


def columns_of(value, name):
    """A list of column names, from one name or several."""
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, (list, tuple)):
        raise TypeError(f"Argument {name} with value {value} is not of type [<class 'str'>, <class 'list'>], but got {type(value)}.")
    for place, each in enumerate(value):
        if not isinstance(each, str):
            raise TypeError(f"Argument {name}[{place}] with value {each} is not of type [<class 'str'>], but got {type(each)}.")
        if not each:
            raise ValueError(f"{name}[{place}] should not be empty.")
    if len(set(value)) != len(value):
        raise ValueError(f"Every column name should not be same with others in {name}.")
    return list(value)


def whole(value, name, least=1, more=()):
    """An integer of at least `least`, or one of `more`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"Argument {name} with value {value} is not of type [<class 'int'>], but got {type(value)}.")
    if value < least and value not in more:
        raise ValueError(f"Input {name} is not within the required interval of [{least}, 2147483647].")
    return int(value)


def flag(value, name):
    """A bool."""
    if not isinstance(value, bool):
        raise TypeError(f"Argument {name} with value {value} is not of type [<class 'bool'>], but got {type(value)}.")
    return value


class Dataset:
    """A node of a pipeline."""

    def __init__(self, *children):
        for child in children:
            if not isinstance(child, Dataset):
                raise TypeError(f"children must be datasets, but got {type(child)}.")
        self.children = list(children)
        self._input_indexs = ()
        self._size = None

    # What a kind of node defines.

    def column_list(self):
        """Names of the columns."""
        return self.children[0].column_list()

    def rows(self, run, epoch):
        """The rows of one pass."""
        raise NotImplementedError

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
        return Batch(self, batch_size, drop_remainder, per_batch_map, input_columns, output_columns, column_order, pad_info)

    def padded_batch(self, batch_size, drop_remainder=False, num_parallel_workers=None, pad_info=None):
        """A batch whose rows are filled up to a shape."""
        return Batch(self, batch_size, drop_remainder, pad_info={} if pad_info is None else pad_info)

    def map(self, *arguments, **named):
        """Applies transforms to columns. The order of arguments is the level's: columns before operations in 0.5, after them since;
        where the first two stand in the other order their types tell."""
        return Map(self, **_map_arguments(arguments, named))

    def filter(self, predicate, input_columns=None, num_parallel_workers=1):
        """The rows of which the predicate is true."""
        return Filter(self, predicate, input_columns)

    def repeat(self, count=None):
        """Goes through the rows `count` times; None or -1 without end."""
        count = _ENDLESS if count is None else whole(count, "count", 1, (_ENDLESS,))
        return self if count == 1 and level.at_least("1.1") else Repeat(self, count)

    def shuffle(self, buffer_size):
        """Rows in random order, drawn from a buffer."""
        return ShuffleRows(self, whole(buffer_size, "buffer_size", 2))

    def take(self, count=-1):
        """The first rows."""
        count = whole(count, "count", 1, (_ENDLESS,))
        return self if count == _ENDLESS else Take(self, count)

    def skip(self, count):
        """All but the first rows."""
        return Skip(self, whole(count, "count", 0))

    def zip(self, datasets):
        """Columns of several pipelines side by side."""
        return Zip(self, *(datasets if isinstance(datasets, (list, tuple)) else [datasets]))

    def concat(self, datasets):
        """Rows of several pipelines one after the other."""
        return Concat(self, *(datasets if isinstance(datasets, (list, tuple)) else [datasets]))

    __add__ = concat

    def rename(self, input_columns, output_columns):
        """Gives columns other names."""
        return Rename(self, columns_of(input_columns, "input_columns"), columns_of(output_columns, "output_columns"))

    def project(self, columns):
        """Some columns, in the order given."""
        return Project(self, columns_of(columns, "columns"))

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
        parts = [func(*row) for row in self.rows(Run(self), 0)]
        if not all(isinstance(part, Dataset) for part in parts):
            raise TypeError("flat_map: func must return a dataset.")
        return parts[0] if len(parts) == 1 else Concat(*parts)

    def bucket_batch_by_length(self, column_names, bucket_boundaries, bucket_batch_sizes, element_length_function=None,
                               pad_info=None, pad_to_bucket_boundary=False, drop_remainder=False):
        """Batches of rows of like length."""
        return Buckets(self, columns_of(column_names, "column_names"), bucket_boundaries, bucket_batch_sizes,
                       element_length_function, pad_info, pad_to_bucket_boundary, drop_remainder)

    def split(self, sizes, randomize=True):
        """Several pipelines that share the rows: numbers of rows, or shares that add up to 1."""
        total = self.get_dataset_size()
        counts = _split_sizes(sizes, total)
        whole_order = copy.copy(self)
        if hasattr(whole_order, "in_order"):
            whole_order = whole_order.in_order()
        if flag(randomize, "randomize"):
            whole_order = ShuffleRows(whole_order, max(total, 2), once=True)
        begins = np.cumsum([0, *counts])
        return [whole_order.skip(int(begin)).take(count) for begin, count in _zip(begins, counts)]

    def sync_wait(self, condition_name, num_batch=1, callback=None):
        """Calls `callback` with what sync_update was given; rows are made when they are asked for, so nothing waits."""
        return Sync(self, condition_name, whole(num_batch, "num_batch"), callback)

    def sync_update(self, condition_name, num_batch=None, data=None):
        """Hands `data` to the callback of the sync_wait of that name."""
        for node in self.walk():
            if isinstance(node, Sync) and node.condition_name == condition_name:
                return node.update(data)
        raise RuntimeError(f"Condition name not found: {condition_name}")

    def save(self, file_name, num_files=1, file_type="mindrecord"):
        """Writes the rows as MindRecord files."""
        from mindspore.mindrecord import save_dataset

        save_dataset(self, file_name, num_files, file_type)

    # Iterators and what is asked of a pipeline.

    def create_dict_iterator(self, num_epochs=-1, output_numpy=False):
        """Rows as {column: value}; NumPy arrays in 0.5 and with output_numpy, else Tensors."""
        whole(num_epochs, "num_epochs", 1, (-1,))
        return DictIterator(self, num_epochs, output_numpy)

    def create_tuple_iterator(self, columns=None, num_epochs=-1, output_numpy=False, do_copy=True):
        """Rows as lists of values."""
        whole(num_epochs, "num_epochs", 1, (-1,))
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
            self._size = sum(1 for _ in self.rows(Run(self), 0)) if known is None else known
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
        """Shapes of the columns of the first row."""
        return [list(value.shape) for value in self._first()]

    def output_types(self):
        """NumPy types of the columns of the first row."""
        return [value.dtype.type if value.dtype.kind in "SU" else value.dtype for value in self._first()]

    def dynamic_min_max_shapes(self):
        """The smallest and largest shapes of the columns."""
        shapes = [[value.shape for value in row] for row in self.rows(Run(self), 0)]
        columns = [list(each) for each in _zip(*shapes)]
        return [list(map(min, _zip(*each))) for each in columns], [list(map(max, _zip(*each))) for each in columns]

    def _first(self):
        for row in self.rows(Run(self), 0):
            return row
        raise RuntimeError("the dataset has no rows")

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
        """Sizes may change from row to row without being told."""

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
    return {"operations": given["operations"], "input_columns": given.get("input_columns"),
            "output_columns": given.get("output_columns"), "column_order": order_of_columns, "callbacks": given.get("callbacks")}


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


class Repeat(Dataset):
    def __init__(self, child, count):
        super().__init__(child)
        self.count = count

    def rows(self, run, epoch):
        turn = 0
        while self.count == _ENDLESS or turn < self.count:
            yield from self.children[0].rows(run, turn if self.count == _ENDLESS else epoch * self.count + turn)
            turn += 1

    def size(self):
        known = self.children[0].size()
        if not level.at_least("1.1") or self.count == _ENDLESS:
            return self.children[0].get_dataset_size()
        return None if known is None else known * self.count

    def repeats(self):
        return self.count * (self.children[0].repeats() if self.count != _ENDLESS else 1)


class Take(Dataset):
    def __init__(self, child, count):
        super().__init__(child)
        self.count = count

    def rows(self, run, epoch):
        for place, row in enumerate(self.children[0].rows(run, epoch)):
            yield row
            if place + 1 == self.count:
                return

    def size(self):
        known = self.children[0].size()
        return None if known is None else min(known, self.count)


class Skip(Take):
    def rows(self, run, epoch):
        for place, row in enumerate(self.children[0].rows(run, epoch)):
            if place >= self.count:
                yield row

    def size(self):
        known = self.children[0].size()
        return None if known is None else max(known - self.count, 0)


class ShuffleRows(Dataset):
    def __init__(self, child, buffer_size, once=False):
        super().__init__(child)
        self.buffer_size, self.once = buffer_size, once

    def rows(self, run, epoch):
        rng = np.random.RandomState([config.get_seed(), 0]) if self.once else run.rng(self, epoch)
        buffer = []
        for row in self.children[0].rows(run, epoch):
            if len(buffer) < self.buffer_size:
                buffer.append(row)
                continue
            place = rng.randint(len(buffer))
            yield buffer[place]
            buffer[place] = row
        for place in rng.permutation(len(buffer)):
            yield buffer[place]


class Sync(Dataset):
    def __init__(self, child, condition_name, num_batch, callback):
        super().__init__(child)
        self.condition_name, self.num_batch, self.callback = condition_name, num_batch, callback

    def rows(self, run, epoch):
        return self.children[0].rows(run, epoch)

    def update(self, data):
        if self.callback is not None:
            self.callback(data) if data is not None else self.callback({})


class Zip(Dataset):
    def __init__(self, *children):
        super().__init__(*children)
        names = self.column_list()
        if len(set(names)) != len(names):
            raise ValueError("Duplicate column names found in the datasets to zip.")

    def column_list(self):
        return [name for child in self.children for name in child.column_list()]

    def rows(self, run, epoch):
        for parts in _zip(*(child.rows(run, epoch) for child in self.children)):
            yield tuple(value for part in parts for value in part)

    def size(self):
        sizes = [child.size() for child in self.children]
        return None if None in sizes else min(sizes)


class Concat(Dataset):
    def __init__(self, *children):
        super().__init__(*children)
        for child in children[1:]:
            if sorted(child.column_list()) != sorted(children[0].column_list()):
                raise RuntimeError("Inconsistent column names, the datasets to concat must have the same columns.")
        self._sampler = None

    def rows(self, run, epoch):
        names = self.column_list()
        def all_rows():
            for child in self.children:
                places = [child.column_list().index(name) for name in names]
                for row in child.rows(run, epoch):
                    yield tuple(row[place] for place in places)
        if self._sampler is None:
            yield from all_rows()
            return
        rows = list(all_rows())
        for place in self._sampler.indices(len(rows), run.rng(self, epoch), epoch):
            yield rows[place]

    def use_sampler(self, sampler):
        """Chooses among the rows of all."""
        self._sampler = sampler

    def size(self):
        sizes = [child.size() for child in self.children]
        if None in sizes or self._sampler is not None:
            return None
        return sum(sizes)


class Rename(Dataset):
    def __init__(self, child, old, new):
        super().__init__(child)
        if len(old) != len(new):
            raise ValueError("Number of input_columns and output_columns must be equal.")
        missing = [name for name in old if name not in child.column_list()]
        if missing:
            raise ValueError(f"column '{missing[0]}' is not in the dataset, which has {child.column_list()}.")
        self.names = dict(_zip(old, new))

    def column_list(self):
        return [self.names.get(name, name) for name in self.children[0].column_list()]

    def rows(self, run, epoch):
        return self.children[0].rows(run, epoch)


class Project(Dataset):
    def __init__(self, child, columns):
        super().__init__(child)
        self.columns = columns

    def column_list(self):
        return self.columns

    def rows(self, run, epoch):
        places = places_of(self.columns, self.children[0].column_list(), "project")
        for row in self.children[0].rows(run, epoch):
            yield tuple(row[place] for place in places)


def places_of(names, have, who):
    """Where columns stand in a row."""
    for name in names:
        if name not in have:
            raise RuntimeError(f"Invalid column, {who}: column name: {name} is not found in the dataset, which has {list(have)}.")
    return [list(have).index(name) for name in names]


def arrays(values):
    """A transform's results as arrays."""
    return [np.asarray(value.asnumpy() if hasattr(value, "asnumpy") else value) for value in values]


class Filter(Dataset):
    def __init__(self, child, predicate, columns):
        super().__init__(child)
        if not callable(predicate):
            raise TypeError("Predicate should be a Python function or a callable Python object.")
        self.predicate, self.columns = predicate, None if columns is None else columns_of(columns, "input_columns")

    def rows(self, run, epoch):
        have = self.children[0].column_list()
        places = places_of(self.columns or have, have, "filter")
        for row in self.children[0].rows(run, epoch):
            kept = self.predicate(*(row[place] for place in places))
            if not isinstance(kept, (bool, np.bool_)) and not (isinstance(kept, np.ndarray) and kept.dtype == bool and kept.size == 1):
                raise RuntimeError(f"Invalid python function, 'predicate' must return a bool, but got {type(kept).__name__}.")
            if bool(kept):
                yield row

    def size(self):
        return None


class Renaming(Dataset):
    """What map and batch share: some columns go through a function, and others may come out, elsewhere in the row."""

    def choose(self, input_columns, output_columns, column_order):
        have = self.children[0].column_list()
        self.inputs = columns_of(input_columns, "input_columns") if input_columns else None
        self.outputs = columns_of(output_columns, "output_columns") if output_columns else None
        self.order = columns_of(column_order, "column_order") if column_order else None
        if self.inputs and any(name not in have for name in self.inputs):
            places_of(self.inputs, have, "input_columns")

    def column_list(self):
        return self.order or self._all_columns()

    def _used(self):
        have = self.children[0].column_list()
        return self.inputs or have[:1]

    def _all_columns(self):
        have, used = self.children[0].column_list(), self._used()
        made = self.outputs or used
        if len(made) == len(used):
            names = dict(_zip(used, made))
            return [names.get(name, name) for name in have]
        return made + [name for name in have if name not in used]

    def placer(self):
        """A function (row, results) that gives the row with the results in it."""
        have, used, names = self.children[0].column_list(), self._used(), self.column_list()
        made = self.outputs or used
        if self.order:
            places_of(self.order, self._all_columns(), "column_order")
        sources = [(True, made.index(name)) if name in made else (False, have.index(name)) for name in names]

        def placed(row, results):
            if len(results) != len(made):
                raise RuntimeError(f"Invalid columns, the number of results, {len(results)}, does not match the number of "
                                   f"output columns, {len(made)}.")
            return tuple(results[place] if new else row[place] for new, place in sources)

        return placed


class Map(Renaming):
    def __init__(self, child, operations, input_columns, output_columns, column_order, callbacks):
        super().__init__(child)
        operations = list(operations) if isinstance(operations, (list, tuple)) else [operations]
        if not operations:
            raise ValueError("operations must not be empty.")
        for each in operations:
            if not callable(each):
                raise TypeError(f"Argument operations[0] with value {each} is not of type [<class 'callable'>], but got {type(each)}.")
        self.operations = operations
        self.callbacks = [] if callbacks is None else callbacks if isinstance(callbacks, (list, tuple)) else [callbacks]
        self.choose(input_columns, output_columns, column_order)

    def rows(self, run, epoch):
        operations = run.operations(self, self.operations, epoch)
        places = places_of(self._used(), self.children[0].column_list(), "map")
        placed = self.placer()
        for row in self.children[0].rows(run, epoch):
            values = [row[place] for place in places]
            for operation in operations:
                values = _applied(operation, values)
            yield placed(row, arrays(values))


def _applied(operation, values):
    if getattr(operation, "one_column", False):
        return [operation(value) for value in values]
    result = operation(*values)
    if result is None:
        raise RuntimeError(f"map operation: {getattr(operation, '__name__', type(operation).__name__)} returned None, it must "
                           "return a value for each column.")
    return list(result) if isinstance(result, (tuple, list)) else [result]


class Batch(Renaming):
    def __init__(self, child, batch_size, drop_remainder=False, per_batch_map=None, input_columns=None, output_columns=None,
                 column_order=None, pad_info=None):
        super().__init__(child)
        if callable(batch_size):
            self.batch_size = batch_size
        else:
            self.batch_size = whole(batch_size, "batch_size")
        self.drop_remainder = flag(drop_remainder, "drop_remainder")
        if per_batch_map is not None and not callable(per_batch_map):
            raise TypeError("per_batch_map must be a function.")
        if pad_info is not None and not isinstance(pad_info, dict):
            raise TypeError(f"Argument pad_info with value {pad_info} is not of type [<class 'dict'>], but got {type(pad_info)}.")
        self.per_batch_map, self.pad_info = per_batch_map, pad_info
        if level.at_least("1.1") and (per_batch_map is None) != (input_columns is None):
            if per_batch_map is None:
                raise ValueError("per_batch_map and input_columns need to be passed in together.")
            input_columns = child.column_list()
        self.choose(input_columns, output_columns, column_order)

    def column_list(self):
        return super().column_list() if self.per_batch_map else self.children[0].column_list()

    def rows(self, run, epoch):
        number, pending = 0, []
        if self.per_batch_map:
            self._places = places_of(self._used(), self.children[0].column_list(), "batch")
            self._placed = self.placer()
        names = self.column_list()
        for row in self.children[0].rows(run, epoch):
            pending.append(row)
            if len(pending) == 1:
                wanted = self.batch_size(BatchInfo(epoch, number)) if callable(self.batch_size) else self.batch_size
            if len(pending) == wanted:
                yield self._batch(pending, BatchInfo(epoch, number), names)
                number, pending = number + 1, []
        if pending and not self.drop_remainder:
            yield self._batch(pending, BatchInfo(epoch, number), names)

    def _batch(self, rows, info, names):
        columns = [list(each) for each in _zip(*rows)]
        if self.per_batch_map:
            made = self.per_batch_map(*(columns[place] for place in self._places), info)
            columns = [list(each) for each in self._placed(columns, made if isinstance(made, tuple) else (made,))]
        if self.pad_info is not None:
            columns = [padded(values, self.pad_info, name) for name, values in _zip(names, columns)]
        return tuple(stacked(values, name) for name, values in _zip(names, columns))

    def size(self):
        rows = self.children[0].size()
        if rows is None or callable(self.batch_size):
            return None
        return rows // self.batch_size if self.drop_remainder else -(-rows // self.batch_size)

    def batch_rows(self):
        return self.batch_size if isinstance(self.batch_size, int) else 1


def stacked(values, name):
    """Rows of a column as one array."""
    values = arrays(values)
    if any(value.shape != values[0].shape for value in values):
        other = next(value for value in values if value.shape != values[0].shape)
        raise RuntimeError(f"Inconsistent batch shapes, batch operation expects same shape for each data row, but got inconsistent shape "
                           f"in column '{name}': {list(values[0].shape)} and {list(other.shape)}.")
    if any(value.dtype != values[0].dtype and value.dtype.kind not in "SU" for value in values):
        raise RuntimeError(f"Inconsistent batch type, batch operation expects same type for each data row, column '{name}'.")
    return np.stack(values)


def padded(values, pad_info, name):
    """Rows of a column filled up: to the shape told, else to the longest of each dimension. {} means all columns."""
    if pad_info and name not in pad_info:
        return values
    shape, fill = pad_info.get(name, (None, 0)) if pad_info else (None, 0)
    values = arrays(values)
    longest = [max(value.shape[axis] for value in values) for axis in range(values[0].ndim)]
    shape = longest if shape is None else [longest[axis] if size in (None, -1) else size for axis, size in enumerate(shape)]
    fill = np.asarray(0 if fill is None else fill)
    filled = []
    for value in values:
        kind = value.dtype if value.dtype.kind not in "SU" else np.result_type(value.dtype, fill.dtype)
        whole_value = np.full(shape, fill if fill.dtype.kind == value.dtype.kind or value.dtype.kind not in "SU" else "", dtype=kind)
        part = tuple(slice(0, min(have, size)) for have, size in _zip(value.shape, shape))
        whole_value[part] = value[part]
        filled.append(whole_value)
    return filled


class Buckets(Dataset):
    def __init__(self, child, columns, boundaries, sizes, length, pad_info, to_boundary, drop_remainder):
        super().__init__(child)
        if not boundaries or any(isinstance(each, bool) or not isinstance(each, int) for each in boundaries):
            raise TypeError("bucket_boundaries should be a list of int.")
        if any(each <= 0 for each in boundaries) or sorted(set(boundaries)) != list(boundaries):
            raise ValueError("bucket_boundaries cannot contain any negative numbers, and must be strictly increasing.")
        if len(sizes) != len(boundaries) + 1:
            raise ValueError("bucket_batch_sizes must contain one element more than bucket_boundaries.")
        if any(each <= 0 for each in sizes):
            raise ValueError("bucket_batch_sizes must contain positive numbers.")
        if length is None and len(columns) != 1:
            raise ValueError("If element_length_function is not specified, exactly one column name should be passed.")
        self.columns, self.boundaries, self.sizes, self.length = columns, list(boundaries), list(sizes), length
        self.pad_info, self.to_boundary, self.drop_remainder = pad_info, to_boundary, drop_remainder

    def rows(self, run, epoch):
        names = self.children[0].column_list()
        places = places_of(self.columns, names, "bucket_batch_by_length")
        pending = [[] for _ in self.sizes]
        for row in self.children[0].rows(run, epoch):
            values = [row[place] for place in places]
            length = int(self.length(*values)) if self.length else len(values[0])
            bucket = int(np.searchsorted(self.boundaries, length, side="right"))
            pending[bucket].append(row)
            if len(pending[bucket]) == self.sizes[bucket]:
                yield self._batch(pending[bucket], bucket, names)
                pending[bucket] = []
        if not self.drop_remainder:
            for bucket, rows in enumerate(pending):
                if rows:
                    yield self._batch(rows, bucket, names)

    def _batch(self, rows, bucket, names):
        pad_info = self.pad_info
        if pad_info and self.to_boundary:
            if bucket == len(self.boundaries):
                raise RuntimeError("pad_to_bucket_boundary: a row is longer than the last boundary.")
            bound = self.boundaries[bucket] - 1
            pad_info = {name: ([bound if size in (None, -1) else size for size in shape], fill) for name, (shape, fill) in pad_info.items()}
        columns = [list(each) for each in _zip(*rows)]
        if pad_info is not None:
            columns = [padded(values, pad_info, name) for name, values in _zip(names, columns)]
        return tuple(stacked(values, name) for name, values in _zip(names, columns))

    def size(self):
        return None


def zip(datasets):  # noqa: A001
    """Columns of several pipelines side by side."""
    if not isinstance(datasets, (list, tuple)) or not datasets:
        raise TypeError("The datasets to zip must be a tuple of datasets.")
    return Zip(*datasets)


def concat(datasets):
    """Rows of several pipelines one after the other."""
    return Concat(*datasets)


def warn_epochs(epoch, dataset):
    """In 0.5 the repeat count and the number of epochs should agree."""
    repeats = dataset.get_repeat_count()
    if not level.at_least("1.1") and repeats not in (1, epoch, _ENDLESS):
        warnings.warn(f"The epoch {epoch} is not equal to the repeat count {repeats} of the dataset", stacklevel=3)
