"""cairn verify finds the framework of a model in an environment beside its own."""

import pytest
from conftest import BIN, ROOT
from test_atc_lines import onnx

PEERS = ROOT / ".venv-peers" / "bin" / "python"


@pytest.mark.skipif(not PEERS.exists(), reason="there is no .venv-peers")
def test_onnx_files_are_verified_from_the_environment_of_tensorflow(command, tmp_path):
    (tmp_path / "m.onnx").write_bytes(onnx([("x", [2, 4])]))
    done = command("cairn", "verify", "m.onnx", "--against", "m.onnx")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{PEERS} is asked; missing: onnxruntime in {BIN / 'python'}" in done.stderr


def test_a_missing_framework_names_the_ways_out(command, tmp_path):
    (tmp_path / "m.onnx").write_bytes(onnx([("x", [2, 4])]))
    done = command("cairn", "verify", "m.onnx", "--against", "m.onnx", "--python", "/usr/bin/python3")
    assert done.returncode == 3 and "--steps checks each step with the reference kernels" in done.stdout + done.stderr
