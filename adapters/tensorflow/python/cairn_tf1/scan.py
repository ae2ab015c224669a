"""Looks through a script and the modules beside it, before it runs, for TensorFlow names that nothing supplies, and for those that
something else supplies. Reads the text only; names are looked up in the live modules."""

import ast
import importlib
import json
import os
import sys
import types
from typing import NamedTuple

from cairn_tf1 import moved

LIMIT = 500  # files of one project
ASKING = ("__version__", "VERSION", "hasattr(", "getattr(", "executing_eagerly", "find_spec(")  # words of a test of names


class Finding(NamedTuple):
    file: str
    line: int
    name: str
    answer: str  # where the name is found now, or why it is missing

    def __str__(self):
        return f"{self.file}:{self.line}: {self.name}" + (f" ({self.answer})" if self.answer else "")


class Findings(NamedTuple):
    missing: list
    aliases: list


def look_through(script):
    """Findings of the script and of every local module that it imports, directly or not. CAIRN_TF1_REPORT names a JSON file that
    gets them all."""
    script = os.path.relpath(script)
    waiting, seen = [script], {script}
    findings = Findings([], [])
    while waiting and len(seen) < LIMIT:
        path = waiting.pop()
        for other in _look_at(path, os.path.dirname(os.path.abspath(script)), findings):
            if other not in seen:
                seen.add(other)
                waiting.append(other)
    for items in findings:
        items.sort()
    _report(findings)
    return findings


def _report(findings):
    path = os.getenv("CAIRN_TF1_REPORT")
    if path:
        content = {name: [item._asdict() for item in getattr(findings, name)] for name in ("missing", "aliases")}
        with open(path, "w", encoding="utf-8") as file:
            json.dump({**content, "restored": moved.restored}, file, indent=1)


def _look_at(path, root, findings):
    """Adds the findings of one file; returns the local files that it imports."""
    try:
        with open(path, "rb") as file:
            tree = ast.parse(file.read(), path)
    except SyntaxError as error:
        findings.missing.append(Finding(path, error.lineno or 1, "not Python 3", error.msg))
        return []
    except OSError:
        return []
    reader = _Reader(path, root, findings)
    reader.visit(tree)
    return reader.local


