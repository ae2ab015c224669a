"""Operators of users: in Python, from a library, in frozen graphs, through atc and in training scripts."""

import os
import shutil
import subprocess
import sys

import cairn
import numpy as np
import pytest
from conftest import BIN, ROOT
from tensorflow_adapter import environment

X = np.array([[0.5, -2.0, 3.0], [1.0, 0.0, -0.25]], np.float32)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """The operators of examples/operators."""
    folder = tmp_path_factory.mktemp("operators")
    return build(ROOT / "examples" / "operators", folder / "build", "example_ops")


def build(source, folder, name):
    path = f"{BIN}:{os.environ['PATH']}"
    for command in (["cmake", "-S", source, "-B", folder], ["cmake", "--build", folder]):
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PATH": path})
        assert done.returncode == 0, done.stdout + done.stderr
    return folder / f"lib{name}.so"


# ---- Python ----------------------------------------------------------------------------------------------------------


@cairn.op("test.clip_abs", cases=["f32[2, 3]"])
def clip_abs(x, limit=1.0):
    """The absolute value, up to a limit."""
    return np.minimum(np.abs(x), limit)


@clip_abs.gradient
def _(x, y, dy, limit):
    return dy * x.sign() * (x.abs() < limit).cast(dtype=x.dtype)


@cairn.op("test.swish", traced=True)
def swish(x, beta=1.0):
    return x * (beta * x).sigmoid()


@cairn.op("test.split_sign", results=("above", "below"), shape=lambda x: [x, ("int64", x[1])])
def split_sign(x):
    return np.maximum(x, 0), (x < 0).astype(np.int64)


@cairn.op("test.positive", shape=lambda x: (x[0], [None]))
def positive(x):
    return x[x > 0]


@cairn.op("test.wrong_shape")
def wrong_shape(x):
    return x[0]


@cairn.op
def raises(x):
    raise ZeroDivisionError("no such luck")


def test_a_numpy_function_is_an_operator():
    np.testing.assert_array_equal(clip_abs(X, limit=2.0), np.minimum(np.abs(X), 2))
    above, below = split_sign(X)
    np.testing.assert_array_equal(above, np.maximum(X, 0))
    np.testing.assert_array_equal(below, X < 0)
    np.testing.assert_array_equal(positive(X), X[X > 0])  # dims that only the run tells
    assert [row["summary"] for row in cairn.ops() if row["name"] == "test.clip_abs"] == [
        "The absolute value, up to a limit."
    ]


def test_a_traced_function_is_made_of_other_operators(tmp_path):
    np.testing.assert_allclose(swish(X, beta=2.0), X * sigmoid(2 * X), rtol=1e-6)
    builder = cairn.Builder()
    x = builder.input("x", "float32", [None, 3])
    builder.output("y", swish(x, beta=2.0) + 1.0)
    path = builder.save(tmp_path / "swish.om")
    np.testing.assert_allclose(cairn.load(path).run(X)["y"], X * sigmoid(2 * X) + 1, rtol=1e-6)
    done = subprocess.run([BIN / "cairn", "show", path, "--text"], capture_output=True, text=True)
    assert done.returncode == 0 and "sigmoid" in done.stdout, done.stderr  # the model needs nobody's Python


def test_a_builder_makes_a_model_with_state(tmp_path):
    builder = cairn.Builder("counter")
    x = builder.input("x", "float32", [2])
    total = builder.input("total", "float32", [2])
    builder.output("y", x * 1.0)
    builder.output("total", total + x, updates=total)
    model = cairn.load(builder.save(tmp_path / "counter.om"))
    assert [port.name for port in model.inputs] == ["x"]
    with pytest.raises(cairn.Error, match="is no function|no operator|builder"):
        builder.save(tmp_path / "again.om")


def test_faults_in_python_name_operator_and_line():
    with pytest.raises(cairn.Error, match=r"python.raises: kernel of test_user_ops.py:\d+: ZeroDivisionError: no such luck"):
        raises(X)
    with pytest.raises(cairn.Error, match=r"result y has shape \[3\], expected \[2, 3\]; shape= of cairn.op"):
        wrong_shape(X)
    with pytest.raises(cairn.Error, match="is the name of another operator"):
        cairn.op("test.clip_abs")(lambda x: x)
    with pytest.raises(cairn.Error, match="expected domain.name"):
        cairn.op("nodomain")(lambda x: x)


# ---- Libraries -------------------------------------------------------------------------------------------------------


def test_an_operator_is_begun_built_and_tested(command, tmp_path):
    assert command("cairn", "op", "new", "acme.gelu2").returncode == 0
    made = build(tmp_path / "gelu2", tmp_path / "gelu2" / "build", "gelu2")
    done = command("cairn", "op", "test", made)
    assert done.returncode == 0 and ", 0 failed" in done.stdout, done.stdout + done.stderr
    assert "gradient of x0 equals central differences" in done.stdout
    again = command("cairn", "op", "new", "acme.gelu2")
    assert again.returncode == 1 and "exists already" in again.stderr
    assert "expected domain.name" in command("cairn", "op", "new", "gelu2").stderr


