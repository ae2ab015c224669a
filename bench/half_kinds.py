"""More nets of bench/half.py, of kinds that half_nets.py lacks: two towers, sound, a generator against its critic, gates, tokens
mixed by products, and words translated into others."""

import half_nets
import nets
import training_steps


def two_towers(ops, ids):
    """Users and items as means of words, each through layers of its own; an item's users are to be nearer than all others."""
    tf, width = ops.tf, 64

    def tower(name, words):
        x = tf.reduce_mean(tf.gather(ops.variable(name, [nets.VOCABULARY, width], 0.05), words), 1)
        x = ops.relu(ops.dense(x, name + "1", width, 512))
        return tf.math.l2_normalize(ops.dense(ops.relu(ops.dense(x, name + "2", 512, 256)), name + "3", 256, 128), 1)

    scores = 20 * tf.matmul(tower("user", ids[:, :16]), tower("item", ids[:, 16:]), transpose_b=True)
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.range(tf.shape(ids)[0]), logits=scores))


def sound(ops, x):
    """Convolutions along time, dilated, with gates and what skips them."""
    tf = ops.tf
    rows = tf.reshape(x, [-1, 1, 1024, 3])

    def along(x, name, inputs, outputs, taps, stride=1, dilation=1):
        kernel = ops.variable(name, [1, taps, inputs, outputs], (1 / (taps * inputs)) ** 0.5)
        return tf.nn.conv2d(x, kernel, [1, 1, stride, 1], "SAME", dilations=[1, 1, dilation, 1])

    x, skipped = along(rows, "first", 3, 64, 9, 2), 0
    for i in range(6):
        h = ops.batch_norm(x, f"n{i}", 64)
        h = tf.tanh(along(h, f"a{i}", 64, 64, 3, 1, 2**i)) * tf.sigmoid(along(h, f"g{i}", 64, 64, 3, 1, 2**i))
        x, skipped = x + along(h, f"o{i}", 64, 64, 1), skipped + along(h, f"s{i}", 64, 96, 1)
    return ops.dense(ops.global_pool(ops.relu(skipped)), "classes", 96, 10)


def adversaries(ops, x):
    """A generator of images and its critic, whose losses are added; each learns from its own."""
    tf = ops.tf
    noise = tf.reshape(x[:, :8, :8, 0], [-1, 64])
    made, width = tf.reshape(ops.relu(ops.dense(noise, "seed", 64, 4 * 4 * 128)), [-1, 4, 4, 128]), 128
    for i, next_width in enumerate((64, 32, 3)):
        made = half_nets.enlarged(ops, made, f"up{i}", width, next_width)
        made, width = ops.relu(ops.batch_norm(made, f"up{i}n", next_width)) if i < 2 else tf.tanh(made), next_width

    def critic(image, kernels, last):
        for kernel in kernels:
            image = tf.nn.leaky_relu(tf.nn.conv2d(image, kernel, [1, 2, 2, 1], "SAME"), 0.2)
        return tf.matmul(tf.reshape(image, [-1, 4 * 4 * 128]), last)

    sizes = ((3, 32), (32, 64), (64, 128))
    kernels = [ops.variable(f"d{i}", [4, 4, *size], (1 / (16 * size[0])) ** 0.5) for i, size in enumerate(sizes)]
    last = ops.variable("judge", [4 * 4 * 128, 1], 0.02)
    fixed = [tf.stop_gradient(kernel) for kernel in kernels]
    entropy = lambda logits, wanted: tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=wanted * tf.ones_like(logits), logits=logits))  # noqa: E731
    judged = entropy(critic(x, kernels, last), 1.0) + entropy(critic(tf.stop_gradient(made), kernels, last), 0.0)
    return judged + entropy(critic(made, fixed, tf.stop_gradient(last)), 1.0)


