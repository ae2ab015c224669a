"""Nets of many architectures, exported by both of torch's exporters, equal torch and ONNX Runtime. Runs in .venv-peers."""

import contextlib
import io
import subprocess
import sys
from pathlib import Path

import exported_nets
import numpy as np
import pytest
import torch

import cairn

QUICK = [("script", name) for name in exported_nets.NETS] + [("dynamo", name) for name in ("gpt2", "routed_experts", "unet", "yolo")]
LATEST = {"script": 17, "dynamo": 20}
OTHERS = [("script", 11), ("script", 13), ("script", 20), ("dynamo", 18), ("dynamo", 20), ("dynamo", 23)]


def difference(found, wanted):
    """The largest difference as a share of the spread; integers are equal."""
    assert found.shape == wanted.shape and found.dtype == wanted.dtype
    if found.dtype.kind != "f" or found.size == 0:
        return 0.0 if np.array_equal(found, wanted) else np.inf
    return float(np.abs(found.astype(np.float64) - wanted).max() / wanted.std())


def export(name, file, exporter, opset, open_axes):
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            return exported_nets.export(name, file, exporter == "dynamo", opset, open_axes)
    except torch.onnx.errors.UnsupportedOperatorError as error:
        pytest.skip(f"torch refuses: {error}")


def peer(file):
    """ONNX Runtime, where it takes what torch wrote."""
    import onnxruntime

    with contextlib.suppress(onnxruntime.capi.onnxruntime_pybind11_state.InvalidGraph):
        return onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])


def check(name, exporter, opset, open_axes, folder):
    file = folder / f"{name}.onnx"
    module, names, turns = export(name, file, exporter, opset, open_axes)
    session, model = peer(file), cairn.load(file)
    kept = {entry.name for entry in model.inputs}
    answers = []
    for values in turns:
        feeds = {key: value.numpy() for key, value in zip(names, values, strict=True) if key in kept}
        with torch.no_grad():
            wanted = module(*values)
        wanted = [value.numpy() for value in (wanted if isinstance(wanted, tuple) else (wanted,))]
        found, other = model.run(feeds), session.run(None, feeds) if session else wanted
        assert len(found) == len(wanted)
        for output, right, theirs in zip(model.outputs, wanted, other, strict=True):
            assert difference(found[output.name], right) <= max(1e-4, 3 * difference(theirs, right)), output.name
        answers.append(wanted[0])
    assert answers[0].shape != answers[1].shape or not np.allclose(*answers), "the output does not depend on the input"


@pytest.mark.parametrize(("exporter", "name"), QUICK)
def test_an_exported_net_with_open_axes_equals_torch(exporter, name, tmp_path):
    check(name, exporter, LATEST[exporter], True, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("name", exported_nets.NETS)
@pytest.mark.parametrize(("exporter", "opset"), OTHERS)
@pytest.mark.parametrize("open_axes", [False, True], ids=["fixed", "open"])
def test_an_exported_net_of_another_operator_set_equals_torch(name, exporter, opset, open_axes, tmp_path):
    check(name, exporter, opset, open_axes, tmp_path)


class Shuffled(torch.nn.Module):
    """Groups of channels that the next layer reads in turn."""

    def forward(self, x):
        return x.view(2, 4, 5, 9, 7).transpose(1, 2).reshape(2, 20, 9, 7)


@pytest.mark.parametrize(
    ("layers", "dims", "most"),
    [
        ([torch.nn.Conv1d(6, 16, 1), torch.nn.PReLU(), torch.nn.GroupNorm(1, 16), torch.nn.Conv1d(16, 8, 3)], (2, 6, 40), 2),
        ([torch.nn.Conv2d(6, 20, 1), torch.nn.ReLU(), Shuffled(), torch.nn.Conv2d(20, 20, 3, padding=1, groups=20)], (2, 6, 9, 7), 3),
    ],
    ids=["norm of one group", "shuffled channels"],
)
def test_convolutions_around_a_reshape_keep_channels_last(layers, dims, most, tmp_path):
    net, x, file = torch.nn.Sequential(*layers), torch.randn(dims), tmp_path / "net.onnx"
    torch.onnx.export(net, (x,), file, dynamo=False, opset_version=18, input_names=["x"])
    with torch.no_grad():
        assert difference(next(iter(cairn.load(file).run({"x": x.numpy()}).values())), net(x).numpy()) < 1e-5
    command, made = Path(sys.executable).with_name("cairn"), tmp_path / "net.om"
    subprocess.run([command, "convert", file, "-o", made], check=True, capture_output=True)
    text = subprocess.run([command, "show", "--text", made], check=True, capture_output=True, text=True).stdout
    assert text.count("= transpose ") <= most, text
