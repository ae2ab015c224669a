"""Metrics of numbers, curves, texts and surfaces."""

import math
from collections import Counter

import numpy as np
from mindspore._checkparam import Validator
from mindspore.nn.metrics.metric import Metric, rearrange_inputs


class _MeanError(Metric):
    def __init__(self):
        super().__init__()
        self.clear()

    def clear(self):
        self._sum, self._samples_num = 0.0, 0

    @rearrange_inputs
    def update(self, *inputs):
        y_pred, y = self._take(inputs, 2)
        self._sum += float(self._error(y_pred.astype(np.float64), y.reshape(y_pred.shape).astype(np.float64)).sum())
        self._samples_num += y.shape[0]

    def eval(self):
        return self._sum / self._samples_num if self._samples_num else self._nothing()


class MAE(_MeanError):
    """Sum of |prediction - label| over the number of samples."""

    def _error(self, y_pred, y):
        return np.abs(y_pred - y)


class MSE(_MeanError):
    """Sum of (prediction - label)^2 over the number of samples."""

    def _error(self, y_pred, y):
        return (y_pred - y) ** 2


class Loss(Metric):
    """The mean of the losses of steps."""

    def __init__(self):
        super().__init__()
        self.clear()

    def clear(self):
        self._sum_loss, self._total_num = 0.0, 0

    @rearrange_inputs
    def update(self, *inputs):
        (loss,) = self._take(inputs, 1)
        if loss.ndim == 0:
            loss = loss.reshape(1)
        if loss.ndim != 1:
            raise ValueError(f"For 'Loss.update', the dimension of the loss must be 1, but got {loss.ndim}.")
        self._sum_loss += float(loss.mean())
        self._total_num += 1

    def eval(self):
        return self._sum_loss / self._total_num if self._total_num else self._nothing()


class Dice(Metric):
    """2 * sum of prediction * label / (sum of their squares)."""

    def __init__(self, smooth=1e-5):
        super().__init__()
        self.smooth = Validator.check_positive_float(smooth, "smooth", "Dice")
        self.clear()

    def clear(self):
        self._dice_coeff_sum, self._samples_num = 0.0, 0

    @rearrange_inputs
    def update(self, *inputs):
        y_pred, y = self._take(inputs, 2)
        if y_pred.shape != y.shape:
            raise ValueError(f"For 'Dice.update', the shapes must be equal, but got {y_pred.shape} and {y.shape}.")
        both = np.dot(y_pred.flatten(), y.flatten())
        union = np.dot(y_pred.flatten(), y_pred.flatten()) + np.dot(y.flatten(), y.flatten())
        self._dice_coeff_sum += 2 * float(both) / float(union + self.smooth)
        self._samples_num += y.shape[0]

    def eval(self):
        return self._dice_coeff_sum / self._samples_num if self._samples_num else self._nothing()


class ROC(Metric):
    """(false positive rate, true positive rate, thresholds), of each class where there are several."""

    def __init__(self, class_num=None, pos_label=None):
        super().__init__()
        for name, value in (("class_num", class_num), ("pos_label", pos_label)):
            if value is not None:
                Validator.check_value_type(name, value, [int], "ROC")
        self.class_num, self.pos_label = class_num, pos_label
        self.clear()

    def clear(self):
        self.y_pred, self.y, self.sample_weights = [], [], None

    @rearrange_inputs
    def update(self, *inputs):
        y_pred, y = self._take(inputs, 2)
        if y_pred.ndim not in (y.ndim, y.ndim + 1) or y_pred.shape[:1] != y.shape[:1]:
            raise ValueError(f"For 'ROC.update', the predictions and labels do not fit each other: {y_pred.shape} and {y.shape}.")
        self.y_pred.append(y_pred)
        self.y.append(y)

    def eval(self):
        if not self.y:
            self._nothing()
        y_pred, y = np.concatenate(self.y_pred), np.concatenate(self.y)
        if y_pred.ndim == 1 or self.class_num in (None, 1):
            return self._curve(y_pred.reshape(-1), y.reshape(-1), 1 if self.pos_label is None else self.pos_label)
        curves = [self._curve(y_pred[:, i], y, i) for i in range(self.class_num)]
        return tuple([each[k] for each in curves] for k in range(3))

    def _curve(self, y_pred, y, label):
        false, true, thresholds = self._binary_clf_curve(y_pred, y, pos_label=label)
        false, true = np.r_[0, false], np.r_[0, true]
        thresholds = np.r_[thresholds[0] + 1, thresholds]
        return false / false[-1], true / true[-1], thresholds


def auc(x, y, reorder=False):
    """Area under a curve, by trapezoids."""
    if not isinstance(x, (np.ndarray, list)) or not isinstance(y, (np.ndarray, list)):
        raise TypeError(
            f"For 'auc', x and y must be numpy.ndarray or list, but got {type(x).__name__} and {type(y).__name__}."
        )
    if isinstance(x, list) and len(x) and not np.isscalar(x[0]):
        return [auc(a, b, reorder) for a, b in zip(x, y)]
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if x.shape != y.shape or x.size < 2:
        raise ValueError(
            f"For 'auc', x and y must have 2 or more points and one shape, but got {x.shape} and {y.shape}."
        )
    direction = 1
    if reorder:
        order = np.lexsort((y, x))
        x, y = x[order], y[order]
    else:
        steps = np.diff(x)
        if (steps < 0).any():
            if not (steps <= 0).all():
                raise ValueError("For 'auc', x must rise or fall.")
            direction = -1
    return float(direction * np.trapz(y, x))


