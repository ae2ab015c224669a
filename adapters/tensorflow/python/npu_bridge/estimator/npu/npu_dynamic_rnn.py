"""Whole recurrent layers with every gate as a result, time first: LSTM, GRU and GRU with attention. Each is a loop of stock
operators; past an element's length outputs are zero and states stay, as in tf.nn.dynamic_rnn."""

import math

import tensorflow.compat.v1 as tf

DYNAMIC_RNN_UNIDIRECTION = "UNIDIRECTIONAL"
DYNAMIC_RNN_BIDIRECTION = "BIDIRECTIONAL"
DEFAULT_BATCH = 16  # of the variable `seq_length` where the batch is not known


class _DynamicBasic(tf.layers.Layer):
    """What the three share: arguments, variables, both directions, the loop over time."""

    prefix = ""

    def __init__(self, hidden_size, dtype, direction, cell_depth, keep_prob, cell_clip, num_proj, time_major, activation,
                 is_training):  # fmt: skip
        super().__init__(dtype=dtype)
        self._hidden_size, self._given_dtype = hidden_size, tf.as_dtype(dtype)
        self.direction, self.cell_depth, self.keep_prob = direction, cell_depth, keep_prob
        self.cell_clip, self.num_proj, self.time_major = cell_clip, num_proj, time_major
        self.activation, self.is_training = activation, is_training
        if direction not in (DYNAMIC_RNN_UNIDIRECTION, DYNAMIC_RNN_BIDIRECTION):
            raise ValueError(
                f"Invalid direction: {direction}, expecting {DYNAMIC_RNN_UNIDIRECTION} or {DYNAMIC_RNN_BIDIRECTION}"
            )
        for name, value, only in (("cell_depth", cell_depth, 1), ("keep_prob", keep_prob, 1.0), ("num_proj", num_proj, 0),
                                  ("activation", activation, "tanh")):  # fmt: skip
            if value != only:
                raise ValueError(f"{type(self).__name__}: {name} is {value}, only {only} is supported")

    @property
    def _both(self):
        return self.direction == DYNAMIC_RNN_BIDIRECTION

    def _add(self, name, shape, initializer):
        shape = [2, *shape] if self._both else shape
        return self.add_weight(f"{self.prefix}/{name}", shape=shape, dtype=self._given_dtype, initializer=initializer)

    def build(self, input_shape):
        shape = tf.TensorShape(input_shape).as_list()
        if shape[2] is None:
            raise ValueError("Expected input_shape[2] to be known, saw shape: input_size.")
        steps, batch = (shape[0], shape[1]) if self.time_major else (shape[1], shape[0])
        self._seq_length = self.add_weight(
            "dynamicbase/seq_length", shape=[batch or DEFAULT_BATCH], dtype=tf.int32, trainable=False,
            initializer=tf.constant_initializer(steps or 1),
        )  # fmt: skip
        self._build(shape[2])
        super().build(input_shape)

    def _start(self, given, x, index):
        """The initial state of one direction, [batch, hidden]."""
        if given is None:
            return tf.zeros([tf.shape(x)[1], self._hidden_size], self._given_dtype)
        given = given[index] if self._both else given
        return tf.reshape(given, [-1, self._hidden_size])  # scripts give [1, batch, hidden] too

    def _clipped(self, value):
        return tf.clip_by_value(value, -self.cell_clip, self.cell_clip) if self.cell_clip > 0 else value

    def _run(self, inputs, seq_length, step, states, names):
        """Runs `step(index, inputs at a time, states) -> (states, other results)` over time in each direction; gives the
        results, each [time, batch, hidden], with a leading axis of 2 for two directions."""
        if not self.time_major:
            inputs = [tf.transpose(item, [1, 0, *range(2, item.shape.rank)]) for item in inputs]
        directions = [self._one_way(inputs, seq_length, step, states, index) for index in range(2 if self._both else 1)]
        results = [tf.stack(pair) if self._both else pair[0] for pair in zip(*directions)]
        if not self.time_major:
            results = [tf.transpose(r, [0, 2, 1, 3] if self._both else [1, 0, 2]) for r in results]
        return tuple(tf.identity(result, name) for result, name in zip(results, names))

    def _one_way(self, inputs, seq_length, step, states, index):
        steps, batch = tf.shape(inputs[0])[0], tf.shape(inputs[0])[1]
        lengths = tf.fill([batch], steps) if seq_length is None else tf.cast(seq_length, tf.int32)
        turned = lambda item: tf.reverse_sequence(item, lengths, seq_axis=0, batch_axis=1)
        if index == 1:
            inputs = [turned(item) for item in inputs]
        first = [self._start(state, inputs[0], index) for state in states]
        zero = tf.zeros_like(first[0])

        def body(previous, current):
            time, *values = current
            old = previous[1 : 1 + len(first)]
            new, others = step(index, values, old)
            if seq_length is None:
                return (new[0], *new, *others)
            alive = tf.expand_dims(time < lengths, 1)
            keep = lambda value, instead: tf.where(tf.broadcast_to(alive, tf.shape(value)), value, instead)
            held = [keep(value, state) for value, state in zip(new, old)]
            return (keep(new[0], zero), *held, *[keep(value, zero) for value in others])

        start = (zero, *first, *[zero] * self._others)
        results = tf.scan(body, (tf.range(steps), *inputs), initializer=start)
        return [turned(item) for item in results] if index == 1 else list(results)


