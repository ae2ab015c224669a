"""Whole recommenders, from records, words and tables to scores, convert and answer as TensorFlow does."""

import numpy as np
import pytest

import cairn

# Inputs of each signature: known and unknown words, empty rows, words in several batches.
FEEDS = {
    "esmm": [
        {"user": [["u1"], ["u9"], [""]], "tags": [["red", "zebra"], ["", ""], ["größer", "blue"]], "price": [[1.0], [-2.0], [0.5]], "item": [[3], [-1], [29]]},
        {"user": [["u2"]], "tags": [["green"]], "price": [[3.0]], "item": [[7]]},
    ],
    "two_towers": [
        {"user": ["ann", "zoe", "eve"], "age": [[20.0], [55.5], [30.0]], "country": [["de"], ["fr"], [""]], "item": [7, 4, 11], "title": [["The RED, car"], [""], ["blue blue unknown car a the"]]},
        {"user": ["bob"], "age": [[18.0]], "country": [["xy"]], "item": [3], "title": [["car!"]]},
    ],
}  # fmt: skip


def arrays(feed):
    kinds = {"item": np.int64, "price": np.float32, "age": np.float32}
    return {name: np.array(value, kinds.get(name, object)) for name, value in feed.items()}


def as_bytes(array):
    """Texts as NumPy stores them in a file, with their length."""
    if array.dtype != object:
        return array
    return np.array([text if isinstance(text, bytes) else text.encode() for text in array.flat]).reshape(array.shape)


@pytest.fixture(scope="module", params=("wide_and_deep", "esmm", "two_towers"))
def recommender(request, tmp_path_factory):
    """The folder, its signature, and pairs of inputs and what TensorFlow makes of them."""
    import recommenders
    import tensorflow as tf

    folder = tmp_path_factory.mktemp(request.param)
    path = getattr(recommenders, request.param)(folder)
    (folder / "words.txt").unlink(missing_ok=True)  # the export has its own
    records = recommenders.EXAMPLES
    wide = [{"examples": np.array(some, object)} for some in (records, records[:2], records[2:] + records[:1])]
    feeds = wide if request.param == "wide_and_deep" else [arrays(feed) for feed in FEEDS[request.param]]
    loaded = tf.saved_model.load(path)
    signature = "predict" if request.param == "wide_and_deep" else "serving_default"
    run = loaded.signatures[signature]
    pairs = [(feed, {name: value.numpy() for name, value in run(**{k: tf.constant(v) for k, v in feed.items()}).items()}) for feed in feeds]
    return path, signature, pairs


def check(model, pairs):
    for feed, expected in pairs:
        found = model.run(feed)
        assert set(found) == set(expected)
        for name, want in expected.items():
            assert found[name].shape == want.shape and found[name].dtype == want.dtype, name
            same = np.array_equal(found[name], want) if want.dtype == object else np.allclose(found[name], want, 1e-5, 1e-6)
            assert same, f"{name}: {found[name]} {want}"


def test_a_recommender_converts_whole(recommender, command, tmp_path):
    path, signature, pairs = recommender
    check(cairn.load(path, signature=signature), pairs)
    done = command("cairn", "convert", path, "--signature", signature, "-o", "whole.om")
    assert done.returncode == 0, done.stderr
    check(cairn.load(str(tmp_path / "whole.om")), pairs)


def test_a_frozen_recommender_keeps_its_tables(recommender, command, tmp_path):
    path, signature, pairs = recommender
    done = command("cairn", "freeze", path, "--signature", signature, "-o", "frozen.pb")
    assert done.returncode == 0, done.stderr
    done = command("cairn", "convert", "frozen.pb", "-o", "frozen.om")
    assert done.returncode == 0, done.stderr
    model = cairn.load(str(tmp_path / "frozen.om"))
    feed, inputs = pairs[1 if "examples" in pairs[0][0] else 0][0], []  # NumPy's files drop zeros at the end of a text
    for port in model.inputs:
        value = feed[port.name.removeprefix("serving_default_").replace("input_example_tensor", "examples")]
        np.save(tmp_path / f"{port.name}.npy", as_bytes(value))
        inputs += ["--input", f"{port.name}={port.name}.npy"]
    done = command("cairn", "verify", "frozen.om", "--against", "frozen.pb", *inputs)
    assert done.returncode == 0 and "verified" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("recommender", ["wide_and_deep"], indirect=True)  # the one that takes records
def test_records_that_are_none_are_refused(recommender):
    path, signature, _ = recommender
    import recommenders

    model = cairn.load(path, signature=signature)
    for record, match in ((b"no record", "record 1 is no tf.train.Example"),
                          (recommenders.example(item=[1.5]), "feature 'item' of record 1 is f32, expected i64"),
                          (recommenders.example(price=[1.0]), "feature 'price' of record 1 has 1 values, expected 2")):  # fmt: skip
        with pytest.raises(cairn.Error, match=match):
            model.run({"examples": np.array([recommenders.EXAMPLES[0], record], object)})
