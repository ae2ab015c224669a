"""Training graphs of TensorFlow 1: anchors, masks, unpooling, likeness of pictures, colours, parts and wholes, depths. As tf1_vision.py."""

import numpy as np
import tensorflow as tf

from cases.tf1_further import normal
from cases.tf1_sequence import adam
from cases.tf1_vision import classify, conv, cross_entropy, images, train

layers = tf.layers


def _overlaps(a, b):
    """Shares that boxes `a` (n, 4) and `b` (m, 4) have in common."""
    low, high = tf.maximum(a[:, None, :2], b[None, :, :2]), tf.minimum(a[:, None, 2:], b[None, :, 2:])
    size = tf.maximum(high - low, 0.0)
    both = size[..., 0] * size[..., 1]
    area = lambda each: (each[:, 2] - each[:, 0]) * (each[:, 3] - each[:, 1])  # noqa: E731
    return both / (area(a)[:, None] + area(b)[None] - both + 1e-6)


def anchors_matched_in_graph():
    """Anchors are matched to boxes, some of them drawn, and moved (region proposals of Faster R-CNN)."""
    x, _, feeds = images(96, 3, 2)
    boxes = tf.placeholder(tf.float32, [2, 5, 4])
    h = conv(conv(conv(conv(x, 16, 3, 2), 32, 3, 2), 48, 3, 2), 48)
    scores, moves = layers.conv2d(h, 6, 1), layers.conv2d(h, 24, 1)
    at = (np.stack(np.meshgrid(np.arange(12), np.arange(12), indexing="ij"), -1).reshape(-1, 1, 2) + 0.5) / 12
    half = np.array([[0.08, 0.08], [0.12, 0.06], [0.06, 0.12], [0.16, 0.16], [0.25, 0.12], [0.12, 0.25]])
    anchors = np.concatenate([at - half, at + half], -1).reshape(-1, 4).astype("f")
    loss = 0.0
    for i in range(2):
        near = _overlaps(tf.constant(anchors), boxes[i])
        best, which = tf.reduce_max(near, 1), tf.argmax(near, 1)
        good = tf.logical_or(best > 0.5, tf.reduce_any(near >= tf.reduce_max(near, 0) - 1e-6, 1))
        none = tf.logical_and(best < 0.3, tf.logical_not(good))
        drawn = lambda mask, n: tf.boolean_mask(tf.range(864), mask)[:n]  # noqa: E731
        a, b = drawn(good, 32), tf.random_shuffle(drawn(none, 864), seed=3)[:64]
        logits, moved = tf.reshape(scores[i], [-1]), tf.gather(tf.reshape(moves[i], [-1, 4]), a)
        picked, goal = tf.gather(tf.constant(anchors), a), tf.gather(boxes[i], tf.gather(which, a))
        size = tf.tile(picked[:, 2:] - picked[:, :2], [1, 2])
        loss += tf.losses.huber_loss((goal - picked) / size, moved, reduction=tf.losses.Reduction.SUM) / 32
        loss += tf.reduce_mean(tf.nn.softplus(-tf.gather(logits, a))) + tf.reduce_mean(tf.nn.softplus(tf.gather(logits, b)))
    random, made = np.random.RandomState(0), []
    for _ in range(20):
        low = random.uniform(0, 0.6, (2, 5, 2))
        made.append({**feeds[0], boxes: np.concatenate([low, low + random.uniform(0.1, 0.4, (2, 5, 2))], -1)})
    return loss, train(loss), made


def masks_of_instances():
    """Crops of a feature map get a class, a box and a mask each (Mask R-CNN's heads)."""
    x, _, feeds = images(64, 3, 2)
    boxes, which = tf.placeholder(tf.float32, [16, 4]), tf.constant(np.repeat([0, 1], 8))
    kinds, masks = tf.placeholder(tf.int64, [16]), tf.placeholder(tf.float32, [16, 14, 14])
    h = conv(conv(conv(x, 16, 3, 2), 32, 3, 2), 32)
    crops = layers.max_pooling2d(tf.image.crop_and_resize(h, boxes, tf.cast(which, tf.int32), [14, 14]), 2, 2)
    flat = layers.dense(layers.flatten(crops), 128, tf.nn.relu)
    logits, moves = layers.dense(flat, 5), tf.reshape(layers.dense(flat, 20), [16, 5, 4])
    m = layers.conv2d_transpose(conv(conv(crops, 32), 32), 32, 2, 2, activation=tf.nn.relu)
    m = tf.transpose(layers.conv2d(m, 5, 1), [0, 3, 1, 2])
    places = tf.stack([tf.range(16), tf.cast(kinds, tf.int32)], 1)
    loss = cross_entropy(logits, kinds) + tf.losses.huber_loss(boxes, tf.gather_nd(moves, places))
    loss += tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=masks, logits=tf.gather_nd(m, places)))
    random = np.random.RandomState(0)
    low = random.uniform(0, 0.5, (16, 2))
    feed = {**feeds[0], boxes: np.concatenate([low, low + random.uniform(0.2, 0.5, (16, 2))], 1)}
    feed |= {kinds: random.randint(5, size=16), masks: random.rand(16, 14, 14) < 0.5}
    return loss, train(loss), [feed]


