"""Further nets of bench/half.py: of other kinds than ResNet and BERT, at sizes that a step of takes some milliseconds."""

import nets
import numpy as np
import training_steps


def convolved(ops, x, name, inputs, outputs, stride=1):
    return ops.relu(ops.batch_norm(ops.conv(x, name, inputs, outputs, 3, stride), name + "n", outputs))


def enlarged(ops, x, name, inputs, outputs):
    """A transposed convolution that doubles height and width."""
    kernel, tf = ops.variable(name, [2, 2, outputs, inputs], (1 / inputs) ** 0.5), ops.tf
    height, width = map(int, x.shape[1:3])
    return tf.nn.conv2d_transpose(x, kernel, [tf.shape(x)[0], 2 * height, 2 * width, outputs], [1, 2, 2, 1])


def unet(ops, x):
    """Which pixels are bright."""
    image, widths, kept, channels = x, (32, 64, 128), [], 3
    for i, width in enumerate(widths):
        x = convolved(ops, convolved(ops, x, f"a{i}", channels, width), f"b{i}", width, width)
        kept.append(x)
        x, channels = ops.max_pool(x, 2, 2, 0), width
    x = convolved(ops, x, "middle", channels, 2 * channels)
    for i, width in reversed(list(enumerate(widths))):
        x = ops.tf.concat([enlarged(ops, x, f"u{i}", 2 * width, width), kept.pop()], -1)
        x = convolved(ops, convolved(ops, x, f"c{i}", 2 * width, width), f"d{i}", width, width)
    mask = ops.conv(x, "mask", widths[0], 1, 1, 1)
    light = ops.tf.cast(ops.tf.reduce_mean(image, -1, keepdims=True) > 0, ops.tf.float32)
    return ops.tf.reduce_mean(ops.tf.nn.sigmoid_cross_entropy_with_logits(labels=light, logits=mask))


def autoencoder(ops, x):
    image, channels = x, 3
    for i, width in enumerate((32, 64, 128)):
        x, channels = convolved(ops, x, f"in{i}", channels, width, 2), width
    for i, width in enumerate((64, 32, 3)):
        x = enlarged(ops, x, f"out{i}", channels, width)
        x, channels = ops.relu(ops.batch_norm(x, f"out{i}n", width)) if i < 2 else x, width
    return ops.tf.reduce_mean(ops.tf.square(x - image))


def block(ops, x, name, words, width, heads, causal=False):
    """A block of a transformer that normalises first."""
    tf, depth = ops.tf, width // heads
    h = ops.layer_norm(x, name + "n1")
    q, k, v = (tf.transpose(tf.reshape(ops.dense(h, name + part, width, width, "xavier"), [-1, words, heads, depth]), [0, 2, 1, 3]) for part in "qkv")
    scores = tf.matmul(q, k, transpose_b=True) * depth**-0.5
    if causal:
        scores += np.triu(np.full((words, words), -1e4, np.float32), 1)
    seen = tf.reshape(tf.transpose(tf.matmul(tf.nn.softmax(scores), v), [0, 2, 1, 3]), [-1, words, width])
    x = x + ops.dense(seen, name + "o", width, width, "xavier")
    return x + ops.dense(ops.gelu(ops.dense(ops.layer_norm(x, name + "n2"), name + "f1", width, 4 * width)), name + "f2", 4 * width, width)


def decoder(ops, ids):
    words, width = 64, 256
    x = ops.tf.gather(ops.variable("words", [nets.VOCABULARY, width], 0.02), ids) + ops.variable("places", [words, width], 0.02)
    for layer in range(3):
        x = block(ops, x, f"l{layer}", words, width, 4, causal=True)
    return ops.dense(ops.layer_norm(x, "n")[:, -1], "classes", width, 20)


def vit(ops, x):
    words, width = 64, 192
    x = ops.tf.reshape(ops.conv(x, "patches", 3, width, 4, 4, 0), [-1, words, width]) + ops.variable("places", [words, width], 0.02)
    for layer in range(4):
        x = block(ops, x, f"l{layer}", words, width, 3)
    return ops.dense(ops.tf.reduce_mean(ops.layer_norm(x, "n"), 1), "classes", width, 10)


def gru_attention(ops, ids):
    """A GRU over the words, of whose states the last one looks at all."""
    tf, words, width = ops.tf, 32, 256
    table = ops.variable("words", [nets.VOCABULARY, width], 0.1)
    gates, gate_bias = ops.variable("gates", [2 * width, 2 * width], 0.05), ops.variable("gate_bias", [2 * width])
    kernel, bias = ops.variable("kernel", [2 * width, width], 0.05), ops.variable("bias", [width])

    def turn(h, x):
        r, z = tf.split(tf.sigmoid(tf.nn.bias_add(tf.matmul(tf.concat([x, h], 1), gates), gate_bias)), 2, 1)
        made = tf.tanh(tf.nn.bias_add(tf.matmul(tf.concat([x, r * h], 1), kernel), bias))
        return z * h + (1 - z) * made

    x = tf.transpose(tf.gather(table, ids), [1, 0, 2])
    x.set_shape([words, None, width])
    states = tf.scan(turn, x, tf.zeros_like(x[0]))
    last = states[-1]
    rows = tf.transpose(states, [1, 0, 2])
    shares = tf.nn.softmax(tf.matmul(tf.matmul(rows, ops.variable("look", [width, width], 0.05)), last[:, :, None]), 1)
    seen = tf.reduce_sum(shares * rows, 1)
    return ops.dense(tf.concat([last, seen], 1), "classes", 2 * width, 20)


def recommender(ops, ids):
    """Rows of tables and their products with each other, through dense layers."""
    tf, fields, width = ops.tf, 8, 32
    rows = tf.stack([tf.gather(ops.variable(f"table{i}", [nets.VOCABULARY, width], 0.05), ids[:, i]) for i in range(fields)], 1)
    pairs = tf.reshape(tf.matmul(rows, rows, transpose_b=True), [-1, fields * fields])
    x = tf.concat([tf.reshape(rows, [-1, fields * width]), pairs], 1)
    x = ops.relu(ops.dense(x, "f1", fields * (width + fields), 512))
    return ops.dense(ops.relu(ops.dense(x, "f2", 512, 256)), "f3", 256, 2)


IMAGES = {"unet": (unet, 16), "autoencoder": (autoencoder, 32), "vit": (vit, 32)}
WORDS = {"decoder": (decoder, 64, 16), "gru_attention": (gru_attention, 32, 64), "recommender": (recommender, 8, 512)}

nets.NETS.update({name: (build, None, None) for name, (build, *_) in (IMAGES | WORDS).items()})
training_steps.STEPS.update({name: (name, (32, 32, 3), batch, 10) for name, (_, batch) in IMAGES.items()})
training_steps.STEPS.update({name: (name, (words,), batch, 2 if name == "recommender" else 20) for name, (_, words, batch) in WORDS.items()})
training_steps.WORDS.update(WORDS)
FURTHER = (*IMAGES, *WORDS)
