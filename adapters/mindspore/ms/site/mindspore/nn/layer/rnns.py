"""Recurrent layers and cells."""

import math

import numpy as np
from cairn.ms import core, level
from cairn.ms.numerics import basic, random, recurrent
from mindspore._checkparam import Rel, Validator
from mindspore.common.initializer import Uniform, initializer
from mindspore.common.parameter import Parameter, ParameterTuple
from mindspore.nn.cell import Cell
from mindspore.ops import operations as P

_GATES = {"rnn": 1, "lstm": 4, "gru": 3}


def _cell_of(kind, nonlinearity):
    if kind == "rnn":
        return recurrent.simple_cell(nonlinearity)
    return recurrent.lstm_cell if kind == "lstm" else recurrent.gru_cell


class _Layers(Cell):
    """A stack of recurrent layers over [steps, batch, features], or batch first; parameters as in PyTorch."""

    kind, nonlinearity = "rnn", "tanh"

    def __init__(
        self, input_size, hidden_size, num_layers=1, has_bias=True, batch_first=False, dropout=0.0, bidirectional=False
    ):
        super().__init__()
        owner = type(self).__name__
        for value, name in ((input_size, "input_size"), (hidden_size, "hidden_size"), (num_layers, "num_layers")):
            Validator.check_positive_int(value, name, owner)
        for value, name in ((has_bias, "has_bias"), (batch_first, "batch_first"), (bidirectional, "bidirectional")):
            Validator.check_bool(value, name, owner)
        if isinstance(dropout, bool) or not isinstance(dropout, (int, float)) or not 0 <= dropout < 1:
            raise ValueError(f"For '{owner}', the 'dropout' must be a number in range [0, 1), but got {dropout}.")
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.has_bias, self.batch_first, self.dropout, self.bidirectional = (
            has_bias,
            batch_first,
            dropout,
            bidirectional,
        )
        self.num_directions, self.draws = 2 if bidirectional else 1, bool(dropout)
        gates, bound = _GATES[self.kind] * hidden_size, Uniform(1 / math.sqrt(hidden_size))
        lists = {"weight_ih": [], "weight_hh": [], "bias_ih": [], "bias_hh": []}
        for layer in range(num_layers):
            for direction in range(self.num_directions):
                suffix = f"_l{layer}" + ("_reverse" if direction else "")
                width = input_size if layer == 0 else hidden_size * self.num_directions
                shapes = {
                    "weight_ih": (gates, width),
                    "weight_hh": (gates, hidden_size),
                    "bias_ih": (gates,),
                    "bias_hh": (gates,),
                }
                for name, made in lists.items():
                    if has_bias or name.startswith("weight"):
                        made.append(Parameter(initializer(bound, list(shapes[name])), name=name + suffix))
        self.w_ih_list, self.w_hh_list = ParameterTuple(lists["weight_ih"]), ParameterTuple(lists["weight_hh"])
        self.b_ih_list, self.b_hh_list = ParameterTuple(lists["bias_ih"]), ParameterTuple(lists["bias_hh"])

    def construct(self, x, hx=None, seq_length=None):
        if len(x.shape) != 3 or x.shape[2] != self.input_size:
            raise ValueError(
                f"For '{type(self).__name__}', x must be [steps, batch, {self.input_size}], but got shape {tuple(x.shape)}."
            )
        if self.batch_first:
            x = core.transpose(x, permutation=[1, 0, 2])
        count = self.num_layers * self.num_directions
        if hx is None:
            zeros = basic.filled((count, x.shape[1], self.hidden_size), 0, basic.nptype(x))
            hx = (zeros, zeros) if self.kind == "lstm" else zeros
        states = tuple(hx) if self.kind == "lstm" else (hx,)
        if self.has_bias:
            weights = list(zip(self.w_ih_list, self.w_hh_list, self.b_ih_list, self.b_hh_list))
        else:
            weights = [(w, u, None, None) for w, u in zip(self.w_ih_list, self.w_hh_list)]
        drops = self.dropout and self.training
        between = (lambda y: random.dropped(y, 1 - self.dropout)[0]) if drops else None
        cell = _cell_of(self.kind, self.nonlinearity)
        y, last = recurrent.layers(cell, x, states, weights, self.bidirectional, between, seq_length)
        if self.batch_first:
            y = core.transpose(y, permutation=[1, 0, 2])
        return y, last if self.kind == "lstm" else last[0]


class RNN(_Layers):
    """Simple recurrent layers; nonlinearity "tanh" or "relu"."""

    def __init__(self, *args, **kwargs):
        nonlinearity = kwargs.pop("nonlinearity", "tanh")
        Validator.check_string(nonlinearity, ["tanh", "relu"], "nonlinearity", "RNN")
        super().__init__(*args, **kwargs)
        self.nonlinearity = nonlinearity


class GRU(_Layers):
    """Gated recurrent layers."""

    kind = "gru"


class _NamedLSTM(_Layers):
    kind = "lstm"