class DynamicRNN(_DynamicBasic):
    """An LSTM. Gates lie in the order i, j, f, o in `dynamicrnn/w` [input + hidden, 4 * hidden] and `dynamicrnn/b`."""

    prefix = "dynamicrnn"
    _others = 5  # results beside y, h, c

    def __init__(self, hidden_size, dtype, cell_type="LSTM", direction=DYNAMIC_RNN_UNIDIRECTION, cell_depth=1,
                 use_peephole=False, keep_prob=1.0, cell_clip=-1.0, num_proj=0, time_major=True, activation="tanh",
                 forget_bias=0.0, is_training=True):  # fmt: skip
        super().__init__(hidden_size, dtype, direction, cell_depth, keep_prob, cell_clip, num_proj, time_major, activation,
                         is_training)  # fmt: skip
        if cell_type != "LSTM" or use_peephole:
            raise ValueError(f"DynamicRNN: cell_type is {cell_type}, use_peephole is {use_peephole}; only LSTM without"
                             " peepholes is supported")  # fmt: skip
        self.cell_type, self.use_peephole, self.forget_bias = cell_type, use_peephole, forget_bias

    def _build(self, input_size):
        glorot = tf.glorot_uniform_initializer(seed=10)
        self._rnn_w = self._add("w", [input_size + self._hidden_size, 4 * self._hidden_size], glorot)
        self._rnn_b = self._add("b", [4 * self._hidden_size], tf.zeros_initializer())

    def call(self, x, seq_length=None, init_h=None, init_c=None, weight=None, bias=None):
        """y, h, c, i, j, f, o, tanhc"""
        weight = self._rnn_w if weight is None else weight
        bias = self._rnn_b if bias is None else bias

        def step(index, inputs, states):
            w, b = (weight[index], bias[index]) if self._both else (weight, bias)
            gates = tf.nn.bias_add(tf.matmul(tf.concat([inputs[0], states[0]], 1), w), b)
            i, j, f, o = tf.split(gates, 4, axis=1)
            i, j, f, o = tf.sigmoid(i), tf.tanh(j), tf.sigmoid(f + self.forget_bias), tf.sigmoid(o)
            c = self._clipped(states[1] * f + i * j)
            tanhc = tf.tanh(c)
            return (tanhc * o, c), (i, j, f, o, tanhc)

        names = ("y", "output_h", "output_c", "i", "j", "f", "o", "tanhc")
        return self._run([x], seq_length, step, (init_h, init_c), names)


