"""Looks into one run of a script, CAIRN_RECORD_INSIDE (counted as `record` does): on stock TensorFlow every tensor of the run is
fetched beside what the script fetches; on the engine the run is dumped, so that what is fused stays fused. Both go to the folder
CAIRN_RECORD_FOLDER: `values.npz` and `values.json` (node, index, operator, inputs and script line of each), or the engine's dump.
A run is a session's, also an Estimator's or Keras', or a call of a tf.function from eager code; operators that eager code calls
one by one are not looked at.

CAIRN_RECORD_NUDGE, a seed, moves every variable by its last bit before the first training run: what that does to later ones is
what rounding may do."""

import contextlib
import json
import os

import numpy as np

FRAMES = ("Enter", "RefEnter", "Switch", "RefSwitch", "NextIteration", "RefNextIteration")
UPDATES = ("Apply", "ResourceApply", "Assign", "ResourceScatter", "Scatter")


def install(recorder):
    """Before the runs are recorded: what is fetched beside is not the script's."""
    run, nudge = os.environ.get("CAIRN_RECORD_INSIDE"), bool(os.environ.get("CAIRN_RECORD_NUDGE"))
    if run or nudge:
        inside = Inside(recorder, int(run) if run else None, os.environ.get("CAIRN_RECORD_FOLDER"), nudge)
        inside.install_in_sessions()
        inside.install_in_functions()


