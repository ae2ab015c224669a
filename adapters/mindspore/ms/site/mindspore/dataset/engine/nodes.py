"""Operations that pass rows on as they are: which rows, in which order, under which names."""

import numpy as np
from cairn import _data
from cairn.ms import level

from mindspore.dataset.engine.checks import columns_of
from mindspore.dataset.engine.datasets import ENDLESS, Dataset


class Repeat(Dataset):
    def __init__(self, child, count):
        super().__init__(child)
        self.count = count

    def node(self, build):
        return _data.repeat(build(self.children[0]), None if self.count == ENDLESS else self.count, self.where)

    def size(self):
        known = self.children[0].size()
        if not level.at_least("1.1") or self.count == ENDLESS:
            return self.children[0].get_dataset_size()
        return None if known is None else known * self.count

    def repeats(self):
        return self.count * (self.children[0].repeats() if self.count != ENDLESS else 1)


class Take(Dataset):
    def __init__(self, child, count):
        super().__init__(child)
        self.count = count

    def node(self, build):
        return _data.take(build(self.children[0]), self.count, self.where)

    def size(self):
        known = self.children[0].size()
        return None if known is None else min(known, self.count)


class Skip(Take):
    def node(self, build):
        return _data.skip(build(self.children[0]), self.count, self.where)

    def size(self):
        known = self.children[0].size()
        return None if known is None else max(known - self.count, 0)


class ShuffleRows(Dataset):
    def __init__(self, child, buffer_size, once=False):
        super().__init__(child)
        self.buffer_size, self.once = buffer_size, once

    def node(self, build):
        return _data.shuffle(build(self.children[0]), self.buffer_size, self.once, self.where)


class Sync(Dataset):
    def __init__(self, child, condition_name, num_batch, callback):
        super().__init__(child)
        self.condition_name, self.num_batch, self.callback = condition_name, num_batch, callback

    def node(self, build):
        return build(self.children[0])

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

    def node(self, build):
        return _data.zip([build(child) for child in self.children], self.where)

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

    def node(self, build):
        names = self.column_list()
        whole = _data.concat([_data.project(build(child), names, self.where) for child in self.children], self.where)
        return whole if self._sampler is None else _data.sampled(whole, self._sampler.native(), self.where)

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
        self.names = dict(zip(old, new))

    def column_list(self):
        return [self.names.get(name, name) for name in self.children[0].column_list()]

    def node(self, build):
        return _data.rename(build(self.children[0]), list(self.names), list(self.names.values()), self.where)


class Project(Dataset):
    def __init__(self, child, columns):
        super().__init__(child)
        self.columns = columns

    def column_list(self):
        return self.columns

    def node(self, build):
        return _data.project(build(self.children[0]), self.columns, self.where)


class Filter(Dataset):
    def __init__(self, child, predicate, columns):
        super().__init__(child)
        if not callable(predicate):
            raise TypeError("Predicate should be a Python function or a callable Python object.")
        self.predicate, self.columns = predicate, None if columns is None else columns_of(columns, "input_columns")

    def node(self, build):
        return _data.host_filter(build(self.children[0]), self._kept, self.columns or [], self.where)

    def _kept(self, row, _epoch, _number):
        kept = self.predicate(*row)
        if not isinstance(kept, (bool, np.bool_)) and not (isinstance(kept, np.ndarray) and kept.dtype == bool and kept.size == 1):
            raise RuntimeError(f"Invalid python function, 'predicate' must return a bool, but got {type(kept).__name__}.")
        return bool(kept)

    def size(self):
        return None
