"""Embeddings of digits by triplet loss, fed by TensorFlow 1's queues: string_input_producer, TFRecords, a coordinator."""

import common
import numpy as np
import tensorflow as tf

from npu_bridge.npu_init import *  # noqa: F403  isort: skip


def write(file, images, labels):
    with tf.python_io.TFRecordWriter(file) as writer:
        for image, label in zip(images, labels):
            feature = {
                "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[image.tobytes()])),
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
            }
            writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())


def read(file, batch):
    files = tf.train.string_input_producer([file], shuffle=False)
    _, line = tf.TFRecordReader().read(files)
    parsed = tf.parse_single_example(
        line, {"image": tf.FixedLenFeature([], tf.string), "label": tf.FixedLenFeature([], tf.int64)}
    )
    image = tf.reshape(tf.decode_raw(parsed["image"], tf.float32), [8, 8, 1])
    return tf.train.batch([image, parsed["label"]], batch, num_threads=1, capacity=4 * batch)


def main():
    options = common.arguments(__doc__, steps=40, batch=48)
    images, labels, test_images, test_labels = common.digits()
    file = common.path(options, "digits.tfrecord")
    write(file, images, labels)
    tf.set_random_seed(options.seed)
    image, label = read(file, options.batch)
    x = tf.placeholder_with_default(image, [None, 8, 8, 1])
    net = tf.layers.conv2d(x, 16, 3, activation=tf.nn.relu)
    net = tf.layers.dense(tf.layers.flatten(tf.layers.max_pooling2d(net, 2, 2)), 16)
    embedding = tf.nn.l2_normalize(net, 1)
    loss = tf.contrib.losses.metric_learning.triplet_semihard_loss(label, embedding, margin=0.5)
    step = tf.train.get_or_create_global_step()
    train = tf.train.AdamOptimizer(5e-3).minimize(loss, step)
    record = common.Record(options)
    with tf.Session(config=npu_config_proto()) as sess:
        sess.run(tf.global_variables_initializer())
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coordinator)
        for _ in range(options.steps):
            record.add(sess.run([loss, train])[0])
        known, new = sess.run(embedding, {x: images[:500]}), sess.run(embedding, {x: test_images})
        nearest = labels[np.argmax(new @ known.T, 1)]
        print(f"nearest neighbour is right for {np.mean(nearest == test_labels):.3f}")
        coordinator.request_stop()
        coordinator.join(threads)
        record.save_session(sess, tf.global_variables())


if __name__ == "__main__":
    main()
