"""Cairn through its Python API. The number of threads is the processors that the process may use."""

import worker

options = worker.arguments()

import cairn  # noqa: E402
import nets  # noqa: E402

model = cairn.load(worker.onnx_file(options))
inputs = nets.make_inputs(options.model, options.batch)
output = model.outputs[0].name
worker.serve(lambda: model.run(inputs)[output], "cairn " + cairn.__version__)