def unpooled_by_places():
    """Pooling remembers the places of the largest values, unpooling puts values back there (SegNet)."""
    x, _, feeds = images(32, 3, 8)
    y, h, kept = tf.placeholder(tf.int64, [8, 32, 32]), x, []
    for width in (24, 48):
        h = conv(h, width)
        pooled, places = tf.nn.max_pool_with_argmax(h, [1, 2, 2, 1], [1, 2, 2, 1], "SAME", include_batch_in_index=True)
        kept.append((places, h.shape))
        h = pooled
    for places, shape in reversed(kept):
        h = conv(h, int(shape[-1]))
        whole = 8 * int(np.prod(shape.as_list()[1:]))
        h = tf.reshape(tf.scatter_nd(tf.reshape(places, [-1, 1]), tf.reshape(h, [-1]), tf.constant([whole], tf.int64)), [8, *shape[1:]])
        h = conv(h, 24)
    loss = cross_entropy(layers.conv2d(h, 6, 1), y)
    return loss, train(loss, adam()), [{**feeds[0], y: np.random.RandomState(1).randint(6, size=(8, 32, 32))}]


def pictures_by_structure():
    """Means, spreads and edges of windows are compared instead of pixels (SSIM, Sobel, total variation)."""
    x, _, feeds = images(48, 3, 4)
    made = layers.conv2d(conv(conv(x, 24, 5), 24), 3, 3, padding="same", activation=tf.nn.sigmoid)
    wanted = tf.sigmoid(x)
    loss = 1 - tf.reduce_mean(tf.image.ssim(made, wanted, 1.0))
    loss += tf.reduce_mean(abs(tf.image.sobel_edges(made) - tf.image.sobel_edges(wanted)))
    loss += 1e-5 * tf.reduce_mean(tf.image.total_variation(made))
    return loss, train(loss, adam()), feeds


def colours_in_other_spaces():
    """Hue, contrast and size are changed in the step before the net sees the picture; it also tells the hue."""
    x, y, feeds = images(32, 3, 16)
    h = tf.clip_by_value(tf.image.adjust_contrast(tf.sigmoid(x), 1.3), 0.0, 1.0)
    h = tf.image.adjust_saturation(tf.image.adjust_hue(h, 0.1), 1.2)
    h = tf.image.resize_bicubic(tf.image.random_flip_left_right(h, seed=3), [40, 40])
    h = tf.image.per_image_standardization(tf.random_crop(h, [16, 32, 32, 3], seed=4))
    hue = tf.reduce_mean(tf.image.rgb_to_hsv(tf.sigmoid(x))[..., 0], [1, 2])
    features = tf.reduce_mean(conv(conv(h, 32, 3, 2), 64, 3, 2), [1, 2])
    loss = cross_entropy(layers.dense(features, 10), y) + tf.losses.mean_squared_error(hue, layers.dense(features, 1)[:, 0])
    return loss, train(loss), feeds


def places_that_see_all():
    """Every place attends to all others, pooled; channels of groups are shuffled and weighed (non-local, CBAM)."""
    x, y, feeds = images(32, 3, 8)
    h = conv(conv(x, 32, 3, 2), 48)
    keys, values = (tf.reshape(layers.max_pooling2d(layers.conv2d(h, 24, 1), 2, 2), [8, 64, 24]) for _ in range(2))
    share = tf.nn.softmax(tf.matmul(tf.reshape(layers.conv2d(h, 24, 1), [8, 256, 24]), keys, transpose_b=True))
    h += layers.conv2d(tf.reshape(tf.matmul(share, values), [8, 16, 16, 24]), 48, 1)
    a, b = tf.split(h, 2, 3)
    b = conv(layers.separable_conv2d(conv(b, 24, 1), 24, 3, padding="same"), 24, 1)
    h = tf.reshape(tf.transpose(tf.reshape(tf.concat([a, b], 3), [8, 16, 16, 2, 24]), [0, 1, 2, 4, 3]), [8, 16, 16, 48])
    with tf.variable_scope("weighed", reuse=tf.AUTO_REUSE):
        net = lambda v: layers.dense(layers.dense(v, 6, tf.nn.relu, name="a"), 48, name="b")  # noqa: E731
        h *= tf.sigmoid(net(tf.reduce_mean(h, [1, 2])) + net(tf.reduce_max(h, [1, 2])))[:, None, None]
    flat = tf.concat([tf.reduce_mean(h, 3, keepdims=True), tf.reduce_max(h, 3, keepdims=True)], 3)
    return classify(h * layers.conv2d(flat, 1, 7, padding="same", activation=tf.sigmoid), y, feeds)


