"""One side of a training case, under TensorFlow 1's names (`python -m cairn_tf1`) for the cases of tf1_*.py, else TensorFlow 2's.
CAIRN_ENGINE says which engine computes. `case FILE.NAME` builds one, `steps N` makes steps, `peak` tells memory."""

import importlib
import os
import time

import numpy as np
import side
import tensorflow as tf

THREADS = int(os.environ["BREADTH_THREADS"])
TF1 = os.environ["BREADTH_TF"] == "1"
if TF1:
    import npu_bridge.npu_init  # noqa: F401
else:
    import npu_device

    tf.config.threading.set_intra_op_parallelism_threads(THREADS)
    tf.config.threading.set_inter_op_parallelism_threads(THREADS)
    npu_device.open().as_default()

current = {}


def graph_case(make):
    """The step of a TensorFlow 1 case: a function of the step's number that gives the loss."""
    if "session" in current:
        current.pop("session").close()
    tf.reset_default_graph()
    tf.set_random_seed(7)
    np.random.seed(1)
    loss, train, feeds = make()
    config = tf.ConfigProto(intra_op_parallelism_threads=THREADS, inter_op_parallelism_threads=THREADS)
    session = current["session"] = tf.Session(config=config)
    session.run([tf.global_variables_initializer(), tf.local_variables_initializer(), tf.tables_initializer()])
    return lambda i: session.run([loss, train], feeds[i % len(feeds)])[0]


def eager_case(make):
    tf.keras.backend.clear_session()
    tf.keras.mixed_precision.set_global_policy("float32")
    tf.keras.utils.set_random_seed(7)
    return make()


def case(name):
    file, function = name.split(".")
    make = getattr(importlib.import_module("cases." + file), function)
    current.update(step=(graph_case if TF1 else eager_case)(make), count=0)
    return {}


def steps(count):
    losses, times, spent = [], [], time.process_time()
    for _ in range(int(count)):
        start = time.perf_counter()
        loss = current["step"](current["count"])
        losses.append(float(np.mean(loss)))
        times.append(time.perf_counter() - start)
        current["count"] += 1
    return {"losses": losses, "times": times, "cpu": (time.process_time() - spent) / len(times)}


side.serve({"case": case, "steps": steps, "peak": lambda: {"peak": side.peak()}})