def test_the_examples_pass_their_own_tests(command, library):
    done = command("cairn", "op", "test", library)
    assert done.returncode == 0, done.stdout + done.stderr
    listed = command("cairn", "op", "list", "--op-library", library)
    assert [name for name in ("swish", "l2_norm", "running_mean") if f"example.{name}" not in listed.stdout] == []


def test_a_library_is_loaded_from_python(library):
    cairn.load_op_library(library)
    np.testing.assert_allclose(cairn.run_op("example.swish", [X], beta=2.0), X * sigmoid(2 * X), rtol=1e-5)
    np.testing.assert_allclose(cairn.run_op("example.l2_norm", [X]), np.sqrt((X * X).sum(-1) + 1e-6), rtol=1e-5)
    with pytest.raises(cairn.Error, match="x is a scalar, expected at least one dimension"):
        cairn.run_op("example.l2_norm", [np.float32(1)])
    with pytest.raises(cairn.Error, match="there is no such library"):
        cairn.load_op_library("/no/such.so")


# ---- Frozen graphs and atc -------------------------------------------------------------------------------------------


@pytest.fixture
def frozen(tmp_path):
    """x -> Example>Swish -> L2Norm -> y, as another TensorFlow with such operators would write it."""
    from tensorflow.core.framework import graph_pb2, types_pb2

    graph = graph_pb2.GraphDef()
    x = graph.node.add(name="x", op="Placeholder")
    x.attr["dtype"].type = types_pb2.DT_FLOAT
    x.attr["shape"].shape.dim.add(size=-1)
    x.attr["shape"].shape.dim.add(size=3)
    swish = graph.node.add(name="swish", op="Example>Swish", input=["x"])
    swish.attr["beta"].f = 2.0
    swish.attr["T"].type = types_pb2.DT_FLOAT
    graph.node.add(name="y", op="L2Norm", input=["swish"]).attr["epsilon"].f = 0.5
    path = tmp_path / "frozen.pb"
    path.write_bytes(graph.SerializeToString())
    return path


def expected():
    return np.sqrt(np.square(X * sigmoid(2 * X)).sum(-1) + 0.5)


