"""Image transforms: shapes, what MindSpore 2.10 makes of a picture (data/vision_cases.npz), errors by class."""

import pathlib

import mindspore.dataset.vision as vision
import numpy as np
import pytest
from mindspore.dataset import transforms

import vision_cases

HERE = pathlib.Path(__file__).resolve().parents[1]
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
    filled = vision.RandomErasing(1.0, value="random")(np.full((3, 20, 24), 9, np.float32))
    assert (filled != 9).any(axis=0).sum() > 5 and abs(filled[filled != 9].mean()) < 2
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


EXPECTED = HERE / "data" / "vision_cases.npz"


@pytest.mark.parametrize("name", vision_cases.cases(vision, transforms))
def test_pictures_are_those_of_mindspore(name):
    transform, most, share = vision_cases.cases(vision, transforms)[name]
    expected, made = np.load(EXPECTED)[name], np.asarray(transform(vision_cases.picture()))
    assert (made.shape, made.dtype) == (expected.shape, expected.dtype)
    apart = np.abs(made.astype(np.float64) - expected.astype(np.float64))
    assert apart.max() <= most and (apart > 0).mean() <= share


@pytest.mark.long
def test_the_expected_pictures_are_what_mindspore_makes(mindspore_itself, tmp_path):
    mindspore_itself(vision_cases.__file__, tmp_path / "made.npz")
    made, expected = np.load(tmp_path / "made.npz"), np.load(EXPECTED)
    assert sorted(made) == sorted(expected)
    for name in expected:
        np.testing.assert_array_equal(made[name], expected[name], name)


NATIVE = [vision.Rotate(3), vision.RandomRotation(10), vision.RandomAffine(5), vision.AutoContrast(), vision.RandomEqualize(), vision.RandomInvert(),
          vision.GaussianBlur(3), vision.CutOut(4), vision.RandomPosterize((3, 5)), vision.RandomSolarize(), vision.RandomLighting(),
          vision.RandomSharpness(), vision.AdjustGamma(2.0), vision.UniformAugment([vision.Invert(), vision.Equalize()], 1),
          vision.RandomSelectSubpolicy([[(vision.Invert(), 0.5)], [(vision.Equalize(), 1.0), (vision.Rotate(9), 0.3)]]),
          transforms.RandomApply([vision.Invert(), vision.HorizontalFlip()], 0.5), transforms.RandomChoice([vision.Invert(), vision.Equalize()]),
          transforms.RandomOrder([vision.Invert(), vision.HorizontalFlip()]), vision.ResizedCrop(1, 2, 9, 11, 7), vision.RandomResize((5, 6))]  # fmt: skip


@pytest.mark.parametrize("transform", NATIVE, ids=lambda each: type(each).__name__)
def test_workers_run_it_and_any_number_of_them_makes_the_same(transform):
    import mindspore.dataset as ds

    def made(workers):
        ds.config.set_num_parallel_workers(workers)
        ds.config.set_seed(7)
        rows = ds.NumpySlicesDataset(np.stack([vision_cases.picture()] * 12), ["image"], shuffle=False).map([transform], "image")
        return [row[0] for row in rows.create_tuple_iterator(num_epochs=1, output_numpy=True)]

    assert transform.native() is not None
    one, two = made(1), made(2)
    for first, second in zip(one, two):
        np.testing.assert_array_equal(first, second)


def test_a_mixture_draws_as_often_as_it_is_told():
    invert, picture = vision.Invert(), np.zeros((4, 4, 3), np.uint8)

    def share(transform, count=2000):
        native = transform.native()
        return np.mean([native.apply([picture], seed)[0][0, 0, 0] == 255 for seed in range(count)])

    assert abs(share(transforms.RandomApply([invert], 0.3)) - 0.3) < 0.04
    assert abs(share(transforms.RandomChoice([invert, vision.HorizontalFlip(), vision.VerticalFlip()])) - 1 / 3) < 0.04
    assert abs(share(vision.UniformAugment([invert, vision.HorizontalFlip()], 1)) - 0.25) < 0.04
    assert abs(share(vision.RandomInvert(0.7)) - 0.7) < 0.04
    assert share(transforms.RandomOrder([invert, vision.HorizontalFlip()])) == 1
