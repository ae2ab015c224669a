"""Writes keras3_image.keras, keras3_text.keras, keras3_functions.keras and keras3_layers.keras beside itself, each with inputs and Keras' own outputs as .npz, as Keras
3.6.0 saves them. Keras 3 cannot be installed beside TensorFlow 2.15, so the files are kept and not made by the tests.

    KERAS_BACKEND=torch python make_keras3.py
"""

from pathlib import Path

import keras
import numpy as np

L = keras.layers
FOLDER = Path(__file__).parent
random = np.random.default_rng(1)


def image():
    x = keras.Input((8, 8, 3), name="image")
    y = L.LeakyReLU(0.1)(L.BatchNormalization()(L.Conv2D(4, 3, padding="same", activation="relu6")(x)))
    y = L.Add()([y, L.Conv2D(4, 1, activation="hard_sigmoid")(y)])
    twin = keras.Sequential([L.Dense(4, "gelu"), L.Rescaling(0.5), L.Dense(3, name="second")], name="twin")
    y = L.Concatenate()([twin(L.GlobalAveragePooling2D()(y)), twin(L.GlobalMaxPooling2D()(y))])
    return keras.Model(x, L.Dense(5, "softmax", name="head")(y)), random.normal(size=(3, 8, 8, 3))


def text():
    x = keras.Input((6,), name="words")
    words = L.Embedding(20, 4, mask_zero=True)(x)
    y = L.MultiHeadAttention(2, 3)(words, words, use_causal_mask=True)
    y = L.LayerNormalization()(L.Add()([y, words]))
    y = L.Bidirectional(L.LSTM(3, return_sequences=True))(y)
    x_words = random.integers(1, 20, (4, 6))
    x_words[0, 4:] = x_words[1, 2] = x_words[2, :1] = 0
    return keras.Model(x, L.Dense(2)(L.GRU(3)(y))), x_words


def functions():
    ops = keras.ops
    x = keras.Input((6, 4), name="x")
    z = L.Dense(4, name="z")(x)
    picture = ops.reshape(x, (-1, 6, 4, 1))
    made = [
        x + z, x * 2.0, 1.0 - x, x / 3, x // 0.5, x % 0.7, x**2, -x, abs(x), x @ ops.transpose(z, (0, 2, 1)), ops.matmul(ops.swapaxes(x, 1, 2), z),
        ops.mean(x, axis=1), ops.sum(x, axis=[1, 2], keepdims=True), ops.max(x, 1), ops.min(x, 2), ops.var(x, axis=1), ops.std(x, axis=(1, 2), keepdims=True),
        ops.logsumexp(x, axis=(-1,)), ops.norm(x, axis=-1), ops.normalize(x, axis=1), ops.argmax(x, axis=-1), ops.cumsum(x, axis=1),
        x[:, 0], x[:, 1:3, None, ::2], x[..., -1], x[:, -1], ops.concatenate([x, z], axis=1), ops.stack([x, z], axis=1), ops.expand_dims(x, -1),
        ops.squeeze(x[:, 0:1], 1), *ops.split(x, 2, axis=1), *ops.split(x, [1, 3], axis=-1), ops.take(x, [2, 0], axis=1), ops.tile(x, [1, 2, 1]),
        ops.repeat(x, 2, axis=1), ops.flip(x, axis=1), ops.pad(x, ((0, 0), (1, 2), (0, 0)), constant_values=0.5), ops.moveaxis(picture, 3, 1),
        ops.broadcast_to(x[:, :1], (3, 6, 4)), ops.einsum("abc,adc->abd", x, z), ops.where(x > 0.1, x, z), ops.where(x > z, x, 0.0),
        ops.cast(ops.logical_and(x > 0, ops.logical_not(z < 0)), "float32"), ops.clip(x, -0.5, 0.25), ops.maximum(x, 0.0), ops.minimum(x, z), ops.power(abs(x), 1.5),
        ops.relu(x), ops.relu6(x), ops.gelu(x), ops.gelu(x, approximate=False), ops.silu(x), ops.selu(x), ops.elu(x), ops.leaky_relu(x), ops.softplus(x),
        ops.softsign(x), ops.sigmoid(x), ops.hard_sigmoid(x), ops.softmax(x, axis=1), ops.log_softmax(x), ops.tanh(x), ops.exp(x), ops.sqrt(abs(x)),
        ops.rsqrt(abs(x) + 1.0), ops.square(x), ops.sin(x), ops.log1p(abs(x)), ops.round(x * 3), ops.sign(x), ops.erf(x), ops.multiply(2, x), ops.prod(x, axis=2),
        ops.cast(ops.argmax(x, axis=1), "int32") * 0.5, x * ops.ones_like(x) + ops.zeros_like(z) + 1.0,
    ]  # fmt: skip
    return keras.Model(x, made), random.normal(size=(3, 6, 4))


def layers():
    x = keras.Input((4, 6, 8, 2), name="x")
    row = L.Reshape((8, 48))(x)
    made = [
        L.EinsumDense("abc,cde->abde", (None, 2, 3), bias_axes="de")(row), L.EinsumDense("...x,xy->...y", 3)(x), L.RNN(L.LSTMCell(4))(row),
        *L.RNN(L.StackedRNNCells([L.GRUCell(3), L.LSTMCell(2)]), return_sequences=True, return_state=True)(row),
        L.Bidirectional(L.RNN(L.GRUCell(3)))(row), L.Conv3DTranspose(2, 3, strides=2)(x), L.ConvLSTM2D(3, 3, padding="same")(x),
        L.ConvLSTM1D(2, 2, return_sequences=True)(L.Reshape((4, 6, 16))(x)), L.GroupNormalization(2)(row), L.UnitNormalization()(row),
        L.TimeDistributed(L.Conv2D(2, 3))(x),
    ]  # fmt: skip
    return keras.Model(x, made), random.normal(size=(2, 4, 6, 8, 2))


keras.utils.set_random_seed(3)
for make in (image, text, functions, layers):
    model, x = make()
    for weight in model.weights:
        if len(weight.shape) == 1:
            weight.assign(keras.ops.convert_to_numpy(weight) + 0.3 * np.abs(random.normal(size=tuple(weight.shape))))
    x = x.astype(np.float32)
    model.save(FOLDER / f"keras3_{make.__name__}.keras")
    results = keras.tree.flatten(model(x, training=False))
    np.savez(FOLDER / f"keras3_{make.__name__}.npz", x=x, **{f"y{i}": keras.ops.convert_to_numpy(y) for i, y in enumerate(results)})
