"""A DCGAN on digits: two networks, two optimizers, a loss scale for each."""

import common
import numpy as np
import tensorflow as tf

from npu_bridge.npu_init import *  # noqa: F403  isort: skip


def generator(z, training):
    with tf.variable_scope("generator", reuse=tf.AUTO_REUSE):
        net = tf.reshape(tf.layers.dense(z, 4 * 4 * 32, name="fc"), [-1, 4, 4, 32])
        net = tf.nn.relu(tf.layers.batch_normalization(net, training=training, name="bn1"))
        net = tf.layers.conv2d_transpose(net, 16, 5, 2, "same", name="up1")
        net = tf.nn.relu(tf.layers.batch_normalization(net, training=training, name="bn2"))
        return tf.nn.tanh(tf.layers.conv2d_transpose(net, 1, 5, 2, "same", name="up2"))


def discriminator(images):
    with tf.variable_scope("discriminator", reuse=tf.AUTO_REUSE):
        net = tf.nn.leaky_relu(tf.layers.conv2d(images, 16, 5, 2, "same", name="conv1"))
        net = tf.nn.leaky_relu(tf.layers.conv2d(net, 32, 5, 2, "same", name="conv2"))
        return tf.layers.dense(tf.layers.flatten(net), 1, name="logit")


def cross_entropy(logits, target):
    labels = tf.ones_like(logits) * target
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))


def minimize(loss, scope, rate):
    manager = ExponentialUpdateLossScaleManager(init_loss_scale=2**10, incr_every_n_steps=100, decr_every_n_nan_or_inf=2)
    optimizer = NPULossScaleOptimizer(tf.train.AdamOptimizer(rate, beta1=0.5), manager)
    updates = [op for op in tf.get_collection(tf.GraphKeys.UPDATE_OPS) if op.name.startswith(scope)]
    with tf.control_dependencies(updates):
        return optimizer.minimize(loss, var_list=tf.trainable_variables(scope))


def main():
    options = common.arguments(__doc__, steps=30, batch=32)
    images = common.digits(16)[0] * 2 - 1
    tf.set_random_seed(options.seed)
    real = tf.placeholder(tf.float32, [None, 16, 16, 1])
    z = tf.placeholder(tf.float32, [None, 32])
    fake = generator(z, True)
    on_real, on_fake = discriminator(real), discriminator(fake)
    loss_d = cross_entropy(on_real, 0.9) + cross_entropy(on_fake, 0.0)
    loss_g = cross_entropy(on_fake, 1.0)
    train_d, train_g = minimize(loss_d, "discriminator", 2e-4), minimize(loss_g, "generator", 5e-4)
    record = common.Record(options)
    rows = common.batches(len(images), options.batch, options.seed)
    noise = np.random.RandomState(options.seed)
    with tf.Session(config=npu_config_proto()) as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(options.steps):
            feed = {real: images[next(rows)], z: noise.uniform(-1, 1, [options.batch, 32])}
            d, _ = sess.run([loss_d, train_d], feed)
            g, _ = sess.run([loss_g, train_g], feed)
            record.add(d + g)
        record.save_session(sess, tf.global_variables())


if __name__ == "__main__":
    main()
