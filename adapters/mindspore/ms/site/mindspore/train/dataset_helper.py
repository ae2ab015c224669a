"""Rows for a training loop: one epoch after the other, in feed or sink mode."""

import itertools
import queue
import threading

from cairn.ms import level

from mindspore.common.tensor import Tensor
from mindspore.dataset.engine.datasets import Dataset
from mindspore.dataset.engine.iterators import TupleIterator

__all__ = ["DatasetHelper", "connect_network_with_dataset"]


AHEAD = 2  # rows that sink mode keeps ready


def _ahead(rows, count):
    """The same rows, of which a thread makes the first `count` while earlier ones are used."""
    ready, stopped = queue.Queue(AHEAD), threading.Event()

    def put(entry):
        while not stopped.is_set():
            try:
                return ready.put(entry, timeout=0.1)
            except queue.Full:
                pass

    def make():
        try:
            for row in itertools.islice(rows, count):
                put((row, None))
                if stopped.is_set():
                    return
        except BaseException as error:
            put((None, error))

    thread = threading.Thread(target=make, name="cairn ms data", daemon=True)
    thread.start()
    try:
        for _ in range(count):
            row, error = ready.get()
            if error is not None:
                raise error
            yield row
    finally:
        stopped.set()
        thread.join()
    yield from rows


class DatasetHelper:
    """The units of a loop: in feed mode a step each; in sink mode the steps between two calls of the callbacks, which are a pass of the dataset,
    or sink_size steps that carry on across passes."""

    def __init__(self, dataset, dataset_sink_mode=True, sink_size=-1, epoch_num=1, first_epoch=0):
        if not isinstance(dataset_sink_mode, bool):
            raise TypeError(f"The argument 'dataset_sink_mode' must be bool, but got {type(dataset_sink_mode)}.")
        if type(sink_size) is not int:
            raise TypeError(f"The argument 'sink_size' must be int, but got {type(sink_size)}.")
        if sink_size < -1 or sink_size == 0:
            raise ValueError(f"The 'sink_size' must be -1 or positive, but got sink_size {sink_size}.")
        self.dataset, self.sinks = dataset, dataset_sink_mode
        self.size = dataset.get_dataset_size()
        self._steps = sink_size if dataset_sink_mode and sink_size > 0 else self.size
        if dataset_sink_mode:
            dataset._sunk = True
        self._epoch_num = epoch_num
        self.begin_at(first_epoch)

    def begin_at(self, epoch):
        """The next rows are the first ones of this epoch."""
        begun = epoch * self._steps if self.sinks else 0
        self._rows = self._endless(begun // self.size if self.sinks else epoch, begun % self.size if self.sinks else 0)
        if self.sinks:
            self._rows = _ahead(self._rows, max(self._epoch_num - epoch, 0) * self._steps)

    def _endless(self, first_epoch, skipped):
        """Rows of pass after pass. In 0.5 a dataset with repeat(n) restarts after n passes."""
        own = not isinstance(self.dataset, Dataset)  # a script's class that answers like one
        iterator = None if own else TupleIterator(self.dataset, -1, False, first_epoch=self._first(first_epoch))
        skipped, failed = 0 if own else skipped, False
        while True:
            rows = 0
            for row in itertools.islice(self.dataset.create_tuple_iterator() if own else iterator, skipped, None):
                rows += 1
                yield row
            if own and hasattr(self.dataset, "reset"):
                self.dataset.reset()
            if not rows and not skipped and (failed or not own):
                raise RuntimeError("the dataset has no rows any more")
            skipped, failed = 0, not rows  # one of the script's own may have been read to its end before

    def _first(self, epoch):
        return epoch // max(self.dataset.get_repeat_count(), 1) if not level.at_least("1.1") else epoch

    def steps(self):
        """Steps of an epoch."""
        return self._steps

    sink_size = steps

    def units(self):
        """The units of one epoch, each an iterable of rows of Tensors."""
        rows = (tuple(each if isinstance(each, Tensor) else Tensor(each) for each in row) for row in itertools.islice(self._rows, self._steps))
        if self.sinks:
            yield rows
        else:
            for row in rows:
                yield (row,)

    def __iter__(self):
        if not self.sinks and not isinstance(self.dataset, Dataset):  # its own iterator says where the rows end
            yield from self.dataset.create_tuple_iterator()
            return
        for unit in self.units():
            for row in unit:
                yield row

    def stop_send(self):
        """Ends what makes rows in the background."""
        self._rows.close()

    release = stop_send

    def continue_send(self):
        """Rows carry on by themselves."""

    def types_shapes(self):
        """(types, shapes) of the columns."""
        return self.dataset.output_types(), self.dataset.output_shapes()

    def get_data_info(self):
        """The same, of the rows now."""
        return self.types_shapes()


def connect_network_with_dataset(network, dataset_helper):
    """The network itself: rows are handed to it."""
    return network
