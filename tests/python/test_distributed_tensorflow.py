"""TensorFlow scripts as several ranks: the same training as one process with the whole batch, on collectives of every kind, and
what becomes of a job when a rank fails. The scripts are in tests/python/distributed."""

import os
import signal
import subprocess

import numpy as np
import pytest
import tensorflow_adapter
from conftest import BIN, ROOT

tensorflow_adapter.use_packages()

SCRIPTS = ROOT / "tests" / "python" / "distributed"
ALONE = {}  # what one process makes, by its words


def launch(ranks, *words, options=(), timeout=280, **more):
    command = [str(BIN / "cairn"), "launch", "-n", str(ranks), *map(str, options or ("--grace", "60")), *map(str, words)]
    environment = tensorflow_adapter.environment("cairn", **more)
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout)


def train(folder, ranks, *words, options=(), expect=0, **more):
    """What each rank saved."""
    done = launch(ranks, SCRIPTS / "train.py", *words[:2], folder / "out", *words[2:], options=options, **more)
    assert done.returncode == expect, done.stderr[-3000:]
    return done if expect else [dict(np.load(folder / f"out.{rank}.npz")) for rank in range(ranks)]


def alone(tmp_path_factory, *words):
    if words not in ALONE:
        (ALONE[words],) = train(tmp_path_factory.mktemp("alone"), 1, *words)
    return ALONE[words]


def check_equal(ranks, whole):
    """Equal weights on all ranks; the first change, which is the gradient times the rate, is that of one process within 1e-5 of
    its largest element, beside the rounding of the weights."""
    weights = [name for name in whole if name != "losses"]
    for name in weights:
        for other in ranks[1:]:
            np.testing.assert_array_equal(other[name], ranks[0][name])
    np.testing.assert_allclose(np.mean([rank["losses"] for rank in ranks], 0), whole["losses"], rtol=2e-5)
    wide = {name: value.astype(np.float64) for name, value in whole.items()}
    largest = max(np.abs(wide[name] - wide["start" + name[5:]]).max() for name in weights if name.startswith("first/"))
    firsts = [name.removeprefix("first/") for name in weights if name.startswith("first/")]
    assert firsts
    for i in firsts:
        start, change = wide[f"start/{i}"], wide[f"first/{i}"] - wide[f"start/{i}"]
        rounding = float(np.spacing(np.float32(np.abs(start).max())))
        ours = ranks[0][f"first/{i}"] - start
        np.testing.assert_allclose(ours, change, atol=1e-5 * np.abs(change).max() + 1e-7 * largest + rounding, rtol=0)
        np.testing.assert_allclose(ranks[0][f"last/{i}"], wide[f"last/{i}"], atol=1e-4 * np.abs(change).max() + 2e-6, rtol=0)


CASES = [("lenet", "feed"), ("resnet", "estimator"), ("bert", "keras"), ("lenet", "keras"), ("resnet", "feed"), ("bert", "feed"),
         ("lenet", "estimator"), ("bert", "estimator"), ("resnet", "keras")]  # fmt: skip


@pytest.mark.parametrize(
    ("net", "style", "ranks"),
    [pytest.param(net, style, ranks, marks=[] if i < 3 and ranks == 2 else pytest.mark.long)
     for i, (net, style) in enumerate(CASES) for ranks in (2, 4)],
)  # fmt: skip
def test_ranks_train_as_one_process_with_the_whole_batch(net, style, ranks, tmp_path, tmp_path_factory):
    whole = alone(tmp_path_factory, net, style, "--parts", str(ranks if net == "resnet" else 1))
    check_equal(train(tmp_path, ranks, net, style), whole)


