"""Training in TensorFlow 2: models with steps of their own, views, masks, words as texts, ragged rows, doubles. As tf2_keras.py."""

import numpy as np
import tensorflow as tf
from tensorflow.keras import layers

from cases.tf2_functions import entropy, fitted, normal, taped
from cases.tf2_keras import fit, images, sequential, tape, tokens


def several_steps_at_once():
    """Four steps over a data set in one call of the compiled function (`steps_per_execution`)."""
    x, y = images(28, 1, 256)
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(32, drop_remainder=True).repeat()
    model = sequential(layers.Conv2D(16, 3, 2, activation="relu"), layers.Flatten(), layers.Dense(64, "relu"), layers.Dense(10))
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), steps_per_execution=4)
    return lambda i: model.fit(data, epochs=1, steps_per_epoch=4, verbose=0).history["loss"][0]


def critic_and_maker_in_one_model():
    """Both nets of a GAN in one model's `train_step`, two optimisers, draws inside."""
    maker = sequential(layers.Dense(7 * 7 * 32, input_shape=[32]), layers.LeakyReLU(), layers.Reshape([7, 7, 32]),
                       layers.Conv2DTranspose(16, 4, 2, "same"), layers.BatchNormalization(), layers.LeakyReLU(),
                       layers.Conv2DTranspose(1, 4, 2, "same", activation="tanh"))  # fmt: skip
    critic = sequential(layers.Conv2D(16, 4, 2, "same", input_shape=[28, 28, 1]), layers.LeakyReLU(), layers.Conv2D(32, 4, 2, "same"),
                        layers.LeakyReLU(), layers.Flatten(), layers.Dense(1))  # fmt: skip

    class Both(tf.keras.Model):
        def compile(self, a, b):
            super().compile()
            self.a, self.b = a, b

        def train_step(self, data):
            real = data[0]
            count = tf.shape(real)[0]
            z = tf.random.stateless_normal([count, 32], [1, 2])
            truth = tf.concat([tf.ones([count, 1]), tf.zeros([count, 1])], 0)
            with tf.GradientTape() as record:
                scores = critic(tf.concat([real, maker(z, training=True)], 0), training=True)
                first = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(truth, scores))
            self.b.apply_gradients(zip(record.gradient(first, critic.trainable_weights), critic.trainable_weights))
            with tf.GradientTape() as record:
                second = tf.reduce_mean(tf.nn.softplus(-critic(maker(z, training=True), training=True)))
            self.a.apply_gradients(zip(record.gradient(second, maker.trainable_weights), maker.trainable_weights))
            return {"critic": first, "maker": second}

    model = Both()
    model.compile(tf.keras.optimizers.Adam(2e-4, 0.5), tf.keras.optimizers.Adam(2e-4, 0.5))
    x = images(28, 1, 32)[0]
    return lambda i: sum(model.train_on_batch(x, return_dict=True).values())


def views_that_follow():
    """One net foretells what a slowly following copy says of another view (BYOL)."""
    make = lambda: sequential(layers.Conv2D(24, 3, 2), layers.BatchNormalization(), layers.ReLU(), layers.Conv2D(48, 3, 2), layers.ReLU(),
                              layers.GlobalAveragePooling2D(), layers.Dense(96, "relu"), layers.Dense(32))  # noqa: E731  # fmt: skip
    online, slow, guess = make(), make(), sequential(layers.Dense(64, "relu"), layers.Dense(32))
    x = images(32, 3, 16)[0]
    views = x[:, :, ::-1] * 1.1, x + 0.1
    guess(online(x)), slow(x)
    optimizer = tf.keras.optimizers.SGD(0.05, 0.9)

    @tf.function
    def step(a, b):
        with tf.GradientTape() as record:
            p, q = (tf.math.l2_normalize(guess(online(v, training=True)), 1) for v in (a, b))
            u, w = (tf.stop_gradient(tf.math.l2_normalize(slow(v, training=True), 1)) for v in (a, b))
            loss = 2 - tf.reduce_mean(tf.reduce_sum(p * w, 1) + tf.reduce_sum(q * u, 1))
        variables = online.trainable_variables + guess.trainable_variables
        optimizer.apply_gradients(zip(record.gradient(loss, variables), variables))
        for v, w in zip(online.trainable_variables, slow.trainable_variables):
            w.assign(0.99 * w + 0.01 * v)
        return loss

    return lambda i: step(*views).numpy()


