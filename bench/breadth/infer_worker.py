"""One side of an inference case: `infer_worker.py cairn|onnxruntime|openvino`, obeying `case FILE.onnx` (inputs in FILE.npz),
`run SECONDS` and `peak`."""

import os
import sys
import time
from pathlib import Path

import numpy as np
import side

THREADS = int(os.environ["BREADTH_THREADS"])
run = None


def cairn_runner(path, feeds):
    import cairn

    model = cairn.load(path, threads=THREADS)
    return lambda: list(model.run(feeds).values())


def onnxruntime_runner(path, feeds):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = THREADS, 1, 3
    options.add_session_config_entry("session.set_denormal_as_zero", "1")
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, feeds)


def openvino_runner(path, feeds):
    import openvino

    core = openvino.Core()
    settings = {
        "INFERENCE_NUM_THREADS": THREADS,
        "NUM_STREAMS": 1,
        "INFERENCE_PRECISION_HINT": "f32",
        "PERFORMANCE_HINT": "LATENCY",
        "CPU_DENORMALS_OPTIMIZATION": True,
        "ENABLE_CPU_PINNING": False,
    }
    request = core.compile_model(core.read_model(str(path)), "CPU", settings).create_infer_request()
    for name, value in feeds.items():
        request.set_tensor(name, openvino.Tensor(value))

    def infer():
        request.infer(share_outputs=True)
        return [tensor.data for tensor in request.output_tensors]

    return infer


RUNNERS = {"cairn": cairn_runner, "onnxruntime": onnxruntime_runner, "openvino": openvino_runner}
ENGINE = sys.argv[1]
__import__(ENGINE)  # not part of the time to the first result


def case(path):
    global run
    with np.load(Path(path).with_suffix(".npz")) as arrays:
        feeds = {name: np.ascontiguousarray(arrays[name]) for name in arrays.files}
    start = time.perf_counter()
    run = RUNNERS[ENGINE](path, feeds)
    results = run()
    spent = time.perf_counter() - start
    np.savez(f"{path}.{ENGINE}.npz", *[np.asarray(result) for result in results])
    return {"first": spent}


def measure(seconds):
    times, spent, end = [], time.process_time(), time.perf_counter() + float(seconds)
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    times.sort()
    return {"median": times[len(times) // 2], "cpu": (time.process_time() - spent) / len(times)}


side.serve({"case": case, "run": measure, "peak": lambda: {"peak": side.peak()}})
