"""Files of rows between Cairn and the programs whose formats they are: MindRecord with MindSpore, TFRecord with TensorFlow."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT

from cairn import data

KINDS = {"int32": "int32", "int64": "int64", "float32": "float32", "float64": "float64"}


def rows(count=25):
    """Rows of every type of the format, alone and in arrays of fixed and open size."""
    rng = np.random.RandomState(0)
    for number in range(count):
        row = {"id": np.int64(number), "name": f"row {number} é", "file": rng.randint(0, 256, 5 + number).astype(np.uint8)}
        for kind in KINDS:
            whole = kind.startswith("int")
            bound = 2 ** (8 * (1 + number % (4 if kind == "int32" else 7)) - 1) - 1
            row[kind] = np.array(bound if whole else number / 3, kind)
            row[f"{kind}_pair"] = np.array([[bound, -number], [-bound, 7]] if whole else [[number / 7, -1], [1e-30, 3e30]], kind)
            row[f"{kind}_many"] = (rng.randint(-bound, bound, 1 + number) if whole else rng.randn(1 + number)).astype(kind)
        yield row


SCHEMA = {"id": ("int64", None), "name": ("string", None), "file": ("bytes", None)}
for _kind in KINDS:
    SCHEMA |= {_kind: (_kind, None), f"{_kind}_pair": (_kind, [2, 2]), f"{_kind}_many": (_kind, [-1])}


def theirs(task, folder):
    """Run by MindSpore's Python: reads all of our files into an .npz, or writes files of its own."""
    import mindspore.dataset as ds
    from mindspore.mindrecord import FileWriter

    if task == "read":
        for name in ("one", "four0"):
            found = {}
            for row in ds.MindDataset(str(folder / name), shuffle=False).create_dict_iterator(num_epochs=1, output_numpy=True):
                found |= {f"{int(row['id'])}_{column}": value for column, value in row.items()}
            np.savez(folder / f"{name}.npz", **found)
        picked = [int(row["id"]) for row in ds.MindDataset(str(folder / "four0"), ["id"], num_shards=3, shard_id=1, shuffle=False)
                  .create_dict_iterator(num_epochs=1, output_numpy=True)]  # fmt: skip
        (folder / "picked.json").write_text(json.dumps(picked))
        return
    for name, shards in (("one", 1), ("four", 4)):
        writer = FileWriter(str(folder / name), shards, overwrite=True)
        writer.add_schema({column: {"type": kind} | ({} if shape is None else {"shape": shape}) for column, (kind, shape) in SCHEMA.items()}, "rows")
        writer.add_index(["id", "name"])
        plain = [{column: value.tolist() if np.ndim(value) == 0 and not isinstance(value, str) else value.tobytes() if column == "file" else value
                  for column, value in row.items()} for row in rows()]  # fmt: skip
        writer.write_raw_data(plain)
        writer.commit()


def run_theirs(task, folder):
    python = ROOT / ".venv-mindspore" / "bin" / "python"
    if not python.exists():
        pytest.skip("MindSpore is not installed in .venv-mindspore")
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    stub = f"import sys, types; sys.path.insert(0, {str(Path(__file__).parent)!r}); "
    # MindSpore's environment has neither Cairn nor what this file's tests need
    stub += "sys.modules['conftest'] = types.SimpleNamespace(ROOT=None); sys.modules['cairn'] = types.SimpleNamespace(data=None); "
    stub += f"import pathlib, test_data_exchange as t; t.theirs({task!r}, pathlib.Path({str(folder)!r}))"
    done = subprocess.run([python, "-c", stub], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.long
def test_mindspore_reads_our_mindrecord_files(tmp_path):
    for name, shards in (("one", 1), ("four", 4)):
        writer = data.MindRecordWriter(tmp_path / name, SCHEMA, shards, ["id", "name"])
        for row in rows():
            writer.write(row)
        writer.commit()
    run_theirs("read", tmp_path)
    for name in ("one", "four0"):
        found = np.load(tmp_path / f"{name}.npz")
        assert len(found.files) == 25 * len(SCHEMA)
        for row in rows():
            for column, value in row.items():
                made = found[f"{row['id']}_{column}"]
                if column == "file":  # NumPy's texts end where only zeros follow
                    assert made.tobytes().rstrip(b"\0") == value.tobytes().rstrip(b"\0")
                else:
                    np.testing.assert_array_equal(made, value)
    assert len(json.loads((tmp_path / "picked.json").read_text())) == 9


@pytest.mark.long
def test_we_read_mindspores_mindrecord_files(tmp_path):
    run_theirs("write", tmp_path)
    expected = {int(row["id"]): row for row in rows()}
    for path in ("one", "four0"):
        found = {int(row["id"]): row for row in data.mindrecord(tmp_path / path, shuffle=True)}
        assert found.keys() == expected.keys()
        for number, row in found.items():
            for column, value in expected[number].items():
                np.testing.assert_array_equal(row[column], value, f"{path} {number} {column}")


def test_tensorflow_reads_our_tfrecord_files_and_we_its(tmp_path):
    script = """
import sys
import numpy as np
import tensorflow as tf
folder = sys.argv[1]
features = {"id": tf.io.FixedLenFeature([], tf.int64), "x": tf.io.FixedLenFeature([3], tf.float32), "name": tf.io.VarLenFeature(tf.string),
            "many": tf.io.VarLenFeature(tf.int64)}
for record in tf.data.TFRecordDataset(folder + "/ours"):
    row = tf.io.parse_single_example(record, features)
    print(int(row["id"]), row["x"].numpy().tolist(), [each.decode() for each in row["name"].values.numpy()], row["many"].values.numpy().tolist())
feature = tf.train.Feature
for name, packing in (("plain", ""), ("gzip", "GZIP"), ("zlib", "ZLIB")):
    with tf.io.TFRecordWriter(f"{folder}/{name}", packing) as writer:
        for number in range(6):
            told = {"id": feature(int64_list=tf.train.Int64List(value=[number - 3])), "x": feature(float_list=tf.train.FloatList(value=[number / 3, -1, 0])),
                    "many": feature(int64_list=tf.train.Int64List(value=range(number + 1))), "name": feature(bytes_list=tf.train.BytesList(value=[b"a", b"bc"]))}
            writer.write(tf.train.Example(features=tf.train.Features(feature=told)).SerializeToString())
"""
    writer = data.TFRecordWriter(tmp_path / "ours")
    for number in range(6):
        writer.write({"id": np.int64(number - 3), "x": np.array([number / 3, -1, 0], np.float32), "name": np.array(["a", "bc"]),
                      "many": np.arange(number + 1)})  # fmt: skip
    writer.commit()
    done = subprocess.run([sys.executable, "-c", script, tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    third = np.float32(1) / np.float32(3)
    assert done.stdout.splitlines()[1] == f"-2 {[float(third), -1.0, 0.0]} ['a', 'bc'] [0, 1]"
    assert len(done.stdout.splitlines()) == 6
    for name in ("plain", "gzip", "zlib"):
        for number, row in enumerate(data.tfrecord(tmp_path / name, {"id": (None, []), "x": (None, None), "many": (None, None), "name": (None, None)})):
            assert (int(row["id"]), row["many"].tolist(), row["name"].tolist()) == (number - 3, list(range(number + 1)), [b"a", b"bc"])
            np.testing.assert_array_equal(row["x"], np.array([number / 3, -1, 0], np.float32))
