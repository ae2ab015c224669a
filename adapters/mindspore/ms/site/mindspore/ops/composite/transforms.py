"""grad, value_and_grad, vjp, jvp and vmap of functions and Cells."""

import functools
import inspect
import math
import types

import numpy
from mindspore.common.parameter import Parameter
from mindspore.common.tensor import Tensor

from cairn.ms import core, gradient, promote

__all__ = ["derivative", "grad", "jacfwd", "jacrev", "jet", "jvp", "linearize", "value_and_grad", "vjp", "vmap"]


class Transform:
    """A function made from another: called eagerly, or captured as a whole. key: what distinguishes it from others made of
    this function, which share what was compiled; None: nothing is shared."""

    def __init__(self, function, body, key=None):
        self.function, self._body, self._key = function, body, key
        if hasattr(function, "__name__"):
            functools.update_wrapper(self, function, updated=())

    def __call__(self, *arguments, **keywords):
        if core.captures():
            return core.graph_entry(self, arguments, keywords)
        return self._body(*arguments, **keywords)

    uncaptured = property(lambda self: self._body)
    captured_for = property(lambda self: self if self._key is None else self.function)

    def capture_key(self):
        return self._key or ()


def _positions(given, name):
    if given is None:
        return (), False
    many = isinstance(given, (tuple, list))
    positions = tuple(given) if many else (given,)
    for each in positions:
        if isinstance(each, bool) or not isinstance(each, int):
            raise TypeError(
                f"For '{name}', 'grad_position' should be int or tuple of int, but got {type(each).__name__}."
            )
        if each < 0:
            raise ValueError(f"For '{name}', 'grad_position' should not be negative, but got {each}.")
    if len(set(positions)) != len(positions):
        raise ValueError(f"For '{name}', the elements of 'grad_position' should differ, but got {given}.")
    return positions, many


def _weights(given, name):
    if given is None or isinstance(given, Parameter):
        return ((given,) if given is not None else ()), given is not None
    if not isinstance(given, (tuple, list)):
        raise TypeError(f"For '{name}', 'weights' should be Parameters, but got {type(given).__name__}.")
    return tuple(given), False


def _gradients(fn, grad_position, weights, has_aux, name, sens_param=False):
    if not callable(fn):
        raise TypeError(f"For '{name}', 'fn' should be a Cell or a function, but got {type(fn).__name__}.")
    if grad_position is None and weights is None:
        raise ValueError(f"For '{name}', 'grad_position' and 'weights' can not be None at the same time.")
    positions, many = _positions(grad_position, name)
    parameters, single = _weights(weights, name)

    def body(*arguments, **keywords):
        seed = None
        if sens_param:
            if not arguments:
                raise TypeError(f"For '{name}', the gradient of the results is missing: sens_param is True.")
            *arguments, seed = arguments
        for each in positions:
            if each >= len(arguments):
                raise ValueError(f"For '{name}', grad_position {each} is out of the {len(arguments)} inputs.")
        value, of_inputs, of_weights = gradient.differentiate(
            fn, arguments, keywords, positions, parameters, seed, has_aux
        )
        by_inputs = tuple(of_inputs) if many else of_inputs[0] if positions else None
        by_weights = of_weights[0] if single else tuple(of_weights)
        if weights is None:
            return value, by_inputs
        return value, by_weights if grad_position is None else (by_inputs, by_weights)

    return body, (name, grad_position, parameters, single, has_aux, sens_param)


def grad(fn, grad_position=0, weights=None, has_aux=False, sens_param=False):
    """A function that returns the gradients of fn with respect to inputs, weights, or (inputs, weights); with has_aux
    (gradients, further results). sens_param, which is the third argument before 1.9: the last input of that function is the
    gradient of the results."""
    if isinstance(weights, bool):
        weights, sens_param = None, weights
    if not isinstance(sens_param, bool):
        raise TypeError(f"For 'grad', the 'sens_param' should be bool, but got {type(sens_param).__name__}.")
    both, key = _gradients(fn, grad_position, weights, has_aux, "grad", sens_param)

    def body(*arguments, **keywords):
        value, made = both(*arguments, **keywords)
        return (made, value[1:]) if has_aux else made

    return Transform(fn, body, key)


