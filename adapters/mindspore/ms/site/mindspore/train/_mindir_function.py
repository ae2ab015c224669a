"""MindIR files whose network is one operator that holds the compiled function of a call: for gradients, updates of Parameters, branches and
loops, and operators that MindSpore has no name for. Cairn alone reads them, and says so when it writes one."""

import os
import tempfile
import types

import cairn
import numpy as np
from cairn.ms import capture, core, gradient, refuse
from cairn.ms.capture.graph import RNG
from cairn.ms.refusal import Uncaptured
from cairn.ms.tensor import wrap

from mindspore import log as logger
from mindspore.train import _export

KIND = "CairnFunction"


class Form:
    """A captured call, to be written."""

    def __init__(self, graph, result):
        results = gradient.tensors_of(_export.with_constants(result))
        if not results:
            raise TypeError(f"export: the network must return Tensors, but got {type(result).__name__}.")
        self.results = [np.empty(value.shape, value.dtype) for value in map(graph.value, results)]
        self.states = [(state, order) for state, (_, order) in graph.states.items()]
        if any(value.dtype == RNG for value, _ in graph.states.values()):
            raise Uncaptured("a file has no random state")
        self.written = list(graph.scopes[0].written)  # in the order of the module's results
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "function.om")
            graph.finish(results, bound=False).save(path)
            with open(path, "rb") as file:
                self.function = np.frombuffer(file.read(), np.uint8)


def form_of(net, inputs, refused=None):
    """The Form of a call of the network; without one what was refused is raised, or else nothing is returned."""
    try:
        made = capture.formed(net, _export.contiguous(inputs), Form)
    except Uncaptured as reason:
        if refused is None:
            return None
        raise refused from reason
    logger.warning("The network is written as one compiled function, which MindSpore cannot read: "
                   + (str(refused) if refused is not None else "a condition depends on its inputs") + ".")  # fmt: skip
    return made


def nodes(form, w, names):
    """Writes the operators of the Form of inputs of these names; returns the names of its results."""
    arrays = {state.name: (state.asnumpy(), order) for state, order in form.states}
    if len(arrays) != len(form.states):
        refuse("export of a network whose Parameters share a name", "a file tells them apart by it", "names of their own")
    w.graph.used.update((name, np.asarray(array, order="C")) for name, (array, _) in arrays.items())
    given = [name if order is None else w.node("Transpose", [name, order], w.fresh()) for name, (_, order) in arrays.items()]
    call = w.node(KIND, [*names, *given], w.fresh(), function=form.function)
    results = [w.node("TupleGetItem", [call, place], w.fresh()) for place in range(len(form.results) + len(form.written))]
    for state, made in zip(form.written, results[len(form.results) :]):
        order = arrays[state.name][1]
        made = made if order is None else w.node("Transpose", [made, tuple(np.argsort(order).tolist())], w.fresh())
        w.node("Assign", [state.name, made], w.fresh())
    return results[: len(form.results)]


def graph_of():
    """What a Writer asks of a graph."""
    return types.SimpleNamespace(used={}, shapes={}, ranks={})


class Loaded:
    """The compiled function of a file."""

    def __init__(self, function):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "function.om")
            with open(path, "wb") as file:
                file.write(np.asarray(function.asnumpy(), np.uint8).tobytes())
            self._model = cairn.load(path)

    def __call__(self, *values):
        recorder = core.here.recorder
        if recorder is not None and recorder.symbolic:
            raise Uncaptured("the compiled function of a file runs by itself")
        arrays = [np.asarray(each.asnumpy(), order="C") for each in values]
        made = self._model.run({port.name: each for port, each in zip(self._model.inputs, arrays)})
        return tuple([wrap(np.array(made[port.name])) for port in self._model.outputs])