def views_by_prototypes():
    """Codes of one view by transport to prototypes, foretold from the other; prototypes keep length one (SwAV)."""
    net = sequential(layers.Conv2D(24, 3, 2, activation="relu"), layers.Conv2D(48, 3, 2, activation="relu"), layers.GlobalAveragePooling2D(), layers.Dense(32))
    proto = layers.Dense(60, use_bias=False, kernel_constraint=tf.keras.constraints.UnitNorm(0))
    x = images(32, 3, 16)[0]
    proto(net(x))

    def codes(scores):
        q = tf.transpose(tf.exp(scores / 0.5))
        q /= tf.reduce_sum(q)
        for _ in tf.range(3):
            q /= tf.reduce_sum(q, 1, keepdims=True) * 60
            q /= tf.reduce_sum(q, 0, keepdims=True) * 16
        return tf.stop_gradient(tf.transpose(q * 16))

    def loss(a, b):
        scores = [proto(tf.math.l2_normalize(net(v), 1)) for v in (a, b)]
        return -tf.add_n([tf.reduce_mean(tf.reduce_sum(codes(scores[i]) * tf.nn.log_softmax(scores[1 - i] / 0.1), 1)) for i in range(2)]) / 2

    return tape(lambda: net.trainable_variables + proto.trainable_variables, tf.keras.optimizers.SGD(0.05, 0.9), loss, [(x[:, :, ::-1], x * 1.1)])


def patches_left_out():
    """Three of four patches are hidden and painted again from the rest (masked autoencoder)."""
    x = images(32, 3, 8)[0]
    attend = [layers.MultiHeadAttention(4, 16) for _ in range(3)]
    wide, narrow = [layers.Dense(128, "gelu") for _ in range(3)], [layers.Dense(64) for _ in range(3)]
    norms = [layers.LayerNormalization() for _ in range(6)]
    into, out = layers.Dense(64), layers.Dense(48)
    place, hidden = tf.Variable(normal(64, 64) * 0.02), tf.Variable(normal(64) * 0.02)

    def block(i, h):
        n = norms[2 * i](h)
        h += attend[i](n, n)
        return h + narrow[i](wide[i](norms[2 * i + 1](h)))

    def loss(x):
        patches = tf.reshape(tf.image.extract_patches(x, [1, 4, 4, 1], [1, 4, 4, 1], [1, 1, 1, 1], "VALID"), [8, 64, 48])
        order = tf.argsort(tf.random.stateless_uniform([8, 64], [3, 4]), 1)
        back = tf.argsort(order, 1)
        h = tf.gather(into(patches) + place, order[:, :16], batch_dims=1)
        h = block(1, block(0, h))
        h = tf.concat([h, tf.broadcast_to(hidden, [8, 48, 64])], 1)
        made = out(block(2, tf.gather(h, back, batch_dims=1) + place))
        mask = tf.cast(back >= 16, tf.float32)
        return tf.reduce_sum(mask * tf.reduce_mean(tf.square(made - patches), 2)) / tf.reduce_sum(mask)

    loss(x)
    parts = (*attend, *wide, *narrow, *norms, into, out)
    return tape(lambda: [place, hidden, *(v for part in parts for v in part.trainable_variables)], tf.keras.optimizers.AdamW(1e-3), loss, [(x,)])


def pictures_and_words():
    """Pictures and their words in one space, a learnt temperature, losses both ways (CLIP)."""
    x, (ids, _) = images(32, 3, 24)[0], tokens(16, 24, 2000)
    see = sequential(layers.Conv2D(24, 3, 2, activation="gelu"), layers.Conv2D(48, 3, 2, activation="gelu"), layers.Flatten(), layers.Dense(48))
    words, attend, norm, out = layers.Embedding(2000, 48), layers.MultiHeadAttention(3, 16), layers.LayerNormalization(), layers.Dense(48)
    scale = tf.Variable(2.6)

    def loss(x, ids):
        h = words(ids)
        h = norm(h + attend(h, h, use_causal_mask=True))
        last = tf.gather(h, tf.argmax(ids, 1), batch_dims=1)
        a, b = tf.math.l2_normalize(see(x), 1), tf.math.l2_normalize(out(last), 1)
        scores = tf.matmul(a, b, transpose_b=True) * tf.exp(tf.minimum(scale, 4.6))
        return (entropy(tf.range(24), scores) + entropy(tf.range(24), tf.transpose(scores))) / 2

    loss(x, ids)
    return tape(lambda: [scale, *(v for part in (see, words, attend, norm, out) for v in part.trainable_variables)], tf.keras.optimizers.Adam(1e-3), loss, [(x, ids)])