class CosineSimilarity(Metric):
    """Cosines, or dot products, between all rows of the last update."""

    def __init__(self, similarity="cosine", reduction="none", zero_diagonal=True):
        super().__init__()
        self.similarity = Validator.check_string(similarity, ["dot", "cosine"], "similarity", "CosineSimilarity")
        self.reduction = Validator.check_string(reduction, ["none", "sum", "mean"], "reduction", "CosineSimilarity")
        self.zero_diagonal = Validator.check_value_type("zero_diagonal", zero_diagonal, [bool], "CosineSimilarity")
        self.clear()

    def clear(self):
        self.sqr_mtx_res = None

    @rearrange_inputs
    def update(self, inputs):
        rows = self._convert_data(inputs)
        if self.similarity == "cosine":
            rows = rows / np.linalg.norm(rows, ord=2, axis=1, keepdims=True)
        self.sqr_mtx_res = rows @ rows.T

    def eval(self):
        if self.sqr_mtx_res is None:
            self._nothing()
        made = self.sqr_mtx_res.copy()
        if self.zero_diagonal:
            np.fill_diagonal(made, 0)
        return (
            made if self.reduction == "none" else made.mean(axis=-1) if self.reduction == "mean" else made.sum(axis=-1)
        )


class Perplexity(Metric):
    """exp of the mean cross entropy of the predicted probabilities."""

    def __init__(self, ignore_label=None):
        super().__init__()
        if ignore_label is not None and not isinstance(ignore_label, int):
            raise TypeError(
                f"For 'Perplexity', the 'ignore_label' must be int or None, but got {type(ignore_label).__name__}."
            )
        self.ignore_label = ignore_label
        self.clear()

    def clear(self):
        self._sum_metric, self._num_inst = 0.0, 0

    @rearrange_inputs
    def update(self, *inputs):
        preds, labels = self._take(inputs, 2)
        if labels.size != preds.size // preds.shape[-1]:
            raise RuntimeError(f"For 'Perplexity.update', each prediction needs a label, but the shapes are {preds.shape} and {labels.shape}.")
        labels = labels.reshape(-1).astype(int)
        picked = preds.reshape(-1, preds.shape[-1])[np.arange(labels.size), labels].astype(np.float64)
        count = labels.size
        if self.ignore_label is not None:
            ignored = labels == self.ignore_label
            count -= int(ignored.sum())
            picked = np.where(ignored, 1.0, picked)
        self._sum_metric -= float(np.log(np.maximum(1e-10, picked)).sum())
        self._num_inst += count

    def eval(self):
        return math.exp(self._sum_metric / self._num_inst) if self._num_inst else self._nothing()


class BleuScore(Metric):
    """BLEU of candidates against references, lists of words."""

    def __init__(self, n_gram=4, smooth=False):
        super().__init__()
        if Validator.check_value_type("n_gram", n_gram, [int], "BleuScore") not in (1, 2, 3, 4):
            raise ValueError(f"For 'BleuScore', the 'n_gram' must be from 1 to 4, but got {n_gram}.")
        self.n_gram, self.smooth = n_gram, Validator.check_value_type("smooth", smooth, [bool], "BleuScore")
        self.clear()

    def clear(self):
        self._hits, self._all = np.zeros(self.n_gram), np.zeros(self.n_gram)
        self._candidate_length = self._reference_length = 0

    def _ngrams(self, words):
        return Counter(tuple(words[j : j + i]) for i in range(1, self.n_gram + 1) for j in range(len(words) - i + 1))

    @rearrange_inputs
    def update(self, *inputs):
        candidates, references = inputs
        if len(candidates) != len(references):
            raise ValueError(
                f"For 'BleuScore.update', there must be references for each candidate, but got {len(candidates)} and {len(references)}."
            )
        for candidate, some in zip(candidates, references):
            self._candidate_length += len(candidate)
            lengths = [len(each) for each in some]
            self._reference_length += min(lengths, key=lambda length: abs(len(candidate) - length))
            counts, most = self._ngrams(candidate), Counter()
            for each in some:
                most |= self._ngrams(each)
            for gram, count in (counts & most).items():
                self._hits[len(gram) - 1] += count
            for gram, count in counts.items():
                self._all[len(gram) - 1] += count

    def eval(self):
        if not self._candidate_length:
            self._nothing()
        if self._hits.min() == 0.0:
            return np.array(0.0)
        hits, every = (self._hits + 1, self._all + 1) if self.smooth else (self._hits, self._all)
        mean = math.exp(np.log(hits / every).mean())
        short = self._candidate_length <= self._reference_length
        return (math.exp(1 - self._reference_length / self._candidate_length) if short else 1.0) * mean
