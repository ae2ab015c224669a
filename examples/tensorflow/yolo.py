"""A detector in the style of YOLOv3: two scales, anchors, upsampling, a size that changes while training, non-maximum suppression."""

import common
import numpy as np
import tensorflow as tf

from npu_bridge.npu_init import *  # noqa: F403  isort: skip

ANCHORS = {16: [(0.42, 0.42), (0.3, 0.45)], 8: [(0.28, 0.28), (0.45, 0.3)]}  # stride: shares of the image
CLASSES = 2


def conv(x, filters, kernel, stride, training):
    x = tf.layers.conv2d(x, filters, kernel, stride, "same", use_bias=False)
    return tf.nn.leaky_relu(tf.layers.batch_normalization(x, momentum=0.9, training=training), 0.1)


def residual(x, filters, training):
    return x + conv(conv(x, filters // 2, 1, 1, training), filters, 3, 1, training)


def network(x, training):
    x = conv(x, 8, 3, 1, training)
    for filters in (16, 32, 48):
        x = residual(conv(x, filters, 3, 2, training), filters, training)
    fine = x
    coarse = residual(conv(x, 64, 3, 2, training), 64, training)
    up = conv(coarse, 32, 1, 1, training)
    up = tf.image.resize_nearest_neighbor(up, tf.shape(fine)[1:3])
    fine = conv(tf.concat([up, fine], 3), 48, 3, 1, training)
    head = lambda t, stride: tf.layers.conv2d(t, len(ANCHORS[stride]) * (5 + CLASSES), 1, name=f"head{stride}")
    return {16: head(coarse, 16), 8: head(fine, 8)}


def decode(raw, stride):
    """Boxes as centre and size in shares, objectness and class scores, [n, h, w, anchors, ...]."""
    shape = tf.shape(raw)
    raw = tf.reshape(raw, [shape[0], shape[1], shape[2], len(ANCHORS[stride]), 5 + CLASSES])
    cell_x, cell_y = tf.meshgrid(tf.range(shape[2]), tf.range(shape[1]))
    cells = tf.cast(tf.stack([cell_x, cell_y], -1), tf.float32)[None, :, :, None]
    centre = (tf.sigmoid(raw[..., :2]) + cells) / tf.cast([shape[2], shape[1]], tf.float32)
    size = tf.exp(tf.clip_by_value(raw[..., 2:4], -4.0, 4.0)) * tf.constant(ANCHORS[stride])
    return tf.concat([centre, size], -1), raw[..., 4:5], raw[..., 5:]


def scale_loss(raw, target, stride):
    boxes, objectness, classes = decode(raw, stride)
    there = target[..., 4:5]
    weight = 2.0 - target[..., 2:3] * target[..., 3:4]
    box = tf.reduce_sum(there * weight * tf.square(boxes - target[..., :4]))
    cross = tf.nn.sigmoid_cross_entropy_with_logits
    seen = tf.reduce_sum(cross(labels=there, logits=objectness))
    kind = tf.reduce_sum(there * cross(labels=target[..., 5:], logits=classes))
    return (5.0 * box + 0.2 * seen + kind) / tf.cast(tf.shape(raw)[0], tf.float32)


def targets(found, size, stride):
    """For each image, cell and anchor: box, whether there is one, class."""
    cells = size // stride
    result = np.zeros([len(found), cells, cells, len(ANCHORS[stride]), 5 + CLASSES], np.float32)
    for index, boxes in enumerate(found):
        for x, y, w, h, kind in boxes:
            fit = {}
            for other, anchors in ANCHORS.items():
                for place, (aw, ah) in enumerate(anchors):
                    both = min(w, aw) * min(h, ah)
                    fit[other, place] = both / (w * h + aw * ah - both)
            best = max(fit, key=fit.get)
            if best[0] == stride:
                cell = result[index, int(y * cells), int(x * cells), best[1]]
                cell[:5], cell[5 + int(kind)] = (x, y, w, h, 1), 1
    return result


def main():
    options = common.arguments(__doc__, steps=24, batch=6)
    data = {size: common.shapes(48, size, options.seed, boxes=2) for size in (64, 96)}
    tf.set_random_seed(options.seed)
    x = tf.placeholder(tf.float32, [None, None, None, 3])
    wanted = {stride: tf.placeholder(tf.float32, [None, None, None, 2, 5 + CLASSES]) for stride in ANCHORS}
    training = tf.placeholder_with_default(False, [])
    raw = network(x, training)
    loss = tf.add_n([scale_loss(raw[stride], wanted[stride], stride) for stride in sorted(ANCHORS)])
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train = tf.train.AdamOptimizer(1e-3).minimize(loss)
    boxes, scores, _ = decode(raw[16], 16)
    flat = tf.reshape(boxes[0], [-1, 4])
    corners = tf.concat([flat[:, :2] - flat[:, 2:] / 2, flat[:, :2] + flat[:, 2:] / 2], 1)
    kept = tf.image.non_max_suppression(corners, tf.reshape(tf.sigmoid(scores[0]), [-1]), 5, 0.5)
    record = common.Record(options)
    with tf.Session(config=npu_config_proto()) as sess:
        sess.run(tf.global_variables_initializer())
        for step in range(options.steps):
            size = (64, 96)[step // 4 % 2]
            images, _, found = data[size]
            rows = np.arange(step * options.batch, (step + 1) * options.batch) % len(images)
            feed = {x: images[rows], training: True}
            feed.update({wanted[stride]: targets(found[rows], size, stride) for stride in ANCHORS})
            record.add(sess.run([loss, train], feed)[0])
        print("boxes kept in the first image:", len(sess.run(kept, {x: data[64][0][:1]})))
        record.save_session(sess, tf.global_variables())


if __name__ == "__main__":
    main()
