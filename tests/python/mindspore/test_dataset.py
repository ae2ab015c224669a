"""mindspore.dataset: sources, operations, transforms, and the rules that changed from level to level."""

import gzip
import pickle
import struct
import zlib

import mindspore
import mindspore.dataset as ds
import numpy as np
import pytest
from cairn.ms import level
from mindspore.common import dtype as mstype
from mindspore.dataset import text
from mindspore.dataset.transforms import c_transforms as transforms
from mindspore.dataset.vision import c_transforms as vision


@pytest.fixture(autouse=True)
def a_seed():
    ds.config.set_seed(1)


@pytest.fixture
def at(monkeypatch):
    return lambda wanted: monkeypatch.setattr(level, "now", wanted)


def values(dataset, column=None):
    column = column or dataset.get_col_names()[0]
    return [row[column].tolist() for row in dataset.create_dict_iterator(num_epochs=1, output_numpy=True)]


def numbers(count=6, **options):
    return ds.NumpySlicesDataset({"x": np.arange(count)}, shuffle=False, **options)


def test_batches_keep_or_drop_the_rest():
    assert values(numbers(5).batch(2)) == [[0, 1], [2, 3], [4]]
    assert values(numbers(5).batch(2, drop_remainder=True)) == [[0, 1], [2, 3]]
    assert numbers(5).batch(2).get_dataset_size() == 3
    assert numbers(5).batch(2, True).get_dataset_size() == 2
    assert values(numbers(6).batch(lambda info: info.get_batch_num() + 1)) == [[0], [1, 2], [3, 4, 5]]


def test_repeat_take_skip_concat_and_zip():
    assert values(numbers(2).repeat(3)) == [0, 1, 0, 1, 0, 1]
    assert values(numbers(5).skip(1).take(3)) == [1, 2, 3]
    assert values(numbers(2) + numbers(1)) == [0, 1, 0]
    both = ds.zip((numbers(3), ds.NumpySlicesDataset([7, 8], "y", shuffle=False)))
    assert both.get_col_names() == ["x", "y"] and values(both, "y") == [7, 8] and both.get_dataset_size() == 2
    assert values(numbers(6).filter(lambda x: bool(x % 2))) == [1, 3, 5]
    assert numbers(6).filter(lambda x: bool(x % 2)).get_dataset_size() == 3
    assert numbers(2).rename("x", "z").get_col_names() == ["z"]
    assert [each.get_dataset_size() for each in numbers(10).split([0.7, 0.3])] == [7, 3]
    first, second = numbers(10).split([6, 4])
    assert sorted(values(first) + values(second)) == list(range(10))


def test_the_size_of_a_repeated_dataset_by_level(at):
    at("0.5")
    assert numbers(4).batch(2).repeat(3).get_dataset_size() == 2
    assert len(values(numbers(4).batch(2).repeat(3))) == 6
    at("1.1")
    assert numbers(4).batch(2).repeat(3).get_dataset_size() == 6


@pytest.mark.parametrize("wanted", ["0.5", "1.1", "1.10"])
def test_map_takes_columns_and_operations_in_both_orders(at, wanted):
    at(wanted)
    assert values(numbers(2).map("x", lambda x: x + 1)) == [1, 2]
    assert values(numbers(2).map(lambda x: x + 1, "x")) == [1, 2]
    assert values(numbers(2).map(input_columns=["x"], operations=[lambda x: x + 1, lambda x: x * 2])) == [2, 4]
    assert numbers(2).map(operations=lambda x: (x, x), input_columns="x", output_columns=["a", "b"], column_order=["b", "a"]).get_col_names() == ["b", "a"]


def test_iterators_give_numpy_in_05_and_tensors_since(at):
    at("0.5")
    assert isinstance(next(numbers(1).create_dict_iterator())["x"], np.ndarray)
    at("1.1")
    assert isinstance(next(numbers(1).create_dict_iterator())["x"], mindspore.Tensor)
    assert isinstance(next(numbers(1).create_tuple_iterator(output_numpy=True))[0], np.ndarray)
    words = ds.NumpySlicesDataset(["a", "b"], "w", shuffle=False)
    assert next(words.create_dict_iterator(output_numpy=True))["w"].dtype.kind == "S"
    at("1.10")
    assert next(words.create_dict_iterator(output_numpy=True))["w"].dtype.kind == "U"


