"""Training in TensorFlow 2: Keras layers and tf.function. A case gives a function of the step's number that returns the loss."""

import numpy as np
import tensorflow as tf
from tensorflow.keras import layers


def images(size=32, channels=3, batch=16, classes=10):
    random = np.random.RandomState(0)
    return tf.constant(random.randn(batch, size, size, channels).astype("f")), tf.constant(random.randint(classes, size=batch))


def tokens(length=32, batch=16, words=5000):
    random = np.random.RandomState(0)
    return tf.constant(random.randint(1, words, size=(batch, length))), tf.constant(random.randint(10, size=batch))


def fit(model, x, y, optimizer=None, loss=None):
    model.compile(optimizer or tf.keras.optimizers.Adam(1e-3), loss or tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return lambda i: model.train_on_batch(x, y)


def sequential(*parts):
    return tf.keras.Sequential(parts)


def separable_convolutions():
    x, y = images()
    return fit(sequential(layers.SeparableConv2D(32, 5, activation="swish"), layers.BatchNormalization(), layers.MaxPool2D(3, 2),
                          layers.Conv2D(64, 3), layers.GlobalAveragePooling2D(), layers.Dense(10)), x, y)  # fmt: skip


def grouped_convolutions():
    x, y = images()
    return fit(sequential(layers.Conv2D(64, 3), layers.Conv2D(64, 3, groups=8, activation="relu"), layers.BatchNormalization(),
                          layers.Conv2D(128, 3, 2, groups=4, activation="relu"), layers.GlobalMaxPool2D(), layers.Dense(10)), x, y)  # fmt: skip


def efficient_net_block():
    inputs = tf.keras.Input([48, 48, 3])
    x = layers.Conv2D(24, 3, 2, "same")(inputs)
    for _ in range(2):
        h = layers.Activation("swish")(layers.BatchNormalization()(layers.Conv2D(96, 1, use_bias=False)(x)))
        h = layers.Activation("swish")(layers.BatchNormalization()(layers.DepthwiseConv2D(5, padding="same", use_bias=False)(h)))
        scale = layers.Conv2D(96, 1, activation="sigmoid")(
            layers.Conv2D(6, 1, activation="swish")(tf.reduce_mean(h, [1, 2], keepdims=True))
        )
        x = x + layers.BatchNormalization()(layers.Conv2D(24, 1, use_bias=False)(h * scale))
    return fit(tf.keras.Model(inputs, layers.Dense(10)(layers.GlobalAveragePooling2D()(x))), *images(48))


def mixed_float16():
    tf.keras.mixed_precision.set_global_policy("mixed_float16")
    x, y = images(28, 1, 32)
    return fit(sequential(layers.Conv2D(16, 5, activation="relu"), layers.MaxPool2D(), layers.Conv2D(32, 5, activation="relu"), layers.Flatten(),
                          layers.Dense(128, activation="relu"), layers.Dense(10), layers.Activation("linear", dtype="float32")), x, y)  # fmt: skip


def mixed_bfloat16():
    tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")
    x = tf.constant(np.random.RandomState(0).randn(128, 784).astype("f"))
    return fit(sequential(layers.Dense(512, activation="relu"), layers.Dense(512, activation="relu"), layers.Dense(10, dtype="float32")),
               x, tf.constant(np.arange(128) % 10))  # fmt: skip


def recurrent(*parts):
    x, y = tokens()
    return fit(sequential(layers.Embedding(5000, 64), *parts, layers.Dense(10)), x, y)


def lstm():
    return recurrent(layers.LSTM(64))


def gru_stacked():
    return recurrent(layers.GRU(64, return_sequences=True), layers.GRU(64))


def bidirectional_lstm():
    return recurrent(layers.Bidirectional(layers.LSTM(48, return_sequences=True)), layers.GlobalMaxPool1D())


def masked_lstm():
    x, y = tokens()
    model = sequential(layers.Embedding(5000, 64, mask_zero=True), layers.LSTM(64), layers.Dense(10))
    return fit(model, x * tf.cast(tf.sequence_mask(tf.range(16) + 10, 32), x.dtype), y)


def simple_recurrence():
    return recurrent(layers.SimpleRNN(128))


def convolutional_lstm():
    random = np.random.RandomState(0)
    model = sequential(layers.ConvLSTM2D(16, 3, padding="same"), layers.Conv2D(1, 1))
    x, y = tf.constant(random.rand(2, 6, 32, 32, 1).astype("f")), tf.constant(random.rand(2, 32, 32, 1).astype("f"))
    return fit(model, x, y, loss="mse")


def transformer_text():
    inputs = tf.keras.Input([32], dtype=tf.int64)
    x = layers.Embedding(5000, 128)(inputs) + layers.Embedding(32, 128)(tf.range(32))
    for _ in range(2):
        x = layers.LayerNormalization()(x + layers.MultiHeadAttention(4, 32)(x, x))
        x = layers.LayerNormalization()(x + layers.Dense(128)(layers.Dense(512, activation="gelu")(x)))
    return fit(tf.keras.Model(inputs, layers.Dense(10)(layers.GlobalAveragePooling1D()(x))), *tokens())


def vision_transformer():
    inputs = tf.keras.Input([64, 64, 3])
    x = layers.Reshape([64, 128])(layers.Conv2D(128, 8, 8)(inputs))
    x = x + layers.Embedding(64, 128)(tf.range(64))
    for _ in range(3):
        h = layers.LayerNormalization()(x)
        x = x + layers.MultiHeadAttention(4, 32)(h, h)
        x = x + layers.Dense(128)(layers.Dense(256, activation="gelu")(layers.LayerNormalization()(x)))
    return fit(tf.keras.Model(inputs, layers.Dense(10)(layers.LayerNormalization()(x)[:, 0])), *images(64))


def mlp_mixer():
    inputs = tf.keras.Input([64, 64, 3])
    x = layers.Reshape([64, 128])(layers.Conv2D(128, 8, 8)(inputs))
    for _ in range(3):
        h = layers.Permute([2, 1])(layers.LayerNormalization()(x))
        x = x + layers.Permute([2, 1])(layers.Dense(64)(layers.Dense(64, activation="gelu")(h)))
        x = x + layers.Dense(128)(layers.Dense(256, activation="gelu")(layers.LayerNormalization()(x)))
    return fit(tf.keras.Model(inputs, layers.Dense(10)(layers.GlobalAveragePooling1D()(x))), *images(64))


def norms_of_groups():
    x, y = images(32)
    return fit(sequential(layers.Conv2D(64, 3, padding="same"), layers.GroupNormalization(8), layers.ReLU(), layers.Conv2D(64, 3, 2),
                          layers.GroupNormalization(-1), layers.ReLU(), layers.GlobalAveragePooling2D(), layers.LayerNormalization(), layers.Dense(10)), x, y)  # fmt: skip


def convolutions_3d():
    random = np.random.RandomState(0)
    x, y = tf.constant(random.randn(4, 16, 24, 24, 1).astype("f")), tf.constant(random.randint(10, size=4))
    return fit(sequential(layers.Conv3D(16, 3, activation="relu"), layers.MaxPool3D(), layers.Conv3D(32, 3, activation="relu"),
                          layers.AveragePooling3D(), layers.GlobalAveragePooling3D(), layers.Dense(10)), x, y)  # fmt: skip


def perceiver():
    inputs = tf.keras.Input([50, 50, 3])
    x = layers.Dense(72)(layers.Reshape([2500, 3])(inputs)) + layers.Embedding(2500, 72)(tf.range(2500))
    h = tf.zeros_like(x[:, :48]) + layers.Embedding(48, 72)(tf.range(48))
    for _ in range(2):
        h = h + layers.MultiHeadAttention(1, 72)(layers.LayerNormalization()(h), layers.LayerNormalization()(x))
        for _ in range(2):
            inner = layers.LayerNormalization()(h)
            h = h + layers.MultiHeadAttention(6, 12)(inner, inner)
            h = h + layers.Dense(72)(layers.Dense(144, activation="gelu")(layers.LayerNormalization()(h)))
    return fit(tf.keras.Model(inputs, layers.Dense(10)(layers.GlobalAveragePooling1D()(h))), *images(50, batch=6))


def unet_of_volumes():
    inputs = tf.keras.Input([12, 28, 28, 2])
    norm = lambda x, width: layers.ReLU()(layers.BatchNormalization()(layers.Conv3D(width, 3, padding="same")(x)))  # noqa: E731
    first = norm(inputs, 12)
    second = norm(layers.MaxPool3D()(first), 24)
    low = norm(layers.MaxPool3D()(second), 40)
    up = norm(layers.Concatenate()([layers.Conv3DTranspose(24, 2, 2)(low), second]), 24)
    up = norm(layers.Concatenate()([layers.UpSampling3D()(up), first]), 12)
    random = np.random.RandomState(0)
    x, y = tf.constant(random.randn(2, 12, 28, 28, 2).astype("f")), tf.constant((random.rand(2, 12, 28, 28, 1) > 0.9).astype("f"))

    def dice(wanted, made):
        both = tf.reduce_sum(wanted * made, [1, 2, 3])
        return 1 - tf.reduce_mean((2 * both + 1) / (tf.reduce_sum(wanted, [1, 2, 3]) + tf.reduce_sum(made, [1, 2, 3]) + 1))

    return fit(tf.keras.Model(inputs, layers.Conv3D(1, 1, activation="sigmoid")(up)), x, y, loss=dice)


def convnext():
    inputs = tf.keras.Input([60, 60, 3])
    x = layers.LayerNormalization(epsilon=1e-6)(layers.Conv2D(48, 4, 4)(inputs))
    for width in (48, 96):
        x = x if width == 48 else layers.Conv2D(width, 2, 2)(layers.LayerNormalization(epsilon=1e-6)(x))
        for _ in range(2):
            h = layers.LayerNormalization(epsilon=1e-6)(layers.DepthwiseConv2D(7, padding="same")(x))
            x = x + layers.Dense(width)(layers.Dense(4 * width, activation="gelu")(h))
    return fit(tf.keras.Model(inputs, layers.Dense(10)(layers.GlobalAveragePooling2D()(x))), *images(60))


def unet_transposed():
    inputs = tf.keras.Input([64, 64, 3])
    a = layers.Conv2D(16, 3, padding="same", activation="relu")(inputs)
    b = layers.Conv2D(32, 3, 2, "same", activation="relu")(a)
    c = layers.Conv2D(64, 3, 2, "same", activation="relu")(b)
    d = layers.concatenate([layers.Conv2DTranspose(32, 3, 2, "same", activation="relu")(c), b])
    e = layers.concatenate([layers.UpSampling2D(interpolation="bilinear")(d), a])
    random = np.random.RandomState(0)
    x, y = tf.constant(random.randn(4, 64, 64, 3).astype("f")), tf.constant(random.randint(3, size=(4, 64, 64)))
    return fit(tf.keras.Model(inputs, layers.Conv2D(3, 1)(e)), x, y)


def dropout_mlp():
    x = tf.constant(np.random.RandomState(0).randn(128, 784).astype("f"))
    parts = [part for _ in range(2) for part in (layers.Dense(256, activation="relu"), layers.Dropout(0.3))]
    return fit(sequential(*parts, layers.Dense(10)), x, tf.constant(np.arange(128) % 10), "rmsprop")


def optimised(optimizer):
    x = tf.constant(np.random.RandomState(0).randn(64, 256).astype("f"))
    return fit(
        sequential(layers.Dense(512, activation="relu"), layers.Dense(512, activation="relu"), layers.Dense(10)),
        x,
        tf.constant(np.arange(64) % 10),
        optimizer,
    )


def adamw_clipped():
    return optimised(tf.keras.optimizers.AdamW(1e-3, clipnorm=1.0))


def nadam():
    return optimised("nadam")


def ftrl():
    return optimised("ftrl")


def tape(variables, optimizer, loss_of, feeds):
    """A step written by hand in a tf.function."""

    @tf.function
    def step(*values):
        with tf.GradientTape() as record:
            loss = loss_of(*values)
        made = variables()
        optimizer.apply_gradients(zip(record.gradient(loss, made), made))
        return loss

    return lambda i: step(*feeds[i % len(feeds)]).numpy()


def two_towers():
    towers = [
        sequential(layers.Embedding(5000, 32), layers.GlobalAveragePooling1D(), layers.Dense(64, "relu"), layers.Dense(32))
        for _ in range(2)
    ]
    random = np.random.RandomState(0)
    feeds = [tuple(tf.constant(random.randint(5000, size=(128, 10))) for _ in range(2)) for _ in range(4)]
    for tower, values in zip(towers, feeds[0]):
        tower(values)

    def loss(a, b):
        scores = tf.matmul(towers[0](a), towers[1](b), transpose_b=True)
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(tf.range(128), scores))

    return tape(lambda: towers[0].trainable_variables + towers[1].trainable_variables, tf.keras.optimizers.Adagrad(0.1), loss, feeds)