def test_loss_scaling_decides_on_all_ranks_together(tmp_path, tmp_path_factory):
    """Gradients that overflow on rank 1 alone leave the step out on both; the scale falls on both."""
    script = tmp_path / "overflow.py"
    script.write_text(
        "import numpy as np, tensorflow.compat.v1 as tf\ntf.disable_v2_behavior()\n"
        "from npu_bridge.npu_init import *\n"
        "w, x = tf.Variable([2.0]), tf.placeholder(tf.float32, [])\n"
        "manager = ExponentialUpdateLossScaleManager(1024.0, 100, 1, 2, 0.5)\n"
        "opt = NPULossScaleOptimizer(tf.train.GradientDescentOptimizer(0.5), manager, is_distributed=True)\n"
        "train = opt.minimize(tf.reduce_sum(w * x))\n"
        "with tf.Session(config=npu_config_proto()) as s:\n"
        "    s.run(tf.global_variables_initializer())\n"
        "    for step in range(3):\n"
        "        s.run(train, {x: np.inf if step == 1 and get_npu_rank_id() == 1 else 1.0})\n"
        "    print('left', s.run(w)[0], s.run(manager.get_loss_scale()))\n"
    )
    done = launch(2, script)
    assert done.returncode == 0, done.stderr[-2000:]
    assert sorted(line for line in done.stdout.splitlines() if "left" in line) == ["[0] left 1.0 512.0", "[1] left 1.0 512.0"]
    assert "[1] npu_bridge: the step is left out" in done.stderr and "[0] npu_bridge" not in done.stderr


COLLECTIVES = """
import sys
import numpy as np
import tensorflow as tf
from npu_bridge.npu_init import *
rank, size = get_rank_id(), get_rank_size()
values = [np.random.RandomState(r).randn(4 * size, 3).astype(np.float32) for r in range(size)]
weights = [np.random.RandomState(100 + r).randn(4 * size, 3).astype(np.float32) for r in range(size)]

def each(function):
    # the result, and the gradient of the sum over all ranks of result * weights
    def both(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
            loss = tf.reduce_sum(y * tf.reshape(tf.tile(tf.reshape(weights[rank], [-1]), [size]), [-1])[:tf.size(y)].numpy().reshape(y.shape) if tf.executing_eagerly() else y * tf.constant(np.resize(weights[rank], y.shape)))
        return y, tape.gradient(loss, x)
    x = tf.constant(values[rank])
    eager, graph = both(x), tf.function(both)(x)
    for a, b in zip(eager, graph):
        np.testing.assert_array_equal(a, b)
    return [t.numpy() for t in eager]

def check(name, function, result, adjoint):
    y, dx = each(function)
    np.testing.assert_allclose(y, result[rank], rtol=1e-6, atol=1e-6, err_msg=name)
    dys = [np.resize(weights[r], result[r].shape) for r in range(size)]
    np.testing.assert_allclose(dx, adjoint(dys), rtol=1e-5, atol=1e-5, err_msg=name + ' gradient')

rows = 4
mine = slice(rows * rank, rows * rank + rows)
total, top = sum(values), np.max(values, 0)
check('sum', lambda x: hccl_ops.allreduce(x, 'sum'), [total] * size, lambda d: sum(d))
check('max', lambda x: hccl_ops.allreduce(x, 'max'), [top] * size, lambda d: sum(d) * (values[rank] == top))
check('prod', lambda x: hccl_ops.allreduce(x, 'prod'), [np.prod(values, 0)] * size, lambda d: sum(d) * np.prod(values[:rank] + values[rank + 1:], 0))
check('gather', lambda x: hccl_ops.allgather(x, size), [np.concatenate(values)] * size, lambda d: sum(d)[4 * size * rank:4 * size * (rank + 1)])
check('scatter', lambda x: hccl_ops.reduce_scatter(x, 'sum', size), [total[4 * r:4 * r + 4] for r in range(size)], lambda d: np.concatenate(d))
check('broadcast', lambda x: hccl_ops.broadcast([x], 1)[0], [values[1]] * size, lambda d: sum(d) if rank == 1 else np.zeros_like(values[0]))
check('reduce', lambda x: hccl_ops.reduce(x, 'sum', 1), [total if r == 1 else 0 * total for r in range(size)], lambda d: d[1])
# Graphs without a fixed order, in sessions: independent collectives, made in one order and run in any.
for trial in range(20):
    with tf.Graph().as_default(), tf.compat.v1.Session(config=npu_config_proto()) as session:
        x = tf.compat.v1.placeholder(tf.float32, [None])
        made = [hccl_ops.allreduce(x * float(i), 'sum') for i in range(8)]
        late = [tf.sin(hccl_ops.allreduce(made[i] + made[-1 - i], 'max')) for i in range(4)]
        extra = [tf.reduce_sum(tf.cos(x))] * (rank == 0)  # rank 0 fetches more
        got = session.run([*made, *late, *extra], {x: np.ones(1000 + trial, np.float32)})
        np.testing.assert_allclose(got[3], np.full(1000 + trial, 3.0 * size))
if size > 2:
    create_group('pair', 2, [0, 2])
    if rank in (0, 2):
        np.testing.assert_allclose(hccl_ops.allreduce(tf.constant(values[rank]), 'sum', group='pair'), values[0] + values[2], rtol=1e-6)
    destroy_group('pair')
for dtype in ('float16', 'bfloat16', 'float64', 'int8', 'uint8', 'int32', 'int64'):
    got = hccl_ops.allreduce(tf.cast(tf.range(5) + rank, dtype), 'sum')
    np.testing.assert_array_equal(tf.cast(got, tf.int64), np.arange(5) * size + size * (size - 1) // 2)
sent = hccl_ops.all_to_all_v_c(tf.range(10.0) + 100.0 * rank, [[(r + c) % 3 for c in range(size)] for r in range(size)], rank)
starts = [[sum((r + c) % 3 for c in range(to)) for to in range(size)] for r in range(size)]
np.testing.assert_array_equal(sent, np.concatenate([100.0 * r + starts[r][rank] + np.arange((r + rank) % 3) for r in range(size)]))
after = hccl_ops.send(tf.constant([float(rank)]), 7, (rank + 1) % size) if rank % 2 == 0 else None
if rank % 2 == 1:
    np.testing.assert_array_equal(hccl_ops.receive([1], tf.float32, 7, rank - 1), [rank - 1.0])
sparse = npu_allreduce(tf.IndexedSlices(tf.fill([rank + 1, 2], float(rank)), tf.range(rank + 1), tf.constant([9, 2])), 'mean')
dense = tf.math.unsorted_segment_sum(sparse.values, sparse.indices, 9)
np.testing.assert_allclose(dense[:, 0], [sum(r for r in range(size) if r >= i) / size for i in range(9)], rtol=1e-6)
print('all right')
"""


