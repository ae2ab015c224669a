"""Primitives of random numbers, all from the stream that set_seed begins."""

import numpy as np
from cairn.ms import core
from cairn.ms.numerics import basic, random
from mindspore._checkparam import Rel, Validator
from mindspore.common import dtype as mstype
from mindspore.common.tensor import Tensor
from mindspore.ops.operations._form import REQUIRED, primitive, static, tensor


def _shape(shape, name):
    shape = static(shape, name, "shape")
    if isinstance(shape, int):
        raise TypeError(f"For '{name}', the 'shape' must be a tuple, but got int.")
    for each in shape:
        Validator.check_positive_int(each, "shape", name)
    return tuple(shape)


def _seeds(self):
    for each in ("seed", "seed2"):
        Validator.check_non_negative_int(getattr(self, each), each, self.name)


def _random(name, compute, doc, **attributes):
    return primitive(name, compute, doc, _seeds, **attributes, seed=0, seed2=0)


def _laplace(self, shape):
    u = core.sub(random.uniform(_shape(shape, "StandardLaplace")), np.float32(0.5))
    rest = core.maximum(core.sub(np.float32(1), core.mul(core.abs(u), np.float32(2))), np.float32(1e-30))
    return core.neg(core.mul(core.sign(u), core.log(rest)))


def _uniform_int(self, shape, low, high):
    low, high = (basic.cast(each, np.int32) if hasattr(each, "dtype") else np.int32(each) for each in (low, high))
    return random.integers(_shape(shape, "UniformInt"), low, high, np.int32)


def _multinomial(self, x, count):
    if len(tensor(x, "Multinomial").shape) not in (1, 2):
        raise ValueError(f"For 'Multinomial', the rank of 'x' must be 1 or 2, but got {len(x.shape)}.")
    logits = core.log(tensor(x, "Multinomial", "float"))
    flat = len(x.shape) == 1
    out = random.categorical(
        basic.expand(logits, 0) if flat else logits, static(count, "Multinomial", "num_samples"), np.int32
    )
    return basic.reshape(out, (-1,)) if flat else out


def _mask_of_chosen(self, x):
    """`count` index vectors of true elements, chosen at random, and which of them are real."""
    places = random.shuffled(core.non_zero(x))
    have = min(places.shape[0], self.count)
    chosen = basic.part(places, 0, 0, have)
    fill = basic.filled((self.count - have, len(x.shape)), 0, np.int64)
    chosen = basic.cast(core.concat(chosen, fill, axis=0), np.int32)
    return chosen, core.identity(np.arange(self.count) < have)


def _check_count(self):
    Validator.check_positive_int(self.count, "count", self.name)


def _rand_perm(self, n):
    n = static(n, "Randperm", "n")
    n = n[0] if isinstance(n, tuple) else n
    Validator.check_int_range(n, 0, self.max_length, Rel.INC_BOTH, "n", "Randperm")
    dtype = basic.as_np(self.dtype)
    order = random.shuffled(np.arange(n, dtype=dtype))
    return (
        core.concat(order, basic.filled((self.max_length - n,), self.pad, dtype), axis=0)
        if n < self.max_length
        else order
    )


