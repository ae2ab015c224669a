"""Arguments and images that transforms of images refuse, and batches whose size a function tells."""

import numpy as np
import pytest

import mindspore.dataset as ds
import mindspore.dataset.vision as vision
from mindspore.dataset.vision import Border, Inter, SliceMode

IMAGE = np.arange(6 * 5 * 3, dtype=np.uint8).reshape(6, 5, 3)


@pytest.mark.parametrize("offset, top, left", [(None, 2, 1), ((), 2, 1), (1, 1, 1), ((3, 0), 3, 0)])
def test_images_are_padded_to_a_size(offset, top, left):
    made = vision.PadToSize((10, 8), offset, 7)(IMAGE)
    assert made.shape == (10, 8, 3) and (made[top : top + 6, left : left + 5] == IMAGE).all() and (made == 7).sum() >= (80 - 30) * 3
    assert (vision.PadToSize(9, 0, padding_mode=Border.EDGE)(IMAGE)[6:, :5] == IMAGE[-1]).all()


@pytest.mark.parametrize("call, error, words", [
    (lambda: vision.PadToSize(2.5), TypeError, "Argument size with value 2.5 is not of type"),
    (lambda: vision.PadToSize((1, 2, 3)), ValueError, "The size must be a sequence of length 2."),
    (lambda: vision.PadToSize((0, 5)), ValueError, "Input size[0] is not within the required interval of [1, 2147483647]."),
    (lambda: vision.PadToSize(9, (1,)), ValueError, "The offset must be empty or a sequence of length 2."),
    (lambda: vision.PadToSize(9, "1"), TypeError, "Argument offset with value 1 is not of type"),
    (lambda: vision.PadToSize(9, fill_value=(1, 2.0, 3)), TypeError, "Argument fill_value[1] with value 2.0 is not of type [<class 'int'>]"),
    (lambda: vision.PadToSize(4)(IMAGE), RuntimeError, "target size to pad should be no less than the original image size"),
    (lambda: vision.PadToSize(7, 3)(IMAGE), RuntimeError, "sum of offset and original image size should be no more than the target size"),
    (lambda: vision.PadToSize(9)(np.ones((2, 2, 4))), RuntimeError, "number of channels for input tensor can only be 1 or 3"),
    (lambda: vision.PadToSize(9)(np.ones(3)), RuntimeError, "input tensor is not in shape of <H,W> or <H,W,C>"),
    (lambda: vision.Crop((1,), 2), TypeError, "Coordinates should be a list/tuple (y, x) of length 2."),
    (lambda: vision.Crop((-1, 0), 2), ValueError, "Input coordinates[0] is not within the required interval of [0, 2147483647]."),
    (lambda: vision.Crop((0, 0), (1, 2, 3)), TypeError, "Size should be a single integer or a list/tuple (h, w) of length 2."),
    (lambda: vision.CenterCrop(2**25), ValueError, "Input size is not within the required interval of [1, 16777216]."),
    (lambda: vision.SlicePatches(2, 2, SliceMode.PAD, 256), ValueError, "Input fill_value is not within the required interval of [0, 255]."),
    (lambda: vision.AutoAugment()(IMAGE[..., 0]), RuntimeError, "AutoAugment: the dimension of image tensor does not match"),
    (lambda: vision.RandAugment()(IMAGE[..., :2]), RuntimeError, "RandAugment: the channel of image tensor does not match"),
    (lambda: vision.TrivialAugmentWide(31, Inter.NEAREST)(IMAGE.astype(np.int32)), RuntimeError, "TrivialAugmentWide: the data type of image"),
])  # fmt: skip
def test_refusals(call, error, words):
    with pytest.raises(error) as raised:
        call()
    assert words in str(raised.value)


def rows(size):
    data = ds.NumpySlicesDataset(list(range(7)), ["n"], shuffle=False).batch(size)
    return data, [row["n"].tolist() for row in data.create_dict_iterator(num_epochs=1, output_numpy=True)]


def test_a_function_tells_the_size_of_batches():
    data, made = rows(lambda info: info.get_batch_num() + 1)
    assert made == [[0], [1, 2], [3, 4, 5], [6]] and data.get_batch_size() == -1


@pytest.mark.parametrize("wrong", [0, -1, 1.0, "2", None])
def test_sizes_that_are_none(wrong):
    with pytest.raises(RuntimeError, match="the function should return an int greater than 0"):
        rows(lambda info: wrong)
