"""Image transforms that take boxes along, and policies: by their definitions, repeatable, refused by class."""

import mindspore.dataset as ds
import mindspore.dataset.vision as vision
import numpy as np
import pytest

IMAGE = np.random.RandomState(0).randint(0, 255, (20, 24, 3)).astype(np.uint8)
BOXES = np.array([[2, 3, 5, 6, 1], [10, 8, 14, 12, 2], [0, 0, 24, 20, 3]], np.float32)


def marked(box):
    """An image whose only light part is the box."""
    image = np.zeros((20, 24, 1), np.uint8)
    x, y, width, height = map(int, box[:4])
    image[y : y + height, x : x + width] = 255
    return image


def light(image):
    """The box of an image's light part."""
    rows, columns = np.nonzero(image[..., 0] > 127)
    return [columns.min(), rows.min(), np.ptp(columns) + 1, np.ptp(rows) + 1]


@pytest.mark.parametrize("make", [
    lambda: vision.RandomHorizontalFlipWithBBox(1.0), lambda: vision.RandomVerticalFlipWithBBox(1.0), lambda: vision.ResizeWithBBox((40, 48)),
    lambda: vision.RandomResizeWithBBox((40, 48)), lambda: vision.RandomCropWithBBox((12, 14)), lambda: vision.RandomCropWithBBox((30, 30), 4, True),
    lambda: vision.RandomResizedCropWithBBox((36, 42), (0.9, 1.0)),
])  # fmt: skip
def test_boxes_stay_about_what_they_hold(make):
    operation, seen = make(), 0
    for box in BOXES[:2]:
        for _ in range(5):
            image, boxes = operation(marked(box), box[None])
            assert boxes.dtype == np.float32 and boxes.shape == (1, 5)
            if not boxes[0, :4].any():
                assert not (image > 127).any()
                continue
            seen += 1
            assert np.abs(boxes[0, :4] - light(image)).max() <= 1.5 and boxes[0, 4] == box[4]
    assert seen


def test_a_crop_drops_the_boxes_that_it_does_not_show():
    operation = vision.RandomCropWithBBox((4, 4), (0, 0, 100, 100))
    for _ in range(20):
        _, boxes = operation(IMAGE, BOXES[:1])
        assert ((boxes[:, :2] + boxes[:, 2:4] <= 4).all() and (boxes[:, :2] >= 0).all()) or not boxes.any()


def test_an_augmentation_of_boxes_leaves_the_rest():
    image, boxes = vision.BoundingBoxAugment(vision.Invert(), 1.0)(IMAGE, BOXES[:1])
    expected = IMAGE.copy()
    expected[3:9, 2:7] = 255 - expected[3:9, 2:7]
    np.testing.assert_array_equal(image, expected)
    np.testing.assert_array_equal(boxes, BOXES[:1])
    np.testing.assert_array_equal(vision.BoundingBoxAugment(vision.Invert(), 0.0)(IMAGE, BOXES)[0], IMAGE)


@pytest.mark.parametrize("boxes", [BOXES[0], BOXES[:, :3], BOXES.astype(np.float64), BOXES + np.float32([20, 0, 0, 0, 0]), -BOXES])
def test_boxes_of_another_form_or_out_of_the_image_are_refused(boxes):
    with pytest.raises(RuntimeError, match="RandomHorizontalFlipWithBBox"):
        vision.RandomHorizontalFlipWithBBox(1.0)(IMAGE, boxes)


POLICIES = [lambda policy=policy: vision.AutoAugment(policy) for policy in vision.AutoAugmentPolicy]
POLICIES += [vision.RandAugment, lambda: vision.RandAugment(4, 20, fill_value=(1, 2, 3)), vision.TrivialAugmentWide,
             lambda: vision.RandomPerspective(0.6, 1.0)]  # fmt: skip


