"""Gradients of functions of tensors, eager or captured; what GradOperation, ops.grad, vjp and jvp stand on.

A recorder's scope() is a context with
    argument(tensor)                    the tensor to hand to the function
    origin(result)                      the floating tensor that a result of integers was cast from, or the result
    parameter(parameter)                what stands for the parameter in gradients()
    gradients(results, seeds, wanted)   tensors
"""

import contextlib
import itertools
import math
import threading

import numpy

from cairn.ms import core, promote, refusal
from cairn.ms.tape import Scope
from cairn.ms.tensor import Tensor

_FLOAT = numpy.dtype("float32")
class _Here(threading.local):
    depth = 0  # of gradients under way that take integers as numbers


_here = _Here()
_MOST_TRIED = 5  # of so many arguments of integers each choice is tried: which are indices is not known


def scope():
    """The context in which gradients are taken."""
    recorder = core.here.recorder
    return Scope() if recorder is None else recorder.scope()


def tensors_of(tree):
    """The tensors in nested tuples, lists and dicts, in order."""
    if isinstance(tree, Tensor):
        return [tree]
    if isinstance(tree, dict):
        tree = tuple(tree.values())
    if isinstance(tree, (tuple, list)):
        return [each for part in tree for each in tensors_of(part)]
    return list(tree.parts()) if hasattr(tree, "of_parts") else []


def rebuilt(tree, replace):
    """The same nested tuples with replace(tensor) for each tensor."""
    if isinstance(tree, Tensor):
        return replace(tree)
    if isinstance(tree, dict):
        return {key: rebuilt(each, replace) for key, each in tree.items()}
    if isinstance(tree, (tuple, list)) and not hasattr(tree, "_fields"):
        return type(tree)([rebuilt(each, replace) for each in tree])
    if hasattr(tree, "of_parts"):  # a sparse tensor
        return tree.of_parts([replace(each) for each in tree.parts()])
    return tree


def with_bprop(function, backward, inputs):
    """function(*inputs), whose gradients are backward(inputs, results, gradients of the results); results may be nested."""
    trees = []

    def filled(tensors):
        tensors = iter(tensors)
        return rebuilt(trees[-1], lambda _: next(tensors))

    def forward(*given):
        trees.append(function(*given))
        return tuple(tensors_of(trees[-1]))

    def back(given, results, gradients):
        made = backward(given, filled(results), filled(gradients))
        made = made if isinstance(made, tuple) else (made,)
        return tuple([each.to_dense() if hasattr(type(each), "of_parts") else each for each in made])

    return filled(core.custom(forward, back, inputs))


def differentiate(function, arguments, keywords=None, positions=(), weights=(), seed=None, has_aux=False):
    """(value, [gradient of each argument in positions], [gradient of each weight]).

    The gradient of an argument has its structure. seed: the gradients of the results, None for ones. has_aux: only the
    first result is differentiated. Where all that is asked for are integers, they count as float32 numbers, unless the function
    takes integers only."""
    numbers = {i for i in positions if isinstance(arguments[i], (int, float)) and not isinstance(arguments[i], bool)}
    if numbers:
        return _of_numbers(function, arguments, keywords, positions, weights, seed, has_aux, numbers)
    asked = [each for i in positions for each in tensors_of(arguments[i])]
    kinds = {promote.nptype(each).kind for each in [*asked, *weights]}
    if kinds & {"i", "u"} and kinds <= set("iub"):
        found = _of_integers(function, arguments, keywords, positions, weights, seed, has_aux)
        if found is not None and _here.depth:  # of a gradient that is differentiated again
            return core.prepared(function)(*arguments, **(keywords or {})), *found
        if found is not None:
            types = iter([promote.nptype(each) for each in asked])
            made = [rebuilt(each, lambda x: promote.cast(x, next(types))) for each in found[0]]
            return core.prepared(function)(*arguments, **(keywords or {})), made, [promote.cast(*each) for each in zip(found[1], map(promote.nptype, weights))]
    return _differentiate(function, arguments, keywords, positions, weights, seed, has_aux)


def _of_integers(function, arguments, keywords, positions, weights, seed, has_aux):
    """The gradients where integers count as float32 numbers: as many as the function takes as such; None without any."""

    def attempt(chosen):
        given = [_with_floats(each) if i in chosen else each for i, each in enumerate(arguments)]
        try:
            with _mixing(), _floats_in(weights):
                return _differentiate(function, given, keywords, positions, weights, _with_floats(seed), has_aux)[1:]
        except refusal.WrongGradients:
            raise
        except (TypeError, ValueError):
            return None

    whole = [i for i in positions if any(promote.nptype(each).kind in "iu" for each in tensors_of(arguments[i]))]
    for count in range(len(whole), -1 if weights else 0, -1):
        for chosen in itertools.combinations(whole, count) if len(whole) <= _MOST_TRIED else [whole][: count == len(whole)]:
            made = attempt(chosen)
            if made is not None:
                return made
    return None


