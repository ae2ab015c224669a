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
    result = port.compare({"stock": stock, "again": stock, "cairn": cairn}, {})
    assert result["verdict"] == port.NOT_EQUAL
    assert [row["key"] for row in result["unequal"]] == ["variable:w"]


def verdict(stock, again, cairn, races=None, key="after:2:w"):
    first, second, third = ({key: np.array([1.0, value])} for value in (stock, again, cairn))
    return port.compare({"stock": first, "again": second, "cairn": third}, races or {})["verdict"]


def test_noise_of_the_framework_itself_is_allowed():
    assert verdict(2.0, 2.01, 1.97) == port.EQUAL
    assert verdict(2.0, 2.0, 1.97) == port.NOT_EQUAL


def test_a_difference_of_nearly_nothing_is_none():
    tiny = {"variable:w": np.array([1e-12, 0.0])}
    other = {"variable:w": np.array([9e-11, 0.0])}
    assert port.compare({"stock": tiny, "again": tiny, "cairn": other}, {})["verdict"] == port.EQUAL


def test_where_the_framework_does_not_repeat_itself_nothing_is_proven():
    assert verdict(2.0, 1.0, 5.0) == port.NOT_REPRODUCIBLE
    assert verdict(2.0, 1.0, 2.0) == port.EQUAL


def test_what_a_last_bit_decides_is_no_fault():
    """A net in which rounding grows: stock repeats its own numbers, but no longer where its weights differ by a bit."""

    def compared(nudged):
        stock, cairn = ({f"after:{run}:w": np.array([1.0, value]) for run, value in enumerate(row)} for row in ((2, 2), (2, 5)))
        moved = {"after:0:w": np.array([1.0, 2.0]), "after:1:w": np.array([1.0, nudged])}
        return port.compare({"stock": stock, "again": stock, "cairn": cairn, "nudged": moved}, {})

    assert compared(2.0)["verdict"] == port.NOT_EQUAL
    found = compared(4.0)
    assert found["verdict"] == port.NOT_REPRODUCIBLE and found["reasons"] == [port.ROUNDING]
    assert [row["key"] for row in found["unequal"]] == ["after:1:w"]


def test_a_number_that_timing_decides_leaves_the_rest_equal():
    stock = {"fetch:1:step:0": np.array(1.0), "after:1:w": np.array([1.0])}
    cairn = {"fetch:1:step:0": np.array(2.0), "after:1:w": np.array([1.0])}
    found = port.compare({"stock": stock, "again": stock, "cairn": cairn}, {"step": "in no order"})
    assert found["verdict"] == port.EQUAL and found["unequal_count"] == 1 and found["reasons"] == ["in no order"]
    assert port.compare({"stock": stock, "again": stock, "cairn": cairn}, {})["verdict"] == port.NOT_EQUAL


@pytest.mark.parametrize("key", ["after:2:w", "variable:w"])
def test_what_timing_decides_is_no_fault(key):
    assert verdict(2.0, 2.0, 1.97, {"w": "read and updated in no order"}, key) == port.NOT_REPRODUCIBLE
    assert verdict(2.0, 2.0, 1.97, {"v": "read and updated in no order"}, key) == port.NOT_EQUAL


def test_runs_in_another_order_prove_nothing():
    """Threads of a script: which one's run is the second, timing decides, in TensorFlow as well."""

    def runs(*order):
        return {f"after:{run}:{name}": np.array([1.0]) for run, name in enumerate(order)}

    def compared(again, cairn):
        return port.compare({"stock": runs("a", "b", "a"), "again": again, "cairn": cairn}, {})

    found = compared(runs("a", "a", "b"), runs("a", "a", "a"))
    assert found["verdict"] == port.NOT_REPRODUCIBLE and found["reasons"] == [port.ORDER]
    assert compared(runs("a", "b", "b"), runs("a", "a", "b"))["verdict"] == port.NOT_EQUAL  # differs before that
    assert compared(runs("a", "b", "a"), runs("a", "b", "b"))["verdict"] == port.NOT_EQUAL


