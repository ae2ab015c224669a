"""Cairn's outputs equal TensorFlow's on whole models, from the SavedModel, the frozen graph and the converted file."""

import numpy as np
import pytest

import cairn

MODELS = ("digits", "lenet", "mlp", "mlp_v1", "resnet50", "mobilenetv2", "control_flow")
TOLERANCE = 1e-4  # of the output's spread over inputs


def check(found, expected, model, rename=lambda name: name):
    assert set(found) == {rename(name) for name in expected}
    for name, value in expected.items():
        result = found[rename(name)]
        assert result.dtype == value.dtype and result.shape == value.shape
        if value.dtype.kind == "f":
            assert np.abs(result - value).max() <= TOLERANCE * model.spread(name), name
        else:
            assert (result == value).all(), name


@pytest.mark.parametrize("name", MODELS)
def test_outputs_depend_on_inputs(models, name):
    model = models(name)
    for value in {**model.info["spread"], **model.info.get("layers", {})}.values():
        assert value >= (0.5 if "layers" in model.info else 0.25)
        assert value <= 2.0


@pytest.mark.parametrize("name", MODELS)
def test_a_saved_model_gives_the_outputs_of_tensorflow(models, name):
    model = models(name)
    loaded = cairn.load(model.saved_model)
    for inputs, expected in model.cases():
        check(loaded.run(inputs), expected, model)


@pytest.mark.parametrize("name", MODELS)
def test_a_frozen_graph_gives_the_outputs_of_tensorflow(models, name):
    model = models(name)
    loaded = cairn.load(model.frozen)
    for inputs, expected in model.cases():
        by_tensor = {_node(model.info["frozen_inputs"][key]): value for key, value in inputs.items()}
        check(loaded.run(by_tensor), expected, model, lambda key: _node(model.info["frozen_outputs"][key]))


def _node(tensor):
    return tensor.removesuffix(":0")


@pytest.mark.parametrize("name", MODELS)
def test_a_converted_file_gives_the_outputs_of_tensorflow(models, name, command, tmp_path):
    model = models(name)
    done = command("cairn", "convert", model.saved_model, "-o", tmp_path / "model.om")
    assert done.returncode == 0, done.stdout + done.stderr
    loaded = cairn.load(tmp_path / "model.om")
    for inputs, expected in model.cases():
        check(loaded.run(inputs), expected, model)


@pytest.mark.parametrize("name", MODELS)
def test_a_graph_frozen_by_cairn_gives_equal_outputs_in_tensorflow(models, name, command, tmp_path):
    import tensorflow as tf

    model = models(name)
    done = command("cairn", "freeze", model.saved_model, "-o", tmp_path / "frozen.pb")
    assert done.returncode == 0, done.stdout + done.stderr
    graph = tf.compat.v1.GraphDef.FromString((tmp_path / "frozen.pb").read_bytes())
    assert not [node.name for node in graph.node if node.op in ("VarHandleOp", "VariableV2", "RestoreV2")]
    with tf.Graph().as_default() as imported, tf.compat.v1.Session() as session:
        tf.import_graph_def(graph, name="")
        listed = cairn.load(tmp_path / "frozen.pb")
        feeds = {entry.name: imported.get_tensor_by_name(entry.name if ":" in entry.name else entry.name + ":0") for entry in listed.inputs}
        fetches = [imported.get_tensor_by_name(entry.name if ":" in entry.name else entry.name + ":0") for entry in listed.outputs]
        for inputs, expected in model.cases():
            fed = {tensor: next(v for k, v in inputs.items() if name.endswith(k)) for name, tensor in feeds.items()}
            for found, key in zip(session.run(fetches, fed), sorted(expected)):
                tolerance = TOLERANCE * model.spread(key) if found.dtype.kind == "f" else 0
                assert np.abs(found - expected[key]).max() <= tolerance
