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
