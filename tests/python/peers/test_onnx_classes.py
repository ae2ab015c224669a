"""Classifiers, encoders and texts of ai.onnx.ml and ONNX equal ONNX Runtime where their dims are open, too. Runs in .venv-peers."""

import numpy as np
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import cairn

RANDOM = np.random.default_rng(3)
KINDS = {np.dtype(np.float32): 1, np.dtype(np.int32): 6, np.dtype(np.int64): 7, np.dtype(bool): 9, np.dtype(np.float16): 10, np.dtype(np.float64): 11}


def f(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def reals(*shape):
    return [float(x) for x in f(*shape).ravel()]


def compared(tmp_path, op, inputs, results=1, domain="ai.onnx.ml", version=3, opset=18, **attributes):
    """All dims of the inputs are open."""
    feeds = {f"x{i}": x for i, x in enumerate(inputs)}
    node = helper.make_node(op, list(feeds), [f"y{i}" for i in range(results)], domain=domain, **attributes)
    declared = [helper.make_tensor_value_info(name, 8 if x.dtype == object else KINDS[x.dtype], [f"{name}{i}" for i in range(x.ndim)]) for name, x in feeds.items()]
    graph = helper.make_graph([node], "g", declared, [helper.make_empty_tensor_value_info(f"y{i}") for i in range(results)])
    opsets = [helper.make_opsetid("", opset), *([helper.make_opsetid(domain, version)] if domain else [])]
    file = tmp_path / "m.onnx"
    file.write_bytes(helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString())
    theirs = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"]).run(None, feeds)
    found = cairn.load(file).run(feeds)
    for i, right in enumerate(theirs):
        mine = found[f"y{i}"]
        if right.dtype == object:
            assert [x.decode() if isinstance(x, bytes) else x for x in mine.ravel()] == list(right.ravel())
        else:
            np.testing.assert_allclose(mine, right, rtol=2e-5, atol=1e-5, err_msg=f"y{i}")


RBF = {"kernel_type": "RBF", "kernel_params": [0.3, 0.0, 0.0]}
LINEAR = {"kernel_type": "LINEAR", "kernel_params": [0.0, 0.0, 0.0]}
# name: (op, results, attributes) of x [5, 3]
MODELS = {
    "classes": ("LinearClassifier", 2, {"coefficients": reals(9), "intercepts": reals(3), "classlabels_ints": [3, 1, 2], "post_transform": "SOFTMAX"}),
    "two classes": ("LinearClassifier", 2, {"coefficients": reals(3), "intercepts": [0.1], "classlabels_ints": [3, 8], "post_transform": "LOGISTIC"}),
    "two classes as they are": ("LinearClassifier", 2, {"coefficients": reals(3), "intercepts": [0.1], "classlabels_ints": [3, 8]}),
    "targets": ("LinearRegressor", 1, {"coefficients": reals(6), "intercepts": reals(2), "targets": 2}),
    "vectors": ("SVMRegressor", 1, {"support_vectors": reals(12), "coefficients": reals(4), "n_supports": 4, "rho": [0.2], **RBF}),
    "pairs": ("SVMClassifier", 2, {"support_vectors": reals(18), "vectors_per_class": [2, 2, 2], "coefficients": reals(12), "rho": reals(3), "classlabels_ints": [1, 5, 6], **RBF}),
    "no vectors": ("SVMClassifier", 2, {"coefficients": reals(9), "rho": [0.2], "classlabels_ints": [1, 5, 6], "post_transform": "SOFTMAX", **LINEAR}),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_models_know_their_features_by_their_coefficients(name, tmp_path):
    op, results, attributes = MODELS[name]
    compared(tmp_path, op, [f(5, 3)], results, **attributes)


@pytest.mark.parametrize("base", ([], [0.2]), ids=["plain", "base"])
@pytest.mark.parametrize("how", ("NONE", "LOGISTIC", "SOFTMAX"))
def test_trees_of_one_positive_score_are_told_as_onnx_runtime_tells_them(how, base, tmp_path):
    nodes = {"nodes_treeids": [0] * 3, "nodes_nodeids": [0, 1, 2], "nodes_featureids": [1, 0, 0], "nodes_values": [0.1, 0.0, 0.0],
             "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"], "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0]}  # fmt: skip
    leaves = {"class_treeids": [0, 0], "class_nodeids": [1, 2], "class_ids": [0, 0], "class_weights": [0.3, 0.8]}
    own = {"base_values": base} if base else {}
    compared(tmp_path, "TreeEnsembleClassifier", [f(9, 4)], 2, classlabels_int64s=[4, 7], post_transform=how, **nodes, **leaves, **own)


def test_columns_are_cut_or_filled_where_only_the_run_tells_them(tmp_path):
    compared(tmp_path, "FeatureVectorizer", [f(3, 2), f(3, 4)], inputdimensions=[2, 4])


@pytest.mark.parametrize("version", (3, 4))
def test_a_key_that_is_nan_counts_from_version_four_on(version, tmp_path):
    x = np.array([[np.nan, 1, 2.5]])
    if version == 3:
        compared(tmp_path, "LabelEncoder", [x.astype(np.float32)], keys_floats=[float("nan"), 2.5], values_floats=[7.0, 8.0], default_float=-1.0)
        return
    tensors = {"keys_tensor": x[0, [0, 2]], "values_tensor": np.array([4, 5]), "default_tensor": np.array([-3])}
    compared(tmp_path, "LabelEncoder", [x], version=4, **{name: numpy_helper.from_array(value) for name, value in tensors.items()})


NUMBERS = np.array([1, -0.5, 1e10, 1e-7, np.nan, np.inf, -np.inf, 123456.789, 0.1, 2**24, -0.0, 1 / 3, 6e4])


@pytest.mark.parametrize("kind", (np.float16, np.float32, np.float64, np.int32, np.int64, bool))
def test_numbers_become_texts_as_onnx_runtime_writes_them(kind, tmp_path):
    x = NUMBERS if kind not in (np.int32, np.int64) else np.array([0, -7, 2**31 - 1])
    with np.errstate(over="ignore"):
        compared(tmp_path, "Cast", [x.astype(kind)], domain="", to=8)


@pytest.mark.parametrize("axes", ([1], [0, 1]))
def test_means_of_integers_are_cut_towards_zero(axes, tmp_path):
    compared(tmp_path, "ReduceMean", [RANDOM.integers(-9, 9, (3, 4)).astype(np.int32)], domain="", opset=13, axes=axes)


def test_integers_have_powers_of_negative_and_broken_floats(tmp_path):
    compared(tmp_path, "Pow", [np.array([2, -3, 5]), np.array([2.5, 3, -1], np.float32)], domain="", opset=15)


@pytest.mark.parametrize("op", ("Softmax", "LogSoftmax", "Hardmax"))
def test_dims_are_one_group_where_none_is_known(op, tmp_path):
    compared(tmp_path, op, [f(2, 3, 4)], domain="", opset=11, axis=1)


@pytest.mark.parametrize("op, shape", (("DepthToSpace", (1, 12, 2, 3)), ("SpaceToDepth", (1, 3, 4, 6))))
def test_blocks_of_pixels_need_no_known_channels(op, shape, tmp_path):
    compared(tmp_path, op, [f(*shape)], domain="", opset=13, blocksize=2)


@pytest.mark.parametrize("p", (1, 2, 3))
def test_whole_images_have_a_norm(p, tmp_path):
    compared(tmp_path, "GlobalLpPool", [f(2, 3, 5, 4)], domain="", opset=13, p=p)


OLD = {
    "ScaledTanh": {"alpha": 2.0, "beta": 0.5},
    "ParametricSoftplus": {"alpha": 2.0, "beta": 0.5},
    "Affine": {"alpha": 2.0, "beta": 0.5},
    "Crop": {"border": [1, 2, 1, 0]},
    "ImageScaler": {"scale": 2.0, "bias": [0.1, 0.2, 0.3]},
}


@pytest.mark.parametrize("op", OLD)
def test_operators_of_the_first_set_are_read(op, tmp_path):
    compared(tmp_path, op, [f(1, 3, 6, 7)], domain="", opset=7, **OLD[op])