class _FlatLSTM(Cell):
    """LSTM layers up to 1.1: one flat weight, and the initial state must be given."""

    def __init__(
        self, input_size, hidden_size, num_layers=1, has_bias=True, batch_first=False, dropout=0, bidirectional=False
    ):
        super().__init__()
        self.lstm = P.LSTM(input_size, hidden_size, num_layers, has_bias, bidirectional, float(dropout))
        self.batch_first = Validator.check_value_type("batch_first", batch_first, [bool], "LSTM")
        directions = 2 if bidirectional else 1
        count = sum(
            4
            * hidden_size
            * ((input_size if layer == 0 else hidden_size * directions) + hidden_size + (2 if has_bias else 0))
            * directions
            for layer in range(num_layers)
        )
        bound = 1 / math.sqrt(hidden_size)
        from mindspore.common.tensor import Tensor

        values = np.random.uniform(-bound, bound, (count, 1, 1)).astype(np.float32)
        self.weight = Parameter(Tensor(values), name="weight")

    def construct(self, x, hx):
        if self.batch_first:
            x = core.transpose(x, permutation=[1, 0, 2])
        if isinstance(hx[0], (tuple, list)):
            y, h, c = self._by_layers(x, *hx)
        else:
            y, h, c, _, _ = self.lstm(x, *hx, self.weight)
        return (core.transpose(y, permutation=[1, 0, 2]) if self.batch_first else y), (h, c)


    def _by_layers(self, x, hidden, cells):
        """As on CPUs: tuples of the states and of the weights of each layer."""
        given = self.lstm
        for h, c, weight in zip(hidden, cells, self.weight):
            layer = P.LSTM(x.shape[-1], given.hidden_size, 1, given.has_bias, given.bidirectional, given.dropout)
            x, h, c, _, _ = layer(x, h, c, weight)
        return x, h, c


class LSTM(Cell):
    """LSTM layers over [steps, batch, features]: (all hidden states, (h, c)). Which kind is made depends on the level."""

    def __new__(cls, *args, **kwargs):
        if cls is LSTM:
            cls = _NamedLSTMLayer if level.at_least("1.10") else _FlatLSTMLayer
        return object.__new__(cls)


class _NamedLSTMLayer(_NamedLSTM, LSTM):
    pass


class _FlatLSTMLayer(_FlatLSTM, LSTM):
    pass


_NamedLSTMLayer.__name__ = _FlatLSTMLayer.__name__ = "LSTM"


class _Step(Cell):
    """One step of a recurrent layer."""

    kind, nonlinearity = "rnn", "tanh"

    def __init__(self, input_size, hidden_size, has_bias=True):
        super().__init__()
        owner = type(self).__name__
        self.input_size = Validator.check_positive_int(input_size, "input_size", owner)
        self.hidden_size = Validator.check_positive_int(hidden_size, "hidden_size", owner)
        self.has_bias = Validator.check_bool(has_bias, "has_bias", owner)
        gates, bound = _GATES[self.kind] * hidden_size, Uniform(1 / math.sqrt(hidden_size))
        self.weight_ih = Parameter(initializer(bound, [gates, input_size]))
        self.weight_hh = Parameter(initializer(bound, [gates, hidden_size]))
        if has_bias:
            self.bias_ih, self.bias_hh = (Parameter(initializer(bound, [gates])) for _ in range(2))

    def construct(self, x, hx):
        biases = (self.bias_ih, self.bias_hh) if self.has_bias else (None, None)
        states = tuple(hx) if self.kind == "lstm" else (hx,)
        weights = (self.weight_ih, self.weight_hh, *biases)
        out = recurrent.step(_cell_of(self.kind, self.nonlinearity), x, states, weights)
        return out if self.kind == "lstm" else out[0]


class RNNCell(_Step):
    """One step: tanh(W x + b + U h + c)."""

    def __init__(self, input_size, hidden_size, has_bias=True, nonlinearity="tanh"):
        super().__init__(input_size, hidden_size, has_bias)
        self.nonlinearity = Validator.check_string(nonlinearity, ["tanh", "relu"], "nonlinearity", "RNNCell")


class GRUCell(_Step):
    """One step of a GRU."""

    kind = "gru"


class _LSTMStep(_Step):
    kind = "lstm"


class _FlatLSTMCell(Cell):
    """LSTMCell up to 1.1: one layer over a sequence, with the weight as an input."""

    def __init__(self, input_size, hidden_size, has_bias=True, batch_first=False, dropout=0, bidirectional=False):
        super().__init__()
        Validator.check_number_range(dropout, 0, 1, Rel.INC_BOTH, "dropout", "LSTMCell")
        self.batch_first = Validator.check_value_type("batch_first", batch_first, [bool], "LSTMCell")
        self.lstm = P.LSTM(input_size, hidden_size, 1, has_bias, bidirectional, float(dropout))

    def construct(self, x, h, c, w):
        if self.batch_first:
            x = core.transpose(x, permutation=[1, 0, 2])
        y, *rest = self.lstm(x, h, c, w)
        return (core.transpose(y, permutation=[1, 0, 2]) if self.batch_first else y, *rest)


class LSTMCell(Cell):
    """One step of an LSTM; up to 1.1 one layer of it."""

    def __new__(cls, *args, **kwargs):
        if cls is LSTMCell:
            cls = _LSTMCellStep if level.at_least("1.10") else _LSTMCellLayer
        return object.__new__(cls)


class _LSTMCellStep(_LSTMStep, LSTMCell):
    pass


class _LSTMCellLayer(_FlatLSTMCell, LSTMCell):
    pass


_LSTMCellStep.__name__ = _LSTMCellLayer.__name__ = "LSTMCell"

__all__ = ["RNN", "GRU", "LSTM", "RNNCell", "GRUCell", "LSTMCell"]
