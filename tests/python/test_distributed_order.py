"""Collectives that scripts make in conditionals, in loops and one by one: which order they have, which are put together, how long they
wait."""

import subprocess

import pytest
import tensorflow_adapter
from conftest import BIN

tensorflow_adapter.use_packages()

HEAD = """
import time
import numpy as np
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
from cairn import job
from npu_bridge.npu_init import *
rank, size = get_npu_rank_id(), get_npu_rank_size()

def total(x, **how):
    return hccl_ops.allreduce(x, "sum", **how)

def session(**given):
    config = npu_config_proto()
    entry = next(each for each in config.graph_options.rewrite_options.custom_optimizers if each.name == "NpuOptimizer")
    for key, value in given.items():
        setattr(entry.parameter_map[key], "b" if isinstance(value, bool) else "i", value)
    return tf.Session(config=config)
"""


def launch(tmp_path, text, ranks=2, options=("--timeout", "20", "--grace", "30"), timeout=200):
    script = tmp_path / "script.py"
    script.write_text(HEAD + text)
    command = [BIN / "cairn", "launch", "-n", str(ranks), *options, script]
    return subprocess.run(command, env=tensorflow_adapter.environment("cairn"), capture_output=True, text=True, timeout=timeout)


CONDITIONAL = """
x, taken = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.bool, [])
before = [total(x * float(i + 1), fusion=0) for i in range(3)]
inside = tf.cond(taken, lambda: total(x * 10.0, fusion=0) + total(tf.exp(0.0 * x), fusion=0), lambda: total(x * 20.0, fusion=0) - 1.0)
both = tf.cond(taken, lambda: (total(tf.sin(0.0 * x), fusion=0), x), lambda: (x, total(tf.cos(0.0 * x), fusion=0)))
after = [total(x * float(-i), fusion=0) for i in range(3)]
for engine in (True, False):
    with session(use_off_line=engine) as s:
        for trial in range(30):
            yes = trial % 3 != 0
            made = s.run([before, inside, both, after], {x: np.ones(3, np.float32), taken: yes})
            np.testing.assert_array_equal(made[0][2], [3.0 * size] * 3)
            np.testing.assert_array_equal(made[1], [11.0 * size if yes else 20.0 * size - 1] * 3)
            np.testing.assert_array_equal(made[2], [[0.0] * 3, [1.0] * 3] if yes else [[1.0] * 3, [1.0 * size] * 3])
            np.testing.assert_array_equal(made[3][2], [-2.0 * size] * 3)
print("all right")
"""

LOOP = """
x, turns = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.int32, [])
before = total(x * 2.0, fusion=0)

def turn(i, a, b):
    # neither sum needs the other
    more = tf.cond(tf.equal(i % 2, 0), lambda: total(tf.ones_like(x), fusion=0), lambda: tf.zeros_like(x))
    return i + 1, a + total(x, fusion=0), b + total(tf.cast(i, tf.float32) * x, fusion=0) + more

_, a, b = tf.while_loop(lambda i, a, b: i < turns, turn, [0, tf.zeros_like(x), tf.zeros_like(x)])
after = total(x * 3.0, fusion=0)
for engine in (True, False):
    with session(use_off_line=engine) as s:
        for trial in range(20):
            made = s.run([before, a, b, after], {x: np.ones(3, np.float32), turns: trial})
            even = (trial + 1) // 2
            expected = [2, trial, trial * (trial - 1) // 2 + even, 3]
            for value, each in zip(made, expected):
                np.testing.assert_array_equal(value, [each * size] * 3)
print("all right")
"""

