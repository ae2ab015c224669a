"""A U-Net on made images: skip connections, transposed convolutions, a Dice term in the loss, mean IoU by tf.metrics."""

import common
import tensorflow as tf

from npu_bridge.npu_init import *  # noqa: F403  isort: skip


def double(x, filters, name):
    with tf.variable_scope(name):
        x = tf.layers.conv2d(x, filters, 3, padding="same", activation=tf.nn.relu)
        return tf.layers.conv2d(x, filters, 3, padding="same", activation=tf.nn.relu)


def unet(x, classes, width=8, depth=3):
    skips = []
    for level in range(depth):
        x = double(x, width * 2**level, f"down{level}")
        skips.append(x)
        x = tf.layers.max_pooling2d(x, 2, 2)
    x = double(x, width * 2**depth, "bottom")
    for level in reversed(range(depth)):
        x = tf.layers.conv2d_transpose(x, width * 2**level, 2, 2, name=f"up{level}_transpose")
        x = double(tf.concat([skips[level], x], 3), width * 2**level, f"up{level}")
    return tf.layers.conv2d(x, classes, 1, name="logits")


def main():
    options = common.arguments(__doc__, steps=30, batch=8, size=48)
    images, masks, _ = common.shapes(96, options.size, options.seed, boxes=2)
    tf.set_random_seed(options.seed)
    x = tf.placeholder(tf.float32, [None, options.size, options.size, 3])
    y = tf.placeholder(tf.int32, [None, options.size, options.size])
    logits = unet(x, 3)
    hot = tf.one_hot(y, 3)
    shares = tf.nn.softmax(logits)
    overlap = tf.reduce_sum(hot * shares, [1, 2])
    dice = 1 - tf.reduce_mean((2 * overlap + 1) / (tf.reduce_sum(hot, [1, 2]) + tf.reduce_sum(shares, [1, 2]) + 1))
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=hot, logits=logits)) + dice
    train = npu_tf_optimizer(tf.train.AdamOptimizer(1e-3)).minimize(loss)
    iou, update = tf.metrics.mean_iou(y, tf.argmax(logits, 3), 3)
    record = common.Record(options)
    rows = common.batches(len(images), options.batch, options.seed)
    with tf.Session(config=npu_config_proto()) as sess:
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        for _ in range(options.steps):
            batch = next(rows)
            record.add(sess.run([loss, train], {x: images[batch], y: masks[batch]})[0])
        sess.run(update, {x: images[:16], y: masks[:16]})
        print(f"mean IoU {sess.run(iou):.3f}")
        record.save_session(sess, tf.global_variables())


if __name__ == "__main__":
    main()
