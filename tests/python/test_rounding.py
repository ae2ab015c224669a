"""The rounding error of every family of kernels, against the same computation in float64, is at most half again that of stock
TensorFlow in float32, or that of a result which is nearly correctly rounded. Inputs are float32 numbers for all."""

import os

import numpy as np
import pytest
import tensorflow as tf

import cairn

MORE, MORE_MOST = 1.5, 2.0  # times stock's error; the largest of many is a chance matter
ULP = 2.0**-23
ROUNDED_ONCE = 0.3 * ULP  # root mean square of a correctly rounded result, of its element's size: 0.29 at most


def frozen(function, inputs, dtype):
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    def widened(array):
        return tf.TensorSpec(array.shape, dtype if array.dtype.kind == "f" else array.dtype)

    def named(*arrays):
        results = function(*arrays)
        return list(results) if isinstance(results, (tuple, list)) else [results]

    return convert_variables_to_constants_v2(tf.function(named).get_concrete_function(*map(widened, inputs)))


def run_stock(function, inputs, dtype):
    arrays = [tf.constant(array, dtype if array.dtype.kind == "f" else None) for array in inputs]
    return [result.numpy() for result in frozen(function, inputs, dtype)(*arrays)]


def run_cairn(function, inputs, path, threads=2):
    concrete = frozen(function, inputs, tf.float32)
    path.write_bytes(concrete.graph.as_graph_def().SerializeToString())
    model = cairn.load(str(path), threads=threads)
    names = [tensor.name.split(":")[0] for tensor in concrete.inputs]
    results = model.run(dict(zip(names, inputs)))
    return [results[tensor.name.split(":")[0]] for tensor in concrete.outputs]


def errors(found, truth, by_element):
    """Root mean square and largest error, in units of each element's size or of that of the whole."""
    size = np.maximum(np.abs(truth), 1e-37) if by_element else max(np.sqrt(np.mean(np.square(truth))), 1e-300)
    off = np.abs(found.astype(np.float64) - truth) / size
    return float(np.sqrt(np.mean(np.square(off)))), float(off.max())


def judge(name, function, inputs, path, by_element=False):
    truth = run_stock(function, inputs, tf.float64)
    stock, ours = run_stock(function, inputs, tf.float32), run_cairn(function, inputs, path)
    for index, (exact, theirs, mine) in enumerate(zip(truth, stock, ours, strict=True)):
        if exact.dtype.kind != "f":
            continue
        assert mine.shape == exact.shape
        (mine_rms, mine_most), (their_rms, their_most) = errors(mine, exact, by_element), errors(theirs, exact, by_element)
        largest = np.abs(exact).max() / max(np.sqrt(np.mean(np.square(exact))), 1e-300) if not by_element else 1.0
        told = f"{name}, result {index}: ours {mine_rms:.2e} (at most {mine_most:.2e}), stock's {their_rms:.2e} ({their_most:.2e})"
        if os.environ.get("CAIRN_SHOW_ROUNDING"):
            print(told, f"ratio {mine_rms / max(their_rms, ROUNDED_ONCE):.2f} {mine_most / max(their_most, ULP * largest):.2f}")
            continue
        # The error of one number is as good as any within an ulp.
        least = ROUNDED_ONCE if exact.size > 64 else ULP
        assert mine_rms <= MORE * max(their_rms, least), told
        assert mine_most <= MORE_MOST * max(their_most, ULP * largest), told


def normal(*dims, scale=1.0, mean=0.0, seed=0):
    return (np.random.RandomState(seed + sum(dims)).randn(*dims) * scale + mean).astype(np.float32)


def spread_out(low, high, count=20001):
    """Numbers over a range, as many large as small ones."""
    return np.concatenate([np.linspace(low, high, count), np.linspace(low, high, 1001) * 1e-3]).astype(np.float32)


def positive(low=-12.0, high=12.0, count=20001):
    return (10.0 ** np.linspace(low, high, count)).astype(np.float32)


def gradient(function):
    """The function's results and the gradients of all its floating inputs, for a given gradient of the first result."""

    def both(upstream, *inputs):
        with tf.GradientTape() as tape:
            watched = [each for each in inputs if each.dtype.is_floating]
            tape.watch(watched)
            result = function(*inputs)
        return [result, *tape.gradient(result, watched, upstream)]

    return both


