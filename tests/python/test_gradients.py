"""Gradients of models from Python: of text modules by hand, of TensorFlow models against TensorFlow's tape."""

import numpy
import pytest
import tensorflow as tf

import cairn

CUBE = """module @m {
  func @main(%x: f64[]) -> (%y: f64[]) {
    %s = mul %x, %x : f64[]
    %y = mul %s, %x : f64[]
    return %y
  }
}
"""
SCALED = """module @m {
  func @main(%x: f32[?n, 2]) -> (%y: f32[?n, 2]) {
    %w = constant {value = f32[2] (2.0, 3.0)} : f32[2]
    %a = mul %x, %w : f32[?n, 2]
    %y = mul %a, %x : f32[?n, 2]
    return %y
  }
}
"""


@pytest.fixture
def written(tmp_path):
    def write(text):
        path = tmp_path / "model.txt"
        path.write_text(text)
        return path

    return write


def test_grad_of_grad_of_grad(written):
    first = cairn.grad(written(CUBE), value=True)
    value, gradients = first({"x": 2.0})
    assert value == 8 and gradients["x"] == 12
    second = cairn.grad(first, result="gradient/x")
    assert second({"x": 2.0})["x"] == 12
    assert cairn.grad(second, "x")({"x": 2.0})["x"] == 6


def test_vjp_and_jvp_by_inputs_and_weights(written):
    x, dy = numpy.float32([[1, 2], [3, 4], [5, 6]]), numpy.float32([[1, -1], [0.5, 0], [0, 2]])
    w = numpy.float32([2, 3])
    results, gradients = cairn.vjp(written(SCALED), weights=True)({"x": x}, {"y": dy})
    numpy.testing.assert_allclose(results["y"], x * x * w)
    numpy.testing.assert_allclose(gradients["w"], (x * x * dy).sum(0))
    results, gradients = cairn.vjp(written(SCALED), ["x", "w"])({"x": x}, {"y": dy})
    numpy.testing.assert_allclose(gradients["x"], 2 * x * w * dy)
    numpy.testing.assert_allclose(gradients["w"], (x * x * dy).sum(0))
    results, changes = cairn.jvp(written(SCALED), ["x"])({"x": x}, {"x": dy})
    numpy.testing.assert_allclose(results["y"], x * x * w)
    numpy.testing.assert_allclose(changes["y"], 2 * x * w * dy)


def test_weights_as_inputs(written):
    slope = cairn.vjp(written(SCALED), ["w"], weights_as_inputs=True)
    assert [port.name for port in slope.model.inputs] == ["x", "w", "gradient/y"]
    x, w = numpy.float32([[1, 2]]), numpy.float32([5, 7])
    results, gradients = slope({"x": x, "w": w}, {"y": numpy.ones_like(x)})
    numpy.testing.assert_allclose(results["y"], x * x * w)
    numpy.testing.assert_allclose(gradients["w"], (x * x)[0])


def test_errors_name_what_is_wrong(written):
    with pytest.raises(cairn.Error, match="u: no float constant of the model has this name"):
        cairn.vjp(written(SCALED), ["u"])
    with pytest.raises(cairn.Error, match=r"y: the result is f32\[\?n, 2\], expected one float, as a loss is"):
        cairn.grad(written(SCALED))
    with pytest.raises(cairn.Error, match="z: no result has this name"):
        cairn.grad(written(CUBE), result="z")


class Network(tf.Module):
    """A dense layer in a loop whose turns depend on the input, and a branch."""

    def __init__(self):
        self.w = tf.Variable(numpy.random.default_rng(0).normal(size=(3, 3)).astype("float32"), name="w")
        self.b = tf.Variable([0.1, -0.2, 0.3], name="b")

    @tf.function(input_signature=[tf.TensorSpec([2, 3]), tf.TensorSpec([], tf.int32)])
    def __call__(self, x, turns):
        states = tf.TensorArray(tf.float32, 0, dynamic_size=True, element_shape=[2, 3])
        for i in tf.range(turns):
            x = tf.tanh(x @ self.w + self.b)
            if tf.reduce_sum(x) > 0:
                x = x * x
            states = states.write(i, x)
        return {"loss": tf.reduce_mean(states.stack() ** 2)}


@pytest.mark.parametrize("turns", [1, 4])
def test_a_tensorflow_loop(tmp_path, turns):
    network = Network()
    tf.saved_model.save(network, str(tmp_path / "model"))
    x = numpy.float32([[0.5, -1, 2], [1, 0.25, -0.5]])
    with tf.GradientTape() as tape:
        given = tf.constant(x)
        tape.watch(given)
        loss = network(given, turns)["loss"]
    expected = [each.numpy() for each in tape.gradient(loss, [given, network.w, network.b])]
    value, gradients = cairn.grad(tmp_path / "model", ["x"], weights=True, value=True)({"x": x, "turns": numpy.int32(turns)})
    numpy.testing.assert_allclose(value, loss.numpy(), rtol=1e-5)
    for name, gradient in zip(["x", "w", "b"], expected, strict=True):
        found = next(value for key, value in gradients.items() if key.split("/")[-1].split(":")[0] == name)
        numpy.testing.assert_allclose(found, gradient, rtol=1e-4, atol=1e-6)
