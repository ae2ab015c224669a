"""Whole training steps in f32, bf16 and f16 (precision_mode of a TensorFlow 1 session on Cairn): python bench/half.py [NET ...]
[--rounds N] [--batch N] [--seeds N] [--json FILE], in .venv. Each has a process of its own, which is stopped while the others run, and the order changes in
each round; a ratio is the median over rounds, below 1 where 16 bits are better. The arena, which holds activations, gradients and
packed weights, is taken from a recording of two steps. The losses are those of the last step of all. --seeds N compares losses alone:
those of f32 after 60 steps at a usual rate from N seeds, and those of 16 bits from the first of them."""

import argparse
import csv
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import half_kinds  # noqa: F401, makes nets known
import half_nets  # noqa: F401
import nets
import training_steps
from training_steps import STEPS, Side

MODES = {"f32": None, "bf16": "allow_mix_precision_bf16", "f16": "allow_mix_precision"}


def lstm(ops, ids):
    """One layer of 256 over 64 words, and classes from the last state."""
    tf, words, width = ops.tf, 64, 256
    table = ops.variable("words", [nets.VOCABULARY, width], 0.1)
    kernel, bias = ops.variable("kernel", [2 * width, 4 * width], 0.05), ops.variable("bias", [4 * width])

    def turn(state, x):
        h, c = state
        i, g, f, o = tf.split(tf.nn.bias_add(tf.matmul(tf.concat([x, h], 1), kernel), bias), 4, 1)
        c = tf.sigmoid(f + 1) * c + tf.sigmoid(i) * tf.tanh(g)
        return tf.sigmoid(o) * tf.tanh(c), c

    x = tf.transpose(tf.gather(table, ids), [1, 0, 2])
    x.set_shape([words, None, width])
    zero = tf.zeros_like(x[0])
    return ops.dense(tf.scan(turn, x, (zero, zero))[0][-1], "classes", width, 20)


