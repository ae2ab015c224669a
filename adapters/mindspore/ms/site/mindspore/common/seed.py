"""The seed of all random numbers of the process."""

import numpy

_seed = None


def set_seed(seed):
    """Begins the streams of random numbers anew; the same seed gives the same numbers in both modes."""
    global _seed
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise TypeError(f"The argument 'seed' must be type of int, but got {type(seed).__name__}.")
    if seed < 0:
        raise ValueError(f"The argument 'seed' must be greater or equal to 0, but got {seed}.")
    numpy.random.seed(seed % 2**32)
    _seed = seed
    from cairn.ms.numerics import random
    from mindspore.dataset.core import config

    random.seed(seed)
    config.set_seed(seed % 2**32)


def get_seed():
    """The seed that was set, or None."""
    return _seed
