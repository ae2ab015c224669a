"""Training graphs of TensorFlow 1: images. A case gives its loss, the train op and the feeds, which are used in turn."""

import numpy as np
import tensorflow as tf

layers = tf.layers


def images(size=32, channels=3, batch=16, classes=10):
    """Placeholders of images and labels, and their feed."""
    random = np.random.RandomState(0)
    x, y = tf.placeholder(tf.float32, [None, size, size, channels]), tf.placeholder(tf.int64, [None])
    return x, y, [{x: random.randn(batch, size, size, channels).astype("f"), y: random.randint(classes, size=batch)}]


def cross_entropy(logits, y):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))


def classify(x, y, feeds, optimizer=None):
    """Flattens or pools the features `x` and trains a dense layer behind them."""
    x = tf.reduce_mean(x, [1, 2]) if x.shape.rank == 4 else x
    loss = cross_entropy(layers.dense(x, 10), y)
    return loss, train(loss, optimizer), feeds


def train(loss, optimizer=None):
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        return (optimizer or tf.train.MomentumOptimizer(0.01, 0.9)).minimize(loss)


def conv(x, filters, size=3, stride=1, norm=True, activation=tf.nn.relu, **more):
    x = layers.conv2d(x, filters, size, stride, "same", use_bias=not norm, **more)
    x = layers.batch_normalization(x, training=True) if norm else x
    return activation(x) if activation else x


def lenet():
    x, y, feeds = images(28, 1, 32)
    x = layers.max_pooling2d(conv(x, 6, 5, norm=False), 2, 2)
    x = layers.flatten(layers.max_pooling2d(conv(x, 16, 5, norm=False), 2, 2))
    return classify(layers.dense(layers.dense(x, 120, tf.nn.relu), 84, tf.nn.relu), y, feeds)


def alexnet_lrn():
    x, y, feeds = images(67, 3, 16)
    x = tf.nn.lrn(conv(x, 64, 11, 4, norm=False), 4, bias=1.0, alpha=1e-4, beta=0.75)
    x = tf.nn.lrn(conv(layers.max_pooling2d(x, 3, 2), 192, 5, norm=False), 4, bias=1.0, alpha=1e-4, beta=0.75)
    x = conv(layers.max_pooling2d(x, 3, 2), 256, norm=False)
    x = layers.dropout(layers.dense(layers.flatten(x), 512, tf.nn.relu), 0.0, training=True)
    return classify(x, y, feeds)


def vgg():
    x, y, feeds = images()
    for filters in (32, 64, 128):
        x = layers.max_pooling2d(conv(conv(x, filters, norm=False), filters, norm=False), 2, 2)
    return classify(layers.dense(layers.flatten(x), 256, tf.nn.relu), y, feeds)


def resnet():
    x, y, feeds = images()
    x = conv(x, 32)
    for filters, stride in ((32, 1), (64, 2), (128, 2)):
        short = x if stride == 1 else conv(x, filters, 1, stride, activation=None)
        x = tf.nn.relu(short + conv(conv(x, filters, 3, stride), filters, activation=None))
    return classify(x, y, feeds)


def resnext_groups():
    x, y, feeds = images()
    x = conv(x, 64)
    for i in range(3):
        inner = conv(x, 64, 1)
        kernel = tf.get_variable(f"grouped{i}", [3, 3, 8, 64])
        inner = tf.nn.relu(layers.batch_normalization(tf.nn.conv2d(inner, kernel, [1, 1, 1, 1], "SAME"), training=True))
        x = tf.nn.relu(x + conv(inner, 64, 1, activation=None))
    return classify(x, y, feeds)


def groups_by_split():
    x, y, feeds = images()
    x = conv(x, 64)
    for _ in range(2):
        x = tf.concat([conv(part, 16) for part in tf.split(x, 4, axis=3)], 3)
    return classify(x, y, feeds)


def densenet():
    x, y, feeds = images()
    x = conv(x, 24)
    for block in range(3):
        for _ in range(3):
            x = tf.concat([x, layers.conv2d(tf.nn.relu(layers.batch_normalization(x, training=True)), 12, 3, 1, "same")], 3)
        x = layers.average_pooling2d(conv(x, 24 + 12 * block, 1), 2, 2)
    return classify(x, y, feeds)


