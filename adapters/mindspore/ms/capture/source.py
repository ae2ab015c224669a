"""The syntax tree of a function that runs, found in its file."""

import ast
import builtins
import dis
import linecache
import os
import traceback
import types

from cairn.ms.refusal import Uncaptured

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_trees = {}
_RULE, _CALLS = 52 * "-", "The function call stack:"


def _tree(filename):
    lines = linecache.getlines(filename)
    text = "".join(lines)
    if not text:
        return None
    known = _trees.get(filename)
    if known is None or known[0] != text:
        known = _trees[filename] = (text, ast.parse(text, filename))
    return known[1]


def _first_line(node):
    return min([each.lineno for each in getattr(node, "decorator_list", ())] + [node.lineno])


def tree_of(function):
    """The FunctionDef or Lambda of a Python function. Uncaptured where its source is not to be had."""
    code = function.__code__
    try:
        tree = _tree(code.co_filename)
    except SyntaxError:
        tree = None
    if tree is None:
        raise Uncaptured(f"the source of '{function.__qualname__}' is not available (functions typed into a terminal)")
    wanted = ast.Lambda if code.co_name == "<lambda>" else ast.FunctionDef
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, wanted) and _first_line(node) == code.co_firstlineno and _fits(node, code)
    ]
    if len(found) > 1:
        found = [node for node in found if _same(node, code)] or found
    if not found:
        raise Uncaptured(f"the source of '{function.__qualname__}' has changed or is no plain function", code.co_firstlineno)
    return found[0]


def _fits(node, code):
    arguments = node.args
    names = [each.arg for each in arguments.posonlyargs + arguments.args + arguments.kwonlyargs]
    names += [each.arg for each in (arguments.vararg, arguments.kwarg) if each is not None]
    return list(code.co_varnames[: len(names)]) == names and getattr(node, "name", "<lambda>") == code.co_name


def _same(node, code):
    """Whether the node of several on a line is the one that the code was compiled from."""
    if isinstance(node, ast.Lambda) and hasattr(code, "co_positions"):
        columns = [column for _, _, column, _ in code.co_positions() if column]
        return node.body.col_offset <= min(columns, default=0) <= (node.body.end_col_offset or 0)
    return True


def inner_code(code, name):
    """The code object of a function defined directly in another."""
    return next(each for each in code.co_consts if isinstance(each, types.CodeType) and each.co_name == name)


def undefined_name(error):
    """A NameError with the place of the first name that the functions of the traceback use and nobody defined; None without one. It is
    looked for after any error: what depends on captured tensors may fail before the name is reached."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    codes = {frame.f_code: frame.f_globals for frame in frames if not frame.f_code.co_filename.startswith(_HERE)}
    for code, known in codes.items():
        for name, line in _global_names(code):
            if name not in known and not hasattr(builtins, name):
                text = linecache.getline(code.co_filename, line).strip()
                said = f"The name '{name}' is not defined, or not supported in graph mode. The symbol '{name}' is not defined."
                return NameError(f"{said}\nIn file {code.co_filename}({line})\n    {text}")
    return None


def place(error):
    """The error of a graph, whose words say where the script called what raised it, the outermost call first."""
    words = error.args[0] if len(error.args) == 1 else None if error.args else ""  # `assert x` alone says nothing
    own = isinstance(error, (KeyError, OSError)) or type(error).__module__ not in ("builtins", Uncaptured.__module__)
    if own or not isinstance(words, str) or _CALLS in words:
        return error
    places = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__) if not frame.f_code.co_filename.startswith(_HERE)]
    places = [each for each, before in zip(places, [None, *places]) if each != before]  # a statement may be several functions
    if places:
        lines = [f"# {i} In file {file}({line})\n        {linecache.getline(file, line).strip()}" for i, (file, line) in enumerate(places)]
        error.args = ("\n".join([words, "", _RULE, "- The Traceback of Net Construct Code:", _RULE, _CALLS, *lines]),)
    return error


def _global_names(code):
    """(name, line) of the globals that the code and the functions in it read."""
    for each in dis.get_instructions(code):
        if each.opname == "LOAD_GLOBAL" and each.positions.lineno:
            yield each.argval, each.positions.lineno
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            yield from _global_names(each)


def endings(place, name):
    """Where the branches of the condition at `place` ("file:line") give the variable its value, or return where name is None."""
    filename, line = place.rsplit(":", 1)
    tree = _tree(filename) if line.isdigit() else None
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, (ast.If, ast.While)) and node.lineno == int(line):
            gives = [each for each in ast.walk(tree) if _gives(each, name)]
            inside = [[each for each in gives if side and side[0].lineno <= each.lineno <= side[-1].end_lineno] for side in (node.body, node.orelse)]
            behind = [each for each in gives if name is None and each.lineno > node.end_lineno][:1]
            found = [each[-1] for each in (inside[0], inside[1] or behind) if each]
            return "".join(f"\n    {filename}:{each.lineno}: {linecache.getline(filename, each.lineno).strip()}" for each in found)
    return ""


def _gives(node, name):
    if name is None:
        return isinstance(node, ast.Return)
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, (ast.AugAssign, ast.AnnAssign)) else ()
    return any(isinstance(each, ast.Name) and each.id == name for target in targets for each in ast.walk(target))