StandardNormal = _random(
    "StandardNormal",
    lambda self, shape: random.normal(_shape(shape, "StandardNormal")),
    "Normal numbers of mean 0 and deviation 1.",
)
UniformReal = _random(
    "UniformReal", lambda self, shape: random.uniform(_shape(shape, "UniformReal")), "Numbers in [0, 1)."
)
UniformInt = _random("UniformInt", _uniform_int, "Whole numbers in [low, high).")
StandardLaplace = _random("StandardLaplace", _laplace, "Laplace's numbers of location 0 and scale 1.")
Multinomial = primitive(
    "Multinomial", _multinomial, "Classes drawn by their weights.", _seeds, seed=0, seed2=0, dtype=mstype.int32
)
RandomCategorical = primitive(
    "RandomCategorical", lambda self, logits, count, seed=0: random.categorical(logits, static(count, "RandomCategorical", "num_sample"), basic.as_np(self.dtype)),
    "Classes drawn by softmax of logits.", dtype=mstype.int64,
)  # fmt: skip
RandomChoiceWithMask = primitive(
    "RandomChoiceWithMask",
    _mask_of_chosen,
    "Places of true elements, drawn at random.",
    _check_count,
    count=256,
    seed=0,
    seed2=0,
)
Randperm = primitive(
    "Randperm", _rand_perm, "0 to n - 1 in random order, then pad.",
    lambda self: Validator.check_positive_int(self.max_length, "max_length", "Randperm"), max_length=1, pad=-1, dtype=mstype.int32
)
RandpermV2 = primitive(
    "RandpermV2",
    lambda self, n: random.shuffled(np.arange(static(n, "RandpermV2", "n"), dtype=np.int64)),
    "0 to n - 1 in random order.",
    seed=0,
    offset=0,
    dtype=mstype.int64,
)
RandomShuffle = _random("RandomShuffle", lambda self, x: random.shuffled(tensor(x, "RandomShuffle")), "Rows in random order.")
TruncatedNormal = _random(
    "TruncatedNormal",
    lambda self, shape: random.truncated_normal(_shape(shape, "TruncatedNormal"), basic.as_np(self.dtype)),
    "Normal numbers of magnitude below 2.",
    dtype=mstype.float32,
)
Bernoulli = primitive(
    "Bernoulli",
    lambda self, x, p: basic.cast(
        core.less(random.uniform(x.shape), p if hasattr(p, "shape") else np.float32(p)), basic.nptype(x)
    ),
    "1 with probability p, else 0.",
    seed=-1,
    offset=0,
)


def _candidates(name, probability, draw, **defaults):
    """Classes drawn for sampled losses: (sampled, expected count of the true ones, of the sampled ones)."""

    def compute(self, true_classes):
        sampled = draw(self, true_classes)
        counts = [
            core.mul(probability(self, basic.cast(each, np.float32)), np.float32(self.num_sampled))
            for each in (true_classes, sampled)
        ]
        return basic.cast(sampled, basic.nptype(true_classes)), *counts

    return primitive(
        name,
        compute,
        "Sampled classes and expected counts.",
        **{"num_true": REQUIRED, "num_sampled": REQUIRED, "unique": REQUIRED, "range_max": REQUIRED, "seed": 0, **defaults},
    )


def _distinct_uniform(self, true_classes):
    if self.unique and self.remove_accidental_hits:
        return _other_than(self, basic.cast(core.reshape(true_classes, [1, -1]), np.int64))
    if self.unique:
        return basic.part(random.shuffled(np.arange(self.range_max, dtype=np.int64)), 0, 0, self.num_sampled)
    return random.integers((self.num_sampled,), np.int64(0), np.int64(self.range_max), np.int64)


def _other_than(self, hits):
    """Classes that are none of the hits, each once; draws that repeat classes may hit."""
    classes = np.arange(self.range_max, dtype=np.int64).reshape(-1, 1)
    hit = basic.cast(core.reduce_max(basic.cast(core.equal(classes, hits), np.int32), axes=[1]), np.float32)
    order = core.sub(random.uniform((self.range_max,)), core.mul(hit, np.float32(2)))
    return basic.cast(core.top_k(order, np.int64(self.num_sampled))[1], np.int64)


UniformCandidateSampler = _candidates(
    "UniformCandidateSampler", lambda self, c: basic.like(c, 1.0 / self.range_max), _distinct_uniform, remove_accidental_hits=False
)


# Distributions that NumPy draws


def _drawn(name, draw, checks=(), doc="", **attributes):
    """draw(generator, shape, *parameters), parameters of `checks` above 0; of a shape that the parameters broadcast with."""

    def compute(self, shape, *parameters):
        values = [np.asarray(each.asnumpy() if isinstance(each, Tensor) else each, np.float64) for each in parameters]
        for place in checks:
            if (values[place] <= 0).any():
                raise ValueError(f"For '{name}', the parameters of the distribution must be above 0.")
        full = np.broadcast_shapes(_shape(shape, name), *(each.shape for each in values))
        return Tensor(draw(random.generator(), full, *values).astype(basic.as_np(getattr(self, "dtype", None) or getattr(self, "of"))))

    return primitive(name, compute, doc, None, **attributes)


