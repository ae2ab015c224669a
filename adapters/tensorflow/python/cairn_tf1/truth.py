"""`cairn diff --script train.py --truth f64`: whose rounding is larger. One training run of the script on stock TensorFlow, on Cairn,
and on Cairn in float64 (CAIRN_TRUTH=f64: engine `reference`, every floating tensor of a cluster widened, no passes); for each
operator, gradient, fetched number and variable the errors of the two float32 runs against the third. Variables are float32 in all.

Exit 2: the errors of ours of fetched numbers and variables are more than 1.5 times stock's in the median, or an operator's is more
than 8 times although those of what it reads are not; else 0. A single number may be off either way by chance: the first step of
Adam makes an update of full size out of the sign of a gradient near 0."""

import html
import json
import shlex

from cairn import _cairn

from cairn import _ending as ending
from cairn_tf1 import diff_page, port_page, recorded

LARGER = 1.5  # times stock's, in the median
FAR = 8.0  # of one operator alone


def main(runs):
    """The exit code."""
    options = runs.options
    result = judged_run(runs)
    ending.write_text(options.output / "truth.json", json.dumps(result, indent=1))
    ending.write_text(options.output / "index.html", page(result))
    if options.json:
        print(json.dumps(result, indent=1))
    else:
        tell(result, options)
    return 2 if result["worse"] else 0


def judged_run(runs):
    """The last of the training runs that were asked for."""
    options = runs.options
    stock, cairn = runs.stock("stock"), runs.train("cairn")
    runs.trained = sorted({int(key.split(":")[1]) for key in stock if key.startswith("after:")})
    step = runs.trained[-1]
    exact = runs.train("truth", CAIRN_TRUTH="f64")
    golden, nodes = runs.inside("inside.stock", step)
    inside = {}
    for name, environment in (("cairn", {}), ("truth", {"CAIRN_TRUTH": "f64"})):
        folder = options.output.resolve() / f"inside.{name}"
        runs.train(f"inside.{name}", **runs.until(step), **environment, CAIRN_RECORD_INSIDE=str(step), CAIRN_RECORD_FOLDER=str(folder))
        inside[name] = made_in(folder)
    values = []
    for key, theirs in stock.items():
        kind, _, rest = key.partition(":")
        run, _, name = rest.partition(":")
        if kind != "variable" and run == str(step) and key in cairn and key in exact and theirs.dtype.kind == "f":
            about = {"name": name, "op": "variable" if kind == "after" else "fetched"}
            values.append(about | judged(cairn[key], theirs, exact[key]))
    rows = list(operators(golden, nodes, inside["cairn"], inside["truth"]))
    mark_first(rows, nodes)
    counts = {side: sum(row["larger"] == side and row["mine"] is not None for row in rows) for side in ("mine", "theirs", "alike")}
    return {"script": options.script.name, "arguments": options.arguments, "step": step, "larger": counts, "values": values, "rows": rows,
            "worse": worse(values, rows)}  # fmt: skip


