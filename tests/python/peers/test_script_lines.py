"""Reports on models that torch exported name the lines of the script, which both of its exporters leave in the file."""

import inspect

import cairn
import pytest

torch = pytest.importorskip("torch")


class Odd(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x * 2

    @staticmethod
    def symbolic(graph, x):
        return graph.op("mine::Odd", x)


class Net(torch.nn.Module):
    def __init__(self, dynamo):
        super().__init__()
        self.conv, self.dynamo = torch.nn.Conv2d(3, 4, 3), dynamo

    def forward(self, x):
        x = torch.relu(self.conv(x))  # relu
        if self.dynamo:
            return torch.onnx.ops.symbolic("mine::Odd", (x,), dtype=x.dtype, shape=x.shape, version=1).abs()  # dynamo
        return Odd.apply(x).abs()  # script


def line_of(mark):
    lines = inspect.getsource(inspect.getmodule(line_of)).splitlines()
    (number,) = [at for at, line in enumerate(lines, 1) if line.endswith(f"  # {mark}")]
    return f"test_script_lines.py:{number}"


@pytest.mark.parametrize("dynamo", (False, True))
def test_both_exporters(tmp_path, dynamo):
    path = str(tmp_path / "net.onnx")
    torch.onnx.export(Net(dynamo).eval(), (torch.zeros(1, 3, 6, 6),), path, dynamo=dynamo, **({} if dynamo else {"verbose": True}))
    with pytest.raises(cairn.Error) as told:
        cairn.convert(path, str(tmp_path / "m.om"))
    assert f"({line_of('dynamo' if dynamo else 'script')})" in str(told.value), told.value
    cuts = [word.split('"')[1] for word in str(told.value).split("--") if word.startswith("cut=")]
    if dynamo:  # its files tell the shapes of tensors in the middle
        assert len(cuts) == 1
        cairn.convert(path, str(tmp_path / "m.om"), cut=cuts)
        assert [port.shape for port in cairn.load(str(tmp_path / "m.om")).inputs] == [(1, 4, 4, 4)]
