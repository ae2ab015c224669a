"""The demo's HTML page: one file, no script, charts as SVG."""

import html
import math
import statistics
import textwrap

STYLE = """
:root { --ink: #1c2330; --soft: #5b6678; --line: #dfe4ec; --paper: #ffffff; --ground: #f5f7fa; --own: #0f7b6c;
        --other: #e08a2c; --pale: #d8efe9; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e7ebf2; --soft: #9aa6b8; --line: #2c3544; --paper: #171d27; --ground: #0f141c; --own: #35c2ab;
          --other: #f0a24f; --pale: #173b36; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 1040px; margin: 0 auto; padding: 40px 20px 80px; }
h1 { font-size: 30px; margin: 0 0 4px; letter-spacing: -0.01em; } h2 { font-size: 17px; margin: 0 0 12px; }
p { margin: 0 0 12px; color: var(--soft); } a { color: var(--own); }
section { background: var(--paper); border: 1px solid var(--line); border-radius: 12px; padding: 20px 24px; margin-top: 16px; }
.row { display: grid; grid-template-columns: repeat(auto-fit, minmax(300px, 1fr)); gap: 16px; margin-top: 16px; }
.row section { margin: 0; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(180px, 1fr)); gap: 16px; margin-top: 24px; }
.figure { background: var(--paper); border: 1px solid var(--line); border-radius: 12px; padding: 16px 20px; }
.figure b { display: block; font-size: 28px; font-variant-numeric: tabular-nums; } .figure span { color: var(--soft); }
svg { width: 100%; height: auto; display: block; } section { overflow-x: auto; } svg[data-wide] { min-width: 720px; } svg text { fill: var(--ink); font: 13px system-ui, sans-serif; }
svg .soft { fill: var(--soft); } svg .mono { font: 12px ui-monospace, monospace; }
details { border-top: 1px solid var(--line); padding: 8px 0; } details:first-of-type { border: 0; }
summary { cursor: pointer; display: flex; gap: 12px; } summary code { flex: 1; overflow-wrap: anywhere; }
pre { background: var(--ground); border-radius: 8px; padding: 12px; overflow-x: auto; font: 12px/1.45 ui-monospace, monospace; }
code { font: 13px ui-monospace, monospace; }
"""
LEGEND = (
    '<rect x="{x}" y="{y}" width="12" height="12" rx="3" fill="var(--other)"/><text x="{x1}" y="{y1}">TensorFlow</text>'
    '<rect x="{x2}" y="{y}" width="12" height="12" rx="3" fill="var(--own)"/><text x="{x3}" y="{y1}">Cairn</text>'
)


def render(facts, images, labels):
    body = [
        "<h1>From a training script to .om, and the same numbers</h1>",
        "<p>A TensorFlow 1 script is migrated and trained by both engines; a Keras CNN is converted and run. Everything beside the"
        " TensorFlow it came from, on scikit-learn's handwritten digits.</p>",
        _figures(facts),
        '<div class="row">',
        _section("A TensorFlow 1 script trains on both engines", losses(facts["script"])),
        _section("What became of it", outcome(facts["script"], facts["pages"])),
        "</div>",
        _section("A MindSpore script trains without MindSpore", lenet(facts["mindspore"])),
        _section("The way of the model", workflow(facts["stages"])),
        '<div class="row">',
        _section("Accuracy on the test set", accuracy(facts)),
        _section("Differences of the outputs", differences(facts["differences"])),
        "</div>",
        '<div class="row">',
        *(_section(f"Time of a batch of {speed['batch']}", rounds(speed)) for speed in facts["speeds"]),
        "</div>",
        _section("Time by step, batch of 32", steps(facts["profile"])),
        _section("Test images and what Cairn reads in them", digits(images, labels, facts["predictions"])),
        _section("Commands", commands(facts["stages"])),
    ]
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>Cairn demo</title><style>{STYLE}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body><main>{"".join(body)}</main></body></html>'


def _section(title, content):
    return f"<section><h2>{html.escape(title)}</h2>{content}</section>"


