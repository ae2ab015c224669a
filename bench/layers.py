"""Single layers beside peers, to find the sizes and operations that fall behind: python bench/layers.py train|infer [WORDS ...]
[--above 1.1] [--json FILE]; train in .venv (a step with all gradients and updates in tf.function, Cairn and stock TensorFlow), infer in
.venv-peers (ONNX files of torch's exporter, Cairn and ONNX Runtime, batch 1). One thread; a ratio is that of the least processor times
of three turns, and below 1 Cairn is faster. Rows above --above, those that differ by more than 1e-4 and the median are printed."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import layer_cases
import numpy as np


def least(run, seconds=0.1):
    """The least processor time in ms."""
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.process_time_ns()
        run()
        best = min(best, time.process_time_ns() - start)
    return best / 1e6


def train_worker(words):
    """One side of training, chosen by CAIRN_ENGINE: a line of JSON a case."""
    import npu_device
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    npu_device.open().as_default()
    for name, (make, inputs) in layer_cases.trained().items():
        if words and not any(word in name for word in words):
            continue
        tf.keras.utils.set_random_seed(1)
        layer, variables = make(), [tf.Variable(value) for value in inputs]
        layer(*variables)

        @tf.function
        def step(layer=layer, variables=variables):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(layer(*[variable * 1.0 for variable in variables])))
            weights = tape.watched_variables()
            for weight, gradient in zip(weights, tape.gradient(loss, weights)):
                if gradient is not None:
                    weight.assign_sub(1e-4 * tf.convert_to_tensor(gradient))
            return loss

        results = [float(step()) for _ in range(4)]
        print("ROW " + json.dumps([name, least(step, 0.2), results]), flush=True)


def train(words):
    sides = {}
    for turn in range(3):
        for engine in ("tensorflow", "cairn"):
            environment = {**os.environ, "CAIRN_ENGINE": engine, "TF_CPP_MIN_LOG_LEVEL": "2"}
            done = subprocess.run([sys.executable, "-B", __file__, "train", *words, "--worker"], env=environment, capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"{engine}: {done.stderr.strip().splitlines()[-1]}")
            for line in done.stdout.splitlines():
                if line.startswith("ROW "):
                    name, ms, losses = json.loads(line[4:])
                    before = sides.get((name, engine), (ms,))[0]
                    sides[name, engine] = min(ms, before), losses
    for name, engine in sides:
        if engine == "cairn":
            (own, losses), (peer, wanted) = sides[name, "cairn"], sides[name, "tensorflow"]
            yield name, own, peer, max(abs(a - b) / max(abs(b), 1e-9) for a, b in zip(losses, wanted))


def infer(words):
    import cairn
    import onnxruntime
    import torch

    torch.manual_seed(0)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "layer.onnx")
        for name, (module, inputs) in layer_cases.exported().items():
            if words and not any(word in name for word in words):
                continue
            names = [f"x{i}" for i in range(len(inputs))]
            torch.onnx.export(module.eval(), inputs, path, dynamo=False, opset_version=18, input_names=names)
            session = onnxruntime.InferenceSession(path, settings)
            feeds = {each.name: inputs[int(each.name[1:])].numpy() for each in session.get_inputs()}
            model, wanted = cairn.load(path, threads=1), session.run(None, feeds)
            pairs = [(a.astype(np.float64), b.astype(np.float64)) for a, b in zip(model.run(feeds).values(), wanted)]
            difference = max(np.abs(a - b).max(initial=0) / max(np.abs(b).max(initial=0), 1e-9) for a, b in pairs)
            own, peer = ([least(run) for _ in range(3)] for run in (lambda: model.run(feeds), lambda: session.run(None, feeds)))
            yield name, min(own), min(peer), float(difference)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("kind", choices=("train", "infer"))
    parser.add_argument("words", nargs="*")
    parser.add_argument("--above", type=float, default=1.1)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return train_worker(options.words)
    rows = sorted((own / peer, name, own, peer, difference) for name, own, peer, difference in (train if options.kind == "train" else infer)(options.words))
    for ratio, name, own, peer, difference in rows:
        if ratio > options.above or difference > 1e-4:
            print(f"{name:<44}{ratio:6.2f}  {own:.3f} of {peer:.3f} ms  differs by {difference:.0e}")
    above = sum(row[0] > options.above for row in rows)
    print(f"{len(rows)} layers, median {statistics.median(row[0] for row in rows):.2f}, {above} above {options.above}, load {os.getloadavg()[0]:.1f}")
    if options.json:
        options.json.write_text(json.dumps({"load": os.getloadavg(), "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