def test_a_run_that_timing_adds_moves_no_later_one():
    """A hook reads the counter of steps once more where it was read before its update."""
    stock = {"after:1:w": np.array([1.0]), "fetch:2:step/add:0": np.array([1.0]), "after:3:w": np.array([2.0]), "variable:7:w": np.array([2.0])}
    cairn = {"after:1:w": np.array([1.0]), "after:2:w": np.array([2.0]), "variable:7:w": np.array([2.0])}
    found = port.compare({"stock": stock, "again": stock, "cairn": cairn}, {"step/add": "read and updated in no order"})
    assert found["verdict"] == port.EQUAL and [row["key"] for row in found["unequal"]] == ["fetch:1.001:step/add:0"]
    found = port.compare({"stock": stock, "again": stock, "cairn": cairn | {"after:2:w": np.array([2.1])}}, {"step/add": "in no order"})
    assert found["verdict"] == port.NOT_EQUAL


def test_the_interface_is_that_of_the_program_not_of_the_most_files():
    files = [{"path": "old.py", "tf": 1}, {"path": "older.py", "tf": 1}, {"path": "new.py", "tf": 2}, {"path": "util.py", "tf": 0}]
    found = [port.generation(name, {"tf": 1, "files": files}) for name in ("new.py", "old.py", "util.py")]
    assert found == [2, 1, 1]


def test_weights_that_a_function_makes_are_moved_as_well(tmp_path):
    """A Keras model without a size of its inputs makes its variables inside the first call of its step."""
    script = tmp_path / "train.py"
    script.write_text(LAZY)
    values = []
    for seed in ("", "1", "2"):
        record = tmp_path / f"{seed}.npz"
        done = run_python(["-m", "cairn_tf1", "--tf2", script], CAIRN_RECORD=str(record), CAIRN_RECORD_STEPS="1", CAIRN_RECORD_NUDGE=seed)
        assert done.returncode == 0, done.stderr
        with np.load(record) as arrays:
            values.append(next(arrays[key] for key in arrays.files if key.startswith("variable:") and "kernel" in key))
    for one, other in ((0, 1), (0, 2), (1, 2)):
        moved = np.abs(values[one] - values[other]).max()
        assert 0 < moved < 1e-5


LAZY = """
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Dense(4, kernel_initializer=tf.keras.initializers.GlorotUniform(1))])
optimizer = tf.keras.optimizers.SGD(1e-3)


@tf.function
def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(x) ** 2)
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return loss


step(tf.ones([3, 5]))
"""


def test_what_differs_before_a_race_is_a_fault():
    stock = {"after:1:v": np.array([1.0]), "after:2:w": np.array([1.0])}
    cairn = {"after:1:v": np.array([2.0]), "after:2:w": np.array([2.0])}
    found = port.compare({"stock": stock, "again": stock, "cairn": cairn}, {"w": "in no order"})
    assert found["verdict"] == port.NOT_EQUAL


def test_options_stand_before_and_after_the_path_and_the_scripts_own_after_two_dashes():
    options = port.parse(["project", "--main", "train.py", "--steps", "3", "--", "--epochs", "1", "--", "x"])
    assert options.path.name == "project" and options.main == "train.py" and options.steps == 3
    assert options.arguments == ["--epochs", "1", "--", "x"]
    assert port.parse(["--steps", "3", "project"]).arguments == []


def test_a_folder_of_the_users_is_not_replaced(tmp_path, capfd):
    (tmp_path / "migrated").mkdir()
    (tmp_path / "migrated" / "train.py").write_text("mine")
    (tmp_path / "train.py").write_text("import tensorflow")
    assert port.main([tmp_path / "train.py", "-o", tmp_path]) == 2
    assert "name another work folder with -o" in capfd.readouterr().err
    assert (tmp_path / "migrated" / "train.py").read_text() == "mine"


