"""Functions of effects, order and random numbers."""

import numpy as np
from cairn.ms import core
from cairn.ms.numerics import basic, random
from mindspore.common import dtype as mstype
from mindspore.ops import operations as P

_INSTANCES = {
    "assign": "Assign", "assign_add": "AssignAdd", "assign_sub": "AssignSub", "depend": "Depend", "load": "Load", "partial": "Partial",
    "control_depend": "ControlDepend", "print_": "Print", "stop_gradient": "StopGradient",
}  # fmt: skip
for _name, _primitive in _INSTANCES.items():
    globals()[_name] = getattr(P, _primitive)()


def standard_normal(shape, seed=0, seed2=0):
    """Normal numbers of mean 0 and deviation 1."""
    return random.of_calls(P.StandardNormal(seed, seed2), seed, seed2)(tuple(shape))


def standard_laplace(shape, seed=0, seed2=0):
    """Laplace's numbers."""
    return random.of_calls(P.StandardLaplace(seed, seed2), seed, seed2)(tuple(shape))


def normal(shape, mean, stddev, seed=None):
    """Normal numbers."""
    return core.add(core.mul(random.of_calls(P.StandardNormal(seed or 0), seed or 0)(tuple(shape)), _float(stddev)), _float(mean))


def laplace(shape, mean, lambda_param, seed=None):
    """Laplace's numbers."""
    return core.add(core.mul(random.of_calls(P.StandardLaplace(seed or 0), seed or 0)(tuple(shape)), _float(lambda_param)), _float(mean))


def uniform(shape, minval, maxval, seed=None, dtype=mstype.float32):
    """Numbers in [minval, maxval); whole ones for int32."""
    if basic.as_np(dtype).kind == "i":
        return random.of_calls(P.UniformInt(seed or 0), seed or 0)(tuple(shape), minval, maxval)
    low, high = _float(minval), _float(maxval)
    return core.add(core.mul(random.of_calls(P.UniformReal(seed or 0), seed or 0)(tuple(shape)), core.sub(high, low)), low)


def _float(x):
    return basic.cast(x, np.float32) if hasattr(x, "dtype") and not isinstance(x, np.generic) else np.float32(x)


def multinomial(inputs, num_sample, replacement=True, seed=None):
    """Classes drawn by their weights."""
    return random.of_calls(P.Multinomial(seed or 0), seed or 0)(inputs, num_sample)


def random_categorical(logits, num_sample, seed=0, dtype=mstype.int64):
    """Classes drawn by softmax of logits."""
    with random.called("RandomCategorical", seed):
        return P.RandomCategorical(dtype)(logits, num_sample, seed)


def bernoulli(x, p=0.5, seed=-1):
    """1 with probability p, else 0."""
    with random.called("Bernoulli", 0 if seed == -1 else seed):
        return P.Bernoulli()(x, p)


def is_sequence_value_unknown(x):
    """Whether sizes are not known, which they are when a function is compiled."""
    return False


is_sequence_shape_unknown = is_dynamic_sequence_element_unknown = is_sequence_value_unknown


def shuffle(x, seed=0, seed2=0):
    """Rows in random order."""
    return random.of_calls(P.RandomShuffle(seed or 0, seed2), seed or 0, seed2)(x)


random_shuffle = shuffle


def randperm(max_length, pad=-1, dtype=mstype.int32):
    """0 to n - 1 in random order, then pad."""
    return P.Randperm(max_length, pad, dtype)


def truncated_normal(shape, seed=0, seed2=0, dtype=mstype.float32):
    """Normal numbers of magnitude below 2."""
    return P.TruncatedNormal(dtype)(tuple(shape))


del _name, _primitive
