"""Metrics of classes: accuracy, precision, recall, F, top k, confusion."""

import sys

import numpy as np
from mindspore._checkparam import Validator
from mindspore.nn.metrics.metric import EvaluationBase, Metric, rearrange_inputs


class Accuracy(EvaluationBase):
    """The share of right predictions; labels are class numbers or one-hot."""

    def __init__(self, eval_type="classification"):
        super().__init__(eval_type)
        self.clear()

    def clear(self):
        self._correct_num = self._total_num = self._class_num = 0

    @rearrange_inputs
    def update(self, *inputs):
        y_pred, y = self._checked(*self._take(inputs, 2))
        if self._type == "classification":
            right = np.equal(y_pred.argmax(axis=1), y).reshape(-1)
        else:
            axes = tuple(range(2, y.ndim))
            right = (
                np.equal(y_pred, y).all(axis=(1, *axes)) if not axes else np.equal(y_pred, y).all(axis=1).reshape(-1)
            )
        self._correct_num += int(right.sum())
        self._total_num += right.size

    def eval(self):
        return self._correct_num / self._total_num if self._total_num else self._nothing()


class _Counts(EvaluationBase):
    """True positives, predicted and actual ones of each class."""

    def __init__(self, eval_type="classification"):
        super().__init__(eval_type)
        self.eps = sys.float_info.min
        self.clear()

    def clear(self):
        self._class_num, self._true, self._predicted, self._actual = 0, None, 0, 0

    @rearrange_inputs
    def update(self, *inputs):
        y_pred, y = self._checked(*self._take(inputs, 2))
        if self._type == "classification":
            count = y_pred.shape[1]
            if y.max() + 1 > count:
                raise ValueError(f"y_pred has {count} classes, but y holds class {y.max()}.")
            actual = np.eye(count)[y.reshape(-1)]
            predicted = np.eye(count)[np.moveaxis(y_pred, 1, -1).reshape(-1, count).argmax(axis=1)]
        else:
            actual, predicted = (np.moveaxis(each, 1, -1).reshape(-1, each.shape[1]) for each in (y, y_pred))
            actual, predicted = actual.T, predicted.T
        hits = (actual * predicted).sum(axis=0)
        if self._type == "multilabel":
            join = lambda old, new: new if old is None or isinstance(old, int) else np.concatenate([old, new])  # noqa: E731
            self._true = join(self._true, hits)
            self._predicted, self._actual = (
                join(old, new.sum(axis=0)) for old, new in ((self._predicted, predicted), (self._actual, actual))
            )
        else:
            self._true = hits if self._true is None else self._true + hits
            self._predicted, self._actual = self._predicted + predicted.sum(axis=0), self._actual + actual.sum(axis=0)

    def _share(self, of, average):
        if self._true is None:
            self._nothing()
        Validator.check_value_type("average", average, [bool], type(self).__name__)
        share = self._true / (of + self.eps)
        return share.mean() if average else share


class Precision(_Counts):
    """Right ones among those predicted of each class."""

    def eval(self, average=False):
        return self._share(self._predicted, average)


class Recall(_Counts):
    """Right ones among those that are of each class."""

    def eval(self, average=False):
        return self._share(self._actual, average)


class Fbeta(Metric):
    """(1 + beta^2) * precision * recall / (beta^2 * precision + recall) of each class."""

    def __init__(self, beta):
        super().__init__()
        if not beta > 0:
            raise ValueError(f"For 'Fbeta', the 'beta' must be greater than 0, but got {beta}.")
        self.eps, self.beta = sys.float_info.min, beta
        self.clear()

    def clear(self):
        self._true = None
        self._predicted = self._actual = self._class_num = 0

    @rearrange_inputs
    def update(self, *inputs):
        y_pred, y = self._take(inputs, 2)
        if y_pred.ndim == y.ndim and self._check_onehot_data(y):
            y = y.argmax(axis=1)
        if self._class_num and self._class_num != y_pred.shape[1]:
            raise ValueError(f"The number of classes is {self._class_num} before, but got {y_pred.shape[1]}.")
        self._class_num = count = y_pred.shape[1]
        if y.max() + 1 > count:
            raise ValueError(f"y_pred has {count} classes, but y holds class {y.max()}.")
        actual, predicted = np.eye(count)[y.reshape(-1)], np.eye(count)[y_pred.argmax(axis=1).reshape(-1)]
        hits = (actual * predicted).sum(axis=0)
        self._true = hits if self._true is None else self._true + hits
        self._predicted, self._actual = self._predicted + predicted.sum(axis=0), self._actual + actual.sum(axis=0)

    def eval(self, average=False):
        Validator.check_value_type("average", average, [bool], type(self).__name__)
        if self._true is None:
            self._nothing()
        square = self.beta**2
        share = (1 + square) * self._true / (square * self._actual + self._predicted + self.eps)
        return share.mean() if average else share