def inception():
    x, y, feeds = images()
    x = conv(x, 32, 3, 2)
    for _ in range(2):
        pooled = conv(layers.max_pooling2d(x, 3, 1, "same"), 16, 1)
        tall = conv(conv(x, 24, [1, 7]), 24, [7, 1])
        x = tf.concat([conv(x, 32, 1), conv(conv(x, 24, 1), 32, 3), tall, pooled], 3)
    return classify(x, y, feeds)


def mobilenet_v1():
    x, y, feeds = images(64)
    x = conv(x, 32, 3, 2)
    for filters, stride in ((64, 1), (128, 2), (128, 1), (256, 2)):
        kernel = tf.get_variable(f"depthwise{filters}_{stride}", [3, 3, x.shape[3], 1])
        x = tf.nn.depthwise_conv2d(x, kernel, [1, stride, stride, 1], "SAME")
        x = conv(tf.nn.relu6(layers.batch_normalization(x, training=True)), filters, 1, activation=tf.nn.relu6)
    return classify(x, y, feeds, tf.train.RMSPropOptimizer(0.001, momentum=0.9))


def squeeze_and_excite():
    x, y, feeds = images()
    x = conv(x, 64, 3, 2)
    for _ in range(3):
        inner = conv(x, 64)
        scale = layers.dense(layers.dense(tf.reduce_mean(inner, [1, 2], keepdims=True), 8, tf.nn.relu), 64, tf.nn.sigmoid)
        x = x + inner * scale
    return classify(x, y, feeds)


def squeezenet():
    x, y, feeds = images(64)
    x = layers.max_pooling2d(conv(x, 64, 3, 2, norm=False), 3, 2)
    for squeeze in (16, 32):
        small = conv(x, squeeze, 1, norm=False)
        x = tf.concat([conv(small, squeeze * 4, 1, norm=False), conv(small, squeeze * 4, 3, norm=False)], 3)
    return classify(x, y, feeds)


def dilated_segmentation():
    x, _, _ = images(64)
    mask = tf.placeholder(tf.int64, [None, 64, 64])
    h = conv(x, 32, 3, 2)
    parts = [conv(h, 32, 3, dilation_rate=rate) for rate in (1, 2, 4, 8)]
    h = tf.image.resize_bilinear(layers.conv2d(tf.concat(parts, 3), 5, 1), [64, 64])
    loss = cross_entropy(h, mask)
    random = np.random.RandomState(0)
    return loss, train(loss), [{x: random.randn(4, 64, 64, 3).astype("f"), mask: random.randint(5, size=(4, 64, 64))}]


def unet():
    x = tf.placeholder(tf.float32, [None, 64, 64, 1])
    mask = tf.placeholder(tf.float32, [None, 64, 64, 1])
    h, kept = x, []
    for filters in (16, 32, 64):
        h = conv(conv(h, filters, norm=False), filters, norm=False)
        kept.append(h)
        h = layers.max_pooling2d(h, 2, 2)
    h = conv(h, 128, norm=False)
    for filters, skip in zip((64, 32, 16), reversed(kept)):
        h = layers.conv2d_transpose(h, filters, 2, 2, "same")
        h = conv(tf.concat([h, skip], 3), filters, norm=False)
    logits = layers.conv2d(h, 1, 1)
    shares = tf.sigmoid(logits)
    dice = 1 - (2 * tf.reduce_sum(shares * mask) + 1) / (tf.reduce_sum(shares) + tf.reduce_sum(mask) + 1)
    loss = dice + tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=mask, logits=logits))
    random = np.random.RandomState(0)
    feed = {x: random.randn(4, 64, 64, 1).astype("f"), mask: (random.rand(4, 64, 64, 1) > 0.5).astype("f")}
    return loss, train(loss, tf.train.AdamOptimizer(1e-3)), [feed]


