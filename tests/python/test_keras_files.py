"""Models that Keras saved, as HDF5 and as archives, give what Keras gives."""

import json
import subprocess
import sys
import zipfile

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
    import tensorflow as tf

    return [np.asarray(one) for one in tf.nest.flatten(model(x, training=False))]


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
        if len(weight.shape) == 1 and not weight.name.startswith(("mean:", "variance:")):  # what Normalization has learned
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
    tf.keras.utils.set_random_seed(4)
    model = tf.keras.Sequential([
        L.Embedding(30, 8, input_length=6), L.Conv1D(7, 3, padding="causal", activation="swish"), L.SpatialDropout1D(0.5),
        L.MaxPooling1D(2), L.Bidirectional(L.GRU(4, return_sequences=True), merge_mode="sum"), L.Flatten(), L.Reshape((3, -1)),
        L.PReLU(shared_axes=[1]), L.LeakyReLU(), L.ReLU(6.0, negative_slope=0.1), L.GlobalAveragePooling1D(),
        L.Dense(5, "softmax"),
    ])  # fmt: skip
    some_weights(model)
    model.layers[0].embeddings.assign(20 * model.layers[0].embeddings)  # as trained ones are: rounding is then far below the spread
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

    x = tf.keras.Input((4,))
    odd = tf.keras.Model(x, tf.keras.layers.Lambda(lambda y: y, name="c")(x))
    odd.save(tmp_path / "odd.keras")
    with pytest.raises(cairn.Error) as fault:
        cairn.load(str(tmp_path / "odd.keras"))
    assert "Lambda" in str(fault.value) and "not supported" in str(fault.value)
    odd.save_weights(tmp_path / "weights.h5")
    with pytest.raises(cairn.Error, match="holds no architecture, weights alone"):
        cairn.load(str(tmp_path / "weights.h5"))


def ids(random, shape):
    """Word numbers, each row with zeros at its end and, of the masks, also in its midst."""
    words = random.integers(1, 30, shape)
    words[0, 2] = words[1, -2:] = words[2, 0] = 0
    return words.astype(np.float32)


def masked(tf):
    """Layers that take masks, hand them on and make them: model and inputs by name."""
    L = tf.keras.layers
    random = np.random.default_rng(8)
    words = tf.keras.Input((7,), name="words")
    embedded = L.Embedding(30, 6, mask_zero=True)(words)
    x = ids(random, (4, 7))
    for name, layer in {
        "lstm": L.LSTM(5), "lstm_all": L.LSTM(5, return_sequences=True), "gru": L.GRU(4), "simple": L.SimpleRNN(4),
        "gru_v1": L.GRU(4, reset_after=False, return_sequences=True), "backwards": L.LSTM(4, go_backwards=True, return_sequences=True),
        "bidirectional": L.Bidirectional(L.LSTM(3, return_sequences=True)), "mean": L.GlobalAveragePooling1D(),
    }.items():  # fmt: skip
        yield name, tf.keras.Model(words, layer(embedded)), {"words": x}
    both = L.Bidirectional(L.GRU(4, return_sequences=True))(L.LayerNormalization()(L.Dropout(0.1)(L.Dense(6, "relu")(embedded))))
    yield "passed on", tf.keras.Model(words, L.LSTM(3)(L.Add()([both, L.Dense(8)(embedded)]))), {"words": x}
    yield "ended", tf.keras.Model(words, L.LSTM(3)(L.UpSampling1D(2)(embedded))), {"words": x}
    yield "same values", tf.keras.Model(words, [L.LSTM(3)(L.Reshape((7, 6))(embedded)), L.LSTM(3)(embedded)]), {"words": x}
    more = tf.keras.Input((7,), name="more")
    other = L.Embedding(30, 6, mask_zero=True)(more)
    y = ids(random, (4, 7))[::-1]
    yield "merged", tf.keras.Model([words, more], L.GRU(3)(L.Multiply()([embedded, other]))), {"words": x, "more": y}
    parts = {1: [embedded, other], 2: [embedded, L.UpSampling1D(1)(other)]}  # along the steps Keras needs all masks
    joined = [L.GRU(3)(L.Concatenate(axis=axis)(values)) for axis, values in parts.items()]
    yield "joined", tf.keras.Model([words, more], joined), {"words": x, "more": y}
    steps = tf.keras.Input((5, 3), name="steps")
    values = random.normal(size=(4, 5, 3)).astype(np.float32)
    values[0, 1] = values[2, 3:] = values[3] = 9
    masking = L.Masking(9.0)(steps)
    yield "masking", tf.keras.Model(steps, [L.LSTM(4)(masking), masking]), {"steps": values}
    given = L.LSTM(4)(L.Dense(3)(steps), mask=tf.keras.layers.Embedding(30, 6, mask_zero=True).compute_mask(words)[:, :5])
    yield "given", tf.keras.Model([steps, words], given), {"steps": values, "words": x}


