"""Operators of users as nodes of ONNX models of their domain. Runs in .venv-peers."""

import os
import subprocess
import sys

import numpy as np
import pytest
from conftest import ROOT
from onnx import TensorProto, helper, save

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


def test_a_missing_library_is_told_and_a_loaded_one_is_used(tmp_path):
    path = model_of(tmp_path / "m.onnx", helper.make_node("L2Norm", ["x"], ["y"], domain="example", epsilon=0.5))
    with pytest.raises(cairn.Error) as refusal:
        cairn.load(path)
    assert "--op-library" in str(refusal.value) + str(refusal.value.report), refusal.value.report
    sources = sorted(map(str, (ROOT / "examples" / "operators").glob("*.cpp")))
    library = str(tmp_path / "libexample_ops.so")
    include = os.path.join(os.path.dirname(cairn.__file__), "include")
    subprocess.run(["c++", "-std=c++17", "-shared", "-fPIC", "-I", include, *sources, "-o", library], check=True)
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
