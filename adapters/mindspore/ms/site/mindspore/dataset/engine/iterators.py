"""Iterators: rows out of a pipeline, epoch by epoch."""

import copy
import re

import numpy as np
from cairn.ms import level

from mindspore.dataset.core import config


def copied(dataset):
    """The pipeline with nodes of its own, which share what they compute with."""
    made = copy.copy(dataset)
    made.children = [copied(each) for each in dataset.children]
    return made


def _failed_map(note):
    """MindSpore's words for what failed in a map."""
    told = re.match(r"in map(?: of (.+), (?:line|row) \d+)?", note)
    if not told:
        return ""
    return ". map operation: [PyFunc] failed. " + (f"The corresponding data file is: {told[1]}." if told[1] else "")


class Iterator:
    """One `for` loop over it is one epoch; the next loop is the next epoch."""

    def __init__(self, dataset, num_epochs, output_numpy, columns=None, first_epoch=0):
        from mindspore.dataset.engine.checks import places_of
        from mindspore.dataset.engine.datasets import Build

        self.dataset, self._left = copied(dataset), num_epochs
        self._numpy = output_numpy or not level.at_least("1.1")
        have = dataset.get_col_names()
        self._columns = columns or have
        self._places = places_of(self._columns, have, "iterator")
        self._told = []
        self._rows = Build(self._told).iterator(dataset, first_epoch)

    def __iter__(self):
        return self

    def __next__(self):
        if self._rows is None or self._left == 0:
            raise StopIteration
        for each in self._told:
            each.begin()
        try:
            row = self._rows.next_row()
        except StopIteration:
            for each in self._told:
                each.end()
            self._left -= 1
            if self._left == 0:
                self.stop()
            raise
        except (RuntimeError, MemoryError):
            raise
        except Exception as error:  # a user's function: its error is the cause, and in the sentence
            notes = "".join(f"; {each}" + _failed_map(each) for each in getattr(error, "__notes__", []))
            raise RuntimeError("Exception thrown from user defined Python function in dataset. "
                               f"{type(error).__name__}: {error}{notes}") from error  # fmt: skip
        return self._shaped([self._value(row[place]) for place in self._places])

    def get_next(self):
        """The next row."""
        return next(self)

    def stop(self):
        """Ends the iterator."""
        if self._rows is not None:
            self._rows.stop()
            if config.autotune_file():
                from mindspore.dataset.engine.serialized import serialize_tuned

                serialize_tuned(self.dataset, config.autotune_file())
        self._rows = None

    release = stop

    def _value(self, value):
        if value.dtype.kind in "SU":
            # numpy.str_ since 1.9, bytes before
            if level.at_least("1.10"):
                value = value.astype(np.str_)
            elif value.dtype.kind == "U":
                value = np.char.encode(value, "utf-8")
        if self._numpy:
            return value
        from mindspore.common.tensor import Tensor

        return Tensor(value) if value.dtype.kind not in "SU" else value


class DictIterator(Iterator):
    """Rows as {column: value}."""

    def _shaped(self, values):
        return dict(zip(self._columns, values))


class TupleIterator(Iterator):
    """Rows as lists."""

    def _shaped(self, values):
        return values


class Transfer:
    """What sink mode reads from: rows that carry on from one pass to the next."""

    def __init__(self, dataset):
        self.dataset = dataset

    def send(self, num_epochs=-1):
        """Rows are made when they are asked for."""

    def stop_send(self):
        """Nothing runs in the background."""

    continue_send = release = stop_send

    def get_type(self):
        """The kind of queue."""
        return "device_que"