def test_words_of_the_script_without_two_dashes_are_told(capsys):
    with pytest.raises(SystemExit):
        port.parse(["project", "--epochs", "1"])
    assert "arguments of the script stand after --" in capsys.readouterr().err


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
    (project / "run.py").write_text("import net\n\nif '__main__' == __name__:\n    net.net().close()\n    raise ValueError('net')\n")
    done = run_python(["-m", "cairn_tf1.port", project, "-o", tmp_path / "work"])
    assert done.returncode == 3 and "ValueError: net" in done.stderr
    (project / "other.py").write_text("import net\n\nif __name__ == '__main__':\n    net.net()\n")
    done = run_python(["-m", "cairn_tf1.port", project, "-o", tmp_path / "work"])
    assert done.returncode == 2
    assert "--main names it (candidates: other.py, run.py)" in done.stderr
    done = run_python(["-m", "cairn_tf1.port", project, "-m", "train.py", "-o", tmp_path / "work"])
    assert done.returncode == 2 and f"there is no train.py in {project}; candidates: other.py, run.py" in done.stderr
    done = run_python(["-m", "cairn_tf1.port", project, "-m", project / "run.py", "-o", tmp_path / "work"])
    assert done.returncode == 3 and "ValueError: net" in done.stderr
    for name in ("run.py", "other.py"):
        (project / name).unlink()
    (project / "net2.py").write_text("import tensorflow as tf\n\n\ndef net():\n    return tf.Session()\n")
    done = run_python(["-m", "cairn_tf1.port", project, "-o", tmp_path / "work"])
    assert done.returncode == 2 and "--main names it (candidates: net.py, net2.py)" in done.stderr


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


BY_HAND = """
import sys
import numpy as np
import tensorflow as tf
data = np.load("data/points.npy")
rate = float(sys.argv[sys.argv.index("--rate") + 1])
x = tf.placeholder(tf.float32, [None, 3])
w = tf.get_variable("w", [3, 1])
loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - 1.0))
update = tf.assign_sub(w, rate * tf.gradients(loss, w)[0])
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for _ in range(4):
        sess.run([update, loss], {x: data})
open("trained.txt", "w").write("done")
"""


def test_a_folder_with_one_script_that_reads_beside_itself_and_assigns_by_hand(tmp_path):
    project = tmp_path / "project"
    (project / "data").mkdir(parents=True)
    np.save(project / "data" / "points.npy", np.random.RandomState(0).rand(8, 3).astype(np.float32))
    (project / "fit.py").write_text(BY_HAND)
    before = sorted(project.rglob("*"))
    done = run_python(["-m", "cairn_tf1.port", project, "-o", project / "port", "--json", "--", "--rate", "0.1"])
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout)
    assert result["steps"] == 4 and result["variables"] == 1 and result["arguments"] == ["--rate", "0.1"]
    assert sorted(path for path in project.rglob("*") if "port" not in path.relative_to(project).parts) == before


RACING = """
w = tf.get_variable("w", [4], initializer=tf.ones_initializer())
slow = tf.get_variable("slow", [400, 400], initializer=tf.ones_initializer())
first = tf.assign(w, w * 2.0)
second = tf.assign_add(w, tf.fill([4], tf.reduce_mean(tf.matmul(slow, slow))))
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for _ in range(3):
        sess.run([first.op, second.op])
"""


def test_what_two_updates_in_no_order_give_is_not_called_wrong(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT.format(body=RACING))
    record = tmp_path / "record.npz"
    done = run_python(["-m", "cairn_tf1", script], CAIRN_RECORD=str(record))
    assert done.returncode == 0, done.stderr[-2000:]
    races = json.loads(str(np.load(record)["races"]))
    assert set(races) >= {"w"} and "slow" not in races
    assert "train.py:" in races["w"] and "in no order" in races["w"]