ACCUMULATION = """
# Gradients are summed over four steps; the update, with its exchange, stands in a conditional.
w = [tf.get_variable(f"w{i}", initializer=np.full([4], float(i + 1), np.float32)) for i in range(5)]
sums = [tf.get_variable(f"sum{i}", initializer=np.zeros([4], np.float32), trainable=False) for i in range(5)]
step = tf.get_variable("step", initializer=0, trainable=False)
x = tf.placeholder(tf.float32, [4])
loss = tf.add_n([tf.reduce_sum(tf.square(each * x - 1.0)) for each in w])
optimizer = tf.train.GradientDescentOptimizer(0.01)
with tf.control_dependencies([tf.assign_add(s, g) for s, g in zip(sums, tf.gradients(loss, w))]):
    count = tf.assign_add(step, 1)

def update():
    means = [total(s.read_value() if hasattr(s, "read_value") else s, fusion=i % 2) / (4.0 * size) for i, s in enumerate(sums)]
    with tf.control_dependencies([optimizer.apply_gradients(zip(means, w))]):
        return tf.group(*[tf.assign(s, tf.zeros_like(s)) for s in sums])

train = tf.cond(tf.equal(count % 4, 0), update, tf.no_op)
seen = total(loss) / size
rows = np.random.RandomState(0).rand(24, size, 4).astype(np.float32)
expected = [np.full(4, i + 1.0) for i in range(5)]
with session() as s:
    s.run(tf.global_variables_initializer())
    for first in range(0, 24, 4):
        for i in range(4):
            s.run([train, seen], {x: rows[first + i, rank]})
        part = rows[first : first + 4].astype(np.float64)
        expected = [each - 0.01 * np.mean(2 * (each * part - 1) * part, (0, 1)) for each in expected]
    for value, each in zip(s.run(w), expected):
        np.testing.assert_allclose(value, each, rtol=1e-5)
print("all right")
"""


@pytest.mark.parametrize(
    ("text", "ranks"),
    [(CONDITIONAL, 2), (LOOP, 2), (ACCUMULATION, 2), pytest.param(CONDITIONAL, 4, marks=pytest.mark.long), pytest.param(LOOP, 4, marks=pytest.mark.long),
     pytest.param(ACCUMULATION, 4, marks=pytest.mark.long)], ids=["conditional", "loop", "accumulation", "conditional-4", "loop-4", "accumulation-4"])  # fmt: skip
def test_collectives_in_conditionals_and_loops_keep_one_order_on_all_ranks(text, ranks, tmp_path):
    done = launch(tmp_path, text, ranks)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("all right") == ranks


FUSED = """
calls = lambda: job.describe()["collectives"].get("all_reduce", {}).get("calls", 0)

def count(made):
    with session() as s:
        s.run(made, {x: np.ones([2, 3], np.float32)})
        before = calls()
        values = s.run(made, {x: np.ones([2, 3], np.float32)})
        print("exchanges", calls() - before)
        return values

x = tf.placeholder(tf.float32, [2, 3])
parts = [x * float(i) for i in range(6)]
for how in ({"fusion": 0}, {"fusion": 1}, {"fusion": 2, "fusion_id": 3}):
    values = count([total(each, **how) for each in parts])
    for i, value in enumerate(values):
        np.testing.assert_array_equal(value, np.full([2, 3], i * size))
count([total(each, fusion=2, fusion_id=i % 2) for i, each in enumerate(parts)])
count([total(total(parts[1])), *[total(each) for each in parts]])  # one that needs another is in no bucket with it
count([total(parts[1]), hccl_ops.allreduce(parts[2], "max"), total(tf.cast(parts[3], tf.float64))])
"""


def test_fusion_puts_independent_all_reduces_together(tmp_path):
    done = launch(tmp_path, FUSED)
    assert done.returncode == 0, done.stderr[-3000:]
    counts = [line.split()[-1] for line in done.stdout.splitlines() if line.startswith("[0] exchanges")]
    assert counts == ["6", "1", "1", "2", "2", "3"]


def test_buckets_of_single_all_reduces_hold_as_many_bytes_as_the_variable_says(tmp_path):
    done = launch(tmp_path, "import os\nos.environ['FUSION_TENSOR_SIZE'] = '48'\n" + FUSED)  # two of 24 bytes
    assert done.returncode == 0, done.stderr[-3000:]
    counts = [line.split()[-1] for line in done.stdout.splitlines() if line.startswith("[0] exchanges")]
    assert counts[1:3] == ["3", "1"]


LATE = """
x = tf.constant([1.0])
made = total(x)
with session(hccl_timeout=3) as s:
    s.run(made)
    if rank == 1:
        time.sleep(40)
    begin = time.time()
    try:
        s.run(made)
    finally:
        print("waited", time.time() - begin)
"""


def test_hccl_timeout_says_how_long_a_collective_waits(tmp_path):
    done = launch(tmp_path, LATE, options=("--grace", "1"))
    assert done.returncode != 0
    assert "while rank 0 waited 3" in done.stderr, done.stderr[-2000:]
    done = launch(tmp_path, LATE.replace("hccl_timeout=3", "hccl_timeout=0"))
    assert "hccl_timeout is 0, should be >= 1" in done.stderr