ELEMENTWISE = {
    "exp": (tf.exp, [spread_out(-80, 80)]),
    "expm1": (tf.math.expm1, [spread_out(-20, 20)]),
    "log": (tf.math.log, [positive()]),
    "log near 1": (tf.math.log, [spread_out(0.9, 1.1)]),
    "log1p": (tf.math.log1p, [np.concatenate([spread_out(-0.9, 30), positive(-12, -1)])]),
    "tanh": (tf.tanh, [spread_out(-9, 9)]),
    "sigmoid": (tf.sigmoid, [spread_out(-60, 60)]),
    "softplus": (tf.nn.softplus, [spread_out(-60, 60)]),
    "erf": (tf.math.erf, [spread_out(-4, 4)]),
    "erfc": (tf.math.erfc, [spread_out(-4, 4)]),
    "gelu": (tf.nn.gelu, [spread_out(-3, 8)]),
    "gelu by tanh": (lambda x: tf.nn.gelu(x, approximate=True), [spread_out(-2, 8)]),
    "selu": (tf.nn.selu, [spread_out(-20, 20)]),
    "elu": (tf.nn.elu, [spread_out(-20, 20)]),
    "swish": (lambda x: x * tf.sigmoid(x), [spread_out(-20, 20)]),
    "rsqrt": (tf.math.rsqrt, [positive()]),
    "sqrt": (tf.sqrt, [positive()]),
    "reciprocal": (tf.math.reciprocal, [positive()]),
    "pow": (tf.pow, [positive(-3, 3), spread_out(-5, 5)[:20001]]),
    "pow of a constant": (lambda x: tf.pow(x, tf.constant(2.5, x.dtype)), [positive(-3, 3)]),
    "sin": (tf.sin, [spread_out(-30, 30)]),
    "cos": (tf.cos, [spread_out(-30, 30)]),
    "tan": (tf.tan, [spread_out(-1.5, 1.5)]),
    "asin": (tf.asin, [spread_out(-1, 1)]),
    "acos": (tf.acos, [spread_out(-1, 0.99)]),
    "atan": (tf.atan, [spread_out(-30, 30)]),
    "sinh": (tf.sinh, [spread_out(-20, 20)]),
    "cosh": (tf.cosh, [spread_out(-20, 20)]),
    "asinh": (tf.asinh, [spread_out(-30, 30)]),
    "acosh": (tf.acosh, [spread_out(1.1, 30)[:20001]]),
    "atanh": (tf.atanh, [spread_out(-0.99, 0.99)]),
    "atan2": (tf.atan2, [spread_out(-5, 5), spread_out(-7, 3)]),
    "softsign": (tf.nn.softsign, [spread_out(-20, 20)]),
    "xlogy": (tf.math.xlogy, [positive(-3, 3), positive(-2, 4)]),
    "divide": (tf.divide, [positive(-3, 3), positive(-2, 4)]),
    "squared difference": (tf.math.squared_difference, [positive(-3, 3), positive(-2, 4)]),
}
# Sums of signs that cancel are judged by the size of the whole result.
CANCEL = {"sin", "cos", "erfc", "gelu", "gelu by tanh", "log near 1", "acos", "selu", "swish"}

X = normal(64, 1000)
IMAGE = normal(8, 14, 14, 64)


def softmax_of(x):
    return tf.nn.softmax(x), tf.nn.log_softmax(x)


def moments(*axes):
    def both(x):
        mean, variance = tf.nn.moments(x, axes)
        return mean, variance, tf.math.reduce_std(x, axes)

    return both


def layer_norm(x, scale, offset):
    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    return (x - mean) * tf.math.rsqrt(variance + tf.constant(1e-5, x.dtype)) * scale + offset


def batch_norm(x, scale, offset):
    """FusedBatchNormV3 takes no float64: the same formula there."""
    if x.dtype == tf.float32:
        return tf.raw_ops.FusedBatchNormV3(x=x, scale=scale, offset=offset, mean=tf.zeros([0]), variance=tf.zeros([0]),
                                           epsilon=1e-3, is_training=True)[0]  # fmt: skip
    mean, variance = tf.nn.moments(x, [0, 1, 2])
    return tf.nn.batch_normalization(x, mean, variance, offset, scale, tf.constant(np.float32(1e-3), x.dtype))