class F1(Fbeta):
    """Fbeta with beta 1."""

    def __init__(self):
        super().__init__(1.0)


class TopKCategoricalAccuracy(Metric):
    """The share of rows whose class is among the k largest."""

    def __init__(self, k):
        super().__init__()
        if isinstance(k, bool) or not isinstance(k, int):
            raise TypeError(f"For '{type(self).__name__}', the 'k' must be int, but got {type(k).__name__}.")
        if k < 1:
            raise ValueError(f"For '{type(self).__name__}', the 'k' must be at least 1, but got {k}.")
        self.k = k
        self.clear()

    def clear(self):
        self._correct_num = self._samples_num = 0

    @rearrange_inputs
    def update(self, *inputs):
        y_pred, y = self._take(inputs, 2)
        if y_pred.ndim == y.ndim and self._check_onehot_data(y):
            y = y.argmax(axis=1)
        best = np.argsort(-y_pred, axis=1, kind="stable")[:, : self.k]
        self._correct_num += int((best == y.reshape(-1, 1)).sum())
        self._samples_num += y.size

    def eval(self):
        return self._correct_num / self._samples_num if self._samples_num else self._nothing()


class Top1CategoricalAccuracy(TopKCategoricalAccuracy):
    """k is 1."""

    def __init__(self):
        super().__init__(1)


class Top5CategoricalAccuracy(TopKCategoricalAccuracy):
    """k is 5."""

    def __init__(self):
        super().__init__(5)


class ConfusionMatrix(Metric):
    """Counts of label and prediction; normalize: "no_norm", "target", "prediction" or "all"."""

    def __init__(self, num_classes, normalize="no_norm", threshold=0.5):
        super().__init__()
        self.num_classes = Validator.check_value_type("num_classes", num_classes, [int], "ConfusionMatrix")
        self.normalize = Validator.check_string(
            normalize, ["no_norm", "target", "prediction", "all"], "normalize", "ConfusionMatrix"
        )
        self.threshold = Validator.check_value_type("threshold", threshold, [float], "ConfusionMatrix")
        self.clear()

    def clear(self):
        self.confusion_matrix = np.zeros((self.num_classes, self.num_classes))
        self._is_update = False

    @rearrange_inputs
    def update(self, *inputs):
        y_pred, y = self._take(inputs, 2)
        if y_pred.ndim not in (y.ndim, y.ndim + 1):
            raise ValueError(
                f"For 'ConfusionMatrix.update', y_pred and y must have equal dimensions, or y_pred one more, but got {y_pred.ndim} and {y.ndim}."
            )
        if y_pred.ndim == y.ndim + 1:
            y_pred = y_pred.argmax(axis=1)
        elif y_pred.dtype.kind == "f":
            y_pred = (y_pred >= self.threshold).astype(int)
        np.add.at(self.confusion_matrix, (y.reshape(-1).astype(int), y_pred.reshape(-1).astype(int)), 1)
        self._is_update = True

    def eval(self):
        if not self._is_update:
            self._nothing()
        matrix = self.confusion_matrix.astype(float)
        if self.normalize == "no_norm":
            return matrix
        below = {
            "target": matrix.sum(axis=1, keepdims=True),
            "prediction": matrix.sum(axis=0, keepdims=True),
            "all": matrix.sum(),
        }
        return np.nan_to_num(matrix / below[self.normalize])