@contextlib.contextmanager
def _floats_in(weights):
    """Parameters of integers hold float32 numbers meanwhile, and what they held before afterwards."""
    if weights and core.here.recorder is not None:
        raise refusal.Uncaptured("gradients by Parameters of integers are taken outside of graphs")
    before = [(each, each._array) for each in weights if promote.nptype(each).kind in "iu"]
    _here.depth += 1
    try:
        for each, array in before:
            each._array = array.astype(_FLOAT)
        yield
    finally:
        _here.depth -= 1
        for each, array in before:
            each._array = array


def _of_numbers(function, arguments, keywords, positions, weights, seed, has_aux, numbers):
    """The same where some arguments are numbers: their gradients are numbers as well."""
    given = [Tensor(numpy.asarray(each, _FLOAT)) if i in numbers else each for i, each in enumerate(arguments)]
    seed = None if seed is None else _as_tensors(seed)
    _, made, of_weights = differentiate(function, given, keywords, positions, weights, seed, has_aux)
    made = [_as_number(each, arguments[i]) if i in numbers else each for i, each in zip(positions, made)]
    return core.prepared(function)(*arguments, **(keywords or {})), made, of_weights


def _as_tensors(tree):
    if isinstance(tree, (tuple, list)):
        return type(tree)(_as_tensors(each) for each in tree)
    return tree if isinstance(tree, Tensor) else Tensor(numpy.asarray(tree, _FLOAT))


def _as_number(made, like):
    value = float(made.asnumpy())
    return int(value) if isinstance(like, int) and value.is_integer() else value


@contextlib.contextmanager
def _mixing():
    """Parameters and constants of integers meet the floating numbers that stand for integers."""
    graph = core.here.recorder
    if graph is None or not graph.symbolic:
        yield
        return
    before, graph.mixes = graph.mixes, True
    try:
        yield
    finally:
        graph.mixes = before


def _with_floats(tree):
    return rebuilt(tree, lambda x: promote.cast(x, _FLOAT) if promote.nptype(x).kind in "iu" else x)


def _differentiate(function, arguments, keywords, positions, weights, seed, has_aux):
    with scope() as inside:
        given = list(arguments)
        for i in positions:
            given[i] = rebuilt(given[i], inside.argument)
        wanted = [each for i in positions for each in tensors_of(given[i])]
        wanted += [inside.parameter(each) for each in weights]
        value = core.prepared(function)(*given, **(keywords or {}))
        results = tensors_of(value[0] if has_aux else value)
        seeds = [None] * len(results) if seed is None else _seeds(seed, results)
        _check_seeds(results, seeds)
        seeds = [s if s is None or s.shape == r.shape else core.reshape(s, r.shape) for s, r in zip(seeds, results)]
        results = [inside.origin(each) for each in results]
        seeds = [s if s is None else promote.cast(s, promote.nptype(r)) for s, r in zip(seeds, results)]
        made = iter(inside.gradients(results, seeds, wanted))
        return value, [rebuilt(given[i], lambda _: next(made)) for i in positions], list(made)


def _seeds(seed, results):
    """The gradients of the results; numbers as tensors like the results."""

    def leaves(tree):
        return [each for part in tree for each in leaves(part)] if isinstance(tree, (tuple, list)) else [tree]

    flat = leaves(seed)
    if len(flat) != len(results) or not any(isinstance(each, (int, float)) for each in flat):
        return tensors_of(seed)
    return [each if isinstance(each, Tensor) else Tensor(numpy.full(result.shape, each, promote.nptype(result))) for each, result in zip(flat, results)]


def _check_seeds(results, seeds):
    if len(seeds) != len(results):
        raise TypeError(f"the function has {len(results)} results, but {len(seeds)} gradients are given for them")
    for result, seed in zip(results, seeds):
        same = seed is None or seed.shape == result.shape or math.prod(seed.shape) == math.prod(result.shape) == 1
        if not same or (seed is not None and seed.dtype is not result.dtype):
            raise TypeError(
                f"the gradient of a result of {result.dtype} and shape {result.shape} is of {seed.dtype} and shape {seed.shape}"
            )
