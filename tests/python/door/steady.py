"""Allocations of the door and the engine in steady steps, with count_allocations preloaded; run by test_door_steady.py."""

import ctypes

import cases
import numpy as np
import tensorflow.compat.v1 as tf
from cases import case, data, fresh, perceptron, session


@case
def allocations(resource):
    counter = ctypes.CDLL(None)
    counter.stop_counting.restype = ctypes.c_long
    for library in (b"_cairn_tf.so", b"libcairn.so"):
        counter.watch_allocations_of(library)
    fresh(resource == "True")
    x, y, loss, step = perceptron(tf.train.AdamOptimizer(0.01))
    inputs, labels = data()
    fixed = tf.random_uniform([16, 16], seed=3)
    drawn = tf.matmul(fixed, fixed)
    counts = []
    with session(True) as s:
        s.run(tf.global_variables_initializer())
        for fetches in ([loss, step], [drawn]):
            run = s.make_callable(fetches, [x, y]) if fetches[0] is loss else s.make_callable(fetches)
            feed = (inputs, labels) if fetches[0] is loss else ()
            for _ in range(20):
                run(*feed)
            counter.start_counting()
            for _ in range(50):
                run(*feed)
            counts.append(counter.stop_counting())
            if counts[-1]:
                counter.print_last()
    return counts


if __name__ == "__main__":
    cases.main()
