"""Attention over a memory [batch, time, depth], and the wrapper that lets a cell use it (Bahdanau et al. 2014; Luong et al. 2015)."""

import collections

import tensorflow.compat.v1 as tf


def hardmax(logits, name=None):
    """1 at the largest, 0 elsewhere."""
    with tf.name_scope(name, "Hardmax", [logits]):
        return tf.one_hot(tf.argmax(logits, -1), logits.shape.as_list()[-1] or tf.shape(logits)[-1], dtype=logits.dtype)


def tile_batch(t, multiplier, name=None):
    """Each element of the batch `multiplier` times, one after the other."""

    def tiled(tensor):
        tensor = tf.convert_to_tensor(tensor)
        shape = tf.shape(tensor)
        expanded = tf.tile(tf.expand_dims(tensor, 1), [1, multiplier] + [1] * (tensor.shape.rank - 1))
        result = tf.reshape(expanded, tf.concat([[shape[0] * multiplier], shape[1:]], 0))
        first = tensor.shape[0]
        result.set_shape([None if first is None else int(first) * multiplier, *tensor.shape[1:]])
        return result

    with tf.name_scope(name, "tile_batch"):
        return tf.nest.map_structure(tiled, t)


class _Attention:
    def __init__(self, memory, lengths, memory_layer, query_layer, probability_fn, score_mask_value, name):
        self.name = name
        if lengths is not None:
            mask = tf.sequence_mask(lengths, tf.shape(memory)[1], memory.dtype)
            memory = memory * tf.expand_dims(mask, 2)
        self.values = memory
        self.memory_layer, self.query_layer = memory_layer, query_layer
        self.keys = memory_layer(memory) if memory_layer else memory
        self._lengths = lengths
        self._probability_fn = probability_fn or tf.nn.softmax
        self._mask_value = float("-inf") if score_mask_value is None else score_mask_value
        self.batch_size = tf.shape(self.keys)[0]

    @property
    def alignments_size(self):
        return self.keys.shape.as_list()[1] or tf.shape(self.keys)[1]

    state_size = alignments_size

    def initial_alignments(self, batch_size, dtype):
        return tf.zeros([batch_size, self.alignments_size], dtype)

    initial_state = initial_alignments

    def _probabilities(self, score):
        if self._lengths is not None:
            there = tf.sequence_mask(self._lengths, tf.shape(score)[1])
            score = tf.where(there, score, self._mask_value * tf.ones_like(score))
        return self._probability_fn(score)


class LuongAttention(_Attention):
    """score = query . (W memory), times a learned scale when asked for."""

    def __init__(self, num_units, memory, memory_sequence_length=None, scale=False, probability_fn=None,
                 score_mask_value=None, dtype=None, custom_key_value_fn=None, name="LuongAttention"):  # fmt: skip
        layer = tf.layers.Dense(num_units, name="memory_layer", use_bias=False)
        super().__init__(memory, memory_sequence_length, layer, None, probability_fn, score_mask_value, name)
        self._scale = scale

    def __call__(self, query, state):
        with tf.variable_scope(None, "luong_attention", [query]):
            score = tf.squeeze(tf.matmul(tf.expand_dims(query, 1), self.keys, transpose_b=True), [1])
            if self._scale:
                score *= tf.get_variable("attention_g", dtype=query.dtype, initializer=tf.ones_initializer(), shape=())
        alignments = self._probabilities(score)
        return alignments, alignments


class BahdanauAttention(_Attention):
    """score = v . tanh(W1 memory + W2 query), with v scaled to a learned length when normalised."""

    def __init__(self, num_units, memory, memory_sequence_length=None, normalize=False, probability_fn=None,
                 score_mask_value=None, dtype=None, custom_key_value_fn=None, name="BahdanauAttention"):  # fmt: skip
        super().__init__(
            memory, memory_sequence_length, tf.layers.Dense(num_units, name="memory_layer", use_bias=False),
            tf.layers.Dense(num_units, name="query_layer", use_bias=False), probability_fn, score_mask_value, name,
        )  # fmt: skip
        self._num_units, self._normalize = num_units, normalize

    def __call__(self, query, state):
        with tf.variable_scope(None, "bahdanau_attention", [query]):
            both = self.keys + tf.expand_dims(self.query_layer(query), 1)
            v = tf.get_variable("attention_v", [self._num_units], dtype=query.dtype)
            if self._normalize:
                start = tf.constant_initializer((1.0 / self._num_units) ** 0.5)
                g = tf.get_variable("attention_g", dtype=query.dtype, initializer=start, shape=())
                both += tf.get_variable("attention_b", [self._num_units], query.dtype, tf.zeros_initializer())
                v = g * v * tf.rsqrt(tf.reduce_sum(tf.square(v)))
            score = tf.reduce_sum(v * tf.tanh(both), [2])
        alignments = self._probabilities(score)
        return alignments, alignments