@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.long)])
def test_collectives_and_their_gradients_equal_numpy_in_any_order_of_the_executor(ranks, tmp_path):
    script = tmp_path / "collectives.py"
    script.write_text(COLLECTIVES)
    done = launch(ranks, script)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("all right") == ranks


EAGER = """
import numpy as np
import npu_device as npu
import tensorflow as tf
from hccl.manage.api import get_rank_id, get_rank_size
from npu_bridge.estimator.npu import npu_callbacks, npu_strategy
from npu_device.train.optimizer.npu_loss_scale_optimizer import NpuLossScaleOptimizer
npu.open().as_default()
rank, size = get_rank_id(), get_rank_size()

def variable(value=1.0):
    return tf.Variable([value, 2.0])

# One update with gradients rank + 1, in eager code and in a function; reduced once, also when wrapped twice.
for run in (lambda f: f, tf.function):
    w = variable()
    opt = npu.distribute.npu_distributed_keras_optimizer_wrapper(tf.keras.optimizers.SGD(1.0))
    assert npu.distribute.npu_distributed_keras_optimizer_wrapper(opt) is opt
    run(lambda: opt.apply_gradients([(tf.fill([2], rank + 1.0), w)]))()
    np.testing.assert_allclose(w, np.array([1.0, 2.0]) - np.mean(np.arange(size) + 1.0))

# A legacy optimizer with clipping: what is clipped is the mean.
w, opt = variable(), npu.distribute.npu_distributed_keras_optimizer_wrapper(tf.keras.optimizers.legacy.SGD(1.0, clipvalue=1.2))
opt.apply_gradients([(tf.fill([2], 2.0 * rank), w)])
np.testing.assert_allclose(w, np.array([1.0, 2.0]) - min(1.2, size - 1.0))

# An overflow on one rank leaves the step out on all.
w = variable()
opt = npu.train.optimizer.NpuLossScaleOptimizer(npu.distribute.npu_distributed_keras_optimizer_wrapper(tf.keras.optimizers.SGD(1.0))) \
    if hasattr(npu.train.optimizer, "NpuLossScaleOptimizer") else tf.keras.mixed_precision.LossScaleOptimizer(
        npu.distribute.npu_distributed_keras_optimizer_wrapper(tf.keras.optimizers.SGD(1.0)))
before = float(opt.loss_scale)
step = tf.function(lambda g: opt.apply_gradients([(g, w)]))
step(tf.constant([1.0, np.inf if rank == size - 1 else 1.0]))
np.testing.assert_array_equal(w, [1.0, 2.0])
assert float(opt.loss_scale) == before / 2
step(tf.constant([1.0, 1.0]) * (rank + 1))
np.testing.assert_allclose(w, np.array([1.0, 2.0]) - np.mean(np.arange(size) + 1.0))

# Values of one rank, parts of the data.
w = variable(float(rank))
npu.distribute.broadcast([w], 1)
assert float(w[0]) == 1.0
part, batch = npu.distribute.shard_and_rebatch_dataset(tf.data.Dataset.range(4 * size), 2 * size)
assert [int(i) for i in part] == list(range(rank, 4 * size, size)) and batch == 2
with npu.distribute.npu_broadcast_scope_wrapper(tf.distribute.get_strategy()).scope():
    made = tf.Variable(float(rank) + 5)
assert float(made) == 5.0
np.testing.assert_allclose(npu.distribute.all_reduce([tf.constant(float(rank))], "max"), [size - 1.0])

# Keras under a strategy: losses are divided by the ranks, gradients summed.
strategy = npu_strategy.NPUStrategy()
assert strategy.num_replicas_in_sync == size
x = np.linspace(-1, 1, 16).astype(np.float32)[:, None]
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer=tf.constant_initializer(rank), input_shape=(1,))])
    opt = npu.distribute.npu_distributed_keras_optimizer_wrapper(tf.keras.optimizers.SGD(0.5))
    model.compile(opt, "mse")
seen = []

class Mean(tf.keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs):
        seen.append(logs["loss"])

whole = tf.data.Dataset.from_tensor_slices((x, 3 * x)).batch(16)  # of which the strategy takes this rank's rows
model.fit(whole, epochs=2, verbose=0, callbacks=[npu_callbacks.NPUBroadcastGlobalVariablesCallback(0), npu_callbacks.MetricAverageCallback(), Mean()])
w, b, expected = 0.0, 0.0, []
for _ in range(2):
    error = w * x + b - 3 * x
    expected.append(np.mean(error ** 2))
    w, b = w - 0.5 * np.mean(2 * error * x), b - 0.5 * np.mean(2 * error)
np.testing.assert_allclose(model.get_weights()[0], [[w]], rtol=1e-5)
np.testing.assert_allclose(seen, expected, rtol=1e-4)
print("all right")
"""


