"""Looks into one training run of a session, CAIRN_RECORD_INSIDE (from 0): on stock TensorFlow every tensor of the step is fetched
beside what the script fetches; on the engine the step is dumped, so that what is fused stays fused. Both go to the folder
CAIRN_RECORD_FOLDER: `values.npz` and `values.json` (node, index, operator, inputs and script line of each), or the engine's dump.

CAIRN_RECORD_NUDGE moves every variable by its last bit before the first training run: what that does to later ones is what
rounding may do."""

import json
import os

import numpy as np

FRAMES = ("Enter", "RefEnter", "Switch", "RefSwitch", "NextIteration", "RefNextIteration")
UPDATES = ("Apply", "ResourceApply", "Assign", "ResourceScatter", "Scatter")


def install():
    """Before the runs are recorded: what is fetched beside is not the script's."""
    step, nudge = os.environ.get("CAIRN_RECORD_INSIDE"), bool(os.environ.get("CAIRN_RECORD_NUDGE"))
    if step or nudge:
        Inside(int(step) if step else None, os.environ.get("CAIRN_RECORD_FOLDER"), nudge).install()


class Inside:
    def __init__(self, step, folder, nudge):
        from cairn_tf1 import record

        self.step, self.folder, self.nudge, self.trained = step, folder, nudge, 0
        self._updates = record.Sessions(None)._updates

    def install(self):
        from tensorflow.python.client import session

        plain = session.BaseSession.run

        def run(sess, fetches, feed_dict=None, options=None, run_metadata=None):
            if not any(self._updates(op) for op in fetched(sess.graph, fetches)):
                return plain(sess, fetches, feed_dict, options, run_metadata)
            if self.nudge and self.trained == 0:
                nudge(sess, plain)
            self.trained += 1
            if self.trained - 1 == self.step:
                return self._look(plain, sess, fetches, feed_dict, options, run_metadata)
            return plain(sess, fetches, feed_dict, options, run_metadata)

        session.BaseSession.run = run

    def _look(self, plain, sess, fetches, feed_dict, options, run_metadata):
        os.makedirs(self.folder, exist_ok=True)
        if os.environ.get("CAIRN_ENGINE") == "tensorflow":
            return self._fetch_all(plain, sess, fetches, feed_dict)
        from npu_bridge import observe

        observe.start_dump({"dump_path": self.folder, "dump_format": "npy"})
        observe.tell_lines(sess.graph)
        try:
            return plain(sess, fetches, feed_dict, options, run_metadata)
        finally:
            observe.stop_dump()

    def _fetch_all(self, plain, sess, fetches, feed_dict):
        from npu_bridge import observe

        needed = ancestors(sess.graph, fetches)
        order = [op for op in sess.graph.get_operations() if op in needed]
        inner = in_frames(order)
        tensors = [(op, index, tensor) for op in order if op not in inner and op.type not in ("Const", "Placeholder")
                   for index, tensor in enumerate(op.outputs)
                   if not tensor.dtype._is_ref_dtype and (tensor.dtype.is_floating or tensor.dtype.is_integer or tensor.dtype.is_bool)]  # fmt: skip
        results, values = plain(sess, [fetches, [tensor for _, _, tensor in tensors]], feed_dict)
        np.savez(os.path.join(self.folder, "values.npz"), **{f"v{i}": np.asarray(value) for i, value in enumerate(values)})
        nodes = {op.name: {"op": op.type, "inputs": [tensor.op.name for tensor in op.inputs],
                           "waits": [other.name for other in op.control_inputs], "line": observe.line_of(op),
                           "updates": op.type.startswith(UPDATES)} for op in order}  # fmt: skip
        with open(os.path.join(self.folder, "values.json"), "w") as file:
            json.dump({"values": [[op.name, index] for op, index, _ in tensors], "nodes": nodes}, file)
        return results


def nudge(sess, plain):
    """Moves what is trained by its last bit, up or down."""
    random = np.random.default_rng(12)
    for variable in sess.graph.get_collection("trainable_variables"):
        value = np.asarray(plain(sess, variable))
        if value.dtype.kind == "f":
            towards = value + random.choice([-1.0, 1.0], value.shape).astype(value.dtype)
            # As variable.load does, but by no run that is recorded.
            plain(sess, variable.initializer, {variable.initializer.inputs[1]: np.nextafter(value, towards)})


def fetched(graph, fetches):
    """The operations among fetches of any structure."""
    from tensorflow.python.framework import ops
    from tensorflow.python.util import nest

    found = []
    for fetch in nest.flatten(fetches, expand_composites=True):
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