_FIELDS = ("cell_state", "attention", "time", "alignments", "alignment_history", "attention_state")


class AttentionWrapperState(collections.namedtuple("AttentionWrapperState", _FIELDS)):
    def clone(self, **kwargs):
        return self._replace(**kwargs)


class AttentionWrapper(tf.nn.rnn_cell.RNNCell):
    """A cell that gets its input joined with the last attention, and attends with its output."""

    def __init__(self, cell, attention_mechanism, attention_layer_size=None, alignment_history=False, cell_input_fn=None,
                 output_attention=True, initial_cell_state=None, name=None, attention_layer=None):  # fmt: skip
        super().__init__(name=name)
        self._many = isinstance(attention_mechanism, (list, tuple))
        self._mechanisms = tuple(attention_mechanism) if self._many else (attention_mechanism,)
        self._cell, self._history, self._output_attention = cell, alignment_history, output_attention
        self._input_fn = cell_input_fn or (lambda inputs, attention: tf.concat([inputs, attention], -1))
        self._initial_cell_state = initial_cell_state
        sizes = attention_layer_size if isinstance(attention_layer_size, (list, tuple)) else (attention_layer_size,)
        self._layers = None
        if attention_layer_size is not None:
            self._layers = [tf.layers.Dense(size, name="attention_layer", use_bias=False) for size in sizes]
        elif attention_layer is not None:
            self._layers = list(attention_layer) if self._many else [attention_layer]
        if self._layers and attention_layer_size is not None:
            self._size = sum(sizes)
        else:
            self._size = sum(mechanism.values.shape.as_list()[-1] for mechanism in self._mechanisms)

    def _one_or_all(self, items):
        return tuple(items) if self._many else items[0]

    @property
    def output_size(self):
        return self._size if self._output_attention else self._cell.output_size

    @property
    def state_size(self):
        sizes = self._one_or_all([mechanism.alignments_size for mechanism in self._mechanisms])
        history = self._one_or_all([size if self._history else () for size in tf.nest.flatten(sizes)])
        return AttentionWrapperState(self._cell.state_size, self._size, tf.TensorShape([]), sizes, history, sizes)

    def zero_state(self, batch_size, dtype):
        state = self._initial_cell_state
        state = self._cell.zero_state(batch_size, dtype) if state is None else tf.nest.map_structure(tf.identity, state)
        alignments = [mechanism.initial_alignments(batch_size, dtype) for mechanism in self._mechanisms]
        history = [tf.TensorArray(dtype, 0, dynamic_size=True, element_shape=a.shape) if self._history else () for a in alignments]
        return AttentionWrapperState(
            cell_state=state, attention=tf.zeros([batch_size, self._size], dtype), time=tf.zeros([], tf.int32),
            alignments=self._one_or_all(alignments), alignment_history=self._one_or_all(history),
            attention_state=self._one_or_all(alignments),
        )  # fmt: skip

    def call(self, inputs, state):
        output, cell_state = self._cell(self._input_fn(inputs, state.attention), state.cell_state)
        previous = state.attention_state if self._many else (state.attention_state,)
        histories = state.alignment_history if self._many else (state.alignment_history,)
        attentions, alignments, states, written = [], [], [], []
        for index, mechanism in enumerate(self._mechanisms):
            alignment, following = mechanism(output, previous[index])
            context = tf.squeeze(tf.matmul(tf.expand_dims(alignment, 1), mechanism.values), [1])
            attentions.append(self._layers[index](tf.concat([output, context], 1)) if self._layers else context)
            alignments.append(alignment)
            states.append(following)
            written.append(histories[index].write(state.time, alignment) if self._history else ())
        attention = tf.concat(attentions, 1)
        new = AttentionWrapperState(
            cell_state, attention, state.time + 1, self._one_or_all(alignments), self._one_or_all(written),
            self._one_or_all(states),
        )  # fmt: skip
        return (attention if self._output_attention else output), new
