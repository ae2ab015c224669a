"""What a session.run costs when there is next to nothing to compute: python bench/door_fixed_cost.py [--runs N] [--json FILE]
[--library FILE], in .venv. Steps of one small matrix product and one update on stock TensorFlow and through the door, in turn
and in one process; the least and the median of all runs count, in microseconds. The goal is 50 above stock."""

import argparse
import importlib.util
import json
import statistics
import time
from pathlib import Path

import numpy as np
import tensorflow.compat.v1 as tf

GOAL = 50.0
BLOCK = 50  # runs of one side in a row


def session(engine):
    config = tf.ConfigProto(intra_op_parallelism_threads=2, inter_op_parallelism_threads=2)
    if engine:
        entry = config.graph_options.rewrite_options.custom_optimizers.add()
        entry.name = "NpuOptimizer"
        entry.parameter_map["use_off_line"].b = True
    return tf.Session(config=config)


def step(size, resource):
    """One product, one update of a variable."""
    tf.reset_default_graph()
    tf.get_variable_scope().set_use_resource(resource)
    x = tf.placeholder(tf.float32, [size, size])
    w = tf.get_variable("w", [size, size], initializer=tf.zeros_initializer())
    return x, tf.assign_sub(w, 0.01 * tf.matmul(x, w + 1.0)).op


def measure(size, resource, runs):
    """Microseconds of every run, stock and engine."""
    x, train = step(size, resource)
    sessions = [session(False), session(True)]
    value = np.ones((size, size), np.float32)
    calls = []
    for each in sessions:
        each.run(tf.global_variables_initializer())
        calls.append(each.make_callable(train, [x]))
    times = ([], [])
    for block in range(-4, max(1, runs // BLOCK)):
        for side, call in enumerate(calls):
            for _ in range(BLOCK):
                started = time.perf_counter_ns()
                call(value)
                if block >= 0:
                    times[side].append((time.perf_counter_ns() - started) / 1000)
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3000)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--library", help="_cairn_tf.so; default: the installed one")
    options = parser.parse_args()
    tf.disable_v2_behavior()
    installed = importlib.util.find_spec("npu_bridge")
    tf.load_op_library(options.library or str(Path(installed.origin).with_name("_cairn_tf.so")))
    rows = []
    for resource in (False, True):
        stock, engine = measure(8, resource, options.runs)
        least, median = min(engine) - min(stock), statistics.median(engine) - statistics.median(stock)
        rows.append({"variables": "resource" if resource else "reference", "stock": min(stock), "engine": min(engine),
                     "above": least, "above_in_the_median": median, "goal": GOAL})  # fmt: skip
    print(f"{'variables':12}{'stock us':>10}{'engine us':>11}{'above':>8}{'median above':>14}")
    for row in rows:
        print(f"{row['variables']:12}{row['stock']:10.1f}{row['engine']:11.1f}{row['above']:8.1f}{row['above_in_the_median']:14.1f}")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
