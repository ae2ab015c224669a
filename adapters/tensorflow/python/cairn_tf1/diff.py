"""`cairn diff --script train.py --steps N -- args`: trains a script on stock TensorFlow and on Cairn with equal seeds, finds the
first run in which a fetched number or a variable differs by more than rounding explains, in it the first operator that computes
something else, with its script line, and the kernel or pass that makes it so.

What rounding explains is measured: stock TensorFlow also runs with every variable moved by its last bit and on one thread.
Exit 0: no difference; 1: it cannot run here; 2: differs."""

import argparse
import contextlib
import ctypes
import hashlib
import json
import os
import re
import sys
from pathlib import Path

import numpy as np
from cairn import _ending as ending

from cairn_tf1 import diff_page, recorded, truth

FACTOR = 8.0  # of what the last bit of the variables made of a value
LEAST = 1e-5  # of the largest element
ONE_THREAD = {"CAIRN_RECORD_NUDGE": "1", "TF_NUM_INTRAOP_THREADS": "1", "OMP_NUM_THREADS": "1"}


def parse(words):
    parser = ending.Parser(prog="cairn diff --script", description=__doc__.split("\n\n")[0].split(": ", 1)[1])
    # "?": else `--script --help` would be a fault
    parser.add_argument("--script", type=Path, nargs="?", help="a training script, migrated or of TensorFlow 1")
    parser.add_argument("--tf2", action="store_true", help="a script of TensorFlow 2")
    parser.add_argument("--steps", type=int, help="training runs to compare (default 20; with --truth the one to judge, default 1)")
    parser.add_argument("--truth", choices=["f64"], help="judge the rounding of both sides by a run in float64 (see cairn_tf1.truth)")
    parser.add_argument("--stock", type=Path, help="keep stock TensorFlow's runs in this folder, and take those that are there")
    parser.add_argument("--no-cause", action="store_true", help="do not look for the kernel or pass, which takes further runs")
    parser.add_argument("-o", "--output", type=Path, default=Path("cairn_diff"), help="work folder (default %(default)s)")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--timeout", type=float, default=3600, help="seconds that one run may take (default %(default)s)")
    parser.add_argument("arguments", nargs="*", metavar="args", help="of the script, after --")
    options = parser.parse_args(words)
    if not options.script:
        parser.error("argument --script: expected one argument")
    options.steps = options.steps or (1 if options.truth else 20)
    return options


def main(words=None):
    options = parse(words)
    if not options.script.is_file():
        return fault(f"there is no script {options.script}")
    options.output.mkdir(parents=True, exist_ok=True)
    with contextlib.closing(Runs(options)) as runs:
        if options.truth:
            return truth.main(runs)
        result, rows = diff(runs)
    ending.write_text(options.output / "difference.json", json.dumps(result, indent=1))
    ending.write_text(options.output / "index.html", diff_page.page(result, rows, FACTOR, result["least"]))
    if options.json:
        print(json.dumps(result, indent=1))
    else:
        tell(result, options)
    return 0 if result["equal"] else 2


def diff(runs):
    """The result, and a row for each value compared."""
    options = runs.options
    stock, moved, cairn = runs.stock("stock"), runs.stock("nudged", **ONE_THREAD), runs.train("cairn")
    runs.trained = sorted({int(key.split(":")[1]) for key in stock if key.startswith("after:")})
    rows = compare(stock, moved, cairn, runs.least())
    result = {"script": options.script.name, "arguments": options.arguments, "steps": options.steps, "compared": len(rows),
              "equal": not any(row["off"] for row in rows), "first": [], "culprit": None, "rows": [], "unseen": "",
              "least": runs.least(), "eager": runs.about("eager")}  # fmt: skip
    if not result["equal"]:
        step = min(row["step"] for row in rows if row["off"])
        result["first"] = [row for row in rows if row["off"] and row["step"] == step]
        result["step"] = step
        result |= look_inside(runs, step, result["first"])
        if result["culprit"] and not options.no_cause:
            result["culprit"] |= find_cause(runs, step, stock, moved)
    return result, rows


def fault(sentence):
    return ending.refuse("diff", sentence, 1)


