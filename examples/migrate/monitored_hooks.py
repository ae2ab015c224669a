"""MonitoredTrainingSession with hooks kept in a tuple and a hook class of its own."""
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()


class Printer(tf.train.SessionRunHook):
    def __init__(self, loss):
        self.loss = loss

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self.loss)

    def after_run(self, run_context, run_values):
        print("loss", run_values.results)


def train(steps=20):
    step = tf.train.get_or_create_global_step()
    weight = tf.get_variable("weight", [4, 1])
    x = tf.random.uniform([8, 4], seed=3)
    loss = tf.reduce_mean(tf.square(tf.matmul(x, weight) - 1.0))
    train_op = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss, global_step=step)
    hooks = (tf.train.StopAtStepHook(last_step=steps), Printer(loss))
    with tf.train.MonitoredTrainingSession(hooks=hooks, config=tf.ConfigProto()) as session:
        while not session.should_stop():
            session.run(train_op)


if __name__ == "__main__":
    train()
