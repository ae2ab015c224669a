"""Processes that fork while a model runs, and the commands in Python whose streams fail."""

import multiprocessing
import os
import resource
import signal
import subprocess
import threading
import time

import numpy as np
import pytest
import tensorflow_adapter
from conftest import BIN

import cairn

MODEL = """module @m {
  func @main(%x: f32[?n, 64]) -> (%y: f32[?n, 64]) {
    %a = exp %x : f32[?n, 64]
    %b = neg %a : f32[?n, 64]
    %c = softmax %b : f32[?n, 64]
    %y = relu %c : f32[?n, 64]
    return %y
  }
}
"""
STREAMS = {"out": 1, "errors": 2}


@pytest.fixture
def model(tmp_path):
    (tmp_path / "m.cairn").write_text(MODEL)
    return cairn.load(tmp_path / "m.cairn", threads=4)


@pytest.fixture
def busy(model):
    """The model, which two threads run all the time."""
    stop = threading.Event()

    def work():
        x = np.ones((512, 64), np.float32)
        while not stop.is_set():
            model.run({"x": x})

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    yield model
    stop.set()
    for thread in threads:
        thread.join()


def total(model, rows):
    return float(model.run({"x": np.ones((rows, 64), np.float32)})["y"].sum())


def wait_for(child, seconds=60):
    """The child's exit status; None: it hangs."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return None


def test_children_run_the_model_that_threads_of_the_parent_were_running(busy, tmp_path):
    ends = []
    for i in range(40):
        child = os.fork()
        if child == 0:
            try:
                good = abs(total(busy, 512) - 512) < 1 and abs(total(busy, 7 + i) - 7 - i) < 0.1
                other = cairn.load(tmp_path / "m.cairn", threads=2)
                good = good and abs(total(other, 300) - 300) < 1
                os._exit(0 if good else 1)
            finally:
                os._exit(2)
        ends.append(wait_for(child))
    assert ends == [0] * 40


def _worker(rows):
    return total(_worker.model, rows)


def test_a_pool_of_forked_workers_shares_a_model(busy):
    _worker.model = busy
    with multiprocessing.get_context("fork").Pool(4) as pool:
        sums = pool.map_async(_worker, range(1, 33)).get(timeout=120)
    assert np.allclose(sums, range(1, 33), rtol=1e-3)


def test_a_child_that_ends_in_the_ordinary_way_waits_for_nobody(busy):
    for _ in range(5):
        process = multiprocessing.get_context("fork").Process(target=total, args=(busy, 64))
        process.start()
        process.join(60)
        assert process.exitcode == 0


def test_a_recording_in_the_parent_is_left_alone_by_children(busy, tmp_path):
    with cairn.Profiler(output_path=str(tmp_path / "prof")):
        ends = []
        for _ in range(10):
            child = os.fork()
            if child == 0:
                total(busy, 64)
                os._exit(0)
            ends.append(wait_for(child))
    assert ends == [0] * 10


def lost(stream, how, ignored=False):
    """What makes one of a command's streams fail, before it starts."""

    def change():
        number = STREAMS[stream]
        if how == "closed":
            os.close(number)
        elif how == "full":
            os.dup2(os.open("/dev/full", os.O_WRONLY), number)
        else:
            signal.signal(signal.SIGPIPE, signal.SIG_IGN)
            read, write = os.pipe()
            os.dup2(write, number)
            os.close(read)
            os.close(write)

    return change


@pytest.mark.parametrize("how", ["closed", "full", "broken"])
@pytest.mark.parametrize("words", [["port", "--help"], ["diff", "--script", "--help"], ["tf1", "--help"], ["ms", "--help"]])
def test_output_of_the_commands_in_python_that_is_lost_is_an_error(words, how):
    done = subprocess.run([BIN / "cairn", *words], stderr=subprocess.PIPE, text=True, preexec_fn=lost("out", how))
    assert done.returncode > 0 and "Traceback" not in done.stderr and "usage" not in done.stderr, done.stderr


