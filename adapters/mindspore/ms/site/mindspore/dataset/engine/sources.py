"""Sources of rows: arrays, generators, and the folders and files that datasets are published in."""

import copy
import gzip
import inspect
import os
import pickle
import struct

import numpy as np
from cairn.ms import level, refuse

from mindspore.dataset.engine import samplers
from mindspore.dataset.engine.datasets import Dataset, Shuffle, columns_of, flag, whole

__all__ = ["CSVDataset", "Cifar100Dataset", "Cifar10Dataset", "DatasetCache", "FashionMnistDataset", "GeneratorDataset", "ImageFolderDataset",
           "ImageFolderDatasetV2", "MindDataset", "MnistDataset", "NumpySlicesDataset", "PaddedDataset", "Schema",
           "TFRecordDataset", "TextFileDataset"]  # fmt: skip


class Mappable(Dataset):
    """A source that gives any row by its number; a sampler says which, in which order."""

    names = ("image", "label")
    may_shuffle = True

    def __init__(self, num_samples=None, num_parallel_workers=None, shuffle=None, sampler=None, num_shards=None, shard_id=None):
        super().__init__()
        if num_parallel_workers is not None:
            whole(num_parallel_workers, "num_parallel_workers")
        if num_samples is not None:
            num_samples = whole(num_samples, "num_samples", 0) or None
        if shuffle is not None and not isinstance(shuffle, (bool, Shuffle)):
            raise TypeError(f"Argument shuffle with value {shuffle} is not of type [<class 'bool'>], but got {type(shuffle)}.")
        self.sampler = self._sampler(num_samples, shuffle, sampler, num_shards, shard_id)

    def _sampler(self, num_samples, shuffle, sampler, num_shards, shard_id):
        if (num_shards is None) != (shard_id is None):
            raise RuntimeError("num_shards and shard_id must be given together.")
        if sampler is not None:
            if shuffle is not None:
                raise RuntimeError("sampler and shuffle cannot be specified at the same time.")
            if num_shards is not None:
                raise RuntimeError("sampler and sharding cannot be specified at the same time.")
            if num_samples is not None and isinstance(sampler, samplers.BuiltinSampler):
                raise ValueError("Conflicting arguments during sampler assignments: num_samples and sampler cannot be "
                                 "specified at the same time.")
            return _as_sampler(sampler)
        shuffled = self.may_shuffle if shuffle is None else bool(shuffle)
        if num_shards is not None:
            whole(num_shards, "num_shards")
            if not 0 <= whole(shard_id, "shard_id", 0) < num_shards:
                raise ValueError(f"shard_id is not within the required interval of [0, {num_shards - 1}].")
            return samplers.DistributedSampler(num_shards, shard_id, shuffled, num_samples)
        return samplers.RandomSampler(num_samples=num_samples) if shuffled else samplers.SequentialSampler(num_samples=num_samples)

    def count(self):
        """Rows in the source."""
        raise NotImplementedError

    def row(self, index):
        """One row."""
        raise NotImplementedError

    def labels(self, column):
        """The labels of all rows, for PKSampler."""
        place = self.column_list().index(column)
        return np.array([int(self.row(index)[place]) for index in range(self.count())])

    def column_list(self):
        return list(self.names)

    def rows(self, run, epoch):
        for index in self.sampler.indices(self.count(), run.rng(self, epoch), epoch, self):
            yield tuple(self.row(int(index)))

    def size(self):
        return len(self.sampler.indices(self.count(), np.random.RandomState(0), 0, self))

    def in_order(self):
        """The same rows without the random order."""
        plain = copy.copy(self)
        if isinstance(self.sampler, samplers.RandomSampler) and not self.sampler.replacement:
            plain.sampler = samplers.SequentialSampler(num_samples=self.sampler.num_samples)
        return plain

    def use_sampler(self, new_sampler):
        """Another sampler."""
        if new_sampler is None:
            raise TypeError("Input sampler can not be None.")
        if not isinstance(new_sampler, samplers.BuiltinSampler):
            raise TypeError("Input sampler is not an instance of a sampler.")
        self.sampler = new_sampler

    def add_sampler(self, new_sampler):
        """A sampler that chooses before the one there is."""
        if self.sampler is not None:
            new_sampler.add_child(self.sampler)
        self.use_sampler(new_sampler)


