"""Metrics."""

from cairn.ms import modules
from mindspore.nn.metrics.classes import (
    F1,
    Accuracy,
    ConfusionMatrix,
    ConfusionMatrixMetric,
    Fbeta,
    Precision,
    Recall,
    Top1CategoricalAccuracy,
    Top5CategoricalAccuracy,
    TopKCategoricalAccuracy,
)
from mindspore.nn.metrics.metric import EvaluationBase, Metric, rearrange_inputs
from mindspore.nn.metrics.surfaces import HausdorffDistance, MeanSurfaceDistance, RootMeanSquareDistance
from mindspore.nn.metrics.numbers import MAE, MSE, ROC, BleuScore, CosineSimilarity, Dice, Loss, Perplexity, auc
from mindspore.nn.metrics.occlusion import OcclusionSensitivity

_FACTORY = {
    "accuracy": Accuracy, "acc": Accuracy, "precision": Precision, "recall": Recall, "F1": F1, "dice": Dice, "roc": ROC, "auc": auc,
    "topk": TopKCategoricalAccuracy, "top_1_accuracy": Top1CategoricalAccuracy, "top_5_accuracy": Top5CategoricalAccuracy,
    "mae": MAE, "mse": MSE, "loss": Loss, "bleu_score": BleuScore, "cosine_similarity": CosineSimilarity,
    "perplexity": Perplexity, "confusion_matrix": ConfusionMatrix, "confusion_matrix_metric": ConfusionMatrixMetric,
    "hausdorff_distance": HausdorffDistance, "mean_surface_distance": MeanSurfaceDistance,
    "root_mean_square_distance": RootMeanSquareDistance, "occlusion_sensitivity": OcclusionSensitivity,
}  # fmt: skip


def names():
    """The names that `metrics=` takes."""
    return sorted(_FACTORY)


def get_metric_fn(name, *args, **kwargs):
    """The metric of that name."""
    if name not in _FACTORY:
        raise KeyError(f"Unsupport metric '{name}', it must be one of {sorted(_FACTORY)}")
    return _FACTORY[name](*args, **kwargs)


def get_metrics(metrics):
    """{name: metric} of a set of names, or of a dict of metrics."""
    if metrics is None:
        return metrics
    if isinstance(metrics, dict):
        for name, metric in metrics.items():
            if not isinstance(name, str) or not isinstance(metric, Metric):
                raise TypeError(f"The 'metrics' must map names to Metric, but got {name!r}: {type(metric).__name__}.")
        return metrics
    if isinstance(metrics, set):
        made = {}
        for each in metrics:
            if not isinstance(each, str):
                raise TypeError(f"The 'metrics' must hold names, but got {type(each).__name__}.")
            made[each] = get_metric_fn(each)
        return made
    raise TypeError(f"The 'metrics' must be None, dict or set, but got {type(metrics).__name__}.")


__all__ = [
    "names", "get_metric_fn", "get_metrics", "Metric", "EvaluationBase", "rearrange_inputs", "Accuracy", "Precision", "Recall", "Fbeta",
    "F1", "TopKCategoricalAccuracy", "Top1CategoricalAccuracy", "Top5CategoricalAccuracy", "ConfusionMatrix", "ConfusionMatrixMetric",
    "MAE", "MSE", "Loss", "Dice", "HausdorffDistance", "MeanSurfaceDistance", "RootMeanSquareDistance", "ROC", "auc", "CosineSimilarity", "Perplexity", "BleuScore",
    "OcclusionSensitivity",
]  # fmt: skip
modules.share(__name__)
