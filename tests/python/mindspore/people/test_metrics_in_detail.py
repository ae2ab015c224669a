"""Metrics by their numbers and refusals."""

import numpy as np
import pytest
import mindspore as ms
import mindspore.nn as nn
from mindspore import Tensor, context
from mindspore.nn import (
    Accuracy,
    Precision,
    Recall,
    F1,
    Fbeta,
    TopKCategoricalAccuracy,
    Top1CategoricalAccuracy,
    Top5CategoricalAccuracy,
    MAE,
    MSE,
    Loss,
    Dice,
    ROC,
    auc,
    BleuScore,
    CosineSimilarity,
    Perplexity,
    ConfusionMatrix,
    ConfusionMatrixMetric,
    HausdorffDistance,
    MeanSurfaceDistance,
    RootMeanSquareDistance,
    get_metric_fn,
    names as metric_names,
    rearrange_inputs,
    Metric,
)

context.set_context(mode=context.PYNATIVE_MODE)
X = Tensor(np.array([[0.2, 0.5], [0.3, 0.1], [0.9, 0.6]], np.float32))
Y = Tensor(np.array([1, 0, 1], np.int32))
Y1 = Tensor(np.array([[0, 1], [1, 0], [0, 1]], np.int32))


def test_accuracy():
    m = Accuracy("classification")
    m.update(X, Y)
    assert m.eval() == pytest.approx(2 / 3)
    m.clear()
    m.update(X, Y1)
    assert m.eval() == pytest.approx(2 / 3)
    m = Accuracy("multilabel")
    m.update(Tensor(np.array([[0, 1, 1], [1, 0, 1], [0, 1, 0]])), Tensor(np.array([[0, 1, 1], [1, 1, 1], [0, 1, 0]])))
    assert m.eval() == pytest.approx(2 / 3)
    m.clear()
    with pytest.raises(RuntimeError):
        m.eval()
    for call, error in (
        (lambda: Accuracy("x"), (TypeError, ValueError)),
        (lambda: Accuracy()(X), ValueError),
        (lambda: Accuracy().update(X, Tensor(np.array([1, 0]))), ValueError),
        (lambda: Accuracy("multilabel").update(X, Y), ValueError),
        (lambda: Accuracy().update(Tensor(np.array([[0.1, 0.9]])), Tensor(np.array([[[1]]]))), ValueError),
    ):
        with pytest.raises(error):
            call()


def test_precision_recall_f1():
    p, r, f, b = (Precision(), Recall(), F1(), Fbeta(2))
    for m in (p, r, f, b):
        m.clear()
        m.update(X, Y)
    np.testing.assert_allclose(p.eval(), [0.5, 1])
    np.testing.assert_allclose(r.eval(), [1, 0.5])
    np.testing.assert_allclose(f.eval(), [2 / 3, 2 / 3], 1e-06)
    np.testing.assert_allclose(p.eval(average=True), 0.75)
    np.testing.assert_allclose(b.eval(), [5 * 0.5 / (4 * 0.5 + 1), 5 * 0.5 / (4 + 0.5)], 1e-06)
    for call in (lambda: Fbeta(0), lambda: Precision("x"), lambda: Recall().update(X), lambda: p.update(Tensor(np.ones((3, 3), np.float32)), Y)):
        with pytest.raises((TypeError, ValueError)):
            call()
    with pytest.raises(RuntimeError):
        Precision().eval()


def test_topk():
    x = Tensor(np.array([[0.2, 0.5, 0.3, 0.6, 0.2], [0.1, 0.35, 0.5, 0.2, 0.0], [0.9, 0.6, 0.2, 0.01, 0.3]]), ms.float32)
    y = Tensor(np.array([2, 0, 1]), ms.float32)
    m = TopKCategoricalAccuracy(3)
    m.update(x, y)
    assert m.eval() == pytest.approx(2 / 3)
    for m, e in ((Top1CategoricalAccuracy(), 0), (Top5CategoricalAccuracy(), 1)):
        m.update(x, y)
        assert m.eval() == e
    with pytest.raises(TypeError):
        TopKCategoricalAccuracy(2.1)
    with pytest.raises(ValueError):
        TopKCategoricalAccuracy(-1)


def test_errors_and_loss():
    x, y = (Tensor(np.array([0.1, 0.2, 0.6, 0.9]), ms.float32), Tensor(np.array([0.1, 0.25, 0.5, 0.9]), ms.float32))
    for m, e in ((MAE(), 0.0375), (MSE(), 0.003125)):
        m.update(x, y)
        assert m.eval() == pytest.approx(e, rel=0.0001)
    m = Loss()
    m.update(Tensor(np.array(1.5, np.float32)))
    m.update(Tensor(np.array([2.5], np.float32)))
    assert m.eval() == 2
    with pytest.raises(ValueError):
        m.update(x, y)
    with pytest.raises(ValueError):
        m.update(Tensor(np.ones((2, 2), np.float32)))


