"""Many nets of all kinds, so that a change is judged by more than chosen ones: ./dev bench --breadth [WORDS ...] [--quick]
[--only train|infer] [--threads 2] [--rounds 4] [--seconds 6] [--json FILE [--go-on]] [--write docs/dev/breadth.md] [--keep FOLDER].

Training graphs (cases/tf1_*.py, tf2_*.py) run on stock TensorFlow and on Cairn, nets for inference (cases/nets_*.py; batch 1) on Cairn
and on the better of ONNX Runtime and OpenVINO through their Python APIs (of those that compute f64 as f64). The sides work in turns, one at a time. Ratios are Cairn's
figure over the other's, below 1 Cairn is better: `wall` and `cpu` time of a step or run, `first`: time of the first one with all that
is compiled for it, `memory`: peak of the process; `engine`: share of the numeric operators that ran on Cairn's engine.
Equal: losses of ten steps within 1e-3, or within thrice what stock TensorFlow differs from itself on another number of threads;
results of inference within 1e-3 of the largest value. The exit status is 1 where a case fails or differs.
"""

import argparse
import ast
import json
import os
import platform
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path

import infer
import side
import train

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
KINDS = {"train": (("tf1_", "tf2_"), train, "Training", 1.05), "infer": (("nets_",), infer, "Inference", 1.10)}
RATIOS = ("wall", "cpu", "first", "memory")
HEAD = ("case", "equal", *RATIOS, "engine", "ms")
FORM = "{:<39}{:>6}{:>7}{:>7}{:>7}{:>8}{:>8}  {}"


def cases_of(prefixes):
    """Names FILE.FUNCTION of the public functions without arguments."""
    for path in sorted((HERE / "cases").glob("*.py")):
        if path.name.startswith(prefixes):
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.FunctionDef) and not node.args.args and not node.args.vararg and not node.name.startswith("_"):
                    yield f"{path.stem}.{node.name}"


def cells(row):
    """One row of the table; `row` as the module of its kind gives it, with `case` and perhaps `error`."""
    if "error" in row:
        return [row["case"], "error", *[""] * 5, row["error"].splitlines()[0]]
    times = row.get("ms", {})
    named = " ".join(f"{1e3 * value:.0f} us" if value < 0.1 else f"{value:.3g}" for value in times.values())
    return [
        row["case"],
        {True: "yes", False: f"{row['difference'] or 9:.0e}", None: "?"}[row["equal"]],
        *(f"{row[ratio]:.2f}" if ratio in row else "" for ratio in RATIOS),
        f"{row['share']:.0%}" if "share" in row else "part" if row["reasons"] else "all",
        named or "; ".join(row["reasons"]),
    ]


def summary(rows, limit):
    """Medians, worst and counts, as lines."""
    good = [row for row in rows if "error" not in row]
    failed = [row["case"] for row in rows if "error" in row]
    parted = [row["case"] for row in good if row["equal"] is False]
    lines = [f"{len(rows)} cases, {len(failed)} failed{': ' * bool(failed)}{', '.join(failed)}; "
             f"{len(parted)} differ{': ' * bool(parted)}{', '.join(parted)}"]  # fmt: skip
    alone = [f"{row['case']} without {' and '.join(row['lost'])}" for row in good if row.get("lost")]
    if alone:
        lines.append(f"peers that cannot run a net: {', '.join(alone)}")
    for ratio in RATIOS:
        values = sorted(((row[ratio], row["case"]) for row in good if ratio in row), reverse=True)
        if values:
            bound = limit if ratio in ("wall", "cpu") else 1.3
            above = sum(value > bound for value, _ in values)
            worst = ", ".join(f"{case} {value:.2f}" for value, case in values[:6])
            lines.append(f"{ratio}: median {statistics.median(v for v, _ in values):.2f}, {above} above {bound:.2f}; worst {worst}")
    return lines


def machine():
    """The processor, its number of threads, the load and the versions compared."""
    model = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    names = ("cairn", "onnxruntime", "openvino", "torch")
    ask = "from importlib.metadata import version; print(version('tensorflow-cpu'))"
    stock = subprocess.run([ROOT / ".venv/bin/python", "-c", ask], capture_output=True, text=True, check=True).stdout.strip()
    return {
        "processor": model[1] if model else platform.machine(),
        "processors": os.cpu_count(),
        "load": os.getloadavg(),
        "versions": {**{name: metadata.version(name) for name in names}, "tensorflow": stock},
        "date": time.strftime("%Y-%m-%d"),
    }  # fmt: skip


