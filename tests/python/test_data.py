"""cairn.data: the order of rows, random choices, resuming, errors, threads, and the sources' files."""

import gc
import gzip
import json
import os
import pathlib
import pickle
import signal
import struct
import threading
import time
import zlib

import numpy as np
import pytest

import cairn
from cairn import data
from cairn.data import samplers
from cairn.data import transforms as t


JPEG = (pathlib.Path(__file__).parent / "data" / "waves.jpg").read_bytes()  # 72 x 96 pixels, chroma of half the size


def numbers(count=20, **options):
    return data.slices({"x": np.arange(count), "y": np.arange(count) * 0.5}, **options)


def column(dataset, name="x", **options):
    return [row[name].tolist() for row in dataset.iterate(epochs=1, **options)]


def images(count=12):
    return np.random.RandomState(0).randint(0, 256, (count, 40, 48, 3)).astype(np.uint8)


def pipeline():
    chain = [t.random_crop(32, 4), t.random_horizontal_flip(), t.random_color_adjust((0.5, 1.5), (0.5, 1.5), (0.5, 1.5), (-0.1, 0.1))]
    source = data.slices({"image": images(), "label": np.arange(12)}, shuffle=True)
    return source.map(chain, "image").shuffle(5).filter(lambda label: int(label) != 3, "label").repeat(2).batch(4)


def all_rows(iterator, epochs=2):
    return [[{name: value.copy() for name, value in row.items()} for row in iterator] for _ in range(epochs)]


def same(left, right):
    assert len(left) == len(right)
    for one, other in zip(left, right):
        assert list(one) == list(other)
        for name in one:
            np.testing.assert_array_equal(one[name], other[name])


def threads():
    return len(os.listdir("/proc/self/task"))


def test_any_number_of_workers_gives_the_same_bits():
    first = all_rows(pipeline().iterate(workers=0, seed=7))
    assert (first[0][0]["image"] != first[1][0]["image"]).any()
    for workers in (1, 2, 8):
        for one, other in zip(first, all_rows(pipeline().iterate(workers=workers, seed=7))):
            same(one, other)
    other_seed = all_rows(pipeline().iterate(workers=2, seed=8), 1)[0]
    assert any((one["label"] != other["label"]).any() for one, other in zip(first[0], other_seed))


def test_an_iterator_resumes_anywhere_with_another_number_of_workers():
    whole = [row for epoch in all_rows(pipeline().iterate(workers=2, seed=3), 3) for row in epoch]
    per_epoch = len(whole) // 3
    for place in np.random.RandomState(1).randint(0, len(whole), 50):
        epoch, row = divmod(int(place), per_epoch)
        iterator = pipeline().iterate(workers=1, state={"seed": 3, "epoch": epoch, "row": row})
        same([next(iterator)], [whole[place]])
        iterator.stop()
    iterator = pipeline().iterate(workers=2, seed=3)
    next(iterator), next(iterator)
    state = json.loads(json.dumps(iterator.state()))
    assert state == {"seed": 3, "epoch": 0, "row": 2}
    same([next(pipeline().iterate(workers=8, state=state))], [whole[2]])