def _figures(facts):
    accuracy_pair = facts["accuracy"]
    cells = [
        (f"{accuracy_pair['cairn'] * 100:.2f} %", f"accuracy; TensorFlow {accuracy_pair['tensorflow'] * 100:.2f} %"),
        (f"{facts['largest_difference']:.1e}", "largest difference of an output"),
    ]
    for speed in facts["speeds"]:
        cells.append((f"{speed['ratio']:.2f}x", f"of TensorFlow's time, batch of {speed['batch']}"))
    return '<div class="figures">' + "".join(_figure(*cell) for cell in cells) + "</div>"


def _figure(value, meaning):
    return f'<div class="figure"><b>{value}</b><span>{html.escape(meaning)}</span></div>'


def _svg(width, height, parts, label):
    wide = " data-wide" if width > 500 else ""
    return f'<svg viewBox="0 0 {width} {height}"{wide} role="img" aria-label="{html.escape(label)}">{"".join(parts)}</svg>'


def _text(x, y, text, kind="", anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{html.escape(str(text))}</text>'


def _bar(x, y, width, height, colour):
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.5):.1f}" height="{height:.1f}" rx="3" fill="var({colour})"/>'


PER_ROW = 7  # stages of the workflow
NAMES = {
    "migrate": "migrate",
    "profile": "profile",
    "diff": "diff",
    "mindspore": "cairn ms",
    "train": "train (Keras)",
    "show": "show",
    "freeze": "freeze",
    "convert": "convert (atc)",
    "run": "run",
    "verify": "verify",
    "bench": "bench",
}
PRODUCTS = {
    "migrate": "migrated/",
    "script": "tf1_*/frozen.pb",
    "profile": "profile/",
    "diff": "diff/",
    "mindspore": "lenet.om",
    "train": "saved_model/",
    "show": "signatures, sizes",
    "freeze": "frozen.pb",
    "convert": "digits.om",
    "run": "results/*.npy",
    "verify": "equal",
    "bench": "time by step",
}


def _box_name(stage):
    if stage["title"] == "script":
        return "Cairn trains" if "CAIRN_ENGINE=cairn" in stage["command"] else "TensorFlow trains"
    return NAMES.get(stage["title"], stage["title"])


def workflow(stages):
    """Boxes from left to right, one a stage, PER_ROW in a row."""
    step, height, parts = 140, 112, []
    for index, stage in enumerate(stages):
        x, y = index % PER_ROW * step, index // PER_ROW * height
        if index % PER_ROW:
            arrow = f"M{x - 18} {y + 40} h12 m-5 -5 l5 5 l-5 5"
            parts.append(f'<path d="{arrow}" fill="none" stroke="var(--soft)" stroke-width="1.6"/>')
        parts.append(f'<rect x="{x}" y="{y + 8}" width="118" height="64" rx="10" fill="var(--pale)" stroke="var(--own)"/>')
        parts.append(_text(x + 59, y + 36, _box_name(stage), anchor="middle"))
        parts.append(_text(x + 59, y + 56, f"{stage['seconds']:.1f} s", "soft", "middle"))
        parts.append(_text(x + 59, y + 92, PRODUCTS.get(stage["title"], ""), "soft mono", "middle"))
    rows = -(-len(stages) // PER_ROW)
    return _svg(min(len(stages), PER_ROW) * step - 20, rows * height - 12, parts, "stages and their times")


def _ticks(top, count):
    """Round numbers from 0 to `top`, about `count` of them."""
    power = 10 ** math.floor(math.log10(top / count))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= top / count * 0.999)
    return [index * step for index in range(int(top / step + 1e-9) + 1)]


def _rows_axis(left, width, top, bottom, unit, count=4):
    """A vertical scale from 0 to `top` below bars that grow to the right."""
    for value in _ticks(top, count):
        x = left + width * value / top
        yield f'<path d="M{x:.1f} 0 V{bottom}" stroke="var(--line)"/>'
        yield _text(x, bottom + 16, f"{value:g} {unit}", "soft", "middle")


def _columns_axis(left, right, bottom, height, top, unit, count=4):
    """A horizontal scale from 0 to `top` behind bars that grow upwards."""
    for value in _ticks(top, count):
        y = bottom - height * value / top
        yield f'<path d="M{left} {y:.1f} H{right}" stroke="var(--line)"/>'
        yield _text(left - 6, y + 4, f"{value:g}{unit}", "soft", "end")


