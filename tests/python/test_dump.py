"""Dumps of training under TensorFlow: asked for by session options, with script lines, and the watch for overflow."""

import json

import numpy as np
import pytest
import tensorflow_adapter

SCRIPT = """
import sys
import numpy as np
import tensorflow as tf
from npu_bridge.npu_init import *
from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig

x = tf.placeholder(tf.float32, [16, 8], name="x")
w = tf.get_variable("w", [8, 4], initializer=tf.constant_initializer(0.1))
hidden = tf.nn.relu(tf.matmul(x, w, name="product"), name="hidden")
loss = tf.reduce_mean(tf.square(hidden - {loss}), name="loss")
train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)

config = tf.ConfigProto()
custom = config.graph_options.rewrite_options.custom_optimizers.add()
custom.name = "NpuOptimizer"
custom.parameter_map["use_off_line"].b = True
for key, value in {options}.items():
    field = custom.parameter_map[key]
    if isinstance(value, bool):
        field.b = value
    else:
        field.s = value.encode()
config.graph_options.rewrite_options.remapping = RewriterConfig.OFF
values = np.random.RandomState(1).rand(16, 8).astype(np.float32)
with tf.Session(config=config) as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(6):
        found = sess.run([train, hidden, loss], {{x: values}})[1]
        np.save(f"hidden{{step}}.npy", found)
"""


def run(tmp_path, options, loss="1.0"):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT.format(options=options, loss=loss))
    done = tensorflow_adapter.run_python(["-m", "cairn_tf1", script], engine="cairn", PWD=str(tmp_path))
    return done


@pytest.fixture
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def entries(folder):
    for manifest in sorted(folder.rglob("manifest.jsonl")):
        for line in manifest.read_text().splitlines():
            yield manifest.parent, json.loads(line)


def test_the_steps_asked_for_are_dumped_with_their_script_lines(in_folder):
    done = run(in_folder, {"enable_dump": True, "dump_path": str(in_folder / "dumps"), "dump_step": "1|3-4", "dump_mode": "all"})
    assert done.returncode == 0, done.stderr
    training = [(folder, entry) for folder, entry in entries(in_folder / "dumps") if "hidden" in str(entry["sources"])]
    assert {entry["step"] for _, entry in training} == {1, 3, 4}
    assert all(entry["location"].startswith("train.py:") for _, entry in training)
    assert any(entry["location"] == "train.py:10" for _, entry in training)
    (stamp,) = (in_folder / "dumps").iterdir()
    assert len(stamp.name) == 14 and stamp.name.isdigit()
    folder = training[0][0].relative_to(stamp).parts
    assert folder[0] == "0" and folder[2].isdigit() and folder[3] == "1"  # device, model, model id, step


def test_what_is_dumped_is_what_the_script_fetches(in_folder):
    done = run(in_folder, {"enable_dump": True, "dump_path": str(in_folder / "dumps"), "dump_step": "2"})
    assert done.returncode == 0, done.stderr
    files = [folder / entry["file"] for folder, entry in entries(in_folder / "dumps") if entry["op"] == "hidden"]
    converted = in_folder / "npy"
    words = ["convert", "-d", str(files[0]), "-out", str(converted)]
    done = tensorflow_adapter.run_python(["-c", f"import os; os.execvp('cairn', ['cairn', 'msaccucmp'] + {words!r})"], PATH=_path())
    assert done.returncode == 0, done.stderr
    arrays = [np.load(file) for file in converted.iterdir()]
    assert any(array.shape == (16, 4) and np.array_equal(array, np.load(in_folder / "hidden2.npy")) for array in arrays)


def _path():
    import os
    import sys

    return os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]


def test_the_operator_that_overflows_is_named(in_folder):
    options = {"enable_dump_debug": True, "dump_path": str(in_folder / "dumps")}
    done = run(in_folder, options, loss="tf.log(tf.zeros([16, 4]), name='hole')")
    assert done.returncode == 0, done.stderr
    told = [line for line in done.stderr.splitlines() if line.startswith("overflow: step 0:")]
    assert told and "(train.py:11)" in told[0], done.stderr
    assert list((in_folder / "dumps").rglob("Opdebug.Node_OpDebug.*"))


