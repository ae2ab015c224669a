"""Cold start and peak memory: a Python process from its start to the first result, of each runtime's own saved form.

  cold_start.py [MODEL ...] [--runs N] [--cairn FOLDER]

Models of nets.py at batch 1 (default: bert mobilenetv2 resnet50). Saved forms: Cairn's .om, ONNX Runtime's optimised
model (as ONNX and in its own format), OpenVINO's exported blob, mapped. Processes of all runtimes take turns with files in
the page cache; processor time is user and system time of all threads, memory the largest resident size, mapped files
included. FOLDER has Cairn's Python package, default: the installed one."""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools" / "dev"))
PEERS = ROOT / ".venv-peers/bin/python"

# Each reads {folder}/x.npy and writes its result to {folder}/NAME.npy; `save` runs once before.
CAIRN = """
import numpy, cairn
model = cairn.load({folder!r} + "/model.om")
(y,) = model.run({{model.inputs[0].name: numpy.load({folder!r} + "/x.npy")}}).values()
"""
SAVE_ORT = """
import onnxruntime
options = onnxruntime.SessionOptions()
options.add_free_dimension_override_by_name("N", 1)
options.optimized_model_filepath = {folder!r} + "/saved{ending}"
onnxruntime.InferenceSession({source!r}, options, ["CPUExecutionProvider"])
"""
ORT = """
import numpy, onnxruntime
options = onnxruntime.SessionOptions()
options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
session = onnxruntime.InferenceSession({folder!r} + "/saved{ending}", options, ["CPUExecutionProvider"])
(y,) = session.run(None, {{session.get_inputs()[0].name: numpy.load({folder!r} + "/x.npy")}})
"""
SAVE_OPENVINO = """
import numpy, openvino
core = openvino.Core()
model = core.read_model({source!r})
model.reshape({{"x": list(numpy.load({folder!r} + "/x.npy").shape)}})
settings = {{"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}}
with open({folder!r} + "/saved.blob", "wb") as file:
    file.write(core.compile_model(model, "CPU", settings).export_model().getvalue())
"""
OPENVINO = """
import numpy, openvino
core = openvino.Core()
blob = openvino.Tensor(numpy.memmap({folder!r} + "/saved.blob", numpy.uint8, "r"))
settings = {{"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}}
model = core.import_model(blob, "CPU", settings)
y = model([numpy.load({folder!r} + "/x.npy")])[0]
"""
WRITE = "numpy.save({folder!r} + '/{name}.npy', y)\n"


def programs(source, folder):
    """(name, environment, saving script or None, script) of each runtime."""
    for name, save, run, ending in (
        ("cairn", None, CAIRN, ""),
        ("onnxruntime", SAVE_ORT, ORT, ".onnx"),
        ("onnxruntime .ort", SAVE_ORT, ORT, ".ort"),
        ("openvino", SAVE_OPENVINO, OPENVINO, ""),
    ):
        facts = {"folder": folder, "source": str(source), "ending": ending, "name": name}
        yield name, save and save.format(**facts), (run + WRITE).format(**facts)


def timed(words, environment):
    """Seconds, processor seconds, largest MiB of one process."""
    begin = time.perf_counter()
    process = subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, text=True)
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(errors.strip().splitlines()[-1] if errors.strip() else f"exit status {process.returncode}")
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def measure(model, runs, environment, cairn):
    import nets
    import numpy as np
    from compare import Case, ensure_files

    source = ensure_files([Case(model, "cairn", "default", "fp32", model, 1, 1)]) / f"{model}.onnx"
    with tempfile.TemporaryDirectory() as folder:
        x = nets.make_input(model, 1)
        np.save(f"{folder}/x.npy", x)
        shape = ",".join(map(str, x.shape))
        subprocess.run([cairn, "convert", source, "-o", f"{folder}/model.om", f"--input-shape=x:{shape}", "--json"],
                       check=True, stdout=subprocess.DEVNULL)  # fmt: skip
        results = {}
        for name, save, run in programs(source, folder):
            try:
                if save:
                    timed([PEERS, "-c", save], environment)
                results[name] = ([PEERS, "-c", run], [])
            except RuntimeError as error:
                print(f"{model:12} {name:17} {error}")
        for _ in range(runs + 1):
            for words, found in results.values():
                found.append(timed(words, environment))
        values = {name: np.load(f"{folder}/{name}.npy").ravel() for name in results}
        expected = values["cairn"]
        for name, (_, found) in results.items():
            wall, processor, memory = zip(*found[1:])  # the first warms the page cache
            error = np.abs(values[name] - expected).max() / np.abs(expected).max()
            print(f"{model:12} {name:17} {min(wall):7.3f} {statistics.median(wall):7.3f} {statistics.median(processor):9.3f}"
                  f" {statistics.median(memory):8.0f}   {error:.0e}", flush=True)  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=["bert", "mobilenetv2", "resnet50"])
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--cairn", help="folder of the Python package; its command: $CAIRN")
    options = parser.parse_args()
    environment = dict(os.environ, PYTHONPATH=options.cairn) if options.cairn else dict(os.environ)
    print("             runtime             least  median processor   MiB       differs from Cairn's by")
    for model in options.models:
        measure(model, options.runs, environment, os.environ.get("CAIRN", PEERS.parent / "cairn"))


if __name__ == "__main__":
    main()
