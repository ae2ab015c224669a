"""`cairn port --to mindspore PATH`: migrates a PyTorch script, trains the original with PyTorch and the result on the engine, with the
same weights, batches and random numbers, and compares the losses step by step and, where they differ, the layers.

`cairn port --weights FILE.pth -o FILE.ckpt`: a state dict of PyTorch as a checkpoint, by the cell it is for where --net names it.
Exit 0: equal; 1: not equal; 2: wrong use; 3: a script does not run."""

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
from cairn import _ending as ending

NEAR = 2e-4  # of the larger number: losses and layers that differ by less are equal


def parse(words):
    words = list(words)
    own, rest = (words[: words.index("--")], words[words.index("--") + 1 :]) if "--" in words else (words, [])
    parser = ending.Parser(prog="cairn port", usage="%(prog)s --to mindspore PATH [options] [-- arguments of the script]",
                                     description=__doc__.split("\n\n")[0].split(": ", 1)[1])  # fmt: skip
    parser.add_argument("path", nargs="?", type=Path, help="a script, or the folder of a project")
    parser.add_argument("--to", choices=["mindspore"], default="mindspore", help="what the script is migrated to")
    parser.add_argument("-m", "--main", help="the program's script, relative to the folder")
    parser.add_argument("-o", "--output", type=Path, help="work folder (cairn_port); the checkpoint of --weights")
    parser.add_argument("--steps", type=int, default=20, help="backward passes to compare (default %(default)s)")
    parser.add_argument("--torch", default=os.environ.get("CAIRN_TORCH_PYTHON", sys.executable), metavar="PYTHON",
                        help="the Python that has PyTorch [CAIRN_TORCH_PYTHON, else this one]")  # fmt: skip
    parser.add_argument("--timeout", type=float, default=3600, help="seconds that one run may take (default %(default)s)")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--weights", type=Path, metavar="FILE", help="convert this .pt or .pth file to a checkpoint")
    parser.add_argument("--net", metavar="SCRIPT:CLASS", help="the migrated script's cell that the weights are for")
    options = parser.parse_args(own)
    if (options.path is None) == (options.weights is None):
        parser.error("one of a PATH and --weights is needed")
    if os.sep in options.torch:  # scripts run in folders of their own
        options.torch = os.path.join(os.getcwd(), options.torch)
    options.arguments = rest
    return options


def main(words):
    options = parse(words)
    return convert(options) if options.weights else compare(options)


def refuse(sentence, code=2):
    return ending.refuse("port", sentence, code)


# ---- weights ----


def convert(options):
    from cairn.ms import torch_weights

    import mindspore

    try:
        state = torch_weights.read(options.weights)
    except (torch_weights.Refused, OSError) as fault:
        return refuse(fault)
    expected = None
    if options.net:
        script, _, name = options.net.partition(":")
        cell = runpy.run_path(script, run_name="cairn_port").get(name)
        if cell is None:
            return refuse(f"{script} has no {name}")
        cell = cell() if isinstance(cell, type) else cell
        expected = {key: value.shape for key, value in cell.parameters_and_names()}
    made, lost = torch_weights.mapped(state, expected)
    target = options.output or options.weights.with_suffix(".ckpt")
    mindspore.save_checkpoint([{"name": name, "data": mindspore.Tensor(value)} for name, value in made.items()], str(target))
    print(f"{target}: {len(made)} parameters, {sum(value.size for value in made.values())} numbers")
    for sentence in lost:
        print(f"  {sentence}")
    return 1 if lost else 0


# ---- comparison ----


