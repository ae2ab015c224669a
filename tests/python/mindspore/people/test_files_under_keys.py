"""Encrypted checkpoints and graphs, graphs converted to ONNX, made images, and the words of checks that all data sets share."""
import os
import secrets
import numpy as np
import pytest
import mindspore as ms
import mindspore.dataset as ds
import mindspore.nn as nn
from mindspore import Model, Tensor, context
from mindspore import load_checkpoint, load_param_into_net, save_checkpoint
from mindspore.common import dtype as mstype
from mindspore.dataset.transforms import c_transforms
from mindspore.train.callback import CheckpointConfig, ModelCheckpoint
from mindspore.train.serialization import _get_mindir_inputs, convert_model, export

MODES = ["AES-GCM", "AES-CBC", "SM4-CBC"]
KEY, OTHER = b"0123456789abcdef", b"fedcba9876543210"


class Small(nn.Cell):
    def __init__(self):
        super(Small, self).__init__()
        self.conv = nn.Conv2d(1, 3, 3, weight_init="normal")
        self.up = nn.Conv2dTranspose(3, 2, 2, stride=2, pad_mode="valid", weight_init="normal")

    def construct(self, x):
        return self.up(self.conv(x))


class Both(nn.Cell):
    def construct(self, x, y):
        return x, y


def image():
    return Tensor(np.random.RandomState(0).rand(1, 1, 4, 4).astype(np.float32))


@pytest.mark.parametrize("mode", MODES)
def test_checkpoint_under_a_key(tmp_path, mode):
    net, path = Small(), str(tmp_path / "net.ckpt")
    save_checkpoint(net, path, enc_key=KEY, enc_mode=mode)
    with open(path, "rb") as file:
        assert b"conv.weight" not in file.read()
    other = Small()
    load_param_into_net(other, load_checkpoint(path, dec_key=KEY, dec_mode=mode))
    assert np.array_equal(other.conv.weight.asnumpy(), net.conv.weight.asnumpy())
    with pytest.raises(ValueError):
        load_checkpoint(path, dec_key=OTHER, dec_mode=mode)
    with pytest.raises(ValueError, match="encrypted"):
        load_checkpoint(path)
    with pytest.raises(ValueError):
        load_checkpoint(path, dec_key=KEY, dec_mode="AES-CBC" if mode == "AES-GCM" else "AES-GCM")


def test_damaged_files_under_a_key(tmp_path):
    path = tmp_path / "net.ckpt"
    save_checkpoint(Small(), str(path), enc_key=KEY)
    whole = path.read_bytes()
    path.chmod(0o600)
    for place in (0, 9, 20, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1:])
        with pytest.raises(ValueError):
            load_checkpoint(str(path), dec_key=KEY)
    path.write_bytes(whole[:-5])
    with pytest.raises(ValueError):
        load_checkpoint(str(path), dec_key=KEY)


@pytest.mark.parametrize("key, mode, error", [("0123456789abcdef", "AES-GCM", TypeError), (KEY, 3, TypeError), (KEY, "DES", ValueError),
                                              (KEY[:5], "AES-GCM", ValueError), (KEY * 2, "SM4-CBC", ValueError)])
def test_wrong_keys(tmp_path, key, mode, error):
    with pytest.raises(error):
        save_checkpoint(Small(), str(tmp_path / "net.ckpt"), enc_key=key, enc_mode=mode)
    with pytest.raises(error):
        CheckpointConfig(enc_key=key, enc_mode=mode)
    assert not os.listdir(tmp_path)


def test_callback_under_a_key(tmp_path):
    key = secrets.token_bytes(32)
    x, y = np.random.rand(8, 4).astype(np.float32), np.random.rand(8, 2).astype(np.float32)
    net = nn.Dense(4, 2)
    model = Model(net, nn.MSELoss(), nn.Momentum(net.trainable_params(), 0.1, 0.9))
    config = CheckpointConfig(save_checkpoint_steps=2, enc_key=key, enc_mode="AES-CBC")
    assert config.enc_key == key and config.enc_mode == "AES-CBC"
    model.train(1, ds.NumpySlicesDataset({"x": x, "y": y}, shuffle=False).batch(4), callbacks=[ModelCheckpoint("k", str(tmp_path), config)],
                dataset_sink_mode=False)
    told = load_checkpoint(str(tmp_path / "k-1_2.ckpt"), dec_key=key, dec_mode="AES-CBC")
    assert np.array_equal(told["weight"].asnumpy(), net.weight.asnumpy())


@pytest.mark.parametrize("mode", MODES)
def test_mindir_under_a_key(tmp_path, mode):
    net, x, path = Small(), image(), str(tmp_path / "net.mindir")
    export(net, x, file_name=path, file_format="MINDIR", enc_key=KEY, enc_mode=mode)
    graph = nn.GraphCell(ms.load(path, dec_key=KEY, dec_mode=mode))
    assert np.allclose(graph(x).asnumpy(), net(x).asnumpy(), atol=1e-6)
    with pytest.raises(RuntimeError):
        ms.load(path)


