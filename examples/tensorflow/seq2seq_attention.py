"""Writing out rows of digits: an LSTM over image columns, a decoder with Bahdanau's attention that is shown the digits while it
trains, sequence loss, clipped gradients, and greedy decoding at the end."""

import common
import numpy as np
import tensorflow as tf

from npu_bridge.npu_init import *  # noqa: F403  isort: skip

START, END, WORDS = 10, 11, 12  # behind the digits


def targets(texts):
    """What the decoder is shown and what it should answer, [count, longest + 1] each, and the lengths with the end."""
    lengths = np.array([len(text) + 1 for text in texts], np.int32)
    shown, wanted = np.full([2, len(texts), lengths.max()], END, np.int32)
    for row, text in enumerate(texts):
        shown[row, 0], shown[row, 1 : len(text) + 1], wanted[row, : len(text)] = START, text, text
    return shown, wanted, lengths


def main():
    options = common.arguments(__doc__, steps=40, batch=16)
    columns, lengths, texts = common.digit_rows(256, options.seed)
    tf.set_random_seed(options.seed)
    seq2seq = tf.contrib.seq2seq
    x, x_length = tf.placeholder(tf.float32, [None, None, 8]), tf.placeholder(tf.int32, [None])
    shown, wanted = tf.placeholder(tf.int32, [None, None]), tf.placeholder(tf.int32, [None, None])
    length = tf.placeholder(tf.int32, [None])
    batch = tf.shape(x)[0]
    encoded, state = tf.nn.dynamic_rnn(tf.nn.rnn_cell.LSTMCell(32), x, x_length, dtype=tf.float32)
    attention = seq2seq.BahdanauAttention(32, encoded, memory_sequence_length=x_length)
    cell = seq2seq.AttentionWrapper(tf.nn.rnn_cell.LSTMCell(32), attention, attention_layer_size=32)
    first = cell.zero_state(batch, tf.float32).clone(cell_state=state)
    table = tf.get_variable("embedding", [WORDS, 16])
    layer = tf.layers.Dense(WORDS, name="words")
    helper = seq2seq.TrainingHelper(tf.nn.embedding_lookup(table, shown), length)
    outputs, _, _ = seq2seq.dynamic_decode(seq2seq.BasicDecoder(cell, helper, first, layer))
    weights = tf.sequence_mask(length, tf.shape(wanted)[1], dtype=tf.float32)
    loss = seq2seq.sequence_loss(outputs.rnn_output, wanted, weights)
    optimizer = tf.train.AdamOptimizer(1e-2)
    gradients, variables = zip(*optimizer.compute_gradients(loss))
    clipped, _ = tf.clip_by_global_norm(gradients, 5.0)
    train = optimizer.apply_gradients(zip(clipped, variables))
    with tf.variable_scope(tf.get_variable_scope(), reuse=True):
        greedy = seq2seq.GreedyEmbeddingHelper(table, tf.fill([batch], START), END)
        written, _, _ = seq2seq.dynamic_decode(seq2seq.BasicDecoder(cell, greedy, first, layer), maximum_iterations=6)
    record = common.Record(options)
    rows = common.batches(len(columns), options.batch, options.seed)
    with tf.Session(config=npu_config_proto()) as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(options.steps):
            chosen = next(rows)
            feed = {x: columns[chosen, : lengths[chosen].max()], x_length: lengths[chosen]}
            feed.update(zip((shown, wanted, length), targets([texts[i] for i in chosen])))
            record.add(sess.run([loss, train], feed)[0])
        found = sess.run(written.sample_id, feed)
        right = sum(list(row[: len(texts[i])]) == list(texts[i]) for row, i in zip(found, chosen))
        print(f"{right} of {len(chosen)} rows read right")
        record.save_session(sess, tf.global_variables())


if __name__ == "__main__":
    main()
