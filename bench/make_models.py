"""Writes the files of one benchmark net: make_models.py FORMAT MODEL FOLDER with FORMAT one of

onnx   (in .venv-peers) MODEL.npz, the weights, and MODEL.onnx, fp32 with a dynamic batch N
int8   (in .venv-peers, after onnx) MODEL.int8.onnx, QDQ: 8-bit unsigned activations, signed weights per channel
w4, w8 (in .venv-peers, after onnx) MODEL.w4.onnx: MatMulNBits with weights of so many bits in blocks of 32; w4a8, w8a8: with
       accuracy_level 4, which lets activations have 8 bits; w8c: DequantizeLinear with a scale for each channel
pb     (in .venv, after onnx) MODEL.pb, the frozen TensorFlow graph with the same weights"""

import sys
from pathlib import Path

import nets
import numpy as np

OPSET = 17


def make_onnx(model, folder):
    import onnx
    import torch
    import torch_net

    torch.set_flush_denormal(True)
    net = torch_net.Net(model, fused_attention=False)
    if model in ("resnet50", "mobilenetv2"):
        _calibrate(net)
    np.savez(folder / f"{model}.npz", **net.numpy_weights())
    net.eval()
    file = folder / f"{model}.onnx"
    inputs = nets.make_inputs(model, 2 if model != "gpt2" else 1)
    axes = {"x": {0: "N"}, "y": {0: "N"}} if model != "gpt2" else {}
    names = {"input_names": list(inputs), "output_names": ["y", *(name.replace("past", "now") for name in inputs if name != "x")], "dynamic_axes": axes}
    torch.onnx.export(net, tuple(map(torch.from_numpy, inputs.values())), str(file), **names, opset_version=OPSET, dynamo=False)
    onnx.checker.check_model(str(file))


def _calibrate(net):
    """Batch-norm statistics by one training-mode pass, so that activations stay near unit scale."""
    import torch

    images = np.random.RandomState(3).standard_normal((8, 3, 224, 224)).astype(np.float32)
    net.train()
    net.momentum = 1.0
    with torch.no_grad():
        net(torch.from_numpy(images))


def make_int8(model, folder, batches=None):
    """The batches, dictionaries of inputs, calibrate; without any, random ones of the benchmark's nets."""
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    prepared = folder / f"{model}.pre.onnx"
    quant_pre_process(str(folder / f"{model}.onnx"), str(prepared), skip_symbolic_shape=True)
    quantize_static(
        str(prepared),
        str(folder / f"{model}.int8.onnx"),
        _Calibration(batches or [{"x": item[None]} for item in nets.make_input(model, 4)]),
        quant_format=QuantFormat.QDQ,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
        per_channel=True,
        op_types_to_quantize=["MatMul", "Gemm"] if model == "bert" else None,
    )
    prepared.unlink()


class _Calibration:
    """What onnxruntime's quantizer reads its examples from."""

    def __init__(self, batches):
        self.batches = iter(batches)

    def get_next(self):
        return next(self.batches, None)


def make_few_bits(kind):
    bits, level = int(kind[1]), 4 if kind.endswith("a8") else 0

    def make(model, folder):
        import onnx
        from onnxruntime.quantization.matmul_nbits_quantizer import DefaultWeightOnlyQuantConfig, MatMulNBitsQuantizer

        how = DefaultWeightOnlyQuantConfig(32, is_symmetric=True, accuracy_level=level, bits=bits)
        made = MatMulNBitsQuantizer(onnx.load(folder / f"{model}.onnx"), algo_config=how)
        made.process()
        made.model.save_model_to_file(str(folder / f"{model}.{kind}.onnx"))

    return make


def make_channels(model, folder):
    import onnx
    from onnx import helper, numpy_helper

    whole = onnx.load(folder / f"{model}.onnx")
    graph, weights = whole.graph, {each.name: each for each in whole.graph.initializer}
    nodes = []
    for node in graph.node:
        kernel = weights.get(node.input[1]) if node.op_type == "MatMul" else None
        if kernel:
            floats, name = numpy_helper.to_array(kernel), kernel.name
            scale = (np.abs(floats).max(0) / 127).astype(np.float32)
            codes = np.rint(floats / scale).astype(np.int8)
            graph.initializer.remove(kernel)
            graph.initializer.extend([numpy_helper.from_array(codes, name + ".q"), numpy_helper.from_array(scale, name + ".s")])
            nodes.append(helper.make_node("DequantizeLinear", [name + ".q", name + ".s"], [name], axis=1))
        nodes.append(node)
    del graph.node[:]
    graph.node.extend(nodes)
    onnx.save(whole, folder / f"{model}.w8c.onnx")


def make_pb(model, folder):
    import tensorflow as tf
    import tf_net

    weights = dict(np.load(folder / f"{model}.npz"))
    example = nets.make_input(model, 1, nhwc=True)
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(example.dtype, (None, *example.shape[1:]), name="x")
        tf.identity(nets.build(model, tf_net.Net(weights), x), name="y")
    (folder / f"{model}.pb").write_bytes(graph.as_graph_def().SerializeToString())


if __name__ == "__main__":
    few_bits = {kind: make_few_bits(kind) for kind in ("w4", "w8", "w4a8", "w8a8")}
    make = {"onnx": make_onnx, "int8": make_int8, "w8c": make_channels, "pb": make_pb, **few_bits}[sys.argv[1]]
    make(sys.argv[2], Path(sys.argv[3]))