def pictures_by_patches():
    """Patches are cut out with overlaps, attended to within windows, and put back (patches, depth and space)."""
    x, y, feeds = images(32, 3, 8)
    h = tf.image.extract_image_patches(x, [1, 7, 7, 1], [1, 4, 4, 1], [1, 1, 1, 1], "SAME")
    h = layers.dense(h, 64)
    near = tf.image.extract_image_patches(h, [1, 3, 3, 1], [1, 1, 1, 1], [1, 1, 1, 1], "SAME")
    near = tf.reshape(near, [8, 8, 8, 9, 64])
    share = tf.nn.softmax(tf.einsum("bijd,bijkd->bijk", layers.dense(h, 64), near) / 8)
    h += tf.einsum("bijk,bijkd->bijd", share, near)
    h = tf.space_to_depth(conv(tf.depth_to_space(h, 2), 32), 4)
    return classify(tf.nn.relu(layers.dense(h, 64)), y, feeds)


def wholes_by_expectation():
    """Parts vote for wholes by matrices; votes are clustered in three turns (capsules by EM routing)."""
    x, y, feeds = images(20, 1, 8)
    h = conv(conv(x, 16, 5, 2), 16, 3, 2)
    pose, here = tf.reshape(layers.conv2d(h, 4 * 16, 1), [8, 100, 4, 4]), tf.reshape(layers.conv2d(h, 4, 1, activation=tf.sigmoid), [8, 100, 1])
    turn = tf.get_variable("turn", [100, 10, 4, 4])
    votes = tf.reshape(tf.einsum("bijk,iokl->biojl", pose, turn), [8, 100, 10, 16])
    share, cost, use = tf.fill([8, 100, 10], 0.1), tf.get_variable("cost", [10]), tf.get_variable("use", [10])
    for step in range(3):
        weight = (share * here)[..., None]
        whole = tf.reduce_sum(weight, 1, keepdims=True) + 1e-6
        mean = tf.reduce_sum(weight * votes, 1, keepdims=True) / whole
        spread = tf.reduce_sum(weight * tf.square(votes - mean), 1, keepdims=True) / whole + 1e-4
        costs = (cost[:, None] + 0.5 * tf.log(spread)) * whole
        found = tf.sigmoid((step + 1) * 0.1 * (use - tf.reduce_sum(costs, 3)[:, 0] / 16))
        fit = -0.5 * tf.reduce_sum(tf.square(votes - mean) / spread + tf.log(spread), 3)
        share = tf.nn.softmax(fit + tf.log(found + 1e-6)[:, None])
    truth = tf.one_hot(y, 10)
    own = tf.reduce_sum(truth * found, 1, keepdims=True)
    loss = tf.reduce_mean(tf.reduce_sum((1 - truth) * tf.square(tf.nn.relu(0.5 - (own - found))), 1))
    return loss, train(loss, adam()), feeds


def depths_by_two_views():
    """A depth for each pixel and a motion turn one view into another, whose likeness is the loss (monodepth)."""
    x, _, feeds = images(32, 3, 4)
    other = tf.placeholder(tf.float32, [4, 32, 32, 3])
    h = conv(conv(x, 16, 3, 2), 32, 3, 2)
    depth = 0.5 + 5 * tf.image.resize_bilinear(layers.conv2d(conv(h, 32), 1, 3, padding="same", activation=tf.sigmoid), [32, 32])
    motion = 0.01 * layers.dense(tf.reduce_mean(conv(tf.concat([x, other], 3), 32, 5, 4), [1, 2]), 6)
    a, b, c, d, e, f = tf.unstack(motion, axis=1)
    one, zero = tf.ones([4]), tf.zeros([4])
    turn = tf.reshape(tf.stack([one, -c, b, c, one, -a, -b, a, one], 1), [4, 3, 3])
    rows, columns = np.meshgrid((np.arange(32) - 15.5) / 16, (np.arange(32) - 15.5) / 16, indexing="ij")
    rays = tf.constant(np.stack([columns, rows, np.ones((32, 32))], 0).reshape(1, 3, -1).astype("f"))
    points = tf.matmul(turn, tf.tile(rays, [4, 1, 1]) * tf.reshape(depth, [4, 1, -1])) + tf.stack([d, e, f], 1)[..., None]
    u, v = (points[:, i] / (points[:, 2] + 1e-3) * 16 + 15.5 for i in (0, 1))
    left, top = tf.floor(u), tf.floor(v)
    flat, made = tf.reshape(other, [4, 1024, 3]), 0.0
    for i, j in ((0, 0), (0, 1), (1, 0), (1, 1)):
        place = tf.clip_by_value(top + i, 0, 31) * 32 + tf.clip_by_value(left + j, 0, 31)
        share = abs(1 - i - (v - top)) * abs(1 - j - (u - left))
        made += share[..., None] * tf.gather(flat, tf.cast(place, tf.int32), batch_dims=1)
    loss = tf.reduce_mean(abs(tf.reshape(made, [4, 32, 32, 3]) - x))
    flatness = tf.reduce_mean(abs(depth[:, 1:] - depth[:, :-1])) + tf.reduce_mean(abs(depth[:, :, 1:] - depth[:, :, :-1]))
    return loss + 0.01 * flatness, train(loss + 0.01 * flatness, adam()), [{**feeds[0], other: normal(4, 32, 32, 3, seed=3)}]
