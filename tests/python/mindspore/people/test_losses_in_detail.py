"""Losses with each reduction, their gradients and refusals."""

import numpy as np
import pytest
import mindspore as ms
import mindspore.nn as nn
import mindspore.ops as ops
from mindspore import Tensor, context
from mindspore.ops import operations as P
from mindspore.ops import composite as C
from mindspore.ops.operations import nn_ops

context.set_context(mode=context.GRAPH_MODE, device_target="CPU")
A = np.array([[1, 4, 2], [3, 0, 5]], np.float32)
B = np.array([[2, 2, 2], [1, 1, 3]], np.float32)


def reduced(x, how):
    return x.mean() if how == "mean" else x.sum() if how == "sum" else x


HOW = ["none", "mean", "sum"]


@pytest.mark.parametrize("how", HOW)
def test_l1_mse_smooth(how):
    d = np.abs(A - B)
    np.testing.assert_allclose(nn.L1Loss(how)(Tensor(A), Tensor(B)).asnumpy(), reduced(d, how), 1e-05)
    np.testing.assert_allclose(nn.MSELoss(how)(Tensor(A), Tensor(B)).asnumpy(), reduced(d**2, how), 1e-05)
    np.testing.assert_allclose(nn.SmoothL1Loss(1.0, how)(Tensor(A), Tensor(B)).asnumpy(), reduced(np.where(d < 1, d * d / 2, d - 0.5), how))
    np.testing.assert_allclose(
        nn.SoftMarginLoss(how)(Tensor(A), Tensor(np.sign(A - B + 0.5))).asnumpy() if how != "x" else 0,
        reduced(np.log1p(np.exp(-np.sign(A - B + 0.5) * A)), how),
        1e-05,
    )
    np.testing.assert_allclose(ops.l1_loss(Tensor(A), Tensor(B), how).asnumpy(), reduced(d, how))
    np.testing.assert_allclose(ops.huber_loss(Tensor(A), Tensor(B), how, 1.0).asnumpy(), reduced(np.where(d < 1, d * d / 2, d - 0.5), how))


@pytest.mark.parametrize("how", HOW)
def test_bce(how):
    p = np.array([[0.2, 0.7, 0.1], [0.6, 0.5, 0.9]], np.float32)
    t = np.array([[0, 1, 0], [0, 0, 1]], np.float32)
    loss = -(t * np.log(p) + (1 - t) * np.log(1 - p))
    np.testing.assert_allclose(nn.BCELoss(reduction=how)(Tensor(p), Tensor(t)).asnumpy(), reduced(loss, how), 1e-05)
    w = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    np.testing.assert_allclose(P.BinaryCrossEntropy(how)(Tensor(p), Tensor(t), Tensor(w)).asnumpy(), reduced(loss * w, how), 1e-05)
    z = np.log(p / (1 - p))
    ones = Tensor(np.ones((2, 3), np.float32))
    np.testing.assert_allclose(P.BCEWithLogitsLoss(how)(Tensor(z), Tensor(t), ones, ones).asnumpy(), reduced(loss, how), 0.0001)
    np.testing.assert_allclose(nn.BCEWithLogitsLoss(how)(Tensor(z), Tensor(t)).asnumpy(), reduced(loss, how), 0.0001)
    np.testing.assert_allclose(P.SigmoidCrossEntropyWithLogits()(Tensor(z), Tensor(t)).asnumpy(), loss, 0.0001)


def test_classes_that_a_mask_rules_out_leave_the_losses_finite():
    x = np.array([[1, 2, -np.inf], [0.5, -np.inf, 1]], np.float32)
    t = np.array([0, 2], np.int32)
    logs = x - np.log(np.exp(x).sum(1, keepdims=True))
    expected = -logs[[0, 1], t].mean()
    np.testing.assert_allclose(ops.nll_loss(Tensor(logs), Tensor(t)).asnumpy(), expected, 1e-05)
    np.testing.assert_allclose(ops.cross_entropy(Tensor(x), Tensor(t)).asnumpy(), expected, 1e-05)
    np.testing.assert_allclose(nn.CrossEntropyLoss(ignore_index=1)(Tensor(x), Tensor(np.array([0, 1], np.int32))).asnumpy(), -logs[0, 0], 1e-05)


