"""Gradients of models: functions of arrays, which are models themselves and can be differentiated again."""

import json
import os

from cairn import _cairn

_GRADIENT, _DIRECTION, _CHANGE = "gradient/", "direction/", "change/"


class Gradient:
    """What grad(), vjp() and jvp() return: called with {name: array}. `model` runs it, `module` can be differentiated again."""

    def __init__(self, kind, source, wrt, threads, engines, **options):
        if wrt is not None:
            options["wrt"] = [wrt] if isinstance(wrt, str) else list(wrt)
        options = {"kind": kind, **{key: value for key, value in options.items() if value}}
        self.module = _module(source)._gradient(json.dumps(options))
        self.model = _cairn.Model(self.module, threads, ",".join(engines or ()), 0.0, 0)

    def _run(self, inputs, prefix="", more=None):
        feeds = {**inputs, **{prefix + name: value for name, value in (more or {}).items()}}
        return self.model.run(feeds)


class _Grad(Gradient):
    def __call__(self, inputs):
        results = self._run(inputs)
        gradients = _pop_prefixed(results, _GRADIENT)
        if len(results) == 1 and self._value:
            return next(iter(results.values())), gradients
        return gradients

    def __init__(self, source, wrt, threads, engines, value, **options):
        self._value = value
        super().__init__("grad", source, wrt, threads, engines, value=value, **options)


class _Vjp(Gradient):
    def __call__(self, inputs, gradients):
        results = self._run(inputs, _GRADIENT, gradients)
        made = _pop_prefixed(results, _GRADIENT)
        return results, made


class _Jvp(Gradient):
    def __call__(self, inputs, directions):
        results = self._run(inputs, _DIRECTION, directions)
        changes = _pop_prefixed(results, _CHANGE)
        return results, changes


def grad(model, wrt=None, *, result=None, value=False, weights=False, weights_as_inputs=False, threads=0, engines=None):
    """The gradient of a result that is one number: a function of {input: array} that returns {name: gradient}.

        slope = cairn.grad("loss.onnx", wrt=["x", "conv1.weight"])
        slope({"x": images})["conv1.weight"]

    model: a path, a Module, or what grad(), vjp() or jvp() returned. wrt: names of inputs or of weights, None for all float
    inputs. weights: all weights as well. weights_as_inputs: these are inputs of the function instead of constants. value:
    return (value, gradients). result: which one, None for the first.
    """
    return _Grad(model, wrt, threads, engines, value, result=result, weights=weights, weights_as_inputs=weights_as_inputs)


def vjp(model, wrt=None, *, weights=False, weights_as_inputs=False, threads=0, engines=None):
    """Gradients from those of the results: a function of ({input: array}, {result: gradient}) that returns
    ({result: array}, {name: gradient})."""
    return _Vjp("vjp", model, wrt, threads, engines, weights=weights, weights_as_inputs=weights_as_inputs)


def jvp(model, wrt=None, *, weights=False, weights_as_inputs=False, threads=0, engines=None):
    """Changes along a direction: a function of ({input: array}, {name: direction}) that returns
    ({result: array}, {result: change})."""
    return _Jvp("jvp", model, wrt, threads, engines, weights=weights, weights_as_inputs=weights_as_inputs)


def _module(source):
    if isinstance(source, Gradient):
        return source.module
    return source if isinstance(source, _cairn.Module) else _cairn.Module(os.fspath(source))


def _pop_prefixed(results, prefix):
    return {name[len(prefix) :]: results.pop(name) for name in list(results) if name.startswith(prefix)}
