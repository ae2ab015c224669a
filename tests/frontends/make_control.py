"""Makes graphs with TensorFlow 1's control flow (Switch, Merge, Enter, ...), frozen and as SavedModels, and their answers.

    python make_control.py FOLDER
"""
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
import numpy as np
import tensorflow as tf

from make_models import save_case

tf1 = tf.compat.v1
tf1.disable_v2_behavior()
R = np.random.default_rng(5)


def f(*shape):
    return R.normal(size=shape).astype(np.float32)


def variable(name, *shape):
    return tf1.get_variable(name, initializer=f(*shape) * 0.5)


def simple_loop(x):
    return tf1.while_loop(lambda i, y: i < 4, lambda i, y: (i + 1, tf.tanh(y * 1.5 + tf.cast(i, tf.float32))), [0, x])[1]


def loop_with_invariants(x):
    w = variable("w", 3, 3)
    scale = tf.reduce_mean(x)
    return tf1.while_loop(lambda i, y, z: tf.logical_and(i < 5, tf.reduce_sum(tf.abs(y)) > 0.1),
                          lambda i, y, z: (i + 1, tf.tanh(tf.matmul(y, w)) * scale, z), [0, x, x + 1.0])[1:]


def nested_loops(x):
    def outer(i, y):
        inner = tf1.while_loop(lambda j, z: j < i, lambda j, z: (j + 1, z * 0.5 + y), [0, y])
        return i + 1, inner[1] + 1.0

    return tf1.while_loop(lambda i, y: i < 4, outer, [0, x])[1]


def condition(x):
    return tf1.cond(tf.reduce_sum(x) > 0, lambda: x * 2.0, lambda: tf.nn.relu(x) - 1.0)


def condition_of_constants(x):
    return tf1.cond(tf.reduce_sum(x) > 0, lambda: tf.constant([1.0, 2.0]), lambda: tf.constant([3.0, 4.0])) + 0.0


def condition_with_outputs(x):
    w = variable("w", 3, 3)

    def yes():
        y = tf.matmul(x, w)
        return y, tf.reduce_max(y), x

    return tf1.cond(tf.reduce_sum(x) > 0, yes, lambda: (x, tf.constant(2.5), x * 3.0))


def nested_conditions(x):
    total = tf.reduce_sum(x)
    inner = lambda: tf1.cond(total > 3.0, lambda: x - total, lambda: x * total)  # noqa: E731
    return tf1.cond(total > 0, inner, lambda: tf1.cond(total < -3.0, lambda: tf.exp(x), lambda: x + 1.0))


def conditions_in_a_row(x):
    training = tf.reduce_sum(x) > 0
    y = tf1.cond(training, lambda: x + 1.0, lambda: x - 1.0)
    z = tf1.cond(training, lambda: y * 2.0, lambda: y * 3.0)
    return tf1.cond(training, lambda: y + z, lambda: z)


def loop_with_condition(x):
    return tf1.while_loop(lambda i, y: i < 6,
                          lambda i, y: (i + 1, tf1.cond(tf.equal(i % 2, 0), lambda: y + 1.0, lambda: tf.sin(y) * x)), [0, x])[1]


def condition_with_loop(x):
    return tf1.cond(tf.reduce_sum(x) > 0, lambda: simple_loop(x), lambda: x)


def case(x):
    total = tf.reduce_sum(x)
    return tf1.case([(total > 3.0, lambda: x * 2.0), (total > 0.0, lambda: x * 3.0)], default=lambda: -x, exclusive=False)


def tensor_arrays(x):
    rows = tf1.TensorArray(tf.float32, tf.shape(x)[0]).unstack(x)
    out = tf1.TensorArray(tf.float32, tf.shape(x)[0])

    def body(i, state, out):
        state = tf.tanh(state + rows.read(i))
        return i + 1, state, out.write(i, state * 2.0)

    _, state, out = tf1.while_loop(lambda i, *_: i < tf.shape(x)[0], body, [0, tf.zeros([3]), out])
    return out.stack(), state


def rnn(cell, x):
    outputs, state = tf1.nn.dynamic_rnn(cell, x, sequence_length=[4, 2], dtype=tf.float32)
    return [outputs, *tf.nest.flatten(state)]


def bidirectional(x):
    cells = [tf1.nn.rnn_cell.GRUCell(3), tf1.nn.rnn_cell.LSTMCell(3)]
    outputs, _ = tf1.nn.bidirectional_dynamic_rnn(*cells, x, sequence_length=[4, 2], dtype=tf.float32)
    return tf.concat(outputs, -1)