def _as_sampler(value):
    if isinstance(value, samplers.BuiltinSampler):
        return value
    if isinstance(value, (list, tuple, np.ndarray)):
        return samplers.SubsetSampler([int(each) for each in value])
    if hasattr(value, "__iter__"):
        sampler = samplers.Sampler()
        sampler.order = lambda *_: [int(np.asarray(each)) for each in value]
        return sampler
    raise TypeError("Unsupported sampler object of type ({})".format(type(value)))


def _array(value):
    if isinstance(value, np.ndarray):
        return value
    if hasattr(value, "asnumpy"):
        return value.asnumpy()
    return np.asarray(value)


class GeneratorDataset(Mappable):
    """Rows from a Python object: a function that returns an iterator, an iterable, or something with __getitem__ and __len__."""

    def __init__(self, source, column_names=None, column_types=None, schema=None, num_samples=None, num_parallel_workers=1,
                 shuffle=None, sampler=None, num_shards=None, shard_id=None, python_multiprocessing=True, max_rowsize=6):
        if not callable(source) and not hasattr(source, "__iter__") and not hasattr(source, "__getitem__"):
            raise TypeError("Input `source` function of GeneratorDataset should be callable, iterable or random accessible, "
                            f"but got {type(source)}.")
        if column_names is None and schema is None:
            raise ValueError("Neither columns_names nor schema are provided.")
        if column_names is not None:
            if isinstance(column_names, str):
                column_names = column_names.split(",")
            column_names = columns_of(column_names, "column_names")
        self.source, self.names = source, column_names or schema.names()
        self.types = column_types or (schema.types() if schema is not None else None)
        if self.types is not None and len(self.types) != len(self.names):
            raise ValueError("The length of column_types must be equal to that of column_names.")
        self.by_number = hasattr(source, "__getitem__") and hasattr(source, "__len__") and not inspect.isclass(source)
        if not self.by_number:
            if sampler is not None:
                raise RuntimeError("sampler and shuffle are only supported for a source with __getitem__ and __len__.")
            if shuffle:
                raise RuntimeError("shuffle is only supported for a source with __getitem__ and __len__.")
            if num_shards is not None:
                raise RuntimeError("num_shards is only supported for a source with __getitem__ and __len__.")
        self.limit = num_samples
        super().__init__(num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id)

    def count(self):
        return len(self.source)

    def row(self, index):
        return self._row(self.source[index])

    def _row(self, values):
        values = values if isinstance(values, (tuple, list)) else (values,)
        if len(values) != len(self.names):
            raise RuntimeError(f"Invalid Python function, the 'source' of 'GeneratorDataset' should return same number of NumPy arrays as "
                               f"specified in column_names, the size of column_names is: {len(self.names)} and number of returned NumPy array is: {len(values)}")
        rows = [_array(value) for value in values]
        if self.types is not None:
            rows = [value if kind is None else value.astype(_numpy_type(kind)) for value, kind in zip(rows, self.types)]
        for value, name in zip(rows, self.names):
            if value.dtype == object:
                raise RuntimeError(f"Invalid data type, column '{name}' of GeneratorDataset must hold numbers or strings.")
        return rows

    def rows(self, run, epoch):
        if self.by_number:
            yield from super().rows(run, epoch)
            return
        rows = iter(self.source() if callable(self.source) else self.source)
        for place, values in enumerate(rows):
            if self.limit and place == self.limit:
                return
            yield tuple(self._row(values))

    def size(self):
        if self.by_number:
            return super().size()
        if not callable(self.source) and hasattr(self.source, "__len__"):
            return min(len(self.source), self.limit or len(self.source))
        return None


def _numpy_type(kind):
    from mindspore.common import dtype as mstype

    if isinstance(kind, (type, np.dtype, str)):
        return np.dtype(kind)
    return mstype.dtype_to_nptype(kind)


class NumpySlicesDataset(GeneratorDataset):
    """Rows of arrays: of one array, of several side by side, or of a dict by name."""

    def __init__(self, data, column_names=None, num_samples=None, num_parallel_workers=1, shuffle=None, sampler=None,
                 num_shards=None, shard_id=None):
        if not isinstance(data, (list, tuple, dict, np.ndarray)) and not hasattr(data, "to_dict"):
            raise TypeError(f"Unsupported data type: {type(data)}, only support some common python data type, like list, "
                            "tuple, dict, and numpy array.")
        if hasattr(data, "to_dict") and not isinstance(data, dict):
            data = data.to_dict("list")
        if len(data) == 0:
            raise ValueError("Argument data cannot be empty")
        if isinstance(data, dict):
            column_names, columns = column_names or list(data), list(data.values())
        elif isinstance(data, tuple):
            columns = list(data)
        else:
            columns = [data]
        columns = [np.asarray(column) for column in columns]
        if any(len(column) != len(columns[0]) for column in columns):
            raise ValueError("The input arrays must have the same length.")
        if column_names is None:
            column_names = [f"column_{place}" for place in range(len(columns))]
        column_names = columns_of(column_names, "column_names")
        if len(column_names) != len(columns):
            raise ValueError(f"Num of input column names is {len(column_names)}, but required is {len(columns)}.")
        super().__init__(_Columns(columns), column_names, num_samples=num_samples, num_parallel_workers=num_parallel_workers,
                         shuffle=shuffle, sampler=sampler, num_shards=num_shards, shard_id=shard_id)


