"""tf.contrib.rnn: cells and wrappers. Those of TensorFlow itself come from there; the rest are written from their papers'
formulas, with contrib's names, gate orders and variable names."""

import sys

import tensorflow.compat.v1 as tf

BasicLSTMCell, BasicRNNCell, GRUCell, LSTMCell = (
    tf.nn.rnn_cell.BasicLSTMCell, tf.nn.rnn_cell.BasicRNNCell, tf.nn.rnn_cell.GRUCell, tf.nn.rnn_cell.LSTMCell,
)  # fmt: skip
DeviceWrapper, DropoutWrapper = tf.nn.rnn_cell.DeviceWrapper, tf.nn.rnn_cell.DropoutWrapper
LSTMStateTuple, MultiRNNCell = tf.nn.rnn_cell.LSTMStateTuple, tf.nn.rnn_cell.MultiRNNCell
ResidualWrapper, RNNCell = tf.nn.rnn_cell.ResidualWrapper, tf.nn.rnn_cell.RNNCell
LayerRNNCell = sys.modules[BasicLSTMCell.__module__].LayerRNNCell
static_rnn = tf.nn.static_rnn
static_state_saving_rnn = tf.nn.static_state_saving_rnn
static_bidirectional_rnn = tf.nn.static_bidirectional_rnn


def transpose_batch_time(x):
    """[batch, time, ...] and [time, batch, ...] into each other."""
    return tf.transpose(x, [1, 0, *range(2, x.shape.rank)]) if x.shape.rank != 2 else tf.transpose(x)


def _like_rnncell(cell):
    return all(hasattr(cell, name) for name in ("output_size", "state_size", "zero_state")) and callable(cell)


class _Linear:
    """x W + b over the concatenation of `args`, with the variables `kernel` and `bias`."""

    def __init__(self, args, output_size, build_bias, bias_initializer=None, kernel_initializer=None):
        self._is_sequence = isinstance(args, (list, tuple))
        args = list(args) if self._is_sequence else [args]
        total = sum(arg.shape.as_list()[1] for arg in args)
        dtype = args[0].dtype
        self._weights = tf.get_variable("kernel", [total, output_size], dtype=dtype, initializer=kernel_initializer)
        self._biases = None
        if build_bias:
            bias_initializer = bias_initializer or tf.zeros_initializer()
            self._biases = tf.get_variable("bias", [output_size], dtype=dtype, initializer=bias_initializer)

    def __call__(self, args):
        result = tf.matmul(tf.concat(list(args), 1) if self._is_sequence else args, self._weights)
        return result if self._biases is None else tf.nn.bias_add(result, self._biases)


def _linear(args, output_size, bias, bias_initializer=None, kernel_initializer=None):
    return _Linear(args, output_size, bias, bias_initializer, kernel_initializer)(args)


class LayerNormBasicLSTMCell(RNNCell):
    """An LSTM whose gates and new state are normalised, with dropout of the new values (Ba et al., 2016)."""

    def __init__(self, num_units, forget_bias=1.0, input_size=None, activation=tf.tanh, layer_norm=True, norm_gain=1.0,
                 norm_shift=0.0, dropout_keep_prob=1.0, dropout_prob_seed=None, reuse=None):  # fmt: skip
        super().__init__(_reuse=reuse)
        self._num_units, self._forget_bias, self._activation = num_units, forget_bias, activation
        self._layer_norm, self._gain, self._shift = layer_norm, norm_gain, norm_shift
        self._keep_prob, self._seed = dropout_keep_prob, dropout_prob_seed

    @property
    def state_size(self):
        return LSTMStateTuple(self._num_units, self._num_units)

    @property
    def output_size(self):
        return self._num_units

    def _norm(self, value, scope):
        with tf.variable_scope(scope):
            size = value.shape.as_list()[-1:]
            gamma = tf.get_variable("gamma", size, value.dtype, tf.constant_initializer(self._gain))
            beta = tf.get_variable("beta", size, value.dtype, tf.constant_initializer(self._shift))
        mean, variance = tf.nn.moments(value, [-1], keep_dims=True)
        return tf.nn.batch_normalization(value, mean, variance, beta, gamma, 1e-12)

    def call(self, inputs, state):
        c, h = state
        both = tf.concat([inputs, h], 1)
        kernel = tf.get_variable("kernel", [both.shape.as_list()[1], 4 * self._num_units], inputs.dtype)
        gates = tf.matmul(both, kernel)
        if not self._layer_norm:
            gates += tf.get_variable("bias", [4 * self._num_units], inputs.dtype, tf.zeros_initializer())
        i, j, f, o = tf.split(gates, 4, axis=1)
        if self._layer_norm:
            i, j, f, o = (self._norm(v, s) for v, s in ((i, "input"), (j, "transform"), (f, "forget"), (o, "output")))
        g = self._activation(j)
        if not isinstance(self._keep_prob, float) or self._keep_prob < 1:
            g = tf.nn.dropout(g, keep_prob=self._keep_prob, seed=self._seed)
        new_c = c * tf.sigmoid(f + self._forget_bias) + tf.sigmoid(i) * g
        if self._layer_norm:
            new_c = self._norm(new_c, "state")
        new_h = self._activation(new_c) * tf.sigmoid(o)
        return new_h, LSTMStateTuple(new_c, new_h)


