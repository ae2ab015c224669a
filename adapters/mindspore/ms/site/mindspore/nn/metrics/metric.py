"""Metric: clear, update, eval."""

import abc
import functools

import numpy as np
from mindspore.common.tensor import Tensor


def rearrange_inputs(func):
    """Decorates update(): inputs in the order of set_indexes()."""

    @functools.wraps(func)
    def update(self, *inputs):
        indexes = self.indexes
        return func(self, *(inputs if not indexes else [inputs[i] for i in indexes]))

    return update


class Metric(abc.ABC):
    """The base of metrics."""

    def __init__(self):
        self._indexes = None

    def __call__(self, *inputs):
        """The result for these inputs alone."""
        self.clear()
        self.update(*inputs)
        return self.eval()

    @property
    def indexes(self):
        return getattr(self, "_indexes", None)

    def set_indexes(self, indexes):
        """Which inputs update() takes, in which order. Returns the metric."""
        if not isinstance(indexes, list) or not all(isinstance(each, int) for each in indexes):
            raise ValueError(
                "For 'set_indexes', the argument 'indexes' must be a list and all its elements must be int, "
                f"please check whether it is correct. It is {indexes}."
            )
        self._indexes = indexes
        return self

    def _convert_data(self, data):
        """An array of a Tensor, list or array."""
        if isinstance(data, Tensor):
            return data.asnumpy()
        if isinstance(data, list):
            return np.array(data)
        if isinstance(data, np.ndarray):
            return data
        raise TypeError(
            f"For '{type(self).__name__}', the inputs must be Tensor, list or numpy.ndarray, but got {type(data).__name__}."
        )

    def _check_onehot_data(self, data):
        """Whether rows hold one 1 and zeros."""
        if data.ndim > 1 and np.equal(data**2, data).all():
            return bool((data.sum(axis=1) == 1).all())
        return False

    def _binary_clf_curve(self, preds, target, sample_weights=None, pos_label=1):
        """(false positives, true positives, thresholds) in falling order of score."""
        order = np.argsort(preds, kind="stable")[::-1]
        preds, target = preds[order], (target[order] == pos_label).astype(np.float64)
        weight = 1.0 if sample_weights is None else np.asarray(sample_weights)[order]
        ends = np.r_[np.nonzero(np.diff(preds))[0], target.size - 1]
        true = np.cumsum(target * weight)[ends]
        false = np.cumsum((1 - target) * weight)[ends] if sample_weights is not None else 1 + ends - true
        return false, true, preds[ends]

    def _take(self, inputs, count):
        if len(inputs) != count:
            raise ValueError(f"For '{type(self).__name__}.update', {count} inputs are needed, but got {len(inputs)}.")
        return [self._convert_data(each) for each in inputs]

    def _nothing(self):
        raise RuntimeError(
            f"The '{type(self).__name__}' can not be evaluated, because the number of samples is 0, update() must be called before."
        )

    @abc.abstractmethod
    def clear(self):
        raise NotImplementedError("Must define clear function to use this base class")

    @abc.abstractmethod
    def update(self, *inputs):
        raise NotImplementedError("Must define update function to use this base class")

    @abc.abstractmethod
    def eval(self):
        raise NotImplementedError("Must define eval function to use this base class")


class EvaluationBase(Metric):
    """The base of metrics of classification or multilabel problems."""

    def __init__(self, eval_type):
        super().__init__()
        if eval_type not in ("classification", "multilabel"):
            raise TypeError(
                f"For '{type(self).__name__}', the 'eval_type' must be 'classification' or 'multilabel', but got {eval_type}."
            )
        self._type = eval_type

    def _check_shape(self, y_pred, y):
        if self._type == "classification":
            if y_pred.ndim != y.ndim + 1:
                raise ValueError(
                    f"Classification case, dims of y_pred equal dims of y add 1, but got y_pred: {y_pred.ndim} dims and y: {y.ndim} dims."
                )
            if y.shape != (y_pred.shape[0],) + y_pred.shape[2:]:
                raise ValueError(
                    f"Classification case, y_pred shape and y shape can not match. y shape is {y.shape}, y_pred shape is {y_pred.shape}."
                )
        elif y_pred.ndim != y.ndim or y_pred.shape != y.shape:
            raise ValueError(
                f"{self._type} case, y_pred shape must equal to y shape, but got y_pred: {y_pred.shape} and y: {y.shape}."
            )

    def _check_value(self, y_pred, y):
        if self._type != "classification" and not (np.equal(y_pred**2, y_pred).all() and np.equal(y**2, y).all()):
            raise ValueError("For multilabel case, all the values of y_pred and y must be 0 or 1.")

    def _checked(self, y_pred, y):
        if self._type == "classification" and y_pred.ndim == y.ndim and self._check_onehot_data(y):
            y = y.argmax(axis=1)
        self._check_shape(y_pred, y)
        self._check_value(y_pred, y)
        known = getattr(self, "_class_num", 0)
        if known and known != y_pred.shape[1]:
            raise ValueError(f"The number of classes is {known} before, but got {y_pred.shape[1]}.")
        self._class_num = y_pred.shape[1]
        return y_pred, y
