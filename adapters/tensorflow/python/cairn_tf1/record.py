"""Records what the sessions of a script compute, so that two engines can be compared: every small number fetched, run by run, and
the variables at the end. CAIRN_RECORD names the file (.npz); CAIRN_RECORD_STEPS ends the script after so many training runs.

Keys are `fetch:RUN:NAME` and `variable:NAME`. While recording, graphs, NumPy and `random` start from one seed, unless the
script sets its own."""

import atexit
import os
import random
import sys

import numpy as np

SEED = 1
MOST_ELEMENTS = 4096  # of a fetched value; more is data, not a result to compare
UPDATES = ("Apply", "ResourceApply", "SparseApply", "ResourceSparseApply")  # ops that make a run a training run


class Recorder:
    def __init__(self, path, steps):
        self.path, self.steps = path, steps
        self.arrays, self.run, self.trained = {}, 0, 0
        self._trains = {}  # op -> whether it updates variables
        self._busy = False

    def install(self):
        from tensorflow.python.client import session
        from tensorflow.python.framework import ops

        random.seed(SEED)
        np.random.seed(SEED)
        make = ops.Graph.__init__

        def seeded(graph, *arguments, **options):
            make(graph, *arguments, **options)
            graph._seed = SEED

        ops.Graph.__init__ = seeded
        ops.get_default_graph()._seed = SEED
        plain_run, plain_close = session.BaseSession.run, session.BaseSession.close

        def run(sess, fetches, *arguments, **options):
            results = plain_run(sess, fetches, *arguments, **options)
            if not self._busy:
                self._after_run(sess, fetches, results)
            return results

        def close(sess):
            self._read_variables(sess)
            plain_close(sess)

        session.BaseSession.run, session.BaseSession.close = run, close
        atexit.register(self._save)

    def _after_run(self, sess, fetches, results):
        from tensorflow.python.framework import ops
        from tensorflow.python.util import nest

        trained = False
        for fetch, value in zip(nest.flatten(fetches), nest.flatten(results)):
            try:
                element = sess.graph.as_graph_element(fetch, allow_operation=True)
            except (TypeError, ValueError, KeyError):  # a fetch of a kind of its own, as SparseTensor has
                continue
            op = element if isinstance(element, ops.Operation) else element.op
            trained = trained or self._updates(op)
            if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biufc" and value.size <= MOST_ELEMENTS:
                self.arrays[f"fetch:{self.run}:{element.name}"] = np.array(value)
        self.run += 1
        self.trained += trained
        if self.steps and self.trained >= self.steps:
            self._read_variables(sess)
            print(f"recorded {self.trained} training runs", flush=True)
            sys.exit(0)

    def _updates(self, op):
        if op not in self._trains:
            seen, pending = {op}, [op]
            while pending:
                current = pending.pop()
                if current.type.startswith(UPDATES):
                    break
                before = {tensor.op for tensor in current.inputs} | set(current.control_inputs)
                pending += before - seen
                seen |= before
            self._trains[op] = current.type.startswith(UPDATES)
        return self._trains[op]

    def _read_variables(self, sess):
        """Of the last session that trained; those without a value are left out."""
        from tensorflow.python.framework import errors

        if self._busy or not self.trained or sess._closed:
            return
        self._busy = True
        try:
            for variable in sess.graph.get_collection("variables"):
                try:
                    self.arrays[f"variable:{variable.op.name}"] = np.asarray(sess.run(variable))
                except (errors.FailedPreconditionError, errors.NotFoundError):
                    continue
        finally:
            self._busy = False

    def _save(self):
        np.savez(self.path, trained=self.trained, **self.arrays)


def install():
    """Starts recording when the environment asks for it."""
    path = os.environ.get("CAIRN_RECORD")
    if path:
        Recorder(path, int(os.environ.get("CAIRN_RECORD_STEPS") or 0)).install()
