"""Nets of 16 or 8 bits beside the same nets in f32, and beside peers: python bench/narrow.py [CASE ...] [--isa ISA ...]
[--type bfloat16|float16|int8|quantize] [--threads 1] [--rounds 5] [--seconds 0.2] [--folder DIR] [--json FILE], in .venv-peers. A case
is one of breadth/cases/nets_*.py, or of nets.py. ISA is a value of CAIRN_ISA, or `own` for all that the processor has, where OpenVINO
(bfloat16, int8) and ONNX Runtime (int8) run as well. int8: a file of ONNX Runtime's quantizer for all; quantize: by `cairn quantize`. The sides of a case share a process and run in turns; a ratio is the median over rounds of the fastest runs' processor time."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "breadth"))
import nets  # noqa: E402

VISION = ("unet", "vision_transformer", "convnext", "efficientnet", "mobilenet_v3", "densenet", "yolo_detector", "resnext")
OTHER = ("lstm", "gru", "llama_block_rotary", "gpt_token_with_cache", "translation_transformer", "wavenet", "conformer_block")
USUAL = ("resnet50", "mobilenetv2", "bert", *(f"nets_vision.{name}" for name in VISION), *(f"nets_other.{name}" for name in OTHER))
SIDES = ("f32", None, "openvino", "ort")  # None: the net in few bits


def write(case, folder):
    """The net's file, with its inputs beside it."""
    path = folder / f"{case}.onnx"
    if path.with_suffix(".npz").exists():
        return path
    if case in nets.NETS:
        subprocess.run([sys.executable, HERE / "make_models.py", "onnx", case, folder], check=True)
        np.savez(path.with_suffix(".npz"), **nets.make_inputs(case, 1))
        return path
    import infer

    return infer.write(case, argparse.Namespace(folder=folder))


def openvino_runner(path, feeds, threads, precision):
    import openvino

    core = openvino.Core()
    model = core.read_model(str(path))
    model.reshape({name: list(value.shape) for name, value in feeds.items()})
    settings = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": precision,
                "PERFORMANCE_HINT": "LATENCY", "CPU_DENORMALS_OPTIMIZATION": True, "ENABLE_CPU_PINNING": False}  # fmt: skip
    request = core.compile_model(model, "CPU", settings).create_infer_request()
    for name, value in feeds.items():
        request.set_tensor(name, openvino.Tensor(value))
    return lambda: request.infer(share_outputs=True)


def ort_runner(path, feeds, threads):
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads, settings.inter_op_num_threads = threads, 1
    settings.add_session_config_entry("session.set_denormal_as_zero", "1")
    session = onnxruntime.InferenceSession(str(path), settings, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, feeds)


def write_low(path, kind, feeds):
    """The file of the net in few bits."""
    import cairn
    import make_models

    isa = f".{os.environ.get('CAIRN_ISA', 'own')}" if kind == "quantize" else ""  # what pays depends on it
    low = path.with_suffix(".int8.onnx" if kind == "int8" else f".{kind}{isa}.om")
    if low.exists():
        return low
    if kind == "int8":
        make_models.make_int8(path.stem, path.parent, [feeds])
    elif kind == "quantize":
        cairn.quantize(str(path), str(path.with_suffix(".npz")), str(low))
    else:
        cairn.convert(str(path), str(low), precision_mode=f"mixed_{kind}")
    return low


def fastest(runs, seconds):
    """The least processor time of each, run in turns."""
    least, end = [float("inf")] * len(runs), time.perf_counter() + seconds * len(runs)
    while time.perf_counter() < end:
        for i, run in enumerate(runs):
            start = time.process_time()
            run()
            least[i] = min(least[i], time.process_time() - start)
    return least


def measure(path, options):
    """Worker: the fastest runs of each round, by side."""
    import cairn

    with np.load(path.with_suffix(".npz")) as arrays:
        feeds = {name: np.ascontiguousarray(arrays[name]) for name in arrays.files}
    low = write_low(path, options.type, feeds)
    models = [cairn.load(str(file), threads=options.threads) for file in (path, low)]
    runs = [lambda model=model: model.run(feeds) for model in models]
    if "CAIRN_ISA" not in os.environ and options.type in ("bfloat16", "int8"):
        whole = options.type == "int8"
        runs.append(openvino_runner(low if whole else path, feeds, options.threads, "f32" if whole else "bf16"))
        runs += [ort_runner(low, feeds, options.threads)] if whole else []
    fastest(runs, 0.1)
    print("ROUNDS " + json.dumps([fastest(runs, options.seconds) for _ in range(options.rounds)]))


def compare(case, isa, options):
    environment = {key: value for key, value in os.environ.items() if key != "CAIRN_ISA"}
    if isa != "own":
        environment["CAIRN_ISA"] = isa
    command = [sys.executable, __file__, case, "--worker", "--type", options.type, "--folder", options.folder]
    command += [word for name in ("threads", "rounds", "seconds") for word in (f"--{name}", getattr(options, name))]
    done = subprocess.run(list(map(str, command)), env=environment, capture_output=True, text=True)
    line = next((line for line in done.stdout.splitlines() if line.startswith("ROUNDS ")), None)
    if line is None:
        raise RuntimeError(f"{case}: {done.stderr.strip().splitlines()[-1:]}")
    rounds = json.loads(line[len("ROUNDS ") :])
    row = {"case": case, "isa": isa, "ms": [1e3 * min(times) for times in zip(*rounds)]}
    for i, name in enumerate(SIDES):
        if name and len(rounds[0]) > i:
            row[name] = statistics.median(times[1] / times[i] for times in rounds)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("cases", nargs="*", default=USUAL)
    parser.add_argument("--isa", nargs="*", default=["avx2", "avx512", "own"])
    parser.add_argument("--type", choices=("bfloat16", "float16", "int8", "quantize"), default="bfloat16")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.2, help="of each side and round")
    parser.add_argument("--folder", type=Path, help="keeps the nets")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return measure(options.folder / f"{options.cases[0]}.onnx", options)
    kept = options.folder or tempfile.TemporaryDirectory()
    options.folder = Path(getattr(kept, "name", kept)) if options.folder is None else kept
    rows = []
    for case in options.cases:
        write(case, options.folder)
        for isa in options.isa:
            rows.append(row := compare(case, isa, options))
            ratios = "  ".join(f"of {name} {row[name]:.2f}" for name in SIDES if name in row)
            print(f"{case:<38} {isa:<8} {ratios:<44} ms {' '.join(f'{ms:.3g}' for ms in row['ms'])}", flush=True)
    for isa in options.isa:
        for name in filter(None, SIDES):
            ratios = sorted((row[name], row["case"]) for row in rows if row["isa"] == isa and name in row)
            if ratios:
                print(f"{isa} of {name}: median {statistics.median(ratio for ratio, _ in ratios):.2f}, worst {ratios[-1][0]:.2f} ({ratios[-1][1]})")
    print(f"load {os.getloadavg()[0]:.1f}")
    if options.json:
        options.json.write_text(json.dumps({"load": os.getloadavg(), "rows": rows}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
