"""Image transforms that take boxes along: columns image and boxes, whose rows begin with x, y, width, height as float32."""

import numpy as np

from mindspore.dataset.transforms.transforms import Transform
from mindspore.dataset.vision import geometry
from mindspore.dataset.vision.pixels import cut, image_of, number, probability
from mindspore.dataset.vision.utils import Border, Inter

__all__ = ["BoundingBoxAugment", "RandomCropWithBBox", "RandomHorizontalFlipWithBBox", "RandomResizeWithBBox", "RandomResizedCropWithBBox",
           "RandomVerticalFlipWithBBox", "ResizeWithBBox"]  # fmt: skip


class _WithBoxes(Transform):
    one_column = False

    def __call__(self, image, boxes):
        who, image, boxes = type(self).__name__, image_of(image, type(self).__name__), np.array(boxes)
        if boxes.ndim != 2 or boxes.shape[1] < 4:
            raise RuntimeError(f"{who}: expects boxes of shape <N, at least 4>, found {list(boxes.shape)}.")
        if boxes.dtype != np.float32:
            raise RuntimeError(f"{who}: expects boxes of float32, found {boxes.dtype}.")
        x, y, width, height = boxes[:, :4].T
        if (boxes[:, :4] < 0).any() or (x + width > image.shape[1]).any() or (y + height > image.shape[0]).any():
            raise RuntimeError(f"{who}: a box lies out of the image of shape {list(image.shape)}.")
        return self.apply(image, boxes)


def _within(boxes, top, left, height, width):
    """The boxes that a part of the image shows, cut by it; one of zeros where it shows none."""
    low = np.maximum(boxes[:, :2], [left, top])
    high = np.minimum(boxes[:, :2] + boxes[:, 2:4], [left + width, top + height])
    seen = (high > low).all(1)
    if not seen.any():
        return np.zeros((1, boxes.shape[1]), boxes.dtype)
    made = boxes[seen]
    made[:, :2], made[:, 2:4] = (low - [left, top])[seen], (high - low)[seen]
    return made


def _scaled(boxes, before, after):
    boxes[:, [0, 2]] *= np.float32(after[1] / before[1])
    boxes[:, [1, 3]] *= np.float32(after[0] / before[0])
    return boxes


class _FlipWithBoxes(_WithBoxes):
    def __init__(self, prob=0.5):
        self.prob = probability(prob)

    def apply(self, image, boxes):
        if self.rng.random_sample() < self.prob:
            boxes[:, self.axis] = image.shape[1 - self.axis] - boxes[:, self.axis] - boxes[:, self.axis + 2]
            image = np.flip(image, 1 - self.axis)
        return image, boxes


class RandomHorizontalFlipWithBBox(_FlipWithBoxes):
    """Left for right, with a probability."""

    axis = 0


class RandomVerticalFlipWithBBox(_FlipWithBoxes):
    """Top for bottom, with a probability."""

    axis = 1


class ResizeWithBBox(_WithBoxes):
    """Resize."""

    def __init__(self, size, interpolation=Inter.LINEAR):
        self.resize = geometry.Resize(size, interpolation)

    def apply(self, image, boxes):
        made = self.resize(image)
        return made, _scaled(boxes, image.shape, made.shape)


class RandomResizeWithBBox(ResizeWithBBox):
    """Resize by a random interpolation."""

    def __init__(self, size):
        self.resizes = [geometry.Resize(size, inter) for inter in (Inter.NEAREST, Inter.LINEAR, Inter.CUBIC, Inter.AREA)]

    def apply(self, image, boxes):
        self.resize = self.resizes[self.rng.randint(4)]
        return super().apply(image, boxes)


class RandomCropWithBBox(_WithBoxes):
    """A part at a random place, of the image with a border."""

    def __init__(self, size, padding=None, pad_if_needed=False, fill_value=0, padding_mode=Border.CONSTANT):
        self.crop = geometry.RandomCrop(size, padding, pad_if_needed, fill_value, padding_mode)
        self.fill = fill_value, padding_mode

    def _padded(self, image, boxes, sides):
        boxes[:, :2] += np.float32(sides[:2])
        return (geometry.Pad(tuple(sides), *self.fill)(image) if any(sides) else image), boxes

    def apply(self, image, boxes):
        height, width = self.crop.pair
        image, boxes = self._padded(image, boxes, self.crop.sides)
        if self.crop.pad_if_needed:
            across, down = max(width - image.shape[1], 0), max(height - image.shape[0], 0)
            image, boxes = self._padded(image, boxes, (across, down, across, down))
        free = image.shape[0] - height, image.shape[1] - width
        if min(free) < 0:
            raise RuntimeError(f"RandomCropWithBBox: the crop size {list(self.crop.pair)} is larger than the image of shape "
                               f"{list(image.shape)}.")  # fmt: skip
        top, left = (self.rng.randint(each + 1) for each in free)
        return cut(image, top, left, height, width, "RandomCropWithBBox"), _within(boxes, top, left, height, width)


class RandomResizedCropWithBBox(_WithBoxes):
    """A part of random area and shape, resized."""

    def __init__(self, size, scale=(0.08, 1.0), ratio=(3.0 / 4.0, 4.0 / 3.0), interpolation=Inter.BILINEAR, max_attempts=10):
        self.crop = geometry.RandomResizedCrop(size, scale, ratio, interpolation, max_attempts)

    def _box(self, rows, columns):
        crop = self.crop
        for _ in range(crop.max_attempts):
            area = self.rng.uniform(*crop.scale) * rows * columns
            shape = np.exp(self.rng.uniform(*np.log(crop.ratio)))
            width, height = int(round((area * shape) ** 0.5)), int(round((area / shape) ** 0.5))
            if 0 < width <= columns and 0 < height <= rows:
                return self.rng.randint(rows - height + 1), self.rng.randint(columns - width + 1), height, width
        width = min(columns, max(int(round(rows * crop.ratio[1])), 1))
        height = min(rows, max(int(round(columns / crop.ratio[0])), 1))
        return (rows - height) // 2, (columns - width) // 2, height, width

    def apply(self, image, boxes):
        box = self._box(*image.shape[:2])
        part, seen = cut(image, *box, "RandomResizedCropWithBBox"), _within(boxes, *box)
        return geometry.Resize(self.crop.pair, self.crop.inter)(part), _scaled(seen, part.shape, self.crop.pair)


class BoundingBoxAugment(_WithBoxes):
    """A transform of what a share of the boxes hold, each of which keeps its size."""

    def __init__(self, transform, ratio=0.3):
        if not callable(transform):
            raise TypeError(f"Argument transform with value {transform} is not of type [<class 'Callable'>], but got {type(transform)}.")
        self.transform, self.ratio = transform, number(ratio, "ratio", 0, 1)

    def apply(self, image, boxes):
        image = np.array(image)
        count = max(int(len(boxes) * self.ratio), 1) if self.ratio else 0
        for place in self.rng.permutation(len(boxes))[:count]:
            left, top, width, height = boxes[place, :4].astype(int)
            part = image[top : top + height, left : left + width]
            if part.size:
                made = np.asarray(self.transform(part))
                part[:] = made if made.shape == part.shape else geometry.Resize((int(height), int(width)))(made)
        return image, boxes
