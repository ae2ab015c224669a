"""Primitives that are recurrent layers."""

from cairn.ms import core
from cairn.ms.numerics import basic, random, recurrent
from mindspore._checkparam import Rel, Validator
from mindspore.ops.operations._form import Operator


class LSTM(Operator):
    """A stack of LSTM layers over [steps, batch, features], of one flat weight: (all, h, c, reserved, state)."""

    def __init__(self, input_size, hidden_size, num_layers, has_bias, bidirectional, dropout):
        super().__init__("LSTM")
        for key, value in (("input_size", input_size), ("hidden_size", hidden_size), ("num_layers", num_layers)):
            self.add_prim_attr(key, Validator.check_positive_int(value, key, "LSTM"))
        for key, value in (("has_bias", has_bias), ("bidirectional", bidirectional)):
            self.add_prim_attr(key, Validator.check_bool(value, key, "LSTM"))
        Validator.check_number_range(dropout, 0, 1, Rel.INC_BOTH, "dropout", "LSTM")
        self.add_prim_attr("dropout", dropout)

    def compute(self, x, h, c, w):
        weights = recurrent.packed_lstm_weights(
            w, self.input_size, self.hidden_size, self.num_layers, self.has_bias, self.bidirectional
        )
        between = (lambda y: random.dropped(y, 1 - self.dropout)[0]) if self.dropout else None
        y, (h, c) = recurrent.layers(recurrent.lstm_cell, x, (h, c), weights, self.bidirectional, between)
        none = basic.filled((1,), 0, basic.nptype(x))
        return y, h, c, none, none


class DynamicRNN(Operator):
    """One LSTM layer over [steps, batch, features] with the gates input, cell, forget, output (i, j, f, o)."""

    def __init__(self, cell_type="LSTM", direction="UNIDIRECTIONAL", cell_depth=1, use_peephole=False, keep_prob=1.0,
                 cell_clip=-1.0, num_proj=0, time_major=True, activation="tanh", forget_bias=0.0, is_training=True):  # fmt: skip
        super().__init__("DynamicRNN")
        Validator.check_string(cell_type, ["LSTM"], "cell_type", "DynamicRNN")
        Validator.check_string(direction, ["UNIDIRECTIONAL"], "direction", "DynamicRNN")
        Validator.check_string(activation, ["tanh"], "activation", "DynamicRNN")
        self.add_prim_attr("forget_bias", forget_bias)

    def compute(self, x, w, b, seq_length, init_h, init_c):
        h, c = basic.at(init_h, 0, 0), basic.at(init_c, 0, 0)
        size = h.shape[-1]
        columns = ([], [], [], [], [], [], [], [])
        for step in range(x.shape[0]):
            gates = core.add(core.matmul(core.concat(basic.at(x, 0, step), h, axis=1), w), b)
            i, j, f, o = basic.split(gates, -1, [size] * 4)
            i, j, o = core.sigmoid(i), core.tanh(j), core.sigmoid(o)
            f = core.sigmoid(core.add(f, basic.number(self.forget_bias, f)))
            c = core.add(core.mul(f, c), core.mul(i, j))
            t = core.tanh(c)
            h = core.mul(o, t)
            for column, value in zip(columns, (h, h, c, i, j, f, o, t)):
                column.append(value)
        return tuple(basic.stack(column, 0) for column in columns)


class DynamicGRUV2(Operator):
    """One GRU layer over [steps, batch, features] with the gates update, reset, new: (y, h, update, reset, new, hidden_new)."""

    def __init__(self, direction="UNIDIRECTIONAL", cell_depth=1, keep_prob=1.0, cell_clip=-1.0, num_proj=0, time_major=True,
                 activation="tanh", gate_order="rzh", reset_after=True, is_training=True):  # fmt: skip
        super().__init__("DynamicGRUV2")
        self.add_prim_attr("gate_order", Validator.check_string(gate_order, ["rzh", "zrh"], "gate_order", "DynamicGRUV2"))
        self.add_prim_attr("reset_after", reset_after)

    def compute(self, x, w_input, w_hidden, b_input, b_hidden, seq_length, init_h):
        h, size = init_h, init_h.shape[-1]
        columns = ([], [], [], [], [], [])
        order = [self.gate_order.index(each) for each in "rzh"]
        for step in range(x.shape[0]):
            of_x, of_h = core.matmul(basic.at(x, 0, step), w_input), core.matmul(h, w_hidden)
            of_x = of_x if b_input is None else core.add(of_x, b_input)
            of_h = of_h if b_hidden is None else core.add(of_h, b_hidden)
            xs, hs = basic.split(of_x, -1, [size] * 3), basic.split(of_h, -1, [size] * 3)
            r, z = (core.sigmoid(core.add(xs[k], hs[k])) for k in order[:2])
            hidden_new = hs[order[2]]
            n = core.tanh(core.add(xs[order[2]], core.mul(r, hidden_new)))
            h = core.add(core.mul(core.sub(basic.number(1, z), z), n), core.mul(z, h))
            for column, value in zip(columns, (h, h, z, r, n, hidden_new)):
                column.append(value)
        return tuple(basic.stack(column, 0) for column in columns)
