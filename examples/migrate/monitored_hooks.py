"""MonitoredTrainingSession with hooks kept in a tuple and a hook class of its own: flowers told apart by four lengths."""
import numpy as np
import tensorflow.compat.v1 as tf
from sklearn.datasets import load_iris

tf.disable_v2_behavior()


class Printer(tf.train.SessionRunHook):
    def __init__(self, loss):
        self.loss = loss

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self.loss)

    def after_run(self, run_context, run_values):
        print("loss", run_values.results)


def train(steps=40):
    lengths, species = load_iris(return_X_y=True)
    step = tf.train.get_or_create_global_step()
    x = tf.constant(lengths.astype(np.float32))
    hidden = tf.layers.dense(x, 16, activation=tf.nn.tanh)
    logits = tf.layers.dense(hidden, 3)
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=tf.one_hot(species, 3), logits=logits))
    rate = tf.train.exponential_decay(0.1, step, 10, 0.9, staircase=True)
    train_op = tf.train.MomentumOptimizer(rate, 0.9).minimize(loss, global_step=step)
    hooks = (tf.train.StopAtStepHook(last_step=steps), Printer(loss))
    with tf.train.MonitoredTrainingSession(hooks=hooks, config=tf.ConfigProto()) as session:
        while not session.should_stop():
            session.run(train_op)


if __name__ == "__main__":
    train()
