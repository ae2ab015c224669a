"""Operations that compute: map, batch and batches of rows of like length."""

import numpy as np
from cairn.ms import level

from mindspore.dataset.engine.checks import arrays, columns_of, flag, places_of, whole
from mindspore.dataset.engine.datasets import BatchInfo, Dataset


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
        columns = [list(each) for each in zip(*rows)]
        if self.per_batch_map:
            made = self.per_batch_map(*(columns[place] for place in self._places), info)
            columns = [list(each) for each in self._placed(columns, made if isinstance(made, tuple) else (made,))]
        if self.pad_info is not None:
            columns = [padded(values, self.pad_info, name) for name, values in zip(names, columns)]
        return tuple(stacked(values, name) for name, values in zip(names, columns))

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
        part = tuple(slice(0, min(have, size)) for have, size in zip(value.shape, shape))
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
        columns = [list(each) for each in zip(*rows)]
        if pad_info is not None:
            columns = [padded(values, pad_info, name) for name, values in zip(names, columns)]
        return tuple(stacked(values, name) for name, values in zip(names, columns))

    def size(self):
        return None
