"""No step of ordinary networks falls on the reference kernels: `cairn why` of a convolutional network and of a transformer."""

import pytest

HIDDEN, HEADS, LENGTH = 64, 4, 16


def freeze(function, *types):
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    import tensorflow as tf

    concrete = tf.function(function).get_concrete_function(*types)
    return convert_variables_to_constants_v2(concrete).graph.as_graph_def().SerializeToString()


def mobilenet_v3():
    """Squeeze and excitation, hard swish, depthwise convolutions."""
    import tensorflow as tf

    network = tf.keras.applications.MobileNetV3Small(weights=None, input_shape=(64, 64, 3), classes=10)
    image = tf.TensorSpec((1, 64, 64, 3), tf.float32, name="x")
    return freeze(lambda x: tf.identity(network(x, training=False), "y"), image)


def transformer():
    """An encoder layer as BERT has it, with Keras's normalisation, a padding mask and a classifier."""
    import tensorflow as tf

    weights = {name: tf.Variable(tf.random.normal((HIDDEN, HIDDEN), stddev=0.1)) for name in "qkvo"}
    table, normalise = tf.Variable(tf.random.normal((100, HIDDEN))), tf.keras.layers.LayerNormalization()

    def heads(x, name):
        split = tf.reshape(tf.einsum("bsh,hd->bsd", x, weights[name]), (1, LENGTH, HEADS, HIDDEN // HEADS))
        return tf.transpose(split, (0, 2, 1, 3))

    def encode(ids, mask):
        x = normalise(tf.gather(table, ids))
        hidden = (1.0 - tf.cast(mask, tf.float32))[:, None, None, :] * -1e9
        scores = tf.matmul(heads(x, "q"), heads(x, "k"), transpose_b=True) / 4.0 + hidden
        read = tf.transpose(tf.matmul(tf.nn.softmax(scores), heads(x, "v")), (0, 2, 1, 3))
        x = tf.nn.gelu(tf.tensordot(tf.reshape(read, (1, LENGTH, HIDDEN)), weights["o"], 1) + x)
        scores = tf.nn.log_softmax(tf.tanh(x[:, 0]))
        return tf.identity(scores, "scores"), tf.identity(tf.argmax(x, -1), "classes"), tf.identity(tf.cumsum(x, 1), "sums")

    return freeze(encode, *(tf.TensorSpec((1, LENGTH), tf.int32, name=name) for name in ("ids", "mask")))


@pytest.mark.parametrize("make, kernels", [(mobilenet_v3, ("depthwise", "tile")), (transformer, ("attention", "gather", "tile"))])
def test_every_step_has_a_kernel_of_the_cpu(command, tmp_path, make, kernels):
    (tmp_path / "network.pb").write_bytes(make())
    answer = command("cairn", "why", "network.pb")
    assert answer.returncode == 0, answer.stderr
    assert "reference/" not in answer.stdout, [line for line in answer.stdout.splitlines() if "reference/" in line]
    for kernel in kernels:
        assert f"cpu/{kernel}" in answer.stdout
