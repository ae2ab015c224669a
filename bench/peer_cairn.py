"""Cairn through its Python API. The number of threads is the processors that the process may use. bf16: the f32 file, converted with
mixed precision."""

import tempfile

import worker

options = worker.arguments()

import cairn  # noqa: E402
import nets  # noqa: E402

path = worker.onnx_file(options)
if options.dtype == "bf16":
    folder = tempfile.TemporaryDirectory()
    path = cairn.convert(path, f"{folder.name}/model.om", precision_mode="mixed_bfloat16")
model = cairn.load(path)
inputs = nets.make_inputs(options.model, options.batch)
output = model.outputs[0].name
worker.serve(lambda: model.run(inputs)[output], "cairn " + cairn.__version__)