def words_looked_up_in_the_model():
    """Texts, hashes, bins and counts are made inside the model by Keras' preprocessing layers."""
    random = np.random.RandomState(0)
    names = [f"town{i}" for i in range(200)]
    town, code, age = tf.keras.Input([1], dtype=tf.string), tf.keras.Input([3], dtype=tf.string), tf.keras.Input([1])
    parts = [
        layers.Flatten()(layers.Embedding(201, 16)(layers.StringLookup(vocabulary=names)(town))),
        layers.Flatten()(layers.Embedding(64, 8)(layers.Hashing(64)(code))),
        layers.CategoryEncoding(6, "one_hot")(layers.Discretization([18.0, 25.0, 40.0, 50.0, 65.0])(age)),
        layers.Normalization(mean=40.0, variance=300.0)(age),
    ]
    h = layers.Dense(64, "relu", kernel_regularizer="l2")(layers.Concatenate()(parts))
    model = tf.keras.Model([town, code, age], layers.Dense(1)(h))
    model.compile("adagrad", tf.keras.losses.BinaryCrossentropy(from_logits=True))
    x = [tf.constant(random.choice(names, (128, 1))), tf.constant(random.choice(["a", "b", "c", "d"], (128, 3))), random.uniform(10, 80, (128, 1)).astype("f")]
    y = random.randint(2, size=(128, 1)).astype("f")
    return lambda i: model.train_on_batch(x, y)


def cells_stacked_with_state():
    """Stacked cells that keep their state from batch to batch, layers applied to each time (stateful)."""
    x, y = normal(16, 20, 12), normal(16, 20, 3, seed=1)
    cell = layers.StackedRNNCells([layers.LSTMCell(32), layers.GRUCell(32, recurrent_dropout=0.0)])
    model = sequential(layers.InputLayer([20, 12], batch_size=16), layers.TimeDistributed(layers.Dense(24, "relu")),
                       layers.RNN(cell, return_sequences=True, stateful=True), layers.LSTM(24, return_sequences=True, stateful=True, go_backwards=True),
                       layers.TimeDistributed(layers.Dense(3)))  # fmt: skip
    return fit(model, x, y, loss="huber")


def losses_added_by_layers():
    """Layers that add losses and metrics, weights held in bounds, noise and norms on the way (a sparse autoencoder)."""
    inputs = tf.keras.Input([196])
    h = layers.Dense(128, layers.PReLU(), kernel_constraint=tf.keras.constraints.MaxNorm(2.0))(layers.GaussianNoise(0.0)(inputs))
    h = layers.Dense(32, "sigmoid", activity_regularizer=tf.keras.regularizers.L1(1e-3), kernel_regularizer=tf.keras.regularizers.OrthogonalRegularizer(0.01))(h)
    made = layers.Dense(196, kernel_constraint="non_neg")(layers.LayerNormalization(scale=False)(layers.Dense(128, "elu", bias_regularizer="l2")(h)))
    model = tf.keras.Model(inputs, made)
    model.add_loss(0.1 * tf.reduce_mean(tf.square(tf.reduce_mean(h, 0) - 0.05)))
    schedule = tf.keras.optimizers.schedules.CosineDecayRestarts(1e-3, 50)
    x = tf.abs(normal(64, 196)) % 1
    return fit(model, x, x, tf.keras.optimizers.Adam(schedule, amsgrad=True, clipvalue=0.5), tf.keras.losses.LogCosh())


def rows_by_vectorised_map():
    """A small net of its own for each example: `vectorized_map` over weights and inputs, and a scan of `map_fn` beside it."""
    base = sequential(layers.Dense(64, "tanh"), layers.Dense(8 * 12 + 12))
    task, x, y = normal(32, 16), normal(32, 20, 8, seed=1), normal(32, 20, seed=2)
    base(task)

    def loss(task, x, y):
        def one(parts):
            w, each = parts
            h = tf.tanh(tf.matmul(each, tf.reshape(w[:96], [8, 12])))
            return tf.linalg.matvec(h, w[96:])

        made = tf.vectorized_map(one, (base(task), x))
        each = tf.map_fn(lambda parts: tf.reduce_max(tf.square(parts[0] - parts[1])), (made, y), fn_output_signature=tf.float32)
        return tf.reduce_mean(tf.square(made - y)) + 0.1 * tf.reduce_mean(each)

    return taped(base, loss, [(task, x, y)])


