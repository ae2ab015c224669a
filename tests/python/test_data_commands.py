"""cairn data: what is told of data sets, conversions both ways, and what an end in the middle leaves behind."""

import json
import os
import pathlib
import pickle
import random
import shutil
import signal
import subprocess
import time

import numpy as np
import pytest
from conftest import BIN

from cairn import data

JPEG = pathlib.Path(__file__).parent / "data" / "waves.jpg"


def cairn(*words, status=0):
    done = subprocess.run([BIN / "cairn", "data", *map(str, words)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == status, done.stderr
    return done.stdout if status == 0 else done.stderr


def told(path, *words):
    return json.loads(cairn("inspect", path, "--json", *words))


@pytest.fixture
def photos(tmp_path):
    for name in ("cat/1.jpg", "cat/2.jpg", "dog/x y.jpg"):
        (tmp_path / "photos" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(JPEG, tmp_path / "photos" / name)
    return tmp_path / "photos"


def tree(folder):
    return {str(each.relative_to(folder)): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


def cifar(folder, labels=1, count=30):
    folder.mkdir()
    records = np.random.RandomState(0).randint(0, 256, (count, 3072 + labels)).astype(np.uint8)
    records[:, :labels] %= 10
    records.tofile(folder / ("train.bin" if labels == 2 else "data_batch_1.bin"))
    return folder


def mnist(folder, count=20):
    folder.mkdir()
    rng = np.random.RandomState(1)
    (folder / "train-images-idx3-ubyte").write_bytes(bytes([0, 0, 8, 3, 0, 0, 0, count, 0, 0, 0, 28, 0, 0, 0, 28]) + rng.bytes(count * 784))
    (folder / "train-labels-idx1-ubyte").write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, count]) + bytes(range(count)))
    return folder


def test_inspect_tells_kind_columns_labels_and_rows(photos, tmp_path):
    about = told(photos)
    assert (about["kind"], about["files"], about["rows"], about["bytes"]) == ("images", 3, 3, 3 * JPEG.stat().st_size)
    assert [(each["name"], each["type"], each["shape"]) for each in about["columns"]] == [
        ("image", "uint8", [JPEG.stat().st_size]), ("label", "int32", []), ("file_name", "text", [])]  # fmt: skip
    assert about["counts"] == [{"name": "cat", "rows": 2}, {"name": "dog", "rows": 1}]
    assert about["samples"][2] == {"row": 2, "values": [["image", "JPEG, 72 x 96 pixels"], ["label", "1"], ["file_name", "dog/x y.jpg"]]}
    text = cairn("inspect", photos, "--html", tmp_path / "page.html")
    assert "dog       1" in text and all(len(line) <= 100 for line in text.splitlines()[1:])
    page = (tmp_path / "page.html").read_text()
    assert page.count("data:image/jpeg;base64,") == 3 and "/*DATA*/" not in page
    assert told(mnist(tmp_path / "mnist"), "--rows", 2)["samples"][1]["values"] == [["image", "28 x 28 pixels"], ["label", "1"]]


@pytest.mark.parametrize("between", ["mindrecord", "tfrecord"])
@pytest.mark.parametrize("kind", ["images", "cifar10", "cifar100", "mnist"])
def test_images_come_back_as_they_were(kind, between, photos, tmp_path):
    source = {"images": lambda: photos, "cifar10": lambda: cifar(tmp_path / "from"), "cifar100": lambda: cifar(tmp_path / "from", 2),
              "mnist": lambda: mnist(tmp_path / "from")}[kind]()  # fmt: skip
    middle = tmp_path / f"rows.{between}"
    cairn("convert", source, "-o", middle)
    assert told(middle)["counts"] == [{**each, "name": str(number) if kind == "images" else each["name"]}
                                      for number, each in enumerate(told(source)["counts"])]  # fmt: skip
    cairn("convert", middle, "-o", tmp_path / "back", "--to", kind)
    assert tree(tmp_path / "back") == tree(source)


def test_tables_come_back_as_they_were_and_shards_hold_all_rows(tmp_path):
    lines = ["name,count,share"] + [f'"n, {i}",{i - 3},{(i + 0.5) / 7!r}' for i in range(10)]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    assert [each["type"] for each in told(tmp_path / "t.csv")["columns"]] == ["text", "int32", "float64"]
    cairn("convert", tmp_path / "t.csv", "-o", tmp_path / "t.mindrecord", "--shards", 3, "--index", "count")
    assert told(tmp_path / "t.mindrecord0")["files"] == 3
    shares = sorted(float(row["share"]) for row in data.mindrecord(tmp_path / "t.mindrecord0"))
    assert shares == [(i + 0.5) / 7 for i in range(10)]
    cairn("convert", tmp_path / "t.csv", "-o", tmp_path / "one.mindrecord")
    cairn("convert", tmp_path / "one.mindrecord", "-o", tmp_path / "back.csv")
    assert (tmp_path / "back.csv").read_text() == (tmp_path / "t.csv").read_text()
    cairn("convert", tmp_path / "t.csv", "-o", tmp_path / "t.tfrecord", "--shards", 2)
    assert told(tmp_path / "t.tfrecord-00001-of-00002")["rows"] == 10


def test_what_is_wrong_is_told_in_a_sentence(photos, tmp_path):
    assert "no such file" in cairn("inspect", tmp_path / "none", status=1)
    (tmp_path / "empty").mkdir()
    assert "holds no data set that is known" in cairn("inspect", tmp_path / "empty", status=1)
    assert "--from names it" in cairn("inspect", JPEG, status=1)
    assert "already and not empty" in cairn("convert", photos, "-o", photos, "--to", "images", status=1)
    assert "is not written in shards" in cairn("convert", photos, "-o", tmp_path / "x.csv", "--shards", 2, status=1)
    assert "a cell of CSV holds one" in cairn("convert", photos, "-o", tmp_path / "x.csv", status=1)
    (photos / "cat" / "1.jpg").write_bytes(JPEG.read_bytes()[:300])
    cairn("convert", photos, "-o", tmp_path / "p.mindrecord")
    fault = cairn("convert", tmp_path / "p.mindrecord", "-o", tmp_path / "c", "--to", "cifar10", status=1)
    assert "p.mindrecord, row 0" in fault and not (tmp_path / "c").exists() and not (tmp_path / "c.part").exists()
    writer = data.TFRecordWriter(tmp_path / "evil.tfrecord")
    writer.write({"image": np.frombuffer(JPEG.read_bytes(), np.uint8), "label": np.int64(0), "file_name": "../../out.jpg"})
    writer.commit()
    assert "leads out of the folder" in cairn("convert", tmp_path / "evil.tfrecord", "-o", tmp_path / "d", "--to", "images", status=1)


def test_pickled_cifar_is_read_as_the_binary_files_are(tmp_path):
    path = cifar(tmp_path / "from")
    held = np.frombuffer((path / "data_batch_1.bin").read_bytes(), np.uint8).reshape(-1, 3073)
    (tmp_path / "python" / "cifar-10-batches-py").mkdir(parents=True)
    (tmp_path / "python" / "cifar-10-batches-py" / "batches.meta").write_bytes(pickle.dumps({b"label_names": []}, 2))
    batch = {b"data": held[:, 1:].copy(), b"labels": held[:, 0].tolist()}
    (tmp_path / "python" / "cifar-10-batches-py" / "data_batch_1").write_bytes(pickle.dumps(batch, 2))
    (tmp_path / "photos" / "cat").mkdir(parents=True)
    shutil.copy(JPEG, tmp_path / "photos" / "cat")
    (tmp_path / "photos" / "train").write_text("a list of names")
    assert told(tmp_path / "photos")["rows"] == 1
    assert told(tmp_path / "python")["columns"] == told(path)["columns"]
    cairn("convert", tmp_path / "python", "-o", tmp_path / "copy", "--to", "cifar10")
    assert (tmp_path / "copy" / "data_batch_1.bin").read_bytes() == held.tobytes()


@pytest.mark.parametrize("kind", ["mindrecord", "tfrecord", "images"])
def test_an_end_in_the_middle_leaves_what_lay_there(kind, tmp_path):
    source, target = cifar(tmp_path / "from", count=4000), tmp_path / f"rows.{kind}"
    small = cifar(tmp_path / "small", count=3)
    rng, killed = random.Random(0), 0
    for _ in range(6):
        shutil.rmtree(target, ignore_errors=True)
        if kind != "images":
            cairn("convert", small, "-o", target)
        running = subprocess.Popen([BIN / "cairn", "data", "convert", source, "-o", target, "--to", kind], stdout=subprocess.DEVNULL)
        time.sleep(rng.uniform(0.005, 0.15))
        running.send_signal(signal.SIGKILL)
        killed += running.wait() == -signal.SIGKILL
        if kind != "images" or target.exists():
            assert told(target)["rows"] in (3, 4000)
            assert len([row for row in data.tfrecord(target)] if kind == "tfrecord" else [1])
    assert killed
    shutil.rmtree(target, ignore_errors=True)
    cairn("convert", source, "-o", target, "--to", kind)
    assert told(target)["rows"] == 4000


def test_a_full_disk_is_told_and_leaves_what_lay_there(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounting = ["unshare", "-m", "bash", "-c"]
    if subprocess.run([*mounting, f"mount -t tmpfs -o size=2m tmpfs {disk}"], capture_output=True, check=False).returncode:
        pytest.skip("mounting a file system is not permitted here")
    small, large = cifar(tmp_path / "small", count=3), cifar(tmp_path / "large", count=4000)
    for kind in ("tfrecord", "images"):
        target = disk / f"rows.{kind}"
        script = f"""mount -t tmpfs -o size=2m tmpfs {disk}; set -u
            {BIN}/cairn data convert {small} -o {target if kind != "images" else disk / "kept"} --to {kind} || exit 9
            {BIN}/cairn data convert {large} -o {target} --to {kind} && exit 8
            {BIN}/cairn data inspect {target if kind != "images" else disk / "kept"} --json | head -7; ls {disk}"""
        done = subprocess.run([*mounting, script], capture_output=True, text=True, check=False)
        assert "No space left on device" in done.stderr and '"rows": 3' in done.stdout, done.stderr + done.stdout
        assert done.stdout.split("}")[-1].split()[-1] in ("kept", f"rows.{kind}")
    assert os.listdir(disk) == []