def value_and_grad(fn, grad_position=0, weights=None, has_aux=False):
    """A function that returns (results of fn, gradients)."""
    return Transform(fn, *_gradients(fn, grad_position, weights, has_aux, "value_and_grad"))


def _inputs(given):
    return tuple(given) if isinstance(given, (tuple, list)) else (given,)


def _vjp(fn, inputs, seeds):
    value, made, _ = gradient.differentiate(fn, inputs, None, tuple(range(len(inputs))), (), seeds)
    return value, made[0] if len(made) == 1 else tuple(made)


def _takes_two(fn, first):
    """Whether vjp(fn, first, second) names the two inputs of fn, not the input and the gradient of the result."""
    if isinstance(first, (tuple, list)):
        return False
    given = inspect.signature(getattr(fn, "construct", fn)).parameters.values()
    return sum(each.default is each.empty and each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD) for each in given) == 2


def vjp(fn, *inputs, v=None, weights=None, has_aux=False):
    """vjp(fn, inputs, v): (results, gradients of the inputs, from those of the results). vjp(fn, *inputs) with as many inputs
    as fn takes: (results, function of the gradients of the results)."""
    if not all(gradient.tensors_of(each) for each in inputs):
        raise TypeError(f"For 'vjp', the inputs should be Tensors, but got {', '.join(type(each).__name__ for each in inputs)}.")
    if v is not None or (len(inputs) == 2 and weights is None and not has_aux and not _takes_two(fn, inputs[0])):
        seeds = inputs[1] if v is None else v
        return Transform(fn, functools.partial(_vjp, fn), ("vjp",))(_inputs(inputs[0]), seeds)
    value = fn(*inputs)

    def back(*seeds):
        parameters, single = _weights(weights, "vjp")
        if has_aux:
            seeds = seeds[:1]
        _, made, more = gradient.differentiate(fn, inputs, None, tuple(range(len(inputs))), parameters, seeds, has_aux)
        made = made[0] if len(made) == 1 else tuple(made)
        return (made, more[0] if single else tuple(more)) if weights is not None else made

    if has_aux:
        return value[0], back, value[1:] if len(value) > 2 else value[1]
    return value, back


def jvp(fn, inputs, v, has_aux=False):
    """(results, their changes along the direction v of the inputs)."""
    return Transform(fn, lambda *given: _jvp(fn, *given, has_aux), ("jvp", has_aux))(_inputs(inputs), _inputs(v))


def _jvp(fn, arguments, directions, has_aux):
    """The vjp is linear in the gradients of the results; its own gradient by these is the jvp."""
    aux = []

    def outputs(*given):
        made = core.prepared(fn)(*given)
        if has_aux:
            aux[:] = [made[1:]]
            made = made[0]
        return made

    value = outputs(*arguments)
    seeds = gradient.rebuilt(value, lambda each: core.mul(core.stop_gradient(each), _zero(each)))
    many = isinstance(value, (tuple, list))

    def back(*given):
        _, made, _ = gradient.differentiate(outputs, arguments, None, tuple(range(len(arguments))), (), given)
        return tuple(made)

    given = tuple(seeds) if many else (seeds,)
    _, changes, _ = gradient.differentiate(back, given, None, tuple(range(len(given))), (), tuple(directions))
    made = (value, tuple(changes) if many else changes[0])
    return (*made, aux[0] if len(aux[0]) > 1 else aux[0][0]) if has_aux else made


def _zero(tensor):
    return promote.cast(Tensor(0.0), promote.nptype(tensor))


