"""Operators as functions on arrays: each row of `docs/reference/ops.md` is one.

    y = cairn.ops.add(x, 1.0)
    y = cairn.ops.conv2d(images, kernel, strides=[2, 2], padding="same")
    cairn.ops.add(x, y, out=x)

Arrays are NumPy's, or any that speak DLPack; views are read where they lie. Results are new NumPy arrays, or go into `out`
(an array, or a tuple of them), which may be an input. A random state is an array u64[3]. Names that Python keeps for itself
end in "_": `and_`. `help(cairn.ops.add)` tells what a function takes, `cairn.ops()` lists all rows.
"""

import json
import keyword
import sys
import types

from cairn import _cairn

_rows = {}


def _row(name):
    if name not in _rows:
        _rows.update((row["name"], row) for row in json.loads(_cairn._ops()))
    return _rows.get(name)


def _python(text):
    """A default in the text form as Python's."""
    if text in ("true", "false"):
        return text.capitalize()
    try:
        json.loads(text)
        return text
    except ValueError:
        return repr(text)


def _documentation(name, row):
    required = [each["name"] for each in row["inputs"] if each["arity"] == "one"]
    optional = [each["name"] + "=None" for each in row["inputs"] if each["arity"] == "optional"]
    variadic = ["*" + each["name"] for each in row["inputs"] if each["arity"] == "variadic"]
    keywords = [
        each["name"] + ("" if each["required"] else "=" + _python(each["default"])) for each in row["attributes"]
    ]
    arguments = required + optional + (variadic or ["*"]) + keywords + ["out=None"]
    lines = [f"{name}({', '.join(arguments)})", "--", "", row["summary"] + "."]
    for each in row["attributes"]:
        if each.get("words"):
            lines += ["", f"{each['name']}: {', '.join(each['words'])}"]
    lines += ["", "Returns " + (", ".join(row["results"]) or "as many arrays as it has results") + "."]
    return "\n".join(lines)


def _function(name, row, **tensors):
    """The row as a function; `name` is the one that Python writes. tensors: how calls on objects that hold arrays are meant
    (operators.cpp)."""
    inputs = [
        (each["name"], each["arity"] != "one", each["arity"] == "variadic", each["role"] in ("shape", "index"))
        for each in row["inputs"]
    ]
    attributes = [(each["name"], each["kind"]) for each in row["attributes"]]
    return _cairn._operator(row["name"], name, _documentation(name, row), inputs, attributes, **tensors)


class _Domain:
    """Operators of one domain, "acme.scale" as cairn.ops.acme.scale."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, name):
        row = _row(f"{self._name}.{name}")
        if row is None:
            raise AttributeError(f"no operator is called {self._name}.{name}")
        function = _function(name, row)
        setattr(self, name, function)
        return function


class _Operators(types.ModuleType):
    def __call__(self):
        """All operators: [{"name", "summary", "inputs", "attributes", "results"}]."""
        return json.loads(_cairn._ops())

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        known = name[:-1] if name.endswith("_") and keyword.iskeyword(name[:-1]) else name
        row = _row(known)
        if row is not None:
            made = _function(name, row)
        elif any(each.startswith(known + ".") for each in _rows):
            made = _Domain(known)
        else:
            raise AttributeError(f"no operator is called {known}")
        setattr(self, name, made)
        return made

    def __dir__(self):
        _row("")
        names = {each.split(".")[0] for each in _rows}
        return sorted(each + "_" if keyword.iskeyword(each) else each for each in names)


sys.modules[__name__].__class__ = _Operators