class _Columns:
    def __init__(self, columns):
        self.columns = columns

    def __len__(self):
        return len(self.columns[0])

    def __getitem__(self, index):
        return tuple(column[index] for column in self.columns)


class PaddedDataset(GeneratorDataset):
    """Rows that fill up another dataset."""

    def __init__(self, padded_samples):
        if not isinstance(padded_samples, (list, tuple)) or not padded_samples:
            raise TypeError("padded_samples must be a list of dicts.")
        names = list(padded_samples[0])
        super().__init__([tuple(_array(row[name]) for name in names) for row in padded_samples], names, shuffle=False)
        self.padded_samples = padded_samples


def _folder(path):
    path = os.fspath(path) if not isinstance(path, str) else path
    if not os.path.isdir(path) or not os.access(path, os.R_OK):
        raise ValueError(f"The folder {path} does not exist or is not a directory or permission denied!")
    return path


def _usage(usage, kinds):
    if usage is not None and not isinstance(usage, str):
        raise TypeError(f"Argument usage with value {usage} is not of type [<class 'str'>], but got {type(usage)}.")
    if usage is not None and usage not in kinds:
        raise ValueError(f"usage is not within the valid set of {sorted(kinds)}.")
    return usage or "all"


class Labelled(Mappable):
    """Images and labels that fit into memory."""

    def __init__(self, dataset_dir, usage=None, num_samples=None, num_parallel_workers=None, shuffle=None, sampler=None,
                 num_shards=None, shard_id=None, cache=None):
        self.dataset_dir, self.usage = _folder(dataset_dir), _usage(usage, ("train", "test", "all"))
        super().__init__(num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id)
        self._columns = None

    @property
    def columns(self):
        if self._columns is None:
            self._columns = self.read()
        return self._columns

    def count(self):
        return len(self.columns[0])

    def row(self, index):
        return tuple(column[index] for column in self.columns)

    def labels(self, column):
        return self.columns[self.column_list().index(column)]

    def num_classes(self):
        return len(np.unique(self.columns[-1]))


def _arguments_of_05(cls):
    """In 0.5 the vision sets have no `usage`: what stands after the folder begins with num_samples."""
    plain = cls.__init__

    def __init__(self, dataset_dir, *arguments, **named):
        if arguments and (isinstance(arguments[0], int) or not level.at_least("1.1")):
            arguments = (None, *arguments)
        plain(self, dataset_dir, *arguments, **named)

    __init__.__wrapped__ = plain
    cls.__init__ = __init__
    return cls


def _idx(path):
    """An array in the format of the MNIST files, packed or not."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
        data = file.read()
    if len(data) < 4 or data[:3] != b"\0\0\x08":
        raise RuntimeError(f"Invalid file, {path} is not an MNIST file (it does not begin with 00 00 08)")
    sizes = struct.unpack_from(f">{data[3]}I", data, 4)
    values = np.frombuffer(data, np.uint8, offset=4 + 4 * data[3])
    if values.size != int(np.prod(sizes)):
        raise RuntimeError(f"Invalid file, {path} holds {values.size} values, its header says {list(sizes)}")
    return values.reshape(sizes)


@_arguments_of_05
class MnistDataset(Labelled):
    """The MNIST files of a folder: image uint8 28x28x1, label uint32."""

    def read(self):
        kinds = {"train": ["train"], "test": ["t10k"], "all": ["t10k", "train"]}[self.usage]
        images, labels = [], []
        for kind in kinds:
            pair = [self._file(f"{kind}-images", 3), self._file(f"{kind}-labels", 1)]
            if None in pair:
                continue
            images.append(_idx(pair[0])[..., None])
            labels.append(_idx(pair[1]).astype(np.uint32))
            if len(images[-1]) != len(labels[-1]):
                raise RuntimeError(f"{self.dataset_dir}: {len(images[-1])} images but {len(labels[-1])} labels of {kind}")
        if not images:
            raise RuntimeError(f"Invalid data, no {' or '.join(kinds)} files of MNIST (such as {kinds[0]}-images-idx3-ubyte) "
                               f"in {self.dataset_dir}, "
                               f"which holds: {', '.join(sorted(os.listdir(self.dataset_dir))[:8]) or 'nothing'}")
        return np.concatenate(images), np.concatenate(labels)

    def _file(self, begin, rank):
        for name in sorted(os.listdir(self.dataset_dir)):
            if name.startswith((f"{begin}-idx{rank}", f"{begin}.idx{rank}")):
                return os.path.join(self.dataset_dir, name)
        return None


class FashionMnistDataset(MnistDataset):
    """Files in MNIST's format."""


