"""Losses of sequences, pools of fractional steps, deformable convolutions, against NumPy."""

import numpy as np
import pytest

import mindspore.common.dtype as mstype
import mindspore.nn as nn
from mindspore import Tensor, context, ops
from mindspore.ops import composite as C
from mindspore.ops import functional as F
from mindspore.ops import operations as P
from mindspore.ops.operations import _grad_ops as G
from mindspore.ops.operations import nn_ops as NN

MODES = pytest.mark.parametrize("mode", [context.GRAPH_MODE, context.PYNATIVE_MODE])


def log_softmax(x):
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def ctc(y, target, blank=0):
    """-log of the sum over all paths of one sequence, by their enumeration from front to back."""
    ways = {((), blank): 0.0}
    for row in y:
        following = {}
        for (said, last), score in ways.items():
            for label, log_probability in enumerate(row):
                word = said if label in (blank, last) else (*said, label)
                if word == tuple(target[: len(word)]):
                    key = word, label
                    following[key] = np.logaddexp(following.get(key, -np.inf), score + log_probability)
        ways = following
    return -np.logaddexp.reduce([score for (said, _), score in ways.items() if said == tuple(target)] or [-np.inf])


class CTC(nn.Cell):
    def __init__(self, **options):
        super().__init__()
        self.loss = P.CTCLossV2(**options)

    def construct(self, x, targets, input_lengths, target_lengths):
        loss, _ = self.loss(x, targets, input_lengths, target_lengths)
        return loss


def sequences(batch=3, steps=6, classes=4, dtype=np.float64):
    random = np.random.RandomState(7)
    x = log_softmax(random.randn(steps, batch, classes)).astype(dtype)
    return x, random.randint(1, classes, (batch, 2)), np.array([steps, steps - 1, steps - 2])[:batch], np.array([2, 1, 2])[:batch]


@MODES
@pytest.mark.parametrize("blank", [0, 3])
def test_ctc_loss_v2(mode, blank):
    context.set_context(mode=mode)
    x, targets, input_lengths, target_lengths = sequences()
    targets = np.where(targets == blank, 1, targets)
    loss = CTC(blank=blank)(*map(Tensor, (x, targets, input_lengths, target_lengths)))
    expected = [ctc(x[: input_lengths[b], b], targets[b, : target_lengths[b]], blank) for b in range(3)]
    assert np.allclose(loss.asnumpy(), expected)


@MODES
def test_ctc_loss_v2_gradient(mode):
    """By the logits of a log softmax: the probability less the share of the paths; differences tell the latter."""
    context.set_context(mode=mode)
    x, targets, input_lengths, target_lengths = sequences()
    given = [Tensor(each) for each in (x, targets, input_lengths, target_lengths)]
    got = C.GradOperation(get_all=True)(CTC())(*given)[0].asnumpy()
    step, want = 1e-6, np.zeros_like(x)
    for t, b, c in np.ndindex(x.shape):
        if t >= input_lengths[b]:
            continue
        ends = []
        for sign in (1, -1):
            moved = x.copy()
            moved[t, b, c] += sign * step
            ends.append(ctc(moved[: input_lengths[b], b], targets[b, : target_lengths[b]]))
        want[t, b, c] = (ends[0] - ends[1]) / (2 * step) + np.exp(x[t, b, c])
    assert np.allclose(got, want, atol=1e-6)
    again = G.CTCLossV2Grad()(Tensor(np.ones(3)), *given, Tensor(np.ones(3)), Tensor(np.ones((3, 6, 5))))
    assert np.allclose(again.asnumpy(), got)


def test_ctc_loss_of_what_cannot_be_said():
    x, _, _, _ = sequences(1, 2)
    given = Tensor(x), Tensor(np.array([[1, 1]])), Tensor(np.array([2])), Tensor(np.array([2]))
    assert np.isinf(P.CTCLossV2()(*given)[0].asnumpy()).all()
    assert P.CTCLossV2(zero_infinity=True)(*given)[0].asnumpy() == 0