def beam_search(x):
    """Width 2 over 7 words, 4 steps: the state is a matrix product of the word's row."""
    table, w = variable("table", 7, 5), variable("w", 5, 5)
    words = tf1.TensorArray(tf.int32, 4)
    parents = tf1.TensorArray(tf.int32, 4)

    def step(i, state, scores, words, parents):
        logits = tf.nn.log_softmax(tf.matmul(tf.tanh(state), table, transpose_b=True))
        every = tf.reshape(scores[:, None] + logits, [-1])
        scores, at = tf.nn.top_k(every, 2)
        parent, word = at // 7, at % 7
        state = tf.matmul(tf.gather(state, parent), w) + tf.gather(table, word)
        return i + 1, state, scores, words.write(i, word), parents.write(i, parent)

    start = tf.concat([x, x * 0.5], 0)
    _, _, scores, words, parents = tf1.while_loop(lambda i, *_: i < 4, step, [0, start, tf.zeros([2]), words, parents])
    return scores, words.stack(), parents.stack()


def map_fn(x):
    return tf1.map_fn(lambda row: tf.nn.softmax(row) * tf.reduce_max(row), x)


def scan(x):
    return tf1.scan(lambda a, row: a * 0.5 + row, x)


X = f(2, 3)
TIMES = f(2, 4, 3)
CASES = {
    "simple_loop": (simple_loop, [X]), "loop_with_invariants": (loop_with_invariants, [X]), "nested_loops": (nested_loops, [X]),
    "condition": (condition, [X]), "condition_false": (condition, [-np.abs(X)]), "condition_of_constants": (condition_of_constants, [X]),
    "condition_with_outputs": (condition_with_outputs, [np.abs(X)]), "condition_with_outputs_false": (condition_with_outputs, [-np.abs(X)]),
    "nested_conditions": (nested_conditions, [np.abs(X) + 1]), "nested_conditions_false": (nested_conditions, [-np.abs(X) - 1]),
    "conditions_in_a_row": (conditions_in_a_row, [X]), "loop_with_condition": (loop_with_condition, [X]),
    "condition_with_loop": (condition_with_loop, [np.abs(X)]), "case": (case, [np.abs(X) / 10]), "tensor_arrays": (tensor_arrays, [X]),
    "basic_lstm": (lambda x: rnn(tf1.nn.rnn_cell.BasicLSTMCell(5), x), [TIMES]),
    "lstm_peepholes": (lambda x: rnn(tf1.nn.rnn_cell.LSTMCell(5, use_peepholes=True, num_proj=2), x), [TIMES]),
    "gru": (lambda x: rnn(tf1.nn.rnn_cell.GRUCell(5), x), [TIMES]),
    "stacked": (lambda x: rnn(tf1.nn.rnn_cell.MultiRNNCell([tf1.nn.rnn_cell.BasicRNNCell(4), tf1.nn.rnn_cell.GRUCell(3)]), x), [TIMES]),
    "bidirectional": (bidirectional, [TIMES]), "beam_search": (beam_search, [f(1, 5)]), "map_fn": (map_fn, [X]), "scan": (scan, [X]),
}  # fmt: skip


def make(folder, function, arrays, references):
    with tf1.Graph().as_default() as graph, tf1.Session(graph=graph) as session:
        if references:
            tf1.disable_resource_variables()
        else:
            tf1.enable_resource_variables()
        inputs = [tf1.placeholder(a.dtype, (None,) + a.shape[1:], f"x{n}") for n, a in enumerate(arrays)]
        results = tf.nest.flatten(function(*inputs))
        outputs = {f"y{n}": tf.identity(result, f"y{n}") for n, result in enumerate(results)}
        session.run(tf1.global_variables_initializer())
        answers = session.run(outputs, dict(zip(inputs, arrays)))
        tf1.saved_model.simple_save(session, folder, {f"x{n}": x for n, x in enumerate(inputs)}, outputs)
        frozen = tf1.graph_util.convert_variables_to_constants(session, graph.as_graph_def(), list(outputs))
        tf1.train.write_graph(frozen, folder, "graph.pb", as_text=False)
    save_case(folder, {f"x{n}": a for n, a in enumerate(arrays)}, answers)


def main():
    root = sys.argv[1]
    if os.path.exists(os.path.join(root, "done")):
        return
    for name, (function, arrays) in CASES.items():
        for kind in ("references", "resources"):
            make(os.path.join(root, f"{name}.{kind}"), function, arrays, kind == "references")
    open(os.path.join(root, "done"), "w").close()


main()
