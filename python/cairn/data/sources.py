"""Sources of rows. All take shuffle, sampler (cairn.data.samplers), shards=(number, which) and count, rows at most."""

import glob
import os

import numpy as np

from cairn import _data
from cairn.data.nodes import Dataset, names_of, numbered, script_line
from cairn.data.samplers import chosen

IMAGES = (".jpg", ".jpeg", ".bmp", ".png")


def _files(paths):
    paths = [os.fspath(path) for path in ([paths] if isinstance(paths, (str, os.PathLike)) else paths)]
    return [each for path in paths for each in (sorted(glob.glob(path)) if glob.has_magic(path) else [path])]


def slices(columns, shuffle=False, sampler=None, shards=None, count=None):
    """Row i is element i of each array of {name: array}. The arrays are not copied."""
    return Dataset(arrays(columns, chosen(shuffle, sampler, shards, count)))


def arrays(columns, sampler):
    """The library's source over {name: array}."""
    return _data.table("slices", [(name, "slices", array) for name, array in columns.items()], sampler, script_line())


def generator(source, columns, shuffle=False, sampler=None, shards=None, count=None, workers=0, processes=False):
    """Rows of a function that returns an iterator, or of an object with __getitem__ and __len__; called in the caller's thread.
    workers: read an object's rows in so many threads, or with `processes` in so many processes."""
    names, where = names_of(columns), script_line()

    def values(row):
        row = row if isinstance(row, (tuple, list)) else (row,)
        if len(row) != len(names):
            raise ValueError(f"a row has {len(row)} values, expected {len(names)} for {names}")
        return row

    if hasattr(source, "__getitem__") and hasattr(source, "__len__"):
        return Dataset(numbered(len(source), lambda row: values(source[row]), names, chosen(shuffle, sampler, shards, count), where,
                                workers, processes))  # fmt: skip
    if shuffle or sampler or shards or workers:
        raise ValueError("rows that come one after the other cannot be chosen or read in parallel; Dataset.shuffle() mixes them")

    def opened(_epoch):
        rows, end = iter(source() if callable(source) else source), object()

        def read():
            row = next(rows, end)
            return None if row is end else values(row)

        return read

    made = Dataset(_data.generator(opened, names, where))
    return made.take(count) if count else made


def idx_files(folder, usage=None):
    """Pairs of MNIST's files in a folder: usage is train, test or None for all."""
    parts = {"train": ["train"], "test": ["t10k"], None: ["train", "t10k"]}[usage]
    pairs = []
    for part in parts:
        pair = [next((name + end for name in (f"{part}-{kind}-idx{rank}-ubyte", f"{part}-{kind}.idx{rank}-ubyte") for end in ("", ".gz")
                      if os.path.isfile(os.path.join(folder, name + end))), None) for kind, rank in (("images", 3), ("labels", 1))]  # fmt: skip
        if all(pair):
            pairs.append(tuple(os.path.join(folder, each) for each in pair))
    if not pairs:
        raise FileNotFoundError(f"{folder} holds no {' or '.join(parts)}-images-idx3-ubyte with its labels")
    return pairs


def mnist(folder, usage="train", shuffle=False, sampler=None, shards=None, count=None):
    """MNIST and its like: image u8 [28, 28, 1], label u32."""
    return Dataset(_data.mnist(idx_files(os.fspath(folder), usage), chosen(shuffle, sampler, shards, count), script_line()))


def cifar(folder, usage, names, sampler):
    """CIFAR of either layout and of as many labels as `names` has beside the image: usage is train, test or all."""
    folder, hundred = os.fspath(folder), len(names) == 3
    files = _data.cifar_files(folder, hundred, "" if usage in (None, "all") else usage)
    if not files:
        wanted = {"test": "test" if hundred else "test_batch"}.get(usage, "train" if hundred else "data_batch_1")
        held = ", ".join(sorted(os.listdir(folder))[:8]) or "nothing"
        raise RuntimeError(f"Invalid data, neither {wanted}.bin nor {wanted} in {folder} or its CIFAR folder; it holds: {held}")
    return _data.cifar(files, len(names) - 1, list(names), sampler, script_line())


