"""Cold start: from the start of a Python process to the first result, files in the page cache.

cold_start.py MODEL.pb|MODEL.onnx SHAPE [RUNS]: converts once for each runtime that is installed (Cairn: .om, ONNX Runtime:
its saved optimised model, which needs an .onnx), then starts processes in turn. Prints the least and the median."""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CAIRN = """
import numpy, cairn
model = cairn.load({path!r})
name = getattr(model.inputs[0], "name", model.inputs[0])
model.run({{name: numpy.zeros({shape}, numpy.float32)}})
"""
ORT = """
import numpy, onnxruntime
options = onnxruntime.SessionOptions()
options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
session = onnxruntime.InferenceSession({path!r}, options, ["CPUExecutionProvider"])
port = session.get_inputs()[0]
shape = [size if isinstance(size, int) else 1 for size in port.shape]  # its order of dims may be another
session.run(None, {{port.name: numpy.zeros(shape, numpy.float32)}})
"""
SAVE = """
import onnxruntime
options = onnxruntime.SessionOptions()
options.optimized_model_filepath = {path!r}
onnxruntime.InferenceSession({source!r}, options, ["CPUExecutionProvider"])
"""

ROOT = Path(__file__).resolve().parents[1]


def main(source, shape, runs=9):
    shape = tuple(int(size) for size in shape.split(","))
    bins = ROOT / ".venv/bin"
    peers = ROOT / ".venv-peers/bin/python"
    with tempfile.TemporaryDirectory() as folder:
        model = f"{folder}/model"
        subprocess.run([bins / "atc", f"--model={source}", f"--output={model}"], check=True, cwd=folder, stdout=subprocess.DEVNULL)
        starts = {"cairn": [bins / "python", "-c", CAIRN.format(path=model + ".om", shape=shape)]}
        onnx = str(Path(source).with_suffix(".onnx"))
        if peers.exists() and Path(onnx).exists():
            saved = f"{folder}/saved.onnx"
            subprocess.run([peers, "-c", SAVE.format(path=saved, source=onnx)], check=True)
            starts["onnxruntime"] = [peers, "-c", ORT.format(path=saved)]
        times = {name: [] for name in starts}
        for _ in range(runs + 1):
            for name, words in starts.items():
                begin = time.perf_counter()
                subprocess.run(words, check=True)
                times[name].append(time.perf_counter() - begin)
    for name, seconds in times.items():  # the first warms the page cache
        print(f"{name:12} least {min(seconds[1:]):.3f} s   median {statistics.median(seconds[1:]):.3f} s")


if __name__ == "__main__":
    main(*sys.argv[1:3], *map(int, sys.argv[3:4]))
