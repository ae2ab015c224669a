"""Whole training steps in a TensorFlow 1 session, stock TensorFlow against the door to Cairn: python bench/training_steps.py
[NET ...] [--rounds N] [--json FILE] [--library FILE], in .venv. Each side has a process of its own, which is stopped while
the other runs; rounds alternate, and a ratio is the median over rounds of the fastest step of Cairn over that of
TensorFlow: below 1 Cairn is faster. The ratio of processor time says more on a busy machine; peaks of memory are of the whole process.
--profile FOLDER records some steps of Cairn instead and prints where the time goes."""

import argparse
import collections
import csv
import itertools
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

import nets
import numpy as np

ROOT = Path(__file__).resolve().parent.parent


class TrainedNet:
    """The backend of nets.py for training in a graph of TensorFlow 1: NHWC, variables, statistics of the batch."""

    def __init__(self, tf, seed=1):
        self.tf, self.seed, self.updates = tf, seed, []

    def variable(self, name, shape, deviation=None, value=0.0, trainable=True):
        tf = self.tf
        initializer = tf.random_normal_initializer(stddev=deviation, seed=self.seed) if deviation else tf.constant_initializer(value)
        return tf.get_variable(name.replace(".", "_"), shape, initializer=initializer, trainable=trainable)

    def conv(self, x, name, inputs, outputs, size, stride, pad=None, bias=False):
        pad = size // 2 if pad is None else pad
        padding = "VALID" if pad == 0 else "SAME" if stride == 1 else [[0, 0], [pad, pad], [pad, pad], [0, 0]]
        kernel = self.variable(name, [size, size, inputs, outputs], np.sqrt(2 / (size * size * inputs)))
        x = self.tf.nn.conv2d(x, kernel, [1, stride, stride, 1], padding)
        return self.tf.nn.bias_add(x, self.variable(name + "_bias", [outputs])) if bias else x

    def batch_norm(self, x, name, channels):
        scale, offset = self.variable(name + "_scale", [channels], value=1.0), self.variable(name + "_offset", [channels])
        x, mean, variance = self.tf.nn.fused_batch_norm(x, scale, offset, epsilon=1e-5, is_training=True)
        for what, batch in (("mean", mean), ("variance", variance)):
            kept = self.variable(f"{name}_{what}", [channels], value=float(what == "variance"), trainable=False)
            self.updates.append(self.tf.assign_sub(kept, (kept - batch) * 0.01))
        return x

    def dense(self, x, name, inputs, outputs, kind="he"):
        kernel = self.variable(name, [inputs, outputs], np.sqrt((2 if kind == "he" else 1) / inputs))
        rows = self.tf.reshape(x, [-1, inputs]) if x.shape.rank == 3 else x
        rows = self.tf.nn.bias_add(self.tf.matmul(rows, kernel), self.variable(name + "_bias", [outputs]))
        return self.tf.reshape(rows, [-1, x.shape[1], outputs]) if x.shape.rank == 3 else rows

    def layer_norm(self, x, name):
        mean, variance = self.tf.nn.moments(x, [-1], keep_dims=True)
        scale, offset = self.variable(name + "_gamma", [x.shape[-1]], value=1.0), self.variable(name + "_beta", [x.shape[-1]])
        return self.tf.nn.batch_normalization(x, mean, variance, offset, scale, 1e-12)

    def embed(self, ids):
        words = self.variable("words", [nets.VOCABULARY, nets.HIDDEN], 0.02)
        return self.tf.gather(words, ids) + self.variable("places", [nets.SEQUENCE, nets.HIDDEN], 0.02)

    def attention(self, q, k, v):
        tf, depth = self.tf, nets.HIDDEN // nets.HEADS
        q, k, v = (tf.transpose(tf.reshape(t, [-1, nets.SEQUENCE, nets.HEADS, depth]), [0, 2, 1, 3]) for t in (q, k, v))
        shares = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) * (1.0 / np.sqrt(depth)))
        return tf.reshape(tf.transpose(tf.matmul(shares, v), [0, 2, 1, 3]), [-1, nets.SEQUENCE, nets.HIDDEN])

    def relu(self, x):
        return self.tf.nn.relu(x)

    def gelu(self, x):  # as BERT's code has it
        return x * (0.5 * (1.0 + self.tf.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * self.tf.pow(x, 3)))))

    def max_pool(self, x, size, stride, pad):
        return self.tf.nn.max_pool(x, [1, size, size, 1], [1, stride, stride, 1], "SAME" if pad else "VALID")

    def global_pool(self, x):
        return self.tf.reduce_mean(x, [1, 2])

    def add(self, a, b):
        return a + b

    def flatten(self, x):
        return self.tf.reshape(x, [-1, int(np.prod(x.shape[1:]))])