def cifar10(folder, usage="train", shuffle=False, sampler=None, shards=None, count=None):
    """CIFAR-10: image u8 [32, 32, 3], label u32; the binary and the pickled layout."""
    return Dataset(cifar(folder, usage, ("image", "label"), chosen(shuffle, sampler, shards, count)))


def cifar100(folder, usage="train", shuffle=False, sampler=None, shards=None, count=None):
    """CIFAR-100: image u8 [32, 32, 3], coarse_label and fine_label u32."""
    return Dataset(cifar(folder, usage, ("image", "coarse_label", "fine_label"), chosen(shuffle, sampler, shards, count)))


def folder_classes(folder):
    """{class: label} of the folders in a folder."""
    names = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
    return {name: label for label, name in enumerate(names)}


def folder_files(folder, classes, extensions=IMAGES):
    """[(path, label)] of the images in the folders of `classes`."""
    return [(os.path.join(folder, name, file), label) for name, label in sorted(classes.items())
            if os.path.isdir(os.path.join(folder, name))
            for file in sorted(os.listdir(os.path.join(folder, name))) if file.lower().endswith(tuple(extensions))]  # fmt: skip


def image_folder(folder, decode=False, classes=None, shuffle=False, sampler=None, shards=None, count=None):
    """A folder for each class: image as the bytes of the file, or u8 HWC with decode; label i32."""
    folder = os.fspath(folder)
    files = folder_files(folder, classes or folder_classes(folder))
    if not files:
        raise FileNotFoundError(f"no images in the folders of {folder}; an image lies in <folder>/<class>/<image>.jpg")
    return Dataset(labelled_files(files, decode, chosen(shuffle, sampler, shards, count)))


def labelled_files(files, decode, sampler):
    """The library's source over [(path, label)]."""
    paths, labels = zip(*files)
    columns = [("image", "images" if decode else "files", list(paths)), ("label", "slices", np.array(labels, np.int32))]
    return _data.table("image_folder", columns, sampler, script_line())


def text_files(paths, shuffle=False, sampler=None, shards=None, count=None):
    """The lines of text files that are not empty: text."""
    return Dataset(_data.text_files(_files(paths), chosen(shuffle, sampler, shards, count), script_line()))


def csv(paths, delimiter=",", defaults=None, columns=None, shuffle=False, sampler=None, shards=None, count=None):
    """Rows of CSV files. columns: their names, else the first line's. defaults: for empty cells, one for each column, whose types
    (int, float, str) are the columns'; without them all are texts."""
    files = _files(paths)
    names = list(columns) if columns else _data.csv_header(files[0], delimiter)
    if defaults and len(defaults) != len(names):
        raise ValueError(f"{len(defaults)} defaults for {len(names)} columns")
    kinds = [{int: "int32", float: "float32"}.get(type(each), "str") for each in defaults or [""] * len(names)]
    told = [[name, kind, str(otherwise)] for name, kind, otherwise in zip(names, kinds, defaults or [""] * len(names))]
    return Dataset(_data.csv_files(files, delimiter, told, not columns, chosen(shuffle, sampler, shards, count), script_line()))


def tfrecord(paths, features=None, shuffle=False, sampler=None, shards=None, count=None):
    """tf.train.Example from TFRecord files, plain, gzip or zlib. features: {name: (type, shape)}, either may be None; without
    them all of the first example's, by name. A feature of bytes told as uint8 is an array of its bytes."""
    told = [(name, kind and np.dtype(kind).name, shape) for name, (kind, shape) in (features or {}).items()]
    return Dataset(_data.tfrecord(_files(paths), told, chosen(shuffle, sampler, shards, count), script_line()))


def mindrecord(paths, columns=None, shuffle=False, sampler=None, shards=None, count=None):
    """MindRecord files. One path stands for all files that its header names, a list for itself."""
    files = _data.mindrecord_shards(os.fspath(paths)) if isinstance(paths, (str, os.PathLike)) else _files(paths)
    return Dataset(_data.mindrecord(files, names_of(columns), chosen(shuffle, sampler, shards, count), script_line()))
