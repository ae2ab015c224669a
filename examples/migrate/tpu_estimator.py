"""TPUEstimator: input functions take their batch size from params, the optimizer is sharded when there is a TPU."""
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

flags = tf.flags
FLAGS = flags.FLAGS
flags.DEFINE_bool("use_tpu", True, "run on a TPU")
flags.DEFINE_string("model_dir", None, "for checkpoints")
flags.DEFINE_integer("train_steps", 40, "how long to train")
flags.DEFINE_integer("iterations_per_loop", 10, "steps before the TPU returns to the host")


def make_input_fn(is_training):
    images, digits = load_digits(return_X_y=True)
    images = (images / 16).astype(np.float32)

    def input_fn(params):
        dataset = tf.data.Dataset.from_tensor_slices((images, digits.astype(np.int32)))
        if is_training:
            dataset = dataset.shuffle(1000, seed=3).repeat()
        return dataset.apply(tf.contrib.data.batch_and_drop_remainder(params["batch_size"]))

    return input_fn


def metric_fn(labels, logits):
    return {"accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, 1))}


def model_fn(features, labels, mode, params):
    net = tf.layers.dense(features, params["hidden"], activation=tf.nn.relu)
    logits = tf.layers.dense(net, 10)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    optimizer = tf.train.AdamOptimizer(0.01)
    if FLAGS.use_tpu and params.get("use_tpu"):
        optimizer = tf.contrib.tpu.CrossShardOptimizer(optimizer)
    train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tf.contrib.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op, eval_metrics=(metric_fn, [labels, logits]))


def main(_):
    run_config = tf.contrib.tpu.RunConfig(
        model_dir=FLAGS.model_dir, tpu_config=tf.contrib.tpu.TPUConfig(iterations_per_loop=FLAGS.iterations_per_loop))
    estimator = tf.contrib.tpu.TPUEstimator(
        model_fn=model_fn, config=run_config, use_tpu=FLAGS.use_tpu, train_batch_size=32, eval_batch_size=64,
        params={"hidden": 32})
    estimator.train(make_input_fn(True), max_steps=FLAGS.train_steps)
    print(estimator.evaluate(make_input_fn(False), steps=4))


if __name__ == "__main__":
    tf.app.run()