def attending(tf):
    L = tf.keras.layers
    random = np.random.default_rng(9)
    q, v = tf.keras.Input((6, 8), name="q"), tf.keras.Input((5, 4), name="v")
    x = {"q": random.normal(size=(3, 6, 8)).astype(np.float32), "v": random.normal(size=(3, 5, 4)).astype(np.float32)}
    yield "other", tf.keras.Model([q, v], L.MultiHeadAttention(2, 3, value_dim=5, output_shape=7)(q, v)), x
    plain = L.MultiHeadAttention(2, 3, use_bias=False)(q, v, key=L.Dense(4)(v), return_attention_scores=True)
    yield "scores", tf.keras.Model([q, v], list(plain)), x
    mask = tf.keras.Input((6, 5), name="mask")
    sees = random.random(size=(3, 6, 5)) > 0.4
    allowed = L.MultiHeadAttention(2, 3)(q, v, attention_mask=mask)
    yield "mask", tf.keras.Model([q, v, mask], allowed), x | {"mask": sees.astype(np.float32)}
    words = tf.keras.Input((None,), name="words")
    embedded = L.Embedding(30, 6, mask_zero=True)(words)
    encoded = L.LayerNormalization()(embedded + L.MultiHeadAttention(3, 2)(embedded, embedded, use_causal_mask=True))
    yield "masked", tf.keras.Model(words, L.LSTM(4)(L.MultiHeadAttention(1, 4)(embedded, encoded))), {"words": ids(random, (4, 7))}


def around(tf):
    """Layers around layers and models, and states that go from one layer to the next."""
    L = tf.keras.layers
    random = np.random.default_rng(11)
    steps, frames, words = tf.keras.Input((7, 6), name="steps"), tf.keras.Input((4, 8, 8, 3), name="frames"), tf.keras.Input((None,), name="words")
    x = {"steps": random.normal(size=(3, 7, 6)).astype(np.float32)}
    images = {"frames": random.normal(size=(2, 4, 8, 8, 3)).astype(np.float32)}
    net = tf.keras.Sequential([L.Conv2D(4, 3, activation="relu"), L.BatchNormalization(), L.Flatten(), L.Dense(5)], name="net")
    yield "model", tf.keras.Model(frames, L.LSTM(3)(L.TimeDistributed(net)(frames))), images
    spread = L.TimeDistributed(L.Dropout(0.5))(L.TimeDistributed(L.Conv2D(3, 3, padding="same"))(frames))
    yield "images", tf.keras.Model(frames, L.TimeDistributed(L.GlobalAveragePooling2D())(L.TimeDistributed(L.TimeDistributed(L.Dense(2)))(spread))), images
    masked = L.TimeDistributed(L.Dense(4, "tanh"))(L.Embedding(30, 6, mask_zero=True)(words))
    yield "masked", tf.keras.Model(words, L.GRU(3)(masked)), {"words": ids(random, (4, 7))}
    for name, cell in {"lstm": L.LSTM, "gru": L.GRU, "simple": L.SimpleRNN}.items():
        sequence, *states = cell(5, return_sequences=True, return_state=True)(steps)
        decoded = cell(5, return_sequences=name == "gru")(L.Dense(3)(sequence), initial_state=states)
        yield f"{name} states", tf.keras.Model(steps, [decoded, *states]), x
    sequence, *states = L.Bidirectional(L.LSTM(4, return_state=True))(steps)
    again = L.Bidirectional(L.LSTM(4), merge_mode="sum")(steps, initial_state=states)
    yield "both ways", tf.keras.Model(steps, [sequence, again, *states]), x


