"""train_and_evaluate with a plain Estimator wrapped as the converter does it: warm start from an earlier run, exporter."""

import common
import numpy as np
import tensorflow as tf

from npu_bridge.npu_init import *  # noqa: F403  isort: skip
from resnet_estimator import LossHook


def model_fn(features, labels, mode, params):
    net = tf.layers.dense(tf.layers.flatten(features["image"]), 48, tf.nn.relu, name="hidden")
    net = tf.layers.dropout(net, 0.1, training=mode == tf.estimator.ModeKeys.TRAIN)
    logits = tf.layers.dense(net, 10, name="logits")
    head = {"class": tf.argmax(logits, 1)}
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=head)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    metrics = {"accuracy": tf.metrics.accuracy(labels, head["class"])}
    train = npu_distributed_optimizer_wrapper(tf.train.RMSPropOptimizer(2e-3)).minimize(loss, tf.train.get_global_step())
    hooks = [LossHook(loss)] if params["recorded"] else []
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train, eval_metric_ops=metrics, training_hooks=hooks)


def main():
    options = common.arguments(__doc__, steps=60, batch=32)
    images, labels, test_images, test_labels = common.digits()

    def train_input():
        data = tf.data.Dataset.from_tensor_slices(({"image": images}, labels)).shuffle(1500, options.seed)
        return data.apply(tf.contrib.data.map_and_batch(lambda x, y: (x, y), options.batch)).repeat()

    def test_input():
        return tf.data.Dataset.from_tensor_slices(({"image": test_images}, test_labels)).batch(64)

    def estimator(name, recorded, start=None):
        config = tf.estimator.RunConfig(common.path(options, name), tf_random_seed=options.seed, save_summary_steps=0,
                                        save_checkpoints_steps=max(1, options.steps // 2))  # fmt: skip
        return tf.estimator.Estimator(model_fn, config=npu_run_config_init(run_config=config), params={"recorded": recorded},
                                      warm_start_from=start)  # fmt: skip

    first = estimator("first", False)
    first.train(train_input, hooks=npu_hooks_append(), max_steps=10)
    record = LossHook.record = common.Record(options)
    second = estimator("second", True, first.latest_checkpoint())
    receiver = tf.estimator.export.build_raw_serving_input_receiver_fn({"image": tf.placeholder(tf.float32, [None, 8, 8, 1])})
    result, _ = tf.estimator.train_and_evaluate(
        second,
        tf.estimator.TrainSpec(train_input, max_steps=options.steps, hooks=npu_hooks_append(hooks_list=[])),
        tf.estimator.EvalSpec(test_input, steps=None, exporters=tf.estimator.FinalExporter("final", receiver),
                              start_delay_secs=0, throttle_secs=0),
    )  # fmt: skip
    print(result)
    record.save({name: np.asarray(second.get_variable_value(name)) for name in second.get_variable_names()})


if __name__ == "__main__":
    main()
