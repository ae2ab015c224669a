"""tf.contrib.legacy_seq2seq: the losses and the plain decoders over lists of steps."""

import tensorflow.compat.v1 as tf


def sequence_loss_by_example(logits, targets, weights, average_across_timesteps=True, softmax_loss_function=None, name=None):
    """[batch]: the weighted cross entropy of each element, over lists of [batch, classes], [batch], [batch]."""
    if not len(targets) == len(logits) == len(weights):
        raise ValueError(
            f"Lengths of logits, weights, and targets must be the same {len(logits)}, {len(weights)}, {len(targets)}."
        )
    with tf.name_scope(name, "sequence_loss_by_example", logits + targets + weights):
        losses = []
        for logit, target, weight in zip(logits, targets, weights):
            target = tf.reshape(target, [-1])
            if softmax_loss_function is None:
                loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=target, logits=logit)
            else:
                loss = softmax_loss_function(labels=target, logits=logit)
            losses.append(loss * weight)
        total = tf.add_n(losses)
        return total / (tf.add_n(weights) + 1e-12) if average_across_timesteps else total


def sequence_loss(logits, targets, weights, average_across_timesteps=True, average_across_batch=True,
                  softmax_loss_function=None, name=None):  # fmt: skip
    with tf.name_scope(name, "sequence_loss", logits + targets + weights):
        losses = sequence_loss_by_example(logits, targets, weights, average_across_timesteps, softmax_loss_function)
        cost = tf.reduce_sum(losses)
        return cost / tf.cast(tf.shape(targets[0])[0], cost.dtype) if average_across_batch else cost


def rnn_decoder(decoder_inputs, initial_state, cell, loop_function=None, scope=None):
    """(outputs, state): the cell over the inputs, or over what `loop_function` makes of each output."""
    with tf.variable_scope(scope or "rnn_decoder"):
        state, outputs, previous = initial_state, [], None
        for index, inputs in enumerate(decoder_inputs):
            if loop_function is not None and previous is not None:
                with tf.variable_scope("loop_function", reuse=True):
                    inputs = loop_function(previous, index)
            if index > 0:
                tf.get_variable_scope().reuse_variables()
            output, state = cell(inputs, state)
            outputs.append(output)
            if loop_function is not None:
                previous = output
    return outputs, state