# name: (net of nets.py, input of one item in NHWC, batch, classes)
STEPS = {
    "lenet": ("lenet", (28, 28, 1), 32, 10),
    "mlp": ("mlp", (784,), 128, 10),
    "resnet32": ("resnet50", (32, 32, 3), 32, 1000),
    "resnet224": ("resnet50", (224, 224, 3), 32, 1000),
    "bert": ("bert", (nets.SEQUENCE,), 8, 2),
}


WORDS = {"bert", "lstm"}  # nets that read words, and whose optimiser is Adam


def peak():
    """The most memory that this process has held, in MiB."""
    return int(re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[1]) / 1024


def step_of(name, engine, threads, precision=None, part=slice(None), wrapped=lambda optimizer: optimizer, seed=1, rate=None):
    """A function that makes one step with a part of the batch and returns the loss, of a session that stays open."""
    import tensorflow.compat.v1 as tf

    tf.logging.set_verbosity(tf.logging.ERROR)
    tf.disable_v2_behavior()
    net, item, batch, classes = STEPS[name]
    random = np.random.RandomState(7)
    words = net in WORDS
    data = random.randint(0, nets.VOCABULARY, (batch, *item)) if words else random.standard_normal((batch, *item)).astype(np.float32)
    answers = random.randint(0, classes, batch)
    data, answers = data[part], answers[part]
    x, y = tf.placeholder(tf.int32 if words else tf.float32, [None, *item]), tf.placeholder(tf.int64, [None])
    ops = TrainedNet(tf, seed)
    logits = nets.build(net, ops, x)
    if net == "bert":
        logits = ops.dense(tf.tanh(ops.dense(logits[:, 0], "pooler", nets.HIDDEN, nets.HIDDEN, "xavier")), "classes", nets.HIDDEN, classes)
    is_loss = logits.shape.rank == 0
    loss = logits if is_loss else tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    optimizer = wrapped(tf.train.AdamOptimizer(rate or 1e-5) if words else tf.train.MomentumOptimizer(rate or 1e-3, 0.9))
    with tf.control_dependencies(ops.updates):
        train = optimizer.minimize(loss)
    config = tf.ConfigProto(intra_op_parallelism_threads=threads, inter_op_parallelism_threads=threads)
    if engine == "cairn":
        import npu_bridge.npu_init  # noqa: F401

        entry = config.graph_options.rewrite_options.custom_optimizers.add()
        entry.name = "NpuOptimizer"
        if precision:
            entry.parameter_map["precision_mode"].s = tf.compat.as_bytes(precision)
    session = tf.Session(config=config)
    session.run(tf.global_variables_initializer())
    return lambda: session.run([loss, train], {x: data, y: answers})[0]


def worker(step):
    """Answers `run N` by the seconds of N steps, the last loss and the peak of memory, as JSON."""
    for line in itertools.chain(["run 1"], sys.stdin):
        times, spent = [], time.process_time()
        for _ in range(int(line.split()[1])):
            start = time.perf_counter()
            value = step()
            times.append(time.perf_counter() - start)
        spent = (time.process_time() - spent) / len(times)
        print(json.dumps({"t": times, "cpu": spent, "loss": float(value), "peak": peak()}), flush=True)


class Side:
    """A worker, the command given, that is stopped while others run."""

    def __init__(self, command, options):
        self.process = subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(options), text=True)
        self.first = self.answer()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("a worker ended")
        self.process.send_signal(signal.SIGSTOP)
        return json.loads(line)

    def run(self, steps):
        self.process.send_signal(signal.SIGCONT)
        self.process.stdin.write(f"run {steps}\n")
        self.process.stdin.flush()
        return self.answer()

    def end(self):
        self.process.kill()
        self.process.wait()