@pytest.mark.parametrize("make", POLICIES)
def test_policies_change_images_of_the_same_form_and_are_repeatable(make):
    def made(seed):
        ds.config.set_seed(seed)
        data = ds.NumpySlicesDataset([IMAGE] * 60, ["image"], shuffle=False).map(make(), ["image"])
        return [row["image"].asnumpy() for row in data.create_dict_iterator(num_epochs=1)]

    first, again, other = made(3), made(3), made(4)
    assert all(each.shape == IMAGE.shape and each.dtype == np.uint8 for each in first)
    assert all(np.array_equal(a, b) for a, b in zip(first, again)) and not all(np.array_equal(a, b) for a, b in zip(first, other))
    assert len({each.tobytes() for each in first}) > 5


def test_a_randaugment_of_no_magnitude_only_knows_what_has_none():
    whole = {IMAGE.tobytes(), *(operation(IMAGE).tobytes() for operation in (vision.AutoContrast(), vision.Equalize()))}
    operation = vision.RandAugment(1, 0)
    # a magnitude of 0 is the identity but for what has no magnitude; posterize by 8 bits, solarize from 255 and factors of 1 are identities
    assert {operation(IMAGE).tobytes() for _ in range(200)} <= whole | {vision.Solarize(255)(IMAGE).tobytes()}


def test_a_linear_transformation_is_a_product():
    matrix, mean = np.random.RandomState(1).randn(12, 12), np.arange(12.0)
    image = np.random.RandomState(2).rand(3, 2, 2)
    np.testing.assert_allclose(vision.LinearTransformation(matrix, mean)(image), ((image.ravel() - mean) @ matrix).reshape(3, 2, 2))
    with pytest.raises(ValueError, match="not compatible"):
        vision.LinearTransformation(matrix, mean)(IMAGE)


@pytest.mark.parametrize("error, make", [
    (TypeError, lambda: vision.ConvertColor("RGB2GRAY")), (RuntimeError, lambda: vision.ConvertColor(vision.ConvertMode.COLOR_GRAY2RGB)(IMAGE)),
    (RuntimeError, lambda: vision.ConvertColor(vision.ConvertMode.COLOR_RGB2GRAY)(IMAGE[..., 0])), (TypeError, lambda: vision.RgbToHsv(1)),
    (TypeError, lambda: vision.RgbToHsv()(IMAGE)), (TypeError, lambda: vision.AutoAugment("imagenet")), (ValueError, lambda: vision.RandAugment(2, 31)),
    (ValueError, lambda: vision.RandomPerspective(1.5)), (TypeError, lambda: vision.SlicePatches(2, 2, 1)),
    (RuntimeError, lambda: vision.SlicePatches(30, 2)(IMAGE)), (RuntimeError, lambda: vision.Erase(0, 0, 21, 3)(IMAGE)),
    (ValueError, lambda: vision.Erase(0, 0, 2, 3, 300)), (TypeError, lambda: vision.BoundingBoxAugment(3)), (ValueError, lambda: vision.AdjustHue(0.6)),
    (RuntimeError, lambda: vision.Perspective([[0, 0]] * 4, [[0, 0], [1, 0], [1, 1], [0, 1]])(IMAGE)),
    (TypeError, lambda: vision.Perspective([[0, 0]] * 3, [[0, 0]] * 3)), (TypeError, lambda: vision.LinearTransformation([1], np.ones(1))),
])  # fmt: skip
def test_errors(error, make):
    with pytest.raises(error):
        make()


def test_transforms_leave_what_they_were_given_alone():
    for image in (IMAGE, (IMAGE / 255).astype(np.float32), IMAGE / 255):
        before = image.copy()
        for operation in (vision.AdjustGamma(2.0, 0.5), vision.AdjustBrightness(0.5), vision.Invert(), vision.AdjustSharpness(0.5), vision.Solarize(3),
                          vision.Erase(1, 1, 3, 3)):  # fmt: skip
            operation(image)
            np.testing.assert_array_equal(image, before, type(operation).__name__)