def convolutions_3d():
    x, y = tf.placeholder(tf.float32, [None, 16, 32, 32, 1]), tf.placeholder(tf.int64, [None])
    h = x
    for filters in (16, 32, 32):
        h = layers.max_pooling3d(layers.conv3d(h, filters, 3, 1, "same", activation=tf.nn.relu), 2, 2)
    loss = cross_entropy(layers.dense(layers.flatten(h), 10), y)
    random = np.random.RandomState(0)
    return loss, train(loss), [{x: random.randn(4, 16, 32, 32, 1).astype("f"), y: random.randint(10, size=4)}]


def yolo_loss():
    x = tf.placeholder(tf.float32, [None, 128, 128, 3])
    truth = tf.placeholder(tf.float32, [None, 8, 8, 3, 9])
    boxes = tf.placeholder(tf.float32, [None, 20, 4])
    h = x
    for filters in (16, 32, 64, 128):
        h = conv(h, filters, 3, 2, activation=tf.nn.leaky_relu)
    out = tf.reshape(layers.conv2d(h, 27, 1), [-1, 8, 8, 3, 9])
    grid = tf.to_float(tf.stack(tf.meshgrid(tf.range(8), tf.range(8)), -1))[None, :, :, None]
    places = (tf.sigmoid(out[..., :2]) + grid) / 8
    sizes = tf.exp(tf.minimum(out[..., 2:4], 4.0)) * tf.constant([[0.1, 0.1], [0.2, 0.3], [0.4, 0.4]])
    low, high = (places - sizes / 2)[..., None, :], (places + sizes / 2)[..., None, :]
    other = boxes[:, None, None, None]
    cut = tf.maximum(tf.minimum(high, other[..., 2:]) - tf.maximum(low, other[..., :2]), 0)
    shared = cut[..., 0] * cut[..., 1]
    area = tf.reduce_prod(sizes, -1, keepdims=True) + tf.reduce_prod(other[..., 2:] - other[..., :2], -1)
    ignored = tf.to_float(tf.reduce_max(shared / (area - shared + 1e-6), -1, keepdims=True) < 0.5)
    there = truth[..., 4:5]
    entropy = tf.nn.sigmoid_cross_entropy_with_logits(labels=there, logits=out[..., 4:5])
    loss = tf.reduce_sum(there * tf.square(places - truth[..., :2])) + tf.reduce_sum(there * tf.square(tf.sqrt(sizes) - truth[..., 2:4]))
    loss += tf.reduce_sum(there * entropy + (1 - there) * ignored * entropy)
    loss += tf.reduce_sum(there * tf.nn.sigmoid_cross_entropy_with_logits(labels=truth[..., 5:], logits=out[..., 5:]))
    random = np.random.RandomState(0)
    marks = random.rand(4, 8, 8, 3, 9).astype("f")
    marks[..., 4] = marks[..., 4] > 0.95
    corners = np.sort(random.rand(4, 20, 2, 2), axis=2).reshape(4, 20, 4).astype("f")
    return (
        loss / 4,
        train(loss / 4, tf.train.AdamOptimizer(1e-3)),
        [{x: random.randn(4, 128, 128, 3).astype("f"), truth: marks, boxes: corners}],
    )


def ssd_loss_hard_negatives():
    x = tf.placeholder(tf.float32, [None, 128, 128, 3])
    labels, offsets = tf.placeholder(tf.int64, [None, 1360]), tf.placeholder(tf.float32, [None, 1360, 4])
    h, classes, moves = x, [], []
    for filters in (16, 32, 64, 64):
        h = conv(h, filters, 3, 2)
        if h.shape[1] in (16, 8):
            classes.append(tf.reshape(layers.conv2d(h, 4 * 21, 3, 1, "same"), [-1, int(h.shape[1]) ** 2 * 4, 21]))
            moves.append(tf.reshape(layers.conv2d(h, 4 * 4, 3, 1, "same"), [-1, int(h.shape[1]) ** 2 * 4, 4]))
    logits, moves = tf.concat(classes, 1)[:, :1280], tf.concat(moves, 1)[:, :1280]
    labels_, offsets_ = labels[:, :1280], offsets[:, :1280]
    positive = tf.to_float(labels_ > 0)
    count = tf.reduce_sum(positive)
    entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels_, logits=logits)
    negatives = tf.reshape(entropy * (1 - positive), [-1])
    hardest, _ = tf.nn.top_k(negatives, 300)
    error = tf.abs(moves - offsets_)
    smooth = tf.where(error < 1, 0.5 * tf.square(error), error - 0.5)
    loss = (tf.reduce_sum(hardest) + tf.reduce_sum(entropy * positive) + tf.reduce_sum(tf.reduce_sum(smooth, -1) * positive)) / count
    random = np.random.RandomState(0)
    marks = random.randint(1, 21, size=(4, 1360)) * (random.rand(4, 1360) > 0.95)
    feed = {x: random.randn(4, 128, 128, 3).astype("f"), labels: marks, offsets: random.randn(4, 1360, 4).astype("f")}
    return loss, train(loss), [feed]


