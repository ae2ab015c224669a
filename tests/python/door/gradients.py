"""Runs a training example as it is, and keeps the gradients of its first step: `gradients.py FILE SCRIPT [ARGUMENTS]` writes them
to FILE as .npz, in the order in which the script asks TensorFlow for them. Scripts that import `tensorflow` as TensorFlow 1 run
through the TensorFlow 1 layer. CAIRN_RECORD_NUDGE moves each weight by its last bit before the first step, and takes in 64 bits what
TensorFlow rounds most in 32: the sums of logarithms of CTC losses, and those of equal pixels in the statistics of batches."""

import os
import runpy
import sys
import threading
import types

import numpy as np
from cairn_tf1 import inside

KEPT = {}
KEEPING = threading.Lock()  # TensorFlow runs the calls of one step on several threads


def keep_gradients(file, values):
    """Called in the run, with all gradients of one call; the first call of each stays."""
    call = values[0].item()
    with KEEPING:
        if f"{call}/0" not in KEPT:
            KEPT.update({f"{call}/{number}": value.copy() for number, value in enumerate(values[1:])})
            np.savez(file, **KEPT)


def handed_on(file, call, gradients):
    """The same gradients, handed on only when they are kept."""
    import tensorflow.compat.v1 as tf

    flat = tf.nest.flatten(gradients, expand_composites=True)
    flat = [each for each in flat if each is not None]
    keeps = tf.numpy_function(lambda *values: keep_gradients(file, values), [tf.constant(call), *flat], [])
    with tf.control_dependencies([keeps]):
        return [each if each is None else tf.nest.map_structure(tf.identity, each, expand_composites=True) for each in gradients]


def watch(file):
    """Every way to ask for gradients goes through one of two functions."""
    from tensorflow.python.eager import backprop
    from tensorflow.python.framework import ops
    from tensorflow.python.ops import gradients_util

    calls = iter(range(1000))
    in_graph, of_tape = gradients_util._GradientsHelper, backprop.GradientTape.gradient

    def helper(*arguments, **more):
        found = in_graph(*arguments, **more)
        inner = isinstance(ops.get_default_graph(), ops.Graph) and ops.get_default_graph().building_function
        return found if inner else handed_on(file, next(calls), found)

    def gradient(*arguments, **more):
        return handed_on(file, next(calls), of_tape(*arguments, **more))

    gradients_util._GradientsHelper = helper
    backprop.GradientTape.gradient = gradient


def take_sums_in_64_bits():
    import tensorflow.compat.v1 as tf
    from tensorflow.python.ops import gen_ctc_ops, gen_nn_ops

    stock_ctc, stock_norm = gen_ctc_ops.ctc_loss, gen_nn_ops.fused_batch_norm_v3

    def ctc_loss(inputs, *arguments, **more):
        return [tf.cast(each, inputs.dtype) for each in stock_ctc(tf.cast(inputs, tf.float64), *arguments, **more)]

    def batch_norm(x, *arguments, **more):
        found = stock_norm(x, *arguments, **more)
        if not more["is_training"]:
            return found
        mean, variance = tf.nn.moments(tf.cast(x, tf.float64), [0, 1, 2] if more["data_format"] == "NHWC" else [0, 2, 3])
        count = tf.cast(tf.size(x) / tf.size(mean), tf.float64)
        variance *= count / (count - 1)
        return found._replace(batch_mean=tf.cast(mean, tf.float32), batch_variance=tf.cast(variance, tf.float32))

    gen_ctc_ops.ctc_loss, gen_nn_ops.fused_batch_norm_v3 = ctc_loss, batch_norm


def main():
    file, script = sys.argv[1:3]
    sys.argv = sys.argv[2:]
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    with open(script, encoding="utf-8") as text:
        if "npu_device" not in text.read():
            from cairn_tf1 import alias

            alias.install()
    if os.environ.get("CAIRN_RECORD_NUDGE"):
        inside.install(types.SimpleNamespace(run=0))  # no run is looked into
        take_sums_in_64_bits()
    watch(file)
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
