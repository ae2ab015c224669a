"""Pipelines, samplers, transforms of images and texts, and what they refuse."""

import numpy as np
import pytest
import mindspore as ms
import mindspore.dataset as ds
import mindspore.dataset.vision as vision
import mindspore.dataset.vision.c_transforms as C
import mindspore.dataset.vision.py_transforms as PV
import mindspore.dataset.transforms.c_transforms as TC
import mindspore.dataset.transforms.py_transforms as TP
import mindspore.dataset.transforms as T
import mindspore.dataset.text as text
from mindspore import Tensor


def gen(n=5):
    for i in range(n):
        yield (np.array([i], np.int32),)


class Source:

    def __init__(self, n=5):
        self.n = n

    def __getitem__(self, i):
        return (np.array([i, i + 1], np.float32), np.int32(i))

    def __len__(self):
        return self.n


def values(d, key="x"):
    return [row[key].tolist() for row in d.create_dict_iterator(num_epochs=1, output_numpy=True)]


def test_generator_and_source():
    assert values(ds.GeneratorDataset(gen, ["x"])) == [[i] for i in range(5)]
    d = ds.GeneratorDataset(Source(), ["x", "y"], shuffle=False)
    assert d.get_dataset_size() == 5 and d.output_shapes() == [[2], []] and (d.get_col_names() == ["x", "y"])
    assert d.output_types()[0] == np.float32
    d = ds.GeneratorDataset(Source(), ["x", "y"], sampler=ds.SequentialSampler(1, 3))
    assert values(d, "y") == [1, 2, 3]
    assert len(values(ds.GeneratorDataset(Source(), ["x", "y"], num_samples=2), "y")) == 2
    assert values(ds.GeneratorDataset(Source(), ["x", "y"], num_shards=2, shard_id=1, shuffle=False), "y") == [1, 3, 0]


def test_batch_repeat_skip_take_zip_concat_filter():
    d = ds.GeneratorDataset(gen, ["x"])
    assert values(d.batch(2)) == [[[0], [1]], [[2], [3]], [[4]]]
    assert values(d.batch(2, drop_remainder=True)) == [[[0], [1]], [[2], [3]]]
    assert len(values(d.repeat(3))) == 15 and values(d.skip(3)) == [[3], [4]] and (values(d.take(2)) == [[0], [1]])
    assert values(d.filter(lambda x: x % 2 == 0, ["x"])) == [[0], [2], [4]]
    assert values(d.concat(ds.GeneratorDataset(gen, ["x"]))) == [[i] for i in range(5)] * 2
    z = ds.zip((d, ds.GeneratorDataset(gen, ["y"])))
    assert z.get_col_names() == ["x", "y"]
    assert values(d.rename(["x"], ["z"]), "z") == [[i] for i in range(5)]
    assert ds.GeneratorDataset(Source(), ["x", "y"]).project(["y"]).get_col_names() == ["y"]
    a, b = ds.GeneratorDataset(Source(10), ["x", "y"]).split([0.8, 0.2], randomize=False)
    assert a.get_dataset_size() == 8 and b.get_dataset_size() == 2
    assert d.batch(2).get_batch_size() == 2 and d.repeat(2).get_repeat_count() == 2
    assert values(d.map(lambda x: x * 2, ["x"])) == [[2 * i] for i in range(5)]
    got = values(d.map([lambda x: (x, x + 1)], ["x"], ["a", "b"], column_order=["b", "a"]), "b")
    assert got[0] == [1]
    assert values(d.batch(2, per_batch_map=lambda col, info: ([c * 10 for c in col],), input_columns=["x"]))[0] == [[0], [10]]
    assert sorted(sum(values(d.shuffle(4)), [])) == [0, 1, 2, 3, 4]
    assert len(values(d.bucket_batch_by_length(["x"], [3], [2, 2], lambda x: int(x[0]) + 1))) == 3


