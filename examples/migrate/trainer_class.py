"""A trainer class whose session and dataset are members, with gradients clipped by hand: malign or benign cells."""
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_breast_cancer


class Trainer(object):
    def __init__(self, batch_size=16):
        cells, benign = load_breast_cancer(return_X_y=True)
        cells = ((cells - cells.mean(0)) / cells.std(0)).astype(np.float32)
        data = (cells, benign[:, None].astype(np.float32))
        self.train_set = tf.data.Dataset.from_tensor_slices(data).shuffle(569, seed=0).repeat()
        self.train_set = self.train_set.batch(batch_size)
        self.batch = self.train_set.make_one_shot_iterator().get_next()
        self.build()
        self.sess = tf.Session(config=self.session_config())

    def session_config(self):
        config = tf.ConfigProto()
        config.gpu_options.allow_growth = True
        return config

    def build(self):
        cells, benign = self.batch
        weight = tf.get_variable("weight", [30, 1])
        bias = tf.get_variable("bias", [1], initializer=tf.zeros_initializer())
        logits = tf.matmul(cells, weight) + bias
        self.loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=benign, logits=logits))
        optimizer = tf.train.AdamOptimizer(0.05)
        variables = [weight, bias]
        grads = tf.gradients(self.loss, variables)
        grads, _ = tf.clip_by_global_norm(grads, 1.0)
        self.train_op = optimizer.apply_gradients(zip(grads, variables))

    def fit(self, steps):
        self.sess.run(tf.global_variables_initializer())
        for step in range(steps):
            _, loss = self.sess.run([self.train_op, self.loss])
            print(step, loss)


if __name__ == "__main__":
    Trainer().fit(40)