@pytest.mark.parametrize("words", [["port"], ["diff", "--script"], ["tf1"], ["ms"]])
def test_no_line_of_help_of_the_commands_in_python_has_more_than_100_columns(words):
    done = subprocess.run([BIN / "cairn", *words, "--help"], capture_output=True, text=True)
    assert done.returncode == 0 and max(map(len, done.stdout.splitlines())) <= 100, done.stdout


WRONG_USE = {
    "port": ["", "missing.py", "--no-such", "--to mindspore", "--to mindspore missing.py", "--to nothing x.py"],
    "diff": ["--script", "--script missing.py", "--script --no-such"],
    "tf1": ["", "missing.py", "--no-such x.py"],
    "ms": ["", "missing.py", "--no-such", "-m"],
}


@pytest.mark.parametrize("verb", WRONG_USE)
def test_wrong_use_of_the_commands_in_python_is_told_by_the_verbs_name(verb, tmp_path):
    for words in WRONG_USE[verb]:
        done = subprocess.run([BIN / "cairn", verb, *words.split()], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode > 0 and done.stderr.startswith(f"error: {verb}: "), (words, done.stderr)
        assert len(done.stderr.splitlines()) <= 2, done.stderr


@pytest.mark.parametrize("how", ["closed", "full", "broken"])
def test_a_refusal_that_is_lost_keeps_its_status(how, tmp_path):
    for words, status in ((["port", tmp_path / "missing.py"], 2), (["diff", "--script", tmp_path / "missing.py"], 1)):
        done = subprocess.run([BIN / "cairn", *words], stdout=subprocess.PIPE, preexec_fn=lost("errors", how))
        assert done.returncode == status, words


MINDSPORE_SCRIPT = """
import sys
import numpy as np
import mindspore as ms
import mindspore.dataset as ds
from mindspore import Tensor, nn
from mindspore.train.callback import CheckpointConfig, ModelCheckpoint, SummaryCollector
net = nn.Dense(4, 2)
if sys.argv[1] == "train":
    rows = {"x": np.ones((8, 4), np.float32), "y": np.ones((8, 2), np.float32)}
    data = ds.NumpySlicesDataset(rows, shuffle=False).batch(4)
    model = ms.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1))
    model.train(1, data, callbacks=[ModelCheckpoint("m", "ck", CheckpointConfig(save_checkpoint_steps=1))])
elif sys.argv[1] == "save":
    ms.save_checkpoint(net, "net.ckpt")
elif sys.argv[1] == "summary":
    with ms.SummaryRecord("logs") as record:
        record.add_value("scalar", "loss", Tensor(1.0))
        record.record(1)
else:
    ms.export(net, Tensor(np.ones((1, 4), np.float32)), file_name="net", file_format=sys.argv[1])
"""
TF1_SCRIPT = """
import tensorflow as tf
w = tf.get_variable("w", [2])
step = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(tf.square(w)))
saver = tf.train.Saver()
with tf.Session() as s:
    s.run(tf.global_variables_initializer())
    s.run(step)
    saver.save(s, "ck/model")
"""


def full_disk():
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))


