"""The kernels of training one by one against TensorFlow's: python bench/training_ops.py [WORDS ...] [--rounds N] [--cairn
FILE], in .venv; WORDS: only kernels whose names contain one. Both sides alternate, with the threads that the process may use; a ratio is the median over rounds of the fastest
of each side, and below 1 Cairn is faster."""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BATCH = 32


def convolutions():
    """(name, op, types of inputs, shape operand, type of the result, attributes) of ResNet-50's kinds of layers."""
    for size, channels, out, kernel, stride in ((224, 3, 64, 7, 2), (56, 64, 64, 1, 1), (56, 64, 64, 3, 1), (56, 256, 64, 1, 1),
                                                (56, 256, 128, 1, 1), (28, 128, 128, 3, 1), (56, 256, 512, 1, 2), (28, 512, 256, 1, 1),
                                                (14, 256, 256, 3, 1), (28, 256, 256, 3, 2), (14, 1024, 512, 1, 1), (7, 512, 512, 3, 1),
                                                (7, 512, 2048, 1, 1)):  # fmt: skip
        x, y = (BATCH, size, size, channels), (BATCH, -(-size // stride), -(-size // stride), out)
        k, attributes = (kernel, kernel, channels, out), f"strides = [{stride}, {stride}], padding = same"
        name = f"{kernel}x{kernel} s{stride} {channels}-{out} @{size}"
        yield f"by image  {name}", "conv2d_input_gradient", (y, k), x, (x,), attributes
        yield f"by kernel {name}", "conv2d_kernel_gradient", (x, y), k, (k,), attributes


def others():
    x, c = (BATCH, 56, 56, 256), (256,)
    yield "batch norm @56x256", "batch_norm_training", (x, c, c), None, (x, c, c), "axis = -1, epsilon = 0.001"
    yield "its gradient @56x256", "batch_norm_gradient", (x, x, c, c, c), None, (x, c, c), "axis = -1, epsilon = 0.001"
    pool = "window = [3, 3], strides = [2, 2], padding = same"
    yield "max pool's gradient @112x64", "max_pool2d_gradient", ((BATCH, 112, 112, 64), (BATCH, 56, 56, 64)), None, ((BATCH, 112, 112, 64),), pool  # fmt: skip
    yield "bias gradient @28x512", "reduce_sum", ((BATCH, 28, 28, 512),), None, ((512,),), "axes = [0, 1, 2]"
    yield "cross entropy 256x1000", "softmax_cross_entropy", ((256, 1000), (256, 1000)), None, ((256,), (256, 1000)), ""
    yield "dense by weights 2048x1000", "matmul", ((256, 2048), (256, 1000)), None, ((2048, 1000),), "transpose_a = true"


def module_of(op, inputs, shape, results, attributes):
    def typed(dims):
        return f"f32[{', '.join(map(str, dims))}]"

    names = [f"%i{i}" for i in range(len(inputs))]
    parameters = ", ".join(f"{name}: {typed(dims)}" for name, dims in zip(names, inputs))
    outputs = ", ".join(f"%r{i}: {typed(dims)}" for i, dims in enumerate(results))
    text = f"module @op {{ func @main({parameters}) -> ({outputs}) {{\n"
    if shape:
        names.append("%shape")
        text += f"%shape = constant {{value = i64[4] ({', '.join(map(str, shape))})}}\n"
    values = ", ".join(f"%r{i}" for i in range(len(results)))
    attributes = attributes and f" {{{attributes}}}"
    return text + f"{values} = {op} {', '.join(names)}{attributes}\nreturn {values} }} }}\n"


def tensorflow_of(op, inputs, shape, attributes):
    """A call of TensorFlow's kernel on random data."""
    import tensorflow as tf

    values = [tf.random.uniform(dims, 0.5, 1.5) for dims in inputs]
    stride = 2 if "strides = [2, 2]" in attributes else 1
    common = {"strides": [1, stride, stride, 1], "padding": "SAME"}
    raw = tf.raw_ops
    epsilon = {"epsilon": 0.001, "is_training": True}
    calls = {
        "conv2d_input_gradient": lambda dy, k: raw.Conv2DBackpropInput(input_sizes=shape, filter=k, out_backprop=dy, **common),
        "conv2d_kernel_gradient": lambda x, dy: raw.Conv2DBackpropFilter(input=x, filter_sizes=shape, out_backprop=dy, **common),
        "batch_norm_training": lambda x, s, o: raw.FusedBatchNormV3(x=x, scale=s, offset=o, mean=[], variance=[], **epsilon),
        "batch_norm_gradient": lambda dy, x, s, m, v: raw.FusedBatchNormGradV3(
            y_backprop=dy, x=x, scale=s, reserve_space_1=m, reserve_space_2=v, reserve_space_3=v, **epsilon
        ),
        "max_pool2d_gradient": lambda x, dy: raw.MaxPoolGrad(
            orig_input=x, orig_output=tf.nn.max_pool2d(x, 3, 2, "SAME"), grad=dy, ksize=[1, 3, 3, 1], **common
        ),
        "reduce_sum": lambda x: tf.reduce_sum(x, [0, 1, 2]),
        "softmax_cross_entropy": lambda x, y: raw.SoftmaxCrossEntropyWithLogits(features=x, labels=y),
        "matmul": lambda a, b: tf.matmul(a, b, transpose_a=True),
    }
    function = tf.function(lambda *values: calls[op](*values))
    call = function.get_concrete_function(*values)
    return lambda: call(*values)


def fastest(call, runs):
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


class Cairn:
    def __init__(self, program, file):
        self.worker = subprocess.Popen([program, "bench", file, "--worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def fastest(self, runs):
        self.worker.stdin.write(f"run 0 {runs}\n")
        self.worker.stdin.flush()
        for line in self.worker.stdout:
            if '"t"' in line:
                return min(json.loads(line[line.index("{") :])["t"])
        raise SystemExit("the worker of Cairn ended")

    def end(self):
        self.worker.kill()
        self.worker.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--runs", type=int, default=5, help="of each side in a round")
    parser.add_argument("--cairn", default=ROOT / ".venv/bin/cairn", help="the program (default %(default)s)")
    options = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    print(f"{'kernel':36} {'Cairn ms':>10} {'TF ms':>10}  ratio")
    with tempfile.TemporaryDirectory() as folder:
        for name, op, inputs, shape, results, attributes in (*convolutions(), *others()):
            if options.words and not any(word in name for word in options.words):
                continue
            file = Path(folder) / "op.ir"
            file.write_text(module_of(op, inputs, shape, results, attributes))
            ours, theirs = Cairn(options.cairn, file), tensorflow_of(op, inputs, shape, attributes)
            pairs = [(ours.fastest(options.runs), fastest(theirs, options.runs)) for _ in range(options.rounds + 1)][1:]
            ours.end()
            ratio = statistics.median(a / b for a, b in pairs)
            print(f"{name:36} {min(a for a, _ in pairs) * 1e3:10.2f} {min(b for _, b in pairs) * 1e3:10.2f}  {ratio:.2f}", flush=True)


if __name__ == "__main__":
    main()