def loops_of_changing_length():
    """A loop over as many turns as the batch's longest row, which ends early where nothing changes any more."""
    cell, out, words = layers.Dense(48, "tanh"), layers.Dense(10), layers.Embedding(1000, 48)
    random = np.random.RandomState(0)
    out(cell(tf.concat([words(tf.zeros([16], tf.int32))] * 2, 1)))

    @tf.function(input_signature=[tf.TensorSpec([16, None], tf.int32), tf.TensorSpec([16], tf.int32)])
    def step(ids, y):
        with tf.GradientTape() as record:
            h, total = tf.zeros([16, 48]), tf.constant(0.0)
            for t in tf.range(tf.shape(ids)[1]):
                after = cell(tf.concat([words(ids[:, t]), h], 1))
                change = tf.reduce_mean(tf.abs(after - h))
                if change < 1e-4:
                    break
                total += 0.01 * change
                h = after
            loss = entropy(y, out(h)) + total
        variables = cell.trainable_variables + out.trainable_variables + words.trainable_variables
        optimizer.apply_gradients(zip(record.gradient(loss, variables), variables))
        return loss

    optimizer = tf.keras.optimizers.Adam(1e-3)
    feeds = [(tf.constant(random.randint(1000, size=(16, 8 + i % 9)), tf.int32), tf.constant(np.arange(16) % 10, tf.int32)) for i in range(18)]
    return lambda i: step(*feeds[i % 18]).numpy()


def doubles_in_keras():
    """A Keras model in f64 with a slope of its own as output (energies and forces)."""
    net = sequential(layers.Dense(64, "softplus", dtype="float64"), layers.Dense(64, "softplus", dtype="float64"), layers.Dense(1, dtype="float64"))
    x, e, f = (tf.cast(each, tf.float64) for each in (normal(128, 9), normal(128, 1, seed=1), normal(128, 9, seed=2)))
    net(x)

    def loss(x, e, f):
        with tf.GradientTape() as inner:
            inner.watch(x)
            energy = net(x)
        return tf.reduce_mean(tf.square(energy - e)) + tf.reduce_mean(tf.square(inner.gradient(energy, x) + f))

    return taped(net, loss, [(x, e, f)])


def noise_undone():
    """A net tells the slope of a density from noisy points, and points are drawn from it in a loop (score matching)."""
    net = sequential(layers.Dense(96, "swish"), layers.Dense(96, "swish"), layers.Dense(4))
    x, noise = normal(128, 4), normal(128, 4, seed=1)
    levels = tf.exp(tf.linspace(0.0, -3.0, 8))
    net(tf.concat([x, x[:, :1]], 1))

    def loss(x, noise):
        at = tf.gather(levels, tf.random.stateless_uniform([128], [1, 2], 0, 8, tf.int32))[:, None]
        fit = tf.reduce_mean(tf.square(net(tf.concat([x + at * noise, at], 1)) * at + noise))
        z = noise
        for level in levels:
            z += 0.02 * level**2 * net(tf.concat([z, tf.fill([128, 1], level)], 1))
        return fit + 0.01 * tf.reduce_mean(tf.square(tf.reduce_mean(z, 0)))

    return taped(net, loss, [(x, noise)])


def ragged_words_attended():
    """Rows of as many words as they have: ragged lookups, sums and a padded attention."""
    random = np.random.RandomState(0)
    rows = tf.ragged.constant([list(random.randint(1, 2000, size=random.randint(3, 20))) for _ in range(320)], dtype=tf.int32)
    data = tf.data.Dataset.from_tensor_slices((rows, np.arange(320) % 10)).batch(32)
    words = layers.Embedding(2000, 32)

    class Net(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.words, self.attend, self.out = words, layers.Attention(), layers.Dense(10)

        def call(self, ids):
            h = tf.ragged.map_flat_values(self.words, ids)
            mean = tf.reduce_mean(h, 1)
            whole, mask = h.to_tensor(), tf.sequence_mask(ids.row_lengths())
            found = self.attend([mean[:, None], whole], mask=[None, mask])
            return self.out(tf.concat([mean, found[:, 0]], 1))

    model = Net()
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return fitted(model, data)