def grouped(ops, x):
    """Blocks of 1x1, 3x3 in 8 groups and 1x1 convolutions, as ResNeXt has them, on 32x32 images."""

    def block(x, name, inputs, width, stride):
        y = ops.relu(ops.batch_norm(ops.conv(x, name + "a", inputs, width, 1, 1), name + "an", width))
        kernel = ops.variable(name + "b", [3, 3, width // 8, width], (16 / (9 * width)) ** 0.5)
        y = ops.relu(ops.batch_norm(ops.tf.nn.conv2d(y, kernel, [1, stride, stride, 1], "SAME"), name + "bn", width))
        y = ops.batch_norm(ops.conv(y, name + "c", width, 2 * width, 1, 1), name + "cn", 2 * width)
        if inputs != 2 * width:
            x = ops.batch_norm(ops.conv(x, name + "d", inputs, 2 * width, 1, stride), name + "dn", 2 * width)
        return ops.relu(ops.add(x, y))

    x = ops.relu(ops.batch_norm(ops.conv(x, "stem", 3, 64, 3, 1), "stemn", 64))
    for stage, width in enumerate((64, 128, 256)):
        x = block(x, f"s{stage}.0.", 64 if stage == 0 else width, width, 1 if stage == 0 else 2)
        x = block(x, f"s{stage}.1.", 2 * width, width, 1)
    return ops.dense(ops.global_pool(x), "fc", 512, 10)


nets.NETS.update({"lstm": (lstm, None, None), "grouped": (grouped, None, None)})
STEPS.update({"lstm": ("lstm", (64,), 64, 20), "grouped": ("grouped", (32, 32, 3), 32, 10)})
USUAL = ("resnet32", "bert", "lstm", "grouped", "resnet224")


def command_of(name, mode, options):
    batch = ["--batch", options.batch] if options.batch else []
    return [sys.executable, __file__, name, "--worker", mode, "--threads", options.threads, *batch]


def arena(name, mode, options):
    """Bytes of the training step's arena, the last that is made."""
    with tempfile.TemporaryDirectory() as folder:
        cairn = options.cairn or Path(sys.executable).with_name("cairn")
        command = [cairn, "profile", "-o", folder, "--", *command_of(name, mode, options)]
        quiet = {"stdout": subprocess.DEVNULL, "check": True, "env": training_steps.environment(options)}
        subprocess.run(list(map(str, command)), input="run 2\n", text=True, **quiet)
        subprocess.run([str(cairn), "profile", "export", folder], **quiet)
        with open(next(Path(folder).glob("**/memory_record*.csv"))) as file:
            return float(list(csv.DictReader(file))[-1]["Total Allocated(KB)"]) * 1024


def measure(name, options):
    sides = {mode: Side(command_of(name, mode, options), options) for mode in MODES}
    try:
        slowest = max(side.run(3)["t"][-1] for side in sides.values())
        steps, rounds = max(2, int(options.seconds / slowest)), []
        for turn in range(options.rounds):
            order = list(MODES)[turn % 3 :] + list(MODES)[: turn % 3]
            rounds.append({mode: sides[mode].run(steps) for mode in order})
    finally:
        for side in sides.values():
            side.end()
    arenas = {mode: arena(name, mode, options) for mode in MODES}
    row = {"net": name, "batch": STEPS[name][2], "threads": options.threads, "rounds": options.rounds}
    for mode in MODES:
        row[mode] = {
            "processor_ms": 1e3 * min(each[mode]["cpu"] for each in rounds),
            "processor_ratio": statistics.median(each[mode]["cpu"] / each["f32"]["cpu"] for each in rounds),
            "ratio": statistics.median(min(each[mode]["t"]) / min(each["f32"]["t"]) for each in rounds),
            "arena_mib": arenas[mode] / 2**20,
            "arena_ratio": arenas[mode] / arenas["f32"],
            "loss": rounds[-1][mode]["loss"],
        }
    return row


def losses(name, options):
    """After 60 steps: of f32 for each seed, and of 16 bits for the first."""

    def last(mode, seed):
        side = Side([*command_of(name, mode, options), "--seed", seed, "--rate", options.rate or 1e-3], options)
        try:
            return side.run(59)["loss"]
        finally:
            side.end()

    wide = [last("f32", seed) for seed in range(1, options.seeds + 1)]
    row = {"net": name, "f32": wide, **{mode: last(mode, 1) for mode in ("bf16", "f16")}}
    text = "  ".join(f"{mode} {row[mode]:.5f} ({row[mode] - wide[0]:+.5f})" for mode in ("bf16", "f16"))
    print(f"{name:14} f32 {wide[0]:.5f}, seeds {min(wide):.5f} to {max(wide):.5f}  {text}", flush=True)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("nets", nargs="*", help=f"of {', '.join(STEPS)}; {', '.join(USUAL)} when none is named")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=1.0, help="of one side's turn")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", help="where the rows go")
    parser.add_argument("--library", help="libcairn.so to measure; default: the installed one")
    parser.add_argument("--cairn", help="the program that records; default: the installed one")
    parser.add_argument("--batch", type=int, help="in place of the net's own")
    parser.add_argument("--seeds", type=int, default=0, help="compare losses alone, of so many seeds")
    parser.add_argument("--seed", type=int, default=1, help=argparse.SUPPRESS)
    parser.add_argument("--rate", type=float, help="of learning")
    parser.add_argument("--worker", choices=MODES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    names = options.nets or USUAL
    for name in names:
        if name not in STEPS:
            parser.error(f"no net '{name}'; there are {', '.join(STEPS)}")
        net, item, batch, classes = STEPS[name]
        STEPS[name] = (net, item, options.batch or batch, classes)
    if options.worker:
        return training_steps.worker(training_steps.step_of(names[0], "cairn", options.threads, MODES[options.worker], seed=options.seed, rate=options.rate))
    if options.seeds:
        training_steps.write_json(options.json, [losses(name, options) for name in names])
        return None
    print(f"{'net':10} {'batch':>5} {'type':>5} {'processor ms':>13} {'ratio':>6} {'of time':>8} {'arena MiB':>10} {'ratio':>6}  loss")
    rows = []
    for name in names:
        rows.append(measure(name, options))
        for mode in MODES:
            found = rows[-1][mode]
            print(
                f"{name:10} {STEPS[name][2]:5} {mode:>5} {found['processor_ms']:13.2f} {found['processor_ratio']:6.3f} "
                f"{found['ratio']:8.3f} {found['arena_mib']:10.1f} {found['arena_ratio']:6.3f}  {found['loss']:.5f}",
                flush=True,
            )
    training_steps.write_json(options.json, rows)


if __name__ == "__main__":
    main()