def test_padded_batch():

    def vary():
        for i in range(1, 4):
            yield (np.arange(i),)

    d = ds.GeneratorDataset(vary, ["x"]).batch(3, pad_info={"x": ([4], -1)})
    assert values(d) == [[[0, -1, -1, -1], [0, 1, -1, -1], [0, 1, 2, -1]]]


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda d: d.batch(0), ValueError),
        (lambda d: d.batch("2"), TypeError),
        (lambda d: d.batch(2, drop_remainder=3), TypeError),
        (lambda d: d.repeat(0), ValueError),
        (lambda d: d.repeat("a"), TypeError),
        (lambda d: d.skip(-1), ValueError),
        (lambda d: d.take(0), ValueError),
        (lambda d: d.shuffle(0), ValueError),
        (lambda d: d.shuffle("a"), TypeError),
        (lambda d: d.map("x"), TypeError),
        (lambda d: d.rename("x", ["a", "b"]), ValueError),
        (lambda d: d.zip(3), TypeError),
        (lambda d: d.concat(3), TypeError),
        (lambda d: d.filter(3), TypeError),
        (lambda d: d.split([0.5, 0.6]), ValueError),
        (lambda d: d.split([]), (ValueError, TypeError)),
        (lambda d: ds.GeneratorDataset(3, ["x"]), TypeError),
        (lambda d: ds.GeneratorDataset(gen), ValueError),
        (lambda d: ds.GeneratorDataset(Source(), ["x"], num_shards=2), RuntimeError),
        (lambda d: ds.NumpySlicesDataset([1, 2], num_shards=2, shard_id=5), ValueError),
        (lambda d: ds.zip(d), TypeError),
        (lambda d: ds.SequentialSampler("a"), TypeError),
        (lambda d: ds.RandomSampler(replacement=3), TypeError),
        (lambda d: ds.DistributedSampler(2, 5), ValueError),
        (lambda d: ds.WeightedRandomSampler([]), (ValueError, RuntimeError)),
        (lambda d: ds.PKSampler(0), ValueError),
        (lambda d: ds.SubsetRandomSampler("a"), (TypeError, ValueError, RuntimeError)),
        (lambda d: d.create_dict_iterator(num_epochs=0), ValueError),
        (lambda d: d.create_dict_iterator(num_epochs="a"), TypeError),
        (lambda d: ds.config.set_seed(-1), ValueError),
        (lambda d: ds.config.set_num_parallel_workers(0), ValueError),
        (lambda d: ds.config.set_prefetch_size("a"), TypeError),
        (lambda d: ds.MnistDataset("/no/such"), (ValueError, RuntimeError)),
    ],
)
def test_refusals(call, error):
    with pytest.raises(error):
        call(ds.GeneratorDataset(gen, ["x"]))


def test_numpy_slices():
    d = ds.NumpySlicesDataset({"a": [1, 2], "b": [3, 4]}, shuffle=False)
    assert [(int(r["a"]), int(r["b"])) for r in d.create_dict_iterator(output_numpy=True, num_epochs=1)] == [(1, 3), (2, 4)]
    d = ds.NumpySlicesDataset(([1, 2], [3, 4]), ["p", "q"], shuffle=False)
    assert [t[0].asnumpy().item() for t in d.create_tuple_iterator(num_epochs=1)] == [1, 2]
    assert len(list(ds.PaddedDataset([{"x": np.array([1])}, {"x": np.array([2])}]).create_dict_iterator(num_epochs=1))) == 2
    assert d.get_dataset_size() == 2 and d.reset() is None


