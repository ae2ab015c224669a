"""tf.contrib.seq2seq: decoders with their helpers, attention, sequence loss. Batch first."""

import collections

import tensorflow.compat.v1 as tf

from cairn_tf1.contrib import attention as attention_wrapper  # noqa: F401  contrib's private name
from cairn_tf1.contrib.attention import (  # noqa: F401
    AttentionWrapper,
    AttentionWrapperState,
    BahdanauAttention,
    LuongAttention,
    hardmax,
    tile_batch,
)
from cairn_tf1.contrib.beam_search import (  # noqa: F401
    BeamSearchDecoder,
    BeamSearchDecoderOutput,
    BeamSearchDecoderState,
    FinalBeamSearchDecoderOutput,
    gather_tree,
)

BasicDecoderOutput = collections.namedtuple("BasicDecoderOutput", ("rnn_output", "sample_id"))


def sequence_loss(logits, targets, weights, average_across_timesteps=True, average_across_batch=True, softmax_loss_function=None,
                  sum_over_timesteps=False, sum_over_batch=False, name=None):  # fmt: skip
    """Weighted cross entropy of logits [batch, time, classes]. An average divides by the weights' sum plus 1e-12."""
    if logits.shape.rank != 3 or targets.shape.rank != 2 or weights.shape.rank != 2:
        raise ValueError("Logits must be a [batch_size x sequence_length x logits] tensor, targets and weights"
                         " [batch_size x sequence_length] tensors")  # fmt: skip
    with tf.name_scope(name, "sequence_loss", [logits, targets, weights]):
        if softmax_loss_function is None:
            loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=logits)
        else:
            classes = tf.shape(logits)[2]
            loss = softmax_loss_function(labels=tf.reshape(targets, [-1]), logits=tf.reshape(logits, [-1, classes]))
            loss = tf.reshape(loss, tf.shape(targets))
        loss *= weights
        if average_across_timesteps and average_across_batch:
            return tf.reduce_sum(loss) / (tf.reduce_sum(weights) + 1e-12)
        if sum_over_timesteps and sum_over_batch:
            return tf.reduce_sum(loss) / (tf.cast(tf.math.count_nonzero(weights), loss.dtype) + 1e-12)
        for axis, average, total in ((0, average_across_batch, sum_over_batch), (1, average_across_timesteps, sum_over_timesteps)):
            if average:
                return tf.reduce_sum(loss, [axis]) / (tf.reduce_sum(weights, [axis]) + 1e-12)
            if total:
                return tf.reduce_sum(loss, [axis])
        return loss


class Helper:
    """Where a decoder's inputs come from. `sample_ids` are of `sample_ids_dtype` and `sample_ids_shape` beside the batch."""

    sample_ids_dtype = tf.int32
    sample_ids_shape = tf.TensorShape([])


class TrainingHelper(Helper):
    """Feeds the given inputs [batch, time, depth], whatever was sampled."""

    def __init__(self, inputs, sequence_length, time_major=False, name=None):
        inputs = tf.convert_to_tensor(inputs)
        self._inputs = inputs if time_major else tf.transpose(inputs, [1, 0, *range(2, inputs.shape.rank)])
        self.sequence_length = tf.convert_to_tensor(sequence_length)
        self.batch_size = tf.size(self.sequence_length)

    def initialize(self, name=None):
        return tf.equal(0, self.sequence_length), self._at(tf.constant(0))

    def _at(self, time):
        """The inputs of a time; zeros past the end."""
        last = tf.shape(self._inputs)[0] - 1
        rows = tf.gather(self._inputs, tf.minimum(time, tf.maximum(last, 0)))
        return tf.cond(time > last, lambda: tf.zeros_like(rows), lambda: rows)

    def sample(self, time, outputs, state, name=None):
        return tf.cast(tf.argmax(outputs, axis=-1), tf.int32)

    def next_inputs(self, time, outputs, state, sample_ids, name=None):
        return time + 1 >= self.sequence_length, self._at(time + 1), state