class _Reader(ast.NodeVisitor):
    def __init__(self, path, root, findings):
        self._path, self._root, self._findings = path, root, findings
        self._names = {}  # name in the file -> dotted name in TensorFlow
        self._guarded = 0  # inside a try that expects failure, or behind a question for the name
        self._missed = 0  # names that are missing inside such code
        self._answers = set()  # variables that hold the answer to such a question
        self._seen = set()
        self.local = []

    def visit_Try(self, node):
        guards = any(_catches_missing(handler.type) for handler in node.handlers)
        missed = self._missed
        self._visit_all(node.body, guards)
        self._visit_all(node.handlers, guards and self._missed == missed)  # the other way, which is not taken
        self._visit_all([*node.orelse, *node.finalbody], False)

    def _visit_all(self, nodes, guarded):
        self._guarded += guarded
        for node in nodes:
            self.visit(node)
        self._guarded -= guarded

    def visit_If(self, node):
        self.visit(node.test)
        self._visit_all([*node.body, *node.orelse], self._asks(node.test))

    def visit_IfExp(self, node):
        self.visit(node.test)
        self._visit_all([node.body, node.orelse], self._asks(node.test))

    def visit_Assign(self, node):
        self.generic_visit(node)
        if self._asks(node.value):
            self._answers.update(target.id for target in node.targets if isinstance(target, ast.Name))

    def _asks(self, test):
        text = ast.unparse(test)
        return any(word in text for word in ASKING) or any(
            isinstance(part, ast.Name) and part.id in self._answers for part in ast.walk(test)
        )

    def visit_Import(self, node):
        for item in node.names:
            if _of_tensorflow(item.name):
                self._check(node, item.name, module=True)
                root = item.name.split(".")[0]
                self._names[item.asname or root] = item.name if item.asname else root
            else:
                self._follow(item.name, 0)

    def visit_ImportFrom(self, node):
        module = node.module or ""
        if node.level == 0 and _of_tensorflow(module):
            if self._check(node, module, module=True):
                for item in node.names:
                    if item.name != "*":
                        self._check(node, f"{module}.{item.name}")
                        self._names[item.asname or item.name] = f"{module}.{item.name}"
        else:
            self._follow(module, node.level)
            for item in node.names:
                self._follow(f"{module}.{item.name}" if module else item.name, node.level)
            if module == "npu_bridge.npu_init":
                self._names.setdefault("tf", "tensorflow")

    def visit_Attribute(self, node):
        parts = []
        inner = node
        while isinstance(inner, ast.Attribute):
            parts.append(inner.attr)
            inner = inner.value
        if isinstance(inner, ast.Name) and inner.id in self._names:
            # A name that is stored to or asked for by hasattr is the script's own affair.
            if isinstance(node.ctx, ast.Load):
                self._check(node, ".".join([self._names[inner.id], *reversed(parts)]))
        else:
            self.generic_visit(node)

    def visit_Call(self, node):
        if isinstance(node.func, ast.Name) and node.func.id in ("hasattr", "getattr"):
            for argument in node.args[1:]:
                self.visit(argument)
            return
        self.generic_visit(node)

    def _check(self, node, name, module=False):
        """Whether the name is there; records what was found once per line."""
        answer, place = _look_up(name, module)
        key = (node.lineno, place)
        if key not in self._seen:
            self._seen.add(key)
            if answer is None:
                self._missed += 1
                if not self._guarded:
                    self._findings.missing.append(Finding(self._path, node.lineno, place, ""))
            elif answer != place and not place.endswith("__"):
                self._findings.aliases.append(Finding(self._path, node.lineno, place, answer))
        return answer is not None

    def _follow(self, name, level):
        folder = self._root
        if level:
            folder = os.path.dirname(os.path.abspath(self._path))
            for _ in range(level - 1):
                folder = os.path.dirname(folder)
        base = os.path.join(folder, *name.split("."))
        for path in (base + ".py", os.path.join(base, "__init__.py")):
            if name and os.path.isfile(path):
                self.local.append(os.path.relpath(path))


def _catches_missing(kind):
    names = [kind] if not isinstance(kind, ast.Tuple) else kind.elts
    wanted = {"ImportError", "ModuleNotFoundError", "AttributeError", "Exception", "BaseException"}
    return kind is None or any(isinstance(name, ast.Name) and name.id in wanted for name in names)


def _of_tensorflow(name):
    return name.split(".")[0] in ("tensorflow", "keras")


def _look_up(name, module):
    """(where the longest module-like part of the name is found now, that part); (None, part) when it is not there."""
    parts = name.split(".")
    value = sys.modules[parts[0]]
    for index in range(1, len(parts)):
        place = ".".join(parts[: index + 1])
        try:
            value = getattr(value, parts[index])
        except AttributeError:
            try:
                value = importlib.import_module(place)
            except ImportError as error:  # of the module itself, or of something that it needs
                return None, place if error.name in (None, place) else f"{place}: {error}"
        except Exception as error:  # a name that exists and explains why it cannot be used
            return None, f"{place}: {error}"
        if not isinstance(value, types.ModuleType):  # nothing is asked of an object: flags would read the command line
            return _home(value, place), place  # methods and fields of a class or object are not looked at
    return _home(value, name), name


def _home(value, place):
    """A dotted name for where the alias found `place`, in the words of a script for 2.15."""
    first = place.split(".")[1] if "." in place else ""
    if place.startswith("keras"):
        return place
    if first == "contrib":
        return getattr(value, "__module__", None) or getattr(value, "__name__", place)
    if first in ("python", "core", "tools", "compiler", "compat", "examples"):
        return "restored" if place in moved.restored else place
    return place.replace("tensorflow", "tensorflow.compat.v1", 1) if first else place

