"""ResNet-50 by the Estimator: NPURunConfig, train, evaluate, predict, export; several steps in one run with --loop."""

import common
import numpy as np
import tensorflow as tf
from npu_bridge.estimator.npu.npu_config import NPURunConfig
from npu_bridge.estimator.npu.npu_estimator import NPUEstimator, NPUEstimatorSpec

SIZE = 32
BLOCKS = (3, 4, 6, 3)


def norm(x, training, relu=True, last=False):
    """The last one of a block starts at zero, so that each block starts as its shortcut: fifty layers of batch normalisation
    over few images would make noise of the last bits otherwise."""
    x = tf.layers.batch_normalization(x, momentum=0.9, epsilon=1e-5, training=training, fused=True,
                                      gamma_initializer=tf.zeros_initializer() if last else tf.ones_initializer())  # fmt: skip
    return tf.nn.relu(x) if relu else x


def conv(x, filters, kernel, stride=1):
    return tf.layers.conv2d(x, filters, kernel, stride, "same", use_bias=False,
                            kernel_initializer=tf.variance_scaling_initializer())  # fmt: skip


def bottleneck(x, filters, stride, project, training):
    shortcut = norm(conv(x, 4 * filters, 1, stride), training, relu=False) if project else x
    y = norm(conv(x, filters, 1), training)
    y = norm(conv(y, filters, 3, stride), training)
    y = norm(conv(y, 4 * filters, 1), training, relu=False, last=True)
    return tf.nn.relu(y + shortcut)


def resnet(images, training, width):
    x = norm(conv(images, width, 3), training)
    for stage, count in enumerate(BLOCKS):
        for block in range(count):
            stride = 2 if stage > 0 and block == 0 else 1
            x = bottleneck(x, width * 2**stage, stride, block == 0, training)
    return tf.layers.dense(tf.reduce_mean(x, [1, 2]), 10, name="logits")


def model_fn(features, labels, mode, params):
    training = mode == tf.estimator.ModeKeys.TRAIN
    logits = resnet(features["image"], training, params["width"])
    classes = {"class": tf.argmax(logits, 1), "probabilities": tf.nn.softmax(logits)}
    if mode == tf.estimator.ModeKeys.PREDICT:
        outputs = {"serving_default": tf.estimator.export.PredictOutput(classes)}
        return NPUEstimatorSpec(mode, predictions=classes, export_outputs=outputs)
    decay = tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables() if "batch_normalization" not in v.name])
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits) + 1e-4 * decay
    if mode == tf.estimator.ModeKeys.EVAL:
        return NPUEstimatorSpec(mode, loss=loss, eval_metric_ops={"accuracy": tf.metrics.accuracy(labels, classes["class"])})
    step = tf.train.get_global_step()
    rate = tf.train.piecewise_constant(step, [30, 60], [0.002, 0.001, 0.0001])
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = tf.train.MomentumOptimizer(rate, 0.9).minimize(loss, global_step=step)
    return NPUEstimatorSpec(mode, loss=loss, train_op=train_op, training_hooks=[LossHook(loss)])


class LossHook(tf.train.SessionRunHook):
    """Keeps each run's loss in `LossHook.record`; an Estimator copies what its params hold."""

    record = None

    def __init__(self, loss):
        self._loss = loss

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self._loss)

    def after_run(self, run_context, run_values):
        self.record.add(run_values.results)


def input_fn(images, labels, batch, seed=None):
    data = tf.data.Dataset.from_tensor_slices(({"image": images}, labels))
    if seed is not None:
        data = data.shuffle(len(images), seed=seed).repeat()
    return data.batch(batch, drop_remainder=seed is not None).prefetch(2)


def main():
    options = common.arguments(__doc__, steps=20, batch=16, loop=1, width=8)
    images, labels, test_images, test_labels = common.digits(SIZE)
    record = LossHook.record = common.Record(options)
    config = NPURunConfig(
        model_dir=common.path(options, "resnet"), tf_random_seed=options.seed, save_checkpoints_steps=1000,
        session_config=tf.ConfigProto(allow_soft_placement=True), iterations_per_loop=options.loop,
        enable_data_pre_proc=True, precision_mode="must_keep_origin_dtype", log_step_count_steps=None,
    )  # fmt: skip
    classifier = NPUEstimator(model_fn, config=config, params={"width": options.width})
    classifier.train(lambda: input_fn(images, labels, options.batch, options.seed), max_steps=options.steps)
    print(classifier.evaluate(lambda: input_fn(test_images[:128], test_labels[:128], 64)))
    predicted = [int(p["class"]) for p in classifier.predict(lambda: input_fn(test_images[:10], test_labels[:10], 4))]
    assert len(predicted) == 10, predicted  # the last, partial batch is there too
    receiver = tf.estimator.export.build_raw_serving_input_receiver_fn(
        {"image": tf.placeholder(tf.float32, [None, SIZE, SIZE, 1], "image")}
    )
    print("exported", classifier.export_saved_model(common.path(options, "export"), receiver).decode())
    record.save({name: np.asarray(classifier.get_variable_value(name)) for name in classifier.get_variable_names()})


if __name__ == "__main__":
    main()