def gated(ops, x):
    """Blocks of 1x1, depthwise and 1x1 convolutions with gates, as MobileNetV3 and EfficientNet have them."""
    tf = ops.tf

    def block(x, name, inputs, inner, outputs, stride):
        h = tf.nn.swish(ops.batch_norm(ops.conv(x, name + "a", inputs, inner, 1, 1), name + "an", inner))
        kernel = ops.variable(name + "b", [3, 3, inner, 1], 1 / 3)
        h = tf.nn.swish(ops.batch_norm(tf.nn.depthwise_conv2d(h, kernel, [1, stride, stride, 1], "SAME"), name + "bn", inner))
        gate = ops.relu(ops.dense(ops.global_pool(h), name + "g", inner, inner // 4))
        h = h * tf.sigmoid(ops.dense(gate, name + "s", inner // 4, inner))[:, None, None, :]
        h = ops.batch_norm(ops.conv(h, name + "c", inner, outputs, 1, 1), name + "cn", outputs)
        return x + h if stride == 1 and inputs == outputs else h

    x, width = half_nets.convolved(ops, x, "stem", 3, 16), 16
    for i, (outputs, stride) in enumerate(((24, 1), (24, 1), (40, 2), (40, 1), (80, 2), (80, 1))):
        x, width = block(x, f"b{i}", width, 4 * width, outputs, stride), outputs
    return ops.dense(ops.global_pool(x), "classes", width, 10)


def mixer(ops, x):
    """Tokens and channels mixed in turn by dense layers."""
    tf, tokens, width = ops.tf, 64, 192
    x = tf.reshape(ops.conv(x, "patches", 3, width, 4, 4, 0), [-1, tokens, width])

    def mixed(x, name, size, inner):
        return ops.dense(ops.gelu(ops.dense(x, name + "1", size, inner)), name + "2", inner, size)

    for i in range(4):
        turned = tf.transpose(ops.layer_norm(x, f"t{i}n"), [0, 2, 1])
        x = x + tf.transpose(mixed(turned, f"t{i}", tokens, 2 * tokens), [0, 2, 1])
        x = x + mixed(ops.layer_norm(x, f"c{i}n"), f"c{i}", width, 4 * width)
    return ops.dense(tf.reduce_mean(ops.layer_norm(x, "n"), 1), "classes", width, 10)


def translation(ops, ids):
    """An encoder, and a decoder that looks at what it gives; each word's successor is to be told."""
    tf, words, width, kinds = ops.tf, 32, 192, 1000
    table = ops.variable("words", [kinds, width], 0.05)
    ids = ids % kinds
    read, told = ids[:, :words], ids[:, words:]
    places = ops.variable("places", [words, width], 0.02)
    seen, x = tf.gather(table, read) + places, tf.gather(table, told) + places
    for i in range(2):
        seen = half_nets.block(ops, seen, f"e{i}", words, width, 4)
        x = half_nets.block(ops, x, f"d{i}", words, width, 4, causal=True)
        q, k, v = ops.dense(ops.layer_norm(x, f"c{i}n"), f"c{i}q", width, width), ops.dense(seen, f"c{i}k", width, width), ops.dense(seen, f"c{i}v", width, width)
        x = x + ops.dense(tf.matmul(tf.nn.softmax(tf.matmul(q, k, transpose_b=True) * width**-0.5), v), f"c{i}o", width, width)
    logits = tf.matmul(tf.reshape(ops.layer_norm(x, "n")[:, :-1], [-1, width]), table, transpose_b=True)
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.reshape(told[:, 1:], [-1]), logits=logits))


IMAGES = {"sound": (sound, 32), "adversaries": (adversaries, 64), "gated": (gated, 16), "mixer": (mixer, 32)}
WORDS = {"two_towers": (two_towers, 32, 512), "translation": (translation, 64, 16)}

nets.NETS.update({name: (build, None, None) for name, (build, *_) in (IMAGES | WORDS).items()})
training_steps.STEPS.update({name: (name, (32, 32, 3), batch, 10) for name, (_, batch) in IMAGES.items()})
training_steps.STEPS.update({name: (name, (words,), batch, 2) for name, (_, words, batch) in WORDS.items()})
training_steps.WORDS.update(WORDS)
FURTHER = (*IMAGES, *WORDS)