@_arguments_of_05
class Cifar10Dataset(Labelled):
    """CIFAR-10, in its binary or its Python form, in the folder or one below: image uint8 32x32x3, label uint32."""

    parts = {"train": ["data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5"], "test": ["test_batch"]}
    inner = ("cifar-10-batches-bin", "cifar-10-batches-py", "cifar-10-verify-bin")
    label_bytes, keys = 1, (b"labels",)

    def read(self):
        wanted = self.parts["train"] + self.parts["test"] if self.usage == "all" else self.parts[self.usage]
        looked = [self.dataset_dir, *(os.path.join(self.dataset_dir, name) for name in self.inner)]
        for folder in looked:
            for ending, read in ((".bin", self._binary), ("", self._pickled)):
                files = [os.path.join(folder, name + ending) for name in wanted]
                found = [file for file in files if os.path.isfile(file)]
                if found:
                    parts = [read(file) for file in found]
                    return tuple(np.concatenate(each) for each in zip(*parts))
        raise RuntimeError(f"Invalid data, neither {wanted[0]}.bin nor {wanted[0]} in {self.dataset_dir} or "
                           f"{', '.join(self.inner[:2])} below it; "
                           f"it holds: {', '.join(sorted(os.listdir(self.dataset_dir))[:8]) or 'nothing'}")

    def _binary(self, file):
        data = np.fromfile(file, np.uint8)
        length = self.label_bytes + 3072
        if data.size == 0 or data.size % length:
            raise RuntimeError(f"Invalid file, {file}: {data.size} bytes are not a multiple of {length}")
        data = data.reshape(-1, length)
        return (self._image(data[:, self.label_bytes :]), *(data[:, place].astype(np.uint32) for place in self._label_order()))

    def _label_order(self):
        return (0,)

    def _pickled(self, file):
        with open(file, "rb") as data:
            held = _Arrays(data, encoding="bytes").load()
        return (self._image(np.asarray(held[b"data"], np.uint8)), *(np.asarray(held[key], np.uint32) for key in self.keys))

    @staticmethod
    def _image(flat):
        return np.ascontiguousarray(flat.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))


class _Arrays(pickle.Unpickler):
    """Reads the published pickles, which hold lists and NumPy arrays, and refuses anything else."""

    def find_class(self, module, name):
        if module.split(".")[0] == "numpy" and name in ("_reconstruct", "ndarray", "dtype", "scalar"):
            return super().find_class(module, name)
        if (module, name) == ("_codecs", "encode"):
            return super().find_class(module, name)
        raise RuntimeError(f"the file asks for {module}.{name}, which no CIFAR file holds")


class Cifar100Dataset(Cifar10Dataset):
    """CIFAR-100: image, coarse_label, fine_label."""

    names = ("image", "coarse_label", "fine_label")
    parts = {"train": ["train"], "test": ["test"]}
    inner = ("cifar-100-binary", "cifar-100-python")
    label_bytes, keys = 2, (b"coarse_labels", b"fine_labels")

    def _label_order(self):
        return (0, 1)