def more_layers(tf):
    L = tf.keras.layers
    random = np.random.default_rng(12)
    q, v, words = tf.keras.Input((6, 4), name="q"), tf.keras.Input((5, 4), name="v"), tf.keras.Input((7,), name="words")
    x = {"q": random.normal(size=(3, 6, 4)).astype(np.float32), "v": random.normal(size=(3, 5, 4)).astype(np.float32)}
    for name, layer in {"plain": L.Attention(), "scaled": L.Attention(use_scale=True), "concat": L.Attention(score_mode="concat", use_scale=True),
                        "additive": L.AdditiveAttention(), "unscaled": L.AdditiveAttention(use_scale=False)}.items():  # fmt: skip
        yield name, tf.keras.Model([q, v], layer([q, v])), x
        key = L.Dense(4)(v)
        yield f"{name} by key", tf.keras.Model([q, v], list(layer([q, v, key], return_attention_scores=True, use_causal_mask=True))), x
    embedded = L.Embedding(30, 4, mask_zero=True)(words)
    seen = L.Attention()([embedded, L.AdditiveAttention()([L.Dense(4)(embedded), embedded])])
    yield "masked attention", tf.keras.Model(words, L.LSTM(3)(seen)), {"words": ids(random, (4, 7))}
    flat = L.Flatten()(q)
    products = [L.Dot(2)([q, v]), L.Dot((1, 2), normalize=True)([L.Permute((2, 1))(v), q]), L.Dot(1)([flat, flat]), L.Dot((1, 2))([flat, L.Reshape((1, 24))(q)])]
    yield "dot", tf.keras.Model([q, v], products), x
    image = tf.keras.Input((5, 5, 6), name="image")
    rest = [L.GroupNormalization(3)(image), L.GroupNormalization(-1, center=False)(image), L.UnitNormalization()(image), L.ThresholdedReLU(0.4)(image)]
    yield "normal", tf.keras.Model(image, rest), {"image": random.normal(1, 2, size=(2, 5, 5, 6)).astype(np.float32)}


def volumes(tf):
    L = tf.keras.layers
    x = tf.keras.Input((6, 7, 8, 4), name="x")
    y = L.BatchNormalization()(L.Conv3D(6, 3, activation="relu")(L.ZeroPadding3D((1, 0, 2))(x)))
    same = L.Conv3D(4, (3, 2, 3), strides=2, padding="same", groups=2, use_bias=False)(y)
    rest = [
        L.MaxPooling3D()(y), L.MaxPooling3D((3, 2, 2), 2, "same")(y), L.AveragePooling3D(2, padding="same")(y), L.GlobalAveragePooling3D()(y),
        L.GlobalMaxPooling3D(keepdims=True)(y), L.UpSampling3D((2, 1, 3))(same), L.Cropping3D(((1, 0), (2, 1), (0, 0)))(y), same,
        L.Conv3D(2, 2, dilation_rate=2)(y), L.SpatialDropout3D(0.5)(y),
    ]  # fmt: skip
    values = np.random.default_rng(13).normal(size=(2, 6, 7, 8, 4)) * np.reshape([1, 4], (2, 1, 1, 1, 1))  # for means that differ
    yield "volumes", tf.keras.Model(x, rest), {"x": values.astype(np.float32)}


