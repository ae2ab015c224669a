"""Reading rows of digits: two LSTM layers by dynamic_rnn over image columns, CTC loss, greedy decoding and edit distance."""

import common
import numpy as np
import tensorflow as tf

from npu_bridge.npu_init import *  # noqa: F403  isort: skip


def sparse(texts):
    indices = np.array([(row, place) for row, text in enumerate(texts) for place in range(len(text))], np.int64)
    return tf.SparseTensorValue(indices, np.concatenate(texts), [len(texts), max(map(len, texts))])


def main():
    options = common.arguments(__doc__, steps=40, batch=16)
    columns, lengths, texts = common.digit_rows(256, options.seed)
    tf.set_random_seed(options.seed)
    x = tf.placeholder(tf.float32, [None, None, 8])
    length = tf.placeholder(tf.int32, [None])
    labels = tf.sparse_placeholder(tf.int32)
    cells = tf.contrib.rnn.MultiRNNCell([tf.contrib.rnn.LSTMCell(48) for _ in range(2)])
    outputs, _ = tf.nn.dynamic_rnn(cells, x, length, dtype=tf.float32)
    logits = tf.transpose(tf.layers.dense(outputs, 11), [1, 0, 2])
    loss = tf.reduce_mean(tf.nn.ctc_loss(labels, logits, length))
    gradients, variables = zip(*tf.train.AdamOptimizer(3e-3).compute_gradients(loss))
    clipped, _ = tf.clip_by_global_norm(gradients, 5.0)
    train = tf.train.AdamOptimizer(3e-3).apply_gradients(zip(clipped, variables))
    decoded, _ = tf.nn.ctc_greedy_decoder(logits, length)
    distance = tf.reduce_mean(tf.edit_distance(tf.cast(decoded[0], tf.int32), labels))
    record = common.Record(options)
    rows = common.batches(len(columns), options.batch, options.seed)
    with tf.Session(config=npu_config_proto()) as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(options.steps):
            batch = next(rows)
            longest = lengths[batch].max()  # the length differs from batch to batch
            feed = {x: columns[batch, :longest], length: lengths[batch], labels: sparse([texts[i] for i in batch])}
            record.add(sess.run([loss, train], feed)[0])
        print(f"edit distance {sess.run(distance, feed):.3f}")
        record.save_session(sess, tf.global_variables())


if __name__ == "__main__":
    main()
