"""cairn ms --support: which names of MindSpore are supported, and what scripts need and lack, with lines.

The table is what the package says when asked for each name: nothing is written down twice."""

import ast
import importlib
import json
import pkgutil
import sys
import types
import warnings

from cairn.ms import names

_MODULES = (
    "mindspore", "mindspore.context", "mindspore.common.dtype", "mindspore.common.initializer", "mindspore.nn",
    "mindspore.nn.dynamic_lr", "mindspore.nn.probability.bijector", "mindspore.nn.probability.distribution",
    "mindspore.nn.probability.dpn", "mindspore.ops", "mindspore.ops.operations", "mindspore.ops.functional",
    "mindspore.ops.composite", "mindspore.numpy", "mindspore.scipy.linalg", "mindspore.scipy.sparse.linalg",
    "mindspore.train", "mindspore.train.callback", "mindspore.amp",
    "mindspore.dataset", "mindspore.dataset.audio", "mindspore.dataset.vision", "mindspore.dataset.transforms", "mindspore.dataset.text",
    "mindspore.mindrecord", "mindspore.communication", "mindspore.profiler", "mindspore.log",
)  # fmt: skip


def found(dotted):
    """(whether a dotted name of mindspore works, why not)."""
    works, reason = _look(dotted)
    refused = names.refused(dotted)
    return works and not refused, refused or reason


def _look(dotted):
    parts = dotted.split(".")
    try:
        here = importlib.import_module(parts[0])
        for i, part in enumerate(parts[1:], 2):
            try:
                here = getattr(here, part)
            except AttributeError as error:
                if not isinstance(here, types.ModuleType):
                    return False, f"{dotted} is not supported"
                try:
                    here = importlib.import_module(".".join(parts[:i]))
                except ModuleNotFoundError:
                    return False, str(error)
    except (ImportError, NotImplementedError) as error:
        return False, str(error)
    return True, ""


def table():
    """[{"name", "works", "reason"}]: the public names of the package, found in its modules."""
    rows = {}
    for module in _MODULES:
        try:
            content = importlib.import_module(module)
        except ModuleNotFoundError:
            continue
        _load_parts(content)
        public = getattr(content, "__all__", None) or [name for name in dir(content) if not name.startswith("_")]
        for name in public:
            value = getattr(content, name, None)
            if isinstance(value, types.ModuleType) or (getattr(value, "__module__", None) or "mindspore").split(".")[0] not in ("mindspore", "cairn"):
                continue
            works, reason = found(f"{module}.{name}")
            rows[f"{module}.{name}"] = {"name": f"{module}.{name}", "works": works, "reason": reason}
    for name in names.REFUSED:
        works, reason = found(name)
        rows[name] = {"name": name, "works": works, "reason": reason}
    return [rows[name] for name in sorted(rows)]


def markdown():
    """The table as a page of the documentation."""
    rows = table()
    groups = {}
    for row in rows:
        groups.setdefault(row["name"].rpartition(".")[0], []).append(row)
    lines = ["# Names of MindSpore", "", "<!-- Written by ./dev docs from what the package answers; do not edit. -->", ""]
    lines += ["Names stand at every level (0.5, 1.1, 1.10); docs/how-to/run-mindspore-scripts.md says which change their meaning.",
              "What is not here is refused by a sentence that names the nearest name that works.", ""]  # fmt: skip
    for module, members in groups.items():
        works = [row["name"].rpartition(".")[2] for row in members if row["works"]]
        lines += [f"## `{module}`: {len(works)}", "", ", ".join(f"`{name}`" for name in works) + "", ""]
        for row in members:
            if not row["works"]:
                lines += [f"- {row['reason']}"]
    return "\n".join(lines).rstrip() + "\n"


def _load_parts(package):
    """Has a package that loads names when they are used load all of them."""
    for part in names.parts(package.__name__):
        try:
            loaded = importlib.import_module(part)
        except ModuleNotFoundError:
            continue
        for name in getattr(loaded, "__all__", None) or ():
            getattr(package, name, None)
    for each in pkgutil.iter_modules(getattr(package, "__path__", ())):
        if package.__name__ == "mindspore" and not each.name.startswith("_"):
            importlib.import_module(f"{package.__name__}.{each.name}")