def test_wrong_options_are_told_in_the_platforms_words(in_folder):
    done = run(in_folder, {"enable_dump": True, "dump_path": str(in_folder / "dumps"), "dump_step": "5-3"})
    assert done.returncode != 0
    assert "dump_step string style is error, correct example:'0|5|10|50-100'" in done.stderr


def several_results(tf, tf1):
    x = tf1.placeholder(tf.float32, [4, 12], name="x")
    h = tf.tanh(x * 1.5 + 0.25, name="h")
    a, b, c = tf.split(h, 3, axis=1, name="split")
    d, e = tf.split(h, [5, 7], axis=1, name="splitv")
    values, places = tf.math.top_k(h, 3, name="topk")
    rows = tf.unstack(tf.sin(h), axis=0, name="unstack")
    _, index = tf.unique(tf.cast(x[0] * 3, tf.int32), name="unique")
    mean, variance = tf.nn.moments(h, [0], name="moments")
    # What is computed element by element reads slices where they are; sums along an axis take them as they stand.
    a, b, c, d, e, first, last = (tf.cumsum(part) for part in (a, b, c, d, e, rows[0], rows[3]))
    parts = [a * 2, b + c, tf.exp(d)[:, :4], e[:, :4] * 3, values, tf.cast(places, tf.float32) * 2.0]
    parts += [(first + last)[None] * tf.ones([4, 1]), (mean * variance)[None] * tf.ones([4, 1])]
    parts += [tf.ones([4, 1]) * tf.reduce_sum(tf.cast(index, tf.float32))]
    tf.concat(parts, 1, name="y")


@pytest.mark.parametrize("engines", ["cpu,reference", "reference"])
def test_each_result_of_an_operator_has_its_own_number(engines, command, tmp_path):
    import tensorflow as tf

    tf1, graph = tf.compat.v1, tf.Graph()
    (tmp_path / "golden").mkdir()
    x = np.random.default_rng(0).normal(size=(4, 12)).astype("f")
    np.save(tmp_path / "x.npy", x)
    with graph.as_default(), tf1.Session() as session:
        several_results(tf, tf1)
        (tmp_path / "net.pb").write_bytes(graph.as_graph_def().SerializeToString())
        asked = [(op.name, i, tensor) for op in graph.get_operations() if op.type not in ("Const", "Placeholder")
                 for i, tensor in enumerate(op.outputs)]
        for (name, i, _), value in zip(asked, session.run([tensor for *_, tensor in asked], {"x:0": x})):
            np.save(tmp_path / "golden" / f"{name.replace('/', '_')}.{i}.1605000000000000.npy", value)
    done = command("cairn", "run", "net.pb", "--input", "x=x.npy", "--dump", "dumps", "--engines", engines)
    assert done.returncode == 0, done.stderr
    done = command("cairn", "compare", "dumps", "golden", "--json", "-")
    rows = [row for row in json.loads(done.stdout)["rows"] if row["golden"] != "*" and row["mine"] != "*"]
    assert done.returncode == 0 and {row["verdict"] for row in rows} == {"pass"}
    found = {tuple(row["tensor"].rsplit(":", 2)[::2]) for row in rows}
    wanted = {("split", 3), ("splitv", 2), ("topk", 2)}
    assert {(name, str(i)) for name, count in wanted for i in range(count)} | {("unstack", "0"), ("unstack", "3")} <= found
    # One result that is wrong is the one that is named.
    for file in (tmp_path / "golden").glob("split.1.*"):
        np.save(file, np.load(file) * 1.5)
    done = command("cairn", "compare", "dumps", "golden")
    assert done.returncode == 2 and "first suspect: split:output:1" in done.stdout
