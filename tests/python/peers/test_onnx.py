"""Cairn's outputs equal ONNX Runtime's on the ONNX files of the benchmark nets. Runs in .venv-peers."""

import sys

import numpy as np
import pytest
from conftest import ROOT, spread_error

sys.path.insert(0, str(ROOT / "bench"))
import compare  # noqa: E402
import nets  # noqa: E402

import cairn  # noqa: E402

MODELS = ("resnet50", "mobilenetv2", "lenet", "mlp")
BATCH = 8


@pytest.fixture(scope="session")
def onnx_folder():
    return compare.ensure_files([compare.parse_case(f"ort:{model}") for model in MODELS])


def onnx_runtime(file, optimised):
    import onnxruntime

    level = onnxruntime.GraphOptimizationLevel
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level.ORT_ENABLE_ALL if optimised else level.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    return lambda x: session.run(None, {"x": x})[0]


@pytest.mark.parametrize("model", MODELS)
def test_an_onnx_file_gives_the_outputs_of_onnx_runtime(onnx_folder, model):
    """Within 1e-4 of the output's spread. The outputs of these nets vary little over noise, so that rounding alone may be
    more: then within three times what ONNX Runtime's own optimisation changes."""
    file = str(onnx_folder / f"{model}.onnx")
    plain, optimised = onnx_runtime(file, False), onnx_runtime(file, True)
    x = nets.make_input(model, BATCH)
    loaded = cairn.load(file)
    (output,) = (entry.name for entry in loaded.outputs)
    found, expected = loaded.run({"x": x})[output], plain(x)
    assert found.shape == expected.shape and found.dtype == expected.dtype
    assert np.var(expected, axis=0).mean() > 0
    assert spread_error(found, expected) <= max(1e-4, 3 * spread_error(optimised(x), expected))
    assert np.allclose(loaded.run({"x": x[:1]})[output], found[:1], rtol=1e-3, atol=1e-3)
