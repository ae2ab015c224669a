"""Input pipelines: sources, operations and transforms run by workers in C++, in the same order for any number of them.

    from cairn import data
    from cairn.data import transforms as t

    images = data.image_folder("train", shuffle=True)
    images = images.map([t.random_crop_decode_resize(224), t.random_horizontal_flip(), t.normalize(mean, std), t.hwc2chw()], "image")
    for epoch in range(10):
        for batch in iterator:            # iterator = images.batch(32).iterate(workers=2, seed=1)
            step(batch["image"], batch["label"])   # NumPy arrays; torch.from_numpy() and DLPack share their memory

What is random follows from the seed, the epoch and the number of the row alone. Iterator.state() is where an iterator stands;
Dataset.iterate(state=...) goes on from there, also with another number of workers. Functions of your own run in the caller's
thread, in the order of the rows.
"""

import atexit
import time

from cairn import _data
from cairn.data import reports, samplers, transforms
from cairn.data.annotated import celeba, coco, manifest, voc  # noqa: F401
from cairn.data.nodes import Cache, Dataset
from cairn.data.sources import (  # noqa: F401
    cifar10,
    cifar100,
    csv,
    generator,
    image_folder,
    mindrecord,
    mnist,
    slices,
    text_files,
    tfrecord,
)
from cairn.data.writers import MindRecordWriter, TFRecordWriter, write_mindrecord, write_tfrecord

__all__ = ["Cache", "Dataset", "Iterator", "MindRecordWriter", "TFRecordWriter", "celeba", "cifar10", "cifar100", "coco", "csv", "generator", "image_folder", "manifest",
           "mindrecord", "mnist", "samplers", "slices", "text_files", "tfrecord", "transforms", "voc", "write_mindrecord", "write_tfrecord"]  # fmt: skip


@atexit.register
def _stop_all():
    for iterator in list(reports.running):
        iterator.stop()
    reports.write_requested()


class Iterator:
    """Rows as {column: array}. One `for` loop over it is one epoch; the next loop is the next epoch."""

    def __init__(self, dataset, workers=2, seed=0, epochs=None, ahead=0, memory=1 << 30, state=None):
        seed, epoch, row = (state["seed"], state["epoch"], state["row"]) if state else (seed, 0, 0)
        self.columns = dataset.columns
        self._last = None if epochs is None else epoch + epochs
        self._workers, self._begun = workers, time.monotonic()
        self._rows = _data.Rows(dataset.node, seed, workers, ahead, memory, epoch, row)
        reports.running.add(self)

    def __iter__(self):
        return self

    def __next__(self):
        return dict(zip(self.columns, self.next_row()))

    def next_row(self):
        """The next row as a tuple; StopIteration at the end of an epoch."""
        if self._last is not None and self._rows.position()[1] >= self._last:
            self.stop()
            raise StopIteration
        row = self._rows.next()
        if row is None:
            raise StopIteration
        return row

    def state(self):
        """Where it stands, as a dict that JSON can hold; for Dataset.iterate(state=...) over the same pipeline."""
        return dict(zip(("seed", "epoch", "row"), self._rows.position()))

    def stop(self):
        """Ends its threads. Dropping the iterator does it too."""
        reports.keep(self)
        self._rows.stop()

    def __del__(self):
        if hasattr(self, "_rows") and reports is not None:  # the interpreter may be going
            self.stop()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def report(self):
        """{"operations": [{"operation", "where", "rows", "busy_s", "waited_s": how long what takes its rows waited for them, "queue":
        rows or batches that lay ready on average, "ahead": how many might}], "seconds" since it was made, "workers", "bytes" and "most_bytes" of rows that lie ready, "advice"}."""
        told = self._rows.report()
        if told:
            told["seconds"], told["workers"] = time.monotonic() - self._begun, self._workers
            told["advice"] = _advice(told)
        return told


def _advice(told):
    slowest, last = max(told["operations"], key=lambda each: each["busy_s"]), told["operations"][-1]
    name = slowest["operation"] + (f" ({slowest['where']})" if slowest["where"] else "")
    if last["queue"] >= 0.5:
        return f"rows lie ready ({last['queue']:.1f} on average): the pipeline is not what a step waits for"
    return f"the caller waited {last['waited_s']:.2f} s for rows; most time went into {name}: more workers, or less work there"


def _iterate(self, workers=2, seed=0, epochs=None, ahead=0, memory=1 << 30, state=None):
    """An iterator. workers: threads, 0 for the caller's own. epochs: None for any number. ahead: rows or batches that may
    wait to be taken, 0 for two for each worker, and more where measurement shows that it helps. memory: bytes of waiting rows from which on no more are made."""
    return Iterator(self, workers, seed, epochs, ahead, memory, state)


Dataset.iterate = _iterate