def test_operations():
    assert column(numbers(5).skip(1).take(3)) == [1, 2, 3]
    assert column(numbers(2).repeat(3)) == [0, 1] * 3 and len(numbers(2).repeat(3)) == 6
    assert column(numbers(2).concat(numbers(1))) == [0, 1, 0]
    assert column(numbers(5).batch(2)) == [[0, 1], [2, 3], [4]] and len(numbers(5).batch(2, True)) == 2
    both = numbers(3).project("x").zip(data.slices({"z": np.array(["a", "bc"])}))
    assert both.columns == ["x", "z"] and column(both, "z") == ["a", "bc"] and len(both) == 2
    assert numbers(1).rename("x", "w").columns == ["w", "y"]
    assert sorted(column(numbers(9).shuffle(4))) == list(range(9)) and column(numbers(9).shuffle(4)) != list(range(9))
    first, second = numbers(10).split([0.7, 0.3])
    assert len(first) == 7 and sorted(column(first) + column(second)) == list(range(10))
    assert column(numbers(4).map(lambda x: (x, x + 1), "x", ["x", "u"]), "u") == [1, 2, 3, 4]
    assert column(numbers(4).map([t.type_cast(np.float32), lambda x: x / 2, t.type_cast(np.int64)], "x")) == [0, 0, 1, 1]
    endless = numbers(3).repeat().iterate(workers=2)
    assert [int(next(endless)["x"]) for _ in range(7)] == [0, 1, 2, 0, 1, 2, 0]
    with pytest.raises(TypeError, match="no end"):
        len(numbers(3).repeat())
    rows = data.generator([np.arange(n) for n in (2, 3, 7, 1, 8, 5)], "x")
    assert [np.shape(each) for each in column(rows.bucket_batch("x", [4, 6], [2, 1, 2], pad={"x": (None, 0)}))] == [(2, 3), (2, 8), (1, 5), (1, 1)]
    assert [np.shape(each) for each in column(rows.batch(3, pad={"x": ((4,), -1)}))] == [(3, 4), (3, 4)]
    assert column(rows.batch(3, pad={"x": ((4,), -1)}))[0][0] == [0, 1, -1, -1]


def test_samplers_and_shards():
    def sampled(sampler):
        return column(numbers(10, sampler=sampler))

    assert sampled(samplers.sequential(3, 4)) == [3, 4, 5, 6]
    assert sampled(samplers.subset([5, 1])) == [5, 1]
    assert sampled(samplers.sequential(1, child=samplers.subset([4, 8, 2]))) == [8, 2]
    assert set(sampled(samplers.weighted([0, 1, 0, 1], count=30))) == {1, 3}
    assert sorted(sampled(samplers.weighted([1] * 10, replacement=False))) == list(range(10))
    assert sampled(samplers.custom(lambda count, epoch: range(count - 1, -1, -2))) == [9, 7, 5, 3, 1]
    labelled = data.slices({"x": np.arange(9), "label": np.arange(9) % 3}, sampler=samplers.per_class(2))
    assert column(labelled, "label") == [0, 0, 1, 1, 2, 2]
    for count in (12, 10):
        parts = [column(numbers(count, shuffle=True, shards=(4, shard)), seed=5) for shard in range(4)]
        assert len({len(part) for part in parts}) == 1 and set(sum(parts, [])) == set(range(count))
    assert column(numbers(10, shards=(3, 1))) == [1, 4, 7, 0]
    with pytest.raises(cairn.Error, match="out of bound"):
        sampled(samplers.subset([10]))


def test_errors_name_operation_file_row_and_script_line(tmp_path):
    folder = tmp_path / "a"
    folder.mkdir()
    (folder / "good.png").write_bytes(cairn._data.encode_png(images()[0]))
    (folder / "later.jpg").write_bytes(b"\xff\xd8\xff\xe0 no image")
    dataset = data.image_folder(tmp_path).map(t.decode(), "image")
    for workers in (0, 2):
        iterator = dataset.iterate(workers=workers)
        assert next(iterator)["image"].shape == (40, 48, 3)
        with pytest.raises(cairn.Error, match=r"later.jpg \(test_data.py:\d+\): map: decode: image decode failed") as caught:
            next(iterator)
        assert caught.value.kind == "io"
        with pytest.raises(StopIteration):
            next(iterator)  # the row after the faulty one: there is none

    def fails(x):
        if x == 3:
            raise KeyError("mine")
        return x

    with pytest.raises(KeyError, match="mine"):
        column(numbers(5).map(fails, "x"))
    with pytest.raises(cairn.Error, match="batch expects rows of the same shape.*'x' has"):
        column(data.generator([np.arange(2), np.arange(3)], "x").batch(2))
    with pytest.raises(cairn.Error, match="no column 'z'"):
        numbers(2).map(t.duplicate(), "z")