@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.long)])
def test_eager_scripts_and_keras_reduce_once_agree_on_overflow_and_share_values(ranks, tmp_path):
    script = tmp_path / "eager.py"
    script.write_text(EAGER)
    done = launch(ranks, script)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("all right") == ranks


# Scripts written for Horovod, migrated.


def migrated(name, folder):
    subprocess.run([str(BIN / "cairn"), "migrate", str(ROOT / "examples" / "migrate" / f"{name}.py"), "-o", str(folder)], check=True, capture_output=True)
    return folder / f"{name}.py"


def losses(done):
    assert done.returncode == 0, done.stderr[-3000:]
    return [float(line.rsplit(" ", 1)[1]) for line in done.stdout.splitlines() if line.startswith("[0]") and "loss" in line]


HOROVOD = [("horovod_lenet", ["cairn", "tf1"]), ("horovod_keras", []), ("horovod_tape", [])]


@pytest.mark.parametrize(
    ("name", "how", "ranks"),
    [pytest.param(*each, ranks, marks=[] if ranks == 2 and each[0] == "horovod_lenet" else pytest.mark.long) for each in HOROVOD for ranks in (2, 4)],
)
def test_a_migrated_horovod_script_has_the_losses_of_one_process(name, how, ranks, tmp_path):
    script = migrated(name, tmp_path)
    whole, several = (losses(launch(n, *how, script)) for n in (1, ranks))
    assert len(whole) == len(several) >= 2
    np.testing.assert_allclose(several, whole, atol=1e-4)


