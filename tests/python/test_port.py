"""cairn port: a script is migrated, trained on stock TensorFlow and on the engine, and the records are compared."""

import json

import numpy as np
import pytest
import tensorflow_adapter
from tensorflow_adapter import ROOT, run_python

tensorflow_adapter.use_packages()
from cairn_tf1 import port  # noqa: E402

SCRIPT = """
import numpy as np
import tensorflow as tf

{body}
"""


def port_of(tmp_path, body, *words):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT.format(body=body))
    return run_python(["-m", "cairn_tf1.port", script, "-o", tmp_path / "work", "--json", *words])


def test_the_digits_script_is_equal_on_both_engines(tmp_path):
    done = run_python(["-m", "cairn_tf1.port", ROOT / "examples/digits/train_tf1.py", "-o", tmp_path, "--steps", 5, "--json"])
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout)
    assert result["equal"] and result["variables"] >= 30 and result["compared"] >= 35
    assert result["clusters"]["on_engine"] >= result["clusters"]["numeric"] / 2
    assert "TensorFlow" in (tmp_path / "index.html").read_text()


def test_without_training_nothing_is_called_equal(tmp_path):
    done = port_of(tmp_path, "with tf.Session() as sess: print(sess.run(tf.constant(1) + 1))")
    assert done.returncode == 3
    assert "there is no training to compare" in done.stderr


def test_a_script_that_fails_is_shown_with_its_last_lines(tmp_path):
    done = port_of(tmp_path, "raise ValueError('no data here')")
    assert done.returncode == 3
    assert "does not run on tensorflow" in done.stderr and "no data here" in done.stderr


@pytest.mark.parametrize(
    "found", [np.array([1.0, 2.1]), np.array([1.0, np.nan]), np.array([1.0]), None], ids=["value", "nan", "shape", "missing"]
)
def test_what_differs_is_named(found):
    stock = {"fetch:0:loss:0": np.array(0.5), "variable:w": np.array([1.0, 2.0])}
    cairn = {"fetch:0:loss:0": np.array(0.5)} | ({} if found is None else {"variable:w": found})
    result = port.compare({"stock": stock, "again": stock, "cairn": cairn}, port.parse(["."]))
    assert not result["equal"]
    assert [row["key"] for row in result["unequal"]] == ["variable:w"]


def test_noise_of_the_framework_itself_is_allowed():
    stock, again, cairn = ({"variable:w": np.array([1.0, value])} for value in (2.0, 2.01, 1.97))
    assert port.compare({"stock": stock, "again": again, "cairn": cairn}, port.parse(["."]))["equal"]


DIFFERENT = """
import os
x = tf.get_variable("x", [4], initializer=tf.ones_initializer())
loss = tf.reduce_sum(tf.square(x)) * (1.01 if os.environ["CAIRN_ENGINE"] == "cairn" else 1.0)
train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for _ in range(3):
        sess.run([train, loss])
"""


def test_a_script_that_trains_otherwise_on_the_engine_is_not_equal(tmp_path):
    done = port_of(tmp_path, DIFFERENT)
    assert done.returncode == 1, done.stderr
    result = json.loads(done.stdout)
    unequal = {row["key"].partition(":")[0] for row in result["unequal"]}
    assert unequal == {"fetch", "after", "variable"} and result["steps"] == 3
    assert "cairn diff --script" in result["next"] and result["next"] in (tmp_path / "work/index.html").read_text()


def test_what_the_migration_could_not_change_explains_why_a_script_does_not_run(tmp_path):
    done = port_of(tmp_path, "import cupy")
    assert done.returncode == 3
    assert "cupy needs CUDA" in done.stderr and "train.py:5" in done.stderr


def test_the_program_of_a_project_is_found_or_asked_for(tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    (project / "net.py").write_text("import tensorflow as tf\n\n\ndef net():\n    return tf.Session()\n")
    (project / "run.py").write_text("import net\n\nif '__main__' == __name__:\n    raise ValueError(net.net.__name__)\n")
    done = run_python(["-m", "cairn_tf1.port", project, "-o", tmp_path / "work"])
    assert done.returncode == 3 and "ValueError: net" in done.stderr
    (project / "other.py").write_text("import net\n\nif __name__ == '__main__':\n    net.net()\n")
    done = run_python(["-m", "cairn_tf1.port", project, "-o", tmp_path / "work"])
    assert done.returncode == 2
    assert "--main names it (candidates: other.py, run.py)" in done.stderr


KINDS = """
small = tf.get_variable("small", [3], tf.bfloat16, tf.ones_initializer())
words = tf.get_variable("words", initializer=tf.constant(["a", "b"]))
x = tf.get_variable("x", [4], initializer=tf.ones_initializer())
train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(tf.square(x)))
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for _ in range(2):
        sess.run([train, words, small])
"""


def test_words_are_no_numbers_and_half_sizes_are(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT.format(body=KINDS))
    record = tmp_path / "record.npz"
    done = run_python(["-m", "cairn_tf1", script], CAIRN_RECORD=str(record))
    assert done.returncode == 0, done.stderr[-2000:]
    found = dict(np.load(record))
    assert found["trained"] == 2 and found["variable:small"].tolist() == [1, 1, 1]
    assert {"after:1:x", "after:2:x", "variable:x", "fetch:2:small:0"} <= found.keys() and "variable:words" not in found
    np.testing.assert_allclose(found["variable:x"], 0.64, rtol=1e-6)
