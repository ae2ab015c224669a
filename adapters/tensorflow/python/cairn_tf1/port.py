"""`python -m cairn_tf1.port PATH [options] -- args`: migrates a TensorFlow 1 project into a work folder, trains it on stock
TensorFlow and on Cairn with equal seeds, compares everything that both computed and writes one page about it.

Stock TensorFlow also runs against itself with another number of threads: what two correct runs differ by is what Cairn may
differ by, times FACTOR. Exit 0: equal; 1: not equal; 2: wrong use; 3: the script cannot run here."""

import argparse
import html
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np

FACTOR = 4.0  # of the difference between two runs of stock TensorFlow
LEAST = 1e-4  # of the largest element: what rounding alone may do to a later step
RUNS = {"stock": ("tensorflow", None), "again": ("tensorflow", "1"), "cairn": ("cairn", None)}


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
        sys.exit(refuse(f"there is no {options.path}"))
    options.output.mkdir(parents=True, exist_ok=True)
    migrated = options.output.resolve() / "migrated"
    report = migrate(options.path, migrated)
    script = migrated / entry(options, migrated)
    runs = {}
    for name, (engine, threads) in RUNS.items():
        say(options, f"{name:6} {engine} {script.name} {shlex.join(options.arguments)}")
        runs[name] = train(script, options, name, engine, threads)
    result = compare(runs, options) | {"script": script.name, "arguments": options.arguments, "edits": report}
    result["aliases"] = aliases(options.output / "stock.aliases.json")
    result["clusters"] = clusters(options.output / "cairn.report.json")
    (options.output / "port.json").write_text(json.dumps(result, indent=1))
    (options.output / "index.html").write_text(page(result))
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


def migrate(path, folder):
    """The edits of `cairn migrate`, as its JSON says them."""
    command = [Path(sys.executable).with_name("cairn"), "migrate", path.resolve(), "-o", folder, "--json"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(refuse(f"migration failed: {done.stderr.strip()}", 3))
    return json.loads(done.stdout)


def entry(options, folder):
    if options.main:
        found = [Path(options.main)]
    elif options.path.is_file():
        found = [Path(options.path.name)]
    else:
        guard = re.compile(r"^if __name__ *== *['\"]__main__['\"]", re.MULTILINE)
        found = [file.relative_to(folder) for file in sorted(folder.rglob("*.py")) if guard.search(file.read_text(errors="replace"))]
    if len(found) != 1 or not (folder / found[0]).is_file():
        names = ", ".join(str(file) for file in found[:8]) or "none"
        sys.exit(refuse(f"which script is the program? --main names it (candidates: {names})"))
    return found[0]


def train(script, options, name, engine, threads):
    """What one run recorded: {key: array}."""
    folder = options.output.resolve()
    files = {key: folder / f"{name}.{ending}" for key, ending in
             (("record", "npz"), ("aliases", "aliases.json"), ("report", "report.json"), ("log", "log"))}  # fmt: skip
    for file in files.values():
        file.unlink(missing_ok=True)
    environment = {
        **os.environ,
        "CAIRN_ENGINE": engine,
        "CAIRN_RECORD": str(files["record"]),
        "CAIRN_RECORD_STEPS": str(options.steps),
        "CAIRN_TF1_REPORT": str(files["aliases"]),
        "CAIRN_REPORT": str(files["report"]),
    }
    if threads:
        environment |= {"TF_NUM_INTRAOP_THREADS": threads, "OMP_NUM_THREADS": threads}
    home = folder / f"{name}.run"  # each run leaves its checkpoints in a folder of its own
    home.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "cairn_tf1", str(script), *options.arguments]
    with open(files["log"], "wb") as log:
        try:
            code = subprocess.run(command, cwd=home, env=environment, stdout=log, stderr=log, timeout=options.timeout).returncode
        except subprocess.TimeoutExpired:
            sys.exit(refuse(f"{name} ran longer than {options.timeout:.0f} s; log: {files['log']}", 3))
    if code or not files["record"].exists():
        lines = files["log"].read_text(errors="replace").strip().splitlines()[-6:]
        sys.exit(refuse(f"the script does not run on {engine} (exit {code}); log: {files['log']}\n  " + "\n  ".join(lines), 3))
    with np.load(files["record"]) as record:
        found = {key: record[key] for key in record.files}
    if not found.pop("trained"):
        sys.exit(refuse("no run of the script updates variables in a session: there is no training to compare", 3))
    return found


