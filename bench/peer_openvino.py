"""OpenVINO with a static shape. Modes: latency (default), throughput. Types: fp32, bf16, int8 (a quantised file)."""

import worker

options = worker.arguments()

import nets  # noqa: E402
import openvino as ov  # noqa: E402

x = nets.make_input(options.model, options.batch)
core = ov.Core()
model = core.read_model(worker.onnx_file(options))
model.reshape({"x": list(x.shape)})
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
request.set_input_tensor(ov.Tensor(x))


def iteration():
    request.infer(share_outputs=True)
    return request.get_output_tensor(0).data


worker.serve(iteration, "openvino " + ov.__version__)
