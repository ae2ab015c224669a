"""LeNet on handwritten digits: sess.run with feed_dict, an explicit session block, a Saver, dropout."""

import common
import tensorflow as tf
from npu_bridge.estimator import npu_ops
from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig

from npu_bridge.npu_init import *  # noqa: F403  isort: skip


def network(x, keep_prob):
    net = tf.layers.conv2d(x, 6, 5, padding="same", activation=tf.nn.relu, name="conv1")
    net = tf.layers.max_pooling2d(net, 2, 2)
    net = tf.layers.conv2d(net, 16, 5, padding="same", activation=tf.nn.relu, name="conv2")
    net = tf.layers.max_pooling2d(net, 2, 2)
    net = tf.layers.flatten(net)
    net = tf.layers.dense(net, 120, tf.nn.relu, name="fc1")
    net = npu_ops.dropout(tf.layers.dense(net, 84, tf.nn.relu, name="fc2"), keep_prob)
    return tf.layers.dense(net, 10, name="logits")


def session_config():
    config = tf.ConfigProto(allow_soft_placement=True)
    custom_op = config.graph_options.rewrite_options.custom_optimizers.add()
    custom_op.name = "NpuOptimizer"
    custom_op.parameter_map["use_off_line"].b = True
    config.graph_options.rewrite_options.remapping = RewriterConfig.OFF
    config.graph_options.rewrite_options.memory_optimization = RewriterConfig.OFF
    return config


def main():
    options = common.arguments(__doc__, steps=100, batch=64)
    images, labels, test_images, test_labels = common.digits(16)
    tf.set_random_seed(options.seed)
    x = tf.placeholder(tf.float32, [None, 16, 16, 1], "images")
    y = tf.placeholder(tf.int64, [None], "labels")
    keep_prob = tf.placeholder_with_default(1.0, [], "keep_prob")
    logits = network(x, keep_prob)
    loss = tf.losses.sparse_softmax_cross_entropy(y, logits)
    accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), y), tf.float32))
    step = tf.train.get_or_create_global_step()
    rate = tf.train.exponential_decay(0.05, step, 50, 0.9)
    train = tf.train.MomentumOptimizer(rate, 0.9).minimize(loss, global_step=step)
    saver = tf.train.Saver(max_to_keep=1)
    record = common.Record(options)
    rows = common.batches(len(images), options.batch, options.seed)
    with tf.Session(config=session_config()) as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(options.steps):
            batch = next(rows)
            value, _ = sess.run([loss, train], {x: images[batch], y: labels[batch], keep_prob: 0.9})
            record.add(value)
        saved = saver.save(sess, common.path(options, "lenet", "model"), global_step=step)
        print(f"accuracy {sess.run(accuracy, {x: test_images, y: test_labels}):.4f}, saved {saved}")
        record.save_session(sess, tf.global_variables())


if __name__ == "__main__":
    main()
