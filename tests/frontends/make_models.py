"""Makes the models that the reader tests use, with stock TensorFlow, and what they compute, as files in one folder.

    python make_models.py FOLDER
"""
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1


def save_case(folder, inputs, outputs):
    """Named arrays beside the model: what goes in and what TensorFlow answers."""
    os.makedirs(os.path.join(folder, "case"), exist_ok=True)
    for kind, arrays in (("in", inputs), ("out", outputs)):
        for name, array in arrays.items():
            np.save(os.path.join(folder, "case", f"{kind}.{name}.npy"), np.asarray(array))


def serve(folder, inputs):
    answer = tf.saved_model.load(folder).signatures["serving_default"](**{k: tf.constant(v) for k, v in inputs.items()})
    save_case(folder, inputs, {k: v.numpy() for k, v in answer.items()})


def keras_cnn(folder):
    tf.keras.utils.set_random_seed(1)
    model = tf.keras.Sequential([
        tf.keras.layers.Input((8, 8, 1)),
        tf.keras.layers.Conv2D(4, 3, padding="same", activation="relu"),
        tf.keras.layers.BatchNormalization(moving_variance_initializer="ones"),
        tf.keras.layers.MaxPool2D(),
        tf.keras.layers.DepthwiseConv2D(3),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(5, activation="softmax"),
    ])
    tf.saved_model.save(model, folder)
    serve(folder, {"input_1": np.random.default_rng(0).normal(size=(3, 8, 8, 1)).astype(np.float32)})


class Control(tf.Module):
    """Variables that reach If and While bodies as resources, two outputs, an embedding read by gather."""

    def __init__(self):
        self.w = tf.Variable(np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4), name="w")
        self.table = tf.Variable(np.arange(10, dtype=np.float32).reshape(5, 2), name="table")

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, "x"), tf.TensorSpec([], tf.int32, "n"),
                                  tf.TensorSpec([None], tf.int32, "ids")])
    def __call__(self, x, n, ids):
        y = tf.cond(tf.reduce_sum(x) > 0, lambda: x @ self.w, lambda: tf.nn.relu(x) @ (self.w + 1.0))
        i = tf.constant(0)
        _, y = tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, tf.tanh(y @ tf.transpose(self.w) @ self.w)),
                             [i, y], shape_invariants=[i.shape, tf.TensorShape([None, 4])])
        values, indices = tf.math.top_k(y, 2)
        return {"y": y, "rows": tf.gather(self.table, ids), "top": values, "where": indices}


def control(folder):
    module = Control()
    tf.saved_model.save(module, folder, signatures=module.__call__)
    serve(folder, {"x": np.array([[1, 2, 3], [0.5, -1, 2]], np.float32), "n": np.int32(3),
                   "ids": np.array([4, 0, 2], np.int32)})


def keras_lstm(folder):
    tf.keras.utils.set_random_seed(2)
    model = tf.keras.Sequential([tf.keras.layers.Input((6, 3)), tf.keras.layers.LSTM(4), tf.keras.layers.Dense(2)])
    tf.saved_model.save(model, folder)
    serve(folder, {"input_2": np.random.default_rng(0).normal(size=(2, 6, 3)).astype(np.float32)})


def tf1_graph(resource):
    """A TF1 graph with partitioned variables and, for resource = False, reference variables."""
    graph = tf1.Graph()
    with graph.as_default():
        x = tf1.placeholder(tf.float32, [None, 6], "x")
        with tf1.variable_scope("m", use_resource=resource, partitioner=tf1.fixed_size_partitioner(3)):
            w = tf1.get_variable("w", [6, 4], initializer=tf1.random_normal_initializer(seed=1))
        b = tf1.get_variable("b", [4], use_resource=resource, initializer=tf1.ones_initializer())
        y = tf1.nn.relu(tf1.matmul(x, tf1.convert_to_tensor(w)) + b, name="y")
        big = tf1.cond(tf1.reduce_sum(y) > 1.0, lambda: y * 2.0, lambda: b + y)
        z = tf1.identity(big, name="z")
    return graph, x, z


def tf1_model(folder, resource):
    graph, x, z = tf1_graph(resource)
    with tf1.Session(graph=graph) as session, graph.as_default():
        session.run(tf1.global_variables_initializer())
        feed = np.random.default_rng(3).normal(size=(2, 6)).astype(np.float32)
        tf1.saved_model.simple_save(session, folder, {"x": x}, {"z": z})
        tf1.train.Saver().save(session, os.path.join(folder, "model.ckpt"))
        save_case(folder, {"x": feed}, {"z": session.run(z, {x: feed})})


def constants(folder):
    """A frozen graph whose constants take every encoding of a tensor, binary and as text."""
    graph = tf1.Graph()
    values = {
        "f32": np.array([[1.5, -2], [3, np.inf]], np.float32), "f64": np.array([1e300, -0.0]),
        "f16": np.array([1, 2.5, -3], np.float16), "i8": np.array([-1, 2], np.int8),
        "u8": np.array([200, 1], np.uint8), "i16": np.array([-300, 3], np.int16), "i32": np.array([7], np.int32),
        "i64": np.array(-(2**40), np.int64), "u32": np.array([2**32 - 1], np.uint32),
        "u64": np.array([2**64 - 1], np.uint64), "bool": np.array([True, False, True]),
        "splat": np.full((3, 5), 0.25, np.float32), "empty": np.zeros((0, 3), np.float32),
    }
    with graph.as_default():
        for name, value in values.items():
            tf1.constant(value, name=name)
        tf1.constant(["a", "bc", ""], name="text")
        tf1.constant(np.array([1, -2], np.float32), dtype=tf.bfloat16, name="bf16")
    graph_def = graph.as_graph_def()
    for node in graph_def.node:  # typed fields instead of bytes, as old writers made them
        if node.name == "splat":
            node.attr["value"].tensor.ClearField("tensor_content")
            node.attr["value"].tensor.float_val[:] = [0.25]
        if node.name == "i16":
            node.attr["value"].tensor.ClearField("tensor_content")
            node.attr["value"].tensor.int_val[:] = [-300, 3]
    os.makedirs(folder, exist_ok=True)
    tf1.train.write_graph(graph_def, folder, "graph.pb", as_text=False)
    tf1.train.write_graph(graph_def, folder, "graph.pbtxt", as_text=True)


MODELS = {
    "keras_cnn": keras_cnn, "control": control, "keras_lstm": keras_lstm, "constants": constants,
    "tf1_ref": lambda folder: tf1_model(folder, False), "tf1_resource": lambda folder: tf1_model(folder, True),
}


def main():
    root = sys.argv[1]
    for name in sys.argv[2:] or MODELS:
        folder = os.path.join(root, name)
        if os.path.exists(os.path.join(folder, "done")):
            continue
        MODELS[name](folder)
        open(os.path.join(folder, "done"), "w").close()
        print(name, flush=True)


if __name__ == "__main__":
    main()