def worse(values, rows):
    ratios = sorted(row["ratio"] for row in values if row["size"])
    return bool(ratios) and ratios[len(ratios) // 2] > LARGER or any(row["first"] and row["ratio"] > FAR for row in rows)


def made_in(folder):
    """{(operator, result): (array, kernel)}; of an operator that several kernels make together the last one gives the result."""
    from cairn_tf1 import diff

    return {(entry["op"], entry["index"]): (array, entry["kernel"]) for entry, array in diff.dumped(folder)}


def operators(golden, nodes, cairn, truth):
    """A row for each value in the order of computation that stock TensorFlow and the run in float64 have."""
    for (op, index), (exact, _) in truth.items():
        theirs = golden.get((op, index))
        if op not in nodes or theirs is None or theirs.dtype.kind != "f" or exact.dtype.kind != "f" or theirs.size != exact.size:
            continue
        mine, kernel = cairn.get((op, index), (None, ""))
        if mine is not None and mine.size != exact.size:
            mine, kernel = None, ""
        yield {"name": op + (f":{index}" if index else ""), "node": op, "op": nodes[op]["op"], "line": nodes[op]["line"],
               "kernel": kernel} | judged(mine, theirs, exact)  # fmt: skip


def judged(mine, theirs, exact):
    """The errors of both, and which is larger."""
    found = _cairn._errors(*((theirs if each is None else each).reshape(exact.shape) for each in (mine, theirs)), exact)
    about = {side: {"rms": found[side]["rms"], "most": found[side]["most"], "nonfinite": found[side]["unlike"]} for side in ("mine", "theirs")}
    row = {"size": found["theirs"]["size"], "ratio": found["ratio"], "larger": found["larger"]} | about
    return row if mine is not None else row | {"mine": None, "ratio": 1.0, "larger": "alike"}


def mark_first(rows, nodes):
    """Where ours is larger although it is not in what the operator was made from, as far as that was seen."""
    larger = {row["node"] for row in rows if row["larger"] == "mine"}
    first = recorded.first_faults({row["node"]: row["node"] in larger for row in rows if row["mine"] is not None}, nodes)
    for row in rows:
        row["first"] = row["larger"] == "mine" and row["node"] in first


def line_of(row):
    verdict = {"mine": f"OURS is larger, {row['ratio']:.2f} times", "theirs": f"stock's is larger, {1 / row['ratio']:.2f} times"}
    return f"ours {row['mine']['rms']:.2e}, stock's {row['theirs']['rms']:.2e} of {row['size']:.2e}: {verdict.get(row['larger'], 'alike')}"


def tell(result, options):
    print(f"\nerror against float64 in run {result['step']}, root mean square:")
    for row in sorted(result["values"], key=lambda row: -row["ratio"])[:12]:
        print(f"  {row['op']} {row['name']}: {line_of(row)}")
    first = sorted((row for row in result["rows"] if row["first"]), key=lambda row: -row["ratio"])
    if first:
        print("operators where ours is larger although it is not in what they read:")
    for row in first[:8]:
        print(f"  {row['name']} ({row['line'] or 'line not known'}), {row['op']}, {row['kernel']}\n    {line_of(row)}")
    if len(first) > 8:
        print(f"  and {len(first) - 8} more")
    print(told(result))
    print(f"page: {options.output / 'index.html'}")


def told(result):
    larger = result["larger"]
    return (f"{sum(larger.values())} operators: ours is larger in {larger['mine']}, stock's in {larger['theirs']},"
            f" within {LARGER:g} times of each other in {larger['alike']}")  # fmt: skip


COLUMNS = (("value", "name", "name"), ("", "op", ""), ("script", "line", ""), ("kernel", "kernel", ""), ("larger", "larger", ""),
           ("ours", "mine", "n"), ("stock's", "theirs", "n"), ("ours / stock's", "ratio", "n"), ("size", "size", "n"))  # fmt: skip
WORDS = {"mine": "ours", "theirs": "stock's", "alike": "alike"}


def page(result):
    command = html.escape(shlex.join([result["script"], *result["arguments"]]))
    parts = [f"<h1>{command}: rounding against float64</h1>",
             f"<p>Run {result['step']} on stock TensorFlow and on Cairn, each against the same run in float64: root mean square errors."
             f" {html.escape(told(result))}.</p>",
             "<h2>Fetched numbers and variables</h2>", table(result["values"]),
             "<h2>Operators, in order</h2>", table(result["rows"])]  # fmt: skip
    head = f'<meta charset="utf-8"><title>cairn diff --truth</title><style>{port_page.STYLE}{diff_page.STYLE}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(parts)}</body></html>'


def table(rows):
    heads = "".join(f"<th class={css or 'text'}>{title}</th>" for title, _, css in COLUMNS)
    lines = []
    for row in rows:
        shown = row | {side: row[side] and row[side]["rms"] for side in ("mine", "theirs")} | {"larger": WORDS[row["larger"]]}
        shown["kernel"] = row.get("kernel", "").split(",")[0]
        cells = "".join(diff_page.cell(shown.get(key), css) for _, key, css in COLUMNS)
        lines.append(f"<tr class={'bad' if row['larger'] == 'mine' else 'good'}>{cells}</tr>")
    return f"<table><tr>{heads}</tr>{''.join(lines)}</table>"
