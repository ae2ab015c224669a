"""Records what a script computes while it trains, so that two engines can be compared: every small number that a run gives, run by
run, and the variables after each run that trains. CAIRN_RECORD names the file (.npz); CAIRN_RECORD_STEPS ends the script after
so many training runs.

A run is a session's run, a call of a tf.function from eager code, or a gradient that eager code takes by itself; whatever Estimators,
hooks and Keras do is one of them. It trains when it takes a gradient, applies one to variables, or, where nothing does, assigns
to trainable variables. Keys are `fetch:RUN:NAME`, `after:RUN:NAME` for a variable after a run (a sample of a large one),
`variable:NAME` for its last value as a whole, and `races`: what timing decides (see races), as JSON. While recording, graphs,
functions, NumPy and `random` start from one seed, unless the script sets its own."""

import atexit
import json
import os
import random
import sys
import weakref

import numpy as np

from cairn_tf1 import races

SEED = 1
MOST_ELEMENTS = 4096  # of a fetched value; more is data, not a result to compare. Of a variable so many are kept for each run
UPDATES = ("Apply", "ResourceApply", "SparseApply", "ResourceSparseApply")  # ops that make a run a training run
ASSIGNMENTS = ("Assign", "Scatter", "ResourceScatter")  # so do these, in a graph without UPDATES, to a trainable variable


