"""A linear Estimator on the diabetes data, with one input function for training and evaluation."""
import argparse

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_diabetes


def input_fn(is_training, batch_size):
    features, labels = load_diabetes(return_X_y=True)
    features = (features * 20).astype(np.float32)
    labels = (labels[:, None] / 100).astype(np.float32)
    dataset = tf.data.Dataset.from_tensor_slices((features, labels))
    if is_training:
        dataset = dataset.shuffle(442, seed=1).repeat()
    return dataset.batch(batch_size)


def model_fn(features, labels, mode, params):
    prediction = tf.layers.dense(features, 1)
    loss = tf.losses.mean_squared_error(labels, prediction)
    optimizer = tf.train.GradientDescentOptimizer(params["learning_rate"])
    train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, predictions=prediction, loss=loss, train_op=train_op)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model_dir", default=None)
    parser.add_argument("--steps", type=int, default=40)
    args = parser.parse_args()
    run_config = tf.estimator.RunConfig(model_dir=args.model_dir, save_checkpoints_steps=20, train_distribute=None)
    estimator = tf.estimator.Estimator(model_fn, None, run_config, {"learning_rate": 0.1})
    estimator.train(lambda: input_fn(True, 16), steps=args.steps)
    print(estimator.evaluate(lambda: input_fn(False, 16)))


if __name__ == "__main__":
    main()
