"""Makes the test models with stock TensorFlow (run in .venv): make_models.py FOLDER.

Each model gets FOLDER/name/ with saved_model/, frozen.pb, info.json, and case by case (0, 1, ..) inputs-0.npz and
expected-0.npz, what TensorFlow computes from these inputs. Outputs must depend on the inputs, or equality would prove nothing: the spread over the batch of
every layer's output, and of the model's, is brought to 0.5 .. 2 and checked here."""

import json
import os
import shutil
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2  # noqa: E402

BATCH = 8
SPREAD = (0.5, 2.0)
layers = tf.keras.layers


def spread(value):
    """Root mean square over the elements of the standard deviation over the batch."""
    return float(np.sqrt(np.mean(np.var(np.asarray(value, np.float64), axis=0))))


def images(size, channels, seed):
    """Smooth colour fields with some noise: made images that differ as wholes, not by noise alone."""
    random = np.random.default_rng(seed)
    coarse = 0.1 * random.normal(size=(BATCH, 3, 3, channels)) + 1.5 * random.normal(size=(BATCH, 1, 1, channels))
    fine = tf.image.resize(coarse.astype(np.float32), (size, size), "bilinear").numpy()
    return (fine + 0.02 * random.normal(size=fine.shape)).astype(np.float32)


# Models ---------------------------------------------------------------------------------------------------------------


