"""What `cairn diff --script` says about a difference: sentences, and one page with the style of `cairn port`'s."""

import html
import shlex

from cairn_tf1 import port_page

MOST_OUTSIDE = 6
STYLE = "body{max-width:1200px}td.name{min-width:320px}h2 code{font-size:inherit}"


def told(result):
    """What was found inside the run, in lines."""
    culprit = result["culprit"]
    if culprit:
        place = f" ({culprit['line']})" if culprit["line"] else ""
        yield f"\nfirst wrong: {culprit['name']}{place}, {culprit['op']}"
        yield f"  off by {culprit['error']:.3g}, rounding explains {culprit['allowed']:.3g}; {why(culprit)}"
        if cause(culprit):
            yield f"  made by {cause(culprit)}"
    elif result["unseen"]:
        yield f"Not looked inside: {result['unseen']}"
    else:
        yield "no operator inside explains it: what differs was computed before, or outside the engine's clusters"
    if outside(result):
        yield outside(result)


def why(culprit):
    if culprit["kind"] == "operator":
        return "what it reads agrees"
    return f"all that it reads agrees, variable {culprit['variable']} does not"


def cause(culprit):
    kernel = f" {culprit['kernel']}" if culprit["kernel"] else ""
    holds = culprit.get("holds", [])
    together = f", which holds {', '.join(holds)}" if len(holds) > 1 else ""
    return {"kernel": f"the kernel{kernel}{together}: with the reference engine's kernels the run agrees",
            "pass": f"the pass {culprit.get('pass')}: with the passes before it alone the run agrees",
            "none": "neither a kernel nor a pass: with reference kernels, and without passes, it is there as well"}.get(culprit.get("cause"), "")  # fmt: skip


def eager(result):
    """How far the engine had a part in it."""
    if not result["eager"]:
        return ""
    return (f"{result['eager']} training runs are of eager code, whose operators TensorFlow itself runs one by one: of them the engine"
            " runs only the tf.functions that they call")  # fmt: skip


def outside(result):
    """What only TensorFlow's side shows."""
    names = result.get("outside", [])
    if not names:
        return ""
    more = f" and {len(names) - MOST_OUTSIDE} more" if len(names) > MOST_OUTSIDE else ""
    return f"Not looked at, as TensorFlow itself ran them or passes took them out: {', '.join(names[:MOST_OUTSIDE])}{more}"


def page(result, rows, factor, least):
    command = html.escape(shlex.join([result["script"], *result["arguments"]]))
    verdict = '<span class="good">no difference</span>' if result["equal"] else f'<span class="bad">differs in run {result["step"]}</span>'
    parts = [f"<h1>{command}: {verdict}</h1>",
             f"<p>{result['compared']} values of {result['steps']} training runs, stock TensorFlow against Cairn. A value may differ by"
             f" {factor:g} times what the last bit of the variables makes of it, and by {least:g} of its largest element.</p>"]  # fmt: skip
    if eager(result):
        parts.append(f"<p>{html.escape(eager(result))}.</p>")
    culprit = result["culprit"]
    if culprit:
        parts.append(f"<h2>First wrong: <code>{html.escape(culprit['name'])}</code></h2><p>{html.escape(culprit['op'])},"
                     f" {html.escape(culprit['line'] or 'script line not known')}: off by {culprit['error']:.3g}, rounding explains"
                     f" {culprit['allowed']:.3g}; {html.escape(why(culprit))}.</p>")  # fmt: skip
        if cause(culprit):
            parts.append(f"<p>Made by {html.escape(cause(culprit))}.</p>")
    elif result["unseen"]:
        parts.append(f"<p>Not looked inside: {html.escape(result['unseen'])}.</p>")
    if result["first"]:
        parts += ["<h2>What differs in that run</h2>", table(result["first"])]
    if result["rows"]:
        parts += ["<h2>Operators of that run, in order</h2>", table(result["rows"])]
    if outside(result):
        parts.append(f"<p>{html.escape(outside(result))}.</p>")
    worst = sorted(rows, key=lambda row: -(row["error"] / row["allowed"] if row["allowed"] else 0))[:40]
    parts += ["<h2>Closest to the limit, all runs</h2>", table(worst)]
    head = f'<meta charset="utf-8"><title>cairn diff</title><style>{port_page.STYLE}{STYLE}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(parts)}</body></html>'


COLUMNS = (("run", "step", "n"), ("value", "name", "name"), ("", "op", ""), ("script", "line", ""), ("kernel", "kernel", ""),
           ("difference", "error", "n"), ("rounding explains", "allowed", "n"), ("size", "size", "n"))  # fmt: skip


def table(rows):
    """Without the columns that have nothing to say."""
    rows = [{"op": row.get("kind")} | row | {"kernel": row.get("kernel", "").split(",")[0]} for row in rows]
    shown = [column for column in COLUMNS if any(row.get(column[1]) for row in rows)]
    heads = "".join(f"<th class={css or 'text'}>{title}</th>" for title, _, css in shown)
    lines = (f"<tr class={'bad' if row['off'] else 'good'}>{''.join(cell(row.get(key), css) for _, key, css in shown)}</tr>" for row in rows)
    return f"<table><tr>{heads}</tr>{''.join(lines)}</table>"


def cell(value, css):
    text = f"{value:.2e}" if isinstance(value, float) else html.escape(str("" if value is None else value))
    return f"<td class={css or 'text'}>{f'<code>{text}</code>' if css == 'name' else text}</td>"
