"""cairn diff: models against their frameworks, and training scripts against stock TensorFlow; planted faults are found with the
operator and its script line, and without a fault there is no alarm."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
import tensorflow_adapter
from conftest import ROOT

PEERS = ROOT / ".venv-peers" / "bin" / "python"
FAULTY = Path(os.environ.get("CAIRN_BUILD", ROOT / "build")) / "src" / "diff" / "libcairn_faulty.so"

# Models ---------------------------------------------------------------------------------------------------------------


def result_of(done, folder):
    assert done.returncode in (0, 2), done.stdout + done.stderr
    return json.loads((folder / "cairn_diff" / "difference.json").read_text())


@pytest.mark.parametrize("name", ["digits", "lenet", "mlp"])
@pytest.mark.parametrize("precision", ["", "f16"])
def test_a_clean_model_agrees_with_its_framework(name, precision, models, command, tmp_path):
    words = ["--precision", precision] if precision else []
    done = command("cairn", "diff", models(name).frozen, models(name).frozen, *words)
    result = result_of(done, tmp_path)
    assert result["equal"] and "TensorFlow 2.15" in result["golden"]
    assert len(result["rows"]) >= 3


def test_a_saved_model_agrees_with_its_converted_form(models, command, tmp_path):
    done = command("cairn", "convert", models("digits").saved_model, "-o", "model.om")
    assert done.returncode == 0, done.stderr
    result = result_of(command("cairn", "diff", "model.om", models("digits").saved_model), tmp_path)
    assert result["equal"] and len(result["rows"]) >= 3


@pytest.fixture
def broken(models, tmp_path):
    """A frozen graph whose second kernel is a tenth too large."""
    import tensorflow as tf

    graph = tf.compat.v1.GraphDef()
    graph.ParseFromString(models("lenet").frozen.read_bytes())
    weights = [node for node in graph.node if node.op == "Const" and len(node.attr["value"].tensor.tensor_shape.dim) == 4]
    tensor = weights[1].attr["value"].tensor
    tensor.CopyFrom(tf.make_tensor_proto(tf.make_ndarray(tensor) * np.float32(1.1)))
    (tmp_path / "broken.pb").write_bytes(graph.SerializeToString())
    user = next(node for node in graph.node if any(name.split(":")[0].startswith(weights[1].name) for name in node.input))
    while user.op in ("Identity", "ReadVariableOp"):
        user = next(node for node in graph.node if user.name in [name.split(":")[0] for name in node.input])
    return user.name


def test_the_operator_with_other_weights_is_named(broken, models, command, tmp_path):
    done = command("cairn", "diff", "broken.pb", models("lenet").frozen)
    result = result_of(done, tmp_path)
    assert done.returncode == 2 and not result["equal"]
    (culprit,) = result["culprits"]
    assert culprit["confirmed"] and not culprit["is_kernel"] and culprit["pass"] == ""
    assert any(broken in source for source in culprit["sources"])
    assert culprit["inner"]["name"] == broken and f"the first that differs is {broken} (Conv2D)" in done.stdout
    assert [row["name"] for row in result["rows"] if row["suspect"]] == [culprit["name"]]  # the others only inherit it
    assert f"first wrong: {culprit['name']}" in done.stdout
    page = (tmp_path / "cairn_diff" / "index.html").read_text()
    assert culprit["name"] in page and "/*STYLE*/" not in page and "/*DATA*/" not in page


def test_the_reproducer_shows_the_fault_again(broken, models, command, tmp_path):
    command("cairn", "diff", "broken.pb", models("lenet").frozen)
    folder = tmp_path / "cairn_diff" / "reproducer"
    assert sorted(file.name for file in folder.iterdir()) == [
        "expected.npz", "found.npz", "inputs.npz", "operator.om", "operator.txt", "run.sh"]  # fmt: skip
    done = command("cairn", "diff", folder / "operator.om", folder / "expected.npz", "--inputs", folder / "inputs.npz", "-o", "again")
    assert done.returncode == 2, done.stdout + done.stderr


def test_a_file_that_says_something_else_than_its_source_is_blamed_itself(broken, models, command, tmp_path):
    assert command("cairn", "convert", "broken.pb", "-o", "model.om").returncode == 0
    result = result_of(command("cairn", "diff", "model.om", models("lenet").frozen), tmp_path)
    (culprit,) = result["culprits"]
    assert any(broken in source for source in culprit["sources"]) and culprit["pass"] == "" and not culprit["is_kernel"]
    assert "converted now gives a model that agrees" in culprit["cause"]


@pytest.mark.skipif(not PEERS.exists(), reason="no .venv-peers with onnxruntime (./dev bench makes it)")
def test_an_onnx_model_agrees_with_onnx_runtime(command, tmp_path):
    script = """