class Runs:
    """Runs of the script, each in a process of its own."""

    def __init__(self, options):
        self.options = options
        self.server = recorded.Server()
        self.kept = (options.stock or options.output).resolve()
        self.kept.mkdir(parents=True, exist_ok=True)
        self.trained = []  # which runs of the script train
        if options.stock:
            self._check_kept()

    def close(self):
        self.server.close()

    def _check_kept(self):
        """What is kept must be of the same script."""
        options, file = self.options, self.kept / "stock.json"
        mine = {"script": hashlib.sha256(options.script.read_bytes()).hexdigest(), "arguments": options.arguments, "steps": options.steps}
        if file.exists() and json.loads(file.read_text()) != mine:
            sys.exit(fault(f"--stock {options.stock} holds runs of another script, or with other arguments or steps"))
        file.write_text(json.dumps(mine))

    def about(self, what):
        with np.load(self.kept / "stock.npz") as arrays:
            return arrays[what].item()

    def least(self):
        """What is allowed of the largest element in any case: more when the script asks for a lower precision."""
        return max(LEAST, 4 * self.about("roundoff"))

    def until(self, run):
        """Ends the script behind that run, or at the next one that trains."""
        return {"CAIRN_RECORD_STEPS": str(sum(each <= run for each in self.trained) + (run not in self.trained))}

    def stock(self, name, **environment):
        """A run on stock TensorFlow, kept between diffs when that is asked for."""
        file = self.kept / f"{name}.npz"
        if self.options.stock and file.exists():
            with np.load(file) as arrays:
                return {key: arrays[key] for key in arrays.files if key not in ("trained", *recorded.ABOUT)}
        return self.train(name, "tensorflow", self.kept, **environment)

    def train(self, name, engine="cairn", folder=None, **environment):
        """What one run recorded: {key: array}."""
        options = self.options
        if not options.json:
            print(f"{name}: {engine}", flush=True)
        place = argparse.Namespace(**{**vars(options), "output": folder or options.output})
        environment = {"CAIRN_RECORD_STEPS": str(options.steps), **environment}
        try:
            found = recorded.train(options.script.resolve(), place, name, engine, environment, ["--tf2"] if options.tf2 else [], self.server)
        except recorded.DoesNotRun as fact:
            sys.exit(fault(fact))
        if not found.pop("trained"):
            sys.exit(fault("no run of the script updates variables: there is no training to compare"))
        return found

    def inside(self, name, run, **environment):
        """A run on stock TensorFlow that is looked into: {(operator, result): array} and the operators; nothing when the run cannot
        be looked into."""
        folder = self.kept / f"{name}.{run}"
        file = folder / "values.json"
        if not (self.options.stock and file.exists()):
            self.stock(f"{name}.{run}", **self.until(run), **environment, CAIRN_RECORD_INSIDE=str(run), CAIRN_RECORD_FOLDER=str(folder))
        if not file.exists():
            return {}, {}
        meta = json.loads(file.read_text())
        with np.load(folder / "values.npz") as arrays:
            return {(node, index): arrays[f"v{i}"] for i, (node, index) in enumerate(meta["values"])}, meta["nodes"]


def judged(found, expected, moved, least):
    """error, allowed, size, off"""
    error, size = recorded.difference(found, expected)
    noise = recorded.difference(moved, expected)[0] if moved is not None else 0.0
    least = max(least, 4 * float(np.finfo(expected.dtype).eps) if expected.dtype.kind == "f" else 0.0)
    allowed = FACTOR * noise + least * size
    return {"error": error, "allowed": allowed, "size": size, "off": not error <= allowed}


def compare(stock, moved, cairn, least):
    """A row for each value fetched and each variable behind each training run, in that order."""
    rows = []
    for key, expected in stock.items():
        kind, rest = key.split(":", 1)
        if kind == "variable":
            continue  # its last value, which stands behind the last training run as well
        run, _, name = rest.partition(":")
        kind = "variable" if kind == "after" else kind
        found = cairn.get(key)
        row = judged(found, expected, moved.get(key), least) if found is not None else {"error": float("inf"), "allowed": 0.0, "size": 0.0, "off": True}
        rows.append({"step": int(run), "kind": kind, "name": name} | row)
    return sorted(rows, key=lambda row: row["step"])