def digits():
    """The CNN of examples/digits, trained on scikit-learn's digits."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples" / "digits"))
    import train

    model = train.make_model()
    train.fit(model, epochs=3)
    return model, {"x": train.data()[1][0][:64]}


def lenet():
    model = tf.keras.Sequential(
        [
            layers.Input((28, 28, 1), name="x"),
            layers.Conv2D(6, 5, padding="same", activation="tanh"),
            layers.AveragePooling2D(),
            layers.Conv2D(16, 5, activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(120, activation="relu"),
            layers.Dense(84, activation="relu"),
            layers.Dense(10),
        ],
        name="lenet",
    )
    x = images(28, 1, seed=1)
    calibrate(model, x)
    return model, {"x": x}


def mlp():
    model = tf.keras.Sequential(
        [
            layers.Input((784,), name="x"),
            layers.Dense(512, activation="relu"),
            layers.Dense(256, activation="elu"),
            layers.Dense(10),
        ],
        name="mlp",
    )
    x = np.random.default_rng(2).normal(size=(BATCH, 784)).astype(np.float32)
    calibrate(model, x)
    return model, {"x": x}


def resnet50():
    return _application(tf.keras.applications.ResNet50, seed=3, branch=0.82)


def mobilenetv2():
    return _application(tf.keras.applications.MobileNetV2, seed=4, branch=0.85, targets={"Conv_1_bn": 1.95})


def _application(make, seed, **spreads):
    model = make(weights=None, input_tensor=layers.Input((224, 224, 3), name="x"), classifier_activation=None)
    x = images(224, 3, seed)
    calibrate(model, x, **spreads)
    return model, {"x": x}


class ControlFlow(tf.Module):
    """Halves x until its norm is at most 1, or doubles the steps, by a condition on the input; then a matrix product."""

    def __init__(self):
        super().__init__()
        self.weight = tf.Variable(np.random.default_rng(5).normal(size=(4, 3)).astype(np.float32), name="weight")

    @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, "x"), tf.TensorSpec([], tf.int32, "limit")])
    def __call__(self, x, limit):
        x = tf.cond(tf.reduce_sum(x) > 0.0, lambda: x + 1.0, lambda: x * 2.0 - self.weight[:, 0])
        count, y = tf.while_loop(
            lambda i, v: tf.logical_and(i < limit, tf.norm(v) > 1.0),
            lambda i, v: (i + 1, v * 0.5 + tf.sin(v) * 0.1),
            [tf.constant(0), x],
        )
        return {"y": tf.matmul(y, self.weight), "count": count}


def control_flow():
    x = np.random.default_rng(6).normal(size=(BATCH, 4)).astype(np.float32) * 3
    return ControlFlow(), {"x": x, "limit": np.int32(3)}, {"x": -x[:5], "limit": np.int32(9)}, {"x": x, "limit": np.int32(0)}


def mlp_v1():
    """A TensorFlow 1 graph with reference variables, saved with a named signature, as older scripts do."""
    x = np.random.default_rng(8).normal(size=(BATCH, 20)).astype(np.float32)

    def save(folder):
        v1 = tf.compat.v1
        with tf.Graph().as_default(), v1.Session() as session:
            v1.disable_resource_variables()
            ids = v1.placeholder(tf.float32, (None, 20), name="features")
            hidden = tf.nn.relu(_dense_v1(ids, 20, 16, "hidden"))
            logits = _dense_v1(hidden, 16, 5, "loss")
            session.run(v1.global_variables_initializer())
            v1.enable_resource_variables()
            v1.saved_model.simple_save(session, str(folder), {"features": ids}, {"logits": logits})

    return save, {"features": x}


def _dense_v1(x, rows, columns, name):
    v1 = tf.compat.v1
    random = np.random.default_rng(rows)
    with v1.variable_scope(name):
        kernel = v1.get_variable("kernel", initializer=random.normal(size=(rows, columns)).astype(np.float32) / rows**0.5)
        bias = v1.get_variable("bias", initializer=random.normal(size=columns).astype(np.float32))
        return tf.nn.bias_add(tf.matmul(x, kernel), bias, name="BiasAdd")


# Calibration ----------------------------------------------------------------------------------------------------------


def calibrate(model, x, branch=1.0, targets=()):
    """Walks the layers once in order, as one training-mode pass would: batch-norm statistics become those of the batch,
    and weights are scaled so that the layer's output has spread 1, or `branch` where it is added to another branch, or
    what `targets` says for its name."""
    random = np.random.default_rng(7)
    values = {id(model.inputs[0]): tf.constant(x)}
    added = {id(t) for layer in model.layers if isinstance(layer, layers.Add) for t in layer.input}
    for layer in model.layers:
        if isinstance(layer, layers.InputLayer):
            continue
        inputs = tf.nest.map_structure(lambda t: values[id(t)], layer.input)
        target = dict(targets).get(layer.name, branch if id(layer.output) in added else 1.0)
        _rescale(layer, inputs, target, random)
        values[id(layer.output)] = layer(inputs, training=False)


def _rescale(layer, inputs, target, random):
    if isinstance(layer, layers.BatchNormalization):
        channels = inputs.shape[-1]
        axes = tuple(range(len(inputs.shape) - 1))
        layer.moving_mean.assign(tf.reduce_mean(inputs, axes))
        layer.moving_variance.assign(tf.math.reduce_variance(inputs, axes))
        layer.gamma.assign(random.uniform(0.8, 1.2, channels))
        layer.beta.assign(random.uniform(0, 1, channels))
        layer.gamma.assign(layer.gamma * (target / spread(layer(inputs, training=False))))
    elif layer.weights:
        activation = layer.activation
        if activation is not tf.keras.activations.relu:  # the others bound the output; their input gets the spread
            layer.activation = tf.keras.activations.linear
        kernel = layer.weights[0]
        if len(kernel.shape) == 4:  # partly smoothing, so that a pool over the whole image does not average noise away
            kernel.assign(0.3 * kernel + 0.7 * tf.reduce_mean(kernel, (0, 1), keepdims=True))
        kernel.assign(kernel * (target / spread(layer(inputs))))
        layer.activation = activation


def layer_spreads(model, x):
    outputs = [layer.output for layer in model.layers if not isinstance(layer, layers.InputLayer)]
    names = [layer.name for layer in model.layers if not isinstance(layer, layers.InputLayer)]
    values = tf.keras.Model(model.inputs, outputs)(x, training=False)
    return {name: spread(value) for name, value in zip(names, values if len(names) > 1 else [values])}


# Files ----------------------------------------------------------------------------------------------------------------

MODELS = {f.__name__: f for f in (digits, lenet, mlp, resnet50, mobilenetv2, control_flow, mlp_v1)}
CALIBRATED = ("lenet", "mlp", "resnet50", "mobilenetv2")


def write(name, folder):
    tf.keras.utils.set_random_seed(1)
    model, first, *others = MODELS[name]()
    if isinstance(model, tf.keras.Model):
        others.append({key: value[:1] for key, value in first.items()})  # another batch size
    folder.mkdir(parents=True, exist_ok=True)
    _save(model, folder / "saved_model")
    loaded = tf.saved_model.load(str(folder / "saved_model"))  # owns the variables
    signature = loaded.signatures["serving_default"]
    for case, inputs in enumerate([first, *others]):
        outputs = signature(**{key: tf.constant(value) for key, value in inputs.items()})
        np.savez(folder / f"inputs-{case}.npz", **inputs)
        np.savez(folder / f"expected-{case}.npz", **{key: value.numpy() for key, value in outputs.items()})
    info = _freeze(signature, folder / "frozen.pb")
    expected = np.load(folder / "expected-0.npz")
    info["spread"] = {key: spread(value) for key, value in expected.items() if value.dtype.kind == "f"}
    if name in CALIBRATED:
        info["layers"] = layer_spreads(model, first["x"])
        bad = {key: value for key, value in info["layers"].items() if not SPREAD[0] <= value <= SPREAD[1]}
        assert not bad, f"{name}: spread outside {SPREAD}: {bad}"
    (folder / "info.json").write_text(json.dumps(info, indent=1))
    print(name, {key: round(value, 3) for key, value in info["spread"].items()}, flush=True)


def _save(model, folder):
    if isinstance(model, tf.keras.Model):
        model.save(folder, save_format="tf")
    elif isinstance(model, tf.Module):
        tf.saved_model.save(model, str(folder))
    else:
        shutil.rmtree(folder, ignore_errors=True)
        model(folder)


def _freeze(signature, file):
    """Writes the frozen graph; returns its tensor names by the signature's names."""
    frozen = convert_variables_to_constants_v2(signature, lower_control_flow=False)
    file.write_bytes(frozen.graph.as_graph_def().SerializeToString())
    _, arguments = signature.structured_input_signature
    return {
        "frozen_inputs": dict(zip(arguments, (tensor.name for tensor in frozen.inputs))),
        "frozen_outputs": dict(zip(sorted(signature.structured_outputs), (t.name for t in frozen.outputs))),
    }


if __name__ == "__main__":
    for model_name in sys.argv[2:] or MODELS:
        write(model_name, Path(sys.argv[1]) / model_name)
