"""A project of several files: flags of absl, a model chosen by name, checkpoints and summaries."""
import os

from absl import app, flags
import tensorflow as tf

import data
from models import get_model

flags.DEFINE_string("model", "lstm", "name in models/")
flags.DEFINE_integer("batch_size", 32, "rows of a batch")
flags.DEFINE_integer("steps", 30, "training steps")
flags.DEFINE_string("logdir", "log", "for checkpoints and summaries")
FLAGS = flags.FLAGS


def main(argv):
    del argv
    with tf.Graph().as_default():
        images, labels = data.batches(FLAGS.batch_size)
        with tf.variable_scope("model", reuse=tf.AUTO_REUSE):
            logits = get_model(FLAGS.model)(images)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
        tf.summary.scalar("loss", loss)
        step = tf.train.get_or_create_global_step()
        variables = tf.trainable_variables()
        gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 5.0)
        train_op = tf.train.AdamOptimizer(3e-3).apply_gradients(zip(gradients, variables), step)
        saver, summaries = tf.train.Saver(), tf.summary.merge_all()
        sess = tf.Session()
        writer = tf.summary.FileWriter(FLAGS.logdir, sess.graph)
        sess.run(tf.global_variables_initializer())
        for _ in range(FLAGS.steps):
            _, value, number, summary = sess.run([train_op, loss, step, summaries])
            writer.add_summary(summary, number)
            print("step {} loss {:.4f}".format(number, value))
        saver.save(sess, os.path.join(FLAGS.logdir, "model.ckpt"))


if __name__ == "__main__":
    app.run(main)