def habits(tf):
    """What old files and beginners' models have."""
    L = tf.keras.layers
    random = np.random.default_rng(14)
    steps, image, row = tf.keras.Input((7, 6), name="steps"), tf.keras.Input((5, 6, 3), name="image"), tf.keras.Input((8,), name="row")
    gates = {"recurrent_activation": "hard_sigmoid"}  # as Keras 2.2 had by default
    rest = [L.LSTM(4, **gates)(steps), L.GRU(4, reset_after=False, activation="elu", **gates)(steps), L.SimpleRNN(3, activation="linear")(steps),
            L.Bidirectional(L.LSTM(3, **gates))(steps)]  # fmt: skip
    yield "gates", tf.keras.Model(steps, rest), {"steps": random.normal(size=(3, 7, 6)).astype(np.float32)}
    augment = tf.keras.Sequential([L.RandomFlip(), L.RandomRotation(0.2), L.RandomZoom(0.1), L.RandomTranslation(0.1, 0.1), L.RandomContrast(0.2)])
    pixels = {"image": random.uniform(0, 255, size=(2, 5, 6, 3)).astype(np.float32)}
    yield "augmented", tf.keras.Model(image, L.Flatten()(L.Rescaling(1 / 255)(augment(image)))), pixels
    frames = tf.keras.Input((3, 6, 5, 2), name="frames")
    moving = [L.ConvLSTM2D(3, 3, padding="same", return_sequences=True)(frames), L.ConvLSTM2D(2, (2, 3), strides=2, go_backwards=True)(frames),
              L.ConvLSTM2D(2, 2, dilation_rate=2, activation="relu", use_bias=False, return_sequences=True, go_backwards=True)(frames),
              *L.ConvLSTM2D(2, 3, recurrent_activation="sigmoid", return_state=True)(frames)]  # fmt: skip
    yield "moving images", tf.keras.Model(frames, moving), {"frames": random.normal(size=(2, 3, 6, 5, 2)).astype(np.float32)}
    inner = tf.keras.Sequential([L.Dense(4, "mish"), tf.keras.Sequential([L.Dense(3), tf.keras.Sequential([L.Dense(2, "leaky_relu")])])])
    limits = L.ReLU(1.0, negative_slope=0.2, threshold=0.1)(row)
    yield "inner", tf.keras.Model(row, [inner(row), limits]), {"row": random.normal(size=(4, 8)).astype(np.float32)}


def cells(tf):
    """Layers over cells, layers with states that stay, with the steps first, and LSTMs that convolve rows and volumes."""
    L = tf.keras.layers
    random = np.random.default_rng(15)
    steps, words = tf.keras.Input((7, 6), name="steps"), tf.keras.Input((7,), name="words")
    x = {"steps": random.normal(size=(3, 7, 6)).astype(np.float32)}
    alone = [L.RNN(cell)(steps) for cell in (L.LSTMCell(4), L.GRUCell(3), L.SimpleRNNCell(2, activation="relu"), L.GRUCell(3, reset_after=False))]
    yield "alone", tf.keras.Model(steps, [*alone, *L.RNN(L.LSTMCell(3), return_state=True, return_sequences=True, go_backwards=True)(steps)]), x
    stack = lambda: [L.LSTMCell(3), L.GRUCell(2), L.LSTMCell(6)]  # noqa: E731
    both = L.Bidirectional(L.RNN(stack(), return_sequences=True))(steps)
    turned = L.RNN(L.StackedRNNCells(stack()), return_sequences=True, go_backwards=True)(steps)
    last, *states = L.RNN(stack(), return_state=True)(steps)
    yield "stacked", tf.keras.Model(steps, [last, *states, both, turned, L.Bidirectional(L.RNN(L.GRUCell(3)))(steps)]), x
    embedded = L.Embedding(30, 6, mask_zero=True)(words)
    masked = [L.RNN(stack(), return_sequences=True)(embedded), L.RNN(stack(), go_backwards=True)(embedded), L.Bidirectional(L.RNN(stack()))(embedded)]
    yield "masked", tf.keras.Model(words, masked), {"words": ids(random, (4, 7))}
    first = [L.LSTM(4, time_major=True, return_sequences=True)(steps), L.GRU(3, time_major=True, go_backwards=True, return_sequences=True)(steps),
             L.RNN(stack(), time_major=True)(steps)]  # fmt: skip
    yield "steps first", tf.keras.Model(steps, first), x
    fixed = tf.keras.Input(batch_shape=(3, 7, 6), name="fixed")
    stays = [L.LSTM(4, stateful=True)(fixed), L.RNN(stack(), stateful=True)(fixed), L.Bidirectional(L.GRU(3, stateful=True))(fixed)]
    yield "stateful", tf.keras.Model(fixed, stays), {"fixed": x["steps"]}
    rows, volumes = tf.keras.Input((3, 8, 2), name="rows"), tf.keras.Input((3, 4, 5, 6, 2), name="volumes")
    moving = [L.ConvLSTM1D(3, 3, padding="same", return_sequences=True)(rows), *L.ConvLSTM1D(2, 2, strides=2, go_backwards=True, return_state=True)(rows)]
    yield "rows", tf.keras.Model(rows, moving), {"rows": random.normal(size=(2, 3, 8, 2)).astype(np.float32)}
    moving = [L.ConvLSTM3D(2, (2, 3, 3), padding="same", return_sequences=True)(volumes), L.ConvLSTM3D(2, 2, strides=2, go_backwards=True)(volumes)]
    yield "volumes", tf.keras.Model(volumes, moving), {"volumes": random.normal(size=(2, 3, 4, 5, 6, 2)).astype(np.float32)}


