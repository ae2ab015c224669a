"""MonitoredTrainingSession: hooks, summaries, a checkpoint, moving averages of the weights, resuming."""

import common
import tensorflow as tf

from npu_bridge.npu_init import *  # noqa: F403  isort: skip

flags = tf.app.flags
flags.DEFINE_float("learning_rate", 0.1, "of plain gradient descent")
FLAGS = flags.FLAGS


class LossHook(tf.train.SessionRunHook):
    def __init__(self, loss, record):
        self._loss, self._record = loss, record

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self._loss)

    def after_run(self, run_context, run_values):
        self._record.add(run_values.results)


class LastValues(tf.train.SessionRunHook):
    """Keeps the variables of the session's end."""

    def __init__(self):
        self.values = {}

    def end(self, session):
        variables = tf.global_variables()
        self.values = {v.op.name: value for v, value in zip(variables, session.run(variables))}


def main(_):
    options = common.arguments(__doc__, steps=60, batch=32)
    images, labels, _, _ = common.digits()
    tf.set_random_seed(options.seed)
    data = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(500, options.seed).repeat().batch(options.batch)
    x, y = tf.data.make_one_shot_iterator(data).get_next()
    with tf.variable_scope("net", regularizer=tf.contrib.layers.l2_regularizer(1e-4)):
        hidden = tf.layers.dense(tf.layers.flatten(x), 64, tf.nn.relu)
        logits = tf.layers.dense(hidden, 10)
    tf.losses.sparse_softmax_cross_entropy(y, logits)
    loss = tf.losses.get_total_loss()
    tf.summary.scalar("loss", loss)
    step = tf.train.get_or_create_global_step()
    averages = tf.train.ExponentialMovingAverage(0.95, step)
    with tf.control_dependencies([tf.train.GradientDescentOptimizer(FLAGS.learning_rate).minimize(loss, step)]):
        train = averages.apply(tf.trainable_variables())
    record, last = common.Record(options), LastValues()
    folder = common.path(options, "monitored")
    for until in (options.steps // 2, options.steps):  # the second session goes on where the first one stopped
        hooks = [tf.train.StopAtStepHook(last_step=until), tf.train.NanTensorHook(loss), LossHook(loss, record), last]
        with tf.train.MonitoredTrainingSession(checkpoint_dir=folder, hooks=npu_hooks_append(hooks_list=hooks),
                                               save_summaries_steps=20, config=npu_config_proto()) as sess:  # fmt: skip
            while not sess.should_stop():
                sess.run(train)
    record.save(last.values)


if __name__ == "__main__":
    import sys

    tf.app.run(argv=sys.argv[:1])
