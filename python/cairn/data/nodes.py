"""A pipeline: a source and operations on its rows. Nothing runs before an iterator is made."""

import itertools
import os
import sys

import numpy as np

from cairn import _data
from cairn.data import teams

_OWN = (os.sep + os.path.join("cairn", "data") + os.sep, os.sep + os.path.join("cairn", "ms") + os.sep)


def script_line():
    """file:line of the nearest caller outside of Cairn."""
    frame = sys._getframe(1)
    while frame is not None and any(part in frame.f_code.co_filename for part in _OWN):
        frame = frame.f_back
    return "" if frame is None else f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


def names_of(columns):
    """A list of names, from one name, several or none."""
    return [columns] if isinstance(columns, str) else list(columns or ())


class Cache:
    """Rows kept from one epoch to the next: memory is the most bytes of them, 0 for any number; with `spill` more of them lie in a
    file without a name in the folder for temporary files."""

    def __init__(self, memory=0, spill=False):
        self.rows, self._regions = _data.Cache(memory, spill), itertools.count()

    def region(self):
        """A number for the rows of one operation."""
        return next(self._regions)

    def stats(self):
        """{"rows_in_memory", "rows_in_file", "bytes" in memory, "found" and "made": rows asked for}."""
        return self.rows.stats()


class Dataset:
    """A node and all that it stands on."""

    def __init__(self, node):
        self.node = node

    @property
    def columns(self):
        """Names of the columns."""
        return self.node.columns

    def __len__(self):
        size = self.node.size()
        if size is None:
            raise TypeError("only a pass tells how many rows there are")
        if size < 0:
            raise TypeError("the pipeline has no end")
        return size

    def __iter__(self):
        return iter(self.iterate(epochs=1))

    def map(self, functions, columns=None, out=None, order=None, workers=0, processes=False):
        """Applies transforms (cairn.data.transforms) or functions of your own to columns: f(array, ...) gives an array or a tuple
        of them. `out` names the results, `order` the columns that go on. workers: run functions of your own in so many threads,
        or with `processes` in so many processes, not in the caller's thread."""
        node, inputs, where = self.node, names_of(columns), script_line()
        groups = grouped(functions if isinstance(functions, (list, tuple)) else [functions])
        for number, (native, group) in enumerate(groups):
            last = number + 1 == len(groups)
            outputs, kept = (names_of(out), names_of(order)) if last else ((), ())
            taken = inputs
            if native:
                node = _data.map(node, group, taken, outputs, kept, where)
            else:
                node = hosted(node, _called(group), taken, outputs, kept, _name(group), where, workers, processes)
        return Dataset(node)

    def filter(self, predicate, columns=None):
        """The rows of which predicate(array, ...) is true."""
        return Dataset(_data.host_filter(self.node, lambda row, *_: bool(predicate(*row)), names_of(columns), script_line()))

    def cache(self, cache):
        """Makes each row once and keeps it in a Cache for the next epochs, what is random in it as well."""
        return Dataset(_data.cached(self.node, cache.rows, cache.region(), script_line()))

    def batch(self, size, drop_remainder=False, pad=None):
        """`size` rows as one. pad: {column: (shape, value)} fills rows up, (None, value) to the longest."""
        return Dataset(_data.batch(self.node, size, drop_remainder, fills(pad), script_line()))

    def bucket_batch(self, column, boundaries, sizes, length=None, pad=None, drop_remainder=False):
        """Batches of rows of like length: len(array) or length(array, ...). One size more than boundaries."""
        told = (lambda row: int(length(*row))) if length else None
        return Dataset(_data.bucket_batch(self.node, names_of(column), list(boundaries), list(sizes), told,
                                          [fills(pad)] * len(sizes), drop_remainder, script_line()))  # fmt: skip

    def shuffle(self, buffer_size):
        """Rows drawn from a buffer; it holds no rows, only where they come from, so it may be large."""
        return Dataset(_data.shuffle(self.node, buffer_size, False, script_line()))

    def repeat(self, count=None):
        """`count` passes as one; None: without end."""
        return Dataset(_data.repeat(self.node, count, script_line()))

    def take(self, count):
        """The first rows."""
        return Dataset(_data.take(self.node, count, script_line()))

    def skip(self, count):
        """All but the first rows."""
        return Dataset(_data.skip(self.node, count, script_line()))

    def zip(self, *others):
        """Columns side by side."""
        return Dataset(_data.zip([self.node, *(each.node for each in others)], script_line()))

    def concat(self, *others):
        """Rows one pipeline after the other."""
        return Dataset(_data.concat([self.node, *(each.node for each in others)], script_line()))

    def rename(self, old, new):
        """Other names for columns."""
        return Dataset(_data.rename(self.node, names_of(old), names_of(new), script_line()))

    def project(self, columns):
        """Some columns, in this order."""
        return Dataset(_data.project(self.node, names_of(columns), script_line()))

    def split(self, sizes, shuffle=True):
        """Pipelines that share the rows: numbers of rows, or shares that add up to 1; the same parts in each epoch."""
        total, where = len(self), script_line()
        counts = [int(round(each * total)) if isinstance(each, float) else each for each in sizes]
        if any(isinstance(each, float) for each in sizes):
            counts[0] += total - sum(counts)
        if sum(counts) != total or min(counts) < 0:
            raise ValueError(f"the parts {list(sizes)} do not make up {total} rows")
        whole = _data.shuffle(self.node, max(total, 1), True, where) if shuffle else self.node
        begins = np.cumsum([0, *counts])
        return [Dataset(_data.take(_data.skip(whole, int(begin), where), count, where)) for begin, count in zip(begins, counts)]


def hosted(node, function, inputs, outputs, order, name, where, workers=0, processes=False):
    """The library's node for function(columns, epoch, row), which runs in the caller's thread or in a team."""
    if not workers:
        return _data.host_map(node, function, inputs, outputs, order, name, where)
    return _data.host_parallel(node, teams.starter(function, workers, processes), inputs, outputs, order, name, where)


def numbered(count, read, names, sampler, where, workers=0, processes=False):
    """The library's source of rows read(number)."""
    if not workers:
        return _data.numbered(count, read, names, sampler, where)
    rows = _data.table("generator", [("row", "slices", np.arange(count))], sampler, where)
    return hosted(rows, lambda row, *_: read(int(row[0])), [], names, names, "generator", where, workers, processes)


def grouped(functions):
    """[(whether native, functions)]: neighbours of a kind together."""
    groups = []
    for each in functions:
        native = isinstance(each, _data.Transform)
        if not native and not callable(each):
            raise TypeError(f"map takes transforms and functions, found {type(each).__name__}")
        if not groups or groups[-1][0] != native:
            groups.append((native, []))
        groups[-1][1].append(each)
    return groups


def _name(group):
    return ", ".join(getattr(each, "__name__", type(each).__name__) for each in group)


def _called(group):
    def call(row, epoch, number):
        for function in group:
            made = function(*row)
            row = tuple(made) if isinstance(made, (tuple, list)) else (made,)
        return row

    return call


def fills(pad):
    """What the library takes for pad_info."""
    return [(name, None if shape is None else [-1 if size is None else size for size in shape], 0 if value is None else value)
            for name, (shape, value) in (pad or {}).items()]  # fmt: skip
