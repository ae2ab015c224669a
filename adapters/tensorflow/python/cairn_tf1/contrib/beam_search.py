"""Beam search of tf.contrib.seq2seq: a decoder that keeps the likeliest prefixes of each sequence, and the walk back through what
it chose."""

import collections

import tensorflow.compat.v1 as tf

BeamSearchDecoderState = collections.namedtuple(
    "BeamSearchDecoderState", ("cell_state", "log_probs", "finished", "lengths", "accumulated_attention_probs")
)
BeamSearchDecoderOutput = collections.namedtuple("BeamSearchDecoderOutput", ("scores", "predicted_ids", "parent_ids"))
FinalBeamSearchDecoderOutput = collections.namedtuple(
    "FinalBeamSearchDecoderOutput", ("predicted_ids", "beam_search_decoder_output")
)


def gather_tree(step_ids, parent_ids, max_sequence_lengths, end_token):
    """Whole sequences [time, batch, beams] of the beams at each one's last step: back from parent to parent. What follows the
    first end token, or the sequence's length, is the end token."""
    step_ids, parent_ids = tf.convert_to_tensor(step_ids), tf.convert_to_tensor(parent_ids)
    steps, beams = tf.shape(step_ids)[0], tf.shape(step_ids)[2]
    last = tf.minimum(steps, tf.cast(max_sequence_lengths, tf.int32))[:, None] - 1
    own = tf.broadcast_to(tf.range(beams)[None, :], tf.shape(step_ids)[1:])

    def back(time, beam, ids):
        inside = time <= last
        found = tf.where_v2(inside, tf.gather(step_ids[time], beam, batch_dims=1), end_token)
        beam = tf.where_v2(inside, tf.gather(parent_ids[time], beam, batch_dims=1), beam)
        return time - 1, beam, ids.write(time, found)

    ids = tf.TensorArray(step_ids.dtype, steps)
    ids = tf.while_loop(lambda time, *_: time >= 0, back, (steps - 1, own, ids))[2].stack()
    ended = tf.cumsum(tf.cast(tf.equal(ids, end_token), tf.int32), 0, exclusive=True) > 0
    ids = tf.where_v2(ended, end_token, ids)
    ids.set_shape(step_ids.shape)
    return ids


def _score(log_probs, lengths, weight):
    """Log probabilities over ((5 + length) / 6) ** weight (Wu et al., 2016, "Google's neural machine translation system")."""
    if isinstance(weight, (int, float)) and weight == 0:
        return log_probs
    return log_probs / ((5.0 + tf.cast(lengths, tf.float32)) / 6.0) ** weight


