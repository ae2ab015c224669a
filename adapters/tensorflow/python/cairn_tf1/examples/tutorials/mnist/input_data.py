"""MNIST as the tutorials read it, from files on disk; nothing is downloaded."""

import collections
import gzip
import os

import numpy as np
import tensorflow.compat.v1 as tf

Datasets = collections.namedtuple("Datasets", ["train", "validation", "test"])
_Datasets = Datasets
FILES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


def maybe_download(filename, work_directory, source_url=None):
    """The path of a file that must be there; this layer downloads nothing."""
    path = os.path.join(work_directory, filename)
    for candidate in (path, path[:-3] if path.endswith(".gz") else path + ".gz"):
        if os.path.exists(candidate):
            return candidate
    raise FileNotFoundError(f"{path} is not there, and nothing is downloaded; put the four MNIST files into {work_directory}")


def _read(path):
    """An IDX file of bytes."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
        content = file.read()
    if len(content) < 4 or content[:3] != b"\0\0\x08" or len(content) < 4 + 4 * content[3]:
        raise ValueError(f"{path} is not an IDX file of bytes")
    shape = np.frombuffer(content, ">u4", content[3], 4).astype(int)
    values = np.frombuffer(content, np.uint8, offset=4 + 4 * content[3])
    if values.size != shape.prod():
        raise ValueError(f"{path} has {values.size} values, its head says {shape.prod()}")
    return values.reshape(shape)


class DataSet:
    """Images and labels, given out in shuffled batches that run on from epoch to epoch."""

    def __init__(self, images, labels, fake_data=False, one_hot=False, dtype=tf.float32, reshape=True, seed=None):
        if len(images) != len(labels):
            raise ValueError(f"images.shape: {images.shape} labels.shape: {labels.shape}")
        if reshape:
            images = images.reshape(len(images), -1)
        if tf.as_dtype(dtype) == tf.float32:
            images = images.astype(np.float32) * np.float32(1.0 / 255.0)
        self._random = np.random.RandomState(seed)
        self._images, self._labels = images, labels
        self._epochs, self._index = 0, 0

    images = property(lambda self: self._images)
    labels = property(lambda self: self._labels)
    num_examples = property(lambda self: len(self._images))
    epochs_completed = property(lambda self: self._epochs)

    def _shuffle(self):
        order = self._random.permutation(self.num_examples)
        self._images, self._labels = self._images[order], self._labels[order]

    def next_batch(self, batch_size, fake_data=False, shuffle=True):
        start = self._index
        if self._epochs == 0 and start == 0 and shuffle:
            self._shuffle()
        if start + batch_size <= self.num_examples:
            self._index += batch_size
            return self._images[start : self._index], self._labels[start : self._index]
        self._epochs += 1
        rest = self._images[start:], self._labels[start:]
        if shuffle:
            self._shuffle()
        self._index = batch_size - len(rest[0])
        return tuple(np.concatenate([old, new[: self._index]]) for old, new in zip(rest, (self._images, self._labels)))


def read_data_sets(train_dir, fake_data=False, one_hot=False, dtype=tf.float32, reshape=True, validation_size=5000, seed=None,
                   source_url=None):  # fmt: skip
    """Datasets(train, validation, test) from the four IDX files, packed or not."""
    train, train_labels, test, test_labels = (_read(maybe_download(name, train_dir)) for name in FILES)
    if not 0 <= validation_size <= len(train):
        raise ValueError(f"Validation size should be between 0 and {len(train)}. Received: {validation_size}.")
    if one_hot:
        train_labels, test_labels = (np.eye(10)[labels] for labels in (train_labels, test_labels))
    make = lambda images, labels: DataSet(images, labels, dtype=dtype, reshape=reshape, seed=seed)
    return Datasets(
        train=make(train[validation_size:], train_labels[validation_size:]),
        validation=make(train[:validation_size], train_labels[:validation_size]),
        test=make(test, test_labels),
    )


def load_mnist(train_dir="MNIST-data"):
    return read_data_sets(train_dir)
