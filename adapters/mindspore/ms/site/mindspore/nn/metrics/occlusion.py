"""How much a classification rests on each place of what it sees."""

import itertools

import numpy as np
from mindspore._checkparam import Validator
from mindspore.common.tensor import Tensor
from mindspore.nn.cell import Cell
from mindspore.nn.metrics.metric import Metric, rearrange_inputs


class OcclusionSensitivity(Metric):
    """What the score of the label loses where the surroundings of a place are covered."""

    def __init__(self, pad_val=0.0, margin=2, n_batch=128, b_box=None):
        super().__init__()
        self.pad_val = Validator.check_value_type("pad_val", pad_val, [float])
        self.margin = Validator.check_value_type("margin", margin, [int, list])
        self.n_batch = Validator.check_value_type("n_batch", n_batch, [int])
        self.b_box = b_box if b_box is None else Validator.check_value_type("b_box", b_box, [list])
        self.clear()

    def clear(self):
        """Forgets what was seen."""
        self._found = None

    @rearrange_inputs
    def update(self, *inputs):
        """(model, one input of it, label)"""
        if len(inputs) != 3:
            raise ValueError(
                f"For 'OcclusionSensitivity.update', it needs 3 inputs (classification model, predicted value, label), but got {len(inputs)}."
            )
        model = Validator.check_value_type("model", inputs[0], [Cell])
        image, label = map(self._convert_data, inputs[1:])
        if image.shape[0] != 1:
            raise RuntimeError(f"For 'OcclusionSensitivity.update', the predicted value (input[1]) must be one, but got {image.shape[0]}.")
        if label.size != 1:
            raise RuntimeError(f"For 'OcclusionSensitivity.update', there must be one label (input[2]), but got {label.size}.")
        ranges = self._ranges(image.shape[1:])
        images = itertools.chain([image[0]], (self._covered(image[0], place) for place in itertools.product(*ranges)))
        scores = []
        while part := list(itertools.islice(images, self.n_batch)):
            scores.append(model(Tensor(np.stack(part))).asnumpy()[:, int(label.item())])
        scores = np.concatenate(scores)
        self._found = (scores[0] - scores[1:]).reshape([len(each) for each in ranges])

    def _ranges(self, shape):
        """The places along each axis; -1 in the box stands for the end of the axis."""
        if self.b_box is None:
            return [range(size) for size in shape]
        if len(self.b_box) != 2 * len(shape):
            raise ValueError(
                "For 'OcclusionSensitivity', the bounding box must contain upper and lower for all dimensions (except batch number), and the "
                f"length of 'b_box' must be {2 * len(shape)}, but got {len(self.b_box)}."
            )
        pairs = zip(self.b_box[::2], self.b_box[1::2], shape)
        return [range(max(first, 0), (size - 1 if last < 0 else last) + 1) for first, last, size in pairs]

    def _covered(self, image, place):
        margins = self.margin if isinstance(self.margin, list) else [self.margin] * image.ndim
        made = image.copy()
        made[tuple(slice(max(i - m, 0), i + m) for i, m in zip(place, margins[-image.ndim :]))] = self.pad_val
        return made

    def eval(self):
        """The loss of score of each place."""
        if self._found is None:
            raise RuntimeError("The 'OcclusionSensitivity' can not be evaluated before update() was called.")
        return self._found
