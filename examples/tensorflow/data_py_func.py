"""An input pipeline with Python inside: tf.py_func for augmentation, from_generator, map_and_batch, padded batches, shards by
rank."""

import common
import numpy as np
import tensorflow as tf

from npu_bridge.npu_init import *  # noqa: F403  isort: skip


def moved(image, seed):
    """The image moved by up to one pixel."""
    random = np.random.RandomState(seed)
    return np.roll(image, (random.randint(-1, 2), random.randint(-1, 2)), (0, 1))


def main():
    options = common.arguments(__doc__, steps=60, batch=32)
    images, labels, _, _ = common.digits()
    tf.set_random_seed(options.seed)

    def rows():
        for index in range(len(images)):
            yield index, images[index], labels[index]

    def augment(index, image, label):
        image = tf.py_func(moved, [image, index], tf.float32, stateful=False)
        image.set_shape([8, 8, 1])
        return image, label

    data = tf.data.Dataset.from_generator(rows, (tf.int32, tf.float32, tf.int64), ([], [8, 8, 1], []))
    data = data.shard(get_rank_size(), get_rank_id()).cache().shuffle(400, seed=options.seed).repeat()
    data = data.apply(tf.contrib.data.map_and_batch(augment, options.batch, num_parallel_calls=2))
    x, y = tf.data.make_one_shot_iterator(data.prefetch(tf.contrib.data.AUTOTUNE)).get_next()
    with tf.contrib.framework.arg_scope([tf.contrib.layers.conv2d], normalizer_fn=tf.contrib.layers.batch_norm,
                                        normalizer_params={"decay": 0.9}):  # fmt: skip
        net = tf.contrib.layers.conv2d(x, 12, 3)
        net = tf.contrib.layers.max_pool2d(net, 2)
        net = tf.contrib.layers.fully_connected(tf.contrib.layers.flatten(net), 32)
    logits = tf.contrib.layers.fully_connected(net, 10, activation_fn=None)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    train = tf.contrib.layers.optimize_loss(loss, tf.train.get_or_create_global_step(), 0.01, "Adam", clip_gradients=5.0)
    record = common.Record(options)
    sess, shutdown = init_resource()
    sess.run(tf.global_variables_initializer())
    for _ in range(options.steps):
        record.add(sess.run(train))
    record.save_session(sess, tf.global_variables())
    shutdown_resource(sess, shutdown)
    close_session(sess)


if __name__ == "__main__":
    main()