def look_inside(runs, step, first):
    """The operators of the first run that differs."""
    golden, nodes = runs.inside("inside.stock", step)
    if not nodes:
        return {"unseen": "eager code calls its operators one by one, which TensorFlow itself runs; what differs came there from runs before"}
    moved, _ = runs.inside("inside.nudged", step, **ONE_THREAD)
    folder = runs.options.output.resolve() / "inside.cairn"
    runs.train("inside.cairn", **runs.until(step), CAIRN_RECORD_INSIDE=str(step), CAIRN_RECORD_FOLDER=str(folder))
    made, held, shown = {}, set(), {}
    for entry, found in dumped(folder):
        op, index = entry["op"], entry["index"]
        holds = [source.split(":", 1)[1] for source in entry["sources"]]
        held.update(holds)
        shown[op] = max(index, shown.get(op, 0))
        if op not in nodes or (op, index) not in golden or golden[op, index].size != found.size:
            continue
        # Of an operator that several kernels make together the last one gives the result.
        earlier = made.pop((op, index), {"kernels": [], "holds": []})
        kernels, holds = (list(dict.fromkeys(names)) for names in (earlier["kernels"] + [entry["kernel"]], earlier["holds"] + holds))
        expected = golden[op, index]
        made[op, index] = ({"name": op, "index": index, "op": nodes[op]["op"], "line": nodes[op]["line"], "kernels": kernels,
                            "kernel": "; ".join(kernels), "holds": holds}
                           | judged(found.reshape(expected.shape), expected, moved.get((op, index)), runs.least()))  # fmt: skip
    # Further results of an operator with others than TensorFlow's are something else: batch statistics, not running ones.
    last = {op: index for op, index in sorted(golden)}
    rows = [row for (op, index), row in made.items() if index == 0 or shown[op] == last[op]]
    outside = sorted({op for op, _ in golden} - held)
    return {"rows": rows, "outside": outside, "culprit": blame(rows, nodes) or update_of(first, nodes)}


def dumped(folder):
    """(entry of the manifest, array) of the engine's dump, in the order of computation."""
    entries = []
    for manifest in sorted(folder.rglob("manifest.jsonl")):
        for line in manifest.read_text().splitlines():
            entry = json.loads(line)
            if entry["kind"] == "output":
                entries.append((re.findall(r"\d{16}", entry["file"])[-1], entry, manifest))  # microseconds
    for _, entry, manifest in sorted(entries, key=lambda each: each[0]):
        yield entry, recorded.widened(np.load(manifest.with_name(entry["file"])))


def blame(rows, nodes):
    """The first operator that is off although what it was made from is not, as far as the engine shows it."""
    off = {row["name"] for row in rows if row["off"]}
    first = recorded.first_faults({row["name"]: row["name"] in off for row in rows}, nodes)
    return next((row | {"kind": "operator"} for row in rows if row["off"] and row["name"] in first), None)


def update_of(first, nodes):
    """Everything computed agrees, a variable does not: its update."""
    for row in first:
        if row["kind"] != "variable":
            continue
        for name, node in nodes.items():
            if node["updates"] and row["name"] in node["inputs"]:
                return row | {"kind": "update", "variable": row["name"], "name": name, "op": node["op"], "line": node["line"], "kernel": ""}
    return None


def find_cause(runs, step, stock, moved):
    """Who makes it wrong: the kernel, when the reference engine's kernels do not; else the last pass of the shortest run of passes
    from the front with which it is wrong, found in log2 of their number of runs."""

    def is_wrong(name, **environment):
        found = runs.train(f"cause.{name}", **runs.until(step), **environment)
        return any(row["off"] for row in compare(stock, moved, found, runs.least()) if row["step"] <= step)

    if not is_wrong("reference", CAIRN_ENGINES="reference"):
        return {"cause": "kernel", "pass": ""}
    if is_wrong("plain", CAIRN_DISABLE="ALL"):
        return {"cause": "none", "pass": ""}
    names = [each["name"] for each in passes() if not each["required"]]
    right, wrong = 0, len(names)
    while wrong - right > 1:
        middle = (right + wrong) // 2
        if is_wrong(f"{middle}-passes", CAIRN_DISABLE=",".join(names[middle:])):
            wrong = middle
        else:
            right = middle
    return {"cause": "pass", "pass": names[wrong - 1]}


def passes():
    """The engine's, in order; rules behind passes."""
    library = ctypes.CDLL(os.environ.get("CAIRN_LIBRARY") or str(Path(__file__).parents[1] / "cairn" / "libcairn.so"))
    library.cairn_free_text.argtypes = [ctypes.c_void_p]
    text = ctypes.c_void_p()
    library.cairn_describe_passes(ctypes.byref(text))
    described = json.loads(ctypes.string_at(text).decode())
    library.cairn_free_text(text)
    return described


def tell(result, options):
    if result["equal"]:
        print(f"no difference beyond rounding: {result['compared']} values of {result['steps']} training runs")
    else:
        print(f"\nthe first run that differs is number {result['step']}:")
        for row in result["first"][:8]:
            print(f"  {row['kind']} {row['name']}: off by {row['error']:.3g}, rounding explains {row['allowed']:.3g}")
        for line in diff_page.told(result):
            print(line)
    if diff_page.eager(result):
        print(diff_page.eager(result))
    print(f"page: {options.output / 'index.html'}")


if __name__ == "__main__":
    ending.end_with("diff", main, 1)