def documents(tf):
    """Words in sentences in documents: masks made and used inside TimeDistributed."""
    L = tf.keras.layers
    x = tf.keras.Input((3, 7), name="x")
    words = np.stack([ids(np.random.default_rng(seed), (4, 7)) for seed in range(3)], 1)
    words[0, 2] = words[3, 1] = 0  # sentences without words
    embedded = L.TimeDistributed(L.Embedding(30, 6, mask_zero=True))(x)
    sentences = L.TimeDistributed(L.LSTM(4))(L.TimeDistributed(L.Dropout(0.1))(embedded))
    yield "sentences", tf.keras.Model(x, [L.GRU(3)(sentences), sentences]), {"x": words}
    made = L.TimeDistributed(L.Masking())(L.Reshape((3, 7, 1))(x))
    yield "masking", tf.keras.Model(x, L.GRU(2)(L.TimeDistributed(L.GRU(3, return_sequences=False))(made))), {"x": words}


def products(tf):
    L = tf.keras.layers
    random = np.random.default_rng(16)
    x = tf.keras.Input((5, 6), name="x")
    image = tf.keras.Input((4, 5, 6), name="image")
    rest = [
        L.EinsumDense("abc,cd->abd", (None, 7), bias_axes="d", activation="relu")(x), L.EinsumDense("...x,xy->...y", 3)(x),
        L.EinsumDense("abc,cde->abde", (None, 2, 3), bias_axes="de")(x), L.EinsumDense("abc,bd->adc", (4, 6), bias_axes="dc")(x),
        L.EinsumDense("ab...,bc->ac...", (7, None))(x), L.EinsumDense("abcd,cde->abe", (4, 4), bias_axes="be")(image),
        L.EinsumDense("...x,xy->...y", 3, bias_axes="y")(image),
    ]  # fmt: skip
    inputs = {"x": random.normal(size=(3, 5, 6)).astype(np.float32), "image": random.normal(size=(3, 4, 5, 6)).astype(np.float32)}
    yield "products", tf.keras.Model([x, image], rest), inputs


def transposed(tf):
    L = tf.keras.layers
    x, image, row = tf.keras.Input((3, 4, 5, 2), name="x"), tf.keras.Input((4, 5, 2), name="image"), tf.keras.Input((6, 2), name="row")
    random = np.random.default_rng(17)
    inputs = {"x": random.normal(size=(2, 3, 4, 5, 2)), "image": random.normal(size=(2, 4, 5, 2)), "row": random.normal(size=(2, 6, 2))}
    rest = [
        L.Conv3DTranspose(3, 3)(x), L.Conv3DTranspose(3, 3, strides=2, padding="same", activation="relu")(x),
        L.Conv3DTranspose(2, (2, 3, 1), strides=(3, 1, 2), use_bias=False)(x), L.Conv3DTranspose(2, 3, strides=2, padding="same", output_padding=1)(x),
        L.Conv3DTranspose(2, (4, 2, 3), strides=(3, 2, 2), output_padding=(1, 0, 1))(x), L.Conv3DTranspose(2, (4, 2, 2), strides=2, padding="same")(x),
        L.Conv2DTranspose(2, 3, strides=2, padding="same", output_padding=1)(image), L.Conv2DTranspose(2, (4, 3), strides=2, output_padding=(0, 1))(image),
        L.Conv1DTranspose(2, 3, strides=2, output_padding=1)(row),
    ]  # fmt: skip
    yield "transposed", tf.keras.Model([x, image, row], rest), {name: value.astype(np.float32) for name, value in inputs.items()}