def test_ctc_loss_reductions_and_errors():
    x, targets, input_lengths, target_lengths = map(Tensor, sequences())
    each = ops.ctc_loss(x, targets, input_lengths, target_lengths, reduction="none")[0].asnumpy()
    assert np.allclose(ops.ctc_loss(x, targets, input_lengths, target_lengths)[0].asnumpy(), (each / [2, 1, 2]).mean())
    assert np.allclose(ops.ctc_loss(x, targets, input_lengths, target_lengths, reduction="sum")[0].asnumpy(), each.sum())
    with pytest.raises(TypeError) as info:
        ops.ctc_loss(x, targets, input_lengths, (0.5, 1.0, 2.0))
    assert "but got Float32" in str(info.value)
    with pytest.raises(ValueError):
        P.CTCLossV2(blank=9)(x, targets, input_lengths, target_lengths)
    with pytest.raises(ValueError):
        P.CTCLossV2(reduction="most")


def rnnt(y, labels, blank=0):
    """-log of the sum over all ways through a lattice [steps, labels + 1, classes]."""
    steps, places, _ = y.shape
    alpha = np.full((steps, places), -np.inf)
    alpha[0, 0] = 0
    for t in range(steps):
        for u in range(places):
            if t:
                alpha[t, u] = np.logaddexp(alpha[t, u], alpha[t - 1, u] + y[t - 1, u, blank])
            if u:
                alpha[t, u] = np.logaddexp(alpha[t, u], alpha[t, u - 1] + y[t, u - 1, labels[u - 1]])
    return -(alpha[-1, -1] + y[-1, -1, blank])


@MODES
def test_rnnt_loss(mode):
    context.set_context(mode=mode)
    random = np.random.RandomState(1)
    acts, labels = random.randn(2, 4, 3, 5).astype(np.float32), np.array([[1, 2], [3, 1]], np.int32)
    lengths = np.array([4, 3], np.int32), np.array([2, 1], np.int32)

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.loss = NN.RNNTLoss(blank_label=0)

        def construct(self, *given):
            return self.loss(*given)

    costs, gradients = Net()(Tensor(acts), Tensor(labels), *map(Tensor, lengths))
    y = log_softmax(acts.astype(np.float64))
    expected = [rnnt(y[b, : lengths[0][b], : lengths[1][b] + 1], labels[b]) for b in range(2)]
    assert np.allclose(costs.asnumpy(), expected, atol=1e-5)
    assert gradients.shape == acts.shape and np.allclose(gradients.asnumpy().sum(-1), 0, atol=1e-5)


def fractional(x, samples, window, out):
    """Of one image, as the windows begin at int((i + sample) * alpha) - int(sample * alpha)."""
    def starts(size, sample, w, count):
        alpha = (size - w) / (count - 1)
        return [int((i + sample) * alpha) - int(sample * alpha) for i in range(count - 1)] + [size - w]

    rows, columns = starts(x.shape[0], samples[1], window[0], out[0]), starts(x.shape[1], samples[0], window[1], out[1])
    return np.array([[x[r : r + window[0], c : c + window[1]].max() for c in columns] for r in rows])


@MODES
def test_fractional_max_pool_with_fixed_size(mode):
    context.set_context(mode=mode)
    random = np.random.RandomState(2)
    x, samples = random.randn(2, 3, 7, 9).astype(np.float32), random.rand(2, 3, 2).astype(np.float32)
    pool = NN.FractionalMaxPoolWithFixedKsize(ksize=(2, 3), output_shape=(3, 4))
    y, places = pool(Tensor(x), Tensor(samples))
    expected = [[fractional(x[n, c], samples[n, c], (2, 3), (3, 4)) for c in range(3)] for n in range(2)]
    assert np.allclose(y.asnumpy(), expected) and places.dtype == mstype.int64
    flat = x.reshape(2, 3, -1)
    assert np.allclose(np.take_along_axis(flat, places.asnumpy().reshape(2, 3, -1), 2), y.asnumpy().reshape(2, 3, -1))