IMAGE = (np.arange(8 * 10 * 3) % 256).reshape(8, 10, 3).astype(np.uint8)
VISION = [
    ("resize", lambda: C.Resize((4, 5)), (4, 5, 3)),
    ("resize_int", lambda: C.Resize(4), (4, 5, 3)),
    ("crop", lambda: C.CenterCrop((4, 6)), (4, 6, 3)),
    ("random_crop", lambda: C.RandomCrop((4, 4)), (4, 4, 3)),
    ("random_crop_pad", lambda: C.RandomCrop((12, 12), padding=3), (12, 12, 3)),
    ("hflip", lambda: C.RandomHorizontalFlip(1.0), (8, 10, 3)),
    ("vflip", lambda: C.RandomVerticalFlip(0.0), (8, 10, 3)),
    ("hwc2chw", lambda: C.HWC2CHW(), (3, 8, 10)),
    ("normalize", lambda: C.Normalize([1.0, 2.0, 3.0], [2.0, 2.0, 2.0]), (8, 10, 3)),
    ("rescale", lambda: C.Rescale(1 / 255, 0.0), (8, 10, 3)),
    ("pad", lambda: C.Pad([1, 2, 3, 4]), (14, 14, 3)),
    ("resized_crop", lambda: C.RandomResizedCrop((5, 6)), (5, 6, 3)),
    ("color", lambda: C.RandomColorAdjust(0.4, 0.4, 0.4, 0.1), (8, 10, 3)),
    ("rotation", lambda: C.RandomRotation(30), (8, 10, 3)),
    ("affine", lambda: C.RandomAffine(15), (8, 10, 3)),
    ("sharp", lambda: C.RandomSharpness(), (8, 10, 3)),
    ("posterize", lambda: C.RandomPosterize(4), (8, 10, 3)),
    ("solarize", lambda: C.RandomSolarize((0, 100)), (8, 10, 3)),
    ("autocontrast", lambda: C.AutoContrast(), (8, 10, 3)),
    ("equalize", lambda: C.Equalize(), (8, 10, 3)),
    ("invert", lambda: C.Invert(), (8, 10, 3)),
    ("cutout", lambda: C.CutOut(3), (8, 10, 3)),
    ("blur", lambda: C.GaussianBlur(3), (8, 10, 3)),
    ("gray", lambda: C.ConvertColor(C.ConvertMode.COLOR_RGB2GRAY), (8, 10)),
    ("hflip_sure", lambda: C.HorizontalFlip(), (8, 10, 3)),
    ("vflip_sure", lambda: C.VerticalFlip(), (8, 10, 3)),
    ("rotate", lambda: C.Rotate(90, expand=True), (10, 8, 3)),
    ("crop_at", lambda: C.Crop((1, 2), (4, 5)), (4, 5, 3)),
    ("uniform", lambda: C.UniformAugment([C.HorizontalFlip(), C.Invert()], 1), (8, 10, 3)),
    ("swap", lambda: vision.HorizontalFlip(), (8, 10, 3)),
    ("gamma", lambda: vision.AdjustGamma(2.0), (8, 10, 3)),
    ("to_pil", lambda: T.Compose([vision.ToPIL(), vision.Grayscale(3), vision.ToTensor()]), (3, 8, 10)),
    ("erasing", lambda: T.Compose([vision.ToTensor(), vision.RandomErasing(1.0)]), (3, 8, 10)),
    ("random_apply", lambda: T.RandomApply([C.HorizontalFlip()], 1.0), (8, 10, 3)),
    ("random_choice", lambda: T.RandomChoice([C.HorizontalFlip()]), (8, 10, 3)),
    ("norm_pad", lambda: C.NormalizePad([1.0, 2.0, 3.0], [2.0, 2.0, 2.0], "float32"), (8, 10, 4)),
]


@pytest.mark.parametrize("name, make, shape", VISION, ids=[v[0] for v in VISION])
def test_vision(name, make, shape):
    d = ds.NumpySlicesDataset([IMAGE], ["image"]).map(make(), ["image"])
    row = next(d.create_dict_iterator(num_epochs=1, output_numpy=True))
    assert row["image"].shape == shape


@pytest.mark.parametrize(
    "make, error",
    [
        (lambda: C.Resize("a"), TypeError),
        (lambda: C.Resize(0), ValueError),
        (lambda: C.Resize((1, 2, 3)), TypeError),
        (lambda: C.CenterCrop(-1), ValueError),
        (lambda: C.RandomCrop((1, 2, 3)), TypeError),
        (lambda: C.RandomCrop(4, padding="a"), TypeError),
        (lambda: C.RandomHorizontalFlip(2.0), ValueError),
        (lambda: C.RandomHorizontalFlip("a"), TypeError),
        (lambda: C.Normalize([1.0, 2.0], [1.0, 2.0, 3.0]), ValueError),
        (lambda: C.Normalize([1.0], [0.0]), ValueError),
        (lambda: C.Normalize(1, 2), TypeError),
        (lambda: C.Rescale("a", 0), TypeError),
        (lambda: C.Pad(-1), ValueError),
        (lambda: C.RandomColorAdjust(brightness=-1.0), ValueError),
        (lambda: C.RandomColorAdjust(hue=(0.6, 0.7)), ValueError),
        (lambda: C.RandomRotation(-5), ValueError),
        (lambda: C.RandomRotation("a"), TypeError),
        (lambda: C.RandomResizedCrop(5, scale=(2, 1)), ValueError),
        (lambda: C.RandomResizedCrop(5, max_attempts=0), ValueError),
        (lambda: C.CutOut(0), ValueError),
        (lambda: C.RandomPosterize(9), ValueError),
        (lambda: C.RandomAffine(-1), ValueError),
        (lambda: C.GaussianBlur(4), ValueError),
        (lambda: C.UniformAugment([]), (ValueError, TypeError)),
        (lambda: C.RandomSharpness((2, 1)), ValueError),
        (lambda: C.RandomSelectSubpolicy([]), ValueError),
        (lambda: TC.OneHot("a"), TypeError),
        (lambda: TC.OneHot(0), ValueError),
        (lambda: TC.TypeCast("a"), TypeError),
        (lambda: TC.Fill([1, 2]), TypeError),
        (lambda: TC.PadEnd("a"), TypeError),
        (lambda: TC.Mask(3, 1), TypeError),
        (lambda: TC.Concatenate("a"), TypeError),
        (lambda: T.Compose([]), (ValueError, TypeError)),
        (lambda: T.Compose(3), TypeError),
        (lambda: T.RandomApply([C.Invert()], 2.0), ValueError),
    ],
)
def test_transform_refusals(make, error):
    with pytest.raises(error):
        make()


