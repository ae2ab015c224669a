"""Which rows of a source a pass reads, in which order. A sampler with a child chooses from the child's choice."""

from cairn import _data


def _made(sampler, child):
    if child is not None:
        sampler.add_child(child)
    return sampler


def sequential(start=0, count=0, child=None):
    """Rows in the source's order, from `start`."""
    return _made(_data.sequential_sampler(start, count), child)


def shuffled(count=0, replacement=False, child=None):
    """Rows in random order, or drawn with replacement."""
    return _made(_data.random_sampler(replacement, count), child)


def sharded(shards, shard, shuffle=True, offset=-1, count=0, child=None):
    """One of `shards` parts of equal length; the last rows of the longer ones begin again at the first."""
    return _made(_data.distributed_sampler(shards, shard, shuffle, offset, count), child)


def per_class(each, shuffle=False, column="label", count=0, child=None):
    """`each` rows of each class."""
    return _made(_data.class_sampler(each, shuffle, column, count), child)


def subset(rows, shuffle=False, count=0, child=None):
    """The rows of a list."""
    return _made(_data.subset_sampler([int(row) for row in rows], shuffle, count), child)


def weighted(weights, replacement=True, count=0, child=None):
    """Rows drawn with weights."""
    return _made(_data.weighted_sampler([float(weight) for weight in weights], replacement, count), child)


def custom(order, count=0, child=None):
    """order(rows of the source, epoch) gives row numbers."""
    return _made(_data.host_sampler(lambda rows, epoch: [int(each) for each in order(rows, epoch)], count), child)


def chosen(shuffle, sampler, shards, count):
    """The sampler of a source's arguments; shards: (number, which)."""
    if sampler is not None:
        if shuffle or shards or count:
            raise ValueError("a sampler stands for shuffle, shards and count")
        return sampler
    if shards:
        return sharded(*shards, shuffle=shuffle, count=count or 0)
    return shuffled(count or 0) if shuffle else sequential(0, count or 0)