def conv_and_norm(kernel, stride=1, depthwise=False):
    """As frozen after training: shifts that are larger than the products."""
    channels = kernel.shape[2] if depthwise else kernel.shape[3]
    scale, variance = np.abs(normal(channels)) + 0.3, np.abs(normal(channels, seed=2)) + 0.05
    mean, offset = normal(channels, seed=3), normal(channels, scale=4, seed=4)

    def both(x):
        weights = tf.constant(kernel, x.dtype)
        product = tf.nn.depthwise_conv2d(x, weights, [1, stride, stride, 1], "SAME") if depthwise else conv(stride)(x, weights)
        if x.dtype == tf.float32:
            return tf.raw_ops.FusedBatchNormV3(x=product, scale=scale, offset=offset, mean=mean, variance=variance,
                                               epsilon=1e-3, is_training=False)[0]  # fmt: skip
        statistics = [tf.constant(each, x.dtype) for each in (mean, variance, offset, scale)]
        return tf.nn.batch_normalization(product, *statistics, tf.constant(np.float32(1e-3), x.dtype))

    return both


def cross_entropy(logits, labels):
    return tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits)


def sparse_cross_entropy(logits):
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=np.arange(64) % 1000, logits=logits)


def attention(q, k, v):
    return tf.matmul(tf.nn.softmax(tf.matmul(q, k, transpose_b=True) / 8), v)


def adam(value, m, v, change):
    """ApplyAdam's formula, as TensorFlow computes it, and the weights' decay of AdamW."""
    beta1, beta2, rate = (tf.constant(np.float32(x), value.dtype) for x in (0.9, 0.999, 1e-3))
    m += (change - m) * (1 - beta1)
    v += (tf.square(change) - v) * (1 - beta2)
    return value - rate * (m / (tf.sqrt(v) + tf.constant(np.float32(1e-7), value.dtype)) + value * rate), m, v


def momentum(value, velocity, change):
    velocity = velocity * tf.constant(np.float32(0.9), value.dtype) + change
    return value - velocity * tf.constant(np.float32(0.01), value.dtype), velocity


def clipped(*changes):
    return tf.clip_by_global_norm(changes, tf.constant(1.0, changes[0].dtype))[0]


def conv(stride=1, padding="SAME"):
    return lambda x, kernel: tf.nn.conv2d(x, kernel, stride, padding)


def constant_conv(ic, oc):
    """By Winograd's method, in tiles that the number of channels chooses."""
    return lambda x: tf.nn.conv2d(x, tf.constant(normal(3, 3, ic, oc), x.dtype), 1, "SAME")


def rectified(*dims):
    return np.maximum(normal(*dims), 0)