def compare(options):
    if not options.path.exists():
        return refuse(f"there is no {options.path}")
    folder = (options.output or Path("cairn_port")).resolve()
    migrated, script = folder / "migrated", options.main or (options.path.name if options.path.is_file() else None)
    if script is None:
        found = programs(options.path)
        return refuse("which script is the program? --main names it" + (f": {', '.join(found)}" if found else ""))
    if migrated.exists() and not (folder / ending.WORK_MARK).exists():
        return refuse(f"{migrated} is not from an earlier cairn port and would be replaced; name another folder with -o")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ending.WORK_MARK).touch()
    shutil.rmtree(migrated, ignore_errors=True)
    beside = Path(__file__).parents[2] / "bin" / "cairn"  # of a folder of packages; else the environment's
    cairn = beside if beside.exists() else Path(sys.executable).with_name("cairn")
    command = [cairn, "migrate", "--to", "mindspore", options.path, "-o", migrated, "--json"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        return refuse(f"migration failed: {done.stderr.strip().removeprefix('error: migrate: ')}", 3)
    findings = [{"place": f"{file['path']}:{row['line']}", "text": f"{row['message']}: {row['advice']}"}
                for file in json.loads(done.stdout)["files"] for row in file["findings"] if row["severity"] != "note"]  # fmt: skip
    for file in migrated.rglob("*.py"):  # the loader that migration writes, in order as the others
        text = file.read_text(errors="surrogateescape")
        for drawn, fixed in (("np.random.permutation(len(self.dataset)) if self.shuffle else ", ""),
                             ("collate_fn or joined, sampler,", "collate_fn or joined, None,")):  # fmt: skip
            text = text.replace(drawn, fixed)
        file.write_text(text, errors="surrogateescape")
    root = options.path if options.path.is_dir() else options.path.parent
    here, steps = Path(__file__).parent, str(options.steps)
    expected, found = folder / "torch.npz", folder / "mindspore.npz"
    runs = {
        "torch": [options.torch, here / "port_torch.py", expected, steps, root.resolve() / script],
        "mindspore": [sys.executable, "-m", "cairn.ms.port_run", expected, found, steps, migrated / script],
    }
    for name, command in runs.items():
        record, log, home = command[2] if name == "torch" else found, folder / f"{name}.log", folder / f"{name}.run"
        record.unlink(missing_ok=True)
        home.mkdir(exist_ok=True)
        fault = run(command + options.arguments, home, log, options.timeout)
        if fault and name == "torch" and "No module named 'torch'" in fault:
            return refuse(f"{options.torch} has no PyTorch; --torch PYTHON names one that has", 3)
        if fault:
            text = "".join(f"\n  {each['place']}: {each['text']}" for each in findings[:20]) if name == "mindspore" else ""
            return refuse(f"{fault}; log: {log}{text}", 3)
    with np.load(expected) as a, np.load(found) as b:
        result = judged(dict(a), dict(b))
    result["findings"] = findings
    ending.write_text(folder / "port.json", json.dumps(result, indent=1))
    print(json.dumps(result, indent=1)) if options.json else tell(result)
    return 0 if result["equal"] else 1


def programs(folder):
    """Scripts of a folder that may be its program: those with a part for it, else those that no other imports."""
    scripts = {path.relative_to(folder): path.read_text(errors="replace") for path in sorted(folder.rglob("*.py"))}
    guarded = [path for path, text in scripts.items() if re.search(r"^if __name__ *==", text, re.MULTILINE)]
    whole = "\n".join(scripts.values())
    alone = [path for path in scripts if path.stem != "__init__" and not re.search(rf"import[^\n]*\b{path.stem}\b|\b{path.stem}\b import", whole)]
    return [str(path) for path in guarded or alone][:10]


def run(command, folder, log, timeout):
    """What went wrong, or nothing."""
    with open(log, "wb") as file:
        try:
            code = subprocess.run([str(word) for word in command], cwd=folder, stdout=file, stderr=file, timeout=timeout).returncode
        except subprocess.TimeoutExpired:
            return f"the script ran longer than {timeout:.0f} s"
    lines = log.read_text(errors="replace").strip().splitlines() or ["it said nothing"]
    return f"the script ended with {code}: {lines[-1]}" if code else None


def difference(a, b):
    """The largest difference as a share of the largest element."""
    if a.shape != b.shape:
        return float("inf")
    if not a.size:
        return 0.0
    a, b = a.astype(np.float64), b.astype(np.float64)
    both = np.isnan(a) & np.isnan(b)
    far = np.where(both, 0, np.abs(a - b))
    return float(far.max() / max(np.abs(np.where(both, 0, a)).max(), 1e-6)) if np.isfinite(far).all() else float("inf")


def judged(expected, found):
    """The verdict: losses step by step, layers of the first step in the order in which they ran. Weights in the
    end are told, and decide nothing: an optimizer makes much of the rounding of a gradient that is almost zero."""
    a, b = expected["losses"], found["losses"]
    steps = [{"step": i, "torch": float(x), "mindspore": float(y), "difference": difference(np.array([x]), np.array([y]))}
             for i, (x, y) in enumerate(zip(a, b))]  # fmt: skip
    layers = []
    outputs = {key.split(":", 2)[2]: value for key, value in found.items() if key.startswith("layer:")}
    for key, value in expected.items():
        if key.startswith("layer:"):
            name = key.split(":", 2)[2]
            share = difference(value, outputs[name]) if name in outputs else None
            layers.append({"layer": name, "difference": share})
    weights = [{"name": key[6:], "difference": difference(value, found[key])}
               for key, value in expected.items() if key.startswith("after:") and key in found]  # fmt: skip
    norms = {key: float(value) for key, value in expected.items() if key.startswith("grad:") and key in found}
    lost = [key for key, norm in norms.items() if norm > 1e-6 * max(norms.values()) and not found[key]]
    unlike = [row for row in steps if not row["difference"] <= NEAR * (1 + row["step"])]
    first = next((row for row in layers if row["difference"] is not None and not row["difference"] <= NEAR), None)
    reasons = []
    if len(a) != len(b) or not len(a):
        reasons.append(f"{len(a)} losses of PyTorch, {len(b)} of the migrated script")
    if unlike:
        row = unlike[0]
        reasons.append(f"the loss of step {row['step']} is {row['torch']:.7g}, and {row['mindspore']:.7g} here")
    if first:
        reasons.append(f"the first layer that differs is {first['layer'].split(':')[1] or 'the network'} ({first['difference']:.1e})")
    if lost:
        _, step, _, name = lost[0].split(":", 3)
        reasons.append(f"step {step} gives {name} no gradient here, and one of length {norms[lost[0]]:.1e} in PyTorch")
    missing = [str(each) for each in found["missing"]]
    if missing:
        reasons.append(f"without weights of PyTorch: {', '.join(missing[:5])}")
    compared = [row for row in layers if row["difference"] is not None]
    return {"equal": not reasons, "reasons": reasons, "steps": steps, "layers": layers, "layers_compared": len(compared),
            "weights": weights, "largest": max((row["difference"] for row in steps), default=None)}  # fmt: skip


def tell(result):
    print(f"{len(result['steps'])} losses, {result['layers_compared']} of {len(result['layers'])} layers, {len(result['weights'])} weights compared")
    for row in result["steps"][:5]:
        print(f"  step {row['step']}: {row['torch']:.7g}  {row['mindspore']:.7g}")
    for reason in result["reasons"]:
        print(f"  {reason}")
    print(f"equal: losses within {result['largest']:.1e}" if result["equal"] else "NOT equal")


if __name__ == "__main__":
    ending.end_with("port", lambda: main(sys.argv[1:]), 3)