def contrastive_of_two_views():
    model = sequential(
        layers.Conv2D(32, 3, 2, activation="relu"),
        layers.Conv2D(64, 3, 2, activation="relu"),
        layers.GlobalAveragePooling2D(),
        layers.Dense(64),
    )
    a, b = images()[0], images()[0] * 1.1 + 0.1
    model(a)

    def loss(a, b):
        h = tf.math.l2_normalize(model(tf.concat([a, b], 0), training=True), 1)
        scores = tf.matmul(h, h, transpose_b=True) / 0.5 - 1e9 * tf.eye(32)
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits((tf.range(32) + 16) % 32, scores))

    return tape(lambda: model.trainable_variables, tf.keras.optimizers.SGD(0.1, 0.9), loss, [(a, b)])


def meta_learning_second_order():
    w, v = (tf.Variable(np.random.RandomState(0).randn(*shape).astype("f") * 0.1) for shape in ((16, 64), (64, 1)))
    random = np.random.RandomState(1)
    feeds = [tuple(tf.constant(random.randn(64, width).astype("f")) for width in (16, 1))]

    def loss(x, y):
        with tf.GradientTape() as inner:
            first = tf.reduce_mean(tf.square(tf.matmul(tf.tanh(tf.matmul(x, w)), v) - y))
        a, b = inner.gradient(first, (w, v))
        return tf.reduce_mean(tf.square(tf.matmul(tf.tanh(tf.matmul(x, w - 0.1 * a)), v - 0.1 * b) - y))

    return tape(lambda: (w, v), tf.keras.optimizers.Adam(1e-3), loss, feeds)


