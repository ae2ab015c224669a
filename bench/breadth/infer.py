"""An inference case on Cairn and on the better of ONNX Runtime and OpenVINO, batch 1: equal results, time of a run, time to the
first result, memory."""

import importlib
import os
import statistics
import sys
import warnings

import numpy as np
import side

PEERS = ("onnxruntime", "openvino")
SIDES = ("cairn", *PEERS)


def start(name, engine, options):
    command = [sys.executable, "-B", options.root / "bench/breadth/infer_worker.py", engine]
    more = side.watched(options.folder / name) if engine == "cairn" else {}
    return side.Side(engine, command, options.folder / f"{name}.{engine}.log", BREADTH_THREADS=str(options.threads), **more)


def write(case, options):
    """Makes the net's file and its inputs' beside it, and gives the path."""
    import onnx
    import torch

    warnings.filterwarnings("ignore")
    file, function = case.split(".")
    torch.manual_seed(3)
    made = getattr(importlib.import_module("cases." + file), function)()
    path = options.folder / f"{case}.onnx"
    if isinstance(made[0], torch.nn.Module):
        net, values = made[0].eval(), made[1:]
        names = [f"x{i}" for i in range(len(values))]
        torch.onnx.export(net, tuple(map(torch.from_numpy, values)), str(path), dynamo=False, opset_version=18, input_names=names)
        model = onnx.load(path)
        kept = {entry.name for entry in model.graph.input}
        feeds = {name: value for name, value in zip(names, values, strict=True) if name in kept}
    else:
        model, feeds = made
        onnx.save(model, path)
    np.savez(path.with_suffix(".npz"), **feeds)
    return path


def judge(path):
    """The largest difference of Cairn's results from ONNX Runtime's, as a part of the largest value."""
    with np.load(f"{path}.cairn.npz") as found, np.load(f"{path}.onnxruntime.npz") as wanted:
        worst = 0.0
        for name in wanted.files:
            a, b = found[name].astype(np.float64), wanted[name].astype(np.float64)
            if a.shape != b.shape:
                raise side.Failed(f"cairn: a result of shape {a.shape}, ONNX Runtime's has {b.shape}")
            worst = max(worst, float(np.abs(a - b).max(initial=0) / max(1e-30, np.abs(b).max(initial=0))))
    return {"difference": worst, "equal": worst <= 1e-3}


def narrower(path, peer):
    """Whether a peer's results in f64 have the digits of f32 alone: it computes in another type than the net's."""
    with np.load(f"{path}.{peer}.npz") as found, np.load(f"{path}.onnxruntime.npz") as wanted:
        wide = [name for name in wanted.files if wanted[name].dtype == np.float64]
        return any(np.abs(found[name] - wanted[name]).max(initial=0) > 1e-9 * np.abs(wanted[name]).max(initial=0) for name in wide)


class Quick:
    """Runs many nets in one process a side, for their results alone."""

    def __init__(self, options):
        self.options, self.sides = options, {}

    def compare(self, case):
        path = write(case, self.options)
        for engine in ("cairn", "onnxruntime"):
            if engine not in self.sides:
                self.sides[engine] = start("quick", engine, self.options)
        side.steps_file(self.options.folder / "quick").unlink(missing_ok=True)
        try:
            for each in self.sides.values():
                each.ask(f"case {path}")
        except side.Failed:
            self.end()
            raise
        return {**judge(path), "reasons": side.reference(self.options.folder / "quick")}

    def end(self):
        for each in self.sides.values():
            each.end()
        self.sides = {}


def compare(case, options):
    path = write(case, options)
    sides, first, lost = {}, {}, {}
    try:
        for engine in SIDES:
            sides[engine] = start(case, engine, options)
        for each in sides.values():
            each.ask("peak")  # all have imported their engine before one is timed
        for engine in SIDES:
            try:
                first[engine] = sides[engine].ask(f"case {path}")["first"]
                sides[engine].ask("run 0")
            except side.Failed as failed:
                if engine == "cairn":
                    raise
                lost[engine] = str(failed)
                sides.pop(engine).end()
        rounds = []
        for turn in range(options.rounds):
            order = list(sides)[:: 1 if turn % 2 else -1]
            rounds.append({engine: sides[engine].ask(f"run {options.seconds / options.rounds / 4}") for engine in order})
        peaks = {engine: each.ask("peak")["peak"] for engine, each in sides.items()}
    finally:
        for each in sides.values():
            each.end()
    for peer in set(PEERS) & set(sides) if "onnxruntime" in sides else ():
        if narrower(path, peer):
            lost[peer] = "computes in f32 what the net computes in f64"
    peers = [peer for peer in PEERS if peer in sides and peer not in lost]
    if not peers:
        raise side.Failed("; ".join(lost.values()))
    verdict = judge(path) if "onnxruntime" in sides else {"difference": None, "equal": None}
    os.remove(path)

    def ratio(key):
        return statistics.median(each["cairn"][key] / min(each[peer][key] for peer in peers) for each in rounds)

    return {
        **verdict,
        "wall": ratio("median"),
        "cpu": ratio("cpu"),
        "first": first["cairn"] / min(first[peer] for peer in peers),
        "memory": peaks["cairn"] / min(peaks[peer] for peer in peers),
        "ms": {engine: 1e3 * min(each[engine]["median"] for each in rounds) for engine in sides},
        "first_s": first,
        "peak_mib": peaks,
        "reasons": side.reference(options.folder / case),
        "lost": lost,  # peers that cannot run the net, or not in its types
    }