@pytest.mark.parametrize("how", HOW)
def test_nll_and_cross_entropy(how):
    x = np.random.RandomState(1).randn(3, 5).astype(np.float32)
    t = np.array([1, 0, 4], np.int32)
    logs = x - np.log(np.exp(x).sum(1, keepdims=True))
    picked = -logs[np.arange(3), t]
    np.testing.assert_allclose(nn.NLLLoss(reduction=how)(Tensor(logs), Tensor(t)).asnumpy(), reduced(picked, how), 1e-05)
    np.testing.assert_allclose(nn.CrossEntropyLoss(reduction=how)(Tensor(x), Tensor(t)).asnumpy(), reduced(picked, how), 1e-05)
    np.testing.assert_allclose(ops.cross_entropy(Tensor(x), Tensor(t), reduction=how).asnumpy(), reduced(picked, how), 1e-05)
    np.testing.assert_allclose(ops.nll_loss(Tensor(logs), Tensor(t), reduction=how).asnumpy(), reduced(picked, how), 1e-05)
    loss, weight = P.NLLLoss(how)(Tensor(logs), Tensor(t), Tensor(np.ones(5, np.float32)))
    np.testing.assert_allclose(loss.asnumpy(), reduced(picked, how), 1e-05)
    np.testing.assert_allclose(
        nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction=how)(Tensor(x), Tensor(t)).asnumpy(), reduced(picked, how), 1e-05
    )
    np.testing.assert_allclose(
        nn.SoftmaxCrossEntropyWithLogits(reduction=how)(Tensor(x), Tensor(np.eye(5, dtype=np.float32)[t])).asnumpy(), reduced(picked, how), 1e-05
    )
    w = np.array([1, 2, 3, 4, 5], np.float32)
    weighted = picked * w[t]
    np.testing.assert_allclose(
        nn.CrossEntropyLoss(weight=Tensor(w), reduction=how)(Tensor(x), Tensor(t)).asnumpy(),
        weighted.sum() / w[t].sum() if how == "mean" else reduced(weighted, how),
        1e-05,
    )
    ignored = np.where(t == 0, 0, picked)
    np.testing.assert_allclose(
        nn.CrossEntropyLoss(ignore_index=0, reduction=how)(Tensor(x), Tensor(t)).asnumpy(),
        ignored.sum() / 2 if how == "mean" else reduced(ignored, how),
        1e-05,
    )


@pytest.mark.parametrize("how", HOW)
def test_kl_cosine_margins(how):
    x, t = (np.log(np.array([[0.2, 0.3, 0.5]], np.float32)), np.array([[0.1, 0.4, 0.5]], np.float32))
    np.testing.assert_allclose(P.KLDivLoss(how)(Tensor(x), Tensor(t)).asnumpy(), reduced(t * (np.log(t) - x), how), 0.0001, 1e-06)
    np.testing.assert_allclose(ops.kl_div(Tensor(x), Tensor(t), how).asnumpy(), reduced(t * (np.log(t) - x), how), 0.0001, 1e-06)
    cos = (A * B).sum(1) / np.sqrt((A**2).sum(1) * (B**2).sum(1))
    y = np.array([1, -1], np.int32)
    expect = np.where(y == 1, 1 - cos, np.maximum(cos, 0))
    np.testing.assert_allclose(nn.CosineEmbeddingLoss(reduction=how)(Tensor(A), Tensor(B), Tensor(y)).asnumpy(), reduced(expect, how), 0.0001, 1e-06)
    np.testing.assert_allclose(ops.cosine_embedding_loss(Tensor(A), Tensor(B), Tensor(y), 0.0, how).asnumpy(), reduced(expect, how), 0.0001, 1e-06)
    t = np.array([1, 2], np.int64)
    m = np.maximum(0, 1 - A[np.arange(2), t][:, None] + A)
    m[np.arange(2), t] = 0
    np.testing.assert_allclose(nn.MultiMarginLoss(reduction=how)(Tensor(A), Tensor(t)).asnumpy(), reduced(m.sum(1) / 3, how), 1e-05)
    ml = nn.MultilabelMarginLoss(reduction=how)(
        Tensor(np.array([[0.1, 0.2, 0.4, 0.8], [0.2, 0.3, 0.5, 0.7]], np.float32)), Tensor(np.array([[1, 2, 0, 3], [2, 3, -1, 1]], np.int32))
    )
    np.testing.assert_allclose((ml[0] if isinstance(ml, tuple) else ml).asnumpy(), (ml[0] if isinstance(ml, tuple) else ml).asnumpy())
    h = nn.HingeEmbeddingLoss(reduction=how)(Tensor(A), Tensor(np.array([[1, -1, 1], [-1, 1, -1]], np.float32)))
    if h is not None:
        y = np.array([[1, -1, 1], [-1, 1, -1]], np.float32)
        np.testing.assert_allclose(h.asnumpy(), reduced(np.where(y == 1, A, np.maximum(0, 1 - A)), how), 1e-05)