import torch
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
                            torch.nn.Conv2d(8, 8, 3), torch.nn.GELU(), torch.nn.Flatten(), torch.nn.Linear(288, 5)).eval()
torch.onnx.export(model, torch.randn(2, 3, 16, 16), "net.onnx", input_names=["x"], output_names=["y"], dynamo=False)
"""
    import subprocess

    subprocess.run([PEERS, "-c", script], cwd=tmp_path, check=True, capture_output=True)
    result = result_of(command("cairn", "diff", "net.onnx", "net.onnx", "--python", PEERS), tmp_path)
    assert result["equal"] and "ONNX Runtime" in result["golden"]
    assert len(result["rows"]) >= 4


def test_without_the_framework_nothing_is_called_equal(models, command):
    done = command("cairn", "diff", models("mlp").frozen, models("mlp").frozen, "--python", "/nowhere/python")
    assert done.returncode == 3 and "framework missing" in done.stdout


def test_a_keras_file_can_be_held_to_be_right(command, tmp_path):
    import tensorflow as tf

    model = tf.keras.Sequential([tf.keras.layers.Dense(8, "relu", input_shape=(6,), name="first"), tf.keras.layers.Dense(3)])
    tf.saved_model.save(model, str(tmp_path / "saved_model"))
    model.save(tmp_path / "model.keras")
    model.layers[0].kernel.assign(model.layers[0].kernel * 1.5)
    model.save(tmp_path / "other.h5")
    for mine, name in (("saved_model", "sequential/first/Relu"), ("model.keras", "first")):
        result = result_of(command("cairn", "diff", mine, "other.h5"), tmp_path)
        assert not result["equal"] and "TensorFlow" in result["golden"]
        assert result["culprits"][0]["name"].endswith(name), result["culprits"][0]["name"]


def truth_of(done, folder, status):
    assert done.returncode == status, done.stdout + done.stderr
    return json.loads((folder / "cairn_diff" / "truth.json").read_text())


def test_whose_rounding_is_larger_is_told_for_each_operator(models, command, tmp_path):
    lenet = models("lenet").frozen
    result = truth_of(command("cairn", "diff", lenet, lenet, "--truth", "f64"), tmp_path, 0)
    assert "TensorFlow 2.15" in result["theirs"] and not result["worse"]
    assert sum(result["larger"].values()) >= 6
    for row in result["rows"] + result["outputs"]:
        assert 0 < row["theirs"]["rms"] < 1e-5 * row["size"], row
    page = (tmp_path / "cairn_diff" / "index.html").read_text()
    assert result["outputs"][0]["name"] in page and "/*DATA*/" not in page


def test_the_rounding_of_a_converted_file_is_judged_by_its_source(models, command, tmp_path):
    assert command("cairn", "convert", models("digits").saved_model, "-o", "model.om").returncode == 0
    result = truth_of(command("cairn", "diff", "model.om", models("digits").saved_model, "--truth", "f64"), tmp_path, 0)
    assert sum(result["larger"].values()) >= 3


def test_a_lower_precision_errs_more_than_the_framework(models, command, tmp_path):
    lenet = models("lenet").frozen
    done = command("cairn", "diff", lenet, lenet, "--truth", "f64", "--precision", "f16")
    result = truth_of(done, tmp_path, 2)
    assert result["worse"] and result["larger"]["mine"] and "OURS is larger" in done.stdout


def test_errors_of_several_runs_are_judged_together(models, command, tmp_path):
    mlp = models("mlp").frozen
    one = truth_of(command("cairn", "diff", mlp, mlp, "--truth", "f64", "--seed", "1"), tmp_path, 0)
    two = truth_of(command("cairn", "diff", mlp, mlp, "--truth", "f64", "--runs", "2"), tmp_path, 0)
    assert (one["runs"], two["runs"]) == (1, 2) and [row["name"] for row in one["rows"]] == [row["name"] for row in two["rows"]]
    assert all(mine["mine"]["most"] <= both["mine"]["most"] for mine, both in zip(one["outputs"], two["outputs"]))
    np.save(tmp_path / "x.npy", next(iter(next(models("mlp").cases())[0].values())))
    done = command("cairn", "diff", mlp, mlp, "--truth", "f64", "--runs", "2", "--input", "x.npy")
    assert done.returncode == 1 and "all inputs are given by files" in done.stderr
    assert command("cairn", "diff", mlp, mlp, "--runs", "2").returncode == 1


def test_wrong_use_is_told_in_a_sentence(models, command, tmp_path):
    (tmp_path / "bad.npz").write_bytes(b"PK\x03\x04 nothing")
    np.savez(tmp_path / "other.npz", nothing=np.zeros(3))
    mlp = models("mlp").frozen
    for words in (["missing.pb"], ["bad.npz"], [mlp, "--precision", "f8"], [mlp, "--disable", "everything"], [mlp, "--inputs", "other.npz"]):
        done = command("cairn", "diff", models("mlp").frozen, *words)
        assert done.returncode == 1 and len(done.stderr.strip().splitlines()) <= 3, done.stderr


# Scripts --------------------------------------------------------------------------------------------------------------

HEAD = """
import numpy as np
import tensorflow as tf
from npu_bridge.npu_init import *