class LSTMBlockCell(LayerRNNCell):
    """An LSTM with gates i, j (called ci), f, o as BasicLSTMCell's; on this library the same computation."""

    def __init__(self, num_units, forget_bias=1.0, cell_clip=None, use_peephole=False, dtype=None, reuse=None,
                 name="lstm_cell"):  # fmt: skip
        super().__init__(_reuse=reuse, dtype=dtype, name=name)
        self._num_units, self._forget_bias = num_units, forget_bias
        self._cell_clip = cell_clip if cell_clip is not None else -1
        self._use_peephole = use_peephole
        self._names = {"W": "kernel", "b": "bias", "wci": "w_i_diag", "wcf": "w_f_diag", "wco": "w_o_diag"}

    @property
    def state_size(self):
        return LSTMStateTuple(self._num_units, self._num_units)

    @property
    def output_size(self):
        return self._num_units

    def build(self, inputs_shape):
        size = tf.TensorShape(inputs_shape).as_list()[-1]
        self._kernel = self.add_variable("kernel", [size + self._num_units, 4 * self._num_units])
        self._bias = self.add_variable("bias", [4 * self._num_units], initializer=tf.zeros_initializer())
        if self._use_peephole:
            self._peepholes = [self.add_variable(f"w_{gate}_diag", [self._num_units]) for gate in "ifo"]
        self.built = True

    def call(self, inputs, state):
        c, h = state
        i, j, f, o = tf.split(tf.nn.bias_add(tf.matmul(tf.concat([inputs, h], 1), self._kernel), self._bias), 4, axis=1)
        wi, wf, wo = self._peepholes if self._use_peephole else (0.0, 0.0, 0.0)
        new_c = tf.sigmoid(f + self._forget_bias + wf * c) * c + tf.sigmoid(i + wi * c) * tf.tanh(j)
        if self._cell_clip > 0:
            new_c = tf.clip_by_value(new_c, -self._cell_clip, self._cell_clip)
        new_h = tf.tanh(new_c) * tf.sigmoid(o + wo * new_c)
        return new_h, LSTMStateTuple(new_c, new_h)


class GRUBlockCellV2(GRUCell):
    """The same computation as GRUCell, with its variables."""

    def __init__(self, num_units=None, cell_size=None, reuse=None, name="gru_cell"):
        super().__init__(num_units if cell_size is None else cell_size, reuse=reuse, name=name)


GRUBlockCell = GRUBlockCellV2


class FusedRNNCellAdaptor:
    """A cell as a layer over time-first inputs."""

    def __init__(self, cell, use_dynamic_rnn=False):
        self._cell, self._use_dynamic_rnn = cell, use_dynamic_rnn

    def __call__(self, inputs, initial_state=None, dtype=None, sequence_length=None, scope=None):
        if self._use_dynamic_rnn:
            return tf.nn.dynamic_rnn(self._cell, inputs, sequence_length, initial_state, dtype, time_major=True, scope=scope)
        many = isinstance(inputs, (list, tuple))
        steps = inputs if many else tf.unstack(inputs)
        outputs, state = static_rnn(self._cell, steps, initial_state, dtype, sequence_length, scope)
        return outputs if many else tf.stack(outputs), state


class TimeReversedFusedRNN:
    """A fused layer run from the end of each sequence."""

    def __init__(self, cell):
        self._cell = cell

    @staticmethod
    def _turned(x, lengths):
        return tf.reverse(x, [0]) if lengths is None else tf.reverse_sequence(x, lengths, 0, 1)

    def __call__(self, inputs, initial_state=None, dtype=None, sequence_length=None, scope=None):
        turned = self._turned(inputs, sequence_length)
        outputs, state = self._cell(turned, initial_state, dtype, sequence_length, scope)
        return self._turned(outputs, sequence_length), state