def crop_and_resize():
    x = tf.placeholder(tf.float32, [None, 96, 96, 3])
    boxes, owners, y = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.int32, [None]), tf.placeholder(tf.int64, [None])
    h = conv(conv(x, 32, 3, 2), 64, 3, 2)
    cut = tf.image.crop_and_resize(h, boxes, owners, [14, 14])
    cut = layers.max_pooling2d(cut, 2, 2)
    loss = cross_entropy(layers.dense(layers.dense(layers.flatten(cut), 128, tf.nn.relu), 10), y)
    random = np.random.RandomState(0)
    corners = np.sort(random.rand(64, 2, 2), axis=1).reshape(64, 4).astype("f")
    feed = {x: random.randn(2, 96, 96, 3).astype("f"), boxes: corners, owners: random.randint(2, size=64), y: random.randint(10, size=64)}
    return loss, train(loss), [feed]


def super_resolution():
    x, y = tf.placeholder(tf.float32, [None, 32, 32, 3]), tf.placeholder(tf.float32, [None, 96, 96, 3])
    h = conv(x, 64, 5, norm=False, activation=tf.tanh)
    h = conv(h, 32, 3, norm=False, activation=tf.tanh)
    out = tf.nn.depth_to_space(layers.conv2d(h, 27, 3, 1, "same"), 3)
    loss = tf.reduce_mean(tf.square(out - y))
    random = np.random.RandomState(0)
    feed = {x: random.rand(8, 32, 32, 3).astype("f"), y: random.rand(8, 96, 96, 3).astype("f")}
    return loss, train(loss, tf.train.AdamOptimizer(1e-3)), [feed]


def style_transfer():
    random = np.random.RandomState(0)
    wanted = [random.rand(filters, filters).astype("f") for filters in (32, 64)]
    image = tf.get_variable("image", [1, 96, 96, 3], initializer=tf.random_normal_initializer(stddev=0.3))
    h, loss = image, 1e-4 * tf.reduce_sum(tf.image.total_variation(image))
    for filters, gram in zip((32, 64), wanted):
        kernel = tf.constant(random.randn(3, 3, int(h.shape[3]), filters).astype("f") * 0.1)
        h = tf.nn.relu(tf.nn.conv2d(h, kernel, [1, 2, 2, 1], "SAME"))
        rows = tf.reshape(h, [-1, filters])
        loss += tf.reduce_sum(tf.square(tf.matmul(rows, rows, transpose_a=True) / tf.to_float(tf.shape(rows)[0]) - gram))
    return loss, tf.train.AdamOptimizer(0.02).minimize(loss, var_list=[image]), [{}]


