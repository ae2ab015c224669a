"""`cairn diff --script train.py --steps N -- args`: trains a script on stock TensorFlow and on Cairn with equal seeds, finds the
first training run in which a fetched number or a variable differs by more than rounding explains, and in it the first operator
that computes something else, with its script line.

What rounding explains is measured: stock TensorFlow also runs with every variable moved by its last bit and on one thread.
Exit 0: no difference; 1: it cannot run here; 2: differs."""

import argparse
import html
import json
import re
import shlex
import sys
from pathlib import Path

import numpy as np

from cairn_tf1 import port_page, recorded

FACTOR = 8.0  # of what the last bit of the variables made of a value
LEAST = 1e-5  # of the largest element


def parse(words):
    parser = argparse.ArgumentParser(prog="cairn diff --script", description=__doc__.split("\n\n")[0].split(": ", 1)[1])
    parser.add_argument("--script", type=Path, required=True, help="a training script, migrated or of TensorFlow 1")
    parser.add_argument("--steps", type=int, default=20, help="training runs to compare (default %(default)s)")
    parser.add_argument("-o", "--output", type=Path, default=Path("cairn_diff"), help="work folder (default %(default)s)")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--timeout", type=float, default=3600, help="seconds that one run may take (default %(default)s)")
    parser.add_argument("arguments", nargs="*", metavar="args", help="of the script, after --")
    return parser.parse_args(words)


def main(words=None):
    options = parse(words)
    if not options.script.is_file():
        return fault(f"there is no script {options.script}")
    options.output.mkdir(parents=True, exist_ok=True)
    stock = train(options, "stock", "tensorflow")
    noise = train(options, "nudged", "tensorflow", nudge=True)
    cairn = train(options, "cairn", "cairn")
    rows = compare(stock, noise, cairn)
    result = {"script": options.script.name, "arguments": options.arguments, "steps": options.steps, "compared": len(rows),
              "equal": not any(row["off"] for row in rows), "first": [], "culprit": None, "rows": []}  # fmt: skip
    if not result["equal"]:
        step = min(row["step"] for row in rows if row["off"])
        result["first"] = [row for row in rows if row["off"] and row["step"] == step]
        result["step"] = step
        result |= look_inside(options, step, result["first"], stock)
    (options.output / "difference.json").write_text(json.dumps(result, indent=1))
    (options.output / "index.html").write_text(page(result, rows))
    if options.json:
        print(json.dumps(result, indent=1))
    else:
        tell(result, options)
    return 0 if result["equal"] else 2


def fault(sentence):
    print(f"cairn diff: {sentence}", file=sys.stderr)
    return 1


def train(options, name, engine, nudge=False, inside=None):
    """What one run recorded: {key: array}; `inside` is the training run to look into, into the folder of that name."""
    steps = options.steps if inside is None else inside + 1
    environment = {"CAIRN_RECORD_STEPS": str(steps)}
    if nudge:
        environment |= {"CAIRN_RECORD_NUDGE": "1", "TF_NUM_INTRAOP_THREADS": "1", "OMP_NUM_THREADS": "1"}
    if inside is not None:
        environment |= {"CAIRN_RECORD_INSIDE": str(inside), "CAIRN_RECORD_FOLDER": str(options.output.resolve() / name)}
    if not options.json:
        print(f"{name}: {engine}, {steps} training runs", flush=True)
    try:
        found = recorded.train(options.script.resolve(), options, name, engine, environment)
    except recorded.DoesNotRun as fact:
        sys.exit(fault(fact))
    if not found.pop("trained"):
        sys.exit(fault("no run of the script updates variables in a session: there is no training to compare"))
    return found


def judged(found, expected, moved):
    """error, allowed, size, off"""
    error, size = recorded.difference(found, expected)
    noise = recorded.difference(moved, expected)[0] if moved is not None else 0.0
    allowed = FACTOR * noise + LEAST * size
    return {"error": error, "allowed": allowed, "size": size, "off": not error <= allowed}


def compare(stock, noise, cairn):
    """A row for each value fetched and each variable behind each training run, in that order."""
    rows = []
    for key, expected in stock.items():
        kind, rest = key.split(":", 1)
        if kind == "variable":
            continue  # its last value, which stands behind the last training run as well
        run, _, name = rest.partition(":")
        kind = "variable" if kind == "after" else kind
        found = cairn.get(key)
        row = judged(found, expected, noise.get(key)) if found is not None else {"error": float("inf"), "allowed": 0.0, "size": 0.0, "off": True}
        rows.append({"step": int(run), "kind": kind, "name": name} | row)
    return sorted(rows, key=lambda row: row["step"])


def look_inside(options, step, first, stock):
    """The operators of the first training run that differs."""
    trained = sorted({int(key.split(":")[1]) for key in stock if key.startswith("after:")})
    if step not in trained:
        return {}  # a run that trains nothing: what it fetches depends on the variables alone
    number = trained.index(step)
    for name, engine, nudge in (("inside.stock", "tensorflow", False), ("inside.nudged", "tensorflow", True), ("inside.cairn", "cairn", False)):
        train(options, name, engine, nudge, number)
    folder = options.output
    meta = json.loads((folder / "inside.stock" / "values.json").read_text())
    with np.load(folder / "inside.stock" / "values.npz") as a, np.load(folder / "inside.nudged" / "values.npz") as b:
        expected = {(node, index): (a[f"v{i}"], b[f"v{i}"]) for i, (node, index) in enumerate(meta["values"])}
    rows, nodes = [], meta["nodes"]
    for op, index, found in dumped(folder / "inside.cairn"):
        if op not in nodes or (op, index) not in expected or expected[op, index][0].size != found.size:
            continue
        golden, moved = expected[op, index]
        rows.append({"name": op, "index": index, "op": nodes[op]["op"], "line": nodes[op]["line"]}
                    | judged(found.reshape(golden.shape), golden, moved))  # fmt: skip
    return {"rows": rows, "culprit": blame(rows, nodes) or update_of(first, nodes, rows)}