class Recorder:
    def __init__(self, path, steps):
        self.path, self.steps = path, steps
        self.arrays, self.variables, self.run, self.trained = {}, {}, 0, 0
        self.roundoff = 0.0  # of a lower precision that is asked of the engine, or that the script computes in
        self._sizes = weakref.WeakKeyDictionary()  # of graphs
        self.races = {}  # values that timing decides, with the reason
        self.eager = 0  # training runs of operators that eager code calls one by one

    def install(self):
        from tensorflow.python.framework import ops

        random.seed(SEED)
        np.random.seed(SEED)
        # Also where an Estimator or a script sets no seed at all.
        ops.Graph.seed = property(
            lambda graph: SEED if graph._seed is None else graph._seed, lambda graph, seed: setattr(graph, "_seed", seed)
        )
        turns_in_order()
        Sessions(self).install()
        Eager(self).install()
        atexit.register(self._save)

    def end_run(self, values, variables=None):
        """One run gave these {name: array}; `variables` {name: array} when it trained."""
        for name, value in _numbers(values):
            if value.size <= MOST_ELEMENTS:
                self.arrays[f"fetch:{self.run}:{name}"] = value
        for name, value in _numbers(variables or {}):
            self.variables[name] = value
            self.arrays[f"after:{self.run}:{name}"] = value.ravel()[:: -(-value.size // MOST_ELEMENTS) or 1]
        self.run += 1
        self.trained += variables is not None
        if variables is not None and self.steps and self.trained >= self.steps:
            print(f"recorded {self.trained} training runs", flush=True)
            sys.exit(0)

    def _save(self):
        last = {f"variable:{name}": value for name, value in self.variables.items()}
        about = {"trained": self.trained, "roundoff": self.roundoff, "eager": self.eager, "races": json.dumps(self.races)}
        np.savez(self.path, **about, **self.arrays, **last)

    def note_precision(self, graph, config=None):
        """Of a graph that was run."""
        self.roundoff = max(self.roundoff, roundoff_of(config))
        size = len(graph.get_operations())
        if self._sizes.get(graph) != size:
            self._sizes[graph] = size
            # TensorFlow itself sums 16-bit numbers in 16 bits, which the engine does not.
            self.roundoff = max(self.roundoff, 4 * roundoff_of_graph(graph))


def turns_in_order():
    """Loops take one turn after the other, as the engine does. TensorFlow's `parallel_iterations` lets turns overlap, and then random
    operators in a loop (dropout in dynamic_rnn) draw in an order that differs between engines and between runs."""
    from tensorflow.python.ops import control_flow_ops, while_v2

    plain_context, plain_loop = control_flow_ops.WhileContext.__init__, while_v2.while_loop

    def context(self, maximum_iterations=None, parallel_iterations=10, *arguments, **options):
        plain_context(self, maximum_iterations, 1, *arguments, **options)

    def loop(cond, body, loop_vars, shape_invariants=None, parallel_iterations=10, *arguments, **options):
        return plain_loop(cond, body, loop_vars, shape_invariants, 1, *arguments, **options)

    control_flow_ops.WhileContext.__init__, while_v2.while_loop = context, loop


class Sessions:
    """Runs of sessions: by `run`, and by the callables that Keras of TensorFlow 1 makes of them."""

    def __init__(self, recorder):
        self._recorder = recorder
        self._trains = {}  # op -> whether it updates variables
        self._looked_at = set()  # sets of fetched ops that were searched for races

    def install(self):
        from tensorflow.python.client import session

        self._plain_run, plain_callable = session.BaseSession.run, session.BaseSession._make_callable_from_options

        def run(sess, fetches, *arguments, **options):
            results = self._plain_run(sess, fetches, *arguments, **options)
            self._after_run(sess, *self._flat(sess, fetches, results))
            return results

        def make_callable(sess, options):
            plain = plain_callable(sess, options)
            elements = [sess.graph.as_graph_element(name) for name in [*options.fetch, *options.target]]

            def call(*arguments, **more):
                results = plain(*arguments, **more)
                self._after_run(sess, elements, results)
                return results

            return call

        session.BaseSession.run, session.BaseSession._make_callable_from_options = run, make_callable

    def _flat(self, sess, fetches, results):
        elements, values = [], []
        for fetch, value in _pairs(fetches, results):
            try:
                elements.append(sess.graph.as_graph_element(fetch, allow_operation=True))
            except (TypeError, ValueError, KeyError):  # a fetch of a kind of its own, as SparseTensor has
                continue
            values.append(value)
        return elements, values

    def _after_run(self, sess, elements, values):
        ops = frozenset(getattr(element, "op", element) for element in elements)
        trained = any([self._updates(op) for op in ops])
        if trained and ops not in self._looked_at:
            self._looked_at.add(ops)
            self._recorder.races |= races.races(ops)
        self._recorder.note_precision(sess.graph, sess._config)
        found = {element.name: value for element, value in zip(elements, values)}
        self._recorder.end_run(found, self._read_variables(sess) if trained else None)

    def _updates(self, op):
        if op not in self._trains:
            ops = races.closure([op])
            applies = any(each.type.startswith(UPDATES) for each in ops)
            by_hand = not applies and any(each.type.startswith(ASSIGNMENTS) for each in ops) and _trains_by_hand(op.graph, ops)
            self._trains[op] = applies or by_hand
        return self._trains[op]

    def _read_variables(self, sess):
        """Those without a value are left out."""
        from tensorflow.python.framework import errors

        found = {}
        variables = sess.graph.get_collection("variables")
        try:
            found = dict(zip(variables, self._plain_run(sess, variables)))
        except (errors.FailedPreconditionError, errors.NotFoundError):
            for variable in variables:
                try:
                    found[variable] = self._plain_run(sess, variable)
                except (errors.FailedPreconditionError, errors.NotFoundError):
                    continue
        return {variable.op.name: value for variable, value in found.items()}


def _trains_by_hand(graph, ops):
    """Whether these operations assign to a trainable variable, in a graph that has no other way to train. Initializers and
    what restores a checkpoint do not count."""
    if any(op.type.startswith(UPDATES) for op in graph.get_operations()):
        return False
    variables = graph.get_collection("variables")
    first = {variable.initializer for variable in variables}
    trainable = {getattr(variable, "handle", variable).op for variable in graph.get_collection("trainable_variables")}
    return any(
        op.type.startswith(ASSIGNMENTS) and op not in first and op.inputs[0].op in trainable and not _restored(op.inputs[-1])
        for op in ops
    )


def _restored(tensor):
    while tensor.op.type in ("Identity", "Reshape", "Cast"):
        tensor = tensor.op.inputs[0]
    return tensor.op.type.startswith("Restore")


def _trains_without_tape(function, concrete):
    """Whether one of its graphs updates a trainable variable; looked up once for each."""
    known = function.__dict__.setdefault("_cairn_without_tape", {})
    for each in concrete:
        if id(each) not in known:
            known[id(each)] = _updates_trainable(each.graph)
    return any(known.values())


def _updates_trainable(graph):
    trainable = {id(variable.handle) for variable in graph.trainable_variables}
    held = {id(inner) for outer, inner in graph.captures if id(outer) in trainable}
    updates = (*UPDATES, "AssignVariable", "AssignAdd", "AssignSub", "ResourceScatter")
    return any(op.type.startswith(updates) and any(id(tensor) in held for tensor in op.inputs) for op in graph.get_operations())


ROUNDOFF = {"float16": 2.0**-11, "bfloat16": 2.0**-8}


def roundoff_of(config):
    """Of the lower precision that a session's configuration, an opened device or Keras' policy asks for; 0: none does."""
    from npu_bridge import engine

    entry = engine.entry_of(config) if config else None
    asked = [{key: field.s.decode() for key, field in entry.parameter_map.items()}] if entry else []
    device, policy = sys.modules.get("npu_device.device"), sys.modules.get("keras.src.mixed_precision.policy")
    asked += [handle.values for handle in device.opened()] if device else []
    modes = [values[key] for values in asked for key in ("precision_mode", "precision_mode_v2") if key in values]
    # allow_fp32_to_bf16 has no effect: every operator takes f32, which comes first.
    low = [mode for mode in modes if mode == "allow_mix_precision" or ("16" in mode and mode != "allow_fp32_to_bf16")]
    computed = policy.global_policy().compute_dtype if policy else None  # None: each layer as its input
    low += [computed] if computed in ROUNDOFF else []
    return max((ROUNDOFF["bfloat16" if "b" in mode.split("_")[-1] else "float16"] for mode in low), default=0.0)


def roundoff_of_graph(graph):
    """Of the lowest precision of its tensors."""
    return max((ROUNDOFF.get(tensor.dtype.base_dtype.name, 0.0) for op in graph.get_operations() for tensor in op.outputs), default=0.0)


class Eager:
    """Runs of eager code. A function trains when a gradient is taken while it is traced."""

    def __init__(self, recorder):
        self._recorder = recorder
        self._calls = []  # functions being called, outermost first
        self._variables = []  # weak references, in the order of making

    def install(self):
        from tensorflow.python.eager import backprop, context
        from tensorflow.python.eager.polymorphic_function import polymorphic_function
        from tensorflow.python.ops import resource_variable_ops

        context.set_global_seed(SEED)
        plain_call, plain_gradient = polymorphic_function.Function.__call__, backprop.GradientTape.gradient
        plain_make = resource_variable_ops.BaseResourceVariable.__init__

        def call(function, *arguments, **options):
            outermost = not self._calls and context.executing_eagerly()
            self._calls.append(function)
            try:
                results = plain_call(function, *arguments, **options)
            finally:
                self._calls.pop()
            if outermost:
                concrete = function._list_all_concrete_functions()
                for each in concrete:
                    self._recorder.note_precision(each.graph)
                trains = getattr(function, "_cairn_trains", False) or _trains_without_tape(function, concrete)
                self._recorder.end_run(_arrays(function.__name__, results), self._read_variables() if trains else None)
            return results

        def gradient(tape, target, sources, *arguments, **options):
            results = plain_gradient(tape, target, sources, *arguments, **options)
            if self._calls:
                self._calls[0]._cairn_trains = True
            elif context.executing_eagerly():  # the update follows: the variables are those of the step before
                found = {**_arrays("target", target), **_arrays("gradient", results)}
                self._recorder.eager += 1
                self._recorder.end_run(found, self._read_variables())
            return results

        def make(variable, *arguments, **options):
            plain_make(variable, *arguments, **options)
            self._variables.append(weakref.ref(variable))

        polymorphic_function.Function.__call__ = call
        backprop.GradientTape.gradient = gradient
        resource_variable_ops.BaseResourceVariable.__init__ = make

    def _read_variables(self):
        from tensorflow.python.framework import errors

        found = {}
        for index, reference in enumerate(self._variables):
            variable = reference()
            try:
                if variable is not None and not variable._in_graph_mode:
                    found[f"{index}:{variable.name}"] = variable.read_value().numpy()
            except (errors.FailedPreconditionError, errors.NotFoundError):  # has no value yet, or none any more
                continue
        return found


def _numbers(values):
    """(name, array) of those that are numbers; bfloat16, which NumPy's files do not know, as float32."""
    for name, value in values.items():
        if isinstance(value, (np.ndarray, np.generic)):
            array = np.array(value, np.float32 if value.dtype.name == "bfloat16" else None)
            if array.dtype.kind in "biufc":
                yield name, array


def _pairs(fetches, results):
    """Fetches and results one by one; keys of dicts may be of any kind."""
    if isinstance(fetches, dict):
        fetches, results = list(fetches.values()), [results[key] for key in fetches]
    if isinstance(fetches, (list, tuple)):
        for fetch, result in zip(fetches, results):
            yield from _pairs(fetch, result)
    else:
        yield fetches, results


def _arrays(name, structure):
    """{name:0: array, ...} of the tensors in any structure of results."""
    from tensorflow.python.framework import ops
    from tensorflow.python.util import nest

    flat = nest.flatten(structure, expand_composites=True)
    return {f"{name}:{index}": value.numpy() for index, value in enumerate(flat) if isinstance(value, ops.EagerTensor)}


def install():
    """Starts recording when the environment asks for it."""
    path = os.environ.get("CAIRN_RECORD")
    if path:
        from cairn_tf1 import inside

        recorder = Recorder(path, int(os.environ.get("CAIRN_RECORD_STEPS") or 0))
        inside.install(recorder)
        recorder.install()
