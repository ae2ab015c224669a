"""`cairn quantize` and cairn.quantize: nets trained here lose at most half a point, budgets hold, faults are one sentence."""

import json

import numpy as np
import pytest

import cairn

CLASSES = 10


@pytest.fixture(scope="module")
def digits():
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(images))
    return (images[order] / 16).astype(np.float32).reshape(-1, 8, 8, 1), labels[order].astype(np.int32)


def trained(model, x, y, epochs):
    """The model, fitted on the first two thirds, and the rest of the examples."""
    from tensorflow import keras

    keras.utils.set_random_seed(1)
    cut = len(x) * 2 // 3
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(x[:cut], y[:cut], batch_size=64, epochs=epochs, verbose=0)
    return {"x": x[cut:], "y": y[cut:]}


def digits_cnn(digits):
    from tensorflow.keras import Sequential, layers

    layer = [layers.Input((8, 8, 1), name="x"), layers.Conv2D(16, 3, padding="same"), layers.BatchNormalization(momentum=0.8),
             layers.ReLU(), layers.Conv2D(32, 3, strides=2, padding="same"), layers.ReLU(),
             layers.DepthwiseConv2D(3, padding="same"), layers.ReLU(), layers.Flatten(), layers.Dense(CLASSES)]  # fmt: skip
    model = Sequential(layer)
    return model, trained(model, *digits, epochs=6)


def resnet(digits):
    from tensorflow.keras import Input, Model, layers

    def conv(x, width, size=3, strides=1):
        x = layers.Conv2D(width, size, strides=strides, padding="same", use_bias=False)(x)
        return layers.BatchNormalization(momentum=0.8)(x)

    start = Input((32, 32, 3), name="x")
    x = layers.ReLU()(conv(start, 8, strides=2))
    for width, strides in ((8, 1), (16, 2)):
        way = x if strides == 1 else conv(x, width, 1, strides)
        x = layers.ReLU()(conv(layers.ReLU()(conv(x, width, 3, strides)), width) + way)
    model = Model(start, layers.Dense(CLASSES)(layers.Flatten()(x)))
    images, labels = digits
    images = np.repeat(np.repeat(np.repeat(images, 4, 1), 4, 2), 3, 3)
    noise = np.random.default_rng(1).normal(0, 0.1, images.shape)
    return model, trained(model, (images + noise).astype(np.float32), labels, epochs=3)


def bert_tiny(digits):
    import tensorflow as tf
    from tensorflow.keras import Input, Model, layers

    words, length, width = 50, 16, 32
    start = Input((length,), dtype="int32", name="x")
    x = layers.Embedding(words, width)(start) + layers.Embedding(length, width)(tf.range(length))
    for _ in range(2):
        x = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 16)(x, x))
        x = layers.LayerNormalization()(x + layers.Dense(width)(layers.Dense(64, activation="gelu")(x)))
    model = Model(start, layers.Dense(4)(x[:, 0]))
    texts = np.random.default_rng(2).integers(0, words, (1500, length)).astype(np.int32)
    classes = (texts < 10).sum(1) > 3
    return model, trained(model, texts, (classes + 2 * ((texts >= 40).sum(1) > 3)).astype(np.int32), epochs=12)


@pytest.fixture(scope="module", params=[digits_cnn, resnet, bert_tiny], ids=lambda make: make.__name__)
def net(request, digits, tmp_path_factory):
    model, data = request.param(digits)
    folder = tmp_path_factory.mktemp("net")
    model.save(folder / "net.keras")
    np.savez(folder / "data.npz", **data)
    return folder, data


def accuracy(path, data):
    (logits,) = cairn.load(path).run({"x": data["x"]}).values()
    return float((logits.argmax(-1) == data["y"]).mean())


def test_nets_lose_at_most_half_a_point(net):
    folder, data = net
    before = accuracy(folder / "net.keras", data)
    assert before > 0.8, "the net has not learned, so that its loss would say nothing"
    made = cairn.quantize(folder / "net.keras", folder / "data.npz", folder / "net.om", report=folder / "page.html")
    assert accuracy(folder / "net.om", data) >= before - 0.005
    assert made.report["original"]["accuracy"] == pytest.approx(before)
    assert made.report["final"]["accuracy"] == pytest.approx(accuracy(folder / "net.om", data), abs=2e-3)
    assert all(layer["quantised"] and layer["sqnr"] > 20 for layer in made.report["layers"])
    assert (folder / "net.om").stat().st_size < 0.6 * (folder / "net.keras").stat().st_size
    assert "data.npz" in (folder / "page.html").read_text()


@pytest.mark.parametrize("method", ["minmax", "percentile", "kl", "mse"])
def test_every_method_holds_its_budget(net, method):
    folder, data = net
    made = cairn.quantize(folder / "net.keras", data, method=method, batch=64)
    assert made.report["within"]
    assert made.report["final"]["accuracy"] >= made.report["original"]["accuracy"] - 0.005


