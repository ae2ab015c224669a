"""A sum behind a convolution in a mixed precision mode, as scripts have it that were told to take ReduceSumD out of 16 bits:
`mixed_sum.py FOLDER` prints {mode: the sums}."""

import json
import sys
from pathlib import Path

import cases
import numpy as np
import tensorflow.compat.v1 as tf

LISTS = {"listed": {"black-list": {"to-add": ["ReduceSumD"]}}, "narrow": {"white-list": {"to-add": ["ReduceSumD"]}}}


def config(mode, folder):
    made = cases.entry(True)
    keys = made.graph_options.rewrite_options.custom_optimizers[0].parameter_map
    if mode != "plain":
        keys["precision_mode"].s = tf.compat.as_bytes("allow_mix_precision")
    if mode in LISTS:
        file = Path(folder) / f"{mode}.json"
        file.write_text(json.dumps(LISTS[mode]))
        keys["modify_mixlist"].s = tf.compat.as_bytes(str(file))
    return made


def main(folder):
    tf.disable_v2_behavior()
    cases.load()
    x = tf.placeholder(tf.float32, [1, 256, 256, 3])
    kernel = tf.constant(np.eye(3, dtype=np.float32)[None, None])
    total = tf.reduce_sum(tf.nn.conv2d(x, kernel, 1, "SAME"), [0, 1, 2], name="total")
    feed = {x: np.random.RandomState(0).rand(1, 256, 256, 3)}
    modes = ("plain", "mixed", *LISTS)
    sessions = {mode: tf.Session(config=config(mode, folder)) for mode in modes}
    print(json.dumps({mode: sessions[mode].run(total, feed).tolist() for mode in modes}))


if __name__ == "__main__":
    main(sys.argv[1])
