"""Image transforms: shapes, values that are told, and errors by class."""

import mindspore.dataset.vision.c_transforms as vision
import numpy as np
import pytest

IMAGE = np.random.RandomState(0).randint(0, 255, (20, 24, 3)).astype(np.uint8)


@pytest.mark.parametrize("name, arguments, shape", [
    ("Affine", (15, (0.1, 0.0), 1.2, 5), (20, 24, 3)), ("RandomAffine", (15, (0.1, 0.1), (0.9, 1.1), 5), (20, 24, 3)),
    ("PadToSize", ((24, 30),), (24, 30, 3)), ("ResizedCrop", (1, 2, 10, 12, (5, 6)), (5, 6, 3)), ("RandomColor", (), (20, 24, 3)),
    ("RandomSharpness", (), (20, 24, 3)), ("RandomPosterize", ((2, 5),), (20, 24, 3)), ("RandomSolarize", ((0, 100),), (20, 24, 3)),
    ("RandomLighting", (), (20, 24, 3)), ("RandomInvert", (1.0,), (20, 24, 3)), ("RandomEqualize", (1.0,), (20, 24, 3)),
    ("RandomAutoContrast", (), (20, 24, 3)), ("RandomAdjustSharpness", (2.0, 1.0), (20, 24, 3)), ("AdjustBrightness", (0.5,), (20, 24, 3)),
    ("UniformAugment", ([vision.Invert(), vision.Equalize()], 2), (20, 24, 3)),
    ("RandomSelectSubpolicy", ([[(vision.Invert(), 1.0)], [(vision.Equalize(), 0.5)]],), (20, 24, 3)),
])  # fmt: skip
def test_shapes(name, arguments, shape):
    made = getattr(vision, name)(*arguments)(IMAGE)
    assert made.shape == shape and made.dtype == np.uint8


def test_values():
    still = vision.Affine(0, (0, 0), 1.0, 0)(IMAGE)
    assert np.array_equal(still, IMAGE)
    assert np.array_equal(vision.Affine(0, (0.25, 0), 1.0, 0)(IMAGE)[:, 6:], IMAGE[:, :-6])
    assert np.array_equal(vision.Posterize(3)(IMAGE), IMAGE & 0b11100000)
    assert np.array_equal(vision.Solarize(128)(IMAGE), np.where(IMAGE >= 128, 255 - IMAGE, IMAGE))
    assert np.array_equal(vision.AdjustSharpness(1.0)(IMAGE), IMAGE) and np.array_equal(vision.RandomInvert(0.0)(IMAGE), IMAGE)
    parts = vision.FiveCrop((6, 8)).apply(IMAGE)
    assert len(parts) == 5 and np.array_equal(parts[3], IMAGE[-6:, -8:]) and len(vision.TenCrop(6).apply(IMAGE)) == 10
    assert [each.shape for each in vision.SlicePatches(2, 2).apply(IMAGE)] == [(10, 12, 3)] * 4


@pytest.mark.parametrize("error, make", [
    (ValueError, lambda: vision.RandomAffine(-1)), (ValueError, lambda: vision.RandomColor((1.0, 0.5))), (TypeError, lambda: vision.RandomColor(1.0)),
    (ValueError, lambda: vision.RandomPosterize((0, 9))), (TypeError, lambda: vision.RandomPosterize((1.5, 2))), (ValueError, lambda: vision.RandomSolarize((-1, 5))),
    (TypeError, lambda: vision.RandomLighting("a")), (ValueError, lambda: vision.RandomInvert(1.5)), (TypeError, lambda: vision.Decode(3)),
    (ValueError, lambda: vision.UniformAugment([vision.Invert()], 2)),
])  # fmt: skip
def test_errors(error, make):
    with pytest.raises(error):
        make()


def test_values_as_mindspore_gives_them():
    """Numbers of the original on the same image: its first pixel."""
    for transform, wanted in (
        (vision.Equalize(), [179, 43, 120]), (vision.AutoContrast(10.0, [10, 20]), [188, 26, 115]), (vision.GaussianBlur((3, 5)), [112, 108, 185]),
        (vision.RandomSolarize((100, 100)), [83, 47, 138]), (vision.AdjustGamma(2.0), [116, 9, 54]), (vision.Rotate(30, fill_value=(1, 2, 3)), [3, 2, 1]),
    ):  # fmt: skip
        assert np.abs(transform(IMAGE)[0, 0].astype(int) - wanted).max() <= 1, type(transform).__name__