def test_weights_alone(net):
    folder, data = net
    sizes = {}
    for bits in (8, 4):
        made = cairn.quantize(folder / "net.keras", weights_only=bits, group=16)
        made.save(folder / "weights.om")
        sizes[bits] = made.report["bytes_after"]
        assert accuracy(folder / "weights.om", data) >= accuracy(folder / "net.keras", data) - (0.005 if bits == 8 else 0.03)
    assert sizes[4] < sizes[8] < made.report["bytes_before"] / 2


def test_the_command_writes_all_it_is_asked_for(net, command, tmp_path):
    folder, data = net
    files = [f"--{name}={tmp_path / file}" for name, file in (("report", "p.html"), ("write-config", "c"), ("write-record", "r"))]
    run = command("cairn", "quantize", folder / "net.keras", "--data", folder / "data.npz", "-o", tmp_path / "q.om", *files)
    assert run.returncode == 0, run.stderr
    assert all(len(line) <= 100 for line in run.stdout.splitlines())
    assert f"wrote {tmp_path / 'q.om'}" in run.stdout
    assert json.loads((tmp_path / "c").read_text())["version"] == 1
    again = command("cairn", "quantize", folder / "net.keras", "--record", tmp_path / "r", "-o", tmp_path / "again.om", "--json")
    assert json.loads(again.stdout)["layers"]
    assert abs(accuracy(tmp_path / "again.om", data) - accuracy(tmp_path / "q.om", data)) < 0.02


def test_a_layer_of_outliers_stays_in_floats(tmp_path):
    b, rng = cairn.Builder(), np.random.default_rng(3)

    def times_weights(x, rows, columns):
        return x.matmul((rng.normal(size=(rows, columns)) / np.sqrt(rows)).astype(np.float32))

    h = times_weights(b.input("x", "float32", [None, 32]), 32, 32)
    h = h * ((h > 2.9).cast(dtype="float32") * 1000.0 + 1.0)
    h = times_weights(times_weights(h, 32, 32).tanh(), 32, 16).relu()
    b.output("y", times_weights(h, 16, 4))
    data = rng.normal(size=(256, 32)).astype(np.float32)
    options = {"method": "minmax", "budget": "20dB", "without": ["costs"]}
    made = cairn.quantize(b.save(tmp_path / "hard.om"), data, **options)
    assert [layer["quantised"] for layer in made.report["layers"]] == [True, False, True, True]
    assert "the budget" in made.report["layers"][1]["reason"]
    assert made.report["final"]["sqnr"] >= 20 > made.report["whole"]["sqnr"]


def test_one_array_in_a_file_is_the_only_input(command, tmp_path):
    b, rng = cairn.Builder(), np.random.default_rng(0)
    b.output("y", b.input("x", "float32", [None, 32]).matmul(rng.normal(size=(32, 16)).astype(np.float32)))
    b.save(tmp_path / "net.om")
    data = rng.normal(size=(64, 32)).astype(np.float32)
    np.save(tmp_path / "rows.npy", data)
    np.savez(tmp_path / "rows.npz", x=data)
    made = [command("cairn", "quantize", "net.om", "--data", f"rows{ending}", "-o", f"{ending[1:]}.om", "--json") for ending in (".npy", ".npz")]
    assert [each.returncode for each in made] == [0, 0], made[0].stderr
    assert (tmp_path / "npy.om").read_bytes() == (tmp_path / "npz.om").read_bytes()


@pytest.mark.parametrize(
    "words, sentence",
    [
        (["--data", "missing.npz", "-o", "q.om"], "missing.npz: cannot be opened: No such file or directory"),
        (["-o", "q.om"], "--data: is missing: calibration needs examples, an .npz file or a folder"),
        (["--data", "cut.npz", "-o", "q.om"], "cut.npz: is not a zip archive, or is cut off"),
        (["--data", "other.npz", "-o", "q.om"], "x: is f32[5, 3], the model takes f32[?, 4]"),
        (["--data", "nan.npz", "-o", "q.om"], "x: holds 1 values that are infinite or no numbers, of 20"),
        (["--data", "good.npz", "-o", "q.om", "--budget", "much"], "budget: 'much' is neither a share as 0.5% nor a ratio as 25dB"),
        (["--data", "good.npz"], "--output: is missing, and so is --report: there is nothing to write"),
        (["--weights-only", "3", "-o", "q.om"], "weights-only: 3 bits are not supported; 8 or 4"),
    ],
)
def test_faults_are_one_sentence(command, tmp_path, words, sentence):
    b = cairn.Builder()
    b.output("y", b.input("x", "float32", [None, 4]).matmul(np.ones((4, 2), np.float32)))
    b.save(tmp_path / "net.om")
    good = np.ones((5, 4), np.float32)
    np.savez(tmp_path / "good.npz", x=good)
    np.savez(tmp_path / "other.npz", x=np.ones((5, 3), np.float32))
    good[2, 2] = np.nan
    np.savez(tmp_path / "nan.npz", x=good)
    (tmp_path / "cut.npz").write_bytes((tmp_path / "good.npz").read_bytes()[:60])
    run = command("cairn", "quantize", "net.om", *words)
    assert run.returncode == 1
    assert run.stderr.strip() == f"error: quantize: {sentence}"
    assert not (tmp_path / "q.om").exists()