def test_transforms():

    def run(x, op, cols=("x",)):
        d = ds.NumpySlicesDataset([x], ["x"]).map(op, ["x"])
        return next(d.create_dict_iterator(num_epochs=1, output_numpy=True))["x"]

    assert run(2, TC.OneHot(4)).tolist() == [0, 0, 1, 0]
    assert run([1, 2], TC.TypeCast(ms.float32)).dtype == np.float32
    assert run([1, 2], TC.PadEnd([4], -1)).tolist() == [1, 2, -1, -1]
    assert run([1, 2, 3], TC.Slice(slice(0, 2))).tolist() == [1, 2]
    assert run([1, 2, 3], TC.Mask(TC.Relational.GT, 1)).tolist() == [False, True, True]
    assert run([1, 2], TC.Fill(7)).tolist() == [7, 7]
    assert run([1, 2], TC.Concatenate(0, np.array([9]), np.array([8]))).tolist() == [9, 1, 2, 8]
    d = ds.NumpySlicesDataset([[1, 1, 2]], ["x"]).map(TC.Unique(), ["x"], ["a", "b", "c"], column_order=["a", "b", "c"])
    row = next(d.create_dict_iterator(num_epochs=1, output_numpy=True))
    assert row["a"].tolist() == [1, 2] and row["c"].tolist() == [2, 1]
    d = ds.NumpySlicesDataset([[1, 2]], ["x"]).map(TC.Duplicate(), ["x"], ["a", "b"], column_order=["a", "b"])
    assert next(d.create_dict_iterator(num_epochs=1, output_numpy=True))["b"].tolist() == [1, 2]
    assert C.HWC2CHW()(IMAGE).shape == (3, 8, 10) and TC.OneHot(3)(np.array(1)).tolist() == [0, 1, 0]
    assert TP.Compose([lambda x: x + 1, lambda x: x * 2])(np.array([1])).tolist() == [4]


