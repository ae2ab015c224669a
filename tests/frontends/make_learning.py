"""Writes the seeds of damaged ONNX files: ai.onnx.ml, and attention of com.microsoft with external data.

    .venv-peers/bin/python tests/frontends/make_learning.py tests/frontends/data
"""

import sys
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

FOLDER = Path(sys.argv[1])
OPSETS = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3), helper.make_opsetid("com.microsoft", 1)]


def learning():
    node = lambda op, inputs, outputs, **attributes: helper.make_node(op, inputs, outputs, domain="ai.onnx.ml", **attributes)  # noqa: E731
    trees = {
        "nodes_treeids": [0, 0, 0, 1], "nodes_nodeids": [0, 1, 2, 0], "nodes_featureids": [1, 0, 0, 0], "nodes_values": [0.5, 0, 0, 0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF", "LEAF"], "nodes_truenodeids": [1, 0, 0, 0], "nodes_falsenodeids": [2, 0, 0, 0],
        "class_treeids": [0, 0, 1], "class_nodeids": [1, 2, 0], "class_ids": [0, 1, 0], "class_weights": [0.5, 0.75, 1.0]}  # fmt: skip
    nodes = [
        node("Imputer", ["x"], ["a"], imputed_value_floats=[1.0, 2.0], replaced_value_float=float("nan")),
        node("Scaler", ["a"], ["b"], offset=[0.5, 1.0], scale=[2.0, 0.5]),
        node("Normalizer", ["b"], ["c"], norm="L2"),
        node("TreeEnsembleClassifier", ["c"], ["label", "scores"], classlabels_strings=["a", "b"], post_transform="SOFTMAX", **trees),
        node("SVMClassifier", ["c"], ["vote", "shares"], classlabels_ints=[3, 5], kernel_type="RBF", kernel_params=[0.5, 0.0, 3.0], rho=[0.1],
             prob_a=[-1.0], prob_b=[0.1], vectors_per_class=[1, 1], support_vectors=[0.0, 1.0, 1.0, 0.0], coefficients=[1.0, -1.0]),
        node("SVMRegressor", ["c"], ["real"], kernel_type="POLY", kernel_params=[0.5, 0.0, 2.0], rho=[0.1], n_supports=1, support_vectors=[1.0, 2.0],
             coefficients=[1.0]),
        node("LinearClassifier", ["c"], ["kind", "way"], coefficients=[1.0, -1.0], intercepts=[0.25], classlabels_ints=[0, 1], post_transform="LOGISTIC"),
        node("LabelEncoder", ["label"], ["number"], keys_strings=["a", "b"], values_int64s=[1, 2]),
        node("OneHotEncoder", ["number"], ["columns"], cats_int64s=[1, 2], zeros=1),
        node("FeatureVectorizer", ["columns", "real", "way", "shares", "scores"], ["all"], inputdimensions=[2, 1, 2, 2, 2]),
    ]  # fmt: skip
    outputs = [helper.make_empty_tensor_value_info(name) for name in ("all", "vote", "kind")]
    return nodes, [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2])], outputs, []


def contrib():
    ones = lambda name, *shape: numpy_helper.from_array(np.full(shape, 0.5, np.float32), name)  # noqa: E731
    node = lambda op, inputs, outputs, **attributes: helper.make_node(op, inputs, outputs, domain="com.microsoft", **attributes)  # noqa: E731
    nodes = [
        node("Attention", ["x", "w", "b"], ["a"], num_heads=2, unidirectional=1),
        node("SkipLayerNormalization", ["a", "x", "s"], ["l"]),
        node("MultiHeadAttention", ["l", "x", "x"], ["m"], num_heads=2),
        node("FusedMatMul", ["m", "t"], ["f"], transB=1, alpha=0.5),
        node("FastGelu", ["f"], ["y"]),
    ]
    weights = [ones("w", 4, 12), ones("b", 12), ones("s", 4), ones("t", 4, 4)]
    return nodes, [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 4])], [helper.make_empty_tensor_value_info("y")], weights


for name, (nodes, inputs, outputs, weights) in {"learning": learning(), "contrib": contrib()}.items():
    graph = helper.make_graph(nodes, name, inputs, outputs, weights)
    (FOLDER / f"{name}.onnx").write_bytes(helper.make_model(graph, opset_imports=OPSETS, ir_version=9).SerializeToString())
