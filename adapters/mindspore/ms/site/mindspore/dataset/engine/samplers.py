"""Samplers: which rows of a source a pass reads, in which order."""

import numpy as np
from cairn import _data

from mindspore.dataset.core.remembered import Remembered

__all__ = ["BuiltinSampler", "DistributedSampler", "PKSampler", "RandomSampler", "Sampler", "SequentialSampler",
           "SubsetRandomSampler", "SubsetSampler", "WeightedRandomSampler"]  # fmt: skip


def _count(name, value):
    if value is not None:
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{name} must be integer but was: {value}.")
        if value < 0:
            raise ValueError(f"{name} exceeds the boundary between 0 and 9223372036854775807(INT64_MAX)!")
    return value or None


def _flag(name, value):
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be a boolean value but was: {value}.")
    return value


class BuiltinSampler(Remembered):
    """Base of the samplers; `chooser` gives the library's, whose child chooses first."""

    def __init__(self, num_samples=None):
        self.num_samples = _count("num_samples", num_samples)
        self.child_sampler = None

    def add_child(self, sampler):
        """`sampler` chooses first, this one from its choice."""
        if self.child_sampler is not None:
            raise RuntimeError("Cannot add child sampler, this sampler already has a child.")
        self.child_sampler = sampler

    def get_child(self):
        """The sampler that chooses first, or None."""
        return self.child_sampler

    def get_num_samples(self):
        """The number of samples told, or None."""
        return self.num_samples

    def native(self):
        """The library's sampler."""
        made = self.chooser(self.num_samples or 0)
        if self.child_sampler is not None:
            made.add_child(self.child_sampler.native())
        return made


class SequentialSampler(BuiltinSampler):
    """Rows in the source's order, from start_index."""

    def __init__(self, start_index=None, num_samples=None):
        super().__init__(num_samples)
        self.start_index = _count("start_index", start_index) or 0

    def chooser(self, most):
        return _data.sequential_sampler(self.start_index, most)


class RandomSampler(BuiltinSampler):
    """Rows in a random order, or drawn with replacement."""

    def __init__(self, replacement=False, num_samples=None):
        super().__init__(num_samples)
        self.replacement = _flag("replacement", replacement)

    def chooser(self, most):
        return _data.random_sampler(self.replacement, most)


class DistributedSampler(BuiltinSampler):
    """One shard of the rows; the shards are equally long, the last ones begin again at the first rows."""

    def __init__(self, num_shards, shard_id, shuffle=True, num_samples=None, offset=-1):
        super().__init__(num_samples)
        for name, value in (("num_shards", num_shards), ("shard_id", shard_id)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{name} must be integer but was: {value}.")
        if num_shards <= 0 or not 0 <= shard_id < num_shards:
            raise ValueError(f"shard_id is invalid, shard_id={shard_id}, num_shards={num_shards}.")
        if offset > num_shards:
            raise RuntimeError(f"offset must be no more than num_shards {num_shards}, but got: {offset}")
        self.num_shards, self.shard_id, self.shuffle, self.offset = num_shards, shard_id, _flag("shuffle", shuffle), offset

    def chooser(self, most):
        return _data.distributed_sampler(self.num_shards, self.shard_id, self.shuffle, self.offset, most)


class PKSampler(BuiltinSampler):
    """num_val rows of each of num_class classes."""

    def __init__(self, num_val, num_class=None, shuffle=False, class_column="label", num_samples=None):
        super().__init__(num_samples)
        if isinstance(num_val, bool) or not isinstance(num_val, int):
            raise TypeError(f"num_val must be integer but was: {num_val}.")
        if num_val <= 0:
            raise ValueError(f"num_val must be a positive integer value but was: {num_val}.")
        if num_class is not None:
            raise NotImplementedError("Not supported to specify num_class for PKSampler.")
        self.num_val, self.shuffle, self.class_column = num_val, _flag("shuffle", shuffle), class_column

    def chooser(self, most):
        return _data.class_sampler(self.num_val, self.shuffle, self.class_column, most)


class SubsetSampler(BuiltinSampler):
    """The rows of a list, in its order."""

    shuffled = False

    def __init__(self, indices, num_samples=None):
        super().__init__(num_samples)
        self.chosen = [indices] if isinstance(indices, int) else list(indices)
        for index in self.chosen:
            if not isinstance(index, (int, np.integer)) or isinstance(index, bool):
                raise TypeError(f"SubsetSampler: Type of indices element must be int, but got list[...]={index}.")

    def chooser(self, most):
        return _data.subset_sampler([int(each) for each in self.chosen], self.shuffled, most)


class SubsetRandomSampler(SubsetSampler):
    """The rows of a list, in a random order."""

    shuffled = True


class WeightedRandomSampler(BuiltinSampler):
    """Rows drawn with the given weights."""

    def __init__(self, weights, num_samples=None, replacement=True):
        super().__init__(num_samples)
        self.weights, self.replacement = np.asarray(list(weights), dtype=np.float64), _flag("replacement", replacement)
        if not len(self.weights):
            raise ValueError("weights size must not be 0.")
        if (self.weights < 0).any() or not self.weights.sum() > 0:
            raise ValueError("weights must not contain negative numbers, and not be all zero.")

    def chooser(self, most):
        return _data.weighted_sampler(self.weights.tolist(), self.replacement, most)


class Sampler(BuiltinSampler):
    """Base of samplers that a script defines: __iter__ yields rows; `self.dataset_size` and `self.num_samples` are set before."""

    def __init__(self, num_samples=None):
        super().__init__(num_samples)
        self.dataset_size = 0
        self.child_sampler = None
        self.batch_sizes = []

    def __iter__(self):
        raise NotImplementedError("a sampler of your own needs __iter__, which yields row numbers")

    def reset(self):
        """Called before each pass."""

    def order(self, size):
        """Row numbers of a pass."""
        self.dataset_size = size
        return [int(np.asarray(each)) for each in self]

    def chooser(self, most):
        return _data.host_sampler(lambda size, _epoch: self.order(size), most)