class Inside:
    def __init__(self, recorder, run, folder, nudge):
        from cairn_tf1 import record

        self.recorder, self.run, self.folder, self.nudge = recorder, run, folder, nudge
        self.stock = os.environ.get("CAIRN_ENGINE") == "tensorflow"
        self._updates = record.Sessions(None)._updates

    def install_in_sessions(self):
        from tensorflow.python.client import session

        plain, plain_callable = session.BaseSession.run, session.BaseSession._make_callable_from_options

        def before_run(sess, operations):
            if self.nudge and any(self._updates(op) for op in operations):
                self.nudge = False
                nudge(sess, plain)
            wanted = self.recorder.run == self.run
            if wanted:
                self.run = None  # the variables are read by a run of the same number
            return wanted

        def run(sess, fetches, feed_dict=None, options=None, run_metadata=None):
            if not before_run(sess, fetched(sess.graph, fetches)):
                return plain(sess, fetches, feed_dict, options, run_metadata)
            if self.stock:
                return self._fetch_all(plain, sess, fetches, feed_dict)
            with self._dumped(sess.graph):
                return plain(sess, fetches, feed_dict, options, run_metadata)

        def make_callable(sess, options):
            call = plain_callable(sess, options)
            if options.tensor_connection:  # such a run cannot be made otherwise
                return call
            names = [*options.fetch, *options.target]

            def looked_at(*values, **more):
                if not before_run(sess, fetched(sess.graph, names)):
                    return call(*values, **more)
                if not self.stock:
                    with self._dumped(sess.graph):
                        return call(*values, **more)
                fetches = [*options.fetch, *(sess.graph.as_graph_element(name, allow_operation=True) for name in options.target)]
                return self._fetch_all(plain, sess, fetches, dict(zip(options.feed, values)))[: len(options.fetch)]

            return looked_at

        session.BaseSession.run, session.BaseSession._make_callable_from_options = run, make_callable

    def install_in_functions(self):
        from tensorflow.python.eager import context
        from tensorflow.python.eager.polymorphic_function import atomic_function, polymorphic_function
        from tensorflow.python.ops import resource_variable_ops

        from cairn_tf1 import record

        plain_flat, plain_call = atomic_function.AtomicFunction.call_flat, context.Context.call_function
        plain_make = resource_variable_ops.ResourceVariable.__init__
        plain_make_inside = polymorphic_function.UnliftedInitializerVariable.__init__
        graphs = []  # of the functions being called

        def call_flat(function, *arguments):
            if self.recorder.run != self.run or not context.executing_eagerly():
                return plain_flat(function, *arguments)
            graphs.append(function.graph)
            try:
                with contextlib.nullcontext() if self.stock else self._dumped(function.graph):
                    return plain_flat(function, *arguments)
            finally:
                graphs.pop()

        def call_function(self_context, name, inputs, count):
            if not graphs or not self.stock:
                return plain_call(self_context, name, inputs, count)
            order = graphs[-1].get_operations()
            definition, tensors = with_all_results(self_context.get_function_def(name), order)
            self_context.add_function_def(definition)
            results = plain_call(self_context, definition.signature.name.encode(), inputs, count + len(tensors))
            self._keep(order, tensors, [value.numpy() for value in results[count:]])
            return results[:count]

        def make(variable, *arguments, **options):
            plain_make(variable, *arguments, **options)
            if self.nudge and context.executing_eagerly() and variable.trainable and variable.dtype.is_floating:
                variable.assign(nudged(variable.numpy(), record.roundoff_of(None)), read_value=False)  # else another variable

        def make_inside(variable, initial_value=None, trainable=None, *arguments, **options):
            """A variable that a function makes: its first value is part of the function's graph."""
            restored = hasattr(initial_value, "checkpoint_position")
            if self.nudge and trainable is not False and callable(initial_value) and not restored:
                plain_value, initial_value = initial_value, lambda: nudged_tensor(plain_value(), record.roundoff_of(None))
            plain_make_inside(variable, initial_value, trainable, *arguments, **options)

        atomic_function.AtomicFunction.call_flat, context.Context.call_function = call_flat, call_function
        resource_variable_ops.ResourceVariable.__init__ = make
        polymorphic_function.UnliftedInitializerVariable.__init__ = make_inside

    @contextlib.contextmanager
    def _dumped(self, graph):
        from npu_bridge import observe

        os.makedirs(self.folder, exist_ok=True)
        observe.start_dump({"dump_path": self.folder, "dump_format": "npy"})
        observe.tell_lines(graph)
        try:
            yield
        finally:
            observe.stop_dump()

    def _fetch_all(self, plain, sess, fetches, feed_dict):
        needed = ancestors(sess.graph, fetches)
        order = [op for op in sess.graph.get_operations() if op in needed]
        tensors = numbers(order)
        results, values = plain(sess, [fetches, tensors], feed_dict)
        self._keep(order, tensors, values)
        return results

    def _keep(self, order, tensors, values):
        """A run may call several functions; what they made is put together."""
        from npu_bridge import observe

        from cairn_tf1 import recorded

        path, meta = os.path.join(self.folder, "values"), {"values": [], "nodes": {}}
        arrays = {}
        if os.path.exists(f"{path}.npz"):
            with open(f"{path}.json") as file, np.load(f"{path}.npz") as kept:
                meta, arrays = json.load(file), dict(kept)
        os.makedirs(self.folder, exist_ok=True)
        for tensor, value in zip(tensors, values):
            arrays[f"v{len(meta['values'])}"] = recorded.widened(np.asarray(value))
            meta["values"].append([tensor.op.name, tensor.value_index])
        meta["nodes"] |= {op.name: {"op": op.type, "inputs": [tensor.op.name for tensor in op.inputs],
                                    "waits": [other.name for other in op.control_inputs], "line": observe.line_of(op),
                                    "updates": op.type.startswith(UPDATES)} for op in order}  # fmt: skip
        np.savez(f"{path}.npz", **arrays)
        with open(f"{path}.json", "w") as file:
            json.dump(meta, file)


def nudge(sess, plain):
    """Moves what is trained in a session, in a lower precision by its roundoff."""
    from cairn_tf1 import record

    roundoff = max(record.roundoff_of(sess._config), record.roundoff_of_graph(sess.graph))
    for variable in sess.graph.get_collection("trainable_variables"):
        value = np.asarray(plain(sess, variable))
        if value.dtype.kind == "f":
            # As variable.load does, but by no run that is recorded.
            plain(sess, variable.initializer, {variable.initializer.inputs[1]: nudged(value, roundoff)})