_SEEDS = {"seed": 0, "seed2": 0}
Gamma = _drawn("Gamma", lambda g, shape, alpha, beta: g.gamma(alpha, 1 / beta, shape), (0, 1), "Gamma numbers.", **_SEEDS)
Poisson = _drawn("Poisson", lambda g, shape, mean: g.poisson(mean, shape), (0,), "Poisson's numbers.", **_SEEDS)
Gamma.of, Poisson.of = np.float32, np.int32


def _per_parameter(name, draw, **attributes):
    """Numbers of `shape` for each parameter, whose dims come last."""

    def compute(self, shape, parameter):
        values = parameter.asnumpy()
        if (values < 0).any():
            raise ValueError(f"For '{name}', the parameters must not be negative.")
        full = (*np.atleast_1d(static(shape, name, "shape")), *values.shape)
        dtype = getattr(self, "dtype", None)
        return Tensor(draw(random.generator(), values, full).astype(basic.as_np(dtype) if dtype is not None else values.dtype))

    return primitive(name, compute, "Random numbers for each parameter.", **attributes)


RandomGamma = _per_parameter("RandomGamma", lambda g, alpha, shape: g.gamma(alpha, 1.0, shape), seed=0, seed2=0)
RandomPoisson = _per_parameter("RandomPoisson", lambda g, rate, shape: g.poisson(rate, shape), seed=0, seed2=0, dtype=mstype.int64)


def _log_normal(self, x):
    made = random.generator().lognormal(self.mean, self.std, tensor(x, "LogNormalReverse", "float").shape)
    return Tensor(made.astype(basic.nptype(x)))


LogNormalReverse = primitive("LogNormalReverse", _log_normal, "Log-normal numbers of x's shape.", mean=1.0, std=2.0)


def _with_replacement(self, x, seed=0, offset=0):
    x = x.asnumpy()
    rows = np.atleast_2d(x)
    if (rows < 0).any() or (rows.sum(-1) <= 0).any():
        raise RuntimeError("For 'MultinomialWithReplacement', the weights must not be negative and not all be 0.")
    g = random.generator()
    drawn = np.stack([g.choice(rows.shape[1], self.numsamples, p=row / row.sum()) for row in rows.astype(np.float64)]).astype(np.int64)
    return Tensor(drawn if x.ndim > 1 else drawn[0])


MultinomialWithReplacement = primitive(
    "MultinomialWithReplacement", _with_replacement, "Classes drawn by their weights.", numsamples=REQUIRED, replacement=False
)
NonDeterministicInts = primitive(
    "NonDeterministicInts",
    lambda self, shape: Tensor(random.generator().integers(-(2**31), 2**31, _shape(shape, "NonDeterministicInts")).astype(basic.as_np(self.dtype))),
    "Whole numbers.", dtype=mstype.int64,
)  # fmt: skip


def _truncated(self, shape, mean, deviation, least, most):
    mean, deviation, least, most = (float(each.asnumpy().reshape(-1)[0]) for each in (mean, deviation, least, most))
    shape, g = tuple(static(shape, "ParameterizedTruncatedNormal", "shape")), random.generator()
    made = np.full(shape, np.inf)
    while True:
        out = (made < least) | (made > most)
        if not out.any():
            return Tensor(made.astype(np.float32))
        made[out] = g.normal(mean, deviation, int(out.sum()))


ParameterizedTruncatedNormal = primitive("ParameterizedTruncatedNormal", _truncated, "Normal numbers within bounds.", seed=0, seed2=0)


def _log_uniform(self, true_classes):
    drawn = random.generator()
    made = set() if self.unique else []
    while len(made) < self.num_sampled:
        each = int(np.exp(drawn.random() * np.log(self.range_max + 1))) - 1
        made.add(each) if self.unique else made.append(each)
    return Tensor(np.array(list(made), np.int64))


LogUniformCandidateSampler = _candidates(
    "LogUniformCandidateSampler",
    lambda self, c: core.div(core.log(core.div(core.add(c, np.float32(2)), core.add(c, np.float32(1)))), np.float32(np.log(self.range_max + 1))),
    _log_uniform, num_true=1, num_sampled=5, unique=True, range_max=5,
)  # fmt: skip
