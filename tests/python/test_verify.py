"""`cairn verify` and `cairn diff` on what TensorFlow people have: loops, several results, other names, tiny spreads, made inputs."""

import json
import re

import numpy as np
import pytest


def graph_of(build, path, mutate=None):
    """Writes what `build` adds to an empty TensorFlow 1 graph; `mutate` changes its nodes."""
    import tensorflow as tf

    tf1 = tf.compat.v1
    graph = tf.Graph()
    was = tf1.control_flow_v2_enabled()
    tf1.disable_control_flow_v2()
    try:
        with graph.as_default():
            build(tf, tf1)
    finally:
        if was:
            tf1.enable_control_flow_v2()
    definition = graph.as_graph_def()
    for node in definition.node:
        if mutate and node.name in mutate:
            node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(np.float32(mutate[node.name])))
    path.write_bytes(definition.SerializeToString())


def nested_loops(tf, tf1):
    x = tf1.placeholder(tf.float32, [2, 3], name="x")

    def body(i, a, array):
        _, b = tf1.while_loop(lambda j, b: j < 2, lambda j, b: (j + 1, tf.tanh(b * 1.1 + tf.constant(0.1))), [tf.constant(0), a])
        c = tf1.cond(tf.reduce_sum(b) > 0, lambda: b * 2.0 + 1.0, lambda: b - tf.constant(3.0))
        return i + 1, c, array.write(i, c)

    start = [tf.constant(0), x, tf.TensorArray(tf.float32, size=4)]
    _, last, array = tf1.while_loop(lambda i, a, array: i < 4, body, start)
    chosen = tf1.cond(x[0, 0] > 0, lambda: x * 2.0, lambda: x + tf.constant(1.0))
    y = tf.add(tf.reduce_sum(array.stack(), 0), last * chosen, name="y")
    tf.identity(tf.split(y, 3, axis=1, name="sp")[2] * 2.0, name="z")