random = np.random.RandomState(1)
"""
TAIL = """
with tf.Session(config=npu_config_proto()) as sess:
    sess.run(tf.global_variables_initializer())
    for _ in range(8):
        sess.run([train, loss], feeds)
"""
PERCEPTRON = """
x, y = tf.placeholder(tf.float32, [32, 16]), tf.placeholder(tf.int32, [32])
w1, w2 = tf.get_variable("w1", [16, 16]), tf.get_variable("w2", [16, 4])
hidden = tf.nn.tanh(tf.matmul(x, w1, name="first"), name="hidden")  # fault
logits = tf.matmul(hidden, w2, name="logits")
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)  # update
feeds = {x: random.randn(32, 16), y: random.randint(0, 4, 32)}
"""
IMAGES = """
x, y = tf.placeholder(tf.float32, [8, 8, 8, 3]), tf.placeholder(tf.float32, [8, 4])
k, w = tf.get_variable("k", [3, 3, 3, 8]), tf.get_variable("w", [128, 4])
conv = tf.nn.conv2d(x, k, 1, "SAME", name="first")
hidden = tf.nn.relu(conv, name="hidden")  # fault
pooled = tf.reshape(tf.nn.max_pool2d(hidden, 2, 2, "SAME"), [8, 128])
loss = tf.reduce_mean(tf.square(tf.matmul(pooled, w) - y))
train = tf.train.MomentumOptimizer(0.01, 0.9).minimize(loss)  # update
feeds = {x: random.randn(8, 8, 8, 3), y: random.randn(8, 4)}
"""
EMBEDDING = """
words, y = tf.placeholder(tf.int32, [16, 6]), tf.placeholder(tf.float32, [16, 1])
table, w = tf.get_variable("table", [20, 8]), tf.get_variable("w", [8, 8])
mean = tf.reduce_mean(tf.gather(table, words), 1)
hidden = tf.nn.sigmoid(tf.matmul(mean, w, name="first"), name="hidden")  # fault
loss = tf.reduce_mean(tf.square(tf.reduce_sum(hidden, 1, keepdims=True) - y))
train = tf.train.AdamOptimizer(0.01).minimize(loss)  # update
feeds = {words: random.randint(0, 20, (16, 6)), y: random.randn(16, 1)}
"""
SCRIPTS = {"perceptron": PERCEPTRON, "images": IMAGES, "embedding": EMBEDDING}
# Each with the pass that it depends on, as if that were wrong; "": a kernel.
FAULTS = {"scale": "", "bias": "", "element": "", "nan": "", "overflow": "", "transposed": "sink_transposes",
          "epsilon": "fold_constants", "fusion": "merge_equal_nodes", "stale": "take_constant_branches"}  # fmt: skip


def test_scripts_are_judged_as_models_are():
    from cairn_tf1 import recorded, truth

    nan, inf = float("nan"), float("inf")
    assert recorded.difference(np.array([1.0, nan, 3.0]), np.array([1.5, nan, -4.0])) == (7.0, 4.0)
    assert recorded.difference(np.array([nan]), np.array([inf]))[0] == recorded.difference(np.zeros(2), np.zeros(3))[0] == inf
    assert recorded.difference(np.array([1 + 2j], "c8"), np.array([1 - 2j], "c16")) == (4.0, 2.0)
    nodes = {"a": {"inputs": []}, "unseen": {"inputs": ["a", "gone"]}, "b": {"inputs": ["unseen"]}, "c": {"inputs": ["right"]},
             "right": {"inputs": ["b"]}, "around": {"inputs": ["alone"]}, "alone": {"inputs": ["around"]}}  # fmt: skip
    fails = {"a": True, "b": True, "c": True, "right": False, "alone": True}
    assert recorded.first_faults(fails, nodes) == {"a", "c", "alone"}
    exact = np.array([1.0, 2.0])
    row = truth.judged(exact.astype("f") + np.float32(1e-3), exact.astype("f"), exact)
    assert row["larger"] == "mine" and row["mine"]["most"] == pytest.approx(1e-3, rel=1e-3)
    assert truth.judged(None, exact.astype("f"), exact)["mine"] is None


def line_of(text, mark):
    return next(number for number, line in enumerate(text.splitlines(), 1) if line.endswith("# " + mark))


@pytest.fixture(scope="module")
def stock(tmp_path_factory):
    """stock(name): where the runs of a script on stock TensorFlow are kept, which are the same for all its faults."""
    root = tmp_path_factory.mktemp("stock")
    return lambda name: root / name


def script_diff(folder, text, *words, **environment):
    script = folder / "train.py"
    script.write_text(text)
    words = ["-m", "cairn_tf1.diff", "--script", script, "-o", folder / "work", "--json", *words]
    done = tensorflow_adapter.run_python(words, **environment)
    assert done.returncode in (0, 2), done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", ["perceptron", *(pytest.param(name, marks=pytest.mark.long) for name in ("images", "embedding"))])
def test_a_clean_script_raises_no_alarm(name, stock, tmp_path):
    result = script_diff(tmp_path, HEAD + SCRIPTS[name] + TAIL, "--steps", 4, "--stock", stock(name))
    assert result["equal"], result["first"]
    assert result["compared"] >= 12


LOWER = """
config = tf.ConfigProto()
entry = config.graph_options.rewrite_options.custom_optimizers.add()
entry.name = "NpuOptimizer"
entry.parameter_map["precision_mode"].s = b"allow_mix_precision"
""" + TAIL.replace("npu_config_proto()", "npu_config_proto(config)")


@pytest.mark.parametrize("name", ["images", "embedding", pytest.param("perceptron", marks=pytest.mark.long)])
def test_a_lower_precision_that_the_script_asks_for_is_no_fault(name, tmp_path):
    if not FAULTY.exists():
        pytest.skip(f"{FAULTY} is not built")
    text, words = HEAD + SCRIPTS[name] + LOWER, ("--steps", 4, "--stock", tmp_path / "stock")
    result = script_diff(tmp_path, text, *words)
    assert result["equal"] and result["least"] > 1e-3, result["first"]
    result = script_diff(tmp_path, text, *words, CAIRN_LIBRARY=str(FAULTY), CAIRN_FAULT="scale@first@2")
    assert not result["equal"] and result["culprit"]["name"] in ("first", "hidden") and result["culprit"]["cause"] == "kernel"


DROPOUT_IN_A_LOOP = """
x = tf.placeholder(tf.float32, [8, 12, 4])
cell = tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.BasicRNNCell(8), input_keep_prob=0.7, output_keep_prob=0.6, state_keep_prob=0.8)
outputs, _ = tf.nn.dynamic_rnn(cell, x, dtype=tf.float32)
loss = tf.reduce_mean(tf.square(outputs - 0.5))
train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
feeds = {x: random.randn(8, 12, 4)}
"""


def test_dropout_in_a_loop_draws_in_the_same_order_on_both_sides(tmp_path):
    result = script_diff(tmp_path, HEAD + DROPOUT_IN_A_LOOP + TAIL, "--steps", 3, "--no-cause")
    assert result["equal"], result["first"]


@pytest.mark.parametrize("tail,status", [(TAIL, 0), pytest.param(LOWER, 2, marks=pytest.mark.long)], ids=["full", "lower"])
def test_the_rounding_of_a_training_run_is_judged_by_the_run_in_float64(tail, status, tmp_path):
    (tmp_path / "train.py").write_text(HEAD + IMAGES + tail)
    words = ["-m", "cairn_tf1.diff", "--script", tmp_path / "train.py", "--truth", "f64", "-o", tmp_path / "work", "--json"]
    done = tensorflow_adapter.run_python(words)
    assert done.returncode == status, done.stdout + done.stderr
    result = json.loads(done.stdout)
    assert result["worse"] == bool(status)
    gradients = [row for row in result["rows"] if row["name"].startswith("gradients/")]
    assert len(gradients) >= 4 and all(row["theirs"]["rms"] < 1e-5 * row["size"] for row in gradients)
    assert {row["name"] for row in result["values"] if row["op"] == "variable"} >= {"k", "w"}
    if status:
        assert result["larger"]["mine"] > 4
    assert "gradients/" in (tmp_path / "work" / "index.html").read_text()


def fault_cases():
    """One script for each fault in turn; the other pairs are long."""
    for index, fault in enumerate(FAULTS):
        for number, name in enumerate(SCRIPTS):
            yield pytest.param(name, fault, marks=() if index % len(SCRIPTS) == number else pytest.mark.long)


@pytest.mark.parametrize("name,fault", list(fault_cases()))
def test_a_fault_in_training_is_named_with_its_line_and_its_pass_or_kernel(name, fault, stock, tmp_path):
    if not FAULTY.exists():
        pytest.skip(f"{FAULTY} is not built")
    text = HEAD + SCRIPTS[name] + TAIL
    planted = f"{fault}@first@2@{FAULTS[fault]}"
    result = script_diff(tmp_path, text, "--steps", 4, "--stock", stock(name), CAIRN_LIBRARY=str(FAULTY), CAIRN_FAULT=planted)
    assert not result["equal"]
    culprit = result["culprit"]
    assert culprit, result["first"]
    if fault == "stale":
        assert culprit["kind"] == "update" and culprit["line"] == f"train.py:{line_of(text, 'update')}"
    else:
        assert culprit["kind"] == "operator" and culprit["name"] in ("first", "hidden") and "first" in culprit["holds"]
        assert abs(int(culprit["line"].split(":")[1]) - line_of(text, "fault")) <= 1
        assert culprit["kernel"].startswith("cpu/")
    assert (culprit["cause"], culprit["pass"]) == ("pass" if FAULTS[fault] else "kernel", FAULTS[fault])


ESTIMATOR = """
def model_fn(features, labels, mode, params):
    hidden = tf.layers.dense(features, 16, tf.nn.relu, name="first")
    loss = tf.reduce_mean(tf.square(tf.layers.dense(hidden, 1) - labels))
    train = tf.train.GradientDescentOptimizer(0.01).minimize(loss, tf.train.get_global_step())
    return NPUEstimatorSpec(mode, loss=loss, train_op=train)

