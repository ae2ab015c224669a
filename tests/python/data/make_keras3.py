"""Writes keras3_image.keras and keras3_text.keras beside itself, each with inputs and Keras' own outputs as .npz, as Keras
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


keras.utils.set_random_seed(3)
for make in (image, text):
    model, x = make()
    for weight in model.weights:
        if len(weight.shape) == 1:
            weight.assign(keras.ops.convert_to_numpy(weight) + 0.3 * np.abs(random.normal(size=tuple(weight.shape))))
    x = x.astype(np.float32)
    model.save(FOLDER / f"keras3_{make.__name__}.keras")
    np.savez(FOLDER / f"keras3_{make.__name__}.npz", x=x, y=keras.ops.convert_to_numpy(model(x, training=False)))
