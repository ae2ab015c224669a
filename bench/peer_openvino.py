"""OpenVINO with a static shape. Modes: latency (default), throughput. Types: fp32, bf16, int8 and few bits (quantised
files)."""

import worker

options = worker.arguments()

import nets  # noqa: E402
import openvino as ov  # noqa: E402

inputs = nets.make_inputs(options.model, options.batch)
core = ov.Core()
model = core.read_model(worker.onnx_file(options))
model.reshape({name: list(x.shape) for name, x in inputs.items()})
settings = {
    "INFERENCE_NUM_THREADS": options.threads,
    "NUM_STREAMS": 1,
    "INFERENCE_PRECISION_HINT": "bf16" if options.dtype == "bf16" else "f32",
    "PERFORMANCE_HINT": "THROUGHPUT" if options.mode == "throughput" else "LATENCY",
    "CPU_DENORMALS_OPTIMIZATION": True,
    "ENABLE_CPU_PINNING": False,
    "ENABLE_HYPER_THREADING": True,
}
request = core.compile_model(model, "CPU", settings).create_infer_request()
for name, x in inputs.items():
    request.set_tensor(name, ov.Tensor(x))


def iteration():
    request.infer(share_outputs=True)
    return request.get_output_tensor(0).data


worker.serve(iteration, "openvino " + ov.__version__)