def capsules():
    x, y, feeds = images(28, 1, 8)
    h = tf.nn.relu(layers.conv2d(x, 64, 9, 1, "valid"))
    h = tf.reshape(layers.conv2d(h, 64, 9, 2, "valid"), [-1, 288, 8])
    squash = lambda v: (
        v
        * tf.reduce_sum(tf.square(v), -1, keepdims=True)
        / (1 + tf.reduce_sum(tf.square(v), -1, keepdims=True))
        / tf.sqrt(tf.reduce_sum(tf.square(v), -1, keepdims=True) + 1e-9)
    )  # noqa: E731, E501
    weights = tf.get_variable("votes", [288, 10, 8, 16], initializer=tf.random_normal_initializer(stddev=0.05))
    votes = tf.einsum("bid,ijde->bije", squash(h), weights)
    routing = tf.zeros_like(votes[..., 0])
    for _ in range(3):
        v = squash(tf.reduce_sum(tf.nn.softmax(routing, 2)[..., None] * votes, 1))
        routing += tf.reduce_sum(votes * v[:, None], -1)
    lengths, marks = tf.sqrt(tf.reduce_sum(tf.square(v), -1) + 1e-9), tf.one_hot(y, 10)
    loss = marks * tf.square(tf.nn.relu(0.9 - lengths)) + 0.5 * (1 - marks) * tf.square(tf.nn.relu(lengths - 0.1))
    loss = tf.reduce_mean(tf.reduce_sum(loss, 1))
    return loss, train(loss, tf.train.AdamOptimizer(1e-3)), feeds


def siamese_contrastive():
    a, b = (tf.placeholder(tf.float32, [None, 28, 28, 1]) for _ in range(2))
    same = tf.placeholder(tf.float32, [None])

    def embed(x):
        with tf.variable_scope("tower", reuse=tf.AUTO_REUSE):
            x = layers.conv2d(x, 32, 5, 2, "same", activation=tf.nn.relu, name="c1")
            x = layers.conv2d(x, 64, 3, 2, "same", activation=tf.nn.relu, name="c2")
            return layers.dense(layers.flatten(x), 64, name="d")

    distance = tf.sqrt(tf.reduce_sum(tf.square(embed(a) - embed(b)), 1) + 1e-6)
    loss = tf.reduce_mean(same * tf.square(distance) + (1 - same) * tf.square(tf.maximum(1 - distance, 0)))
    random = np.random.RandomState(0)
    feed = {a: random.randn(32, 28, 28, 1).astype("f"), b: random.randn(32, 28, 28, 1).astype("f"), same: random.randint(2, size=32)}
    return loss, train(loss), [feed]


def group_norm():
    x, y, feeds = images()
    x = layers.conv2d(x, 64, 3, 1, "same")
    for i in range(2):
        h = tf.reshape(layers.conv2d(x, 64, 3, 1, "same"), [-1, 32, 32, 8, 8])
        mean, variance = tf.nn.moments(h, [1, 2, 4], keepdims=True)
        h = tf.reshape((h - mean) * tf.rsqrt(variance + 1e-5), [-1, 32, 32, 64])
        scale, offset = tf.get_variable(f"g{i}", [64], initializer=tf.ones_initializer()), tf.get_variable(f"b{i}", [64])
        x = tf.nn.relu(h * scale + offset)
    return classify(x, y, feeds)


def instance_norm():
    x, y, feeds = images(64, batch=4)
    for filters in (32, 64):
        h = layers.conv2d(x, filters, 3, 2, "same")
        mean, variance = tf.nn.moments(h, [1, 2], keep_dims=True)
        x = tf.nn.relu(tf.nn.batch_normalization(h, mean, variance, None, None, 1e-5))
    return classify(x, y, feeds)


def varying_image_sizes():
    x, y = tf.placeholder(tf.float32, [None, None, None, 3]), tf.placeholder(tf.int64, [None])
    loss = cross_entropy(layers.dense(tf.reduce_mean(conv(conv(x, 32, 3, 2), 64, 3, 2), [1, 2]), 10), y)
    random = np.random.RandomState(0)
    feeds = [{x: random.randn(8, 32 + 2 * i, 40 + 2 * i, 3).astype("f"), y: random.randint(10, size=8)} for i in range(10)]
    return loss, train(loss), feeds


def augmented_by_py_func():
    x, y, feeds = images()
    turned = tf.py_func(lambda v: np.ascontiguousarray(v[:, :, ::-1]), [x], tf.float32)
    turned.set_shape(x.shape)
    return classify(conv(conv(turned, 32, 3, 2), 64, 3, 2), y, feeds)