_random = np.random.default_rng(11 + int(os.environ.get("CAIRN_RECORD_NUDGE") or 1))


def nudged(value, roundoff=0.0):
    """Moved up or down: by the last bit, or by that share of each element."""
    if value.dtype.kind != "f":  # bfloat16
        return value
    signs = _random.choice([-1.0, 1.0], value.shape).astype(value.dtype)
    return value * (1 + signs * value.dtype.type(roundoff)) if roundoff else np.nextafter(value, value + signs)


def nudged_tensor(value, roundoff):
    """The same of a tensor in a graph."""
    import tensorflow as tf

    if not value.dtype.is_floating or not value.shape.is_fully_defined():
        return value
    signs = tf.constant(_random.choice([-1.0, 1.0], value.shape), value.dtype)
    return value * (1 + signs * roundoff) if roundoff or value.dtype.size < 4 else tf.math.nextafter(value, value + signs)


def numbers(order):
    """What the operators of a graph make that can be fetched and is numbers."""
    inner = in_frames(order)
    return [tensor for op in order if op not in inner and op.type not in ("Const", "Placeholder") and op.graph.is_fetchable(op)
            for tensor in op.outputs if not tensor.dtype._is_ref_dtype and (tensor.dtype.is_floating or tensor.dtype.is_integer or tensor.dtype.is_bool)]  # fmt: skip


def with_all_results(definition, order):
    """A copy of a FunctionDef that also gives what its operators make, and these tensors in order."""
    from tensorflow.core.framework import function_pb2

    copy = function_pb2.FunctionDef()
    copy.CopyFrom(definition)
    copy.signature.name += "_and_all_within"
    nodes, tensors = {node.name for node in definition.node_def}, []
    for tensor in numbers([op for op in order if op.name in nodes]):
        argument = copy.signature.output_arg.add(name=f"within_{len(tensors)}", type=tensor.dtype.as_datatype_enum)
        copy.ret[argument.name] = place_of(tensor)
        tensors.append(tensor)
    return copy, tensors


def place_of(tensor):
    """"node:output:index", as a FunctionDef calls a result."""
    at = tensor.value_index
    for argument in tensor.op.op_def.output_arg:
        count = 1
        if argument.number_attr:
            count = tensor.op.get_attr(argument.number_attr)
        elif argument.type_list_attr:
            count = len(tensor.op.get_attr(argument.type_list_attr))
        if at < count:
            return f"{tensor.op.name}:{argument.name}:{at}"
        at -= count
    raise AssertionError(f"{tensor.name} is no result of its operator")


def flat(fetches):
    """One by one; keys of dicts may be of any kind."""
    if isinstance(fetches, dict):
        fetches = list(fetches.values())
    if not isinstance(fetches, (list, tuple)):
        return [fetches]
    return [fetch for each in fetches for fetch in flat(each)]


def fetched(graph, fetches):
    """The operations among fetches of any structure."""
    from tensorflow.python.framework import ops
    from tensorflow.python.util import nest

    found = []
    for fetch in (part for each in flat(fetches) for part in nest.flatten(each, expand_composites=True)):
        try:
            element = graph.as_graph_element(fetch, allow_operation=True)
        except (TypeError, ValueError, KeyError):
            continue
        found.append(element if isinstance(element, ops.Operation) else element.op)
    return found


def ancestors(graph, fetches):
    pending = fetched(graph, fetches)
    seen = set(pending)
    while pending:
        op = pending.pop()
        before = {tensor.op for tensor in op.inputs} | set(op.control_inputs)
        pending += before - seen
        seen |= before
    return seen


def in_frames(order):
    """Operators of TensorFlow 1 loops and branches: their tensors may have no value of their own."""
    inner = set()
    for _ in range(2):
        for op in order:
            if op.type in FRAMES or (op.type not in ("Exit", "RefExit", "Merge", "RefMerge") and any(t.op in inner for t in op.inputs)):
                inner.add(op)
    return inner