x, y = random.randn(64, 8).astype(np.float32), random.randn(64, 1).astype(np.float32)
estimator = NPUEstimator(model_fn, config=NPURunConfig(model_dir="model", save_checkpoints_steps=100))
estimator.train(lambda: tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(16, drop_remainder=True), steps=6)
"""
KERAS = """
set_keras_session_npu_config()
model = tf.keras.Sequential([tf.keras.layers.Dense(16, "relu", input_shape=(8,), name="first"), tf.keras.layers.Dense(1)])
model.compile(npu_keras_optimizer(tf.keras.optimizers.SGD(0.01)), "mse")
x, y = random.randn(64, 8), random.randn(64, 1)
model.fit(x, y, batch_size=16, epochs=2, shuffle=False, verbose=0)
"""
FUNCTION = """
import numpy as np
import npu_device as npu
import tensorflow as tf

npu.open().as_default()
tf.keras.utils.set_random_seed(1)
model = tf.keras.Sequential([tf.keras.layers.Dense(16, "relu", input_shape=(8,), name="first"), tf.keras.layers.Dense(1)])
random = np.random.RandomState(1)
x, y = random.randn(64, 8).astype(np.float32), random.randn(64, 1).astype(np.float32)
"""
FIT = """
model.compile(tf.keras.optimizers.SGD(0.01), "mse")
model.fit(x, y, batch_size=16, epochs=2, shuffle=False, verbose=0)
"""
LOOP = """
optimizer = tf.keras.optimizers.SGD(0.01)

