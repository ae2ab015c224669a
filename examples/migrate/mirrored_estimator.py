"""An Estimator over all GPUs by MirroredStrategy, with train_and_evaluate: wines by their chemistry."""
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_wine


def input_fn(mode):
    features, kind = load_wine(return_X_y=True)
    features = ((features - features.mean(0)) / features.std(0)).astype(np.float32)
    dataset = tf.data.Dataset.from_tensor_slices(({"chemistry": features}, kind))
    if mode == tf.estimator.ModeKeys.TRAIN:
        dataset = dataset.shuffle(178, seed=2).repeat()
    return dataset.batch(32).prefetch(1)


def model_fn(features, labels, mode):
    net = tf.layers.dense(features["chemistry"], 16, activation=tf.nn.relu)
    logits = tf.layers.dense(net, 3)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    metrics = {"accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, 1))}
    optimizer = tf.train.MomentumOptimizer(0.05, 0.9)
    train_op = optimizer.minimize(loss, tf.train.get_or_create_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops=metrics)


if __name__ == "__main__":
    strategy = tf.distribute.MirroredStrategy()
    config = tf.estimator.RunConfig(train_distribute=strategy, log_step_count_steps=10)
    estimator = tf.estimator.Estimator(model_fn=model_fn, config=config)
    train_spec = tf.estimator.TrainSpec(lambda: input_fn(tf.estimator.ModeKeys.TRAIN), max_steps=40)
    eval_spec = tf.estimator.EvalSpec(lambda: input_fn(tf.estimator.ModeKeys.EVAL), steps=None)
    tf.estimator.train_and_evaluate(estimator, train_spec, eval_spec)