def compare(runs, options):
    stock, again, cairn = (runs[name] for name in RUNS)
    rows = []
    for key, expected in stock.items():
        row = {"key": key, "size": int(expected.size)}
        if key not in cairn or cairn[key].shape != expected.shape:
            row |= {"difference": None, "allowed": 0.0, "equal": False}
        else:
            noise = difference(again.get(key, expected), expected)
            row |= {"difference": difference(cairn[key], expected), "allowed": max(FACTOR * noise, LEAST)}
            row["equal"] = row["difference"] <= row["allowed"]
        rows.append(row)
    unequal = [row for row in rows if not row["equal"]]
    scalars = [key for key in stock if key.startswith("fetch:") and stock[key].size == 1 and key in cairn]
    return {
        "equal": not unequal and bool(rows),
        "compared": len(rows),
        "variables": sum(row["key"].startswith("variable:") for row in rows),
        "steps": options.steps,
        "unequal": unequal[:100],
        "largest": sorted((row for row in rows if row["equal"]), key=lambda row: -row["difference"])[:20],
        "scalars": [{"key": key, "stock": stock[key].item(), "cairn": cairn[key].item()} for key in scalars[:400]],
    }


def difference(found, expected):
    """Largest difference as a share of the largest element; not a number in the same places is no difference."""
    if found.shape != expected.shape:
        return float("inf")
    found, expected = found.astype(np.complex128), expected.astype(np.complex128)
    finite = np.isfinite(expected)
    if not np.array_equal(finite, np.isfinite(found)):
        return float("inf")
    if not finite.any():
        return 0.0
    scale = max(float(np.abs(expected[finite]).max()), 1e-6)
    return float(np.abs(found[finite] - expected[finite]).max()) / scale


def aliases(file):
    return json.loads(file.read_text()) if file.exists() else {}


def clusters(file):
    """Nodes on the engine, of the graph with the most nodes."""
    graphs = json.loads(file.read_text()).get("graphs", []) if file.exists() else []
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
    print("equal" if result["equal"] else f"NOT equal: {len(result['unequal'])} values")
    print(f"page: {options.output / 'index.html'}")


STYLE = """body{font:15px/1.5 system-ui,sans-serif;max-width:960px;margin:40px auto;padding:0 20px;color:#1c2330;background:#fff}
table{border-collapse:collapse;width:100%;font-size:13px}td,th{border-bottom:1px solid #dfe4ec;padding:4px 8px;text-align:left}
td.n{text-align:right;font-variant-numeric:tabular-nums}code{font:12px ui-monospace,monospace;overflow-wrap:anywhere}
.good{color:#0f7b6c}.bad{color:#b3261e}"""


def page(result):
    verdict = '<span class="good">equal</span>' if result["equal"] else '<span class="bad">not equal</span>'
    command = shlex.join([result["script"], *result["arguments"]])
    parts = [
        f"<h1>{html.escape(command)}: {verdict}</h1>",
        f"<p>{result['compared']} values of {result['steps']} training runs, {result['variables']} of them variables, compared"
        " between stock TensorFlow and Cairn. A value may differ by as much as two runs of stock TensorFlow do, times"
        f" {FACTOR:g}, and always by {LEAST:g} of its largest element.</p>",
    ]
    if result["unequal"]:
        parts += ["<h2>What differs</h2>", table(result["unequal"])]
    parts += ["<h2>Largest differences within what is allowed</h2>", table(result["largest"]), "<h2>Losses and other numbers</h2>"]
    rows = "".join(
        f"<tr><td><code>{html.escape(row['key'])}</code></td><td class=n>{row['stock']:.7g}</td><td class=n>{row['cairn']:.7g}</td></tr>"
        for row in result["scalars"]
    )
    parts.append(f"<table><tr><th>fetch</th><th>TensorFlow</th><th>Cairn</th></tr>{rows}</table>")
    if result["clusters"]:
        part = result["clusters"]
        parts.append(f"<h2>Where the nodes run</h2><p>{part['on_engine']} of {part['numeric']} numeric nodes run on the engine,"
                     f" in {part['clusters']} clusters. The rest stays with TensorFlow:</p>")  # fmt: skip
        rows = "".join(f"<tr><td>{row['op']}</td><td class=n>{row['count']}</td><td>{html.escape(row['reason'])}</td></tr>" for row in part["host"])
        parts.append(f"<table><tr><th>operator</th><th>nodes</th><th>why</th></tr>{rows}</table>")
    if result["aliases"]:
        parts.append(f"<h2>Names that the TensorFlow 1 layer supplied</h2><pre><code>{html.escape(json.dumps(result['aliases'], indent=1))}</code></pre>")
    parts.append(f"<h2>Migration</h2><pre><code>{html.escape(json.dumps(result['edits'], indent=1)[:20000])}</code></pre>")
    head = f'<meta charset="utf-8"><title>cairn port</title><style>{STYLE}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(parts)}</body></html>'


def table(rows):
    cells = "".join(
        f"<tr><td><code>{html.escape(row['key'])}</code></td><td class=n>{row['size']}</td>"
        f"<td class=n>{'missing' if row['difference'] is None else format(row['difference'], '.2e')}</td>"
        f"<td class=n>{row['allowed']:.2e}</td></tr>"
        for row in rows
    )
    return f"<table><tr><th>value</th><th>elements</th><th>difference</th><th>allowed</th></tr>{cells}</table>"


if __name__ == "__main__":
    sys.exit(main())