class LSTMBlockFusedCell(FusedRNNCellAdaptor):
    def __init__(self, num_units, forget_bias=1.0, cell_clip=None, use_peephole=False, reuse=None, dtype=None,
                 name="lstm_fused_cell"):  # fmt: skip
        self.num_units = num_units
        super().__init__(LSTMBlockCell(num_units, forget_bias, cell_clip, use_peephole, dtype, reuse, name), True)


class _Projection(RNNCell):
    def __init__(self, cell, activation=None, reuse=None):
        super().__init__(_reuse=reuse)
        self._cell, self._activation = cell, activation

    @property
    def state_size(self):
        return self._cell.state_size

    @property
    def output_size(self):
        return self._cell.output_size

    def zero_state(self, batch_size, dtype):
        return self._cell.zero_state(batch_size, dtype)

    def _project(self, value, size):
        projected = _linear(value, size, True)
        return self._activation(projected) if self._activation else projected


class InputProjectionWrapper(_Projection):
    def __init__(self, cell, num_proj, activation=None, input_size=None, reuse=None):
        super().__init__(cell, activation, reuse)
        self._num_proj = num_proj

    def call(self, inputs, state):
        return self._cell(self._project(inputs, self._num_proj), state)


class OutputProjectionWrapper(_Projection):
    def __init__(self, cell, output_size, activation=None, reuse=None):
        super().__init__(cell, activation, reuse)
        self._output_size = output_size

    @property
    def output_size(self):
        return self._output_size

    def call(self, inputs, state):
        output, state = self._cell(inputs, state)
        return self._project(output, self._output_size), state


class EmbeddingWrapper(_Projection):
    """Looks symbols up in the variable `embedding` before the cell."""

    def __init__(self, cell, embedding_classes, embedding_size, initializer=None, reuse=None):
        super().__init__(cell, None, reuse)
        self._shape, self._initializer = [embedding_classes, embedding_size], initializer

    def call(self, inputs, state):
        bound = 3.0**0.5
        initializer = (self._initializer or tf.get_variable_scope().initializer
                       or tf.random_uniform_initializer(-bound, bound))  # fmt: skip
        table = tf.get_variable("embedding", self._shape, initializer=initializer)
        return self._cell(tf.nn.embedding_lookup(table, tf.reshape(inputs, [-1])), state)


class ConvLSTMCell(RNNCell):
    """An LSTM of convolutions; state and output have `output_channels` (Shi et al., 2015)."""

    def __init__(self, conv_ndims, input_shape, output_channels, kernel_shape, use_bias=True, skip_connection=False,
                 forget_bias=1.0, initializers=None, name="conv_lstm_cell"):  # fmt: skip
        super().__init__(name=name)
        if conv_ndims != len(input_shape) - 1:
            raise ValueError(f"Invalid input_shape {input_shape} for conv_ndims={conv_ndims}.")
        self._ndims, self._input_shape, self._channels = conv_ndims, list(input_shape), output_channels
        self._kernel_shape, self._use_bias, self._skip = list(kernel_shape), use_bias, skip_connection
        self._forget_bias = forget_bias
        last = output_channels + (input_shape[-1] if skip_connection else 0)
        self._output_size = tf.TensorShape([*input_shape[:-1], last])
        state = tf.TensorShape([*input_shape[:-1], output_channels])
        self._state_size = LSTMStateTuple(state, state)

    @property
    def output_size(self):
        return self._output_size

    @property
    def state_size(self):
        return self._state_size

    def call(self, inputs, state, scope=None):
        cell, hidden = state
        both = tf.concat([inputs, hidden], axis=-1)
        shape = [*self._kernel_shape, both.shape.as_list()[-1], 4 * self._channels]
        gates = tf.nn.convolution(both, tf.get_variable("kernel", shape), "SAME")
        if self._use_bias:
            gates += tf.get_variable("biases", [4 * self._channels], initializer=tf.zeros_initializer())
        i, new, f, o = tf.split(gates, 4, axis=-1)
        cell = tf.sigmoid(f + self._forget_bias) * cell + tf.sigmoid(i) * tf.tanh(new)
        hidden = tf.tanh(cell) * tf.sigmoid(o)
        output = tf.concat([hidden, inputs], axis=-1) if self._skip else hidden
        return output, LSTMStateTuple(cell, hidden)


class Conv1DLSTMCell(ConvLSTMCell):
    def __init__(self, name="conv_1d_lstm_cell", **kwargs):
        super().__init__(conv_ndims=1, name=name, **kwargs)


class Conv2DLSTMCell(ConvLSTMCell):
    def __init__(self, name="conv_2d_lstm_cell", **kwargs):
        super().__init__(conv_ndims=2, name=name, **kwargs)