# Faults.


def survivors(done, dead, ranks, words):
    """Every other rank says who failed, in one of these ways."""
    for rank in set(range(ranks)) - {dead}:
        lines = [line for line in done.stderr.splitlines() if line.startswith(f"[{rank}]")]
        assert any(f"rank {dead} (process " in line and any(word in line for word in words) for line in lines), lines[-15:]


@pytest.mark.parametrize(("style", "net"), [("feed", "lenet"), pytest.param("estimator", "resnet", marks=pytest.mark.long)])
@pytest.mark.parametrize("dead", [pytest.param(0, marks=pytest.mark.long), 1])
def test_a_killed_rank_is_named_by_every_survivor(style, net, dead, tmp_path):
    done = train(tmp_path, 3, net, style, "--fault", f"{dead}:2:{signal.SIGKILL.value}", options=["--grace", 60], expect=137)
    survivors(done, dead, 3, ["has ended without leaving the job"])
    assert f"error: launch: rank {dead} (this host) was ended by SIGKILL after" in done.stderr


def test_a_stopped_rank_is_named_within_the_timeout(tmp_path):
    done = train(tmp_path, 3, "lenet", "feed", "--fault", f"1:2:{signal.SIGSTOP.value}", options=["--timeout", 15, "--grace", 15], expect=1)
    survivors(done, 1, 3, ["does not answer"])
    assert "rank 1 had to be ended" in done.stderr


def test_a_rank_with_fewer_steps_is_named(tmp_path):
    script = tmp_path / "steps.py"
    script.write_text(
        "import tensorflow.compat.v1 as tf\ntf.disable_v2_behavior()\nfrom npu_bridge.npu_init import *\n"
        "total = hccl_ops.allreduce(tf.constant([1.0, 2.0]), 'sum')\n"
        "with tf.Session(config=npu_config_proto()) as s:\n"
        "    for _ in range(5 - get_npu_rank_id()): s.run(total)\n"
    )
    done = launch(2, script)
    assert done.returncode == 1
    survivors(done, 1, 2, ["has left the job"])


