"""`python -m cairn_tf1.port PATH [options] -- args`: migrates a TensorFlow project into a work folder, trains it on stock
TensorFlow and on Cairn with equal seeds, compares everything that both computed and writes one page about it.

Stock TensorFlow also runs against itself, with one thread and with its other kernels: what two correct runs differ by is what
Cairn may differ by, times FACTOR. Exit 0: equal; 1: not equal; 2: wrong use; 3: the script cannot run here."""

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from cairn_tf1 import port_page, recorded

FACTOR = 4.0  # of the difference between two runs of stock TensorFlow
LEAST = 1e-4  # of the largest element: what rounding alone may do to a later step
OTHERWISE = {"TF_NUM_INTRAOP_THREADS": "1", "OMP_NUM_THREADS": "1", "TF_ENABLE_ONEDNN_OPTS": "0"}
RUNS = {"stock": ("tensorflow", {}), "again": ("tensorflow", OTHERWISE), "cairn": ("cairn", {})}


def parse(arguments):
    parser = argparse.ArgumentParser(prog="cairn port", description=__doc__.split("\n\n")[0].split(": ", 1)[1])
    parser.add_argument("path", type=Path, help="a script, or the folder of a project")
    parser.add_argument("-m", "--main", help="the program's entry script, relative to the folder; detected otherwise")
    parser.add_argument("-o", "--output", type=Path, default=Path("cairn_port"), help="work folder (default %(default)s)")
    parser.add_argument("--steps", type=int, default=20, help="training runs to compare (default %(default)s)")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--timeout", type=float, default=3600, help="seconds that one run may take (default %(default)s)")
    parser.add_argument("arguments", nargs="*", metavar="args", help="of the script, after --")
    return parser.parse_args(arguments)


def main(words=None):
    options = parse(words)
    if not options.path.exists():
        return refuse(f"there is no {options.path}")
    options.output.mkdir(parents=True, exist_ok=True)
    migrated = options.output.resolve() / "migrated"
    migration = migrate(options, migrated)
    script = migrated / entry(options, migration)
    runs = {}
    for name, (engine, settings) in RUNS.items():
        say(options, f"{name:6} {engine} {script.name} {shlex.join(options.arguments)}")
        runs[name] = train(script, options, name, engine, settings, migration)
    result = compare(runs, options) | {"script": script.name, "arguments": options.arguments}
    result["clusters"] = clusters(options.output / "cairn.report.json")
    result["aliases"] = json_of(options.output / "stock.aliases.json")
    result["edits"] = edits(migration)
    if not result["equal"]:
        words = ["cairn", "diff", "--script", str(script), "--steps", str(options.steps)]
        words += ["--tf2"] if migration["tf"] == 2 else []
        words += ["--", *options.arguments] if options.arguments else []
        result["next"] = shlex.join(words) + " names the first operator that computes something else"
    if not result["clusters"].get("on_engine"):
        return refuse("nothing of the script ran on the engine: there is nothing to compare", 3)
    (options.output / "port.json").write_text(json.dumps(result, indent=1))
    (options.output / "index.html").write_text(port_page.page(result, FACTOR, LEAST))
    if options.json:
        print(json.dumps(result, indent=1))
    else:
        tell(result, options)
    return 0 if result["equal"] else 1


def say(options, text):
    if not options.json:
        print(text, flush=True)


def refuse(sentence, code=2):
    print(f"cairn port: {sentence}", file=sys.stderr)
    return code


def migrate(options, folder):
    """What `cairn migrate` says of the project, as JSON; the migrated project lies in `folder`."""
    command = [Path(sys.executable).with_name("cairn"), "migrate", options.path.resolve(), "-o", folder, "--json"]
    command += ["--main", options.main] if options.main else []
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(refuse(f"migration failed: {done.stderr.strip()}", 3))
    return json.loads(done.stdout)


def edits(migration):
    """Each change and each finding: where, by which rule, what."""
    return [
        {"place": f"{file['path']}:{row['line']}", "rule": row["rule"], "kind": kind, "text": row["message"]}
        for file in migration["files"]
        for kind in ("changes", "findings")
        for row in file[kind]
    ]


def obstacles(migration):
    """What the migration holds to be in the way of running here."""
    found = [
        f"{file['path']}:{row['line']}: {row['message']}; {row['advice']}"
        for file in migration["files"]
        for row in file["findings"]
        if row["severity"] == "error"
    ]
    return "\nwhat the migration could not change:\n  " + "\n  ".join(found[:20]) if found else ""