def test_triplet_gaussian_poisson_rmse():
    a, p, n = (
        Tensor(np.array([[0.3, 0.7], [0.5, 0.5]], np.float32)),
        Tensor(np.array([[0.4, 0.6], [0.4, 0.6]], np.float32)),
        Tensor(np.array([[0.2, 0.9], [0.3, 0.7]], np.float32)),
    )
    for make in (lambda: nn.TripletMarginLoss(), lambda: nn.TripletMarginLoss(reduction="mean")):
        loss = make()
        out = loss(a, p, n)
        assert 0.5 < float(out.asnumpy()) < 1.5
    np.testing.assert_allclose(nn.RMSELoss()(Tensor(A), Tensor(B)).asnumpy(), np.sqrt(((A - B) ** 2).mean()), 1e-05)
    np.testing.assert_allclose(nn.MAELoss()(Tensor(A), Tensor(B)).asnumpy(), np.abs(A - B).mean(), 1e-05)
    np.testing.assert_allclose(
        nn.SampledSoftmaxLoss(num_sampled=4, num_classes=7, seed=1)(
            Tensor(np.random.randn(7, 10).astype(np.float32)),
            Tensor(np.random.randn(7).astype(np.float32)),
            Tensor(np.array([0, 1, 2], np.int32)),
            Tensor(np.random.randn(3, 10).astype(np.float32)),
        ).shape,
        (3,),
    )
    loss = nn.DiceLoss()(Tensor(np.array([[0.2, 0.5], [0.3, 0.1], [0.9, 0.6]], np.float32)), Tensor(np.array([[0, 1], [1, 0], [0, 1]], np.float32)))
    np.testing.assert_allclose(loss.asnumpy(), 0.38596618, 0.0001)
    loss = nn.MultiClassDiceLoss(weights=None, ignore_indiex=None, activation=None)(
        Tensor(np.array([[0.2, 0.5, 0.7], [0.3, 0.1, 0.5], [0.9, 0.6, 0.3]], np.float32)),
        Tensor(np.array([[0, 1, 0], [1, 0, 0], [0, 0, 1]], np.float32)),
    )
    assert 0 < loss.asnumpy() < 1
    loss = nn.FocalLoss(weight=Tensor([1, 2]), gamma=2.0, reduction="mean")(
        Tensor([[0.8, 1.4], [0.5, 0.9], [1.2, 0.9]], ms.float32), Tensor([[1], [1], [0]], ms.int32)
    )
    np.testing.assert_allclose(loss.asnumpy(), 0.12516622, 0.001)
    with pytest.raises(ValueError):
        nn.FocalLoss(reduction="x")
    with pytest.raises(TypeError):
        nn.FocalLoss(gamma="2")


@pytest.mark.parametrize(
    "make, error",
    [
        (lambda: nn.L1Loss("x"), ValueError),
        (lambda: nn.MSELoss(1), ValueError),
        (lambda: nn.SmoothL1Loss(-1.0), ValueError),
        (lambda: nn.SmoothL1Loss("1"), TypeError),
        (lambda: nn.SoftmaxCrossEntropyWithLogits(sparse=1), TypeError),
        (lambda: nn.SoftmaxCrossEntropyWithLogits(reduction="x"), ValueError),
        (lambda: nn.BCELoss(reduction="x"), ValueError),
        (lambda: nn.DiceLoss(smooth="1"), TypeError),
        (lambda: nn.DiceLoss(smooth=-1e-05), ValueError),
        (lambda: nn.CosineEmbeddingLoss(margin="0"), TypeError),
        (lambda: nn.CosineEmbeddingLoss(margin=2.0), ValueError),
        (lambda: nn.SampledSoftmaxLoss(0, 7), ValueError),
        (lambda: nn.NLLLoss(reduction=3), (TypeError, ValueError)),
        (lambda: nn.CrossEntropyLoss(label_smoothing=2.0), ValueError),
        (lambda: nn.CrossEntropyLoss(ignore_index=1.5), TypeError),
        (lambda: nn.L1Loss()(Tensor(A), 1), TypeError),
        (lambda: nn.MSELoss()(Tensor(A), Tensor(B[:, :2])), ValueError),
        (lambda: nn.MultiMarginLoss(p=3), ValueError),
        (lambda: nn.MultiMarginLoss(margin="a"), TypeError),
        (lambda: nn.MultiClassDiceLoss(ignore_indiex="z"), TypeError),
        (lambda: nn.BCELoss()(Tensor(A), Tensor(B[:1])), ValueError),
        (lambda: P.SmoothL1Loss()(Tensor(A), Tensor(B[:1])), ValueError),
        (lambda: P.KLDivLoss("x"), ValueError),
        (lambda: P.NLLLoss("x"), ValueError),
        (lambda: P.BinaryCrossEntropy("x"), ValueError),
        (lambda: P.SparseSoftmaxCrossEntropyWithLogits(is_grad="x"), TypeError),
    ],
)
def test_refusals(make, error):
    context.set_context(mode=context.PYNATIVE_MODE)
    with pytest.raises(error):
        make()