class _Uses(ast.NodeVisitor):
    """Dotted names of mindspore in a script, with their lines."""

    def __init__(self):
        self.known, self.uses = {}, {}

    def add(self, dotted, line):
        self.uses.setdefault(dotted, []).append(line)

    def visit_Import(self, node):
        for each in node.names:
            if each.name.split(".")[0] == "mindspore":
                self.known[each.asname or "mindspore"] = each.name if each.asname else "mindspore"
                self.add(each.name, node.lineno)

    def visit_ImportFrom(self, node):
        if node.level or (node.module or "").split(".")[0] != "mindspore":
            return
        for each in node.names:
            if each.name == "*":
                self.add(node.module, node.lineno)
                continue
            self.known[each.asname or each.name] = f"{node.module}.{each.name}"
            self.add(f"{node.module}.{each.name}", node.lineno)

    def visit_Attribute(self, node):
        parts, inner = [node.attr], node.value
        while isinstance(inner, ast.Attribute):
            parts.append(inner.attr)
            inner = inner.value
        if isinstance(inner, ast.Name) and inner.id in self.known:
            self.add(".".join([self.known[inner.id], *reversed(parts)]), node.lineno)
        else:
            self.generic_visit(node)


def uses(path):
    """{dotted name: lines} of a script. A name that is part of a longer one is left out."""
    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read(), path)
    visitor = _Uses()
    visitor.visit(tree)
    longer = {".".join(name.split(".")[:i]) for name in visitor.uses for i in range(1, name.count(".") + 1)}
    return {name: sorted(set(lines)) for name, lines in visitor.uses.items() if name not in longer}


def of_script(path):
    """[{"name", "lines", "works", "reason"}] of a script."""
    rows = []
    for name, lines in sorted(uses(path).items()):
        works, reason = found(_prefix(name))
        rows.append({"name": name, "lines": lines, "works": works, "reason": reason})
    return rows


def _prefix(name):
    """The name up to what is an attribute of a class or value: enough to know whether it is there."""
    works, _ = found(name)
    shorter = name.rpartition(".")[0]
    while not works and shorter and _is_value(shorter):
        name, shorter = shorter, shorter.rpartition(".")[0]
    return name


def _is_value(name):
    parts = name.split(".")
    try:
        here = importlib.import_module(parts[0])
        for part in parts[1:]:
            here = getattr(here, part)
    except (AttributeError, ImportError, NotImplementedError):
        return False
    return not isinstance(here, types.ModuleType)


def main(words):
    """Prints the table, or what the scripts need; 1 where something is lacking."""
    warnings.simplefilter("ignore")
    as_json = "--json" in words
    scripts = [word for word in words if word != "--json"]
    if not scripts:
        return _print_table(table(), as_json)
    lacking, made = 0, {}
    for path in scripts:
        try:
            made[path] = of_script(path)
        except (OSError, SyntaxError, UnicodeDecodeError) as error:
            print(f"error: ms: {path}: {getattr(error, 'strerror', None) or error}", file=sys.stderr)
            return 1
        missing = [row for row in made[path] if not row["works"]]
        lacking += len(missing)
        if as_json:
            continue
        print(f"{path}: {len(made[path])} names of MindSpore, {len(made[path]) - len(missing)} supported")
        for row in missing:
            for line in row["lines"]:
                print(f"  {path}:{line}  {row['reason']}")
    if as_json:
        print(json.dumps(made, indent=1))
    return 1 if lacking else 0


def _print_table(rows, as_json):
    if as_json:
        print(json.dumps(rows, indent=1))
        return 0
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        print(f"{row['name']:{width}}  {'works' if row['works'] else 'refused: ' + row['reason']}")
    print(f"{sum(row['works'] for row in rows)} of {len(rows)} names work")
    return 0
