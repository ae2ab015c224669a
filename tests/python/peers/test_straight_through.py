"""Quantisation-aware training of an imported model: cairn.Trainer passes gradients through fake-quant nodes as torch does."""

import numpy as np
import onnx
import pytest
import torch

import cairn


class FakeQuant(torch.nn.Module):
    """Weights by channel in signed bytes, data in unsigned ones; the ranges cut some of both off."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(7)
        self.conv, self.head = torch.nn.Conv2d(2, 6, 3), torch.nn.Linear(6, 3)

    def forward(self, x):
        channels = torch.linspace(0.001, 0.003, 6)
        weight = torch.fake_quantize_per_channel_affine(self.conv.weight, channels, torch.zeros(6, dtype=torch.int32), 0, -128, 127)
        x = torch.fake_quantize_per_tensor_affine(x, 0.015, 120, 0, 255)
        x = torch.nn.functional.conv2d(x, weight, self.conv.bias).relu()
        x = torch.fake_quantize_per_tensor_affine(x, 0.004, 0, 0, 255).mean((2, 3))
        return torch.nn.functional.linear(x, torch.fake_quantize_per_tensor_affine(self.head.weight, 0.003, 0, -128, 127), self.head.bias)


@pytest.mark.filterwarnings("ignore")
def test_fake_quant_nodes_train_as_in_torch(tmp_path):
    net, random = FakeQuant(), np.random.default_rng(3)
    torch.onnx.export(net, (torch.zeros(2, 2, 6, 6),), str(tmp_path / "m.onnx"), dynamo=False, do_constant_folding=False,
                      training=torch.onnx.TrainingMode.PRESERVE, input_names=["x"], dynamic_axes={"x": {0: "n"}})
    assert {"QuantizeLinear", "DequantizeLinear"} <= {node.op_type for node in onnx.load(tmp_path / "m.onnx").graph.node}
    trainer = cairn.Trainer(tmp_path / "m.onnx", threads=1, optimizer="sgd")
    optimizer = torch.optim.SGD(net.parameters(), 0.05)
    start = {name: value.detach().clone() for name, value in net.named_parameters()}
    for _ in range(4):
        x, labels = random.normal(size=(16, 2, 6, 6)).astype(np.float32), random.integers(0, 3, 16)
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(torch.from_numpy(x)), torch.from_numpy(labels))
        loss.backward()
        optimizer.step()
        assert trainer.step(x, labels, 0.05)["loss"] == pytest.approx(loss.item(), rel=1e-3)  # a value between two steps may go to either
    for name, value in net.named_parameters():
        moved = (value.detach() - start[name]).numpy()
        assert np.abs(moved).max() > 1e-4
        np.testing.assert_allclose(trainer.state()[name] - start[name].numpy(), moved, atol=0.02 * np.abs(moved).max(), err_msg=name)
    trainer.save(tmp_path / "trained.onnx")
    assert "QuantizeLinear" in {node.op_type for node in onnx.load(tmp_path / "trained.onnx").graph.node}