def prepared(tf):
    L = tf.keras.layers
    random = np.random.default_rng(19)
    x, image, number = tf.keras.Input((5, 4), name="x"), tf.keras.Input((9, 8, 3), name="image"), tf.keras.Input((3,), name="number")
    values = random.normal(2, 3, size=(4, 5, 4)).astype(np.float32)
    learned = [L.Normalization(axis=axis) for axis in (-1, 1, (1, 2), None)]
    for layer in learned:
        layer.adapt(values)
    told = [L.Normalization(mean=2.0, variance=4.0), L.Normalization(mean=[1.0, 2.0, 3.0, 4.0], variance=[1.0, 4.0, 2.0, 3.0], invert=True)]
    yield "numbers", tf.keras.Model(x, [layer(x) for layer in learned + told] + [L.Discretization([-1.0, 0.5, 2.0])(x)]), {"x": values}
    encoded = [L.CategoryEncoding(6, output_mode="multi_hot")(number), L.CategoryEncoding(6, output_mode="count")(number),
               L.CategoryEncoding(6, output_mode="one_hot")(number[:, :1])]  # fmt: skip
    yield "categories", tf.keras.Model(number, encoded), {"number": random.integers(0, 6, (5, 3)).astype(np.float32)}
    sizes = [L.Resizing(5, 12)(image), L.Resizing(18, 4, "nearest")(image), L.CenterCrop(4, 5)(image), L.SpectralNormalization(L.Conv2D(4, 3))(image)]
    yield "images", tf.keras.Model(image, sizes), {"image": random.normal(size=(2, 9, 8, 3)).astype(np.float32)}


def functions(tf):
    L = tf.keras.layers
    x, z = tf.keras.Input((6, 4), name="x"), tf.keras.Input((6, 4), name="z")
    y = 3.0 - (tf.math.sin(x) + 2.0) * z / 2 - x
    y = tf.reduce_mean(y, axis=1, keepdims=True) + tf.concat([x, z], axis=1)[:, 1:3]
    y = tf.nn.relu(tf.cast(tf.reshape(y, (-1, 8)), tf.float32)) + np.linspace(-1, 1, 8, dtype=np.float32)
    w = tf.transpose(tf.expand_dims(y, -1), [0, 2, 1])
    w = tf.matmul(w, w, transpose_a=True)
    w = tf.where(w > 0.5, w, tf.zeros_like(w)) @ w
    rest = [
        -y, tf.stack([x, z], 1), tf.squeeze(x[:, 0:1], 1), x[:, -1, ::2], x[:, tf.newaxis, 1], tf.nn.softmax(x, axis=1),
        tf.broadcast_to(x[:, :1], tf.shape(x)), *tf.split(x, [1, 3], axis=-1), tf.clip_by_value(x, -0.5, 0.25), tf.math.reduce_max(x, [1, 2]),
        tf.cast(tf.argmax(x, -1), tf.float32), tf.math.l2_normalize(x, axis=-1), tf.pow(tf.abs(x), 1.5), tf.gather(x, [2, 0], axis=1),
        tf.tile(x, [1, 2, 1]), tf.maximum(x, z), tf.nn.gelu(x), tf.nn.leaky_relu(z), tf.math.add_n([x, z, x]),
    ]  # fmt: skip
    random = np.random.default_rng(10)
    inputs = {name: random.normal(size=(3, 6, 4)).astype(np.float32) for name in "xz"}
    yield "functions", tf.keras.Model([x, z], [w, *rest]), inputs
    yield "layers", tf.keras.Model(x, L.Dense(3)(tf.math.exp(L.Dense(4)(x)) * 0.5)), {"x": inputs["x"]}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("suffix", ("h5", "keras"))