def environment(options):
    more = {"CAIRN_LIBRARY": str(options.library)} if options.library else {}
    return {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONWARNINGS": "ignore", **more}


def compare(name, options):
    sides = [Side([sys.executable, __file__, name, "--worker", engine, "--threads", options.threads], options) for engine in ("cairn", "stock")]
    try:
        first = [side.run(3) for side in sides]
        steps = max(2, int(options.seconds / max(answer["t"][-1] for answer in first)))
        rounds = []
        for turn in range(options.rounds):
            times = {i: sides[i].run(steps) for i in ((0, 1) if turn % 2 == 0 else (1, 0))}
            rounds.append((times[0], times[1]))
    finally:
        for side in sides:
            side.end()
    fastest = [[min(answer["t"]) for answer in answers] for answers in zip(*rounds)]
    return {
        "net": name,
        "batch": STEPS[name][2],
        "threads": options.threads,
        "cairn_ms": min(fastest[0]) * 1e3,
        "stock_ms": min(fastest[1]) * 1e3,
        "ratio": statistics.median(a / b for a, b in zip(*fastest)),
        "processor_ratio": statistics.median(a["cpu"] / b["cpu"] for a, b in rounds),
        "rounds": options.rounds,
        "first_losses": [side.first["loss"] for side in sides],  # later ones part, where steps amplify the last bits
        "losses": [answer["loss"] for answer in rounds[-1]],
        "peak_mib": [answer["peak"] for answer in rounds[-1]],
    }


def profile(name, options):
    """Where the time of a step goes: the steps of the engine by kernel and source operator, each at its fastest."""
    folder = Path(options.profile) / name
    cairn = options.cairn or Path(sys.executable).with_name("cairn")
    command = [cairn, "profile", "-o", folder, "--", sys.executable, __file__, name, "--worker", "cairn", "--threads", options.threads]
    subprocess.run(list(map(str, command)), input="run 20\n" if STEPS[name][0] != "bert" and name != "resnet224" else "run 3\n", text=True, env=environment(options), check=True, stdout=subprocess.DEVNULL)
    subprocess.run([str(cairn), "profile", "export", str(folder)], check=True, stdout=subprocess.DEVNULL)
    steps = {}  # (model, step): fastest, kernel, source operator, shapes
    counts = collections.Counter()
    with open(sorted(folder.glob("**/op_summary*.csv"))[-1]) as file:
        for row in csv.DictReader(file):
            key, spent = (row["Model ID"], row["Task ID"], row["Op Name"], row["Kernel"]), float(row["Task Duration(us)"])
            counts[key] += 1
            if key not in steps or spent < steps[key][0]:
                steps[key] = (spent, row["Kernel"], row["OP Type"], row["Input Shapes"])
    steps = [step for key, step in steps.items() if counts[key] > 1]  # once: what makes the variables
    whole = sum(spent for spent, *_ in steps)
    print(f"{name}: {whole / 1e3:.3f} ms in {len(steps)} steps")
    kinds = collections.defaultdict(lambda: [0, 0.0])
    for spent, kernel, operator, _ in steps:
        kind = kinds[kernel.split(",")[0].split(" ")[0] + " " + operator]
        kind[0], kind[1] = kind[0] + 1, kind[1] + spent
    for kind, (count, spent) in sorted(kinds.items(), key=lambda item: -item[1][1])[:25]:
        print(f"  {spent / 1e3:9.3f} ms {spent / whole:6.1%} {count:5}  {kind}")
    print("  slowest steps")
    for spent, kernel, operator, shapes in sorted(steps, reverse=True)[:20]:
        print(f"  {spent / 1e3:9.3f} ms  {operator}  {kernel}  {shapes}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("nets", nargs="*", help=f"of {', '.join(STEPS)}; all when none is named")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=1.0, help="of one side's turn")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", help="where the rows go")
    parser.add_argument("--library", help="libcairn.so to measure; default: the installed one")
    parser.add_argument("--cairn", help="the program for --profile; default: the installed one")
    parser.add_argument("--profile", metavar="FOLDER")
    parser.add_argument("--worker", choices=("cairn", "stock"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    names = options.nets or list(STEPS)
    for name in names:
        if name not in STEPS:
            parser.error(f"no net '{name}'; there are {', '.join(STEPS)}")
    if options.worker:
        return worker(step_of(names[0], options.worker, options.threads))
    if options.profile:
        return [profile(name, options) for name in names]
    print(f"{'net':10} {'batch':>5} {'Cairn ms':>10} {'TF ms':>10}  ratio  of processor time  peak MiB            losses")
    rows = []
    for name in names:
        row = compare(name, options)
        rows.append(row)
        print(
            f"{name:10} {row['batch']:5} {row['cairn_ms']:10.3f} {row['stock_ms']:10.3f}  {row['ratio']:.3f} {row['processor_ratio']:18.3f}  "
            f" {row['peak_mib'][0]:8.0f} {row['peak_mib'][1]:8.0f}  {row['losses'][0]:.5f} {row['losses'][1]:.5f}",
            flush=True,
        )
    write_json(options.json, rows)


def write_json(path, rows):
    """The rows and the machine's state, where a file is asked for."""
    if path:
        Path(path).write_text(json.dumps({"processors": os.cpu_count(), "load": os.getloadavg(), "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