def _rows(tree, axes, position, parts):
    """The slice of nested tensors at a position of the axis that is mapped. Those of Parameters are Parameters as well, which
    parts[parameter] lists with what they hold at first."""
    if isinstance(tree, (tuple, list)):
        axes = axes if isinstance(axes, (tuple, list)) else [axes] * len(tree)
        return type(tree)([_rows(each, axis, position, parts) for each, axis in zip(tree, axes)])
    if axes is None or not isinstance(tree, Tensor):
        return tree
    axis = axes % len(tree.shape)
    piece = tree[(slice(None),) * axis + (position,)]
    if not isinstance(tree, Parameter):
        return piece
    made = Parameter.__new__(Parameter)
    made.__dict__.update(tree.__dict__)
    made._array, made._value = None if piece._array is None else piece._array.copy(), piece._value
    parts.setdefault(id(tree), (tree, axis, []))[2].append((made, piece))
    return made


def _put_back(parts):
    """Parameters whose slices were assigned get these."""
    for parameter, axis, pairs in parts.values():
        if any(a._value is not b._value or a._array is not None and not numpy.array_equal(a._array, b._array, equal_nan=True) for a, b in pairs):
            core.assign(parameter, _stacked([core.identity(each) for each, _ in pairs], axis))


def _sizes(tree, axes):
    if isinstance(tree, (tuple, list)):
        axes = axes if isinstance(axes, (tuple, list)) else [axes] * len(tree)
        return [size for each, axis in zip(tree, axes) for size in _sizes(each, axis)]
    if axes is None or not isinstance(tree, Tensor):
        return []
    if not -len(tree.shape) <= axes < len(tree.shape):
        raise ValueError(f"For 'vmap', an axis of 'in_axes' must be in the range of a tensor of {len(tree.shape)} dims, but got {axes}.")
    return [tree.shape[axes]]


def _stacked(trees, axes):
    if isinstance(trees[0], (tuple, list)):
        axes = axes if isinstance(axes, (tuple, list)) else [axes] * len(trees[0])
        return tuple(_stacked(each, axis) for each, axis in zip(zip(*trees), axes))
    axis = axes % (len(trees[0].shape) + 1)
    dims = list(trees[0].shape)
    return core.concat([core.reshape(each, [*dims[:axis], 1, *dims[axis:]]) for each in trees], axis=axis)


def vmap(fn, in_axes=0, out_axes=0):
    """A function that maps fn over an axis of its inputs, one position after the other."""
    if not callable(fn):
        raise RuntimeError(f"'vmap' takes a Cell or a function, but got {type(fn).__name__}.")
    for name, axes in (("in_axes", in_axes), ("out_axes", out_axes)):
        if not isinstance(axes, (int, tuple, list, type(None))):
            raise TypeError(f"For 'vmap', the type of '{name}' must be int, tuple, list or None, but got {type(axes).__name__}.")

    def body(*arguments):
        axes = in_axes if isinstance(in_axes, (tuple, list)) else [in_axes] * len(arguments)
        if len(axes) != len(arguments):
            raise RuntimeError(
                f"For 'vmap', the size of 'in_axes' should be that of the inputs, {len(arguments)}, but got {len(axes)}."
            )
        sizes = set(_sizes(arguments, axes))
        if not sizes:
            raise RuntimeError("For 'vmap', there is no axis to map over: all of 'in_axes' are None.")
        if len(sizes) > 1:
            raise RuntimeError(f"For 'vmap', the mapped axes should have one size, but got {sorted(sizes)}.")
        parts = {}
        made = _stacked([mapped(*_rows(arguments, axes, i, parts)) for i in range(sizes.pop())], out_axes)
        _put_back(parts)
        return made

    def mapped(*rows):
        if core.captures() and isinstance(fn, types.FunctionType) and not hasattr(fn, "captured"):
            return core.graph_entry(fn, rows, {})
        return core.prepared(fn)(*rows)

    return _Mapped(fn, body)


