"""Sources of labelled images, in the folders and files that they are published in."""

import os

import numpy as np
from cairn import _data
from cairn.data import sources
from cairn.ms import level

from mindspore.dataset.engine.checks import flag, whole
from mindspore.dataset.engine.sources import Mappable, Native

__all__ = ["Cifar100Dataset", "Cifar10Dataset", "FakeImageDataset", "FashionMnistDataset", "ImageFolderDataset", "ImageFolderDatasetV2", "MnistDataset"]


def folder_of(path):
    path = os.fspath(path) if not isinstance(path, str) else path
    if not os.path.isdir(path) or not os.access(path, os.R_OK):
        raise ValueError(f"The folder {path} does not exist or is not a directory or permission denied!")
    return path


def usage_of(usage, kinds, name="usage"):
    """One of several words; None: all."""
    if usage is not None and not isinstance(usage, str):
        raise TypeError(f"Argument {name} with value {usage} is not of type [<class 'str'>], but got {type(usage)}.")
    if usage is not None and usage not in kinds:
        raise ValueError(f"{name} is not within the valid set of {sorted(kinds)}.")
    return usage or "all"


class Labelled(Native):
    """Images and labels in the files that they are published in."""

    def __init__(self, dataset_dir, usage=None, num_samples=None, num_parallel_workers=None, shuffle=None, sampler=None,
                 num_shards=None, shard_id=None, cache=None):
        self.dataset_dir, self.usage = folder_of(dataset_dir), usage_of(usage, ("train", "test", "all"))
        super().__init__(num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id, cache)

    def column_list(self):
        return list(self.names)

    def num_classes(self):
        return len({int(self.row(index)[-1]) for index in range(self.count())})


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


@_arguments_of_05
class MnistDataset(Labelled):
    """The MNIST files of a folder: image uint8 28x28x1, label uint32."""

    kinds = {"train": ["train"], "test": ["t10k"], "all": ["t10k", "train"]}

    def open(self, sampler):
        kinds = self.kinds[self.usage]
        pairs = [(self._file(f"{kind}-images", 3), self._file(f"{kind}-labels", 1)) for kind in kinds]
        pairs = [pair for pair in pairs if None not in pair]
        if not pairs:
            raise RuntimeError(f"Invalid data, no {' or '.join(kinds)} files of MNIST (such as {kinds[0]}-images-idx3-ubyte) "
                               f"in {self.dataset_dir}, "
                               f"which holds: {', '.join(sorted(os.listdir(self.dataset_dir))[:8]) or 'nothing'}")
        return _data.mnist(pairs, sampler, self.where)

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

    def open(self, sampler):
        return sources.cifar(self.dataset_dir, self.usage, self.names, sampler)


class Cifar100Dataset(Cifar10Dataset):
    """CIFAR-100: image, coarse_label, fine_label."""

    names = ("image", "coarse_label", "fine_label")


class ImageFolderDataset(Native):
    """A folder for each class: image as bytes, or HWC with decode=True; label int32."""

    def __init__(self, dataset_dir, num_samples=None, num_parallel_workers=None, shuffle=None, sampler=None, extensions=None,
                 class_indexing=None, decode=False, num_shards=None, shard_id=None, cache=None, decrypt=None):
        self.dataset_dir, self.decode = folder_of(dataset_dir), flag(decode, "decode")
        if class_indexing is not None and not isinstance(class_indexing, dict):
            raise TypeError(f"Argument class_indexing with value {class_indexing} is not of type [<class 'dict'>], but got "
                            f"{type(class_indexing)}.")
        self.classes = dict(class_indexing) if class_indexing else sources.folder_classes(self.dataset_dir)
        self.files = sources.folder_files(self.dataset_dir, self.classes, [each.lower() for each in extensions or sources.IMAGES])
        super().__init__(num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id, cache)

    def column_list(self):
        return list(self.names)

    def open(self, sampler):
        if not self.files:
            raise RuntimeError(f"Invalid data, no images in the folders of {self.dataset_dir}; an image lies in "
                               "<folder>/<class>/<image>.jpg")
        return sources.labelled_files(self.files, self.decode, sampler)

    def get_class_indexing(self):
        return self.classes

    def num_classes(self):
        return len(self.classes)


ImageFolderDatasetV2 = ImageFolderDataset


class FakeImageDataset(Mappable):
    """Random images: image uint8 HWC, drawn from base_seed and the row's number; label uint32, the classes in turn."""

    def __init__(self, num_images=1000, image_size=(224, 224, 3), num_classes=10, base_seed=0, num_samples=None, num_parallel_workers=None,
                 shuffle=None, sampler=None, num_shards=None, shard_id=None, cache=None):
        self.num_images, self._classes = whole(num_images, "num_images"), whole(num_classes, "num_classes")
        self.base_seed = whole(base_seed, "base_seed", 0)
        if not isinstance(image_size, (list, tuple)):
            raise TypeError(f"Argument image_size with value {image_size} is not of type [<class 'list'>, <class 'tuple'>], "
                            f"but got {type(image_size)}.")
        if len(image_size) != 3:
            raise ValueError(f"image_size should be a list or tuple of length 3, but got {len(image_size)}")
        self.image_size = [whole(size, f"image_size[{place}]") for place, size in enumerate(image_size)]
        super().__init__(num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id, cache)

    def count(self):
        return self.num_images

    def row(self, index):
        drawn = np.random.default_rng((self.base_seed, index)).integers(0, 256, self.image_size, np.uint8)
        return drawn, np.array(index % self._classes, np.uint32)

    def num_classes(self):
        return self._classes