def test_one_loop_over_an_iterator_is_an_epoch():
    iterator = numbers(2).create_dict_iterator(num_epochs=2, output_numpy=True)
    assert [[row["x"].item() for row in iterator] for _ in range(3)] == [[0, 1], [0, 1], []]


def test_the_seed_decides_the_order_and_epochs_differ():
    def order():
        ds.config.set_seed(3)
        iterator = ds.NumpySlicesDataset(np.arange(20), "x").create_dict_iterator(output_numpy=True)
        return [[row["x"].item() for row in iterator] for _ in range(2)]

    first, second = order()
    assert sorted(first) == list(range(20)) and first != list(range(20)) and first != second
    assert order() == [first, second]
    shuffled = numbers(20).shuffle(5)
    assert values(shuffled) == values(shuffled) and sorted(values(shuffled)) == list(range(20))


def test_random_transforms_follow_the_seed():
    images = np.random.RandomState(0).randint(0, 255, (6, 8, 8, 3)).astype(np.uint8)

    def run():
        chain = [vision.RandomCrop(6, 1), vision.RandomHorizontalFlip(), vision.RandomColorAdjust((0.5, 1.5), (0.5, 1.5), (0.5, 1.5), (-0.1, 0.1))]
        dataset = ds.NumpySlicesDataset(images, "image", shuffle=False).map(chain, "image")
        iterator = dataset.create_dict_iterator(output_numpy=True)
        return [np.stack([row["image"] for row in iterator]) for _ in range(2)]

    (first, second), again = run(), run()
    assert first.shape == (6, 6, 6, 3) and first.dtype == np.uint8
    np.testing.assert_array_equal(first, again[0])
    assert (first != second).any()


def test_samplers():
    data = np.arange(10)

    def sampled(sampler):
        return values(ds.NumpySlicesDataset(data, "x", sampler=sampler))

    assert sampled(ds.SequentialSampler(3, 4)) == [3, 4, 5, 6]
    assert sampled(ds.SubsetSampler([5, 1])) == [5, 1]
    assert sorted(sampled(ds.SubsetRandomSampler([5, 1, 2]))) == [1, 2, 5]
    assert len(sampled(ds.RandomSampler(replacement=True, num_samples=30))) == 30
    assert set(sampled(ds.WeightedRandomSampler([0, 1, 0, 1], 8))) <= {1, 3}
    assert sorted(sampled(ds.DistributedSampler(3, 0)) + sampled(ds.DistributedSampler(3, 1)) + sampled(ds.DistributedSampler(3, 2)))[-1] == 9
    assert values(ds.NumpySlicesDataset(data, "x", shuffle=False, num_shards=3, shard_id=1)) == [1, 4, 7, 0]
    labelled = ds.GeneratorDataset([(each, np.int32(each % 3)) for each in range(9)], ["x", "label"], sampler=ds.PKSampler(2))
    assert values(labelled, "label") == [0, 0, 1, 1, 2, 2]
    child = ds.SubsetSampler([4, 8, 2])
    outer = ds.SequentialSampler(1)
    outer.add_child(child)
    assert sampled(outer) == [8, 2]
    with pytest.raises(ValueError):
        ds.DistributedSampler(2, 2)
    with pytest.raises(RuntimeError):
        ds.NumpySlicesDataset(data, "x", sampler=ds.RandomSampler(), shuffle=True)


def test_generators_of_all_kinds():
    class ByNumber:
        def __len__(self):
            return 3

        def __getitem__(self, index):
            return np.float32(index), index

    def rows():
        for index in range(3):
            yield (np.array([index]),)

    assert values(ds.GeneratorDataset(ByNumber(), ["x", "y"], shuffle=False), "y") == [0, 1, 2]
    made = ds.GeneratorDataset(rows, ["x"], column_types=[mstype.float32])
    assert values(made) == [[0.0], [1.0], [2.0]] and values(made) == [[0.0], [1.0], [2.0]]
    assert made.get_dataset_size() == 3 and made.output_shapes() == [[1]] and made.output_types() == [np.float32]
    with pytest.raises(RuntimeError, match="same number"):
        values(ds.GeneratorDataset(ByNumber(), ["x"], shuffle=False))
    with pytest.raises(TypeError):
        ds.GeneratorDataset(3, ["x"])


