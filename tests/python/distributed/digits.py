"""LeNet on scikit-learn's digits in one of four styles, as one process or as a rank; prints the accuracy on images that were not trained.

    digits.py STYLE FOLDER"""

import sys

import numpy as np
import tensorflow.compat.v1 as tf
from sklearn.datasets import load_digits

STYLE, FOLDER = sys.argv[1:3]
if STYLE != "keras":
    tf.disable_v2_behavior()

from npu_bridge.npu_init import *  # noqa: E402, F403

BATCH, EPOCHS, TEST = 64, 5, 360
RANK, SIZE = get_npu_rank_id(), get_npu_rank_size()  # noqa: F405


def data():
    """(images, labels) of this rank's rows of all batches, and those to test with."""
    images, labels = load_digits(return_X_y=True)
    order = np.random.RandomState(3).permutation(len(labels))
    images, labels = (images[order] / 16).reshape(-1, 8, 8, 1).astype(np.float32), labels[order].astype(np.int64)
    rows = np.concatenate([np.random.RandomState(epoch).permutation(len(labels) - TEST)[: (len(labels) - TEST) // BATCH * BATCH] for epoch in range(EPOCHS)])
    mine = TEST + rows.reshape(-1, BATCH)[:, RANK::SIZE]
    return (images[mine], labels[mine]), (images[:TEST], labels[:TEST])


TRAINED, TESTED = data()


def initializer(seed):
    return tf.glorot_uniform_initializer(seed=seed + RANK)  # rank 0's reach all


def lenet(images):
    with tf.variable_scope("lenet", reuse=tf.AUTO_REUSE):
        net = tf.layers.conv2d(images, 8, 3, padding="same", activation=tf.nn.relu, kernel_initializer=initializer(1))
        net = tf.layers.conv2d(tf.layers.max_pooling2d(net, 2, 2), 16, 3, padding="same", activation=tf.nn.relu, kernel_initializer=initializer(2))
        net = tf.layers.flatten(tf.layers.max_pooling2d(net, 2, 2))
        net = tf.layers.dense(net, 32, activation=tf.nn.relu, kernel_initializer=initializer(3))
        return tf.layers.dense(net, 10, kernel_initializer=initializer(4))


def training(images, labels):
    loss = tf.losses.sparse_softmax_cross_entropy(labels, lenet(images))
    optimizer = npu_distributed_optimizer_wrapper(tf.train.MomentumOptimizer(0.05, 0.9))  # noqa: F405
    return loss, optimizer.minimize(loss, tf.train.get_or_create_global_step())


def feed():
    x, y = tf.placeholder(tf.float32, [None, 8, 8, 1]), tf.placeholder(tf.int64, [None])
    _, train = training(x, y)
    predicted = tf.argmax(lenet(x), 1)
    with tf.train.MonitoredTrainingSession(hooks=npu_hooks_append([]), config=npu_config_proto()) as session:  # noqa: F405
        for images, labels in zip(*TRAINED):
            session.run(train, {x: images, y: labels})
        return session.run(predicted, {x: TESTED[0]})


def estimator():
    def model_fn(features, labels, mode):
        if mode == tf.estimator.ModeKeys.PREDICT:
            return tf.estimator.EstimatorSpec(mode, predictions=tf.argmax(lenet(features), 1))
        loss, train = training(features, labels)
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)

    config = NPURunConfig(model_dir=FOLDER, log_step_count_steps=None)  # noqa: F405
    made = NPUEstimator(model_fn, config=config)  # noqa: F405
    made.train(lambda: tf.data.Dataset.from_tensor_slices(TRAINED), hooks=npu_hooks_append([]))  # noqa: F405
    return list(made.predict(lambda: tf.data.Dataset.from_tensor_slices(TESTED[0]).batch(TEST)))


def keras():
    layers = tf.keras.layers
    glorot = [tf.keras.initializers.glorot_uniform(seed + RANK) for seed in range(4)]
    model = tf.keras.Sequential([
        layers.Conv2D(8, 3, padding="same", activation="relu", kernel_initializer=glorot[0], input_shape=(8, 8, 1)), layers.MaxPooling2D(),
        layers.Conv2D(16, 3, padding="same", activation="relu", kernel_initializer=glorot[1]), layers.MaxPooling2D(), layers.Flatten(),
        layers.Dense(32, activation="relu", kernel_initializer=glorot[2]), layers.Dense(10, kernel_initializer=glorot[3])])  # fmt: skip
    optimizer = npu_distributed_optimizer_wrapper(tf.keras.optimizers.SGD(0.05, 0.9))  # noqa: F405
    model.compile(optimizer, tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(tf.data.Dataset.from_tensor_slices(TRAINED), verbose=0, callbacks=npu_callbacks_append([]))  # noqa: F405
    return model.predict(TESTED[0], verbose=0).argmax(1)


predicted = {"feed": feed, "estimator": estimator, "keras": keras}[STYLE]()
print("accuracy", np.mean(np.asarray(predicted) == TESTED[1]), flush=True)
