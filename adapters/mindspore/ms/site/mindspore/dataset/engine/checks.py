"""Checks of what operations of a pipeline are given, and small things that they share."""

import os

import numpy as np


def columns_of(value, name):
    """A list of column names, from one name or several."""
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, (list, tuple)):
        raise TypeError(f"Argument {name} with value {value} is not of type [<class 'str'>, <class 'list'>], but got {type(value)}.")
    for place, each in enumerate(value):
        if not isinstance(each, str):
            raise TypeError(f"Argument {name}[{place}] with value {each} is not of type [<class 'str'>], but got {type(each)}.")
        if not each:
            raise ValueError(f"{name}[{place}] should not be empty.")
    if len(set(value)) != len(value):
        raise ValueError(f"Every column name should not be same with others in {name}.")
    return list(value)


def quoted(value):
    """The value as messages show it."""
    return f'"{value}"' if isinstance(value, str) else value


def whole(value, name, least=1, more=()):
    """An integer of at least `least`, or one of `more`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"Argument {name} with value {value} is not of type [<class 'int'>], but got {type(value)}.")
    if not least <= value <= 2147483647 and value not in more:
        raise ValueError(f"Input {name} is not within the required interval of [{least}, 2147483647].")
    return int(value)


def workers(value):
    """A number of workers; None: the one of `config`."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise TypeError(f"Argument num_parallel_workers with value {value} is not of type [<class 'int'>], but got {type(value)}.")
    most = max(os.cpu_count(), 64)
    if value is not None and not 1 <= value <= most:
        raise ValueError(f"num_parallel_workers exceeds the boundary between 1 and {most}!")


def shards(num_shards, shard_id):
    """Whether rows are shared out."""
    if num_shards is not None:
        whole(num_shards, "num_shards")
        if shard_id is None:
            raise RuntimeError("num_shards is specified and currently requires shard_id as well.")
    if shard_id is None:
        return False
    if isinstance(shard_id, bool) or not isinstance(shard_id, (int, np.integer)):
        raise TypeError(f"Argument shard_id with value {quoted(shard_id)} is not of type [<class 'int'>], but got {type(shard_id)}.")
    if num_shards is None:
        raise RuntimeError("shard_id is specified but num_shards is not.")
    if not 0 <= shard_id < num_shards:
        raise ValueError(f"Input shard_id is not within the required interval of [0, {num_shards - 1}].")
    return True


def flag(value, name):
    """A bool."""
    if not isinstance(value, bool):
        raise TypeError(f"Argument {name} with value {quoted(value)} is not of type [<class 'bool'>], but got {type(value)}.")
    return value


def places_of(names, have, who):
    """Where columns stand in a row."""
    for name in names:
        if name not in have:
            raise RuntimeError(f"Invalid column, {who}: column name: {name} is not found in the dataset, which has {list(have)}.")
    return [list(have).index(name) for name in names]


def arrays(values):
    """A transform's results as arrays."""
    return [np.asarray(value.asnumpy() if hasattr(value, "asnumpy") else value) for value in values]
