"""Three small networks as functions of variables, each also as the mean loss of a batch; data that any number of ranks cut the same way."""

import zlib

import numpy as np
import tensorflow.compat.v1 as tf

BATCH = 16


def variable(name, shape):
    """The same first value in every process."""
    values = np.random.RandomState(zlib.crc32(name.encode())).randn(*shape) / np.sqrt(np.prod(shape[:-1]) or 1)
    return tf.get_variable(name, initializer=values.astype(np.float32))


def dense(x, units, name, activation=tf.identity):
    w = variable(f"{name}/kernel", [int(x.shape[-1]), units])
    return activation(tf.tensordot(x, w, 1) + tf.get_variable(f"{name}/bias", initializer=np.zeros(units, np.float32)))


def conv(x, filters, size, name, stride=1):
    return tf.nn.conv2d(x, variable(name, [size, size, int(x.shape[-1]), filters]), [1, stride, stride, 1], "SAME")


def batch_norm(x, name):
    scale = tf.get_variable(f"{name}/gamma", initializer=np.ones(int(x.shape[-1]), np.float32))
    offset = tf.get_variable(f"{name}/beta", initializer=np.zeros(int(x.shape[-1]), np.float32))
    return tf.nn.fused_batch_norm(x, scale, offset, is_training=True)[0]


def cross_entropy(labels, logits):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def lenet(images):
    x = tf.nn.max_pool(tf.nn.relu(conv(images, 6, 5, "conv1")), 2, 2, "SAME")
    x = tf.nn.max_pool(tf.nn.relu(conv(x, 16, 5, "conv2")), 2, 2, "SAME")
    x = tf.reshape(x, [-1, 7 * 7 * 16])
    x = dense(dense(x, 120, "dense1", tf.nn.relu), 84, "dense2", tf.nn.relu)
    return dense(x, 10, "logits")


def resnet(images):
    x = tf.nn.relu(batch_norm(conv(images, 8, 3, "stem"), "stem_norm"))
    for block, (filters, stride) in enumerate([(8, 1), (16, 2), (32, 2)]):
        short = x if stride == 1 else conv(x, filters, 1, f"block{block}/short", stride)
        y = tf.nn.relu(batch_norm(conv(x, filters, 3, f"block{block}/conv1", stride), f"block{block}/norm1"))
        x = tf.nn.relu(short + batch_norm(conv(y, filters, 3, f"block{block}/conv2"), f"block{block}/norm2"))
    return dense(tf.reduce_mean(x, [1, 2]), 10, "logits")


def layer_norm(x, name):
    mean, variance = tf.nn.moments(x, [-1], keep_dims=True)
    gamma = tf.get_variable(f"{name}/gamma", initializer=np.ones(int(x.shape[-1]), np.float32))
    return (x - mean) * tf.rsqrt(variance + 1e-6) * gamma


def bert(ids):
    x = tf.gather(variable("words", [100, 32]), ids) + variable("places", [12, 32])
    for layer in range(2):
        heads = lambda t: tf.transpose(tf.reshape(t, [-1, 12, 4, 8]), [0, 2, 1, 3])
        q, k, v = (heads(dense(x, 32, f"layer{layer}/{each}")) for each in "qkv")
        weights = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) / np.sqrt(8.0))
        mixed = tf.reshape(tf.transpose(tf.matmul(weights, v), [0, 2, 1, 3]), [-1, 12, 32])
        x = layer_norm(x + dense(mixed, 32, f"layer{layer}/out"), f"layer{layer}/norm1")
        inner = dense(x, 64, f"layer{layer}/inner", tf.nn.gelu if hasattr(tf.nn, "gelu") else tf.nn.relu)
        x = layer_norm(x + dense(inner, 32, f"layer{layer}/outer"), f"layer{layer}/norm2")
    return dense(tf.tanh(dense(x[:, 0], 32, "pooler")), 3, "logits")


LOGITS = {"lenet": lenet, "resnet": resnet, "bert": bert}
NETS = {name: lambda inputs, labels, logits=logits: cross_entropy(labels, logits(inputs)) for name, logits in LOGITS.items()}


def batches(net, steps):
    """[(inputs, labels)] of whole batches; what is to be learned shows in the inputs."""
    random = np.random.RandomState(7)
    made = []
    for _ in range(steps):
        if net == "bert":
            ids = random.randint(0, 100, [BATCH, 12])
            made.append((ids.astype(np.int32), (ids[:, 0] % 3).astype(np.int64)))
            continue
        side = 28 if net == "lenet" else 32
        labels = random.randint(0, 10, BATCH)
        images = random.rand(BATCH, side, side, 1 if net == "lenet" else 3)
        images += np.sin(np.arange(side) * (labels[:, None] + 1) / 5.0)[:, :, None, None]
        made.append((images.astype(np.float32), labels.astype(np.int64)))
    return made


def part(batch, parts, index):
    rows = BATCH // parts
    return tuple(each[index * rows : (index + 1) * rows] for each in batch)


def mean_loss(net, inputs, labels, parts):
    """The loss of the batch, in `parts` parts with shared variables: what ranks with a part each compute together."""
    losses = []
    for index in range(parts):
        with tf.variable_scope("net", reuse=index > 0):
            losses.append(NETS[net](*(tf.split(each, parts)[index] for each in (inputs, labels))))
    return tf.add_n(losses) / parts
