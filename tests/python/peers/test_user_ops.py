"""Operators of users as nodes of ONNX models of their domain. Runs in .venv-peers."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from conftest import ROOT
from onnx import TensorProto, helper, numpy_helper, save
from sklearn.datasets import load_digits

import cairn

X = np.array([[0.5, -2.0, 3.0], [1.0, 0.0, -0.25]], np.float32)


@cairn.op("peers.clip_abs")
def clip_abs(x, limit=1.0):
    return np.minimum(np.abs(x), limit)


@clip_abs.gradient
def _(x, y, dy, limit):
    return dy * x.sign() * (x.abs() < limit).cast(dtype=x.dtype)


@cairn.op("peers.swish", traced=True)
def swish(x, beta=1.0):
    return x * (beta * x).sigmoid()


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The operators of examples/operators, compiled."""
    sources = sorted(map(str, (ROOT / "examples" / "operators").glob("*.cpp")))
    path = str(tmp_path_factory.mktemp("library") / "libexample_ops.so")
    include = os.path.join(os.path.dirname(cairn.__file__), "include")
    subprocess.run(["c++", "-std=c++17", "-shared", "-fPIC", "-I", include, *sources, "-o", path], check=True)
    return path


def model_of(path, *nodes, inputs=("x",)):
    domains = sorted({node.domain for node in nodes})
    graph = helper.make_graph(
        list(nodes), "g",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 3]) for name in inputs],
        [helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, None)],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17)] + [helper.make_opsetid(domain, 1) for domain in domains if domain]
    save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return str(path)


def test_nodes_of_a_domain_are_operators_of_python(tmp_path):
    path = model_of(
        tmp_path / "m.onnx",
        helper.make_node("ClipAbs", ["x"], ["a"], domain="peers", limit=2.0),
        helper.make_node("Swish", ["a"], ["b"], domain="peers", beta=1.5),
        helper.make_node("Neg", ["b"], ["y"]),
    )
    a = np.minimum(np.abs(X), 2)
    np.testing.assert_allclose(cairn.load(path).run(X)["y"], -a / (1 + np.exp(-1.5 * a)), rtol=1e-5)
    converted = cairn.convert(path, tmp_path / "m.om")
    np.testing.assert_allclose(cairn.load(converted).run(X)["y"], -a / (1 + np.exp(-1.5 * a)), rtol=1e-5)
    assert "peers.clip_abs" in cairn.text(converted)


def test_attributes_that_a_row_does_not_have_are_refused(tmp_path):
    path = model_of(tmp_path / "m.onnx", helper.make_node("ClipAbs", ["x"], ["y"], domain="peers", most=2.0))
    with pytest.raises(cairn.Error, match="peers.clip_abs has no attribute most"):
        cairn.load(path)
    path = model_of(tmp_path / "m.onnx", helper.make_node("ClipAbs", ["x"], ["y"], domain="peers", limit="two"))
    with pytest.raises(cairn.Error, match="attribute limit is of type text, expected real|limit"):
        cairn.load(path)


def test_a_missing_library_is_told_and_a_loaded_one_is_used(tmp_path, library):
    path = model_of(tmp_path / "m.onnx", helper.make_node("L2Norm", ["x"], ["y"], domain="example", epsilon=0.5))
    with pytest.raises(cairn.Error) as refusal:
        cairn.load(path)
    assert "--op-library" in str(refusal.value) + str(refusal.value.report), refusal.value.report
    script = f"import cairn, numpy; print(cairn.load({path!r}).run(numpy.ones((1, 3), 'f4'))['y'].tolist())"
    done = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, "CAIRN_OP_LIBRARY": library}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(eval(done.stdout), [np.sqrt(3.5)], rtol=1e-6)


def test_an_onnx_model_is_differentiated_through_operators_of_users(tmp_path):
    """The sum of swish(clip_abs(x)): one with a gradient of its own, one through what it is made of."""
    path = model_of(
        tmp_path / "m.onnx",
        helper.make_node("ClipAbs", ["x"], ["a"], domain="peers", limit=2.5),
        helper.make_node("Swish", ["a"], ["b"], domain="peers", beta=1.5),
        helper.make_node("ReduceSum", ["b"], ["y"], keepdims=0),
    )
    import torch

    x = torch.tensor(X, requires_grad=True)
    a = x.abs().clamp(max=2.5)
    (a * torch.sigmoid(1.5 * a)).sum().backward()
    np.testing.assert_allclose(cairn.grad(path, wrt=["x"])({"x": X})["x"], x.grad.numpy(), rtol=1e-5, atol=1e-6)


def network(path, bend):
    """Digits through two products with an operator between them."""
    random = np.random.default_rng(0)
    weights = {"w1": random.standard_normal((64, 32)) * 0.1, "w2": random.standard_normal((32, 10)) * 0.1}
    nodes = [helper.make_node("MatMul", ["x", "w1"], ["h"]), bend, helper.make_node("MatMul", ["b", "w2"], ["logits"])]
    graph = helper.make_graph(
        nodes, "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 64])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", 10])],
        [numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(bend.domain, 1)]
    save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return str(path)


def digits():
    data = load_digits()
    return (data.data / 16).astype(np.float32), data.target


def test_a_network_trains_with_an_operator_of_python(tmp_path):
    path = network(tmp_path / "m.onnx", helper.make_node("Swish", ["h"], ["b"], domain="peers", beta=1.5))
    x, labels = digits()
    trainer = cairn.Trainer(path, optimizer="adam")
    last = list(trainer.fit(x, labels, epochs=3, batch=32, learning_rate=0.01))[-1]
    assert last["accuracy"] > 0.9, last


def test_a_network_trains_with_an_operator_of_a_library(tmp_path, library):
    path = network(tmp_path / "m.onnx", helper.make_node("Swish", ["h"], ["b"], domain="example", beta=1.5))
    x, labels = digits()
    np.savez(tmp_path / "data.npz", x=x, labels=labels)
    cairn_program = os.path.join(os.path.dirname(sys.executable), "cairn")
    words = [cairn_program, "train", path, "--data", str(tmp_path / "data.npz"), "--loss", "cross_entropy", "--lr", "0.01",
             "--optimizer", "adam", "--epochs", "3", "--batch", "32", "--json", "-o", str(tmp_path / "t.onnx")]  # fmt: skip
    done = subprocess.run([*words, "--op-library", library], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["epochs"][-1]["accuracy"] > 0.9
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 1 and "--op-library=FILE" in done.stderr + done.stdout
