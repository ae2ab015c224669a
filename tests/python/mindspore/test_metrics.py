"""Metrics against counts by hand, and against MindSpore's own for the same updates."""

import numpy as np
import pytest

from mindspore import Tensor, nn

SCORES = np.array([[0.2, 0.5, 0.3], [0.1, 0.2, 0.7], [0.9, 0.0, 0.1], [0.3, 0.4, 0.3]], np.float32)
LABELS = np.array([1, 2, 1, 0], np.int32)


def measured(metric, *updates):
    metric.clear()
    for each in updates:
        metric.update(*each)
    return metric.eval()


@pytest.mark.parametrize("labels", [LABELS, np.eye(3, dtype=np.int32)[LABELS]], ids=["numbers", "one-hot"])
def test_accuracy_over_updates(labels):
    halves = [(Tensor(SCORES[i : i + 2]), Tensor(labels[i : i + 2])) for i in (0, 2)]
    assert measured(nn.Accuracy(), *halves) == 0.5
    assert measured(nn.Top1CategoricalAccuracy(), *halves) == 0.5
    assert measured(nn.TopKCategoricalAccuracy(2), *halves) == 0.75


def test_multilabel_accuracy():
    predicted, right = np.array([[0, 1], [1, 1], [0, 0]]), np.array([[0, 1], [1, 0], [0, 0]])
    assert measured(nn.Accuracy("multilabel"), (Tensor(predicted), Tensor(right))) == pytest.approx(2 / 3)


def test_precision_recall_and_f():
    given = (Tensor(SCORES), Tensor(LABELS))
    np.testing.assert_allclose(measured(nn.Precision(), given), [0, 0.5, 1], atol=1e-9)
    np.testing.assert_allclose(measured(nn.Recall(), given), [0, 0.5, 1], atol=1e-9)
    np.testing.assert_allclose(measured(nn.F1(), given), [0, 0.5, 1], atol=1e-9)
    metric = nn.Precision()
    metric.update(*given)
    assert metric.eval(True) == pytest.approx(0.5)


def test_errors_and_losses():
    x, y = np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 5.0])
    assert measured(nn.MAE(), (Tensor(x), Tensor(y))) == pytest.approx(1.0)
    assert measured(nn.MSE(), (Tensor(x), Tensor(y))) == pytest.approx(5 / 3)
    assert measured(nn.Loss(), (Tensor(np.float32(0.5)),), (Tensor(np.float32(1.5)),)) == pytest.approx(1.0)
    assert measured(nn.Dice(), (Tensor(x), Tensor(x))) == pytest.approx(1 / 3, rel=1e-4)
    probability = np.array([[0.2, 0.8], [0.5, 0.5]])
    assert measured(nn.Perplexity(), (Tensor(probability), Tensor(np.array([1, 0])))) == pytest.approx(1 / np.sqrt(0.4))


def test_confusion_and_curves():
    matrix = measured(nn.ConfusionMatrix(3), (Tensor(SCORES), Tensor(LABELS)))
    assert matrix.tolist() == [[0, 1, 0], [1, 1, 0], [0, 0, 1]]
    one_hot = np.array([[[1], [0]], [[0], [1]], [[1], [0]]]), np.array([[[0], [1]], [[0], [1]], [[1], [0]]])
    for skip, expected in ((True, 2 / 3), (False, 0.5)):
        metric = nn.ConfusionMatrixMetric(skip_channel=skip, metric_name="tpr")
        assert measured(metric, tuple(map(Tensor, one_hot))) == pytest.approx(expected)
    false, true, thresholds = measured(
        nn.ROC(pos_label=1), (Tensor(np.array([0.1, 0.4, 0.35, 0.8])), Tensor(np.array([0, 0, 1, 1])))
    )
    assert (
        false.tolist() == [0, 0, 0.5, 0.5, 1]
        and true.tolist() == [0, 0.5, 0.5, 1, 1]
        and thresholds.tolist() == [1.8, 0.8, 0.4, 0.35, 0.1]
    )
    assert nn.auc(false, true) == pytest.approx(0.75)
    candidate, reference = [["a", "b", "c", "d", "e"]], [[["a", "b", "c", "d", "f"]]]
    assert measured(nn.BleuScore(2), (candidate, reference)) == pytest.approx(np.sqrt(4 / 5 * 3 / 4))


def test_names_of_metrics():
    made = nn.get_metrics({"acc", "top_5_accuracy", "loss"})
    assert isinstance(made["acc"], nn.Accuracy) and isinstance(made["loss"], nn.Loss)
    metric = nn.Accuracy().set_indexes([0, 2])
    metric.update(Tensor(SCORES), "ignored", Tensor(LABELS))
    assert metric.eval() == 0.5


