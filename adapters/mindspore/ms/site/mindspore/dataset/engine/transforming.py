"""Operations that compute: map, batch and batches of rows of like length."""

import copy

import numpy as np
from cairn import _data
from cairn.data import teams
from cairn.data.nodes import grouped, hosted
from cairn.ms import level

from mindspore.dataset import callback
from mindspore.dataset.engine.checks import arrays, columns_of, flag, places_of, whole
from mindspore.dataset.engine.datasets import BatchInfo, Dataset
from mindspore.dataset.engine.sources import cache_of, keeping
from mindspore.dataset.transforms.transforms import Compose, Transform


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
            names = dict(zip(used, made))
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
    def __init__(self, child, operations, input_columns, output_columns, column_order, callbacks, team=(0, False), cache=None):
        super().__init__(child)
        self.team, self.cache = team, cache_of(cache)
        operations = list(operations) if isinstance(operations, (list, tuple)) else [operations]
        if not operations:
            raise ValueError("operations must not be empty.")
        for each in operations:
            if not callable(each):
                raise TypeError(f"Argument operations[0] with value {each} is not of type [<class 'callable'>], but got {type(each)}.")
        self.operations = [each for operation in operations for each in _parts(operation)]
        self.callbacks = callback.checked(callbacks)
        self.choose(input_columns, output_columns, column_order)

    def node(self, build):
        return keeping(self._mapped(build), self.cache, self.where)

    def _mapped(self, build):
        node, inputs = build(self.children[0]), self._used()
        if self.callbacks and build.told is not None:  # which see each row in the caller's thread
            build.told.append(callback.Told(self.callbacks))
            calls = build.told[-1].around(_calls(self.operations, [build.seed, build.place(), 0]))
            return hosted(node, calls, inputs, self.outputs or [], self.order or [], "map", self.where, 0, False)
        groups = grouped([_native(each) or each for each in self.operations])
        for number, (native, group) in enumerate(groups):
            last = number + 1 == len(groups)
            names = [inputs, (self.outputs or []) if last else [], (self.order or []) if last else []]
            if native:
                node = _data.map(node, group, *names, self.where)
            elif last or not _several(group):
                node = hosted(node, _calls(group, [build.seed, build.place(), number]), *names, "map", self.where, *self.team)
            else:  # a number of columns that only running tells: the rest runs here as well
                rest = self.operations[sum(len(each) for _, each in groups[:number]) :]
                calls = _calls(rest, [build.seed, build.place(), number])
                return hosted(node, calls, inputs, self.outputs or [], self.order or [], "map", self.where, *self.team)
        return node


def _parts(operation):
    """The transforms of a Compose, each of which a worker may run."""
    whole = isinstance(operation, Compose) and type(operation).chosen is Compose.chosen
    return [part for each in operation.transforms for part in _parts(each)] if whole else [operation]


def _native(operation):
    return operation.native() if isinstance(operation, Transform) and hasattr(operation, "native") else None


def _several(group):
    """Whether other columns may come out than go in."""
    return not all(getattr(each, "one_column", False) for each in group)


def _calls(operations, place):
    def call(row, epoch, number):
        values = list(row)
        for at, operation in enumerate(operations):
            if hasattr(operation, "reseed"):
                operation = copy.copy(operation)  # which threads do not share
                operation.reseed([*place, epoch, number, at])
            values = _applied(operation, values)
        return arrays(values)

    return call


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
                 column_order=None, pad_info=None, team=(0, False)):
        super().__init__(child)
        self.team = team
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

    def node(self, build):
        child, names = build(self.children[0]), self.column_list()
        if isinstance(self.batch_size, int) and not self.per_batch_map:
            return _data.batch(child, self.batch_size, self.drop_remainder, fills(self.pad_info, names), self.where)
        return _data.host_gather(child, lambda epoch: self._gather(epoch, build.seed), names, "batch", self.where)

    def _gather(self, epoch, seed):
        workers, processes = self.team
        team = teams.starter(self._batch_of_parts, workers, processes)(seed) if workers else None
        pending, number, wanted, begun = [], 0, 0, 0

        def finish(rows):
            nonlocal begun
            info = BatchInfo(epoch, number - 1)
            if team is None:
                return [self._batch(rows, info)]
            team.begin([np.asarray(value) for row in rows for value in row], epoch, number - 1)
            begun += 1
            return ended(team.most - 1)

        def ended(most):
            nonlocal begun
            made = []
            while begun > most:
                begun -= 1
                made.append(team.end())
            return made

        def take(row):
            nonlocal pending, number, wanted
            if row is not None:
                if not pending:
                    wanted = self._wanted(BatchInfo(epoch, number))
                pending.append(row)
            if not pending or (len(pending) < wanted if row is not None else self.drop_remainder):
                return [] if row is not None else ended(0)
            rows, pending, number = pending, [], number + 1
            made = finish(rows)
            return made if row is not None else made + ended(0)

        return take

    def _wanted(self, info):
        if not callable(self.batch_size):
            return self.batch_size
        wanted = self.batch_size(info)
        if isinstance(wanted, bool) or not isinstance(wanted, int) or wanted < 1:
            raise RuntimeError(f"Invalid batch_size, the function should return an int greater than 0, but got {wanted}.")
        return wanted

    def _batch_of_parts(self, values, epoch, number):
        width = len(self.children[0].column_list())
        return self._batch([values[at : at + width] for at in range(0, len(values), width)], BatchInfo(epoch, number))

    def _batch(self, rows, info):
        columns, names = [list(each) for each in zip(*rows)], self.column_list()
        if self.per_batch_map:
            places = places_of(self._used(), self.children[0].column_list(), "batch")
            made = self.per_batch_map(*(columns[place] for place in places), info)
            columns = [list(each) for each in self.placer()(columns, made if isinstance(made, tuple) else (made,))]
        told = {each[0]: [each] for each in fills(self.pad_info, names)}
        return [_data.stack(arrays(values), name, told.get(name, [])) for name, values in zip(names, columns)]

    def size(self):
        rows = self.children[0].size()
        if rows is None or callable(self.batch_size):
            return None
        return rows // self.batch_size if self.drop_remainder else -(-rows // self.batch_size)

    def batch_rows(self):
        return self.batch_size if isinstance(self.batch_size, int) else -1


