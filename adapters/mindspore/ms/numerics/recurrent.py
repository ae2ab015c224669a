"""Recurrent layers: simple, LSTM and GRU cells, their sequences, and stacks of layers in one or both directions."""

import numpy as np
from cairn.ms import core
from cairn.ms.numerics.arrays import reverse_sequence
from cairn.ms.numerics.basic import at, cast, expand, number, reshape, split, stack


def _product(x, w):
    return core.matmul(x, w, transpose_b=True)


def projected(x, w, both_biases=True):
    """What the input gives to the gates, for all steps at once; w is (input weight, hidden weight, input bias, hidden bias), biases
    None without. The hidden bias is added too where a cell leaves that to it."""
    shape = x.shape
    y = _product(reshape(x, (-1, shape[-1])), w[0])
    if w[2] is not None:
        y = core.add(y, core.add(w[2], w[3]) if both_biases else w[2])
    return reshape(y, (*shape[:-1], y.shape[-1]))


def simple_cell(activation):
    """A cell takes the projected input, its state (h,) or (h, c), and the weights, and gives the next state."""
    act = core.tanh if activation == "tanh" else core.relu

    def cell(x, state, w):
        return (act(core.add(x, _product(state[0], w[1]))),)

    return cell


def lstm_cell(x, state, w):
    """Gates in the order input, forget, cell, output."""
    h, c = state
    i, f, g, o = split(core.add(x, _product(h, w[1])), -1, [h.shape[-1]] * 4)
    c = core.add(core.mul(core.sigmoid(f), c), core.mul(core.sigmoid(i), core.tanh(g)))
    return core.mul(core.sigmoid(o), core.tanh(c)), c


def gru_cell(x, state, w):
    """Gates in the order reset, update, new."""
    h = state[0]
    size = h.shape[-1]
    own = _product(h, w[1])
    own = own if w[3] is None else core.add(own, w[3])
    (xr, xz, xn), (hr, hz, hn) = split(x, -1, [size] * 3), split(own, -1, [size] * 3)
    reset, update = core.sigmoid(core.add(xr, hr)), core.sigmoid(core.add(xz, hz))
    new = core.tanh(core.add(xn, core.mul(reset, hn)))
    return (core.add(new, core.mul(update, core.sub(h, new))),)


def step(cell, x, state, w):
    """One step of a cell."""
    return cell(projected(x, w, cell is not gru_cell), state, w)


def sequence(cell, x, state, w, lengths=None):
    """A cell over [steps, batch, features]: (all hidden states, last state). Behind its length a row gives 0 and keeps its state."""
    gates, outputs = projected(x, w, cell is not gru_cell), []
    for number_of in range(x.shape[0]):
        new = cell(at(gates, 0, number_of), state, w)
        out = new[0]
        if lengths is not None:
            on = expand(core.less(np.int32(number_of), lengths), -1)
            new = tuple(core.select(on, fresh, old) for fresh, old in zip(new, state))
            out = core.select(on, out, number(0, out))
        outputs.append(out)
        state = new
    return stack(outputs, 0), state


def layers(cell, x, states, weights, bidirectional, between=None, lengths=None):
    """A stack over [steps, batch, features]. states: one [layers * directions, batch, hidden] for each part of a state;
    weights: a tuple for each layer and direction; between: what is done to the input of all layers but the first."""
    directions = 2 if bidirectional else 1
    if lengths is not None:
        lengths = cast(lengths, np.int32)
    last = []
    for layer in range(len(weights) // directions):
        if layer and between is not None:
            x = between(x)
        outputs = []
        for direction in range(directions):
            number_of = layer * directions + direction
            start = tuple(at(each, 0, number_of) for each in states)
            y, end = sequence(cell, _turned(x, lengths, direction), start, weights[number_of], lengths)
            outputs.append(_turned(y, lengths, direction))
            last.append(end)
        x = outputs[0] if directions == 1 else core.concat(*outputs, axis=2)
    return x, tuple(stack([end[i] for end in last], 0) for i in range(len(states)))


def _turned(x, lengths, direction):
    if not direction:
        return x
    return core.reverse(x, axes=[0]) if lengths is None else reverse_sequence(x, lengths, 0, 1)


def packed_lstm_weights(flat, inputs, hidden, layer_count, bias, bidirectional):
    """The parts of one flat buffer: all matrices of each layer and direction, then their two biases."""
    directions = 2 if bidirectional else 1
    flat = reshape(flat, (-1,))
    begin, weights = 0, []

    def take(*shape):
        nonlocal begin
        count = int(np.prod(shape))
        piece = core.slice(flat, np.array([begin], np.int64), np.array([begin + count], np.int64))
        begin += count
        return reshape(piece, shape)

    for number_of in range(layer_count * directions):
        width = inputs if number_of < directions else hidden * directions
        matrices = take(4 * hidden, width), take(4 * hidden, hidden)
        biases = (take(4 * hidden), take(4 * hidden)) if bias else (None, None)
        weights.append((*matrices, *biases))
    return weights