@pytest.mark.parametrize("act, error", [
    (lambda: nn.Accuracy("other"), TypeError), (lambda: nn.Accuracy().eval(), RuntimeError), (lambda: nn.Accuracy().update(1), ValueError),
    (lambda: nn.Accuracy().update(Tensor(SCORES), Tensor(np.ones((5,)))), ValueError), (lambda: nn.get_metric_fn("nothing"), KeyError),
    (lambda: nn.TopKCategoricalAccuracy("a"), TypeError), (lambda: nn.TopKCategoricalAccuracy(0), ValueError), (lambda: nn.Fbeta(0), ValueError),
    (lambda: nn.get_metrics(1), TypeError),
])  # fmt: skip
def test_wrong_use(act, error):
    with pytest.raises(error):
        act()


class Distance(nn.Metric):
    """A metric of one's own."""

    def clear(self):
        self.total = 0.0

    @nn.rearrange_inputs
    def update(self, *inputs):
        x, y = map(self._convert_data, inputs)
        self.total += float(np.abs(x - y).sum())

    def eval(self):
        return self.total


def test_a_metric_of_ones_own():
    assert measured(Distance().set_indexes([1, 0]), (Tensor(np.ones(3)), Tensor(np.zeros(3)))) == 3.0
    scores = np.tile(np.arange(7.0), (2, 1))
    assert measured(nn.Top5CategoricalAccuracy(), (Tensor(scores), Tensor(np.array([1, 2])))) == 0.5


@pytest.mark.parametrize("name, settings, wanted", [
    ("HausdorffDistance", {}, 2**0.5), ("HausdorffDistance", {"distance_metric": "taxicab"}, 2), ("HausdorffDistance", {"percentile": 50.0}, 1),
    ("MeanSurfaceDistance", {}, 0.8047378541243649), ("MeanSurfaceDistance", {"symmetric": True}, 0.7357022603955158),
    ("RootMeanSquareDistance", {}, 1), ("RootMeanSquareDistance", {"symmetric": True}, 0.9128709291752769),
])  # fmt: skip
def test_distances_of_edges_as_mindspore_gives_them(name, settings, wanted):
    metric = getattr(nn, name)(**settings)
    metric.clear()
    metric.update(np.array([[3, 0, 1], [1, 3, 0], [1, 0, 2]]), np.array([[0, 2, 1], [1, 2, 1], [0, 0, 1]]), 0)
    assert np.isclose(metric.eval(), wanted)
    with pytest.raises(ValueError):
        metric.update(1)


def test_names_are_a_list_in_order():
    assert nn.metrics.names() == sorted(nn.metrics.names()) and {"F1", "loss", "mse", "top_1_accuracy"} < set(nn.metrics.names())


def weighted(weights):
    model = nn.Dense(weights.shape[1], 2, weight_init=Tensor(weights), has_bias=False)
    return nn.SequentialCell(nn.Flatten(), model)


def test_what_a_score_loses_where_its_image_is_covered():
    weights, image = np.array([[0.1, 0.8, 0.1, 0.1], [1, 1, 1, 1]], np.float32), np.array([[0.1, 0.2, 0.3, 0.4]], np.float32)
    metric = nn.get_metric_fn("occlusion_sensitivity")
    np.testing.assert_allclose(measured(metric, (weighted(weights), image, np.array(1))), [0.3, 0.6, 1.0, 0.9], rtol=1e-5)
    metric = nn.OcclusionSensitivity(margin=1, n_batch=3, pad_val=1.0)
    np.testing.assert_allclose(measured(metric, (weighted(weights), image, np.array(0))), [-0.09, -0.73, -0.71, -0.13], rtol=1e-4)


def test_the_covered_places_of_a_box():
    each = np.arange(24, dtype=np.float32)
    model, image = weighted(np.stack([each, each**2])), each.reshape(1, 2, 3, 4)
    wanted = [[[64, 190, 350], [576, 1430, 2070]], [[5888, 13124, 16036], [12672, 27700, 32724]]]  # by MindSpore 2.10
    found = measured(nn.OcclusionSensitivity(margin=1, b_box=[-1, -1, 1, 2, 0, 2]), (model, image, np.array(1)))
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
    for given in ({"pad_val": False}, {"margin": True}, {"n_batch": True}, {"b_box": 3}):
        with pytest.raises(TypeError):
            nn.OcclusionSensitivity(**given)
    metric = nn.OcclusionSensitivity(b_box=[0, 1])
    for error, act in ((RuntimeError, metric.eval), (ValueError, lambda: metric.update(image)), (ValueError, lambda: metric.update(model, image, np.array(1)))):
        with pytest.raises(error):
            act()


@pytest.mark.parametrize("error, act", [
    (TypeError, lambda: nn.ConfusionMatrixMetric(calculation_method=1)), (TypeError, lambda: nn.BleuScore(n_gram="3")),
    (ValueError, lambda: nn.ROC().update(np.ones((3, 3)), np.ones(2))), (ValueError, lambda: nn.ROC().update(np.ones(3), np.ones((3, 3)))),
    (RuntimeError, lambda: nn.Perplexity().update(np.ones((3, 3)), np.ones(2, np.int32))),
    (ValueError, lambda: nn.Accuracy().set_indexes([0.0, 1])),
])  # fmt: skip
def test_what_does_not_fit_is_refused(error, act):
    with pytest.raises(error):
        act()
