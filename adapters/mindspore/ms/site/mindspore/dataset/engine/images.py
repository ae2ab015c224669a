"""Sources of labelled images, in the folders and files that they are published in."""

import gzip
import os
import pickle
import struct

import numpy as np
from cairn.ms import level

from mindspore.dataset.engine.checks import flag
from mindspore.dataset.engine.sources import Mappable

__all__ = ["Cifar100Dataset", "Cifar10Dataset", "FashionMnistDataset", "ImageFolderDataset", "ImageFolderDatasetV2", "MnistDataset"]


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
