"""Writes ONNX's own node tests (model, inputs, expected outputs) as files, those whose values are dense numeric tensors.

    python make_onnx_nodes.py FOLDER
"""
import os
import sys
import warnings

import numpy as np

warnings.simplefilter("ignore")
from onnx.backend.test.case.node import collect_testcases

KINDS = {"float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"}


def plain(values):
    return all(isinstance(v, (np.ndarray, np.generic)) and np.asarray(v).dtype.name in KINDS for v in values)


def main():
    root = sys.argv[1]
    if os.path.exists(os.path.join(root, "done")):
        return
    for case in collect_testcases(None):
        inputs, outputs = case.data_sets[0]
        names = [v.name for v in case.model.graph.input], [v.name for v in case.model.graph.output]
        tensors = all(v.type.HasField("tensor_type") for v in [*case.model.graph.input, *case.model.graph.output])
        if not tensors or not plain([*inputs, *outputs]) or len(inputs) != len(names[0]) or len(outputs) != len(names[1]):
            continue
        folder = os.path.join(root, case.name, "case")
        os.makedirs(folder, exist_ok=True)
        for kind, ids, values in (("in", names[0], inputs), ("out", names[1], outputs)):
            for name, value in zip(ids, values):
                np.save(os.path.join(folder, f"{kind}.{name}.npy"), np.ascontiguousarray(value).reshape(np.shape(value)))
        with open(os.path.join(root, case.name, "model.onnx"), "wb") as file:
            file.write(case.model.SerializeToString())
    open(os.path.join(root, "done"), "w").close()


main()