@pytest.mark.parametrize("family", (masked, attending, around, more_layers, volumes, habits, cells, documents, products, prepared, transposed, functions))
def test_models_with(family, suffix, tmp_path):
    import tensorflow as tf

    for name, model, inputs in family(tf):
        some_weights(model)
        try:
            check(model, inputs, tmp_path / f"model.{suffix}")
        except (AssertionError, cairn.Error) as fault:
            raise AssertionError(f"{name}: {fault}") from fault


def of_channels(tf, L, data_format):
    """Layers that know where the channels stand, as functions of rows, images and volumes."""
    at = {"data_format": data_format}
    rows = [L.Conv1D(4, 3, strides=2, **at), L.Conv1D(4, 2, dilation_rate=2, **at), L.MaxPooling1D(2, **at), L.AveragePooling1D(3, 2, "same", **at),
            L.GlobalMaxPooling1D(**at), L.GlobalAveragePooling1D(keepdims=True, **at), L.Conv1DTranspose(3, 3, strides=2, **at),
            L.SeparableConv1D(4, 3, **at), L.DepthwiseConv1D(3, depth_multiplier=2, **at)]  # fmt: skip
    images = [L.Conv2D(4, 3, padding="same", activation="relu", **at), L.Conv2D(6, 3, strides=2, groups=2, **at), L.DepthwiseConv2D(3, **at),
              L.SeparableConv2D(4, 3, **at), L.Conv2DTranspose(3, 3, strides=2, padding="same", **at), L.MaxPooling2D(**at),
              L.AveragePooling2D(2, padding="same", **at), L.GlobalAveragePooling2D(**at), L.GlobalMaxPooling2D(keepdims=True, **at),
              L.UpSampling2D((2, 3), **at), L.ZeroPadding2D((1, 2), **at), L.Cropping2D(((1, 0), (0, 2)), **at), L.Flatten(**at),
              L.BatchNormalization(axis=1 if data_format == "channels_first" else -1), L.SpatialDropout2D(0.5, **at)]  # fmt: skip
    volumes = [L.Conv3D(4, 2, **at), L.Conv3DTranspose(3, 2, strides=2, **at), L.MaxPooling3D(**at), L.AveragePooling3D(2, padding="same", **at),
               L.GlobalAveragePooling3D(**at), L.GlobalMaxPooling3D(keepdims=True, **at), L.UpSampling3D((1, 2, 1), **at), L.ZeroPadding3D(1, **at),
               L.Cropping3D(1, **at), L.Flatten(**at)]  # fmt: skip
    frames = [L.ConvLSTM2D(3, 3, padding="same", return_sequences=True, **at), L.ConvLSTM2D(3, 2, **at), L.TimeDistributed(L.Conv2D(3, 2, **at))]
    return {(8, 4): rows, (6, 7, 4): images, (4, 5, 6, 2): volumes, (3, 5, 6, 2): frames}


@pytest.mark.parametrize("suffix", ("h5", "keras"))
def test_layers_with_channels_first(suffix, tmp_path):
    """Keras itself runs many of them on GPUs alone: it gives what the same weights give with the channels last."""
    import tensorflow as tf

    L = tf.keras.layers
    random = np.random.default_rng(18)
    firsts, lasts = of_channels(tf, L, "channels_first"), of_channels(tf, L, "channels_last")
    for number, (dims, layers) in enumerate(firsts.items()):
        steps = 2 if number == 3 else 1  # dims before those of the image
        first, last = (lambda x: np.moveaxis(x, -1, steps)), (lambda x: np.moveaxis(x, steps, -1))  # noqa: E731
        x = random.normal(size=(2, *dims)).astype(np.float32)
        a, b = tf.keras.Input(first(x).shape[1:], name="x"), tf.keras.Input(dims, name="x")
        model = tf.keras.Model(a, [layer(a) for layer in layers])
        other = tf.keras.Model(b, [layer(b) for layer in list(lasts.values())[number]])
        some_weights(model)
        other.set_weights(model.get_weights())
        model.save(tmp_path / f"model.{suffix}")
        loaded = cairn.load(str(tmp_path / f"model.{suffix}"))
        found = loaded.run({"x": first(x)})
        for entry, value, layer in zip(loaded.outputs, expected_of(other, x), layers):
            gone = x.ndim - value.ndim
            value = value if value.ndim < 3 else np.moveaxis(value, -1, steps - gone)
            assert found[entry.name].shape == value.shape, layer.name
            assert spread_error(found[entry.name], value) <= 1e-4, layer.name


