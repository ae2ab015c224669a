"""ONNX Runtime. Types: fp32, int8 and few bits (quantised files)."""

import worker

options = worker.arguments()

import nets  # noqa: E402
import onnxruntime as ort  # noqa: E402

settings = ort.SessionOptions()
settings.intra_op_num_threads = options.threads
settings.inter_op_num_threads = 1
settings.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
settings.add_free_dimension_override_by_name("N", options.batch)
settings.add_session_config_entry("session.set_denormal_as_zero", "1")
session = ort.InferenceSession(worker.onnx_file(options), settings, providers=["CPUExecutionProvider"])
inputs = nets.make_inputs(options.model, options.batch)
worker.serve(lambda: session.run(None, inputs)[0], "onnxruntime " + ort.__version__)
