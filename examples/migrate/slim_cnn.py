"""contrib.slim: argument scopes, batch normalisation, weight decay, and slim's own training operation."""
import numpy as np
import tensorflow as tf
import tensorflow.contrib.slim as slim
from sklearn.datasets import load_digits

tf.app.flags.DEFINE_integer("max_number_of_steps", 30, "training steps")
FLAGS = tf.app.flags.FLAGS


def arg_scope(is_training, weight_decay=5e-4):
    norm = {"is_training": is_training, "decay": 0.9, "updates_collections": tf.GraphKeys.UPDATE_OPS}
    with slim.arg_scope([slim.conv2d, slim.fully_connected], weights_regularizer=slim.l2_regularizer(weight_decay)):
        with slim.arg_scope([slim.conv2d], normalizer_fn=slim.batch_norm, normalizer_params=norm) as scope:
            return scope


def network(images):
    net = slim.repeat(images, 2, slim.conv2d, 8, [3, 3], scope="conv1")
    net = slim.max_pool2d(net, [2, 2], scope="pool1")
    net = slim.flatten(net)
    return slim.fully_connected(net, 10, activation_fn=None, scope="logits")


def main(_):
    data = load_digits()
    images = (data.images / 16)[..., None].astype(np.float32)
    x = tf.placeholder(tf.float32, [None, 8, 8, 1])
    y = tf.placeholder(tf.int64, [None])
    with slim.arg_scope(arg_scope(is_training=True)):
        logits = network(x)
    tf.losses.sparse_softmax_cross_entropy(y, logits)
    loss = tf.losses.get_total_loss()
    train_op = slim.learning.create_train_op(loss, tf.train.MomentumOptimizer(0.05, 0.9), clip_gradient_norm=5.0)
    config = tf.ConfigProto(log_device_placement=False)
    config.gpu_options.per_process_gpu_memory_fraction = 0.5
    with tf.Session(config=config) as sess:
        sess.run(tf.global_variables_initializer())
        for step in range(FLAGS.max_number_of_steps):
            rows = np.arange(step * 32, step * 32 + 32) % len(images)
            value = sess.run(train_op, feed_dict={x: images[rows], y: data.target[rows]})
            tf.logging.info("step %d loss %.4f", step, value)


if __name__ == "__main__":
    tf.logging.set_verbosity(tf.logging.INFO)
    tf.app.run()
