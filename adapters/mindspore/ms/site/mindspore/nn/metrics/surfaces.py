"""Metrics of the distances between the edges of two masks."""

import numpy as np
from cairn.ms.refusal import Wrong
from mindspore._checkparam import Rel, Validator
from mindspore.nn.metrics.metric import Metric, rearrange_inputs

_METRICS = ("euclidean", "chessboard", "taxicab")


def _edges(mask):
    """Places of the mask that touch a place outside of it along an axis."""
    inside = mask.copy()
    padded = np.pad(mask, 1)
    middle = tuple(slice(1, -1) for _ in mask.shape)
    for axis in range(mask.ndim):
        for step in (-1, 1):
            inside &= np.roll(padded, step, axis)[middle]
    return np.argwhere(mask & ~inside)


def _distances(metric, source, target):
    """From each place of the source the distance to the nearest of the target."""
    if not len(target) or not len(source):
        return np.full(len(source), np.inf)
    apart = np.abs(source[:, None] - target)
    sizes = {
        "euclidean": lambda: np.sqrt((apart**2).sum(-1)),
        "chessboard": lambda: apart.max(-1),
        "taxicab": lambda: apart.sum(-1),
    }
    return sizes[metric]().min(1)


class _Surface(Metric):
    def __init__(self, distance_metric):
        super().__init__()
        self.distance_metric = Validator.check_string(distance_metric, _METRICS, "distance_metric", type(self).__name__)
        self.clear()

    def clear(self):
        """Forgets what was seen."""
        self._found = None

    @rearrange_inputs
    def update(self, *inputs):
        """(prediction, label, index of the class)"""
        name = type(self).__name__
        if len(inputs) != 3:
            raise ValueError(
                f"For '{name}.update', it needs 3 inputs (predicted value, true value, label index), but got {len(inputs)}."
            )
        if not isinstance(inputs[2], (int, float)):
            raise Wrong(f"For '{name}.update', the label index must be a number, but got {type(inputs[2]).__name__}.")
        masks = [self._convert_data(each) == inputs[2] for each in inputs[:2]]
        if masks[0].size == 0 or masks[0].shape != masks[1].shape:
            raise ValueError(
                f"For '{name}.update', the shapes must be equal, but got {masks[0].shape} and {masks[1].shape}."
            )
        self._found = [_edges(mask) for mask in masks]

    def _both(self):
        if self._found is None:
            self._nothing()
        prediction, label = self._found
        return _distances(self.distance_metric, prediction, label), _distances(self.distance_metric, label, prediction)


class HausdorffDistance(_Surface):
    """The largest distance from one edge to the other, or a percentile."""

    def __init__(self, distance_metric="euclidean", percentile=None, directed=False, crop=True):
        super().__init__(distance_metric)
        self.percentile = (
            None
            if percentile is None
            else Validator.check_float_range(float(percentile), 0, 100, Rel.INC_BOTH, "percentile", "Hausdorff")
        )
        self.directed, self.crop = Validator.check_bool(directed, "directed"), Validator.check_bool(crop, "crop")

    def eval(self):
        """The distance."""
        sizes = [np.percentile(each, self.percentile) if self.percentile else each.max() for each in self._both()]
        return sizes[0] if self.directed else max(sizes)


class MeanSurfaceDistance(_Surface):
    """Mean distance from one edge to the other."""

    def __init__(self, symmetric=False, distance_metric="euclidean"):
        self.symmetric = Validator.check_bool(symmetric, "symmetric")
        super().__init__(distance_metric)

    def eval(self):
        """The distance."""
        there, back = self._both()
        return (there.mean() + back.mean()) / 2 if self.symmetric else there.mean()


class RootMeanSquareDistance(_Surface):
    """Mean squared distance from one edge to the other; of both the root."""

    def __init__(self, symmetric=False, distance_metric="euclidean"):
        self.symmetric = Validator.check_bool(symmetric, "symmetric")
        super().__init__(distance_metric)

    def eval(self):
        """The distance."""
        there, back = ((each**2).mean() for each in self._both())
        return np.sqrt((there + back) / 2) if self.symmetric else there