def dumped(folder):
    """(operator, result, array) of the engine's dump, in the order of computation."""
    entries = []
    for manifest in sorted(folder.rglob("manifest.jsonl")):
        for line in manifest.read_text().splitlines():
            entry = json.loads(line)
            if entry["kind"] == "output":
                entries.append((re.findall(r"\d{16}", entry["file"])[-1], entry, manifest))  # microseconds
    for _, entry, manifest in sorted(entries, key=lambda each: each[0]):
        yield entry["op"], entry["index"], np.load(manifest.with_name(entry["file"]))


def blame(rows, nodes):
    """The first operator that is off although what it was made from is not, as far as the engine shows it."""
    off = {row["name"] for row in rows if row["off"]}
    shown = {row["name"] for row in rows}
    for row in rows:
        if row["off"] and not (made_from(row["name"], nodes, shown) & off):
            return row | {"kind": "operator"}
    return None


def made_from(name, nodes, shown):
    """The nearest operators before it that were shown."""
    seen, found, pending = {name}, set(), list(nodes[name]["inputs"])
    while pending:
        before = pending.pop()
        if before in seen:
            continue
        seen.add(before)
        if before in shown:
            found.add(before)
        else:
            pending += nodes.get(before, {}).get("inputs", [])
    return found


def update_of(first, nodes, rows):
    """Everything computed agrees, a variable does not: its update."""
    for row in first:
        if row["kind"] != "variable":
            continue
        for name, node in nodes.items():
            if node["updates"] and row["name"] in node["inputs"]:
                return row | {"kind": "update", "variable": row["name"], "name": name, "op": node["op"], "line": node["line"]}
    return None


def tell(result, options):
    if result["equal"]:
        print(f"no difference beyond rounding: {result['compared']} values of {result['steps']} training runs")
    else:
        print(f"\nthe first run that differs is number {result['step']}:")
        for row in result["first"][:8]:
            print(f"  {row['kind']} {row['name']}: off by {row['error']:.3g}, rounding explains {row['allowed']:.3g}")
        culprit = result["culprit"]
        if culprit is None:
            print("no operator inside explains it: what differs was computed before, or outside the engine's clusters")
        else:
            place = f" ({culprit['line']})" if culprit["line"] else ""
            what = f"off by {culprit['error']:.3g}, rounding explains {culprit['allowed']:.3g}"
            why = "what it reads agrees" if culprit["kind"] == "operator" else f"all that it reads agrees, variable {culprit['variable']} does not"
            print(f"\nfirst wrong: {culprit['name']}{place}, {culprit['op']}\n  {what}; {why}")
    print(f"page: {options.output / 'index.html'}")


def page(result, rows):
    """One file, with the style of `cairn port`'s page."""
    command = html.escape(shlex.join([result["script"], *result["arguments"]]))
    verdict = '<span class="good">no difference</span>' if result["equal"] else f'<span class="bad">differs in run {result["step"]}</span>'
    parts = [f"<h1>{command}: {verdict}</h1>",
             f"<p>{result['compared']} values of {result['steps']} training runs, stock TensorFlow against Cairn. A value may differ by"
             f" {FACTOR:g} times what the last bit of the variables makes of it, and by {LEAST:g} of its largest element.</p>"]  # fmt: skip
    if result["culprit"]:
        culprit = result["culprit"]
        parts.append(f"<h2>First wrong: <code>{html.escape(culprit['name'])}</code></h2><p>{html.escape(culprit['op'])},"
                     f" {html.escape(culprit['line'] or 'script line not known')}: off by {culprit['error']:.3g}, rounding explains"
                     f" {culprit['allowed']:.3g}; what it reads agrees.</p>")  # fmt: skip
    if result["first"]:
        parts += ["<h2>What differs in that run</h2>", table(result["first"])]
    if result["rows"]:
        parts += ["<h2>Operators of that run, in order</h2>", table(result["rows"])]
    worst = sorted(rows, key=lambda row: -(row["error"] / row["allowed"] if row["allowed"] else 0))[:40]
    parts += ["<h2>Closest to the limit, all runs</h2>", table(worst)]
    head = f'<meta charset="utf-8"><title>cairn diff</title><style>{port_page.STYLE}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(parts)}</body></html>'


def table(rows):
    cells = "".join(
        f"<tr class={'bad' if row['off'] else 'good'}><td class=n>{row.get('step', '')}</td><td><code>{html.escape(row['name'])}</code></td>"
        f"<td>{html.escape(row.get('op', row.get('kind', '')))}</td><td>{html.escape(row.get('line') or '')}</td>"
        f"<td class=n>{row['error']:.2e}</td><td class=n>{row['allowed']:.2e}</td><td class=n>{row['size']:.2e}</td></tr>"
        for row in rows
    )
    heads = "<th>run</th><th>value</th><th></th><th>script</th><th>difference</th><th>rounding explains</th><th>size</th>"
    return f"<table><tr>{heads}</tr>{cells}</table>"


if __name__ == "__main__":
    sys.exit(main())
