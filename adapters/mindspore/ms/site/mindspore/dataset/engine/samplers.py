"""Samplers: which rows of a source a pass reads, in which order."""

import numpy as np

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


class BuiltinSampler:
    """Base of the samplers; `order` gives positions in what a child chose, or in the source."""

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

    def indices(self, size, rng, epoch, source=None):
        """The rows that a pass reads, of a source of `size` rows."""
        chosen = None if self.child_sampler is None else self.child_sampler.indices(size, rng, epoch, source)
        order = np.asarray(self.order(size if chosen is None else len(chosen), rng, epoch, source), dtype=np.int64)
        if self.num_samples is not None:
            order = order[: self.num_samples]
        return order if chosen is None else np.asarray(chosen)[order]


class SequentialSampler(BuiltinSampler):
    """Rows in the source's order, from start_index."""

    def __init__(self, start_index=None, num_samples=None):
        super().__init__(num_samples)
        self.start_index = _count("start_index", start_index) or 0

    def order(self, size, rng, epoch, source):
        if self.start_index > max(size - 1, 0):
            raise RuntimeError(f"Invalid parameter, start_index must be less than the number of rows {size}, but got: {self.start_index}")
        return np.arange(self.start_index, size)


class RandomSampler(BuiltinSampler):
    """Rows in a random order, or drawn with replacement."""

    def __init__(self, replacement=False, num_samples=None):
        super().__init__(num_samples)
        self.replacement = _flag("replacement", replacement)

    def order(self, size, rng, epoch, source):
        return rng.randint(0, size, self.num_samples or size) if self.replacement else rng.permutation(size)


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

    def order(self, size, rng, epoch, source):
        # Every shard must see the same order, so it comes from the seed and the epoch alone.
        rows = np.random.RandomState([_shared_seed(), epoch]).permutation(size) if self.shuffle else np.arange(size)
        length, begin = -(-size // self.num_shards), self.shard_id
        if self.offset >= 0:
            length, begin = -(-(size + self.offset) // self.num_shards), self.shard_id - self.offset
        places = begin + np.arange(length) * self.num_shards
        return rows[places[places >= 0] % size] if size else rows


def _shared_seed():
    from mindspore.dataset.core import config

    return config.get_seed()


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

    def order(self, size, rng, epoch, source):
        labels = source.labels(self.class_column)
        rows = []
        for label in np.unique(labels):
            places = np.flatnonzero(labels == label)
            rows.extend((rng.permutation(places) if self.shuffle else places)[: self.num_val])
        return rows


class SubsetSampler(BuiltinSampler):
    """The rows of a list, in its order."""

    def __init__(self, indices, num_samples=None):
        super().__init__(num_samples)
        self.chosen = [indices] if isinstance(indices, int) else list(indices)
        for index in self.chosen:
            if not isinstance(index, (int, np.integer)) or isinstance(index, bool):
                raise TypeError(f"SubsetSampler: Type of indices element must be int, but got list[...]={index}.")

    def order(self, size, rng, epoch, source):
        for index in self.chosen:
            if not 0 <= index < size:
                raise RuntimeError(f"Invalid sample ID: {index} is out of bound, expected range [0, {size - 1}]")
        return self.chosen


class SubsetRandomSampler(SubsetSampler):
    """The rows of a list, in a random order."""

    def order(self, size, rng, epoch, source):
        return rng.permutation(super().order(size, rng, epoch, source))


class WeightedRandomSampler(BuiltinSampler):
    """Rows drawn with the given weights."""

    def __init__(self, weights, num_samples=None, replacement=True):
        super().__init__(num_samples)
        self.weights, self.replacement = np.asarray(list(weights), dtype=np.float64), _flag("replacement", replacement)
        if not len(self.weights):
            raise ValueError("weights size must not be 0.")
        if (self.weights < 0).any() or not self.weights.sum() > 0:
            raise ValueError("weights must not contain negative numbers, and not be all zero.")

    def order(self, size, rng, epoch, source):
        count = self.num_samples or len(self.weights)
        return rng.choice(len(self.weights), count, replace=self.replacement, p=self.weights / self.weights.sum())


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

    def order(self, size, rng, epoch, source):
        self.dataset_size = size
        return [int(np.asarray(each)) for each in self]