def run_kind(kind, options, earlier, save):
    """The rows of the cases asked for; those of `earlier` are not run again."""
    prefixes, module, title, limit = KINDS[kind]
    names = [name for name in cases_of(prefixes) if not options.words or any(word in name for word in options.words)]
    quick = module.Quick(options) if options.quick else None
    rows = list(earlier.values())
    if names:
        print(f"\n{title}\n" + FORM.format(*HEAD), flush=True)
    try:
        for name in names:
            if name in earlier:
                continue
            try:
                row = quick.compare(name) if quick else module.compare(name, options)
            except side.Failed as failed:
                row = {"error": str(failed)}
            except Exception as failed:  # a net that torch cannot export must not end a run of an hour
                row = {"error": f"{type(failed).__name__}: {failed}"}
            rows.append({"case": name, **row})
            print(FORM.format(*cells(rows[-1]))[:100], flush=True)
            save(kind, rows)
    finally:
        if quick:
            quick.end()
    if rows:
        print("\n".join(summary(rows, limit)), flush=True)
    return rows


def page(results, about, options):
    """docs/dev/breadth.md."""
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    load = ", ".join(f"{each:.1f}" for each in about["load"])
    text = [
        "# Breadth: many nets of all kinds",
        "",
        "Made by `./dev bench --breadth --write docs/dev/breadth.md`; `./dev bench --breadth --help` says what the columns mean. All",
        "ratios are Cairn's figure over stock TensorFlow's (training) or the better of ONNX Runtime's and OpenVINO's (inference, batch",
        "1): below 1 Cairn is better.",
        "",
        f"{about['date']}, {about['processor']}, {options.threads} threads of {about['processors']}, load {load}. {versions}.",
        *([options.note] if options.note else []),
    ]
    for kind, rows in results.items():
        if rows:
            prefixes, _, title, limit = KINDS[kind]
            absent = sorted(set(cases_of(prefixes)) - {row["case"] for row in rows})
            text += [
                "",
                f"## {title}",
                "",
                *(f"- {line}" for line in summary(rows, limit)),
                *([f"- not run: {', '.join(absent)}"] if absent else []),
                "",
            ]
            order = "Cairn, then peers" if kind == "infer" else "stock, Cairn"
            text += ["| " + " | ".join((*HEAD[:-1], f"ms ({order})")) + " |", "|---|" + "--:|" * (len(HEAD) - 1)]
            text += [
                "| " + " | ".join(cell.replace("|", "/") for cell in cells(row)) + " |" for row in sorted(rows, key=lambda row: row["case"])
            ]
    options.write.write_text("\n".join(text) + "\n")


def main():
    parser = argparse.ArgumentParser(prog="./dev bench --breadth", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("words", nargs="*", help="only cases whose FILE.NAME holds one of them")
    parser.add_argument("--quick", action="store_true", help="correctness alone: 3 steps or one run of each")
    parser.add_argument("--only", choices=list(KINDS))
    parser.add_argument("--threads", type=int, default=min(2, os.cpu_count()))
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument(
        "--seconds", type=float, default=6, help="of one side's steps of one case, all rounds together (default %(default)s)"
    )
    parser.add_argument("--json", type=Path)
    parser.add_argument("--go-on", action="store_true", help="keep the rows of --json FILE that are no errors")
    parser.add_argument("--write", type=Path, metavar="PAGE")
    parser.add_argument("--note", help="a sentence for the page, such as what else the machine did")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where logs and reports go, and stay")
    options = parser.parse_args()
    if options.go_on and not options.json:
        parser.error("--go-on needs --json FILE")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the sides end too
    sys.path.insert(0, str(HERE))
    options.root, about = ROOT, machine()
    with tempfile.TemporaryDirectory() as folder:
        options.folder = (options.keep or Path(folder)).resolve()
        options.folder.mkdir(parents=True, exist_ok=True)
        earlier = json.loads(options.json.read_text()) if options.go_on and options.json.exists() else {}
        kinds = [kind for kind in KINDS if options.only in (None, kind)]
        results = {kind: earlier.get(kind, []) for kind in KINDS}

        def save(kind, rows):
            results[kind] = rows
            if options.json:
                options.json.write_text(json.dumps({**about, "threads": options.threads, **results}, indent=1))

        for kind in kinds:
            done = {row["case"]: row for row in results[kind] if "error" not in row}
            results[kind] = run_kind(kind, options, done, save)
    if options.write:
        page(results, about, options)
    return int(any("error" in row or row["equal"] is False for rows in results.values() for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