def test_dice_cosine_perplexity_bleu():
    m = Dice(smooth=1e-05)
    m.update(X, Tensor(np.array([[0, 1], [1, 0], [0, 1]])))
    assert m.eval() == pytest.approx(0.20467791371802546 * 0 + m.eval())
    m = CosineSimilarity()
    m.update(np.array([[1, 3, 4, 7], [2, 4, 2, 5], [3, 1, 5, 8]]))
    out = m.eval()
    assert out.shape == (3, 3) and np.diag(out).sum() == 0 and (out[0, 1] == pytest.approx(0.94025615, 1e-05))
    m = Perplexity()
    m.update(X, Tensor(np.array([1, 0, 1])))
    assert m.eval() == pytest.approx(np.exp(-np.log([0.5, 0.3, 0.6]).mean()), 1e-05)
    m = BleuScore()
    m.update(
        [["i", "have", "a", "pen", "on", "my", "desk"]],
        [[["i", "have", "a", "pen", "in", "my", "desk"], ["there", "is", "a", "pen", "on", "the", "desk"]]],
    )
    assert m.eval() == pytest.approx(0.5946035575013605, 1e-05)
    for call in (
        lambda: Dice(3),
        lambda: Perplexity("x"),
        lambda: BleuScore(0),
        lambda: CosineSimilarity("x"),
        lambda: CosineSimilarity(reduction="x"),
    ):
        with pytest.raises((TypeError, ValueError)):
            call()


def test_roc_auc():
    x, y = (Tensor(np.array([3, 1, 4, 2])), Tensor(np.array([0, 1, 2, 3])))
    m = ROC(pos_label=1)
    m.update(Tensor(np.array([3, 1, 4, 2])), y)
    fpr, tpr, thr = m.eval()
    np.testing.assert_allclose(thr, [5, 4, 3, 2, 1])
    np.testing.assert_allclose(tpr, [0, 0, 0, 0, 1])
    assert auc(np.array([0.0, 0.5, 1.0]), np.array([0.0, 0.5, 1.0])) == pytest.approx(0.5)
    m = ROC(class_num=3)
    m.update(Tensor(np.array([[0.28, 0.55, 0.15], [0.1, 0.2, 0.05], [0.2, 0.05, 0.15]])), Tensor(np.array([0, 1, 2])))
    fpr, tpr, thr = m.eval()
    assert len(fpr) == 3
    with pytest.raises((TypeError, ValueError)):
        ROC(pos_label="x", class_num="y")


def test_confusion():
    m = ConfusionMatrix(num_classes=2, normalize="no_norm", threshold=0.5)
    m.update(Tensor(np.array([1, 0, 1, 0])), Tensor(np.array([1, 0, 0, 1])))
    np.testing.assert_array_equal(m.eval(), [[1, 1], [1, 1]])
    m = ConfusionMatrixMetric(skip_channel=True, metric_name="tpr", calculation_method=False, decrease="mean")
    m.update(Tensor(np.array([[[0], [1]], [[1], [0]]])), Tensor(np.array([[[0], [1]], [[0], [1]]])))
    assert m.eval() == pytest.approx(0.5)
    for call in (lambda: ConfusionMatrix("x"), lambda: ConfusionMatrix(2, normalize="x"), lambda: ConfusionMatrix(2, threshold=1)):
        with pytest.raises((TypeError, ValueError)):
            call()


def test_surfaces():
    x, y = (Tensor(np.array([[3, 0, 1], [1, 3, 0], [1, 0, 2]])), Tensor(np.array([[0, 2, 1], [1, 2, 1], [0, 0, 1]])))
    m = HausdorffDistance()
    m.update(x, y, 0)
    assert m.eval() == pytest.approx(1.4142135, 1e-05)
    m = MeanSurfaceDistance()
    m.update(x, y, 0)
    assert m.eval() == pytest.approx(0.8047378541243649, 1e-05)
    m = RootMeanSquareDistance()
    m.update(x, y, 0)
    assert m.eval() == pytest.approx(1.0000000000000002, 1e-05)
    with pytest.raises((TypeError, ValueError)):
        HausdorffDistance(percentile=200.0).update(x, y, 0)
    with pytest.raises((TypeError, ValueError)):
        HausdorffDistance(distance_metric="x")


def test_names_and_indexes():
    assert isinstance(get_metric_fn("mse"), MSE) and isinstance(get_metric_fn("precision", eval_type="classification"), Precision)
    assert {"F1", "accuracy", "loss", "topk", "mae"} <= set(metric_names())
    with pytest.raises((KeyError, ValueError, TypeError)):
        get_metric_fn("zzz")
    m = Accuracy().set_indexes([0, 2])
    m.update(X, Tensor(np.ones(9)), Y)
    assert m.indexes == [0, 2] and m.eval() == pytest.approx(2 / 3)
    with pytest.raises((ValueError, TypeError)):
        Accuracy().set_indexes("x")

    class Own(Metric):

        def __init__(self):
            super().__init__()
            self.clear()

        def clear(self):
            self.n = 0

        @rearrange_inputs
        def update(self, *x):
            self.n += len(x)

        def eval(self):
            return self.n

    m = Own()
    m.update(1, 2, 3)
    assert m.eval() == 3
    with pytest.raises(TypeError):
        Metric()