def test_stopping_collecting_and_interrupting_leave_no_thread():
    gc.collect()
    before = threads()
    iterator = numbers(1000).batch(10).iterate(workers=4)
    next(iterator)
    assert threads() == before + 4
    iterator.stop()
    assert threads() == before
    with pytest.raises(StopIteration):
        next(iterator)
    iterator = numbers(1000).iterate(workers=4)
    next(iterator)
    del iterator
    gc.collect()
    assert threads() == before

    slow = data.slices({"x": np.zeros((64, 2000, 2000, 3), np.uint8)[:1].repeat(1, 0)}).map([t.resize((3000, 3000), t.CUBIC)] * 6, "x")
    iterator = slow.iterate(workers=1)
    timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        next(iterator)
        time.sleep(5)
    timer.join()
    iterator.stop()
    assert threads() == before


def test_the_child_of_a_fork_goes_on_by_itself():
    expected = column(numbers(100, shuffle=True), seed=2)
    iterator = numbers(100, shuffle=True).iterate(workers=3, seed=2)
    assert [int(next(iterator)["x"]) for _ in range(10)] == expected[:10]
    child = os.fork()
    if child == 0:
        good = [int(row["x"]) for row in iterator] == expected[10:]
        iterator.stop()
        os._exit(0 if good else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert [int(row["x"]) for row in iterator] == expected[10:]


def test_memory_is_bounded_and_told():
    big = data.slices({"x": np.zeros((64, 1 << 20), np.uint8)}).map(t.type_cast(np.float32), "x")
    with big.iterate(workers=2, ahead=50, memory=20 << 20) as iterator:
        next(iterator)
        time.sleep(0.5)
        for _ in range(20):
            next(iterator)
        told = iterator.report()
    assert 0 < told["most_bytes"] <= (20 + 3 * 4 + 50 * 4) << 20
    assert [each["operation"] for each in told["operations"]] == ["slices", "map"]
    assert told["operations"][1]["rows"] >= 21 and told["operations"][1]["busy_s"] > 0 and told["advice"]


def test_rows_share_memory_with_other_libraries():
    row = next(numbers(8).batch(4).iterate())
    np.from_dlpack(row["x"])
    address = row["x"].__array_interface__["data"][0]
    assert np.from_dlpack(row["x"]).__array_interface__["data"][0] == address and row["x"].flags.writeable


def test_source_memory_is_never_written_to():
    source = np.arange(3)
    for row in data.slices({"x": source}).iterate(epochs=1):
        row["x"][...] = 9
    assert source.tolist() == [0, 1, 2]


def idx(array):
    return struct.pack(f">4B{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


def test_mnist_and_cifar(tmp_path):
    pictures, labels = images(3)[:, :28, :28, 0].copy(), np.array([4, 0, 9], np.uint8)
    (tmp_path / "train-images-idx3-ubyte").write_bytes(idx(pictures))
    (tmp_path / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(labels)))
    row = list(data.mnist(tmp_path))[2]
    np.testing.assert_array_equal(row["image"][..., 0], pictures[2])
    assert row["label"] == 9 and row["label"].dtype == np.uint32
    flat = np.random.RandomState(0).randint(0, 256, (4, 3072)).astype(np.uint8)
    (tmp_path / "data_batch_1.bin").write_bytes(np.concatenate([np.arange(4, dtype=np.uint8)[:, None], flat], 1).tobytes())
    row = list(data.cifar10(tmp_path))[3]
    np.testing.assert_array_equal(row["image"], flat[3].reshape(3, 32, 32).transpose(1, 2, 0))
    assert row["label"] == 3


@pytest.mark.parametrize("protocol", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("keys", [str, str.encode])
@pytest.mark.parametrize("labels", [list, np.array, tuple, lambda each: [np.int64(value) for value in each]])
def test_pickled_cifar_of_every_protocol(tmp_path, protocol, keys, labels):
    flat = np.random.RandomState(0).randint(0, 256, (4, 3072)).astype(np.uint8)
    held = {keys("batch_label"): keys("testing"), keys("coarse_labels"): labels([3, 19, 0, 7]), keys("data"): flat,
            keys("fine_labels"): labels([99, 0, 1, 2]), keys("filenames"): [keys(f"{i}.png") for i in range(4)]}  # fmt: skip
    (tmp_path / "train").write_bytes(pickle.dumps(held, protocol))
    rows = list(data.cifar100(tmp_path))
    np.testing.assert_array_equal([row["image"] for row in rows], flat.reshape(4, 3, 32, 32).transpose(0, 2, 3, 1))
    assert [(row["coarse_label"], row["fine_label"]) for row in rows] == [(3, 99), (19, 0), (0, 1), (7, 2)]


def test_pickles_that_call_or_lie_are_refused(tmp_path):
    class Calls:
        def __reduce__(self):
            return os.system, ("true",)

    flat = np.zeros((2, 3072), np.uint8)
    for held, told in (({"data": flat, "labels": Calls()}, "system, which the file asks to call"), ({"data": flat, "labels": [1]}, "2 rows of data, but 1"),
                       ({"data": flat, "labels": [1, 300]}, "300 is no label"), ({"data": [1]}, "no data of 3072"),
                       ({"data": np.asfortranarray(flat), "labels": [0, 0]}, "another order than rows"), (flat, "no data")):  # fmt: skip
        (tmp_path / "data_batch_1").write_bytes(pickle.dumps(held, 2))
        with pytest.raises(cairn.Error, match=told):
            list(data.cifar10(tmp_path))


def test_text_and_csv(tmp_path):
    (tmp_path / "a.txt").write_text("one\n\ntwo\r\nthrée")
    assert column(data.text_files(tmp_path / "a.txt"), "text") == ["one", "two", "thrée"]
    (tmp_path / "a.csv").write_text('name,n,v\n"x, ""y""\nz",3,1.5\nb,,2\n')
    rows = list(data.csv(tmp_path / "a.csv", defaults=["", 7, 0.0]))
    assert rows[0]["name"] == 'x, "y"\nz' and rows[0]["n"].dtype == np.int32 and rows[1]["n"] == 7 and rows[0]["v"] == 1.5
    (tmp_path / "b.csv").write_text("a,b\n1,2\n3\n")
    with pytest.raises(cairn.Error, match=r"b.csv, line 3 .*1 cells, but there are 2 columns"):
        list(data.csv(tmp_path / "b.csv", defaults=[0, 0]))


def record_rows(count=7):
    return [{"id": np.int64(number), "x": np.array([number, -0.5], np.float32), "name": np.array(f"row {number}"),
             "file": np.frombuffer(bytes([number, 0, 255, 0]), np.uint8)} for number in range(count)]  # fmt: skip


def test_tfrecord_files(tmp_path):
    path = tmp_path / "a.tfrecord"
    writer = data.TFRecordWriter(path)
    for row in record_rows():
        writer.write(row)
    assert not path.exists()
    writer.commit()
    features = {"id": (np.int64, []), "x": (np.float32, [2]), "name": (None, None), "file": (np.uint8, [-1])}
    plain = path.read_bytes()
    for packed in (plain, gzip.compress(plain), zlib.compress(plain)):
        path.write_bytes(packed)
        rows = list(data.tfrecord(path, features))
        assert [int(row["id"]) for row in rows] == list(range(7)) and rows[3]["name"].tolist() == [b"row 3"]
        assert rows[5]["x"].tolist() == [5, -0.5] and rows[6]["file"].tolist() == [6, 0, 255, 0]
    assert data.tfrecord(path).columns == ["file", "id", "name", "x"]
    damaged = bytearray(plain)
    damaged[len(plain) // 2] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(cairn.Error, match=r"a.tfrecord.*(row \d|byte \d).*checksum"):
        list(data.tfrecord(path))
    path.write_bytes(plain[:-3])
    with pytest.raises(cairn.Error, match="a.tfrecord"):
        data.tfrecord(path)


def test_mindrecord_files(tmp_path):
    schema = {"id": ("int64", None), "x": ("float32", [2]), "name": ("string", None), "file": ("bytes", None), "box": ("int32", [-1, 2])}
    rows = [{**row, "box": np.array([[number, -(300**number % 2**31)]] * 2, np.int64)} for number, row in enumerate(record_rows())]
    for shards in (1, 3):
        path = tmp_path / f"rows{shards}"
        writer = data.MindRecordWriter(path, schema, shards, ["id", "name"])
        for row in rows:
            writer.write(row)
        writer.commit()
        dataset = data.mindrecord(path if shards == 1 else f"{path}0")
        assert dataset.columns == list(schema) and len(dataset) == 7
        for row in dataset:
            expected = rows[int(row["id"])]
            for name in schema:
                np.testing.assert_array_equal(row[name], expected[name])
            assert row["box"].dtype == np.int32
    with pytest.raises(cairn.Error, match="does not fit its type"):
        writer.write({**rows[0], "box": np.array([[2**40, 0]])})
    assert column(data.mindrecord(tmp_path / "rows1", ["name"], shards=(2, 0)), "name") == ["row 0", "row 2", "row 4", "row 6"]
    with pytest.raises(cairn.Error, match="no such MindRecord file"):
        data.mindrecord(tmp_path / "none")


def test_mindrecord_headers_are_as_mindspore_writes_them(tmp_path):
    """MindSpore 2.10 aborts at a header without these, and takes blobs in the order of their names."""
    writer = data.MindRecordWriter(tmp_path / "rows", {"b": ("bytes", None), "id": ("int64", None), "a": ("float32", [1])}, index=["id"])
    writer.write({"b": np.frombuffer(b"xy", np.uint8), "id": np.int64(1), "a": np.float32([2])})
    writer.commit()
    file = (tmp_path / "rows").read_bytes()
    header = json.loads(file[8 : 8 + struct.unpack("<Q", file[:8])[0]])
    assert header["index_fields"] == [{"index_field": "id", "schema_id": 0}] and header["schema"][0]["blob_fields"] == ["a", "b"]
    assert [(page["page_type"], page["row_group_ids"]) for page in header["page"]] == [
        ("BLOB_DATA", [{"id": 0, "offset": 0}]), ("RAW_DATA", [{"id": 0, "offset": 0}])]  # fmt: skip
    blob = struct.pack("<Q", 22) + struct.pack(">Qf", 4, 0)[:8] + struct.pack("<f", 2) + struct.pack(">Q", 2) + b"xy"
    assert file[header["header_size"] :].startswith(blob)


def test_what_was_there_stays_until_a_writer_commits(tmp_path):
    path = tmp_path / "rows"
    data.write_mindrecord(numbers(4), path)
    child = os.fork()
    if child == 0:
        writer = data.MindRecordWriter(path, {"x": ("int64", None)})
        writer.write({"x": np.int64(1)})
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert column(data.mindrecord(path)) == [0, 1, 2, 3]


def test_a_writer_that_is_killed_among_its_files_leaves_all_old_or_all_new(tmp_path):
    """Each file is renamed by itself: the next reader makes the renames that are missing."""
    data.write_mindrecord(numbers(8), tmp_path / "rows", shards=4)
    renames, interrupted = tmp_path / ".rows0.renames", 0
    for _ in range(20):
        child = os.fork()
        if child == 0:
            for first in range(1000, 1000000, 1000):
                writer = data.MindRecordWriter(tmp_path / "rows", {"x": ("int64", None)}, shards=4)
                for number in range(first, first + 8 + first // 1000 % 3):
                    writer.write({"x": np.int64(number)})
                writer.commit()
            os._exit(0)
        while not renames.exists():
            pass
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        interrupted += renames.exists()
        found = sorted(column(data.mindrecord(tmp_path / "rows0")))
        assert found == list(range(found[0], found[0] + 8 + found[0] // 1000 % 3)) and not renames.exists()
    assert interrupted


def mutants(good, count, seed=0):
    rng = np.random.RandomState(seed)
    used = np.flatnonzero(np.frombuffer(good, np.uint8))
    for number in range(count):
        changed = bytearray(good)
        for _ in range(1 + number % 3):
            changed[used[rng.randint(len(used))]] = rng.randint(256)
        yield bytes(changed[: rng.randint(1, len(changed))] if number % 5 == 4 else changed)


KINDS = ["mindrecord", "index", "tfrecord", "jpeg", "png", "mnist", "cifar"]


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files_give_a_sentence_with_the_file(tmp_path, kind):
    read_mutants(tmp_path, kind, 200)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_two_thousand_damaged_files_give_a_sentence_with_the_file(tmp_path, kind):
    read_mutants(tmp_path, kind, 2000)


def read_mutants(tmp_path, kind, count):
    if kind in ("mindrecord", "index"):
        path = tmp_path / "rows"
        writer = data.MindRecordWriter(path, {"x": ("int32", [-1]), "y": ("string", None), "z": ("bytes", None)}, header_size=1 << 14, page_size=1 << 15)
        for _ in range(3):
            writer.write({"x": np.arange(9) * 999, "y": np.array("text"), "z": np.frombuffer(b"bytes", np.uint8)})
        writer.commit()
        read = lambda: list(data.mindrecord(path).iterate(workers=0, epochs=1))  # noqa: E731
        changed = tmp_path / "rows.db" if kind == "index" else path
    elif kind == "tfrecord":
        changed = path = tmp_path / "a.tfrecord"
        writer = data.TFRecordWriter(path)
        for row in record_rows(3):
            writer.write(row)
        writer.commit()
        read = lambda: list(data.tfrecord(path).iterate(workers=0, epochs=1))  # noqa: E731
    elif kind == "cifar":
        path = changed = tmp_path / "data_batch_1"
        changed.write_bytes(pickle.dumps({"data": np.ones((3, 3072), np.uint8), "labels": [1, 2, 3]}, 4))
        read = lambda: list(data.cifar10(tmp_path).iterate(workers=0, epochs=1))  # noqa: E731
    elif kind == "mnist":
        path = tmp_path
        changed = tmp_path / "train-images-idx3-ubyte"
        changed.write_bytes(idx(images(2)[..., 0].copy())[: 16 + 2 * 40 * 48])
        (tmp_path / "train-labels-idx1-ubyte").write_bytes(idx(np.zeros(2, np.uint8)))
        read = lambda: list(data.mnist(path).iterate(workers=0, epochs=1))  # noqa: E731
    else:
        (tmp_path / "a").mkdir()
        path = changed = tmp_path / "a" / f"image.{'jpg' if kind == 'jpeg' else 'png'}"
        changed.write_bytes(JPEG if kind == "jpeg" else cairn._data.encode_png(images()[0]))
        dataset = data.image_folder(tmp_path).map(t.decode(), "image")
        read = lambda: list(dataset.iterate(workers=0, epochs=1))  # noqa: E731
    read()
    good, sentences = changed.read_bytes(), 0
    for each in mutants(good, count, count):
        changed.write_bytes(each)
        try:
            read()
        except cairn.Error as error:
            sentences += 1
            assert str(path) in str(error)
    assert sentences > count // 20



@pytest.mark.parametrize("kind", ["jpeg", "png"])
def test_damaged_images_leave_no_memory_behind(kind):
    good = JPEG if kind == "jpeg" else cairn._data.encode_png(images()[0])
    decode, faults = t.decode(), 0

    def turns(count):
        nonlocal faults
        for size in range(count):
            try:
                t.apply(decode, np.frombuffer(good[: 20 + size % (len(good) - 20)], np.uint8))
            except cairn.Error:
                faults += 1
        return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    turns(1000)
    before = turns(1000)
    assert turns(6000) < before + (4 << 20) and faults > 7000