def test_own_loss():

    class Own(nn.LossBase):

        def __init__(self, reduction="mean"):
            super().__init__(reduction)
            self.abs = P.Abs()

        def construct(self, base, target):
            return self.get_loss(self.abs(base - target), 2.0)

    np.testing.assert_allclose(Own()(Tensor(A), Tensor(B)).asnumpy(), 2 * np.abs(A - B).mean(), 1e-06)
    np.testing.assert_allclose(Own("none")(Tensor(A), Tensor(B)).asnumpy(), 2 * np.abs(A - B), 1e-06)
    with pytest.raises(ValueError):
        Own("wrong")


def test_gradients():
    g = C.GradOperation(get_all=True)
    d = g(nn.MSELoss())(Tensor(A), Tensor(B))
    np.testing.assert_allclose(d[0].asnumpy(), 2 * (A - B) / 6, 1e-05)
    np.testing.assert_allclose(d[1].asnumpy(), -2 * (A - B) / 6, 1e-05)
    d = g(P.SmoothL1Loss(1.0))(Tensor(A), Tensor(B))
    np.testing.assert_allclose(d[0].asnumpy(), np.clip(A - B, -1, 1), 1e-05)
    x, t = (np.random.RandomState(1).randn(3, 5).astype(np.float32), np.array([1, 0, 4], np.int32))
    s = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    np.testing.assert_allclose(
        P.SparseSoftmaxCrossEntropyWithLogits(is_grad=True)(Tensor(x), Tensor(t)).asnumpy(), (s - np.eye(5)[t]) / 3, 0.0001, 1e-06
    )
    loss, dx = P.SoftmaxCrossEntropyWithLogits()(Tensor(x), Tensor(np.eye(5, dtype=np.float32)[t]))
    np.testing.assert_allclose(dx.asnumpy(), s - np.eye(5)[t], 0.0001, 1e-06)


class Slopes(nn.Cell):
    """Gradients of a loss by all inputs, where its first result counts."""

    def __init__(self, loss, first=False):
        super().__init__()
        self.loss, self.first = loss, first

    def construct(self, *inputs):
        return self.loss(*inputs)[0] if self.first else self.loss(*inputs)


def slopes(loss, *inputs, first=False):
    made = ops.GradOperation(get_all=True)(Slopes(loss, first))(*[Tensor(np.array(each, np.float32)) for each in inputs])
    return [each.asnumpy() for each in made]


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE])
def test_gradients_of_primitives_are_those_that_kernels_have(mode):
    ms.set_context(mode=mode)
    x, labels = np.array([[1, 2, 3, 4], [0, 1, 0, 2]]), np.array([[0, 0, 0, 0], [0, 2, 0, 0.5]])
    probabilities = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    by_logits, by_labels = slopes(P.SoftmaxCrossEntropyWithLogits(), x, labels, first=True)
    np.testing.assert_allclose(by_logits, probabilities - labels, atol=1e-6)
    assert not by_labels.any()
    by_logits, by_labels = slopes(nn.SoftmaxCrossEntropyWithLogits(reduction="mean"), x, labels)
    np.testing.assert_allclose(by_logits, (probabilities - labels) / 2, atol=1e-6)
    assert not by_labels.any()
    x, labels = np.array([-2, 0, 0, 1]), np.array([1, 0, 1, 0.5])
    by_logits, by_labels = slopes(P.SigmoidCrossEntropyWithLogits(), x, labels)
    np.testing.assert_allclose(by_logits, 1 / (1 + np.exp(-x)) - labels, atol=1e-6)
    assert not by_labels.any()
    weights = slopes(P.BCEWithLogitsLoss("none"), x, labels, np.ones(4), np.full(4, 2))[2:]
    weights += slopes(P.BinaryCrossEntropy("none"), [0.2, 0.5], [0, 1], [1, 2])[2:] + slopes(P.KLDivLoss("none"), [-1, -2], [0.3, 0.2])[1:]
    assert not any(each.any() for each in weights)
    ms.set_context(mode=ms.GRAPH_MODE)


def test_the_second_derivative_of_softmax_cross_entropy():
    ms.set_context(mode=ms.PYNATIVE_MODE)
    labels = Tensor(np.array([[0, 1, 0.5]], np.float32))
    inner = ops.GradOperation()(lambda x: P.SoftmaxCrossEntropyWithLogits()(x, labels)[0])
    x = np.array([[0.3, -1, 2]], np.float32)
    made = ops.GradOperation(sens_param=True)(inner)(Tensor(x), Tensor(np.array([[1, 0, 0]], np.float32))).asnumpy()
    p = np.exp(x) / np.exp(x).sum()
    np.testing.assert_allclose(made[0], p[0, 0] * (np.eye(3)[0] - p[0]), atol=1e-6)
    ms.set_context(mode=ms.GRAPH_MODE)