class ImageFolderDataset(Mappable):
    """A folder for each class: image as bytes, or HWC with decode=True; label int32."""

    def __init__(self, dataset_dir, num_samples=None, num_parallel_workers=None, shuffle=None, sampler=None, extensions=None,
                 class_indexing=None, decode=False, num_shards=None, shard_id=None, cache=None, decrypt=None):
        self.dataset_dir, self.decode = _folder(dataset_dir), flag(decode, "decode")
        extensions = tuple(each.lower() for each in extensions or (".jpg", ".jpeg", ".bmp", ".png", ".gif"))
        folders = sorted(entry.name for entry in os.scandir(self.dataset_dir) if entry.is_dir())
        if class_indexing is not None and not isinstance(class_indexing, dict):
            raise TypeError(f"Argument class_indexing with value {class_indexing} is not of type [<class 'dict'>], but got "
                            f"{type(class_indexing)}.")
        self.classes = dict(class_indexing) if class_indexing else {name: place for place, name in enumerate(folders)}
        self.files = [(os.path.join(self.dataset_dir, name, file), self.classes[name])
                      for name in folders if name in self.classes
                      for file in sorted(os.listdir(os.path.join(self.dataset_dir, name))) if file.lower().endswith(extensions)]
        super().__init__(num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id)

    def count(self):
        if not self.files:
            raise RuntimeError(f"Invalid data, no images in the folders of {self.dataset_dir}; an image lies in "
                               "<folder>/<class>/<image>.jpg")
        return len(self.files)

    def row(self, index):
        path, label = self.files[index]
        image = np.fromfile(path, np.uint8)
        if self.decode:
            from mindspore.dataset.vision.codec import decode

            image = decode(image, path)
        return image, np.asarray(label, np.int32)

    def labels(self, column):
        return np.array([label for _, label in self.files])

    def get_class_indexing(self):
        return self.classes

    def num_classes(self):
        return len(self.classes)


ImageFolderDatasetV2 = ImageFolderDataset


class Schema:
    """Names, types and shapes of columns, from a JSON file or column by column."""

    def __init__(self, schema_file=None):
        self.columns, self.num_rows, self.dataset_type = [], None, ""
        if schema_file:
            import json

            with open(schema_file, encoding="utf-8") as text:
                self.parse_columns(json.load(text)["columns"])

    def add_column(self, name, de_type, shape=None):
        """One column."""
        if shape is not None and not isinstance(shape, (list, tuple)):
            raise TypeError("shape must be a list of integers.")
        self.columns.append({"name": name, "type": np.dtype(_numpy_type(de_type) if de_type != "string" else "S"), "shape": shape})

    def parse_columns(self, columns):
        """Columns from a list of dicts, or from a dict by name."""
        if isinstance(columns, dict):
            columns = [{"name": name, **told} for name, told in columns.items()]
        if not isinstance(columns, list):
            raise TypeError("columns must be dict or list, columns contain name, type, shape(optional).")
        for each in columns:
            if "name" not in each or "type" not in each:
                raise AttributeError("Column's name or type is missing.")
            self.add_column(each["name"], each["type"], each.get("shape"))

    def names(self):
        """Names of the columns."""
        return [each["name"] for each in self.columns]

    def types(self):
        """NumPy types of the columns."""
        return [each["type"] for each in self.columns]


def _files(value, who):
    files = [value] if isinstance(value, (str, os.PathLike)) else list(value)
    missing = [os.fspath(file) for file in files if not os.path.isfile(file)]
    if not files or missing:
        raise ValueError(f"The following patterns did not match any files: {missing}" if files else f"{who}: no file is given.")
    return [os.fspath(file) for file in files]


class Lines(Mappable):
    """A source of files whose rows are read one after the other; shuffled among themselves."""

    def __init__(self, dataset_files, num_samples=None, num_parallel_workers=None, shuffle=Shuffle.GLOBAL, num_shards=None, shard_id=None):
        self.files = _files(dataset_files, type(self).__name__)
        super().__init__(num_samples, num_parallel_workers, shuffle if shuffle is not None else True, None, num_shards, shard_id)
        self._held = None

    @property
    def held(self):
        if self._held is None:
            self._held = [row for file in self.files for row in self.read(file)]
        return self._held

    def count(self):
        return len(self.held)

    def row(self, index):
        return self.held[index]


class TextFileDataset(Lines):
    """Lines of text files: text."""

    names = ("text",)

    def __init__(self, dataset_files, num_samples=None, num_parallel_workers=None, shuffle=Shuffle.GLOBAL, num_shards=None,
                 shard_id=None, cache=None):
        super().__init__(dataset_files, num_samples, num_parallel_workers, shuffle, num_shards, shard_id)

    def read(self, file):
        with open(file, encoding="utf-8") as text:
            return [(np.asarray(line.rstrip("\n")),) for line in text if line.strip("\n")]