class ScheduledEmbeddingTrainingHelper(TrainingHelper):
    """As TrainingHelper, but with a probability feeds the embedding of what was sampled."""

    def __init__(self, inputs, sequence_length, embedding, sampling_probability, time_major=False, seed=None,
                 scheduling_seed=None, name=None):  # fmt: skip
        super().__init__(inputs, sequence_length, time_major, name)
        self._embed = _embedder(embedding)
        self._probability, self._seed, self._scheduling_seed = sampling_probability, seed, scheduling_seed

    def sample(self, time, outputs, state, name=None):
        chosen = tf.random.uniform([self.batch_size], seed=self._scheduling_seed) < self._probability
        ids = tf.cast(tf.random.categorical(outputs, 1, seed=self._seed)[:, 0], tf.int32)
        return tf.where(chosen, ids, tf.fill([self.batch_size], -1))

    def next_inputs(self, time, outputs, state, sample_ids, name=None):
        finished, given, state = super().next_inputs(time, outputs, state, sample_ids)
        taken = tf.expand_dims(sample_ids >= 0, 1) & tf.ones(tf.shape(given), tf.bool)
        return finished, tf.where(taken, self._embed(tf.maximum(sample_ids, 0)), given), state


def _embedder(embedding):
    return embedding if callable(embedding) else lambda ids: tf.nn.embedding_lookup(embedding, ids)


class GreedyEmbeddingHelper(Helper):
    """Feeds the embedding of the likeliest symbol until `end_token`."""

    def __init__(self, embedding, start_tokens, end_token):
        self._embed = _embedder(embedding)
        self._start = tf.convert_to_tensor(start_tokens, tf.int32)
        self._end = tf.convert_to_tensor(end_token, tf.int32)
        self.batch_size = tf.size(self._start)

    def initialize(self, name=None):
        return tf.fill([self.batch_size], False), self._embed(self._start)

    def sample(self, time, outputs, state, name=None):
        return tf.cast(tf.argmax(outputs, axis=-1), tf.int32)

    def next_inputs(self, time, outputs, state, sample_ids, name=None):
        return tf.equal(sample_ids, self._end), self._embed(sample_ids), state


class SampleEmbeddingHelper(GreedyEmbeddingHelper):
    """Feeds the embedding of a symbol drawn from the logits."""

    def __init__(self, embedding, start_tokens, end_token, softmax_temperature=None, seed=None):
        super().__init__(embedding, start_tokens, end_token)
        self._temperature, self._seed = softmax_temperature, seed

    def sample(self, time, outputs, state, name=None):
        logits = outputs if self._temperature is None else outputs / self._temperature
        return tf.cast(tf.random.categorical(logits, 1, seed=self._seed)[:, 0], tf.int32)


class InferenceHelper(Helper):
    """Feeds what its functions make of the outputs."""

    def __init__(self, sample_fn, sample_shape, sample_dtype, start_inputs, end_fn, next_inputs_fn=None):
        self._sample, self._end, self._next = sample_fn, end_fn, next_inputs_fn
        self.sample_ids_shape, self.sample_ids_dtype = tf.TensorShape(sample_shape or []), sample_dtype
        self._start = tf.convert_to_tensor(start_inputs)
        self.batch_size = tf.shape(self._start)[0]

    def initialize(self, name=None):
        return tf.fill([self.batch_size], False), self._start

    def sample(self, time, outputs, state, name=None):
        return self._sample(outputs)

    def next_inputs(self, time, outputs, state, sample_ids, name=None):
        following = sample_ids if self._next is None else self._next(sample_ids)
        return self._end(sample_ids), following, state


class Decoder:
    """What dynamic_decode runs: batch_size, output_size, output_dtype, initialize(), step()."""

    tracks_own_finished = False

    def finalize(self, outputs, final_state, sequence_lengths):
        raise NotImplementedError