def losses(script):
    """The losses of both engines over the steps, on a logarithmic scale."""
    pairs = script["losses"]
    low = math.log10(max(min(min(values) for values in pairs.values()), 1e-6))
    high = math.log10(max(max(values) for values in pairs.values()))
    parts = []
    for exponent in range(math.ceil(low), math.floor(high) + 1):
        y = 10 + 130 * (high - exponent) / (high - low)
        parts.append(f'<path d="M40 {y:.1f} H430" stroke="var(--line)"/>')
        parts.append(_text(34, y + 4, f"1e{exponent}", "soft mono", "end"))
    for engine, colour, width in (("tensorflow", "--other", 4), ("cairn", "--own", 1.5)):
        values = pairs[engine]
        points = " ".join(
            f"{40 + 390 * index / (len(values) - 1):.1f},{10 + 130 * (high - math.log10(max(value, 1e-6))) / (high - low):.1f}"
            for index, value in enumerate(values)
        )
        parts.append(f'<polyline points="{points}" fill="none" stroke="var({colour})" stroke-width="{width}"/>')
    parts.append(_text(235, 154, f"step, 1 to {len(pairs['cairn'])}", "soft", "middle"))
    parts.append(LEGEND.format(x=40, y=162, x1=58, y1=173, x2=160, x3=178))
    return _svg(430, 180, parts, "losses of both engines")


def outcome(script, pages):
    pair, steps = script["accuracy"], len(script["losses"]["cairn"])
    stock, own = (statistics.median(column) * 1e3 for column in zip(*script["times"]))
    lines = [
        f"{steps} steps; the first 20 losses differ by at most {script['first_steps']:.1e}",
        f"test accuracy: TensorFlow {pair['tensorflow'] * 100:.2f} %, Cairn {pair['cairn'] * 100:.2f} %",
        f"time of a step: TensorFlow {stock:.2f} ms, Cairn {own:.2f} ms, ratio {script['ratio']:.2f}",
        "its weights went on: frozen.pb, digits_tf1.om, verified against TensorFlow",
    ]
    links = "; ".join(f'<a href="{html.escape(path)}">{html.escape(title)}</a>' for title, path in pages.items())
    return "".join(f"<p>{html.escape(line)}</p>" for line in lines) + f"<p>pages: {links}</p>"


def lenet(facts):
    share = facts["largest_difference"] / facts["spread"]
    line = (f"LeNet on the digits as MNIST files, in the words of MindSpore 0.5: test accuracy {facts['accuracy'] * 100:.2f} %; "
            f"the .om that it exports differs from the network by at most {share:.1e} of the output's spread")
    return f"<p>{html.escape(line)}</p>"


def accuracy(facts):
    parts = list(_rows_axis(90, 260, 100, 88, "%"))
    for index, (name, colour) in enumerate((("tensorflow", "--other"), ("cairn", "--own"))):
        y, value = 10 + index * 44, facts["accuracy"][name]
        parts.append(_text(0, y + 19, {"tensorflow": "TensorFlow", "cairn": "Cairn"}[name]))
        parts.append(_bar(90, y, value * 260, 28, colour))
        parts.append(_text(90 + value * 260 + 8, y + 19, f"{value * 100:.2f} %"))
    right = round(facts["accuracy"]["cairn"] * facts["images"])
    parts.append(_text(90, 126, f"{right} of {facts['images']} images right", "soft"))
    return _svg(430, 132, parts, "accuracy of both")


