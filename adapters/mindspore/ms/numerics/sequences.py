"""Losses of sequences against targets that are not aligned with them: connectionist temporal classification, and transducers."""

import numpy as np
from cairn.ms import core
from cairn.ms.numerics.basic import at, cast, expand, filled, like, nptype, number, part, reshape, stack

_NEVER = -1e30  # the logarithm of what cannot happen, finite so that differences of two are numbers


def _log_sum(*parts):
    """log(sum(exp)) of tensors, element by element."""
    top = parts[0]
    for each in parts[1:]:
        top = core.maximum(top, each)
    top = core.stop_gradient(top)
    total = None
    for each in parts:
        term = core.exp(core.sub(each, top))
        total = term if total is None else core.add(total, term)
    return core.add(core.log(total), top)


def _shifted(x, by):
    """The last axis moved on by some places, behind which nothing can happen."""
    lead = filled((*x.shape[:-1], by), _NEVER, nptype(x))
    return core.concat(lead, part(x, -1, 0, x.shape[-1] - by), axis=len(x.shape) - 1)


def _rows(targets, lengths, count):
    """Targets [batch, longest]; those given one after the other are cut by their lengths, which must be known."""
    if len(targets.shape) == 2:
        return targets
    lengths = np.asarray(lengths.asnumpy() if hasattr(lengths, "asnumpy") else lengths).reshape(-1)
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    places = starts[:, None] + np.minimum(np.arange(max(int(lengths.max(initial=0)), 1)), np.maximum(lengths[:, None] - 1, 0))
    return core.gather(targets, np.minimum(places, targets.shape[0] - 1).astype(np.int64), axis=0)


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, zero_infinity=False):
    """(loss [batch], logarithms of the forward variables [batch, steps, 2 * longest target + 1]) of log probabilities
    [steps, batch, classes]. Graves and others, 2006; gradients are those by the logits of a log softmax, as others' are."""
    steps, batch, _ = log_probs.shape
    targets = cast(_rows(targets, target_lengths, batch), np.int32)
    input_lengths, target_lengths = (cast(core.identity(each), np.int32) for each in (input_lengths, target_lengths))
    longest = targets.shape[1]
    none = filled((batch, longest), blank, np.int32)
    labels = core.concat(reshape(stack([none, targets], -1), (batch, 2 * longest)), part(none, 1, 0, 1), axis=1)
    emitted = core.gather(core.transpose(log_probs, permutation=[1, 2, 0]), labels, axis=1, batch_dims=1)  # [batch, places, steps]
    before = core.concat(filled((batch, 2), blank, np.int32), part(labels, 1, 0, 2 * longest - 1), axis=1)
    leap = core.and_(core.not_equal(labels, np.int32(blank)), core.not_equal(labels, before))
    never = like(at(emitted, -1, 0), _NEVER)
    start = np.arange(2 * longest + 1) < 2
    alpha = core.select(core.broadcast_to(start, np.array([batch, len(start)], np.int64)), at(emitted, -1, 0), never)
    history = [alpha]
    for t in range(1, steps):
        following = _log_sum(alpha, _shifted(alpha, 1), core.select(leap, _shifted(alpha, 2), never))
        following = core.maximum(core.add(following, at(emitted, -1, t)), never)
        running = expand(core.less(np.int32(t), input_lengths), -1)
        alpha = core.select(core.broadcast_to(running, np.array(following.shape, np.int64)), following, alpha)
        history.append(alpha)
    last = expand(core.mul(target_lengths, np.int32(2)), -1)
    ends = [core.gather(alpha, core.maximum(core.sub(last, np.int32(back)), np.int32(0)), axis=1, batch_dims=1) for back in (0, 1)]
    some = core.greater(target_lengths, np.int32(0))
    ends = [reshape(each, (batch,)) for each in ends]
    loss = core.neg(_log_sum(ends[0], core.select(some, ends[1], like(ends[1], _NEVER))))
    endless = core.greater(loss, number(-_NEVER / 10, loss))
    loss = core.select(endless, like(loss, 0.0 if zero_infinity else np.inf), _by_logits(loss, log_probs, input_lengths))
    history = stack(history, 1)
    return loss, core.select(core.less(history, number(_NEVER / 10, history)), like(history, -np.inf), history)


def _by_logits(loss, log_probs, lengths):
    """The loss, whose gradient by each log probability of a step that counts is larger by the probability."""
    counts = core.less(np.arange(log_probs.shape[0], dtype=np.int32)[:, None], expand(lengths, 0))
    shares = core.mul(core.exp(log_probs), expand(cast(counts, nptype(log_probs)), -1))
    total = core.reduce_sum(shares, axes=[0, 2], keep_dims=False)
    return core.add(loss, core.sub(total, core.stop_gradient(total)))


def rnnt_loss(logits, labels, input_lengths, label_lengths, blank=0):
    """Loss [batch] of logits [batch, steps, labels + 1, classes]. Graves, 2012."""
    batch, steps, places, classes = logits.shape
    log_probs = core.log_softmax(logits, axis=3)
    labels, input_lengths, label_lengths = (cast(each, np.int32) for each in (labels, input_lengths, label_lengths))
    blanks = at(log_probs, -1, blank)
    spoken = reshape(part(log_probs, 2, 0, places - 1), (batch, steps, places - 1, classes))
    wide = core.broadcast_to(expand(labels, 1), np.array([batch, steps, places - 1], np.int64))
    spoken = reshape(core.gather(spoken, expand(wide, -1), axis=3, batch_dims=3), (batch, steps, places - 1))
    rows = []  # rows[t][u]: the logarithm of all ways to step t with u labels said
    for t in range(steps):
        row = []
        for u in range(places):
            ways = []
            if t:
                ways.append(core.add(rows[t - 1][u], at(at(blanks, 1, t - 1), 1, u)))
            if u:
                ways.append(core.add(row[u - 1], at(at(spoken, 1, t), 1, u - 1)))
            row.append(_log_sum(*ways) if len(ways) > 1 else ways[0] if ways else filled((batch,), 0, nptype(logits)))
        rows.append(row)
    whole = core.add(stack([stack(row, 1) for row in rows], 1), blanks)  # [batch, steps, places], ended by a blank
    ends = core.add(core.mul(core.sub(input_lengths, np.int32(1)), np.int32(places)), label_lengths)
    return core.neg(reshape(core.gather(reshape(whole, (batch, steps * places)), expand(ends, -1), axis=1, batch_dims=1), (batch,)))