def test_fractional_max_pool_gradient():
    random = np.random.RandomState(2)
    x, samples = random.randn(2, 3, 7, 9).astype(np.float32), random.rand(2, 3, 2).astype(np.float32)
    pool = NN.FractionalMaxPoolWithFixedKsize(ksize=(2, 3), output_shape=(3, 4))

    def pooled(x):
        return pool(x, Tensor(samples))[0]

    places, flat = pool(Tensor(x), Tensor(samples))[1], x.reshape(2, 3, -1)
    gradient = C.GradOperation()(pooled)(Tensor(x)).asnumpy().reshape(2, 3, -1)
    want = np.zeros_like(flat)
    for n, c in np.ndindex(2, 3):
        np.add.at(want[n, c], places.asnumpy()[n, c].reshape(-1), 1)
    assert np.allclose(gradient, want)


def test_fractional_max_pool_of_volumes():
    """Windows of one size in a row: the samples begin with the first axis."""
    random = np.random.RandomState(3)
    x, samples = random.randn(1, 2, 6, 7, 9).astype(np.float32), random.rand(1, 2, 3).astype(np.float32)
    y, places = NN.FractionalMaxPool3DWithFixedKsize((2, 2, 3), (3, 3, 4))(Tensor(x), Tensor(samples))
    for c in range(2):
        starts = []
        for size, w, count, sample in zip((6, 7, 9), (2, 2, 3), (3, 3, 4), samples[0, c]):
            alpha = (size - w) / (count - 1)
            starts.append([int((i + sample) * alpha) - int(sample * alpha) for i in range(count - 1)] + [size - w])
        expected = [[[x[0, c, t : t + 2, i : i + 2, j : j + 3].max() for j in starts[2]] for i in starts[1]] for t in starts[0]]
        assert np.allclose(y.asnumpy()[0, c], expected)
    flat = np.take_along_axis(x.reshape(2, -1), places.asnumpy().reshape(2, -1).astype(np.int64), 1)
    assert np.allclose(flat, y.asnumpy().reshape(2, -1))
    with pytest.raises(ValueError):
        NN.FractionalMaxPool3DWithFixedKsize((4, 4, 4), (1, 1, 1))(Tensor(np.ones((1, 1, 4, 4, 4), np.float32)), Tensor(samples[:, :1]))


@pytest.mark.parametrize("overlapping", [False, True])
@pytest.mark.parametrize("pseudo_random", [False, True])
@pytest.mark.parametrize("kind, row", [("FractionalMaxPool", np.max), ("FractionalAvgPool", np.mean)])
def test_fractional_pools(kind, row, pseudo_random, overlapping):
    x = np.random.RandomState(4).randn(2, 7, 10, 3).astype(np.float32)
    pool = getattr(NN, kind)([1.0, 1.4, 1.5, 1.0], pseudo_random, overlapping, deterministic=True, seed=3)
    y, rows, columns = pool(Tensor(x))
    rows, columns = rows.asnumpy(), columns.asnumpy()
    assert y.shape == (2, 5, 6, 3) and rows[0] == 0 and rows[-1] == 7 and set(np.diff(rows)) <= {1, 2}
    for i, j in np.ndindex(5, 6):
        part = x[:, rows[i] : rows[i + 1] + overlapping, columns[j] : columns[j + 1] + overlapping]
        assert np.allclose(y.asnumpy()[:, i, j], row(part, axis=(1, 2)), atol=1e-6)
    with pytest.raises(ValueError):
        getattr(NN, kind)([1.0, 0.5, 1.0, 1.0])


def sampled(x, y, z):
    """x[c] read linearly at (y, z), 0 outside."""
    low_y, low_z, total = int(np.floor(y)), int(np.floor(z)), 0.0
    for i, j in ((0, 0), (0, 1), (1, 0), (1, 1)):
        if 0 <= low_y + i < x.shape[1] and 0 <= low_z + j < x.shape[2]:
            total = total + x[:, low_y + i, low_z + j] * (1 - abs(y - low_y - i)) * (1 - abs(z - low_z - j))
    return total