def differences(values):
    """Histogram over the decimal exponent; exact zeros have their own bar."""
    floor = -12
    counts = {}
    for value in values:
        exponent = floor if value == 0 else max(floor + 1, math.floor(math.log10(value)))
        counts[exponent] = counts.get(exponent, 0) + 1
    exponents = list(range(floor, max(counts) + 1))
    top = max(counts.values())
    slot, parts = 390 / len(exponents), list(_columns_axis(40, 430, 104, 90, top, "", 3))
    for index, exponent in enumerate(exponents):
        count = counts.get(exponent, 0)
        height = 90 * count / top
        if count:
            parts.append(_bar(40 + index * slot + 2, 104 - height, slot - 4, height, "--own"))
            parts.append(_text(40 + index * slot + slot / 2, 100 - height, count, "soft", "middle"))
        name = "0" if exponent == floor else f"1e{exponent}"
        parts.append(_text(40 + index * slot + slot / 2, 122, name, "soft mono", "middle"))
    parts.append(_text(235, 140, "absolute difference of an output; outputs counted", "soft", "middle"))
    return _svg(430, 146, parts, "histogram of absolute differences")


def rounds(speed):
    """A pair of bars for each interleaved round."""
    top, slot = max(max(row) for row in speed["rounds"]), 350 / len(speed["rounds"])
    parts = list(_columns_axis(56, 410, 110, 100, top * 1e6, " us"))
    for index, pair in enumerate(speed["rounds"]):
        for half, (value, colour) in enumerate(zip(pair, ("--other", "--own"))):
            height = 100 * value / top
            parts.append(_bar(58 + index * slot + half * slot * 0.42, 110 - height, slot * 0.38, height, colour))
    medians = [statistics.median(column) * 1e6 for column in zip(*speed["rounds"])]
    parts.append(_text(233, 126, f"{len(speed['rounds'])} rounds", "soft", "middle"))
    parts.append(LEGEND.format(x=0, y=138, x1=18, y1=149, x2=110, x3=128))
    parts.append(_text(410, 149, f"median {medians[0]:.0f} and {medians[1]:.0f} us", "soft", "end"))
    return _svg(410, 156, parts, "time of each round")


def steps(profile):
    """Horizontal bars, slowest first."""
    rows = sorted(profile["steps"], key=lambda row: -row["seconds"])[:14]
    total = sum(row["seconds"] for row in profile["steps"]) or 1
    parts = list(_rows_axis(330, 350, rows[0]["seconds"] * 1e6, len(rows) * 28, "us"))
    for index, row in enumerate(rows):
        y, share = index * 28, row["seconds"] / total
        node = row["step"].rsplit("StatefulPartitionedCall/", 1)[-1]  # Keras wraps the graph in calls
        parts.append(_text(0, y + 18, node[:44], "mono"))
        parts.append(_bar(330, y + 4, 350 * row["seconds"] / rows[0]["seconds"], 18, "--own"))
        parts.append(_text(690, y + 18, f"{row['seconds'] * 1e6:.1f} us  {share * 100:.0f} %  {_kernel(row['kernel'])}", "soft"))
    return _svg(1000, len(rows) * 28 + 24, parts, "time of the slowest steps")


def _kernel(text):
    """Whole words of the kernel's name, as many as fit."""
    return textwrap.shorten(text.split(",")[0], 32, placeholder="")


def digits(images, labels, predictions, count=14):
    """The first test images; a wrong reading is marked."""
    wrong = [i for i in range(len(labels)) if predictions[i] != labels[i]][:4]
    chosen = ([i for i in range(len(labels)) if i not in wrong][: count - len(wrong)] + wrong)[:count]
    parts = []
    for place, index in enumerate(chosen):
        x0 = place * 70
        for row in range(8):
            for column in range(8):
                shade = float(images[index][row][column][0])
                if shade > 0:
                    parts.append(
                        f'<rect x="{x0 + column * 7}" y="{row * 7}" width="7" height="7" fill="var(--ink)" '
                        f'fill-opacity="{shade:.2f}"/>'
                    )
        right = predictions[index] == labels[index]
        note = str(predictions[index]) if right else f"{predictions[index]}, is {labels[index]}"
        colour = "--own" if right else "--other"
        parts.append(f'<text x="{x0 + 28}" y="76" text-anchor="middle" style="fill:var({colour})">{note}</text>')
    return _svg(len(chosen) * 70 - 12, 82, parts, "test images with readings")


def commands(stages):
    return "".join(
        f"<details><summary><code>{html.escape(stage['command'])}</code><span>{stage['seconds']:.1f} s</span></summary>"
        f"<pre>{html.escape(stage['output']) or 'no output'}</pre></details>"
        for stage in stages
    )