@tf.function
def train(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x) - y))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return loss

for _ in range(6):
    train(tf.constant(x), tf.constant(y))
"""
KINDS = {"estimator": HEAD + ESTIMATOR, "keras": HEAD + KERAS, "fit": FUNCTION + FIT, "function": FUNCTION + LOOP}
# In functions TensorFlow itself has made one node of the layer.
NODES = {"estimator": "first/MatMul", "keras": "first/MatMul", "fit": "sequential/first/Relu", "function": "sequential/first/Relu"}


@pytest.mark.parametrize("kind", ["estimator", "fit", *(pytest.param(kind, marks=pytest.mark.long) for kind in ("keras", "function"))])
def test_other_kinds_of_training_are_looked_into(kind, tmp_path):
    if not FAULTY.exists():
        pytest.skip(f"{FAULTY} is not built")
    words = ["--steps", 3, *(["--tf2"] if kind in ("fit", "function") else [])]
    clean, faulty = tmp_path / "clean", tmp_path / "faulty"
    clean.mkdir(), faulty.mkdir()
    result = script_diff(clean, KINDS[kind], *words, "--stock", tmp_path / "stock")
    assert result["equal"] and result["compared"] >= 6, result["first"]
    result = script_diff(faulty, KINDS[kind], *words, "--stock", tmp_path / "stock", CAIRN_LIBRARY=str(FAULTY),
                         CAIRN_FAULT=f"scale@{NODES[kind]}@1")  # fmt: skip
    assert not result["equal"] and result["culprit"], result
    assert NODES[kind] in result["culprit"]["holds"] and result["culprit"]["cause"] == "kernel"


POLICY = """
tf.keras.mixed_precision.set_global_policy("mixed_float16")
model = tf.keras.Sequential([tf.keras.layers.Conv2D(8, 3, activation="relu", input_shape=(8, 8, 3), name="first"),
                             tf.keras.layers.BatchNormalization(), tf.keras.layers.Flatten(),
                             tf.keras.layers.Dense(4, dtype="float32", name="last")])