def test_padded_and_bucketed_batches():
    lengths = [2, 3, 7, 1, 8, 5]
    dataset = ds.GeneratorDataset([(np.arange(each),) for each in lengths], ["x"], shuffle=False)
    padded = values(dataset.batch(3, pad_info={"x": ([4], -1)}))
    assert padded[0][0] == [0, 1, -1, -1] and padded[0][2] == [0, 1, 2, 3]
    assert [len(row) for row in values(dataset.batch(3, pad_info={}))[1]] == [8, 8, 8]
    with pytest.raises(RuntimeError, match="same shape"):
        values(dataset.batch(2))
    shapes = [np.shape(each) for each in values(dataset.bucket_batch_by_length(["x"], [4, 6], [2, 1, 2], pad_info={"x": ([None], 0)}))]
    assert shapes == [(2, 3), (2, 8), (1, 5), (1, 1)]


def test_per_batch_map():
    dataset = numbers(4).batch(2, per_batch_map=lambda column, info: ([each + 10 * info.get_batch_num() for each in column],), input_columns=["x"])
    assert values(dataset) == [[0, 1], [12, 13]]


def idx(array):
    return struct.pack(f">4B{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


def test_mnist_files(tmp_path, at):
    images, labels = np.arange(3 * 784, dtype=np.uint32).astype(np.uint8).reshape(3, 28, 28), np.array([4, 0, 9], np.uint8)
    (tmp_path / "train-images-idx3-ubyte").write_bytes(idx(images))
    (tmp_path / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(labels)))
    dataset = ds.MnistDataset(str(tmp_path), shuffle=False)
    row = next(dataset.create_dict_iterator(output_numpy=True))
    assert row["image"].shape == (28, 28, 1) and row["image"].dtype == np.uint8
    assert row["label"] == 4 and row["label"].dtype == np.uint32
    np.testing.assert_array_equal(row["image"][..., 0], images[0])
    assert ds.MnistDataset(str(tmp_path), "train", 2).get_dataset_size() == 2
    at("0.5")
    assert ds.MnistDataset(str(tmp_path), 2).get_dataset_size() == 2
    at("1.10")
    with pytest.raises(RuntimeError, match="t10k"):
        ds.MnistDataset(str(tmp_path), usage="test").get_dataset_size()
    (tmp_path / "train-images-idx3-ubyte").write_bytes(idx(images)[:-5])
    with pytest.raises(RuntimeError, match="header says"):
        ds.MnistDataset(str(tmp_path)).get_dataset_size()
    with pytest.raises(ValueError):
        ds.MnistDataset(str(tmp_path / "nowhere"))


def test_cifar_files_of_both_layouts(tmp_path):
    data = np.random.RandomState(0).randint(0, 256, (4, 3072)).astype(np.uint8)
    folder = tmp_path / "binary" / "cifar-10-batches-bin"
    folder.mkdir(parents=True)
    (folder / "data_batch_1.bin").write_bytes(np.concatenate([np.arange(4, dtype=np.uint8)[:, None], data], 1).tobytes())
    python = tmp_path / "python"
    python.mkdir()
    (python / "data_batch_1").write_bytes(pickle.dumps({b"data": data, b"labels": [0, 1, 2, 3]}, protocol=2))
    rows = [list(ds.Cifar10Dataset(str(each), "train", shuffle=False).create_dict_iterator(num_epochs=1, output_numpy=True)) for each in (folder.parent, python)]
    for first, second in zip(*rows):
        np.testing.assert_array_equal(first["image"], second["image"])
        assert first["label"] == second["label"] and first["image"].shape == (32, 32, 3)
    assert rows[0][1]["image"][0, 0, 2] == data[1, 2048]
    (python / "data_batch_1").write_bytes(pickle.dumps(print))
    with pytest.raises(RuntimeError):
        ds.Cifar10Dataset(str(python), "train").get_dataset_size()


