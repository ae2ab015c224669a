"""Operations that pass rows on as they are: which rows, in which order, under which names."""

import numpy as np
from cairn.ms import level

from mindspore.dataset.core import config
from mindspore.dataset.engine.checks import columns_of, places_of
from mindspore.dataset.engine.datasets import ENDLESS, Dataset


class Repeat(Dataset):
    def __init__(self, child, count):
        super().__init__(child)
        self.count = count

    def rows(self, run, epoch):
        turn = 0
        while self.count == ENDLESS or turn < self.count:
            yield from self.children[0].rows(run, turn if self.count == ENDLESS else epoch * self.count + turn)
            turn += 1

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
        for parts in zip(*(child.rows(run, epoch) for child in self.children)):
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
        self.names = dict(zip(old, new))

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