def fills(pad_info, names):
    """What the library takes for pad_info; {} means all columns."""
    if pad_info is None:
        return []
    pad_info = pad_info or {name: (None, None) for name in names}
    return [(name, None if shape is None else [-1 if size is None else size for size in shape], 0 if fill is None else fill)
            for name, (shape, fill) in _both(pad_info).items() if name in names]  # fmt: skip


def _both(pad_info):
    """Shape and value of each column, None for what is not told."""
    return {name: (None, None) if told is None else told for name, told in pad_info.items()}


class Buckets(Dataset):
    def __init__(self, child, columns, boundaries, sizes, length, pad_info, to_boundary, drop_remainder):
        super().__init__(child)
        if not boundaries:
            raise ValueError("bucket_boundaries cannot be empty.")
        for name, values in (("bucket_boundaries", boundaries), ("bucket_batch_sizes", sizes)):
            if any(isinstance(each, bool) or not isinstance(each, int) for each in values):
                raise TypeError(f"{name} should be a list of int.")
        if any(each <= 0 for each in boundaries):
            raise ValueError("bucket_boundaries must only contain positive numbers.")
        if sorted(set(boundaries)) != list(boundaries):
            raise ValueError("bucket_boundaries should be strictly increasing.")
        if len(sizes) != len(boundaries) + 1:
            raise ValueError("bucket_batch_sizes must contain one element more than bucket_boundaries.")
        if any(each <= 0 for each in sizes):
            raise ValueError("bucket_batch_sizes should be a list of positive numbers.")
        flag(to_boundary, "pad_to_bucket_boundary")
        flag(drop_remainder, "drop_remainder")
        if length is None and len(columns) != 1:
            raise ValueError("If element_length_function is not specified, exactly one column name should be passed.")
        self.columns, self.boundaries, self.sizes, self.length = columns, list(boundaries), list(sizes), length
        self.pad_info, self.to_boundary, self.drop_remainder = pad_info, to_boundary, drop_remainder

    def node(self, build):
        names = self.children[0].column_list()
        return _data.bucket_batch(build(self.children[0]), self.columns, self.boundaries, self.sizes, self._length,
                                  [fills(self._fill(bucket), names) for bucket in range(len(self.sizes))], self.drop_remainder,
                                  self.where)  # fmt: skip

    def _length(self, row):
        length = int(self.length(*row)) if self.length else len(row[0])
        open_sizes = any(size in (None, -1) for shape, _ in _both(self.pad_info or {}).values() for size in shape or [])
        if self.to_boundary and open_sizes and length >= self.boundaries[-1]:
            raise RuntimeError("pad_to_bucket_boundary: a row is longer than the last boundary.")
        return length

    def _fill(self, bucket):
        if not self.pad_info or not self.to_boundary or bucket == len(self.boundaries):
            return self.pad_info
        bound = self.boundaries[bucket] - 1
        return {name: (shape and [bound if size in (None, -1) else size for size in shape], fill)
                for name, (shape, fill) in _both(self.pad_info).items()}  # fmt: skip

    def size(self):
        return None
