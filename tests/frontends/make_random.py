"""Makes one graph for each TensorFlow op that draws random numbers from a stream, and what three runs of it draw.

    python make_random.py FOLDER
"""
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
import numpy as np
import tensorflow as tf

from make_models import save_case

tf1 = tf.compat.v1
SEEDS = dict(seed=87654321, seed2=42)
X = np.arange(21, dtype=np.float32).reshape(7, 3)

CASES = {
    "Uniform": lambda: tf.raw_ops.RandomUniform(shape=[5, 7], dtype=tf.float32, **SEEDS),
    "UniformDouble": lambda: tf.raw_ops.RandomUniform(shape=[5], dtype=tf.float64, **SEEDS),
    "UniformInt": lambda: tf.raw_ops.RandomUniformInt(shape=[9], minval=-3, maxval=1000, **SEEDS),
    "UniformInt64": lambda: tf.raw_ops.RandomUniformInt(shape=[9], minval=np.int64(-3), maxval=np.int64(10**12), **SEEDS),
    "Normal": lambda: tf.raw_ops.RandomStandardNormal(shape=[3, 11], dtype=tf.float32, **SEEDS),
    "Truncated": lambda: tf.raw_ops.TruncatedNormal(shape=[3, 11], dtype=tf.float32, **SEEDS),
    "Shuffle": lambda: tf.raw_ops.RandomShuffle(value=X, **SEEDS),
    "Multinomial": lambda: tf.raw_ops.Multinomial(logits=X, num_samples=5, **SEEDS),
    "Dropout": lambda: tf.nn.dropout(tf.constant(X), rate=0.4, seed=7),
    "Stateless": lambda: tf.random.stateless_uniform([6], seed=[1, 2]),
    "StatelessNormalOfOne": lambda: tf.raw_ops.StatelessRandomNormal(shape=[6], seed=[1, 2]),
    "StatelessInt": lambda: tf.random.stateless_uniform([6], seed=[1, 2], minval=-5, maxval=50, dtype=tf.int32),
    "StatelessTruncated": lambda: tf.random.stateless_truncated_normal([6], seed=[1, 2]),
    "StatelessCategorical": lambda: tf.random.stateless_categorical(tf.constant(X), 4, seed=[1, 2]),
}


def main():
    root = sys.argv[1]
    if os.path.exists(os.path.join(root, "done")):
        return
    for name, function in CASES.items():
        folder = os.path.join(root, name)
        with tf1.Graph().as_default() as graph:
            tf1.set_random_seed(11)
            y = tf.identity(function(), name="y")
            with tf1.Session(graph=graph) as session:
                draws = [session.run(y) for _ in range(3)]
            tf1.train.write_graph(graph.as_graph_def(), folder, "graph.pb", as_text=False)
        save_case(folder, {}, {f"y{n}": draw for n, draw in enumerate(draws)})
    open(os.path.join(root, "done"), "w").close()


main()