class BasicDecoder(Decoder):
    """A cell with an optional output layer, fed by a helper."""

    def __init__(self, cell, helper, initial_state, output_layer=None):
        self._cell, self._helper, self._initial_state, self._layer = cell, helper, initial_state, output_layer

    @property
    def batch_size(self):
        return self._helper.batch_size

    @property
    def output_size(self):
        size = self._cell.output_size
        if self._layer is not None:
            size = self._layer.compute_output_shape(tf.TensorShape([None, size]))[-1]
        return BasicDecoderOutput(size, self._helper.sample_ids_shape)

    @property
    def output_dtype(self):
        return BasicDecoderOutput(tf.nest.flatten(self._initial_state)[0].dtype, self._helper.sample_ids_dtype)

    def initialize(self, name=None):
        return (*self._helper.initialize(), self._initial_state)

    def step(self, time, inputs, state, name=None):
        with tf.name_scope(name, "BasicDecoderStep"):
            outputs, state = self._cell(inputs, state)
            if self._layer is not None:
                outputs = self._layer(outputs)
            ids = self._helper.sample(time, outputs, state)
            finished, following, state = self._helper.next_inputs(time, outputs, state, ids)
            return BasicDecoderOutput(outputs, ids), state, following, finished


def dynamic_decode(decoder, output_time_major=False, impute_finished=False, maximum_iterations=None, parallel_iterations=32,
                   swap_memory=False, scope=None):  # fmt: skip
    """(outputs, final state, lengths): steps until all are finished. `impute_finished` gives zeros and holds the state after an
    element's end."""
    with tf.variable_scope(scope, "decoder"):
        finished, inputs, state = decoder.initialize()
        limit = None if maximum_iterations is None else tf.convert_to_tensor(maximum_iterations, tf.int32)
        if limit is not None:
            finished = tf.logical_or(finished, limit <= 0)
        arrays = tf.nest.map_structure(lambda dtype: tf.TensorArray(dtype, 0, dynamic_size=True), decoder.output_dtype)

        def going(time, arrays, state, inputs, finished, lengths):
            return tf.logical_not(tf.reduce_all(finished))

        def body(time, arrays, state, inputs, finished, lengths):
            outputs, new_state, following, ended = decoder.step(time, inputs, state)
            ended = ended if decoder.tracks_own_finished else tf.logical_or(ended, finished)
            lengths = tf.where(finished, lengths, tf.fill(tf.shape(lengths), time + 1))
            if impute_finished:
                outputs = tf.nest.map_structure(lambda value: _held(finished, tf.zeros_like(value), value), outputs)
                new_state = tf.nest.map_structure(lambda old, new: _held(finished, old, new), state, new_state)
            if limit is not None:
                ended = tf.logical_or(ended, time + 1 >= limit)
            arrays = tf.nest.map_structure(lambda array, value: array.write(time, value), arrays, outputs)
            return time + 1, arrays, new_state, following, ended, lengths

        start = (tf.constant(0), arrays, state, inputs, finished, tf.zeros_like(finished, tf.int32))
        _, arrays, state, _, _, lengths = tf.while_loop(
            going, body, start, parallel_iterations=parallel_iterations, swap_memory=swap_memory
        )
        outputs = tf.nest.map_structure(lambda array: array.stack(), arrays)
        try:
            outputs, state = decoder.finalize(outputs, state, lengths)
        except NotImplementedError:
            pass
        if not output_time_major:
            turn = lambda value: tf.transpose(value, tf.concat([[1, 0], tf.range(2, tf.rank(value))], 0))
            outputs = tf.nest.map_structure(lambda v: _same_rank(turn(v), v), outputs)
        return outputs, state, lengths


def _same_rank(turned, value):
    shape = value.shape
    if shape.rank is not None and shape.rank >= 2:
        turned.set_shape([shape[1], shape[0], *shape[2:]])
    return turned


def _held(finished, old, new):
    """`old` where finished; scalars and arrays of a state pass on."""
    if not tf.is_tensor(new) or new.shape.rank == 0:
        return new
    mask = tf.reshape(finished, tf.concat([tf.shape(finished), tf.ones([tf.rank(new) - 1], tf.int32)], 0))
    result = tf.where_v2(mask, old, new)
    result.set_shape(new.shape)
    return result
