"""Returns inside conditions and loops, break and continue as assignments: afterwards a function returns at its end only, and
a loop ends by its condition. Works on the syntax tree alone."""

import ast
import copy

from cairn.ms.refusal import Uncaptured

RESULT = "_cairn_result"
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_LOOPS = (ast.For, ast.While)


def lowered(function):
    """The statements of the function's body; loops that break carry the name of their flag as `stop`."""
    names = _Names()
    body = function.body
    early = [each for each in body if _has(each, ast.Return, ())]
    if early and (early != [body[-1]] or not isinstance(body[-1], ast.Return)):
        body = _Returns(names).tail(body) + [ast.Return(_load(RESULT))]
    return _Jumps(names).block(body)


def misses_return(function):
    """Whether the function returns something on some paths and ends without a return on others."""
    returns = [each for each in ast.walk(function) if isinstance(each, ast.Return) and each.value is not None]
    return bool(returns) and not _always(function.body)


class _Names:
    def __init__(self):
        self._count = 0

    def fresh(self, stem):
        self._count += 1
        return f"_cairn_{stem}_{self._count}"


def _has(node, kinds, closed):
    """Whether the statement contains one of the kinds, outside of inner functions and of the statements `closed`."""
    if isinstance(node, kinds):
        return True
    if isinstance(node, _SCOPES) or isinstance(node, closed):
        return False
    return any(_has(each, kinds, closed) for each in ast.iter_child_nodes(node))


def _always(statements):
    """Whether no path reaches the end of the statements."""
    if not statements:
        return False
    last = statements[-1]
    if isinstance(last, ast.If):
        return _always(last.body) and _always(last.orelse)
    if isinstance(last, ast.With):
        return _always(last.body)
    return isinstance(last, (ast.Return, ast.Raise, ast.Break, ast.Continue))


def _load(name):
    return ast.Name(name, ast.Load())


def _assign(name, value, like=None):
    made = ast.Assign([ast.Name(name, ast.Store())], value)
    return ast.copy_location(made, like) if like is not None else made


class _Paths:
    """Moves what follows a condition with an end inside into its branches."""

    def tail(self, statements):
        out = []
        for index, each in enumerate(statements):
            rest = statements[index + 1 :]
            ended = self.end(each)
            if ended is not None:
                return out + ended
            if not self.inside(each):
                out.append(each)
                continue
            return out + self.split(each, rest)
        return out + self.fall_through()

    def split(self, node, rest):
        if isinstance(node, ast.If):
            then = node.body if _always(node.body) else node.body + copy.deepcopy(rest)
            otherwise = node.orelse if _always(node.orelse) else node.orelse + rest
            made = ast.If(node.test, self.tail(then) or [ast.Pass()], self.tail(otherwise))
            return [ast.copy_location(made, node)]
        if isinstance(node, ast.With) and (_always(node.body) or not rest):
            made = ast.With(node.items, self.tail(node.body) or [ast.Pass()])
            return [ast.copy_location(made, node)]
        raise Uncaptured(f"'{type(node).__name__.lower()}' with an early return, break or continue inside", node.lineno)


class _Returns(_Paths):
    def __init__(self, names):
        self._names = names

    def inside(self, node):
        return _has(node, ast.Return, ())

    def end(self, node):
        if isinstance(node, ast.Return):
            return [_assign(RESULT, node.value or ast.Constant(None), node)]
        return [node] if isinstance(node, ast.Raise) else None

    def fall_through(self):
        return [_assign(RESULT, ast.Constant(None))]

    def split(self, node, rest):
        if isinstance(node, ast.Try) and _always(node.body) and all(_always(each.body) for each in node.handlers):
            node.body = self.tail(node.body)
            for each in node.handlers:
                each.body = self.tail(each.body)
            return [node]
        if not isinstance(node, _LOOPS):
            return super().split(node, rest)
        flag = self._names.fresh("returned")
        loop = self._in_loop(node, flag)
        after = ast.copy_location(ast.If(_load(flag), [ast.Return(_load(RESULT))], []), node)
        return [_assign(flag, ast.Constant(False)), loop] + self.tail([after] + rest)

    def _in_loop(self, loop, flag):
        made = copy.copy(loop)
        made.body = self._leave(loop.body, flag)
        return made

    def _leave(self, statements, flag):
        out = []
        for each in statements:
            if isinstance(each, ast.Return):
                out.append(_assign(flag, ast.Constant(True), each))
                out.append(_assign(RESULT, each.value or ast.Constant(None), each))
                out.append(ast.copy_location(ast.Break(), each))
                return out
            if not self.inside(each):
                out.append(each)
            elif isinstance(each, _LOOPS):
                out.append(self._in_loop(each, flag))
                out.append(ast.copy_location(ast.If(_load(flag), [ast.Break()], []), each))
            elif isinstance(each, ast.If):
                branches = self._leave(each.body, flag), self._leave(each.orelse, flag)
                out.append(ast.copy_location(ast.If(each.test, *branches), each))
            else:
                raise Uncaptured(f"'{type(each).__name__.lower()}' in a loop with a return inside", each.lineno)
        return out


class _Jumps(_Paths):
    """break and continue of one loop at a time, outer loops first."""

    def __init__(self, names, stop=None):
        self._names, self._stop = names, stop

    def inside(self, node):
        return _has(node, (ast.Break, ast.Continue), _LOOPS)

    def end(self, node):
        if isinstance(node, ast.Break):
            return [_assign(self._stop, ast.Constant(True), node)]
        return [ast.copy_location(ast.Pass(), node)] if isinstance(node, ast.Continue) else None

    def fall_through(self):
        return []

    def block(self, statements):
        out = []
        for each in statements:
            out += self._loop(each) if isinstance(each, _LOOPS) else [self._within(each)]
        return out

    def _within(self, node):
        if isinstance(node, _SCOPES):
            return node
        for field in ("body", "orelse", "finalbody"):
            if isinstance(getattr(node, field, None), list):
                setattr(node, field, self.block(getattr(node, field)))
        for handler in getattr(node, "handlers", ()):
            handler.body = self.block(handler.body)
        return node

    def _loop(self, loop):
        breaks = any(_has(each, ast.Break, _LOOPS) for each in loop.body)
        jumps = any(self.inside(each) for each in loop.body)
        made = copy.copy(loop)
        made.stop = self._names.fresh("stop") if breaks else None
        body = _Jumps(self._names, made.stop).tail(loop.body) if jumps else loop.body
        made.body = self.block(body) or [ast.Pass()]
        start = [_assign(made.stop, ast.Constant(False), loop)] if breaks else []
        return start + [made]
