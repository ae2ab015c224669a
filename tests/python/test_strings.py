"""Strings go through models: class names chosen by what a model computes, names handed from input to output."""

import numpy as np
import pytest

import cairn

NAMES = ["cat", "dog", "fish", "bird"]
IDS = np.array(["a", "", "größer", "longer than the fifteen bytes kept in place"], object)
X = np.random.default_rng(3).normal(size=(4, 4)).astype(np.float32)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A SavedModel and what TensorFlow makes of the inputs."""
    import tensorflow as tf

    class Names(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, "x"), tf.TensorSpec([None], tf.string, "id")])
        def __call__(self, x, id):
            names = tf.constant(NAMES)
            best = tf.argmax(x, -1)
            name = tf.gather(names, best)
            both = tf.stack([id, name], 1)
            return {
                "name": name, "id": tf.identity(id), "both": both, "joined": tf.concat([id, name], 0),
                "top": tf.gather(names, tf.math.top_k(x, 2).indices), "column": tf.reshape(name, [-1, 1]), "first": id[:2],
                "tiled": tf.tile(id, [2]), "reversed": tf.reverse(id, [0]), "picked": tf.gather_nd(names, best[:, None]),
                "filled": tf.fill([2], "zero\0 inside"), "spread": tf.broadcast_to(tf.constant(["z"]), [3]),
                "turned": tf.transpose(both), "right": tf.split(both, 2, 1)[1], "squeezed": tf.squeeze(both[:, :1], 1),
                "chosen": tf.where(x[:, 0] > 0, id, tf.constant("none")), "kept": tf.boolean_mask(id, x[:, 0] > 0),
                "is_cat": tf.equal(name, "cat"), "differs": tf.not_equal(id, name), "backwards": names[::-1],
                "scalar": names[2], "count": tf.shape(id), "either": tf.cond(x[0, 0] > 0, lambda: id, lambda: name),
            }  # fmt: skip

    folder = tmp_path_factory.mktemp("strings") / "saved"
    module = Names()
    tf.saved_model.save(module, str(folder))
    return folder, {name: value.numpy() for name, value in module(X, tf.constant(IDS)).items()}


def check(found, expected):
    assert set(found) == set(expected)
    for name, value in expected.items():
        value = np.asarray(value, object if isinstance(value, bytes) else None)
        assert found[name].shape == value.shape and found[name].dtype == value.dtype, name
        assert np.array_equal(found[name], value), name


@pytest.mark.parametrize("engines", (None, "reference"))
def test_a_saved_model_gives_what_tensorflow_gives(saved, engines):
    folder, expected = saved
    model = cairn.load(str(folder), **({"engines": [engines]} if engines else {}))
    assert {port.name: port.dtype for port in model.inputs} == {"id": "str", "x": "float32"}
    for ids in (IDS, [text.encode() for text in IDS], IDS.astype("U"), np.array([text.encode() for text in IDS])):
        check(model.run({"x": X, "id": ids}), expected)
    twice = np.repeat(IDS, 2)[::2]  # a view with strides
    check(model.run({"x": X, "id": twice}), expected)


def test_a_converted_model_and_the_commands_do_too(saved, command, tmp_path):
    folder, expected = saved
    done = command("cairn", "convert", folder, "-o", "names.om")
    assert done.returncode == 0, done.stderr
    check(cairn.load(str(tmp_path / "names.om")).run({"x": X, "id": IDS}), expected)
    np.save(tmp_path / "x.npy", X)
    for kind in ("U", "S"):
        np.save(tmp_path / "id.npy", IDS.astype("U") if kind == "U" else np.char.encode(IDS.astype("U"), "utf-8"))
        done = command("cairn", "run", "names.om", "--input", "x=x.npy", "--input", "id=id.npy", "--output", "out.npz")
        assert done.returncode == 0, done.stderr
        with np.load(tmp_path / "out.npz") as arrays:
            for name, value in expected.items():
                want = np.asarray(value, object if isinstance(value, bytes) else None)
                assert np.array_equal(arrays[name], want.astype("S") if want.dtype == object else want), name
    done = command("cairn", "verify", "names.om", "--against", folder)
    assert done.returncode == 0 and "verified" in done.stdout, done.stdout + done.stderr


def test_what_is_no_text_is_refused_with_a_reason(saved, command, tmp_path):
    model = cairn.load(str(saved[0]))
    with pytest.raises(cairn.Error, match="^id: has an element that is neither bytes nor str: 3$"):
        model.run({"x": X, "id": ["a", 3, "b", "c"]})
    with pytest.raises(cairn.Error, match="^id: input is i64, the model takes str$"):
        model.run({"x": X, "id": np.arange(4)})
    with pytest.raises(cairn.Error, match="^x: input is str, the model takes f32$"):
        model.run({"x": np.array([["a"] * 4]), "id": IDS})
    (tmp_path / "x.bin").write_bytes(bytes(64))
    assert command("cairn", "convert", saved[0], "-o", "names.om").returncode == 0
    done = command("msame", "--model", "names.om", "--dymShape", "x:4,4;id:4", "--input", "x.bin,x.bin")
    assert done.returncode == 1 and "text cannot be read from raw elements" in done.stdout


def test_operators_that_do_not_take_text_are_refused(tmp_path):
    import tensorflow as tf

    with tf.Graph().as_default() as graph:
        text = tf.compat.v1.placeholder(tf.string, [3], "text")
        tf.strings.unicode_transcode(text, "UTF-16-BE", "UTF-8", name="bytes")
        tf.compat.v1.placeholder_with_default(tf.constant("d"), [], name="default")
    (tmp_path / "graph.pb").write_bytes(graph.as_graph_def().SerializeToString())
    with pytest.raises(cairn.Error, match="UnicodeTranscode .* not supported"):
        cairn.load(str(tmp_path / "graph.pb"), outputs=["bytes"])
    assert cairn.load(str(tmp_path / "graph.pb"), outputs=["default"]).run({})["default"].item() == b"d"