def deformed(x, w, offsets, stride, pad, dilation):
    out, _, kh, kw = w.shape
    rows, columns = offsets.shape[2:]
    along_x, along_y, factor = offsets.reshape(len(x), 3, kh * kw, rows, columns).transpose(1, 0, 2, 3, 4)
    y = np.zeros((len(x), out, rows, columns))
    for n, r, c, i, j in np.ndindex(len(x), rows, columns, kh, kw):
        k = i * kw + j
        at = sampled(x[n], r * stride - pad + i * dilation + along_y[n, k, r, c], c * stride - pad + j * dilation + along_x[n, k, r, c])
        y[n, :, r, c] += (w[:, :, i, j] * at * factor[n, k, r, c]).sum(1) if np.ndim(at) else 0
    return y


@MODES
@pytest.mark.parametrize("stride, pad, dilation", [(1, 0, 1), (2, 1, 1), (1, 1, 2)])
def test_deformable_convolution(mode, stride, pad, dilation):
    context.set_context(mode=mode)
    random = np.random.RandomState(5)
    x, w = random.randn(2, 3, 6, 7), random.randn(4, 3, 2, 3)
    rows, columns = ((size + 2 * pad - dilation * (k - 1) - 1) // stride + 1 for size, k in ((6, 2), (7, 3)))
    offsets = random.randn(2, 3 * 6, rows, columns)

    class Net(nn.Cell):
        def construct(self, x, w, offsets):
            return ops.deformable_conv2d(x, w, offsets, (2, 3), (1, 1, stride, stride), (pad,) * 4, None, (1, 1, dilation, dilation))

    y = Net()(*(Tensor(each, mstype.float32) for each in (x, w, offsets)))
    assert np.allclose(y.asnumpy(), deformed(x, w, offsets, stride, pad, dilation), atol=1e-4)


def test_deformable_offsets_gradient():
    random = np.random.RandomState(6)
    x, offsets, dy = random.randn(1, 2, 4, 4), random.randn(1, 3 * 4, 3, 3), random.randn(1, 2, 6, 6)
    options = (1, 1, 1, 1), (0, 0, 0, 0), (2, 2)
    dx, do = G.DeformableOffsetsGrad(*options)(*(Tensor(each, mstype.float32) for each in (dy, x, offsets)))
    moved = NN.DeformableOffsets(*options)

    def total(x, offsets):
        return (moved(Tensor(x, mstype.float32), Tensor(offsets, mstype.float32)).asnumpy().astype(np.float64) * dy).sum()

    step, along_x, along_o = 1e-3, random.randn(*x.shape), random.randn(*offsets.shape)
    slope = (total(x + step * along_x, offsets + step * along_o) - total(x - step * along_x, offsets - step * along_o)) / (2 * step)
    assert np.allclose((dx.asnumpy() * along_x).sum() + (do.asnumpy() * along_o).sum(), slope, rtol=0.02, atol=0.02)


def test_bidense():
    random = np.random.RandomState(8)
    x, y, w, b = random.randn(5, 2, 3), random.randn(5, 2, 4), random.randn(6, 3, 4), random.randn(6)
    got = ops.bidense(*(Tensor(each, mstype.float32) for each in (x, y, w, b)))
    assert np.allclose(got.asnumpy(), np.einsum("abi,oij,abj->abo", x, w, y) + b, atol=1e-4)


def test_vmap_of_a_deformable_convolution():
    random = np.random.RandomState(9)
    x, w, o = (Tensor(random.randn(*shape), mstype.float32) for shape in ((2, 1, 2, 4, 4), (3, 2, 2, 2), (2, 1, 12, 3, 3)))

    def one(x, w, o):
        return ops.deformable_conv2d(x, w, o, (2, 2), (1, 1, 1, 1), (0, 0, 0, 0))

    got = F.vmap(one, in_axes=(0, None, 0), out_axes=0)(x, w, o)
    assert np.allclose(got.asnumpy(), np.stack([one(x[i], w, o[i]).asnumpy() for i in range(2)]), atol=1e-5)