@pytest.mark.parametrize("file_format", ["MINDIR", "ONNX"])
def test_functions_of_the_script_as_modes(tmp_path, file_format):
    def turned(data, key):
        return bytes(each ^ key[0] for each in data)

    def plain(path, key):
        with open(path, "rb") as file:
            return turned(file.read(), key)

    path = str(tmp_path / ("net." + file_format.lower()))
    export(Small(), image(), file_name=path, file_format=file_format, enc_key=b"\x55", enc_mode=turned)
    assert b"Conv" in plain(path, b"\x55")
    if file_format == "MINDIR":
        assert nn.GraphCell(ms.load(path, dec_key=b"\x55", dec_mode=plain))(image()).shape == (1, 2, 8, 8)


def test_inputs_of_mindir(tmp_path):
    path = str(tmp_path / "both.mindir")
    export(Both(), Tensor(np.zeros(1), mstype.float16), Tensor(np.zeros([10, 20]), mstype.int32), file_name=path, file_format="MINDIR")
    one, two = _get_mindir_inputs(path)
    assert (one.shape, one.dtype, two.shape, two.dtype) == ((1,), mstype.float16, (10, 20), mstype.int32)
    export(Small(), image(), file_name=path, file_format="MINDIR")
    assert _get_mindir_inputs(path).shape == (1, 1, 4, 4)


def test_mindir_becomes_onnx(tmp_path):
    mindir, onnx = str(tmp_path / "net.mindir"), str(tmp_path / "net.onnx")
    export(Small(), image(), file_name=mindir, file_format="MINDIR")
    convert_model(mindir, onnx, "ONNX")
    assert os.path.getsize(onnx) > 100
    with pytest.raises(ValueError):
        convert_model(mindir, str(tmp_path / "net.om"), "OM")


def test_dataset_tells_the_inputs(tmp_path):
    rows = ds.NumpySlicesDataset({"image": np.zeros((8, 1, 4, 4), np.float32), "label": np.zeros(8, np.int32)}, shuffle=False).batch(2)
    export(Small(), rows, file_name=str(tmp_path / "net"), file_format="MINDIR")
    assert _get_mindir_inputs(str(tmp_path / "net.mindir")).shape == (2, 1, 4, 4)


def test_made_images():
    rows = ds.FakeImageDataset(50, (28, 20, 3), 10, 0, shuffle=False)
    assert (rows.get_dataset_size(), rows.get_col_names(), rows.num_classes()) == (50, ["image", "label"], 10)
    read = list(rows.create_dict_iterator(num_epochs=1, output_numpy=True))
    assert read[0]["image"].shape == (28, 20, 3) and read[0]["image"].dtype == np.uint8 and read[0]["label"].dtype == np.uint32
    again = list(ds.FakeImageDataset(50, (28, 20, 3), 10, 0, shuffle=False).create_dict_iterator(num_epochs=1, output_numpy=True))
    assert all(np.array_equal(one["image"], two["image"]) for one, two in zip(read, again))
    other = next(ds.FakeImageDataset(50, (28, 20, 3), 10, 1, shuffle=False).create_dict_iterator(output_numpy=True))
    assert not np.array_equal(read[0]["image"], other["image"])
    chosen = ds.FakeImageDataset(50, (4, 4, 3), 10, 0, sampler=ds.PKSampler(3)).create_dict_iterator(num_epochs=1, output_numpy=True)
    assert [int(row["label"]) for row in chosen] == [label for label in range(10) for _ in range(3)]


@pytest.mark.parametrize("given, error, words", [
    (dict(num_shards=10), RuntimeError, "num_shards is specified and currently requires shard_id as well"),
    (dict(shard_id=0), RuntimeError, "shard_id is specified but num_shards is not"),
    (dict(num_shards=5, shard_id=5), ValueError, "Input shard_id is not within the required interval"),
    (dict(num_shards=5, shard_id=-1), ValueError, "Input shard_id is not within the required interval"),
    (dict(num_shards=2, shard_id="0"), TypeError, "Argument shard_id"),
    (dict(num_parallel_workers=0), ValueError, "num_parallel_workers exceeds"),
    (dict(num_parallel_workers="2"), TypeError, "Argument num_parallel_workers"),
    (dict(image_size=(2, 2)), ValueError, "image_size should be a list or tuple of length 3, but got 2"),
    (dict(image_size=("-1", 2, 2)), TypeError, "is not of type"),
    (dict(num_images=-1), ValueError, "Input num_images is not within the required interval of"),
    (dict(num_classes="10"), TypeError, "is not of type"),
])
def test_wrong_arguments_of_data_sets(given, error, words):
    with pytest.raises(error, match=words):
        ds.FakeImageDataset(**{"num_images": 4, "image_size": (2, 2, 3), **given})


@pytest.mark.parametrize("rows, operation, words", [
    ([[[1, 2], [3, 4]]], lambda: c_transforms.Concatenate(0), "only 1D input supported"),
    ([[1, 2]], lambda: c_transforms.Concatenate(0, np.array(["a"])), "input datatype does not match"),
    ([30], lambda: c_transforms.OneHot(20), "is smaller than the category number"),
])
def test_words_of_transforms(rows, operation, words):
    with pytest.raises(RuntimeError, match=words):
        for _ in ds.NumpySlicesDataset(rows, column_names="col").map(operation(), "col"):
            pass


def test_precision_is_exact():
    metric = nn.Precision("classification")
    metric.clear()
    metric.update(Tensor(np.array([[0.2, 0.5], [0.3, 0.1], [0.9, 0.6]])), Tensor(np.array([1, 0, 1])))
    assert np.equal(metric.eval(), np.array([0.5, 1])).all()