def test_nested_loops_of_tensorflow_1_agree_and_their_faults_are_named(command, tmp_path):
    graph_of(nested_loops, tmp_path / "good.pb")
    graph_of(nested_loops, tmp_path / "bad.pb", {"while/while/mul/y": 1.2})
    done = command("cairn", "diff", "good.pb", "good.pb", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert sum("while/while/" in row["name"] for row in rows) > 10  # values of each turn
    done = command("cairn", "diff", "bad.pb", "good.pb", "--json")
    assert done.returncode == 2, done.stderr
    (culprit,) = json.loads(done.stdout)["culprits"]
    assert any("while/while/mul" in source for source in culprit["sources"])


def test_values_inside_functional_loops_are_compared(command, tmp_path):
    import tensorflow as tf

    class Net(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([2, 3], tf.float32, name="x")])
        def __call__(self, x):
            for _ in tf.range(3):
                x = tf.tanh(x * 1.5)
            if tf.reduce_sum(x) > 0:
                x = x + 2.0
            return {"y": x, "text": tf.constant(["a", "b"])}

    net = Net()
    tf.saved_model.save(net, str(tmp_path / "net"), signatures=net.__call__)
    done = command("cairn", "diff", "net", "net", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert any(row["op"] == "Tanh" for row in found["rows"])
    assert command("cairn", "verify", "net", "--against", "net").returncode == 0


@pytest.fixture(scope="module")
def digits(models, tmp_path_factory):
    """The same net as .om, frozen graph and SavedModel, which call inputs and outputs by other names."""
    import subprocess

    from conftest import BIN

    om = tmp_path_factory.mktemp("digits") / "digits"
    frozen = models("digits").frozen
    subprocess.run([BIN / "atc", f"--model={frozen}", "--framework=3", f"--output={om}", "--input_shape=x:1,8,8,1",
                    "--soc_version=Ascend310"], check=True, capture_output=True)
    return {"om": f"{om}.om", "frozen": frozen, "saved": models("digits").saved_model}


@pytest.mark.parametrize("mine, golden", [("om", "frozen"), ("om", "saved"), ("om", "om"), ("saved", "om"), ("frozen", "saved")])
def test_models_whose_ports_have_other_names_are_paired(mine, golden, digits, command):
    done = command("cairn", "diff", digits[mine], digits[golden])
    assert done.returncode == 0 and "no difference" in done.stdout, done.stdout + done.stderr
    if golden != "om":
        assert command("cairn", "verify", digits[mine], "--against", digits[golden]).returncode == 0


def test_what_belongs_to_no_framework_is_told(digits, command):
    done = command("cairn", "verify", digits["om"], "--against", digits["om"])
    assert done.returncode == 1 and "belongs to no framework; cairn diff compares two models" in done.stderr


def cancelling(tf, tf1):
    x = tf1.placeholder(tf.float32, [None, 8], name="x")
    big = (x + 1000.0) * tf.constant(np.linspace(1, 1.0001, 8).astype("f"))
    tf.subtract(tf.matmul(big, tf.constant(np.eye(8, dtype="f"))), tf.reduce_mean(big, 1, keepdims=True) + x, name="y")


def test_rounding_of_large_operands_is_no_difference_and_a_changed_weight_is_one(command, tmp_path):
    graph_of(cancelling, tmp_path / "good.pb")
    assert command("cairn", "verify", "good.pb", "--against", "good.pb", "--tolerance", "1e-9").returncode == 0
    graph_of(cancelling, tmp_path / "bad.pb", {"add/y": 2000.0})
    done = command("cairn", "verify", "bad.pb", "--against", "good.pb")
    assert done.returncode == 2 and "DIFFERS" in done.stdout


def small_net(tf, tf1):
    x = tf1.placeholder(tf.float32, [None, 16], name="x")
    state = np.random.default_rng(0)
    w = tf.constant(state.normal(size=(16, 16)).astype("f"), name="w")
    v = tf.constant(state.normal(size=(16, 4)).astype("f"), name="v")
    tf.nn.softmax(tf.matmul(tf.nn.relu(tf.matmul(x, w)), v) * tf.constant(1.0, name="scale"), name="y")


@pytest.mark.parametrize("change", [1.001, 0.999, -1.0])
def test_a_factor_of_a_thousandth_is_told(change, command, tmp_path):
    graph_of(small_net, tmp_path / "good.pb")
    graph_of(small_net, tmp_path / "bad.pb", {"scale": change})
    assert command("cairn", "verify", "good.pb", "--against", "good.pb").returncode == 0
    assert command("cairn", "verify", "bad.pb", "--against", "good.pb").returncode == 2


def padded_texts(mask):
    """Text classifiers, untrained, whose outputs spread little; `mask` hides padding by large negative numbers."""
    import tensorflow as tf

    layers = tf.keras.layers
    tf.keras.utils.set_random_seed(3)
    ids = tf.keras.Input((20,), dtype="int32")
    words = layers.Embedding(100, 16, mask_zero=True, name="words")(ids)
    hidden = 1.0 - tf.cast(tf.not_equal(ids, 0), tf.float32)[:, :, None]
    if mask == "attention":
        words = layers.GlobalAveragePooling1D()(layers.Attention()([words, words]))
    elif mask == "heads":
        words = layers.GlobalAveragePooling1D()(layers.MultiHeadAttention(2, 8)(words, words))
    elif mask == "maximum":
        words = tf.reduce_max(words + hidden * -1e9, 1)
    elif mask == "softmax":
        words = tf.reduce_sum(tf.nn.softmax(layers.Dense(1)(words) + hidden * -10000.0, 1) * words, 1)
    else:
        words = layers.GlobalAveragePooling1D()(layers.GRU(16, return_sequences=True)(words))
    return tf.keras.Model(ids, layers.Dense(1, activation="sigmoid")(words))


@pytest.mark.parametrize("mask", ["attention", "heads", "maximum", "softmax", "layers"])
def test_masks_of_padding_excuse_no_difference(mask, command, tmp_path):
    net = padded_texts(mask)
    net.save(tmp_path / "good.keras")
    words = net.get_layer("words")
    words.set_weights([words.get_weights()[0] * np.float32(1.01)])
    net.save(tmp_path / "bad.keras")
    assert command("cairn", "verify", "good.keras", "--against", "good.keras", "--tolerance", "1e-9").returncode == 0
    done = command("cairn", "verify", "bad.keras", "--against", "good.keras", "--json")
    (output,) = json.loads(done.stdout)["outputs"]
    assert done.returncode == 2 and output["rounding"] < 1e-5, output


def demanding(tf, tf1):
    ids = tf1.placeholder(tf.int32, [None, None], name="ids")
    image = tf1.placeholder(tf.uint8, [None, 16, 16, 3], name="image")
    mask = tf1.placeholder(tf.bool, [None, 16], name="mask")
    positive = tf1.placeholder(tf.float32, [None, 5], name="positive")
    table = tf.constant(np.arange(37 * 4).reshape(37, 4).astype("f"))
    tf.reduce_sum(tf.gather(table, ids), 1, name="looked_up")
    tf.divide(tf.cast(image, tf.float32), 255.0, name="scaled")
    tf.where(mask, tf.ones_like(mask, tf.float32), tf.zeros_like(mask, tf.float32), name="masked")
    tf.sqrt(tf.math.log(positive + 0.0) + 9.0, name="rooted")
    tf.nn.top_k(positive, tf1.placeholder(tf.int32, [], name="k"), name="best")
    places = tf1.placeholder(tf.int64, [3, 2], name="places")
    moved = tf.raw_ops.SparseReshape(input_indices=places, input_shape=np.int64([4, 3]), new_shape=np.int64([2, 6]))
    tf.identity(moved[0], name="moved")


def test_made_inputs_fit_what_the_graph_does_first(command, tmp_path):
    graph_of(demanding, tmp_path / "net.pb")
    done = command("cairn", "run", "net.pb", "-o", "out.npz")
    assert done.returncode == 0, done.stderr
    made = dict(np.load(tmp_path / "out.npz"))
    assert made["looked_up"].shape[0] > 1 and np.unique(made["looked_up"]).size > 4
    assert made["scaled"].max() > 0.9 and made["scaled"].min() < 0.1
    assert set(np.unique(made["masked"])) == {0, 1}
    assert np.isfinite(made["rooted"]).all() and made["moved"].shape == (3, 2)
    done = command("cairn", "verify", "net.pb", "--against", "net.pb", "--json")
    assert done.returncode == 0 and all(each["depends_on_inputs"] for each in json.loads(done.stdout)["outputs"])


def test_a_stateful_keras_file_begins_every_run_with_its_first_states(command, tmp_path):
    import tensorflow as tf

    layers = [tf.keras.layers.LSTM(4, stateful=True, batch_input_shape=(2, 3, 5)), tf.keras.layers.Dense(1)]
    tf.keras.Sequential(layers).save(tmp_path / "stateful.h5")
    assert command("cairn", "convert", "stateful.h5", "-o", "stateful.om").returncode == 0
    for words in (["verify", "stateful.om", "--against", "stateful.h5"], ["diff", "stateful.om", "stateful.h5"]):
        done = command("cairn", *words)
        assert done.returncode == 0, done.stdout + done.stderr


def test_random_numbers_begin_anew_in_every_run(command, tmp_path):
    def build(tf, tf1):
        x = tf1.placeholder(tf.float32, [4, 4], name="x")
        tf.identity(x + tf.random.uniform([4, 4], seed=3), name="noisy")

    graph_of(build, tmp_path / "frozen.pb")
    done = command("cairn", "verify", "frozen.pb", "--against", "frozen.pb")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_difference_behind_random_numbers_is_judged(command, tmp_path):
    def build(tf, tf1, scale=1.0):
        x = tf1.placeholder(tf.float32, [4, 4], name="x")
        tf.identity(x * scale + tf.random.uniform([4, 4], seed=3), name="noisy")

    graph_of(build, tmp_path / "frozen.pb")
    graph_of(lambda *modules: build(*modules, scale=1.5), tmp_path / "other.pb")
    done = command("cairn", "verify", "frozen.pb", "--against", "other.pb")
    assert done.returncode == 2 and "DIFFERS" in done.stdout, done.stdout + done.stderr


def test_cells_with_dropout_and_masks_are_run_by_their_framework(command, tmp_path):
    import tensorflow as tf

    layers = tf.keras.layers
    cell = layers.RNN(layers.SimpleRNNCell(4, dropout=0.2), go_backwards=True)
    tf.keras.Sequential([tf.keras.Input((6,)), layers.Embedding(9, 4, mask_zero=True), cell]).save(tmp_path / "net.h5")
    done = command("cairn", "verify", "net.h5", "--against", "net.h5")
    assert done.returncode == 0, done.stdout + done.stderr


def test_inputs_and_outputs_of_a_keras_file_may_have_any_names_and_order(command, tmp_path):
    import tensorflow as tf

    layers = tf.keras.layers
    ids, features = tf.keras.Input((5,), name="z-ids", dtype="int32"), tf.keras.Input((3,), name="a.features")
    text = layers.GRU(4)(layers.Embedding(9, 4, mask_zero=True)(ids))
    both = layers.Concatenate()([text, features])
    outputs = [layers.Dense(2, name="second")(both), layers.Dense(3, name="first", activation="softmax")(both)]
    tf.keras.Model([ids, features], outputs).save(tmp_path / "net.keras")
    found = json.loads(command("cairn", "verify", "net.keras", "--against", "net.keras", "--json").stdout)
    assert found["verified"] and [output["depends_on_inputs"] for output in found["outputs"]] == [True, True], found
    done = command("cairn", "diff", "net.keras", "net.keras", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert any(row["op"] == "MatMul" or row["op"] == "Dense" for row in json.loads(done.stdout)["rows"])


def test_a_failure_of_the_framework_is_one_sentence(command, tmp_path):
    def build(batch):
        def net(tf, tf1):
            x = tf1.placeholder(tf.float32, [None, 4], name="x")
            tf.raw_ops.MatMul(a=x, b=tf1.placeholder_with_default(np.ones((batch, 2), "f"), [None, 2], name="w"), name="y")

        return net

    graph_of(build(4), tmp_path / "good.pb")
    graph_of(build(5), tmp_path / "bad.pb")
    done = command("cairn", "verify", "good.pb", "--against", "bad.pb")
    assert done.returncode == 1 and len(done.stderr.strip().splitlines()) <= 2
    assert re.search(r"could not run it: .*y.*(incompatible|size)", done.stderr), done.stderr


def test_signs_of_vectors_are_free_and_their_sizes_are_not(command, tmp_path):
    def factors(tf, tf1, factor=1.0):
        x = tf1.placeholder(tf.float32, [5, 3], name="x")
        tf.raw_ops.Svd(input=x * factor, name="d")  # the values grow, the vectors stay
        tf.raw_ops.SelfAdjointEigV2(input=tf.matmul(x, x, transpose_a=True), name="e")

    graph_of(factors, tmp_path / "net.pb")
    done = command("cairn", "verify", "net.pb", "--against", "net.pb")
    assert done.returncode == 0, done.stdout + done.stderr
    graph_of(lambda tf, tf1: factors(tf, tf1, 1.001), tmp_path / "other.pb")
    done = command("cairn", "verify", "other.pb", "--against", "net.pb")
    assert done.returncode == 2 and re.search(r"d +DIFFERS", done.stdout) and re.search(r"d:1 +equal", done.stdout), done.stdout


def test_a_graph_that_ends_in_singular_values_has_no_vectors_that_it_does_not_compute(command, tmp_path):
    """TensorFlow's shape rule makes them empty; its kernel leaves a number there that nothing was written to."""

    def build(tf, tf1):
        x = tf1.placeholder(tf.float32, [2, 3, 5], name="x")
        results = [*tf.raw_ops.Svd(input=x, compute_uv=False, name="d"), *tf.raw_ops.SelfAdjointEigV2(input=x[..., :3], compute_v=False, name="e")]
        assert [list(result.shape) for result in results] == [[2, 3], [0], [0], [2, 3], [0]]

    graph_of(build, tmp_path / "m.pb")
    shown = json.loads(command("cairn", "show", "m.pb", "--json").stdout)
    assert [(port["name"], port["type"]) for port in shown["outputs"]] == [("d", "f32[2, 3]"), ("e", "f32[2, 3]")]
    assert command("cairn", "convert", "m.pb", "-o", "m.om").returncode == 0
    done = command("cairn", "verify", "m.om", "--against", "m.pb")
    assert done.returncode == 0, done.stdout + done.stderr
    shown = json.loads(command("cairn", "show", "m.pb", "--json", "--out_nodes", "d:1;e:1").stdout)
    assert [port["type"] for port in shown["outputs"]] == ["f32[0]", "f32[0]"]