def run_om(command, tmp_path, model, *options, **more):
    np.save(tmp_path / "x.npy", X)
    done = command("cairn", "run", model, "--input", "x=x.npy", "-o", "out.npz", *options, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return next(iter(np.load(tmp_path / "out.npz").values()))


def test_a_frozen_graph_runs_with_the_library(command, tmp_path, frozen, library):
    found = run_om(command, tmp_path, frozen, "--op-library", library)
    np.testing.assert_allclose(found, expected(), rtol=1e-5)
    found = run_om(command, tmp_path, frozen, env={**os.environ, "CAIRN_OP_LIBRARY": str(library)})
    np.testing.assert_allclose(found, expected(), rtol=1e-5)
    done = command("cairn", "run", frozen)
    assert done.returncode == 1
    assert "Example>Swish" in done.stderr and "--op-library" in done.stderr, done.stderr


def test_atc_converts_with_the_library(command, tmp_path, frozen, library):
    words = ["--model", frozen, "--framework=3", "--output", tmp_path / "made", "--soc_version=Ascend310"]
    done = command("atc", *words, f"--op_library={library}")
    assert done.returncode == 0 and "ATC run success" in done.stdout, done.stdout
    np.testing.assert_allclose(
        run_om(command, tmp_path, tmp_path / "made.om", "--op-library", library), expected(), rtol=1e-5
    )
    assert str(library) not in (tmp_path / "made.om").read_bytes().decode("latin-1")
    done = command("cairn", "run", tmp_path / "made.om")
    assert done.returncode == 1
    assert "operator example.swish comes from no library that is loaded" in done.stderr, done.stderr


@pytest.mark.parametrize("variable, place", [
    ("ASCEND_OPP_PATH", "framework/custom"),
    ("ASCEND_OPP_PATH", "vendors/acme/framework/tensorflow"),
    ("ASCEND_CUSTOM_OPP_PATH", "framework/tensorflow"),
])  # fmt: skip
def test_atc_finds_plug_ins_where_the_platform_has_them(command, tmp_path, frozen, library, variable, place):
    (tmp_path / "opp" / place).mkdir(parents=True)
    shutil.copy(library, tmp_path / "opp" / place)
    (tmp_path / "opp" / place / "libother.so").write_bytes(b"not ours")
    words = ["--model", frozen, "--framework=3", "--output", tmp_path / "made", "--soc_version=Ascend310"]
    done = command("atc", *words, env={**os.environ, variable: str(tmp_path / "opp")})
    assert done.returncode == 0, done.stdout


PLUG_IN = """
#include "register/register.h"
namespace domi {
REGISTER_CUSTOM_OP("example.swish").FrameworkType(TENSORFLOW).OriginOpType("OurSwish").ParseParamsFn(AutoMappingFn);
REGISTER_CUSTOM_OP("Relu").FrameworkType(TENSORFLOW).OriginOpType({"OurRelu", "OurRectify"}).ImplyType(ImplyType::TVM);
}
"""


def test_a_plug_in_gives_types_of_a_framework_other_names(command, tmp_path, library):
    from tensorflow.core.framework import graph_pb2, types_pb2

    folder = tmp_path / "opp" / "framework" / "custom"
    folder.mkdir(parents=True)
    (tmp_path / "plug_in.cpp").write_text(PLUG_IN)
    include = ROOT / "include"
    words = ["c++", "-std=c++17", "-shared", "-fPIC", "-I", include, "-I", include / "cairn" / "plugin"]
    subprocess.run([*words, tmp_path / "plug_in.cpp", "-o", folder / "libplug_in.so"], check=True)
    graph = graph_pb2.GraphDef()
    graph.node.add(name="x", op="Placeholder").attr["dtype"].type = types_pb2.DT_FLOAT
    graph.node.add(name="a", op="OurSwish", input=["x"])
    graph.node.add(name="y", op="OurRectify", input=["a"])
    (tmp_path / "g.pb").write_bytes(graph.SerializeToString())
    words = ["--model=g.pb", "--framework=3", "--output=made", "--soc_version=Ascend310", "--input_shape=x:2,3"]
    done = command("atc", *words, f"--op_library={library}", env={**os.environ, "ASCEND_OPP_PATH": str(tmp_path / "opp")})
    assert done.returncode == 0, done.stdout
    found = run_om(command, tmp_path, "made.om", "--op-library", library)
    np.testing.assert_allclose(found, np.maximum(X * sigmoid(X), 0), rtol=1e-5, atol=1e-7)
    done = command("atc", *words, env={**os.environ, "ASCEND_OPP_PATH": str(tmp_path / "opp")})
    assert done.returncode != 0 and "operator example.swish comes from no library that is loaded" in done.stdout


# ---- Training scripts ------------------------------------------------------------------------------------------------

SCRIPT_TF1 = """
import json, sys
import numpy as np
import tensorflow.compat.v1 as tf
from npu_bridge.npu_init import *
tf.disable_eager_execution()
ops = tf.load_op_library(sys.argv[1])
rng = np.random.RandomState(0)
data = rng.rand(8, 4).astype(np.float32)
x = tf.placeholder(tf.float32, [None, 4])
w = tf.get_variable("w", initializer=rng.rand(4, 3).astype(np.float32) - 0.5)
h = tf.matmul(x, w)
y = ops.swish(h, beta=1.5) if sys.argv[2] == "own" else h * tf.sigmoid(1.5 * h)
n = ops.l2_norm(y) if sys.argv[2] == "own" else tf.sqrt(tf.reduce_sum(y * y, -1) + 1e-6)
loss = tf.reduce_mean(tf.square(n - 1))
step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
with tf.Session(config=npu_config_proto()) as session:
    session.run(tf.global_variables_initializer())
    print(json.dumps([float(session.run([loss, step], {x: data})[0]) for _ in range(5)]))
"""

SCRIPT_TF2 = """
import json, sys
import numpy as np
import tensorflow as tf
import npu_device
npu_device.open().as_default()
from npu_bridge import user_ops
import cairn
ops = tf.load_op_library(sys.argv[1])

@cairn.op("script.halve", traced=True)
def halve(x):
    return x * 0.5

own = sys.argv[2] == "own"
rng = np.random.RandomState(0)
data = tf.constant(rng.rand(8, 4).astype(np.float32))
w = tf.Variable(rng.rand(4, 3).astype(np.float32) - 0.5)

def loss_of(x):
    h = tf.matmul(x, w)
    y = ops.swish(h, beta=1.5) if own else h * tf.sigmoid(1.5 * h)
    y = user_ops.operator("script.halve")(y) if own else y * 0.5
    n = ops.l2_norm(y) if own else tf.sqrt(tf.reduce_sum(y * y, -1) + 1e-6)
    return tf.reduce_mean(tf.square(n - 1))

def step(x):
    with tf.GradientTape() as tape:
        loss = loss_of(x)
    w.assign_sub(0.1 * tape.gradient(loss, w))
    return loss

losses = [float(step(data)) for _ in range(2)]
compiled = tf.function(step)
print(json.dumps(losses + [float(compiled(data)) for _ in range(3)]))
"""


@pytest.mark.parametrize("script", [SCRIPT_TF1, SCRIPT_TF2], ids=["tf1", "tf2"])
def test_a_script_trains_with_operators_of_a_library(tmp_path, library, script):
    import json

    (tmp_path / "script.py").write_text(script)
    losses, reports = [], []
    for formula in ("own", "stock"):
        report = tmp_path / f"{formula}.json"
        done = subprocess.run(
            [sys.executable, tmp_path / "script.py", library, formula],
            env={**environment("cairn"), "CAIRN_REPORT": str(report)}, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
        losses.append(json.loads(done.stdout.splitlines()[-1]))
        reports.append(report.read_text() if report.exists() else "")
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-5)
    assert losses[0][-1] < losses[0][0]
    graphs = json.loads(reports[0])["graphs"]
    assert graphs and "CairnUserOp" not in str([graph.get("refused") for graph in graphs])
