"""The page about a port: what was compared, where the nodes ran, what the TensorFlow 1 layer supplied, what was edited."""

import html
import shlex

STYLE = """body{font:15px/1.5 system-ui,sans-serif;max-width:960px;margin:40px auto;padding:0 20px;color:#1c2330;background:#fff}
table{border-collapse:collapse;width:100%;font-size:13px}td,th{border-bottom:1px solid #dfe4ec;padding:4px 8px;text-align:left}
td.n,th.n{text-align:right}td.n{font-variant-numeric:tabular-nums}code{font:12px ui-monospace,monospace;overflow-wrap:anywhere}
.good{color:#0f7b6c}.bad{color:#b3261e}"""


def page(result, factor, least, most):
    verdict = f'<span class="{"good" if result["equal"] else "bad"}">{html.escape(result["verdict"])}</span>'
    command = shlex.join([result["script"], *result["arguments"]])
    parts = [
        f"<h1>{html.escape(command)}: {verdict}</h1>",
        f"<p>{result['compared']} values of {result['steps']} training runs, {result['variables']} of them variables at the end,"
        " compared between stock TensorFlow and Cairn. A value may differ by as much as two runs of stock TensorFlow do so far,"
        f" times {factor:g}, but by no more than {most:g} of its largest element, and always by {least:g} of it.</p>",
        *section("What differs", DIFFERENCES, map(difference, result["unequal"]), result.get("next", "")),
        *section("What TensorFlow itself does not repeat", ("why",), ((reason,) for reason in result["reasons"])),
        *section("Largest differences within what is allowed", DIFFERENCES, map(difference, result["largest"])),
        *section("Losses and other numbers", ("result of a run", "TensorFlow", "Cairn"), map(scalar, result["scalars"])),
        *where_it_ran(result["clusters"]),
        *supplied(result["aliases"]),
        *section("Migration", ("place", "rule", "what"), ((row["place"], row["rule"], row["text"]) for row in result["edits"])),
    ]
    head = f'<meta charset="utf-8"><title>cairn port</title><style>{STYLE}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(parts)}</body></html>'


DIFFERENCES = ("value", "elements", "difference", "allowed")


def difference(row):
    found = "missing or of another shape" if row["difference"] is None else f"{row['difference']:.2e}"
    return row["key"], row["size"], found, f"{row['allowed']:.2e}"


def scalar(row):
    return row["key"], f"{row['stock']:.7g}", f"{row['cairn']:.7g}"


def where_it_ran(part):
    sentence = f"{part['on_engine']} of {part['numeric']} numeric nodes run on the engine, in {part['clusters']} clusters."
    rows = [(row["op"], row["count"], row["reason"]) for row in part["host"]]
    return section("Where the nodes run", ("operator that stays with TensorFlow", "nodes", "why"), rows, sentence)


def supplied(report):
    names = [(f"{row['file']}:{row['line']}", row["name"], row["answer"]) for row in report.get("aliases", [])]
    restored = [("", name, "put back where it was in TensorFlow 1") for name in report.get("restored", [])]
    return section("Names that the TensorFlow 1 layer supplied", ("place", "name", "answered by"), names) + section(
        "Names that the TensorFlow 1 layer put back for all scripts", ("", "name", ""), restored
    )


def section(title, columns, rows, sentence=""):
    """Heading and table; nothing when there is nothing to show."""
    rows = list(rows)
    if not rows and not sentence:
        return []
    numbers = [all(number(row[index]) for row in rows) for index in range(len(columns))]
    head = "".join(f"<th{' class=n' * flag}>{html.escape(column)}</th>" for column, flag in zip(columns, numbers))
    body = "".join("<tr>" + "".join(map(cell, row)) + "</tr>" for row in rows)
    table = f"<table><tr>{head}</tr>{body}</table>" if rows else ""
    return [f"<h2>{html.escape(title)}</h2><p>{html.escape(sentence)}</p>{table}"]


def number(value):
    return isinstance(value, int) or (value[:1].isdigit() and not value.strip("0123456789.e+-"))


def cell(value):
    return f"<td class=n>{value}</td>" if number(value) else f"<td><code>{html.escape(value)}</code></td>"