OTHERS = {
    "sum of a million": (tf.reduce_sum, [normal(1000000)]),
    "sum of a million positive ones": (tf.reduce_sum, [np.abs(normal(1000000))]),
    "mean of a million": (tf.reduce_mean, [normal(1000, 1000, mean=3)]),
    "sum of rows": (lambda x: tf.reduce_sum(x, 1), [np.abs(normal(16, 65536))]),
    "sum of columns": (lambda x: tf.reduce_sum(x, 0), [np.abs(normal(65536, 16))]),
    "sum of many columns": (lambda x: tf.reduce_sum(x, 0), [np.abs(normal(4096, 512))]),
    "sum of few columns": (lambda x: tf.reduce_sum(x, 0), [np.abs(normal(100000, 3))]),
    "mean of the middle": (lambda x: tf.reduce_mean(x, [1, 2]), [np.abs(normal(8, 56, 56, 64))]),
    "sum of squares": (lambda x: tf.nn.l2_loss(x), [normal(1000000)]),
    "norm": (lambda x: tf.norm(x), [normal(1000000)]),
    "logsumexp": (lambda x: tf.reduce_logsumexp(x, -1), [normal(64, 5000)]),
    "cumsum": (lambda x: tf.cumsum(x, -1), [np.abs(normal(16, 5000))]),
    "product": (lambda x: tf.reduce_prod(x, -1), [normal(100, 200, scale=0.1, mean=1)]),
    "bias gradient": (lambda x: tf.raw_ops.BiasAddGrad(out_backprop=x), [np.abs(normal(32, 56, 56, 16))]),
    "moments": (moments(0), [normal(100000, 8)]),
    "moments of a large mean": (moments(0), [normal(100000, 8, scale=0.01, mean=10)]),
    "moments of rows": (moments(1), [normal(16, 50000, scale=0.1, mean=5)]),
    "softmax": (softmax_of, [X * 4]),
    "softmax of long rows": (softmax_of, [normal(4, 50000)]),
    "softmax along the first axis": (lambda x: tf.nn.softmax(x, 0), [X]),
    "layer norm": (layer_norm, [normal(64, 1024, mean=2), normal(1024), normal(1024)]),
    "layer norm of a large mean": (layer_norm, [normal(64, 4096, scale=0.1, mean=20), normal(4096), normal(4096)]),
    "layer norm gradient": (gradient(layer_norm), [normal(64, 1024), normal(64, 1024, mean=2), normal(1024), normal(1024)]),
    "batch norm": (batch_norm, [IMAGE, normal(64), normal(64)]),
    "batch norm of a large mean": (batch_norm, [normal(16, 28, 28, 32, scale=0.1, mean=10), normal(32), normal(32)]),
    "batch norm of many rows": (batch_norm, [normal(32, 56, 56, 8, mean=1), normal(8), normal(8)]),
    "batch norm gradient": (gradient(batch_norm), [normal(8, 14, 14, 64, seed=1), IMAGE, normal(64), normal(64)]),
    "batch norm gradient of many rows": (gradient(batch_norm), [normal(16, 56, 56, 8, seed=1), normal(16, 56, 56, 8, mean=1), normal(8), normal(8)]),
    "conv and batch norm": (conv_and_norm(normal(3, 3, 3, 32, scale=0.1), 2), [np.abs(normal(2, 96, 96, 3))]),
    "conv 1x1 and batch norm": (conv_and_norm(normal(1, 1, 96, 32, scale=0.05)), [normal(2, 28, 28, 96)]),
    "deep conv and batch norm": (conv_and_norm(normal(3, 3, 64, 32, scale=0.03), 2), [normal(2, 28, 28, 64)]),
    "depthwise conv and batch norm": (conv_and_norm(normal(3, 3, 32, 1, scale=0.1), 1, True), [np.abs(normal(2, 28, 28, 32))]),
    "dense layer and a large bias": (lambda x: tf.matmul(x, tf.constant(normal(96, 32, scale=0.05), x.dtype)) + tf.constant(normal(32, scale=8), x.dtype),
                                     [normal(64, 96)]),
    "matmul": (tf.matmul, [normal(64, 256), normal(256, 64)]),
    "matmul with long k": (tf.matmul, [normal(64, 16384), normal(16384, 64)]),
    "matmul of positive numbers": (tf.matmul, [np.abs(normal(32, 8192)), np.abs(normal(8192, 32))]),
    "matmul transposed": (lambda a, b: tf.matmul(a, b, transpose_a=True), [normal(16384, 64), normal(16384, 64)]),
    "matmul gradient": (gradient(tf.matmul), [normal(2048, 512), normal(2048, 128), normal(128, 512)]),
    "batched matmul": (lambda a, b: tf.matmul(a, b, transpose_b=True), [normal(8, 64, 512), normal(8, 64, 512)]),
    "conv": (conv(), [normal(2, 14, 14, 256), normal(3, 3, 256, 64)]),
    "conv with long k": (conv(), [np.abs(normal(1, 7, 7, 1024)), np.abs(normal(3, 3, 1024, 32))]),
    "conv with longer k": (conv(2, "VALID"), [np.abs(normal(1, 5, 5, 2048)), np.abs(normal(3, 3, 2048, 32))]),
    "conv of a long kernel": (lambda x, k: tf.nn.conv1d(x, k, 1, "VALID"), [np.abs(normal(1, 1200, 64)), np.abs(normal(1025, 64, 4))]),
    "sum of products of many matrices": (lambda a, b: tf.einsum("bik,bjk->ij", a, b), [np.abs(normal(500, 16, 300)), np.abs(normal(500, 16, 300, seed=2))]),
    "conv 1x1 with long k": (conv(), [np.abs(normal(1, 7, 7, 2048)), np.abs(normal(1, 1, 2048, 64))]),
    "conv of 16 channels": (constant_conv(16, 16), [rectified(1, 56, 56, 16)]),
    "conv of 24 channels": (constant_conv(24, 24), [rectified(1, 56, 56, 24)]),
    "conv of 32 channels": (constant_conv(32, 32), [rectified(1, 56, 56, 32)]),
    "conv of 48 channels": (constant_conv(48, 48), [rectified(2, 28, 28, 48)]),
    "conv of 64 channels": (constant_conv(64, 64), [rectified(1, 28, 28, 64)]),
    "conv of 64 channels, normal numbers": (constant_conv(64, 64), [normal(1, 28, 28, 64)]),
    "conv of 128 channels": (constant_conv(128, 64), [rectified(1, 28, 28, 128)]),
    "conv of 256 channels": (constant_conv(256, 64), [rectified(1, 28, 28, 256)]),
    "attention": (attention, [normal(2, 4, 96, 64), normal(2, 4, 96, 64, seed=1), normal(2, 4, 96, 64, seed=2)]),
    "attention gradient": (gradient(attention), [normal(2, 4, 96, 64, seed=4), normal(2, 4, 96, 64), normal(2, 4, 96, 64, seed=1), normal(2, 4, 96, 64, seed=2)]),
    "dense layer with long k": (lambda x, w, b: tf.nn.gelu(tf.matmul(x, w) + b), [normal(64, 3072), normal(3072, 128) / 55, normal(128)]),
    "conv with strides": (conv(2), [normal(2, 28, 28, 64), normal(3, 3, 64, 64)]),
    "conv gradient": (gradient(conv()), [normal(8, 28, 28, 32), normal(8, 28, 28, 32, mean=0.5), normal(3, 3, 32, 32)]),
    "conv gradient of 64 channels": (gradient(conv()), [normal(8, 28, 28, 64), rectified(8, 28, 28, 64), normal(3, 3, 64, 64)]),
    "conv gradient of 128 channels": (gradient(conv()), [normal(16, 14, 14, 128), rectified(16, 14, 14, 128), normal(3, 3, 128, 128)]),
    "conv gradient with strides": (gradient(conv(2)), [normal(8, 28, 28, 32), normal(8, 56, 56, 16), normal(3, 3, 16, 32)]),
    "conv 1x1 gradient": (gradient(conv()), [normal(8, 28, 28, 64), np.abs(normal(8, 28, 28, 64)), normal(1, 1, 64, 64)]),
    "depthwise conv gradient": (gradient(lambda x, k: tf.nn.depthwise_conv2d(x, k, [1, 1, 1, 1], "SAME")),
                                [normal(8, 28, 28, 32), normal(8, 28, 28, 32), normal(3, 3, 32, 1)]),
    "average pooling": (lambda x: tf.nn.avg_pool2d(x, 7, 7, "VALID"), [np.abs(normal(8, 56, 56, 16))]),
    "cross entropy": (gradient(cross_entropy), [normal(64), X * 3, np.abs(normal(64, 1000, seed=3)) / 800]),
    "sparse cross entropy": (gradient(sparse_cross_entropy), [normal(64), X * 3]),
    "sigmoid cross entropy": (gradient(lambda x: tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.cast(x > 0, x.dtype), logits=x)),
                              [normal(64, 1000), X * 3]),
    "segment sum": (lambda x: tf.math.unsorted_segment_sum(x, np.arange(100000) % 10, 10), [np.abs(normal(100000, 8))]),
    "gelu gradient": (gradient(tf.nn.gelu), [X, normal(64, 1000, seed=5) * 2]),
    "tanh gradient": (gradient(tf.tanh), [X, normal(64, 1000, seed=5) * 2]),
    "softmax gradient": (gradient(tf.nn.softmax), [X, normal(64, 1000, seed=5)]),
    "log softmax gradient": (gradient(tf.nn.log_softmax), [X, normal(64, 1000, seed=5)]),
    "adam": (adam, [X, X * 0.1, np.abs(X) * 0.01, normal(64, 1000, seed=7)]),
    "momentum": (momentum, [X, X * 0.1, normal(64, 1000, seed=7)]),
    "clip by global norm": (clipped, [X * 100, normal(1000, 500, seed=8)]),
}  # fmt: skip


# One of those computed in f64 stands for the others.
LONG = {"asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "atan2", "sqrt", "reciprocal", "divide", "softsign", "xlogy"}


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.long) if name in LONG else name for name in ELEMENTWISE])
def test_a_function_of_elements_rounds_as_well_as_stock(name, tmp_path):
    function, inputs = ELEMENTWISE[name]
    judge(name, function, inputs, tmp_path / "graph.pb", by_element=name not in CANCEL)


@pytest.mark.parametrize("name", OTHERS)
def test_sums_and_products_round_as_well_as_stock(name, tmp_path):
    function, inputs = OTHERS[name]
    judge(name, function, inputs, tmp_path / "graph.pb")