x, y = random.randn(64, 8, 8, 3).astype(np.float32), random.randn(64, 4).astype(np.float32)
"""
LOWERED = {
    "policy": FUNCTION + POLICY + FIT,
    "bfloat16": (FUNCTION + POLICY + FIT).replace("float16", "bfloat16"),
    "option": FUNCTION.replace("npu.open", 'npu.global_options().precision_mode = "allow_mix_precision"\nnpu.open') + FIT,
    "cast": FUNCTION + LOOP.replace("model(x)", "tf.cast(tf.cast(model(x), tf.float16), tf.float32)"),
}


@pytest.mark.parametrize("kind", ["policy", *(pytest.param(kind, marks=pytest.mark.long) for kind in ("bfloat16", "option", "cast"))])
def test_a_lower_precision_of_tensorflow_2_is_no_fault(kind, tmp_path):
    if not FAULTY.exists():
        pytest.skip(f"{FAULTY} is not built")
    node = "sequential_1/last/BiasAdd" if "last" in LOWERED[kind] else "sequential/dense/BiasAdd"
    words = ["--tf2", "--steps", 3, "--stock", tmp_path / "stock"]
    result = script_diff(tmp_path, LOWERED[kind], *words)
    assert result["equal"] and result["least"] > 1e-3, result["first"]
    result = script_diff(tmp_path, LOWERED[kind], *words, CAIRN_LIBRARY=str(FAULTY), CAIRN_FAULT=f"scale@{node}@1")
    assert not result["equal"] and result["culprit"], result
    assert result["culprit"]["name"] == node and result["culprit"]["cause"] == "kernel"


def test_eager_code_that_the_engine_has_no_part_in_is_told(tmp_path):
    result = script_diff(tmp_path, FUNCTION + LOOP.replace("@tf.function\n", ""), "--tf2", "--steps", 3)
    assert result["equal"] and result["eager"] == 3
    assert "TensorFlow itself runs one by one" in (tmp_path / "work" / "index.html").read_text()


def test_what_is_not_looked_into_is_said(tmp_path):
    if not FAULTY.exists():
        pytest.skip(f"{FAULTY} is not built")
    body = LOOP.replace("@tf.function\n", "").replace("model(x)", "forward(x)")
    body = "@tf.function\ndef forward(x):\n    return model(x)\n" + body
    result = script_diff(tmp_path, FUNCTION + body, "--tf2", "--steps", 3, CAIRN_LIBRARY=str(FAULTY),
                         CAIRN_FAULT="scale@sequential/first/Relu@1")  # fmt: skip
    assert not result["equal"] and result["eager"] == 3
    assert result["culprit"] or result["unseen"]


def test_runs_of_another_script_are_not_taken(tmp_path):
    (tmp_path / "train.py").write_text("one")
    (tmp_path / "stock").mkdir()
    (tmp_path / "stock" / "stock.json").write_text("{}")
    words = ["-m", "cairn_tf1.diff", "--script", tmp_path / "train.py", "--stock", tmp_path / "stock", "-o", tmp_path / "work"]
    done = tensorflow_adapter.run_python(words)
    assert done.returncode == 1 and "holds runs of another script" in done.stderr