class CoupledInputForgetGateLSTMCell(RNNCell):
    """An LSTM that takes in what it forgets: c = f * c + (1 - f) * j (Greff et al., 2015)."""

    def __init__(self, num_units, use_peepholes=False, initializer=None, num_proj=None, proj_clip=None, num_unit_shards=1,
                 num_proj_shards=1, forget_bias=1.0, state_is_tuple=True, activation=tf.tanh, reuse=None,
                 layer_norm=False, norm_gain=1.0, norm_shift=0.0):  # fmt: skip
        if num_unit_shards != 1 or num_proj_shards != 1 or layer_norm:
            raise NotImplementedError("CoupledInputForgetGateLSTMCell: shards and layer_norm are not supported")
        super().__init__(_reuse=reuse)
        self._num_units, self._use_peepholes, self._initializer = num_units, use_peepholes, initializer
        self._num_proj, self._proj_clip, self._forget_bias = num_proj, proj_clip, forget_bias
        self._state_is_tuple, self._activation = state_is_tuple, activation

    @property
    def output_size(self):
        return self._num_proj or self._num_units

    @property
    def state_size(self):
        sizes = (self._num_units, self.output_size)
        return LSTMStateTuple(*sizes) if self._state_is_tuple else sum(sizes)

    def call(self, inputs, state):
        units, made = self._num_units, lambda name, *shape: tf.get_variable(name, shape, inputs.dtype, self._initializer)
        c, m = state if self._state_is_tuple else tf.split(state, [units, self.output_size], 1)
        joined = tf.concat([inputs, m], 1)
        kernel = made("W_0", joined.shape.as_list()[1], 3 * units)
        bias = tf.get_variable("B", [3 * units], inputs.dtype, tf.zeros_initializer())
        j, f, o = tf.split(tf.nn.bias_add(tf.matmul(joined, kernel), bias), 3, axis=1)
        forget = f + self._forget_bias
        if self._use_peepholes:
            forget += made("W_F_diag", units) * c
        forget = tf.sigmoid(forget)
        c = forget * c + (1.0 - forget) * self._activation(j)
        m = tf.sigmoid(o + made("W_O_diag", units) * c if self._use_peepholes else o) * self._activation(c)
        if self._num_proj:
            m = tf.matmul(m, made("W_P_0", units, self._num_proj))
            if self._proj_clip is not None:
                m = tf.clip_by_value(m, -self._proj_clip, self._proj_clip)
        return m, LSTMStateTuple(c, m) if self._state_is_tuple else tf.concat([c, m], 1)


def stack_bidirectional_rnn(cells_fw, cells_bw, inputs, initial_states_fw=None, initial_states_bw=None, dtype=None,
                            sequence_length=None, scope=None):  # fmt: skip
    """Layers of two directions, each on the joined outputs of the one before: (outputs, forward states, backward states)."""
    forward, backward = [], []
    with tf.variable_scope(scope or "stack_bidirectional_rnn"):
        for index, (fw, bw) in enumerate(zip(cells_fw, cells_bw)):
            with tf.variable_scope(f"cell_{index}"):
                inputs, state_fw, state_bw = static_bidirectional_rnn(
                    fw, bw, inputs, initial_states_fw and initial_states_fw[index],
                    initial_states_bw and initial_states_bw[index], dtype, sequence_length,
                )  # fmt: skip
            forward.append(state_fw)
            backward.append(state_bw)
    return inputs, tuple(forward), tuple(backward)


def stack_bidirectional_dynamic_rnn(cells_fw, cells_bw, inputs, initial_states_fw=None, initial_states_bw=None,
                                    dtype=None, sequence_length=None, parallel_iterations=None, time_major=False,
                                    scope=None, swap_memory=False):  # fmt: skip
    forward, backward = [], []
    with tf.variable_scope(scope or "stack_bidirectional_rnn"):
        for index, (fw, bw) in enumerate(zip(cells_fw, cells_bw)):
            with tf.variable_scope(f"cell_{index}"):
                outputs, (state_fw, state_bw) = tf.nn.bidirectional_dynamic_rnn(
                    fw, bw, inputs, sequence_length, initial_states_fw and initial_states_fw[index],
                    initial_states_bw and initial_states_bw[index], dtype, parallel_iterations, swap_memory, time_major,
                )  # fmt: skip
                inputs = tf.concat(outputs, 2)
            forward.append(state_fw)
            backward.append(state_bw)
    return inputs, tuple(forward), tuple(backward)


core_rnn_cell = rnn_cell = sys.modules[__name__]  # the private modules of contrib
