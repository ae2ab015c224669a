"""Recommenders as people export them, small: made by TensorFlow, with inputs and what TensorFlow answers."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np
import tensorflow as tf

WORDS = ["red", "green", "blue", "größer"]


def example(**features):
    """A serialized tf.train.Example: lists of int, float or bytes."""
    made = {}
    for name, values in features.items():
        if all(isinstance(value, (str, bytes)) for value in values):
            texts = [value.encode() if isinstance(value, str) else value for value in values]
            made[name] = tf.train.Feature(bytes_list=tf.train.BytesList(value=texts))
        elif all(isinstance(value, int) for value in values):
            made[name] = tf.train.Feature(int64_list=tf.train.Int64List(value=values))
        else:
            made[name] = tf.train.Feature(float_list=tf.train.FloatList(value=values))
    return tf.train.Example(features=tf.train.Features(feature=made)).SerializeToString()


def columns():
    """Wide and deep columns: buckets of hashes, a vocabulary of words and one of a file, crosses, buckets of a number."""
    fc = tf.feature_column
    user = fc.categorical_column_with_hash_bucket("user", 50)
    tags = fc.categorical_column_with_vocabulary_list("tags", WORDS, num_oov_buckets=2)
    colour = fc.categorical_column_with_vocabulary_list("colour", WORDS[:2], default_value=-1)
    item = fc.categorical_column_with_identity("item", 20, default_value=0)
    age = fc.bucketized_column(fc.numeric_column("age", default_value=[0.0]), [18, 30, 50])
    weighted = fc.weighted_categorical_column(fc.categorical_column_with_hash_bucket("words", 30), "weights")
    wide = [user, tags, age, fc.crossed_column(["user", item], 100), fc.crossed_column([age, "colour"], 40)]
    deep = [fc.embedding_column(user, 4), fc.embedding_column(tags, 3, combiner="sqrtn"), fc.indicator_column(colour),
            fc.embedding_column(item, 2, combiner="sum"), fc.embedding_column(weighted, 3), fc.numeric_column("price", shape=(2,), default_value=[0.5, 1.5])]
    return wide, deep + [age]


EXAMPLES = [
    example(user=["u1"], tags=["red", "unknown", "blue"], colour=["green"], item=[3], age=[25.0], price=[1.0, 2.0], words=["a", "b"], weights=[0.5, 2.0]),
    example(user=["u2"], tags=[], colour=["none"], item=[7], age=[70.0], price=[0.0, -2.0], words=["c"], weights=[1.0]),
    example(user=[], item=[19, 4], price=[4.0, 4.0]),
    example(user=["u1", "a user whose name is longer than sixty-four bytes, so that the hash goes in blocks"], tags=["größer"], colour=["red"], item=[0], age=[18.0]),
]


def batch(records):
    return np.array(records, object)


def wide_and_deep(folder):
    """An estimator's export: records of tf.train.Example in."""
    wide, deep = columns()
    tf.random.set_seed(5)
    config = tf.estimator.RunConfig(tf_random_seed=5, model_dir=str(folder / "train"), save_summary_steps=1000, log_step_count_steps=1000)
    model = tf.estimator.DNNLinearCombinedClassifier(linear_feature_columns=wide, dnn_feature_columns=deep, dnn_hidden_units=[8, 4], config=config)
    spec = tf.feature_column.make_parse_example_spec(wide + deep)
    data = lambda: tf.data.Dataset.from_tensors((tf.io.parse_example(EXAMPLES, spec), [[1], [0], [1], [0]])).repeat(3)  # noqa: E731
    model.train(data, steps=3)
    receive = tf.estimator.export.build_parsing_serving_input_receiver_fn(spec)
    return model.export_saved_model(str(folder / "export"), receive).decode()


def estimator_of(model_fn, folder, receive, data):
    config = tf.estimator.RunConfig(tf_random_seed=5, model_dir=str(folder / "train"), save_summary_steps=1000, log_step_count_steps=1000)
    model = tf.estimator.Estimator(model_fn, config=config)
    model.train(data, steps=2)
    return model.export_saved_model(str(folder / "export"), receive).decode()


