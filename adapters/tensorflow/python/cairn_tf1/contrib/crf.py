"""tf.contrib.crf: a linear chain conditional random field over scores [batch, time, tags] (Lafferty et al., 2001)."""

import numpy as np
import tensorflow.compat.v1 as tf


def _mask(lengths, steps, dtype):
    return tf.sequence_mask(lengths, steps, dtype)


def crf_unary_score(tag_indices, sequence_lengths, inputs):
    steps, tags = tf.shape(inputs)[1], tf.shape(inputs)[2]
    chosen = tf.reduce_sum(inputs * tf.one_hot(tag_indices, tags, dtype=inputs.dtype), 2)
    return tf.reduce_sum(chosen * _mask(sequence_lengths, steps, inputs.dtype), 1)


def crf_binary_score(tag_indices, sequence_lengths, transition_params):
    pairs = tf.stack([tag_indices[:, :-1], tag_indices[:, 1:]], -1)
    chosen = tf.gather_nd(transition_params, pairs)
    steps = tf.shape(tag_indices)[1]
    return tf.reduce_sum(chosen * _mask(sequence_lengths, steps, chosen.dtype)[:, 1:], 1)


def crf_sequence_score(inputs, tag_indices, sequence_lengths, transition_params):
    return crf_unary_score(tag_indices, sequence_lengths, inputs) + crf_binary_score(
        tag_indices, sequence_lengths, transition_params
    )


def _forward(inputs, sequence_lengths, transition_params, combine):
    """Folds the time steps with `combine` over (previous tag, tag) and stops at each element's length."""
    steps = tf.transpose(inputs, [1, 0, 2])

    def step(alphas, current):
        time, scores = current
        new = combine(tf.expand_dims(alphas, 2) + transition_params) + scores
        alive = tf.broadcast_to(tf.expand_dims(time < tf.cast(sequence_lengths, tf.int32), 1), tf.shape(new))
        return tf.where(alive, new, alphas)

    return tf.foldl(step, (tf.range(1, tf.shape(steps)[0]), steps[1:]), initializer=steps[0])


def crf_log_norm(inputs, sequence_lengths, transition_params):
    alphas = _forward(inputs, sequence_lengths, transition_params, lambda values: tf.reduce_logsumexp(values, 1))
    norm = tf.reduce_logsumexp(alphas, 1)
    return tf.where(tf.less_equal(sequence_lengths, 0), tf.zeros_like(norm), norm)


def crf_log_likelihood(inputs, tag_indices, sequence_lengths, transition_params=None):
    """(log likelihood [batch], transitions); makes the variable `transitions` when none are given."""
    tags = inputs.shape.as_list()[2]
    if transition_params is None:
        transition_params = tf.get_variable("transitions", [tags, tags])
    score = crf_sequence_score(inputs, tag_indices, sequence_lengths, transition_params)
    return score - crf_log_norm(inputs, sequence_lengths, transition_params), transition_params


def viterbi_decode(score, transition_params):
    """(best tags, their score) of one sequence, in NumPy."""
    best, back = np.array(score[0]), []
    for row in score[1:]:
        values = best[:, None] + transition_params
        back.append(values.argmax(0))
        best = row + values.max(0)
    path = [int(best.argmax())]
    for pointers in reversed(back):
        path.append(int(pointers[path[-1]]))
    return path[::-1], float(best.max())


def crf_decode(potentials, transition_params, sequence_length):
    """(best tags [batch, time], their scores [batch]); tags past the length are 0."""
    steps = tf.transpose(potentials, [1, 0, 2])
    count = tf.shape(steps)[0]
    lengths = tf.cast(sequence_length, tf.int32)
    tags = tf.shape(potentials)[2]

    def forward(previous, current):
        time, scores = current
        values = tf.expand_dims(previous[0], 2) + transition_params
        alive = tf.expand_dims(time < lengths, 1)
        alive = tf.broadcast_to(alive, tf.shape(previous[0]))
        same = tf.broadcast_to(tf.range(tags), tf.shape(previous[1]))
        pointers = tf.where(alive, tf.cast(tf.argmax(values, 1), tf.int32), same)
        return tf.where(alive, tf.reduce_max(values, 1) + scores, previous[0]), pointers

    first = (steps[0], tf.zeros(tf.shape(steps[0]), tf.int32))
    scores, pointers = tf.scan(forward, (tf.range(1, count), steps[1:]), initializer=first)
    final = tf.concat([tf.expand_dims(steps[0], 0), scores], 0)[-1]
    last = tf.cast(tf.argmax(final, 1), tf.int32)
    earlier = tf.scan(lambda tag, row: tf.gather(row, tag, batch_dims=1), pointers, initializer=last, reverse=True)
    path = tf.transpose(tf.concat([earlier, tf.expand_dims(last, 0)], 0))
    return path * tf.sequence_mask(lengths, count, tf.int32), tf.reduce_max(final, 1)
