"""Models that Keras saved, as HDF5 and as archives, give what Keras gives."""

import sys

import numpy as np
import pytest

import cairn

from conftest import ROOT, spread_error

sys.path.insert(0, str(ROOT / "tests" / "models"))

# Of networks.LAYERS those whose layers a file tells; others are functions of TensorFlow or call a layer on several values.
LAYERS = """lstm lstm_stacked gru gru_v1 simple_rnn bidirectional backwards unrolled conv2d_transpose conv2d_transpose_valid conv1d
conv1d_transpose separable separable1d up_sampling up_sampling_bilinear cropping layer_norm global_pooling permute repeat""".split()
APPLICATIONS = {"ResNet50": 64, "Xception": 71}


def expected_of(model, x):
    y = model(x, training=False)
    return [np.asarray(one) for one in (y if isinstance(y, (list, tuple)) else [y])]


def check(model, x, path):
    model.save(path)
    loaded = cairn.load(str(path))
    x = x if isinstance(x, dict) else {model.input_names[0]: x}
    found = loaded.run(x)
    expected = expected_of(model, list(x.values()) if len(x) > 1 else next(iter(x.values())))
    assert len(expected) == len(loaded.outputs)
    for entry, value in zip(loaded.outputs, expected):
        assert found[entry.name].shape == value.shape and np.ptp(value) > 0
        assert spread_error(found[entry.name], value) <= 1e-4


def some_weights(model):
    random = np.random.default_rng(6)
    for weight in model.weights:
        if len(weight.shape) == 1:
            weight.assign(weight + 0.3 * np.abs(random.normal(size=weight.shape)).astype(np.float32))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("suffix", ("h5", "keras"))
def test_layers(suffix, tmp_path):
    import networks
    import tensorflow as tf

    random = np.random.default_rng(6)
    for name in LAYERS:
        tf.keras.utils.set_random_seed(4)
        shape, function = networks.LAYERS[name]
        x = tf.keras.Input(shape, name="x")
        model = tf.keras.Model(x, function(x))
        some_weights(model)
        try:
            check(model, random.normal(size=(3, *shape)).astype(np.float32), tmp_path / f"{name}.{suffix}")
        except (AssertionError, cairn.Error) as fault:
            raise AssertionError(f"{name}: {fault}") from fault


def nested(tf):
    """A sequential model called twice in a functional one, with an inner functional model, two inputs and two outputs."""
    L = tf.keras.layers
    inner = tf.keras.Sequential([L.Dense(6, "relu", name="first"), L.BatchNormalization(), L.Dense(5, name="second")], name="twin")
    a, b = tf.keras.Input((8,), name="a"), tf.keras.Input((8,), name="b")
    y = tf.keras.Input((5,))
    head = tf.keras.Model(y, L.BatchNormalization(name="norm")(L.Dense(4, "gelu", name="second")(y)), name="head")
    left, right = inner(a), inner(b)
    return tf.keras.Model([a, b], [head(L.Average()([left, right])),
                                   L.Subtract()([left, right])])


@pytest.mark.parametrize("suffix", ("h5", "keras"))
def test_models_inside_models(suffix, tmp_path):
    import tensorflow as tf

    model = nested(tf)
    some_weights(model)
    random = np.random.default_rng(1)
    check(model, {k: random.normal(size=(4, 8)).astype(np.float32) for k in "ab"}, tmp_path / f"nested.{suffix}")


@pytest.mark.parametrize("suffix", ("h5", "keras"))
def test_a_sequential_model(suffix, tmp_path):
    import tensorflow as tf

    L = tf.keras.layers
    model = tf.keras.Sequential([
        L.Embedding(30, 8, input_length=6), L.Conv1D(7, 3, padding="causal", activation="swish"), L.SpatialDropout1D(0.5),
        L.MaxPooling1D(2), L.Bidirectional(L.GRU(4, return_sequences=True), merge_mode="sum"), L.Flatten(), L.Reshape((3, -1)),
        L.PReLU(shared_axes=[1]), L.LeakyReLU(), L.ReLU(6.0, negative_slope=0.1), L.GlobalAveragePooling1D(),
        L.Dense(5, "softmax"),
    ])  # fmt: skip
    some_weights(model)
    check(model, np.random.default_rng(2).integers(0, 30, (4, 6)).astype(np.float32), tmp_path / f"model.{suffix}")


@pytest.mark.parametrize("name", APPLICATIONS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_an_application(name, tmp_path):
    import networks
    import tensorflow as tf
    from make_models import images

    tf.keras.utils.set_random_seed(1)
    size = APPLICATIONS[name]
    model = getattr(tf.keras.applications, name)(weights=None, input_shape=(size, size, 3), classifier_activation=None)
    x = images(size, 3, seed=9)[:4]
    networks.calibrate(model, x)
    for suffix in ("h5", "keras"):
        check(model, x, tmp_path / f"model.{suffix}")


def test_what_a_file_does_not_tell_is_refused_with_a_reason(tmp_path):
    import tensorflow as tf

    L = tf.keras.layers
    x = tf.keras.Input((4,))
    odd = tf.keras.Model(x, L.Dense(3, name="d")(tf.math.sin(L.Masking(name="m")(x))))
    odd.save(tmp_path / "odd.keras")
    with pytest.raises(cairn.Error) as fault:
        cairn.load(str(tmp_path / "odd.keras"))
    assert "Masking" in str(fault.value) and "not supported" in str(fault.value)
    odd.save_weights(tmp_path / "weights.h5")
    with pytest.raises(cairn.Error, match="holds no architecture, weights alone"):
        cairn.load(str(tmp_path / "weights.h5"))