@pytest.mark.parametrize(
    ("words", "file"),
    [
        (["ms", "ms.py", "train"], "m-graph.meta"),
        (["ms", "ms.py", "save"], "net.ckpt"),
        (["ms", "ms.py", "MINDIR"], "net.mindir"),
        (["ms", "ms.py", "ONNX"], "net.onnx"),
        (["ms", "ms.py", "OM"], "net.om"),
        (["ms", "ms.py", "summary"], "events"),
        (["port", "tf1.py", "-o", "work"], "work"),
        (["tf1", "tf1.py"], "ck/model"),
    ],
)
def test_a_full_disk_is_told_with_the_file_by_the_commands_in_python(words, file, tmp_path):
    for name, text in (("ms.py", MINDSPORE_SCRIPT), ("tf1.py", TF1_SCRIPT)):
        (tmp_path / name).write_text(text)
    for name in ("net.ckpt", "net.mindir", "net.onnx", "net.om"):
        (tmp_path / name).write_text("as before")
    done = subprocess.run([BIN / "cairn", *words], cwd=tmp_path, capture_output=True, text=True, preexec_fn=full_disk)
    assert done.returncode > 0, done.stdout
    told = [line for line in done.stderr.splitlines() if "File too large" in line and file in line]
    assert told and "cannot be written" in told[-1], done.stderr
    assert words[0] == "ms" or (done.stderr.count("error: ") == 1 and "Traceback" not in done.stderr), done.stderr
    assert not [*tmp_path.rglob("*.part")]
    assert {(tmp_path / f"net.{kind}").read_text() for kind in ("ckpt", "mindir", "onnx", "om")} == {"as before"}


WAITING_SCRIPT = """
import os
import signal
import tensorflow as tf
tf.get_variable("w", [2])
open(os.environ["STARTED"], "w").write(str(os.getpid()))
signal.pause()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.parametrize("words", [["port", "wait.py"], ["diff", "--script", "wait.py"]])
def test_a_signal_to_the_commands_in_python_is_told_and_ends_the_scripts(words, number, tmp_path):
    (tmp_path / "wait.py").write_text(WAITING_SCRIPT)
    def plain():
        for each in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            signal.signal(each, signal.SIG_DFL if each != signal.SIGINT else signal.default_int_handler)

    started = subprocess.Popen([BIN / "cairn", *words], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={**os.environ, "STARTED": str(tmp_path / "started")}, preexec_fn=plain)  # fmt: skip
    written = tmp_path / "started"
    while started.poll() is None and not (written.exists() and written.read_text()):
        time.sleep(0.05)
    assert started.poll() is None, started.communicate()
    script = int(written.read_text())
    started.send_signal(number)
    _, errors = started.communicate(timeout=120)
    assert started.returncode == -number and "Traceback" not in errors, errors
    assert errors == ("" if number == signal.SIGINT else f"error: {words[0]}: ended by {number.name}\n")
    end = time.monotonic() + 60
    while os.path.exists(f"/proc/{script}") and time.monotonic() < end:
        time.sleep(0.05)
    assert not os.path.exists(f"/proc/{script}") and not [*tmp_path.rglob("*.part")]


def test_a_signal_to_a_script_is_the_scripts_and_what_was_being_written_goes_with_the_next_write(tmp_path):
    ending = "import os, signal\nos.fsync = lambda handle: os.kill(os.getpid(), signal.SIGTERM)\n"
    (tmp_path / "ended.py").write_text(ending + MINDSPORE_SCRIPT)
    (tmp_path / "ms.py").write_text(MINDSPORE_SCRIPT)
    (tmp_path / "net.ckpt").write_text("as before")
    done = subprocess.run([BIN / "cairn", "ms", "ended.py", "save"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == -signal.SIGTERM and done.stderr == ""
    assert (tmp_path / "net.ckpt").read_text() == "as before" and len([*tmp_path.glob("*.part")]) == 1
    subprocess.run([BIN / "cairn", "ms", "ms.py", "save"], cwd=tmp_path, check=True)
    assert (tmp_path / "net.ckpt").stat().st_size > 20 and not [*tmp_path.glob("*.part")]


def without_threads(words):
    """The words under another user, whom limits bind, with the right to read what is root's."""
    user = ["setpriv", "--reuid", "65534", "--inh-caps", "+dac_override", "--ambient-caps", "+dac_override"]
    return [*(user if os.geteuid() == 0 else []), *map(str, words)], lambda: resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["ms", "ms.py", "save"], None),
        (["tf1", "tf1.py"], "error: tf1: TensorFlow cannot be loaded: can't start new thread"),
        (["port", "tf1.py"], "error: port: no process can be started: Resource temporarily unavailable"),
        (["diff", "--script", "tf1.py"], "error: diff: no process can be started: Resource temporarily unavailable"),
    ],
)
def test_the_commands_in_python_without_threads_do_without_or_say_so(words, said, tmp_path):
    for name, text in (("ms.py", MINDSPORE_SCRIPT), ("tf1.py", TF1_SCRIPT)):
        (tmp_path / name).write_text(text)
    words, limit = without_threads([BIN / "cairn", *words])
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, preexec_fn=limit)
    if said is None:
        assert done.returncode == 0 and (tmp_path / "net.ckpt").stat().st_size > 0, done.stderr
    else:
        assert done.returncode > 0 and done.stderr.startswith(said) and len(done.stderr.splitlines()) == 1, done.stderr


