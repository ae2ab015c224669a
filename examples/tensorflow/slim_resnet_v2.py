"""A ResNet-v2 from contrib.slim's building blocks on digits: arg_scope, regularisation, slim.learning's train op."""

import common
import tensorflow as tf
import tensorflow.contrib.slim as slim
from tensorflow.contrib.slim.nets import resnet_utils, resnet_v2

from npu_bridge.npu_init import *  # noqa: F403  isort: skip


def network(images, training):
    blocks = [
        resnet_v2.resnet_v2_block("block1", base_depth=8, num_units=2, stride=2),
        resnet_v2.resnet_v2_block("block2", base_depth=16, num_units=2, stride=2),
        resnet_v2.resnet_v2_block("block3", base_depth=32, num_units=2, stride=1),
    ]
    with slim.arg_scope(resnet_utils.resnet_arg_scope(weight_decay=1e-4, batch_norm_decay=0.9)):
        net, ends = resnet_v2.resnet_v2(images, blocks, num_classes=10, is_training=training, global_pool=True,
                                        include_root_block=False)  # fmt: skip
    return tf.squeeze(net, [1, 2]), ends


def main():
    options = common.arguments(__doc__, steps=30, batch=32)
    images, labels, test_images, test_labels = common.digits(16)
    tf.set_random_seed(options.seed)
    x = tf.placeholder(tf.float32, [None, 16, 16, 1])
    y = tf.placeholder(tf.int64, [None])
    training = tf.placeholder_with_default(False, [])
    logits, ends = network(x, training)
    slim.losses.sparse_softmax_cross_entropy(logits, y)
    loss = slim.losses.get_total_loss()
    accuracy = tf.contrib.metrics.accuracy(tf.argmax(logits, 1), y)
    step = slim.get_or_create_global_step()
    optimizer = npu_tf_optimizer(tf.train.MomentumOptimizer(0.01, 0.9))
    train = slim.learning.create_train_op(loss, optimizer, global_step=step, clip_gradient_norm=5.0)
    record = common.Record(options)
    rows = common.batches(len(images), options.batch, options.seed)
    with tf.Session(config=npu_config_proto(tf.ConfigProto())) as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(options.steps):
            batch = next(rows)
            record.add(sess.run(train, {x: images[batch], y: labels[batch], training: True}))
        print(f"accuracy {sess.run(accuracy, {x: test_images, y: test_labels}):.4f}")
        record.save_session(sess, tf.global_variables())


if __name__ == "__main__":
    main()
