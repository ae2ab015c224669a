"""Allocations of the door and the engine in steady steps, with count_allocations preloaded; run by test_door_steady.py."""

import ctypes

import cases
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
    with session(True) as s:
        s.run(tf.global_variables_initializer())
        run = s.make_callable([loss, step], [x, y])
        for _ in range(20):
            run(inputs, labels)
        counter.start_counting()
        for _ in range(50):
            run(inputs, labels)
        count = counter.stop_counting()
        if count:
            counter.print_last()
        return count


if __name__ == "__main__":
    cases.main()
