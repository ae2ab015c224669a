"""A two-layer network on handwritten digits trained with sess.run and feed_dict, in the style of early tutorials."""
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

tf.app.flags.DEFINE_integer("steps", 60, "training steps")
tf.app.flags.DEFINE_float("dropout_rate", 0.1, "share of units left out")
FLAGS = tf.app.flags.FLAGS


def gelu(x):
    """Gaussian error linear unit."""
    cdf = 0.5 * (1.0 + tf.tanh((np.sqrt(2 / np.pi) * (x + 0.044715 * tf.pow(x, 3)))))
    return x * cdf


def network(images, rate):
    hidden = tf.layers.dense(images, 32, activation=gelu)
    hidden = tf.nn.dropout(hidden, rate=rate)
    return tf.layers.dense(hidden, 10)


def main(_):
    features, labels = load_digits(return_X_y=True)
    features = (features / 16.0).astype(np.float32)
    x = tf.placeholder(tf.float32, [None, 64])
    y = tf.placeholder(tf.int64, [None])
    with tf.device("/gpu:0"):
        logits = network(x, FLAGS.dropout_rate)
        loss = tf.losses.sparse_softmax_cross_entropy(y, logits)
    train_op = tf.train.AdamOptimizer(1e-2).minimize(loss)
    config = tf.ConfigProto(allow_soft_placement=True)
    with tf.Session(config=config) as sess:
        sess.run(tf.global_variables_initializer())
        for step in range(FLAGS.steps):
            start = step * 32 % 1760
            batch = slice(start, start + 32)
            _, value = sess.run([train_op, loss], {x: features[batch], y: labels[batch]})
            print("step %d loss %.4f" % (step, value))


if __name__ == "__main__":
    tf.app.run()