class _Mapped(Transform):
    """A graph of one position, which runs for each, unless Parameters are mapped: those are written by one graph of all."""

    def __call__(self, *arguments):
        if any(isinstance(each, Parameter) for each in _leaves(arguments)):
            return super().__call__(*arguments)
        return self._body(*arguments)


def _leaves(tree):
    return [each for part in tree for each in _leaves(part)] if isinstance(tree, (tuple, list)) else [tree]


def jacrev(fn, grad_position=0, has_aux=False):
    """A function that returns the derivatives of each element of fn's result: shape of the result, then of the input."""
    positions, many = _positions(grad_position, "jacrev")

    def body(*arguments):
        aux = []

        def outputs(*given):
            made = core.prepared(fn)(*given)
            aux[:] = made[1:] if has_aux else ()
            return made[0] if has_aux else made

        value = outputs(*arguments)
        more = tuple(aux)
        results = value if isinstance(value, (tuple, list)) else (value,)
        made = []
        for place, result in enumerate(results):
            rows = [_row(outputs, arguments, positions, results, place, i) for i in range(math.prod(result.shape))]
            columns = [
                core.reshape(core.concat(*[core.reshape(each, [1, *each.shape]) for each in column], axis=0),
                             [*result.shape, *column[0].shape])
                for column in zip(*rows)
            ]  # fmt: skip
            made.append(tuple(columns) if many else columns[0])
        made = tuple(made) if isinstance(value, (tuple, list)) else made[0]
        return (made, more[0] if len(more) == 1 else more) if has_aux else made

    return Transform(fn, body)


def _row(outputs, arguments, positions, results, place, index):
    """Gradients of one element of one of the results."""
    seeds = []
    for i, result in enumerate(results):
        seed = numpy.zeros(math.prod(result.shape), promote.nptype(result))
        if i == place:
            seed[index] = 1
        seeds.append(Tensor(seed.reshape(result.shape)))
    _, made, _ = gradient.differentiate(outputs, arguments, None, positions, (), tuple(seeds))
    return made


jacfwd = jacrev  # the same numbers, from the other end


def linearize(fn, inputs):
    """(results of fn, function of a direction that gives their change)."""
    arguments = _inputs(inputs)
    return fn(*arguments), lambda *directions: jvp(fn, arguments, _inputs(directions[0] if len(directions) == 1 else directions))[1]


def derivative(fn, primals, order):
    """(results of fn, their derivative of that order along ones)."""
    if isinstance(order, bool) or not isinstance(order, int):
        raise TypeError(f"For 'derivative', the type of 'order' must be int, but got {type(order).__name__}.")
    if order < 1:
        raise ValueError(f"For 'derivative', 'order' must be at least 1, but got {order}.")
    given = _inputs(primals)
    ones = tuple(core.identity(numpy.ones(each.shape, promote.nptype(each))) for each in given)

    def along(function):
        return lambda *arguments: jvp(function, arguments, ones)[1]

    function = fn
    for _ in range(order):
        function = along(function)
    return fn(*given), function(*given)


def jet(fn, primals, series):
    """(results of fn, their derivatives along a path of the inputs), of which series[k] is the derivative of order k + 1."""
    given, paths = _inputs(primals), _inputs(series)

    def along(t):
        return fn(*(_path(primal, path, t) for primal, path in zip(given, paths)))

    start = Tensor(numpy.zeros((), promote.nptype(given[0])))
    made = [derivative(along, start, order + 1)[1] for order in range(paths[0].shape[0])]
    return fn(*given), _stacked(made, 0)


def _path(primal, path, t):
    """primal + sum of path[k] t^(k + 1) / (k + 1)!"""
    power, point = None, primal
    for k in range(path.shape[0]):
        power = t if power is None else core.mul(power, core.div(t, _number(k + 1, t)))
        point = core.add(point, core.mul(path[k], power))
    return point


def _number(value, like):
    return numpy.asarray(value, promote.nptype(like))