def esmm(folder):
    """Two towers over shared columns, click and conversion, whose product is the output; a vocabulary file, plain tensors in."""
    words = folder / "words.txt"
    words.write_text("".join(f"{word}\n" for word in WORDS))
    fc, v1 = tf.feature_column, tf.compat.v1
    tags = fc.categorical_column_with_vocabulary_file("tags", str(words), num_oov_buckets=1)
    shared = [fc.embedding_column(fc.categorical_column_with_hash_bucket("user", 40), 4), fc.embedding_column(tags, 4), fc.numeric_column("price")]
    item = fc.categorical_column_with_hash_bucket("item", 30, tf.int64)
    shared.append(fc.embedding_column(item, 4, combiner="mean"))

    def tower(inputs, name):
        with v1.variable_scope(name):
            hidden = v1.layers.dense(inputs, 8, tf.nn.relu)
            return v1.layers.dense(v1.layers.batch_normalization(hidden), 1, tf.nn.sigmoid)

    def model_fn(features, labels, mode):
        inputs = v1.feature_column.input_layer(features, shared)
        ctr, cvr = tower(inputs, "ctr"), tower(inputs, "cvr")
        predictions = {"ctr": ctr, "cvr": cvr, "ctcvr": ctr * cvr}
        loss = train = None
        if mode == tf.estimator.ModeKeys.TRAIN:
            loss = v1.losses.log_loss(labels, ctr) + v1.losses.log_loss(labels, ctr * cvr)
            train = v1.train.AdagradOptimizer(0.1).minimize(loss, v1.train.get_global_step())
        outputs = {v1.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY: tf.estimator.export.PredictOutput(predictions)}
        return tf.estimator.EstimatorSpec(mode, predictions, loss, train, export_outputs=outputs)

    features = {"user": [["u1"], ["u2"]], "tags": [["red", "x"], ["blue", ""]], "price": [[1.0], [2.0]], "item": [[3], [-1]]}
    data = lambda: tf.data.Dataset.from_tensors(({k: tf.constant(v, tf.int64 if k == "item" else None) for k, v in features.items()}, [[1.0], [0.0]])).repeat(2)  # noqa: E731

    def receive():
        kinds = {"user": tf.string, "tags": tf.string, "price": tf.float32, "item": tf.int64}
        inputs = {name: v1.placeholder(kind, [None, None if name == "tags" else 1], name) for name, kind in kinds.items()}
        return tf.estimator.export.ServingInputReceiver(inputs, inputs)

    return estimator_of(model_fn, folder, receive, data)


def two_towers(folder):
    """Keras: users and items by StringLookup, IntegerLookup, Hashing, TextVectorization and more, multiplied."""
    layers = tf.keras.layers
    tf.keras.utils.set_random_seed(3)
    user = tf.keras.Input([], name="user", dtype=tf.string)
    age = tf.keras.Input([1], name="age")
    country = tf.keras.Input([1], name="country", dtype=tf.string)
    item = tf.keras.Input([], name="item", dtype=tf.int64)
    title = tf.keras.Input([1], name="title", dtype=tf.string)
    users = layers.Embedding(8, 4)(layers.StringLookup(vocabulary=["ann", "bob", "eve"], num_oov_indices=2)(user))
    ages = layers.Normalization(mean=40.0, variance=90.0)(age)
    groups = layers.CategoryEncoding(4, output_mode="one_hot")(layers.Discretization([18.0, 30.0, 50.0])(age))
    countries = layers.Flatten()(layers.Embedding(10, 3)(layers.Hashing(10)(country)))
    left = layers.Dense(6)(layers.Concatenate()([users, ages, groups, countries]))
    lookup = layers.IntegerLookup()
    lookup.adapt(np.array([7, 7, 7, 3, 3, 11]))
    vectorise = layers.TextVectorization(max_tokens=20, output_sequence_length=4)
    vectorise.adapt(np.array(["the red car", "the blue car!", "a car"]))
    words = layers.GlobalAveragePooling1D()(layers.Embedding(20, 4)(vectorise(title)))
    items = layers.Embedding(8, 4)(lookup(item))
    right = layers.Dense(6)(layers.Concatenate()([items, words]))
    model = tf.keras.Model([user, age, country, item, title], {"score": layers.Dot(1)([left, right]), "user": left})
    tf.saved_model.save(model, str(folder / "export"))
    return str(folder / "export")
