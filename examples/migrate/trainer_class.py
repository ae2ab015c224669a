"""A trainer class whose session and dataset are members, with gradients clipped by hand."""
import numpy as np
import tensorflow as tf


class Trainer(object):
    def __init__(self, batch_size=16):
        data = np.random.RandomState(0).rand(200, 6).astype(np.float32)
        self.train_set = tf.data.Dataset.from_tensor_slices(data).shuffle(200, seed=0).repeat()
        self.train_set = self.train_set.batch(batch_size)
        self.batch = self.train_set.make_one_shot_iterator().get_next()
        self.build()
        self.sess = tf.Session(config=self.session_config())

    def session_config(self):
        config = tf.ConfigProto()
        config.gpu_options.allow_growth = True
        return config

    def build(self):
        weight = tf.get_variable("weight", [6, 1])
        self.loss = tf.reduce_mean(tf.square(tf.matmul(self.batch, weight) - 1.0))
        optimizer = tf.train.AdamOptimizer(0.05)
        grads = tf.gradients(self.loss, [weight])
        grads, _ = tf.clip_by_global_norm(grads, 1.0)
        self.train_op = optimizer.apply_gradients(zip(grads, [weight]))

    def fit(self, steps):
        self.sess.run(tf.global_variables_initializer())
        for step in range(steps):
            _, loss = self.sess.run([self.train_op, self.loss])
            print(step, loss)


if __name__ == "__main__":
    Trainer().fit(30)