def test_stateful_layers_are_told_once(tmp_path, command):
    import tensorflow as tf

    L = tf.keras.layers
    x = tf.keras.Input(batch_shape=(2, 5, 4))
    path = tmp_path / "model.h5"
    tf.keras.Model(x, L.GRU(3, stateful=True, name="b")(L.LSTM(3, stateful=True, return_sequences=True, name="a")(x))).save(path)
    done = command("cairn", "convert", str(path), "-o", "model.om")
    told = [line for line in (done.stdout + done.stderr).splitlines() if "reset_states" in line]
    assert len(told) == 1 and "start from zeros in every run" in told[0] and told[0].endswith("a, b")


def places(json, path=()):
    yield path
    for key, value in json.items() if isinstance(json, dict) else enumerate(json) if isinstance(json, list) else ():
        yield from places(value, (*path, key))


@pytest.mark.parametrize("seed", range(4))
def test_mutants_of_an_architecture_load_or_are_refused(seed, tmp_path):
    """In a process of its own, whose end would tell of a crash."""
    random = np.random.default_rng(seed)
    odd = [None, True, -1, 0, 2**40, -(2**62), 1e300, "", "relu", [], {}, [1], [-1] * 4, ["words", 0, 0], "Ellipsis",
           ["_CONSTANT_VALUE", -1, [1, [2]], {}], {"start": None, "stop": -7, "step": 0}]  # fmt: skip
    for number in range(60):
        source = ROOT / f"tests/python/data/keras3_{('image', 'text')[number % 2]}.keras"
        with zipfile.ZipFile(source) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        config = json.loads(members["config.json"])
        ways = [path for path in places(config) if len(path) > 3]
        *way, last = ways[random.integers(len(ways))]
        inner = config
        for key in way:
            inner = inner[key]
        inner[last] = odd[random.integers(len(odd))]
        with zipfile.ZipFile(tmp_path / f"{number}.keras", "w") as archive:
            for name, content in members.items():
                archive.writestr(name, json.dumps(config) if name == "config.json" else content)
    script = """
import pathlib, sys, cairn
for path in pathlib.Path(sys.argv[1]).glob("*.keras"):
    try:
        cairn.load(str(path))
    except cairn.Error as error:
        assert error.kind != "internal", error
"""
    done = subprocess.run([sys.executable, "-c", script, tmp_path], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ("image", "text", "functions", "layers"))
def test_archives_of_keras_3(name):
    """Which data/make_keras3.py wrote."""
    model = cairn.load(str(ROOT / f"tests/python/data/keras3_{name}.keras"))
    with np.load(ROOT / f"tests/python/data/keras3_{name}.npz") as arrays:
        x, results = arrays["x"], [arrays[key] for key in arrays.files if key != "x"]
    found = model.run({model.inputs[0].name: x})
    assert len(model.outputs) == len(results)
    for entry, expected in zip(model.outputs, results):
        assert found[entry.name].shape == expected.shape and np.ptp(expected) > 0, entry.name
        assert spread_error(found[entry.name].astype(np.float32), expected.astype(np.float32)) <= 1e-4, entry.name


def test_what_a_call_gives_is_taken_or_refused(tmp_path):
    import tensorflow as tf

    L = tf.keras.layers
    x, state = tf.keras.Input((5, 4)), tf.keras.Input((3,))
    for reason, y in {
        "function tf.math.lgamma": tf.math.lgamma(x),
        "a tensor x or y": tf.where(x > 0),
        "argument 'training' of its call": L.Dropout(0.5)(x, training=True),
    }.items():
        path = tmp_path / "model.h5"
        tf.keras.Model([x, state], y).save(path)
        with pytest.raises(cairn.Error, match=reason):
            cairn.load(str(path))
