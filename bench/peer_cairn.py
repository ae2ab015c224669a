"""Cairn through its Python API. The number of threads is the processors that the process may use."""

import worker

options = worker.arguments()

import cairn  # noqa: E402
import nets  # noqa: E402

model = cairn.load(worker.onnx_file(options))
x = nets.make_input(options.model, options.batch)
(output,) = (entry.name for entry in model.outputs)
worker.serve(lambda: model.run({"x": x})[output], "cairn " + cairn.__version__)