class BeamSearchDecoder:
    """Decoder for dynamic_decode whose results are FinalBeamSearchDecoderOutput: predicted_ids [batch, time, beams], the best beam
    first. `initial_state` is tiled: tile_batch(state, beam_width)."""

    tracks_own_finished = True

    def __init__(self, cell, embedding, start_tokens, end_token, initial_state, beam_width, output_layer=None,
                 length_penalty_weight=0.0, coverage_penalty_weight=0.0, reorder_tensor_arrays=True):  # fmt: skip
        if not (isinstance(coverage_penalty_weight, (int, float)) and coverage_penalty_weight == 0):
            raise NotImplementedError("BeamSearchDecoder: coverage_penalty_weight is not supported")
        if any(isinstance(part, tf.TensorArray) for part in tf.nest.flatten(initial_state)):
            raise NotImplementedError("BeamSearchDecoder: a cell state with arrays (alignment_history) is not supported")
        self._cell, self._layer, self._width = cell, output_layer, beam_width
        self._embed = embedding if callable(embedding) else lambda ids: tf.nn.embedding_lookup(embedding, ids)
        self._start = tf.convert_to_tensor(start_tokens, tf.int32)
        self._end = tf.convert_to_tensor(end_token, tf.int32)
        if self._start.shape.rank != 1 or self._end.shape.rank != 0:
            raise ValueError("start_tokens must be a vector and end_token a scalar")
        self._batch = tf.size(self._start)
        self._penalty = length_penalty_weight
        self._initial_state = tf.nest.map_structure(self._split, initial_state)

    @property
    def batch_size(self):
        return self._batch

    @property
    def output_size(self):
        shape = tf.TensorShape([self._width])
        return BeamSearchDecoderOutput(scores=shape, predicted_ids=shape, parent_ids=shape)

    @property
    def output_dtype(self):
        return BeamSearchDecoderOutput(scores=tf.float32, predicted_ids=tf.int32, parent_ids=tf.int32)

    def _split(self, value):
        """[batch * beams, ...] as [batch, beams, ...]; scalars pass on."""
        if value.shape.rank == 0:
            return value
        result = tf.reshape(value, tf.concat([[self._batch, self._width], tf.shape(value)[1:]], 0))
        result.set_shape([None, self._width, *value.shape[1:]])
        return result

    def _merge(self, value):
        if value.shape.rank == 0:
            return value
        result = tf.reshape(value, tf.concat([[self._batch * self._width], tf.shape(value)[2:]], 0))
        result.set_shape([None, *value.shape[2:]])
        return result

    def initialize(self, name=None):
        """Only the first beam counts at first: all start from one state."""
        finished = tf.one_hot(tf.zeros([self._batch], tf.int32), self._width, False, True)
        state = BeamSearchDecoderState(
            cell_state=self._initial_state,
            log_probs=tf.one_hot(tf.zeros([self._batch], tf.int32), self._width, 0.0, float("-inf")),
            finished=finished,
            lengths=tf.zeros([self._batch, self._width], tf.int64),
            accumulated_attention_probs=(),
        )
        return finished, self._inputs_of(tf.tile(self._start[:, None], [1, self._width])), state

    def _inputs_of(self, ids):
        ids.set_shape([None, self._width])
        return self._embed(ids)

    def step(self, time, inputs, state, name=None):
        with tf.name_scope(name, "BeamSearchDecoderStep"):
            merged = tf.nest.map_structure(self._merge, state.cell_state)
            outputs, cell_state = self._cell(tf.nest.map_structure(self._merge, inputs), merged)
            if self._layer is not None:
                outputs = self._layer(outputs)
            cell_state = tf.nest.map_structure(self._split, cell_state)
            found, state = self._choose(self._split(outputs), state, cell_state)
            return found, state, self._inputs_of(found.predicted_ids), state.finished

    def _choose(self, logits, state, cell_state):
        """The best continuations of all beams; a finished one goes on with its end token, at no cost."""
        words = logits.shape[-1] if logits.shape[-1] is not None else tf.shape(logits)[-1]
        only_end = tf.one_hot(self._end, words, 0.0, tf.float32.min)
        step = tf.where_v2(state.finished[:, :, None], only_end, tf.nn.log_softmax(logits))
        total = state.log_probs[:, :, None] + step
        longer = tf.one_hot(self._end, words, 0, 1, dtype=tf.int64) * tf.cast(~state.finished, tf.int64)[:, :, None]
        flat = lambda value: tf.reshape(value, [self._batch, -1])
        scores = flat(_score(total, state.lengths[:, :, None] + longer, self._penalty))
        best, places = tf.nn.top_k(scores, self._width)
        best.set_shape([None, self._width])
        ids, parents = places % words, places // words
        of_parent = lambda value: value if value.shape.rank == 0 else tf.gather(value, parents, batch_dims=1)
        was_finished = of_parent(state.finished)
        new = BeamSearchDecoderState(
            cell_state=tf.nest.map_structure(of_parent, cell_state),
            log_probs=tf.gather(flat(total), places, batch_dims=1),
            finished=was_finished | tf.equal(ids, self._end),
            lengths=of_parent(state.lengths) + tf.cast(~was_finished, tf.int64),
            accumulated_attention_probs=(),
        )
        return BeamSearchDecoderOutput(scores=best, predicted_ids=ids, parent_ids=parents), new

    def finalize(self, outputs, final_state, sequence_lengths):
        """`outputs` are [time, batch, beams]."""
        longest = tf.cast(tf.reduce_max(final_state.lengths, 1), tf.int32)
        ids = gather_tree(outputs.predicted_ids, outputs.parent_ids, longest, self._end)
        return FinalBeamSearchDecoderOutput(beam_search_decoder_output=outputs, predicted_ids=ids), final_state
