"""Sources of images with annotations: Coco, VOC, CelebA, Manifest."""

import os

from cairn.data import annotated

from mindspore.dataset.engine.checks import flag
from mindspore.dataset.engine.images import folder_of, usage_of
from mindspore.dataset.engine.sources import Native

__all__ = ["CelebADataset", "CocoDataset", "ManifestDataset", "VOCDataset"]


class Annotated(Native):
    """Images, and what files say of them; `read` gives the library's description."""

    _told = None

    def __init__(self, decode, extra_metadata, classes, *selection):
        self.decode, self.extra_metadata = flag(decode, "decode"), flag(extra_metadata, "extra_metadata")
        if classes is not None and not isinstance(classes, dict):
            raise TypeError(f"Argument class_indexing with value {classes} is not of type [<class 'dict'>], but got {type(classes)}.")
        self.classes = classes
        super().__init__(*selection)

    def annotations(self):
        """The library's description, read once."""
        if self._told is None:
            self._told = self.read()
        return self._told

    def open(self, sampler):
        return self.annotations().open(self.decode, sampler, self.extra_metadata)

    def get_class_indexing(self):
        classes = self.annotations().classes
        if classes is None:
            raise RuntimeError("Only 'Detection' and 'Panoptic' support get_class_indexing." if isinstance(self, CocoDataset)
                               else "Only 'Detection' support get_class_indexing.")  # fmt: skip
        return classes

    def num_classes(self):
        return len(self.get_class_indexing())


def _file(path, name):
    path = os.fspath(path)
    if not os.path.isfile(path) or not os.access(path, os.R_OK):
        raise ValueError(f"The file {path} does not exist or permission denied!")
    return path


class CocoDataset(Annotated):
    """Images of a folder, and a file of annotations for one of the tasks."""

    def __init__(self, dataset_dir, annotation_file, task="Detection", num_samples=None, num_parallel_workers=None, shuffle=None,
                 decode=False, sampler=None, num_shards=None, shard_id=None, cache=None, extra_metadata=False, decrypt=None):
        self.folder, self.file = folder_of(dataset_dir), _file(annotation_file, "annotation_file")
        self.task = usage_of(task, annotated.COCO_TASKS, "task")
        super().__init__(decode, extra_metadata, None, num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id, cache)

    def read(self):
        return annotated.read_coco(self.folder, self.file, self.task)


class VOCDataset(Annotated):
    """Images of ImageSets, with objects or with images of classes."""

    def __init__(self, dataset_dir, task="Segmentation", usage="train", class_indexing=None, num_samples=None, num_parallel_workers=None,
                 shuffle=None, decode=False, sampler=None, num_shards=None, shard_id=None, cache=None, extra_metadata=False, decrypt=None):
        self.folder, self.task, self.usage = folder_of(dataset_dir), usage_of(task, ("Segmentation", "Detection"), "task"), usage
        if self.task == "Segmentation" and class_indexing is not None:
            raise ValueError("class_indexing is not supported in Segmentation task.")
        super().__init__(decode, extra_metadata, class_indexing, num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id, cache)

    def read(self):
        return annotated.read_voc(self.folder, self.task, self.usage, self.classes)


class CelebADataset(Annotated):
    """Faces and their attributes."""

    def __init__(self, dataset_dir, num_parallel_workers=None, shuffle=None, usage="all", sampler=None, decode=False, extensions=None,
                 num_samples=None, num_shards=None, shard_id=None, cache=None, decrypt=None):
        self.folder, self.usage = folder_of(dataset_dir), usage_of(usage, ("all", *annotated.CELEBA_PARTS))
        self.extensions = extensions
        super().__init__(decode, False, None, num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id, cache)

    def read(self):
        return annotated.read_celeba(self.folder, self.usage, self.extensions)

    def get_class_indexing(self):
        return {}


class ManifestDataset(Annotated):
    """Images that the lines of a file name, with their classes."""

    def __init__(self, dataset_file, usage="train", num_samples=None, num_parallel_workers=None, shuffle=None, sampler=None,
                 class_indexing=None, decode=False, num_shards=None, shard_id=None, cache=None):
        self.file, self.usage = _file(dataset_file, "dataset_file"), usage_of(usage, ("train", "eval", "inference"))
        super().__init__(decode, False, class_indexing, num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id, cache)

    def read(self):
        return annotated.read_manifest(self.file, self.usage, self.classes)