def test_steps_of_an_optimizer_are_no_race(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT.format(body=ORDERED))
    record = tmp_path / "record.npz"
    done = run_python(["-m", "cairn_tf1", script], CAIRN_RECORD=str(record))
    assert done.returncode == 0, done.stderr[-2000:]
    races = json.loads(str(np.load(record)["races"]))
    assert not {"w", "loss", "batch_normalization/moving_mean"} & set(races), races


ORDERED = """
step = tf.train.get_or_create_global_step()
x = tf.layers.batch_normalization(tf.ones([8, 4]) * tf.get_variable("w", [4]), training=True)
loss = tf.add_n([tf.reduce_mean(tf.square(tf.layers.dense(x, 1))), tf.nn.l2_loss(tf.trainable_variables()[0])], name="loss")
with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
    train = tf.train.AdamOptimizer(0.1).minimize(loss, global_step=step)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for _ in range(2):
        sess.run([train, loss])
"""


LOGS = {
    "plain": ("""Traceback (most recent call last):
  File "/lib/site-packages/cairn_tf1/__main__.py", line 9, in main
  File "/work/train.py", line 12, in <module>
    read("x")
  File "/lib/site-packages/numpy/lib/npyio.py", line 4, in load
FileNotFoundError: [Errno 2] No such file or directory: 'x.npy'""",
              "train.py:12: FileNotFoundError: [Errno 2] No such file or directory: 'x.npy'"),
    "graph": ("""Traceback (most recent call last):
  File "/work/train.py", line 30, in <module>
    sess.run(loss)
  File "/lib/site-packages/tensorflow/python/client/session.py", line 970, in run
tensorflow.python.framework.errors_impl.InvalidArgumentError: Graph execution error:

Detected at node 'MatMul' defined at (most recent call last):
  File "/work/train.py", line 11, in <module>
    tf.matmul(a, b)
Node: 'MatMul'
Matrix size-incompatible: In[0]: [2,3], In[1]: [4,5]
\t [[{{node MatMul}}]]""",
              "train.py:30: InvalidArgumentError: Matrix size-incompatible: In[0]: [2,3], In[1]: [4,5]"),
    "own words": ("loading\nno data in /tmp/x", "no data in /tmp/x"),
    "nothing": ("", "it said nothing"),
}  # fmt: skip


@pytest.mark.parametrize("kind", LOGS)
def test_the_cause_of_a_failure_is_quoted_not_its_frames(kind, tmp_path):
    text, sentence = LOGS[kind]
    (tmp_path / "log").write_text(text)
    assert port.recorded.cause(tmp_path / "log") == sentence


def test_large_files_and_hidden_folders_are_linked_into_the_folder_of_a_run(tmp_path, monkeypatch):
    monkeypatch.setattr(port.recorded, "COPIED_FILE", 10)
    project, folder = tmp_path / "project", tmp_path / "run"
    (project / "sub").mkdir(parents=True)
    (project / ".git").mkdir()
    (project / "sub" / "small").write_text("s")
    (project / "large").write_text("l" * 11)
    port.recorded.lay_out(project, folder)
    assert (folder / "large").is_symlink() and (folder / ".git").is_symlink()
    assert not (folder / "sub").is_symlink() and not (folder / "sub" / "small").is_symlink()
    (folder / "sub" / "small").write_text("changed")
    assert (project / "sub" / "small").read_text() == "s"


def test_work_folders_beside_a_script_are_not_copied_into_further_ones(tmp_path):
    """Each would hold copies of all others: three times as much with every one."""
    for name in ("first", "second"):
        (tmp_path / name / "stock.run").mkdir(parents=True)
        (tmp_path / name / port.ending.WORK_MARK).touch()
    (tmp_path / "train.py").write_text("pass")
    port.recorded.lay_out(tmp_path, tmp_path / "first" / "again.run")
    assert [path.name for path in (tmp_path / "first" / "again.run").iterdir()] == ["train.py"]