_SHARES = {
    "sensitivity": lambda tp, fp, tn, fn: (tp, tp + fn), "specificity": lambda tp, fp, tn, fn: (tn, fp + tn),
    "precision": lambda tp, fp, tn, fn: (tp, tp + fp), "negative predictive value": lambda tp, fp, tn, fn: (tn, tn + fn),
    "miss rate": lambda tp, fp, tn, fn: (fn, tp + fn), "fall out": lambda tp, fp, tn, fn: (fp, fp + tn),
    "false discovery rate": lambda tp, fp, tn, fn: (fp, fp + tp), "false omission rate": lambda tp, fp, tn, fn: (fn, fn + tn),
    "accuracy": lambda tp, fp, tn, fn: (tp + tn, tp + fp + tn + fn), "f1 score": lambda tp, fp, tn, fn: (2 * tp, 2 * tp + fn + fp),
    "threat score": lambda tp, fp, tn, fn: (tp, tp + fn + fp),
    "balanced accuracy": lambda tp, fp, tn, fn: (_ratio(tp, tp + fn) + _ratio(tn, tn + fp), np.full_like(tp, 2)),
    "prevalence": lambda tp, fp, tn, fn: (tp + fn, tp + fp + tn + fn),
    "fowlkes mallows index": lambda tp, fp, tn, fn: (np.sqrt(_ratio(tp, tp + fp) * _ratio(tp, tp + fn)), np.ones_like(tp)),
    "informedness": lambda tp, fp, tn, fn: (_ratio(tp, tp + fn) + _ratio(tn, tn + fp) - 1, np.ones_like(tp)),
    "markedness": lambda tp, fp, tn, fn: (_ratio(tp, tp + fp) + _ratio(tn, tn + fn) - 1, np.ones_like(tp)),
    "matthews correlation coefficient": lambda tp, fp, tn, fn: (
        tp * tn - fp * fn, np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))),
    "prevalence threshold": lambda tp, fp, tn, fn: (
        np.sqrt(_ratio(tp, tp + fn) * _ratio(fp, fp + tn)) - _ratio(fp, fp + tn), _ratio(tp, tp + fn) - _ratio(fp, fp + tn)),
}  # fmt: skip
_OTHER_NAMES = {
    "recall": "sensitivity", "hit_rate": "sensitivity", "tpr": "sensitivity", "tnr": "specificity", "ppv": "precision",
    "npv": "negative predictive value", "fnr": "miss rate", "fpr": "fall out", "fdr": "false discovery rate",
    "for": "false omission rate", "acc": "accuracy", "f1": "f1 score", "ts": "threat score", "ba": "balanced accuracy",
    "mcc": "matthews correlation coefficient", "fm": "fowlkes mallows index", "bm": "informedness", "mk": "markedness",
    "pt": "prevalence threshold",
}  # fmt: skip


def _ratio(a, b):
    return np.divide(a, b, out=np.full(np.shape(a), np.nan), where=np.asarray(b) != 0)


class ConfusionMatrixMetric(Metric):
    """A measure of one-hot predictions and labels, by name: of all counts together, or with calculation_method of each sample
    and class and then reduced. The first class is left out unless skip_channel, as in MindSpore."""

    def __init__(self, skip_channel=True, metric_name="sensitivity", calculation_method=False, decrease="mean"):
        super().__init__()
        Validator.check_value_type("skip_channel", skip_channel, [bool], "ConfusionMatrixMetric")
        Validator.check_value_type("metric_name", metric_name, [str], "ConfusionMatrixMetric")
        Validator.check_value_type("calculation_method", calculation_method, [bool], "ConfusionMatrixMetric")
        self.skip_channel, self.calculation_method = skip_channel, calculation_method
        name = metric_name.lower().replace("_", " ")
        self.metric_name = _OTHER_NAMES.get(metric_name.lower(), _OTHER_NAMES.get(name, name))
        if self.metric_name not in _SHARES:
            raise NotImplementedError(f"The metric '{metric_name}' is not supported.")
        self.decrease = Validator.check_string(
            decrease, ["none", "mean", "sum", "mean_batch", "sum_batch", "mean_channel", "sum_channel"], "decrease"
        )
        self.clear()

    def clear(self):
        self._counts = []

    @rearrange_inputs
    def update(self, *inputs):
        y_pred, y = self._take(inputs, 2)
        if not self.skip_channel and y.shape[1] > 1:
            y_pred, y = y_pred[:, 1:], y[:, 1:]
        y_pred, y = (each.reshape(*each.shape[:2], -1).astype(float) for each in (y_pred, y))
        tp, tn = ((y_pred + y) == 2).sum(axis=2), ((y_pred + y) == 0).sum(axis=2)
        positive = y.sum(axis=2)
        fn, fp = positive - tp, y.shape[2] - positive - tn
        self._counts.append(np.stack([tp, fp, tn, fn], axis=-1).astype(float))

    def eval(self):
        if not self._counts:
            self._nothing()
        counts = np.concatenate(self._counts)
        if not self.calculation_method:
            return _ratio(*_SHARES[self.metric_name](*counts.sum(axis=(0, 1)).reshape(4, 1)))
        made = _decreased(_ratio(*_SHARES[self.metric_name](*np.moveaxis(counts, -1, 0))), self.decrease)
        return made if np.ndim(made) else float(made)


def _decreased(values, how):
    if how == "none":
        return values
    combine = np.nanmean if how.startswith("mean") else np.nansum
    axes = {"": (1, 0), "_batch": (0,), "_channel": (1,)}[how.replace("mean", "").replace("sum", "")]
    for axis in axes:
        values = combine(values, axis=axis)
    return values