def entry(options, migration):
    """The program's script, relative to the project."""
    if options.main:
        found = [options.main]
    elif options.path.is_file():
        found = [options.path.name]
    else:
        found = [file["path"] for file in migration["files"] if file["entry"]]
    if len(found) != 1 or not (options.path.parent if options.path.is_file() else options.path).joinpath(found[0]).is_file():
        names = ", ".join(found[:8]) or "none"
        sys.exit(refuse(f"which script is the program? --main names it (candidates: {names})"))
    return found[0]


def train(script, options, name, engine, settings, migration):
    """What one run recorded: {key: array}."""
    files = {key: options.output.resolve() / f"{name}.{key}.json" for key in ("aliases", "report")}
    for file in files.values():
        file.unlink(missing_ok=True)
    environment = {
        "TF_CPP_MIN_LOG_LEVEL": os.environ.get("TF_CPP_MIN_LOG_LEVEL", "2"),
        **settings,
        "PYTHONHASHSEED": "0",
        "CAIRN_RECORD_STEPS": str(options.steps),
        "CAIRN_TF1_REPORT": str(files["aliases"]),
        "CAIRN_REPORT": str(files["report"]),
    }
    try:
        found = recorded.train(script, options, name, engine, environment, ["--tf2"] if migration["tf"] == 2 else [])
    except recorded.TakesTooLong as fact:
        sys.exit(refuse(fact, 3))
    except recorded.DoesNotRun as fact:
        sys.exit(refuse(f"{fact}{obstacles(migration)}", 3))
    if not found.pop("trained"):
        sys.exit(refuse("no run of the script updates variables: there is no training to compare", 3))
    return found


def compare(runs, options):
    stock, again, cairn = (runs[name] for name in RUNS)
    rows, noise = [], {}
    for key, expected in stock.items():
        what = re.sub(r":\d+:", ":", key, count=1)  # the value without its run: rounding grows from run to run
        noise[what] = max(noise.get(what, 0.0), difference(again.get(key, expected), expected))
        row = {"key": key, "size": int(expected.size), "difference": None, "allowed": 0.0, "equal": False}
        if key in cairn and cairn[key].shape == expected.shape:
            row |= {"difference": difference(cairn[key], expected), "allowed": max(FACTOR * noise[what], LEAST)}
            row["equal"] = row["difference"] <= row["allowed"]
        rows.append(row)
    rows += [{"key": key, "size": int(cairn[key].size), "difference": None, "allowed": 0.0, "equal": False}
             for key in cairn if key not in stock]  # fmt: skip
    unequal = [row for row in rows if not row["equal"]]
    scalars = [key for key in stock if key.startswith("fetch:") and stock[key].size == 1 and key in cairn]
    return {
        "equal": not unequal and bool(rows),
        "compared": len(rows),
        "variables": sum(row["key"].startswith("variable:") for row in rows),
        "steps": len({key.split(":")[1] for key in stock if key.startswith("after:")}),
        "unequal": unequal[:100],
        "unequal_count": len(unequal),
        "largest": sorted((row for row in rows if row["equal"]), key=lambda row: -row["difference"])[:20],
        "scalars": [{"key": key, "stock": stock[key].item(), "cairn": cairn[key].item()} for key in scalars[:400]],
    }


def difference(found, expected):
    """Largest difference as a share of the largest element; not a number in the same places is no difference."""
    error, size = recorded.difference(found, expected)
    return error / max(size, 1e-6)


def json_of(file):
    return json.loads(file.read_text()) if file.exists() else {}


def clusters(file):
    """Nodes on the engine, of the graph with the most nodes."""
    graphs = json_of(file).get("graphs", [])
    largest = max(graphs, key=lambda graph: graph.get("numeric", 0), default=None)
    if not largest:
        return {}
    return {
        "clusters": len(largest["clusters"]),
        "numeric": largest["numeric"],
        "on_engine": largest["numeric_on_engine"],
        "host": [{"op": row["op"], "count": row["count"], "reason": row["reason"]} for row in largest["host"]],
    }


def tell(result, options):
    print(f"{result['compared']} values compared over {result['steps']} training runs, {result['variables']} of them variables")
    if result["clusters"]:
        part = result["clusters"]
        print(f"{part['on_engine']} of {part['numeric']} numeric nodes on the engine, in {part['clusters']} clusters")
    for row in result["unequal"][:10]:
        found = "missing or of another shape" if row["difference"] is None else f"{row['difference']:.2e}, allowed {row['allowed']:.2e}"
        print(f"  {row['key']}: {found}")
    print("equal" if result["equal"] else f"NOT equal: {result['unequal_count']} values")
    if "next" in result:
        print(result["next"])
    print(f"page: {options.output / 'index.html'}")


if __name__ == "__main__":
    sys.exit(main())
