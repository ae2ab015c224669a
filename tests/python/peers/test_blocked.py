"""Files whose images lie in blocks of channels, as ONNX Runtime's optimiser writes them at its highest level. Runs in .venv-peers."""

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import helper, numpy_helper
from torch import nn
from torch.nn import functional as F  # noqa: N812

import cairn


class Net(nn.Module):
    def __init__(self, first, width, groups):
        super().__init__()
        self.first, self.depthwise, self.grouped = nn.Conv2d(first, width, 3, 2, 1), nn.Conv2d(width, width, 3, 1, 1, groups=width), nn.Conv2d(32, 32, 3, 1, 1, groups=groups)
        self.thin, self.join, self.last = nn.Conv2d(width, 32, 1), nn.Conv2d(64, width, 1), nn.Conv2d(width, 6, 1)

    def forward(self, x):
        y = F.max_pool2d(self.thin(self.depthwise(self.first(x).relu())), 3, 2, 1)
        z = (self.grouped(y) + y).relu()
        z = F.interpolate(self.join(torch.cat([y, z], 1)).sigmoid(), scale_factor=2, mode="nearest")
        return self.last(z), F.avg_pool2d(z, 2), z.mean((2, 3), keepdim=True), z.permute(0, 2, 3, 1).contiguous()


@pytest.mark.parametrize(("first", "width", "groups"), [(3, 24, 1), (12, 32, 2), (1, 16, 1), (16, 20, 1)])
def test_a_net_that_the_runtime_has_optimised_for_its_processor_equals_the_net(first, width, groups, tmp_path):
    torch.manual_seed(2)
    net = Net(first, width, groups).eval()
    x = torch.randn(2, first, 32, 24)
    axes = {"x": {0: "n", 2: "h", 3: "w"}} if width == 24 else {}
    torch.onnx.export(net, (x,), tmp_path / "net.onnx", input_names=["x"], dynamo=False, dynamic_axes=axes)
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath, options.log_severity_level = str(tmp_path / "best.onnx"), 4
    onnxruntime.InferenceSession(tmp_path / "net.onnx", options, providers=["CPUExecutionProvider"])
    if not any(node.domain == "com.microsoft.nchwc" for node in onnx.load(tmp_path / "best.onnx").graph.node):
        pytest.skip("ONNX Runtime has no blocks of channels on this processor")
    with torch.no_grad():
        wanted = net(x)
    for found, right in zip(cairn.load(tmp_path / "best.onnx").run({"x": x.numpy()}).values(), wanted, strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-5)


def in_blocks(kernel, block):
    """The kernel's numbers as MLAS lays them: outputs, and from one block on inputs, in blocks, with zeros at the end."""
    outputs, inputs, height, width = kernel.shape
    rest = (-inputs % block) if inputs >= block else 0
    w = np.pad(kernel, [(0, -outputs % block), (0, rest), (0, 0), (0, 0)])
    if inputs >= block:
        parts = w.reshape(-1, block, w.shape[1] // block, block, height, width).transpose(0, 2, 4, 5, 3, 1)
    else:
        parts = w.reshape(-1, block, inputs, height, width).transpose(0, 2, 3, 4, 1)
    return np.ascontiguousarray(parts).reshape(w.shape)


@pytest.mark.parametrize("block", [8, 16])
@pytest.mark.parametrize("last", [0, 1])
def test_the_file_tells_the_block_of_the_processor_that_it_was_written_for(block, last, tmp_path):
    random = np.random.default_rng(1)
    kernels = [random.standard_normal(dims).astype(np.float32) for dims in ((24, 3, 3, 3), (20, 24, 1, 1))]
    x = random.standard_normal((1, 3, 6, 5)).astype(np.float32)
    name = {"domain": "com.microsoft.nchwc"}
    nodes = [helper.make_node("Conv", ["x", "a"], ["u"], pads=[1] * 4, activation="Relu", **name), helper.make_node("Conv", ["u", "b"], ["v"], **name),
             helper.make_node("ReorderOutput", ["v"], ["y"], channels=20, channels_last=last, **name)]  # fmt: skip
    values = [helper.make_tensor_value_info("x", 1, x.shape)], [helper.make_tensor_value_info("y", 1, None)]
    weights = [numpy_helper.from_array(in_blocks(kernel, block), key) for key, kernel in zip("ab", kernels)]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft.nchwc", 1)]
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", *values, weights), opset_imports=opsets, ir_version=8), tmp_path / "m.onnx")
    right = F.conv2d(F.conv2d(torch.tensor(x), torch.tensor(kernels[0]), padding=1).relu(), torch.tensor(kernels[1])).numpy()
    found = cairn.load(tmp_path / "m.onnx").run({"x": x})["y"]
    np.testing.assert_allclose(found, right.transpose(0, 2, 3, 1) if last else right, rtol=1e-4, atol=1e-4)