def decoder_by_tensor_array():
    cell, out, words = layers.GRUCell(64), layers.Dense(500), layers.Embedding(500, 64)
    ids = tf.constant(np.random.RandomState(0).randint(500, size=(16, 21)))
    out(cell(words(ids[:, 0]), [tf.zeros([16, 64])])[0])

    def loss(ids):
        state, losses = tf.zeros([16, 64]), tf.TensorArray(tf.float32, 20)
        for i in tf.range(20):
            h, (state,) = cell(words(ids[:, i]), [state])
            losses = losses.write(i, tf.nn.sparse_softmax_cross_entropy_with_logits(ids[:, i + 1], out(h)))
        return tf.reduce_mean(losses.stack())

    return tape(
        lambda: cell.trainable_variables + out.trainable_variables + words.trainable_variables,
        tf.keras.optimizers.Adam(1e-3),
        loss,
        [(ids,)],
    )


def diffusion_denoiser():
    model = sequential(layers.Conv2D(32, 3, padding="same", activation="swish"), layers.GroupNormalization(8),
                       layers.Conv2D(32, 3, padding="same", activation="swish"), layers.Conv2D(3, 3, padding="same"))  # fmt: skip
    x, _ = images(batch=8)
    noise = tf.constant(np.random.RandomState(1).randn(8, 32, 32, 3).astype("f"))
    model(x)

    def loss(x, noise, share):
        mixed = tf.sqrt(share) * x + tf.sqrt(1 - share) * noise
        return tf.reduce_mean(tf.square(model(mixed, training=True) - noise))

    return tape(lambda: model.trainable_variables, tf.keras.optimizers.Adam(1e-3), loss, [(x, noise, tf.fill([8, 1, 1, 1], 0.3))])