class CSVDataset(Lines):
    """Rows of CSV files."""

    def __init__(self, dataset_files, field_delim=",", column_defaults=None, column_names=None, num_samples=None,
                 num_parallel_workers=None, shuffle=Shuffle.GLOBAL, num_shards=None, shard_id=None, cache=None):
        self.delimiter, self.defaults, self._names_told = field_delim, column_defaults, column_names
        super().__init__(dataset_files, num_samples, num_parallel_workers, shuffle, num_shards, shard_id)

    def column_list(self):
        if self._names_told is None:
            with open(self.files[0], encoding="utf-8") as text:
                return text.readline().strip().split(self.delimiter)
        return list(self._names_told)

    def read(self, file):
        import csv

        with open(file, newline="", encoding="utf-8") as text:
            rows = list(csv.reader(text, delimiter=self.delimiter))[0 if self._names_told else 1 :]
        kinds = [type(each) for each in self.defaults] if self.defaults else [str] * len(self.column_list())
        return [tuple(self._value(kind, place, cell) for place, (kind, cell) in enumerate(zip(kinds, row))) for row in rows]

    def _value(self, kind, place, cell):
        if cell == "" and self.defaults:
            cell = self.defaults[place]
        return np.asarray(kind(cell), {int: np.int32, float: np.float32}.get(kind))


class TFRecordDataset(Lines):
    """Examples of TFRecord files; columns by schema, or as the first example has them."""

    def __init__(self, dataset_files, schema=None, columns_list=None, num_samples=None, num_parallel_workers=None,
                 shuffle=Shuffle.GLOBAL, num_shards=None, shard_id=None, shard_equal_rows=False, cache=None):
        self.schema = Schema(schema) if isinstance(schema, (str, os.PathLike)) else schema
        self.columns_list = columns_of(columns_list, "columns_list") if columns_list else None
        super().__init__(dataset_files, num_samples, num_parallel_workers, shuffle, num_shards, shard_id)

    def column_list(self):
        if self.columns_list:
            return self.columns_list
        if self.schema is not None:
            return self.schema.names()
        from mindspore.dataset.engine.tfrecord import examples

        return sorted(next(examples(self.files[0])))

    def read(self, file):
        from mindspore.dataset.engine.tfrecord import examples

        told = {each["name"]: each for each in self.schema.columns} if self.schema else {}
        names = self.column_list()
        for number, example in enumerate(examples(file)):
            yield tuple(self._value(name, example, told.get(name), f"{file}, example {number}") for name in names)

    @staticmethod
    def _value(name, example, told, where):
        if name not in example:
            raise RuntimeError(f"Invalid data, no column '{name}' in {where}, which has {sorted(example)}")
        value = example[name]
        if told is not None:
            if told["type"].kind != "S":
                value = np.frombuffer(value[0], np.uint8) if value.dtype.kind == "S" else value.astype(told["type"])
            if told["shape"] is not None:
                value = value.reshape(told["shape"])
        return value


class MindDataset(Mappable):
    """Rows of MindRecord files."""

    def __init__(self, dataset_files=None, columns_list=None, num_parallel_workers=None, shuffle=None, num_shards=None,
                 shard_id=None, *more, sampler=None, padded_sample=None, num_padded=None, num_samples=None, cache=None,
                 dataset_file=None, block_reader=False):
        from mindspore.mindrecord.files import Reader

        if more and isinstance(more[0], bool):  # block_reader, which 0.5 has before sampler
            more = more[1:]
        sampler = more[0] if more else sampler
        self.reader = Reader(dataset_files if dataset_files is not None else dataset_file)
        self.names = columns_of(columns_list, "columns_list") if columns_list else self.reader.columns
        unknown = [name for name in self.names if name not in self.reader.columns]
        if unknown:
            raise RuntimeError(f"Invalid column, '{unknown[0]}' is not in the MindRecord file, which has {self.reader.columns}")
        if (padded_sample is None) != (num_padded is None):
            raise RuntimeError("padded_sample and num_padded must be given together.")
        self.padded, self.num_padded = padded_sample, num_padded or 0
        super().__init__(num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id)

    def count(self):
        return len(self.reader) + self.num_padded

    def row(self, index):
        held = self.reader[index] if index < len(self.reader) else self.padded
        return tuple(_array(held[name]) for name in self.names)


class DatasetCache:
    """A cache server has nothing to do here: rows are read from memory or the page cache."""

    def __init__(self, session_id=0, size=0, spilling=False, hostname=None, port=None, num_connections=None, prefetch_size=None):
        self.session_id, self.size, self.spilling = session_id, size, spilling

    def get_stat(self):
        """Refused: there is no server."""
        refuse("DatasetCache.get_stat", "there is no cache server")
