"""Processor time of `cairn convert` for chains of 1,000, 10,000 and 100,000 nodes. Needs TensorFlow to write them.

    python bench/conversion_time.py [CAIRN]
"""

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf

OPS = ("Relu", "AddV2", "Tanh", "MatMul", "Mul")


def chain(count):
    """A graph of element-wise ops and matrix products, each on the one before and one further up."""
    graph = tf.compat.v1.GraphDef()
    graph.node.add(name="x", op="Placeholder").attr["dtype"].type = 1
    for size in (4, 8):
        graph.node[0].attr["shape"].shape.dim.add().size = size
    weights = graph.node.add(name="w", op="Const")
    weights.attr["dtype"].type = 1
    weights.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(np.eye(8, dtype=np.float32)))
    names = ["x"] * 3
    for number in range(count):
        op = OPS[number % len(OPS)]
        inputs = [names[-1]] + {"MatMul": ["w"], "AddV2": [names[-3]], "Mul": [names[-3]]}.get(op, [])
        graph.node.add(name=f"n{number}", op=op, input=inputs).attr["T"].type = 1
        names.append(f"n{number}")
    return graph.SerializeToString()


def main():
    cairn = sys.argv[1] if len(sys.argv) > 1 else str(Path(sys.executable).parent / "cairn")
    with tempfile.TemporaryDirectory() as folder:
        for count in (1_000, 10_000, 100_000):
            file = Path(folder) / f"{count}.pb"
            file.write_bytes(chain(count))
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            command = [cairn, "convert", file, "-o", file.with_suffix(".om"), "--json"]
            subprocess.run(command, check=True, stdout=subprocess.PIPE)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            peak = after.ru_maxrss // 1024
            print(f"{count:7} nodes: {seconds:.2f} s, {seconds / count * 1e6:.0f} us a node, at most {peak} MiB")


if __name__ == "__main__":
    main()