RESTARTED = """
import os, random, signal, sys
import numpy as np
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
from npu_bridge.npu_init import *
folder, last, seed, faults = sys.argv[1], *map(int, sys.argv[2:])
rank, size, attempt = get_npu_rank_id(), get_npu_rank_size(), int(os.environ["CAIRN_RESTART"])
chance = random.Random(f"{seed} {attempt}")
where = (chance.randrange(size), chance.randrange(3, 7)) if attempt < faults else None
how = chance.choice(["kill", "stop", "close"]) if seed else "kill"

def fail():
    if how == "close":
        for fd in os.listdir("/proc/self/fd"):
            try:
                if os.readlink(f"/proc/self/fd/{fd}").startswith("socket:"): os.shutdown_fd(int(fd))
            except OSError: pass
    else: os.kill(os.getpid(), signal.SIGKILL if how == "kill" else signal.SIGSTOP)

def shutdown_fd(fd):
    import socket
    with socket.socket(fileno=os.dup(fd)) as end: end.shutdown(socket.SHUT_RDWR)
os.shutdown_fd = shutdown_fd

tf.set_random_seed(3)
x, y = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.float32, [None, 1])
loss = tf.losses.mean_squared_error(y, tf.layers.dense(tf.layers.dense(x, 8, tf.tanh, name="a"), 1, name="b"))
step = tf.train.get_or_create_global_step()
train = npu_tf_optimizer(tf.train.AdamOptimizer(0.02)).minimize(loss, step)
mean = hccl_ops.allreduce(loss, "sum") / size
hooks = npu_hooks_append([tf.train.StopAtStepHook(last_step=last)])  # the others get what rank 0 restored
with tf.train.MonitoredTrainingSession(checkpoint_dir=folder if rank == 0 else None, hooks=hooks, save_checkpoint_steps=2,
                                       save_summaries_steps=None) as session:
    now = session.run_step_fn(lambda step_context: step_context.session.run(step))
    ends = where and (where[0], now + where[1])
    while not session.should_stop():
        bx = np.random.RandomState(now).randn(8, 4).astype(np.float32)[rank::size]
        value, _ = session.run([mean, train], {x: bx, y: bx[:, :1] * 2})
        now += 1
        print(f"step {now} loss {value!r}", flush=True)
        if (rank, now) == ends:
            print(f"fault {attempt} {how}", flush=True)
            fail()
"""


def steps_of(done, rank):
    return [line.split("] ", 1)[1] for line in done.stdout.splitlines() if line.startswith(f"[{rank}] step")]


def check_restarts(done, whole, ranks, faults):
    """Losses are those of a job without faults, each attempt goes on where the checkpoint was, and survivors named the rank."""
    assert done.returncode == whole.returncode == 0, done.stderr[-3000:]
    assert done.stderr.count("; all start again") == faults
    for rank in range(ranks):
        assert set(steps_of(done, rank)) == set(steps_of(whole, rank))
    numbers = [int(line.split()[1]) for line in steps_of(done, 0)]
    jumps = [after - before for before, after in zip(numbers, numbers[1:])]
    assert set(jumps) <= {1, 0, -1, -2, -3}  # none is left out; at most those since the last checkpoint are made again


def test_a_restarted_job_goes_on_from_its_checkpoint_with_equal_losses(tmp_path):
    script = tmp_path / "restarted.py"
    script.write_text(RESTARTED)
    done = launch(2, script, tmp_path / "broken", 12, 0, 1, options=["--restarts", "1", "--grace", "30"])
    check_restarts(done, launch(2, script, tmp_path / "whole", 12, 0, 0), 2, 1)
    assert "was ended by SIGKILL" in done.stderr


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, 11))
def test_thirty_random_faults_end_nothing_for_good(seed, tmp_path):
    """Ten times: ranks of four are killed, stopped or lose their sockets; every survivor of every fault says which rank it was."""
    script, last = tmp_path / "faults.py", 30 * 7
    script.write_text(RESTARTED)
    options = ["--restarts", "30", "--timeout", "15", "--grace", "10"]
    done = launch(4, script, tmp_path / "broken", last, seed, 30, options=options, timeout=3000)
    check_restarts(done, launch(4, script, tmp_path / "whole", last, seed, 0), 4, 30)
    faults = [line for line in done.stdout.splitlines() if "] fault" in line]
    assert len(faults) == 30 and len({line.split()[-1] for line in faults}) == 3
    attempts = done.stderr.split("; all start again")[:-1]
    for fault, text in zip(faults, attempts):
        dead = int(fault[1])
        for rank in set(range(4)) - {dead}:
            said = [line for line in text.splitlines() if line.startswith(f"[{rank}]") and "the job has failed" in line]
            assert any(f"rank {dead} " in line for line in said), (fault, rank, text[-2000:])