def test_text():
    vocab = text.Vocab.from_list(["a", "b", "c"], special_tokens=["<pad>", "<unk>"], special_first=True)
    assert vocab.tokens_to_ids(["a", "c"]) == [2, 4] and vocab.ids_to_tokens([3]) == ["b"] and (vocab.vocab()["a"] == 2)
    d = ds.NumpySlicesDataset([["a", "c", "z"]], ["x"]).map(text.Lookup(vocab, "<unk>"), ["x"])
    assert values(d) == [[2, 4, 1]]
    d = ds.NumpySlicesDataset(["hello big world"], ["x"]).map(text.WhitespaceTokenizer(), ["x"])
    assert values(d) == [["hello", "big", "world"]]
    for op, out in ((text.UnicodeCharTokenizer(), list("abc")), (text.NormalizeUTF8(), "abc"), (text.CaseFold(), "abc")):
        assert values(ds.NumpySlicesDataset(["abc"], ["x"]).map(op, ["x"])) == [out]
    assert values(ds.NumpySlicesDataset([["a", "b", "c"]], ["x"]).map(text.Ngram(2), ["x"])) == [["a b", "b c"]]
    assert values(ds.NumpySlicesDataset(["12"], ["x"]).map(text.ToNumber(ms.int32), ["x"])) == [12]
    assert values(ds.NumpySlicesDataset(["a.b"], ["x"]).map(text.RegexReplace("\\.", "-"), ["x"])) == ["a-b"]
    assert values(ds.NumpySlicesDataset([["x", "y"]], ["x"])) == [["x", "y"]]
    assert values(ds.NumpySlicesDataset(["ab"], ["x"]).map(text.PythonTokenizer(lambda s: list(s)), ["x"])) == [["a", "b"]]
    assert values(ds.NumpySlicesDataset(["A B"], ["x"]).map(text.BasicTokenizer(lower_case=True), ["x"])) == [["a", "b"]]
    for make, error in (
        (lambda: text.Ngram(0), ValueError),
        (lambda: text.Ngram("a"), ValueError),
        (lambda: text.Lookup(3), TypeError),
        (lambda: text.ToNumber("a"), TypeError),
        (lambda: text.Vocab.from_list("a"), (TypeError, ValueError)),
        (lambda: text.Vocab.from_dict({"a": "b"}), (TypeError, ValueError)),
        (lambda: text.PythonTokenizer(3), TypeError),
        (lambda: text.JiebaTokenizer("/no", "/no"), (ValueError, RuntimeError, ImportError, AttributeError)),
    ):
        with pytest.raises(error):
            make()


def test_config_and_iterators():
    ds.config.set_seed(3)
    assert ds.config.get_seed() == 3
    ds.config.set_num_parallel_workers(2)
    assert ds.config.get_num_parallel_workers() == 2
    ds.config.set_prefetch_size(4)
    assert ds.config.get_prefetch_size() == 4
    a = values(ds.NumpySlicesDataset(list(range(6)), ["x"], shuffle=True))
    b = values(ds.NumpySlicesDataset(list(range(6)), ["x"], shuffle=True))
    assert a == b
    it = ds.GeneratorDataset(gen, ["x"]).create_dict_iterator()
    assert isinstance(next(it)["x"], Tensor)
    d = ds.GeneratorDataset(gen, ["x"])
    it = d.create_tuple_iterator(num_epochs=2, output_numpy=True)
    assert sum((1 for _ in it)) + sum((1 for _ in it)) == 10
    assert d.get_class_indexing() in (None, {}) and d.num_classes() in (None, -1)
    text_form = {}
    assert isinstance(text_form, dict)


def test_sync_and_callbacks():
    d = ds.GeneratorDataset(gen, ["x"])
    seen = []
    d = d.sync_wait("c", num_batch=1, callback=lambda i: seen.append(i))
    n = 0
    for _ in d.create_dict_iterator(num_epochs=1, output_numpy=True):
        n += 1
        d.sync_update("c")
    assert n == 5


def test_save_and_load(tmp_path):
    d = ds.NumpySlicesDataset({"a": [1, 2, 3]}, shuffle=False)
    path = str(tmp_path / "d.mindrecord")
    d.save(path)
    back = ds.MindDataset(path, shuffle=False)
    assert sorted((int(r["a"]) for r in back.create_dict_iterator(num_epochs=1, output_numpy=True))) == [1, 2, 3]


def test_a_bool_is_a_batch_of_one_and_a_composition_without_images_itself():
    data = ds.NumpySlicesDataset(np.arange(12), shuffle=False)
    assert sum(1 for _ in data.batch(batch_size=True)) == 12
    with pytest.raises(ValueError):
        data.batch(batch_size=False)
    composed = PV.ComposeOp([PV.ToPIL(), PV.ToTensor()])
    image = np.random.randint(0, 255, (1, 6, 5, 3), dtype=np.uint8)
    rows = ds.NumpySlicesDataset({"image": image}, shuffle=False).map(operations=composed(), input_columns=["image"])
    np.testing.assert_allclose(next(rows.create_tuple_iterator(output_numpy=True))[0], image[0].transpose(2, 0, 1) / 255, atol=1e-6)


def test_the_interval_of_tuning_is_kept():
    assert ds.config.get_autotune_interval() == 0
    ds.config.set_autotune_interval(200)
    assert ds.config.get_autotune_interval() == 200
    for wrong, error in ((20.5, TypeError), (-1, ValueError)):
        with pytest.raises(error):
            ds.config.set_autotune_interval(wrong)
    ds.config.set_autotune_interval(0)
