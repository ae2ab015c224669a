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


@pytest.mark.parametrize("model", MODELS)
def test_an_onnx_file_gives_the_outputs_of_onnx_runtime(onnx_folder, model):
    import onnxruntime

    file = str(onnx_folder / f"{model}.onnx")
    x = nets.make_input(model, BATCH)
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    loaded = cairn.load(file)
    (output,) = (entry.name for entry in loaded.outputs)
    for inputs in (x, x[:1]):
        (expected,) = session.run(None, {"x": inputs})
        found = loaded.run({"x": inputs})[output]
        assert found.shape == expected.shape and found.dtype == expected.dtype
    expected = session.run(None, {"x": x})[0]
    assert np.var(expected, axis=0).mean() > 0
    assert spread_error(loaded.run({"x": x})[output], expected) <= 1e-4