def png(image):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width = image.shape[:2]
    lines = []
    for number, row in enumerate(image.astype(np.int32)):
        how = number % 5  # each filter of the format
        left, up = np.roll(row, 1, 0), image[number - 1].astype(np.int32) if number else np.zeros_like(row)
        left[0] = 0
        corner = np.roll(up, 1, 0)
        corner[0] = 0
        guess = left + up - corner
        paeth = np.where((abs(guess - left) <= abs(guess - up)) & (abs(guess - left) <= abs(guess - corner)), left,
                         np.where(abs(guess - up) <= abs(guess - corner), up, corner))
        lines.append(bytes([how]) + ((row - [0, left, up, (left + up) // 2, paeth][how]) % 256).astype(np.uint8).tobytes())
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(b"".join(lines))) + chunk(b"IEND", b""))


def test_image_folders_and_png(tmp_path):
    images = np.random.RandomState(0).randint(0, 256, (2, 11, 7, 3)).astype(np.uint8)
    for name, image in zip("ba", images):
        (tmp_path / name).mkdir()
        (tmp_path / name / "one.png").write_bytes(png(image))
    rows = list(ds.ImageFolderDataset(str(tmp_path), shuffle=False, decode=True).create_dict_iterator(num_epochs=1, output_numpy=True))
    np.testing.assert_array_equal(rows[0]["image"], images[1])
    assert rows[1]["label"] == 1 and rows[1]["label"].dtype == np.int32
    raw = ds.ImageFolderDataset(str(tmp_path), shuffle=False, class_indexing={"b": 7}).map(vision.Decode(), "image")
    (row,) = raw.create_dict_iterator(num_epochs=1, output_numpy=True)
    np.testing.assert_array_equal(row["image"], images[0])
    assert row["label"] == 7 and raw.num_classes() == 1
    with pytest.raises(RuntimeError, match="damaged"):
        vision.Decode()(np.frombuffer(png(images[0])[:60], np.uint8))


def test_vision_transforms():
    image = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3)
    assert vision.Resize(2)(image).shape == (2, 3, 3) and vision.Resize((5, 4))(image).shape == (5, 4, 3)
    np.testing.assert_array_equal(vision.Resize((4, 6))(image), image)
    assert vision.Resize((8, 12))(image)[0, 1, 0] == 1  # 0.25 of the way from 0 to 3
    rescaled = vision.Rescale(1 / 255.0, -1.0)(image)
    np.testing.assert_allclose(rescaled, image.astype(np.float32) / 255 - 1, rtol=1e-6)
    normal = vision.Normalize([1.0, 2.0, 3.0], [2.0, 4.0, 5.0])(image)
    assert normal.dtype == np.float32
    np.testing.assert_allclose(normal, (image - np.float32([1, 2, 3])) / np.float32([2, 4, 5]))
    assert vision.NormalizePad([0.0] * 3, [1.0] * 3)(image).shape == (4, 6, 4)
    assert vision.HWC2CHW()(image).shape == (3, 4, 6)
    np.testing.assert_array_equal(vision.RandomHorizontalFlip(1.0)(image), image[:, ::-1])
    np.testing.assert_array_equal(vision.CenterCrop((2, 2))(image), image[1:3, 2:4])
    assert vision.RandomCrop((8, 8), (4, 4, 4, 4))(image).shape == (8, 8, 3)
    assert vision.RandomResizedCrop(5)(image).shape == (5, 5, 3)
    with pytest.raises(RuntimeError, match="bigger"):
        vision.RandomCrop(9)(image)
    with pytest.raises(TypeError):
        vision.Resize("x")
    with pytest.raises(ValueError):
        vision.RandomHorizontalFlip(2.0)
    import mindspore.dataset.transforms.vision.c_transforms as old

    assert old.Resize is vision.Resize


def test_transforms_of_any_column():
    assert transforms.TypeCast(mstype.int32)(np.array(3.7)) == 3
    assert transforms.OneHot(3)(np.array(1)).tolist() == [0, 1, 0]
    np.testing.assert_allclose(transforms.OneHot(3, 0.1)(np.array(1)), [0.1 / 3, 0.9 + 0.1 / 3, 0.1 / 3], rtol=1e-6)
    assert transforms.PadEnd([4], 9)(np.array([1, 2])).tolist() == [1, 2, 9, 9]
    assert transforms.Concatenate(append=np.array([5]))(np.array([1])).tolist() == [1, 5]
    assert values(numbers(1).map(transforms.Duplicate(), "x", ["x", "y"], ["x", "y"]), "y") == [0]
    with pytest.raises(RuntimeError):
        transforms.OneHot(2)(np.array(2))


def test_text():
    words = ds.NumpySlicesDataset(["the cat", "the dog"], "text", shuffle=False).map(text.WhitespaceTokenizer(), "text")
    vocab = text.Vocab.from_dataset(words, "text", special_tokens=["<pad>"])
    assert vocab.vocab() == {"<pad>": 0, "the": 1, "cat": 2, "dog": 3}
    assert values(words.map(text.Lookup(vocab), "text")) == [[1, 2], [1, 3]]
    with pytest.raises(RuntimeError, match="does not exist"):
        text.Lookup(vocab)(np.array("bird"))
    assert text.SlidingWindow(2)(np.arange(3)).tolist() == [[0, 1], [1, 2]]
    assert text.BertTokenizer(text.Vocab.from_list(["un", "##able", ",", "[UNK]"]))(np.array("unable, x")).tolist() == ["un", "##able", ",", "[UNK]"]


def test_files_of_records(tmp_path):
    from cairn.ms import wire

    def feature(kind, body):
        return wire.bytes_field(2, wire.bytes_field(kind, body))

    def example(number):
        entries = [wire.bytes_field(1, "id") + feature(3, wire.bytes_field(1, wire.varint(number) + wire.varint(-number))),
                   wire.bytes_field(1, "x") + feature(2, wire.bytes_field(1, struct.pack("<2f", number, 0.5)))]
        return wire.bytes_field(1, b"".join(wire.bytes_field(1, each) for each in entries))

    records = [example(number) for number in (3, 300)]
    (tmp_path / "a.tfrecord").write_bytes(b"".join(struct.pack("<QI", len(each), 0) + each + bytes(4) for each in records))
    dataset = ds.TFRecordDataset(str(tmp_path / "a.tfrecord"), shuffle=False)
    assert dataset.get_col_names() == ["id", "x"]
    assert values(dataset, "id") == [[3, -3], [300, -300]] and values(dataset, "x") == [[3.0, 0.5], [300.0, 0.5]]
    (tmp_path / "a.txt").write_text("one\n\ntwo\n")
    assert values(ds.TextFileDataset(str(tmp_path / "a.txt"), shuffle=False)) == ["one", "two"]


def test_mindrecord_files(tmp_path):
    from mindspore.mindrecord import FileReader, FileWriter

    schema = {"file": {"type": "string"}, "label": {"type": "int32"}, "data": {"type": "bytes"}, "box": {"type": "int64", "shape": [-1, 2]},
              "weight": {"type": "float32", "shape": [3]}}
    rows = [{"file": f"{number}.png", "label": number, "data": bytes([number] * number), "box": np.array([[number, -(300**number % 2**62)]] * 2), "weight": np.arange(3) / (number + 1)}
            for number in range(5)]
    for shards in (1, 2):
        path = str(tmp_path / f"rows{shards}")
        writer = FileWriter(path, shards)
        writer.add_schema(schema)
        writer.add_index(["label"])
        writer.write_raw_data(rows[:3])
        writer.write_raw_data(rows[3:])
        writer.commit()
        first = path if shards == 1 else path + "0"
        read = sorted(FileReader(first).get_next(), key=lambda row: row["label"])
        assert [row["data"] for row in read] == [row["data"] for row in rows] and read[4]["file"] == "4.png"
        dataset = ds.MindDataset(first, shuffle=False)
        assert dataset.get_dataset_size() == 5 and dataset.get_col_names() == list(schema)
        for row in dataset.create_dict_iterator(num_epochs=1, output_numpy=True):
            expected = rows[row["label"].item()]
            np.testing.assert_array_equal(row["box"], expected["box"])
            np.testing.assert_allclose(row["weight"], expected["weight"], rtol=1e-6)
            assert row["data"].dtype == np.uint8 and row["data"].tobytes() == expected["data"] and row["box"].dtype == np.int64
    padded = ds.MindDataset(path + "0", ["label"], padded_sample={"label": np.int32(-1)}, num_padded=3, shuffle=False)
    assert sorted(values(padded)) == [-1, -1, -1, 0, 1, 2, 3, 4]
    numbers(4).map(lambda x: (x, np.float32([x, x])), "x", ["x", "y"], ["x", "y"]).save(str(tmp_path / "saved"))
    assert values(ds.MindDataset(str(tmp_path / "saved"), shuffle=False), "y")[2] == [2.0, 2.0]
    with pytest.raises(RuntimeError, match="missing"):
        writer.write_raw_data([{"file": "x"}])
    with pytest.raises(RuntimeError, match="no such"):
        ds.MindDataset(str(tmp_path / "none"))


def test_damaged_mindrecord_files_give_a_sentence(tmp_path):
    from mindspore.mindrecord import FileReader, FileWriter

    path = tmp_path / "rows"
    writer = FileWriter(str(path))
    writer.set_header_size(1 << 14)
    writer.set_page_size(1 << 15)
    writer.add_schema({"x": {"type": "int32", "shape": [-1]}, "y": {"type": "string"}, "z": {"type": "bytes"}})
    writer.write_raw_data([{"x": np.arange(9) * 999, "y": "text", "z": b"bytes"}] * 3)
    writer.commit()
    good, rng, sentences = path.read_bytes(), np.random.RandomState(0), 0
    used = [place for place, each in enumerate(good) if each]
    for _ in range(300):
        data = bytearray(good)
        data[used[rng.randint(len(used))]] = rng.randint(256)
        path.write_bytes(data)
        try:
            list(FileReader(str(path)).get_next())
        except RuntimeError as error:
            sentences += 1
            assert str(path) in str(error)
    assert sentences > 50


def test_what_is_missing_is_refused_by_name():
    with pytest.raises(NotImplementedError, match="LSUNDataset"):
        ds.LSUNDataset("x")


def test_transforms_of_any_column_are_mindspores():
    grid = np.arange(24).reshape(2, 3, 4)
    np.testing.assert_array_equal(transforms.Slice([0, 1], [1, 2])(grid), grid[:, 1:3])
    np.testing.assert_array_equal(transforms.Slice(slice(0, 1), ..., 2)(grid), grid[:1, :, [2]])
    values, places, counts = transforms.Unique()(np.array([[3.0, 1], [1, 3]]))
    assert (values.tolist(), places.tolist(), counts.tolist()) == ([3, 1], [0, 1, 1, 0], [2, 2])
    smoothed = transforms.OneHot(3, 0.3)(np.array([[0], [2]]))
    assert smoothed.dtype == np.float64
    np.testing.assert_allclose(smoothed, [[0.8, 0.1, 0.1], [0.1, 0.1, 0.8]])
    assert transforms.PadEnd([4])(np.array(5)) == 5
    assert text.Ngram([1, 3])(np.array(["a", "b"])).tolist() == ["a", "b", ""]
    with pytest.raises(TypeError, match="not numeric"):
        text.ToNumber(mstype.bool_)


def test_errors_of_a_users_function_are_runtime_errors_that_name_it():
    def broken(x):
        return int(x[0]) // 0

    for dataset in (ds.NumpySlicesDataset({"x": [[1], [2]]}).map(broken, ["x"]), ds.GeneratorDataset(lambda: (1 / 0 for _ in range(2)), ["x"])):
        with pytest.raises(RuntimeError, match="ZeroDivisionError") as error:
            list(dataset.create_tuple_iterator(num_epochs=1))
        assert isinstance(error.value.__cause__, ZeroDivisionError)


def test_an_iterator_that_begins_anew_at_each_iter_is_read_once():
    class Counter:
        def __iter__(self):
            self.at = 0
            return self

        def __next__(self):
            self.at += 1
            if self.at > 3:
                raise StopIteration
            return (np.array(self.at),)

    for epochs in (1, 2):
        rows = ds.GeneratorDataset(Counter(), ["x"]).repeat(epochs).create_tuple_iterator(num_epochs=1, output_numpy=True)
        assert [int(row[0]) for row in rows] == [1, 2, 3] * epochs


def test_an_offset_begins_the_rows_at_that_shard_and_repeats_none():
    for offset in range(3):
        shards = [[int(row[0]) for row in ds.NumpySlicesDataset(np.arange(11), sampler=ds.DistributedSampler(3, shard, False, None, offset))
                   .create_tuple_iterator(num_epochs=1, output_numpy=True)] for shard in range(3)]  # fmt: skip
        assert shards[offset][0] == 0 and sorted(sum(shards, [])) == list(range(11))


def test_buckets_pad_sizes_that_are_open_to_the_boundary_and_columns_without_a_shape_to_the_longest():
    made = {}
    for shape in (None, ([None], 0)):
        lengths = ds.GeneratorDataset(lambda: ((np.arange(i + 1),) for i in range(7)), ["a"])
        batches = lengths.bucket_batch_by_length(["a"], [3, 8], [2, 3, 1], pad_info={"a": shape}, pad_to_bucket_boundary=True)
        made[str(shape)] = [row["a"].shape for row in batches.create_dict_iterator(num_epochs=1, output_numpy=True)]
    assert made == {"None": [(2, 2), (3, 5), (2, 7)], "([None], 0)": [(2, 2), (3, 7), (2, 7)]}


def test_files_are_found_by_patterns_and_empty_sets_have_no_shapes(tmp_path):
    for name in ("b.txt", "a.txt", "c.csv"):
        (tmp_path / name).write_text(f"{name}\n")
    found = ds.TextFileDataset(str(tmp_path / "*.txt"), shuffle=False)
    assert [str(row["text"]) for row in found.create_dict_iterator(num_epochs=1, output_numpy=True)] == ["a.txt", "b.txt"]
    assert found.output_types()[0] == np.str_ and found.output_types()[0].type is np.str_
    assert found.skip(2).output_shapes() == [] and found.skip(2).output_types() == []
    with pytest.raises(ValueError, match="did not match any files"):
        ds.TextFileDataset(str(tmp_path / "*.md"))


def test_shapes_that_change_from_row_to_row():
    def made():
        return ds.GeneratorDataset(lambda: ((np.zeros((2, n, 5)), np.zeros(3)) for n in (4, 6, 1)), ["x", "y"], shuffle=False)

    assert made().output_shapes() == [[2, 4, 5], [3]] and made().output_shapes(estimate=True) == [[2, None, 5], [3]]
    told = made()
    with pytest.raises(RuntimeError, match="dynamic_columns is not set"):
        told.dynamic_min_max_shapes()
    told.set_dynamic_columns({"x": [2, None, None]})
    assert told.output_shapes() == [[2, -1, -1], [3]] and told.dynamic_min_max_shapes() == ([[2, 1, 1], [3]], [[2, 6, 5], [3]])
    for wrong, words in (({"z": [None]}, "does not match any column"), ({"x": [2, None]}, "does not match dataset column"),
                         ({"y": [3]}, "dynamic shape but not set")):  # fmt: skip
        told.set_dynamic_columns(wrong)
        with pytest.raises(RuntimeError, match=words):
            told.output_shapes()
    with pytest.raises(TypeError):
        told.set_dynamic_columns()
    with pytest.raises(TypeError):
        told.output_shapes(3)


def test_settings_are_read_from_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr(ds.config, "_chosen", set())
    monkeypatch.setattr(ds.config, "_values", dict(ds.config._values))
    (tmp_path / "told.json").write_text('{"numParallelWorkers": 2, "opConnectorSize": 7, "seed": 9, "other": 1}')
    ds.config.load(str(tmp_path / "told.json"))
    assert (ds.config.get_num_parallel_workers(), ds.config.get_prefetch_size(), ds.config.get_seed()) == (2, 7, 9)
