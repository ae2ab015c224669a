"""Loads a frozen graph in stock TensorFlow and compares it with what the model it came from answered.

    python check_frozen.py MODEL_FOLDER FROZEN.pb key=tensor ...     exit code 1 and a message when they differ
"""
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
import numpy as np
import tensorflow.compat.v1 as tf1


def main():
    folder, frozen, *names = sys.argv[1:]
    tensors = dict(name.split("=", 1) for name in names)
    case = {name[:-len(".npy")].replace(".", ":", 1): np.load(os.path.join(folder, "case", name))
            for name in os.listdir(os.path.join(folder, "case"))}
    graph_def = tf1.GraphDef()
    with open(frozen, "rb") as file:
        graph_def.ParseFromString(file.read())
    stateful = {node.op for node in graph_def.node} & {"VarHandleOp", "VariableV2", "ReadVariableOp", "RestoreV2"}
    if stateful:
        sys.exit(f"not frozen: {stateful}")
    with tf1.Graph().as_default() as graph:
        tf1.import_graph_def(graph_def, name="")
        outputs = [key for key in case if key.startswith("out:")]
        with tf1.Session(graph=graph) as session:
            feed = {tensors[key]: case[key] for key in case if key.startswith("in:")}
            answers = session.run([tensors[key] for key in outputs], feed)
    for key, answer in zip(outputs, answers):
        np.testing.assert_allclose(answer, case[key], rtol=1e-6, atol=1e-6, err_msg=key)


main()