class _DynamicGru(_DynamicBasic):
    def __init__(self, hidden_size, dtype, direction=DYNAMIC_RNN_UNIDIRECTION, cell_depth=1, keep_prob=1.0, cell_clip=-1.0,
                 num_proj=0, time_major=True, activation="tanh", gate_order="zrh", reset_after=True, is_training=True):  # fmt: skip
        super().__init__(hidden_size, dtype, direction, cell_depth, keep_prob, cell_clip, num_proj, time_major, activation,
                         is_training)  # fmt: skip
        if gate_order not in ("zrh", "rzh"):
            raise ValueError(f"{type(self).__name__}: gate_order is {gate_order}, should be zrh or rzh")
        self.gate_order, self.reset_after = gate_order, reset_after

    def _build(self, input_size):
        bound = 1.0 / math.sqrt(self._hidden_size)
        uniform = tf.random_uniform_initializer(-bound, bound)
        width = 3 * self._hidden_size
        self._weight_input = self._add("weight_input", [input_size, width], uniform)
        self._weight_hidden = self._add("weight_hidden", [self._hidden_size, width], uniform)
        self._bias_input = self._add("bias_input", [width], uniform)
        self._bias_hidden = self._add("bias_hidden", [width], uniform)

    def _gates(self, index, x, h):
        """update, reset, new, and the hidden part of new."""
        pick = lambda value: value[index] if self._both else value
        wi, wh, bi, bh = map(pick, (self._weight_input, self._weight_hidden, self._bias_input, self._bias_hidden))
        from_x = tf.split(tf.nn.bias_add(tf.matmul(x, wi), bi), 3, axis=1)
        from_h = tf.split(tf.nn.bias_add(tf.matmul(h, wh), bh), 3, axis=1)
        z, r = (0, 1) if self.gate_order == "zrh" else (1, 0)
        update, reset = tf.sigmoid(from_x[z] + from_h[z]), tf.sigmoid(from_x[r] + from_h[r])
        if self.reset_after:
            hidden_new = from_h[2]
            new = tf.tanh(from_x[2] + reset * hidden_new)
        else:
            n = self._hidden_size
            hidden_new = tf.nn.bias_add(tf.matmul(reset * h, wh[:, 2 * n :]), bh[2 * n :])
            new = tf.tanh(from_x[2] + hidden_new)
        return update, reset, new, hidden_new


class DynamicGRUV2(_DynamicGru):
    """A GRU: h' = (1 - update) new + update h."""

    prefix = "dynamicgruv2"
    _others = 4

    def call(self, x, seq_length=None, init_h=None):
        """y, h, update, reset, new, hidden_new"""

        def step(index, inputs, states):
            update, reset, new, hidden_new = self._gates(index, inputs[0], states[0])
            return (self._clipped((1.0 - update) * new + update * states[0]),), (update, reset, new, hidden_new)

        names = ("y", "output_h", "update", "reset", "new", "hidden_new")
        return self._run([x], seq_length, step, (init_h,), names)


class DynamicAUGRU(_DynamicGru):
    """A GRU whose update gate is weakened by attention: update_att = (1 - weight_att) update."""

    prefix = "dynamicaugru"
    _others = 5

    def call(self, x, weight_att, seq_length=None, init_h=None):
        """y, h, update, update_att, reset, new, hidden_new"""
        attention = tf.expand_dims(weight_att, 2) if weight_att.shape.rank == 2 else weight_att

        def step(index, inputs, states):
            update, reset, new, hidden_new = self._gates(index, inputs[0], states[0])
            weak = (1.0 - inputs[1]) * update
            return (self._clipped((1.0 - weak) * new + weak * states[0]),), (update, weak, reset, new, hidden_new)

        names = ("y", "output_h", "update", "update_att", "reset", "new", "hidden_new")
        return self._run([x, attention], seq_length, step, (init_h,), names)