@pytest.mark.parametrize("megabytes", [100, 400])
@pytest.mark.parametrize("words", [["ms", "ms.py", "save"], ["tf1", "tf1.py"], ["port", "tf1.py"], ["diff", "--script", "tf1.py"]])
def test_the_commands_in_python_without_memory_say_so_in_a_sentence(words, megabytes, tmp_path):
    for name, text in (("ms.py", MINDSPORE_SCRIPT), ("tf1.py", TF1_SCRIPT)):
        (tmp_path / name).write_text(text)
    limit = (megabytes << 20, megabytes << 20)
    done = subprocess.run([BIN / "cairn", *words], cwd=tmp_path, capture_output=True, text=True,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limit))  # fmt: skip
    assert done.returncode >= 0, done.stderr
    told = f"error: {words[0]}: " in done.stderr and "Traceback" not in done.stderr
    of_the_script = words[1] in done.stderr and "Traceback" in done.stderr  # which imports modules of its own
    before_ours = "error while loading shared libraries" in done.stderr
    assert done.returncode == 0 or told or of_the_script or before_ours, done.stderr


STEP_IN_A_CHILD = """
import os
import numpy as np
import tensorflow.compat.v1 as tf
from npu_bridge.npu_init import *
tf.disable_eager_execution()
x = tf.placeholder(tf.float32, [8, 8])
y = tf.matmul(x, x)
a = np.ones((8, 8), np.float32)
with tf.Session(config=npu_config_proto()) as s:
    s.run(y, {x: a})
    child = os.fork()
    if child == 0:
        try:
            s.run(y, {x: a})
        except RuntimeError as refused:
            print(refused, flush=True)
            os._exit(7)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), s.run(y, {x: a}).sum())
"""


def test_a_tensorflow_session_in_a_child_is_refused_in_a_sentence(tmp_path):
    (tmp_path / "train.py").write_text(STEP_IN_A_CHILD)
    done = tensorflow_adapter.run_python([tmp_path / "train.py"], "cairn", timeout=120)
    assert "forked after its parent had opened a session" in done.stdout, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "7 512.0"


SMALL_MEMORY = """
import resource
import sys
import numpy as np
import cairn
model = cairn.load(sys.argv[1], threads=2)
x = np.ones((200000, 64), np.float32)
model.run({"x": x[:8]})
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
for more in (1, 20, 60, 90, 110, 150):
    resource.setrlimit(resource.RLIMIT_AS, (used + (more << 20), resource.RLIM_INFINITY))
    try:
        model.run({"x": x})
    except (cairn.Error, MemoryError) as error:
        print(getattr(error, "kind", "MemoryError"))
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(round(float(model.run({"x": x})["y"][0].sum())))
"""


def test_a_run_without_memory_is_an_error_and_the_next_works(model, tmp_path):
    (tmp_path / "run.py").write_text(SMALL_MEMORY)
    done = tensorflow_adapter.run_python([tmp_path / "run.py", tmp_path / "m.cairn"])
    assert done.returncode == 0, done.stdout + done.stderr
    *refused, last = done.stdout.split()
    assert refused and set(refused) <= {"out_of_memory", "MemoryError"} and last == "1", done.stdout
