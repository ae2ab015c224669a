"""Functions of users rewritten for capture: ordinary Python stays, but conditions, loops, calls and stores go through
`flow`, which makes branches and loops of the graph where they depend on captured tensors.

    if x.sum() > 0:          def then(): nonlocal y; y = x
        y = x                def otherwise(): nonlocal y; y = -x
    else:             ->     def get(): return (y,)
        y = -x               def put(values): nonlocal y; (y,) = values
                             flow.if_(x.sum() > 0, then, otherwise, get, put, ("y",), 12)
"""

import ast
import copy
import types

from cairn.ms.refusal import Forbidden, ForbiddenType, Uncaptured

from . import flow, source
from .lower import _assign, _load, lowered, misses_return

_PLAIN_CALLS = {"locals", "globals", "vars", "eval", "exec", "isinstance", "hasattr", "type"}
_rewritten = {}
_made = set()  # code objects that need no rewriting
unended = {}  # code of a function that returns something on some paths, and ends without a return on others: what it is called


def rewritten(function):
    """A function of the same arguments, defaults, closure and globals; Uncaptured for what has no source or cannot be."""
    if function.__code__ in _made:
        return function
    known = _rewritten.get(function.__code__)
    if known is None:
        known = _rewritten[function.__code__] = _compile(function)
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
    cells["_cairn"] = types.CellType(flow)
    closure = tuple(cells[name] for name in known.co_freevars)
    made = types.FunctionType(known, function.__globals__, function.__name__, function.__defaults__, closure)
    made.__kwdefaults__ = function.__kwdefaults__
    made.__qualname__ = function.__qualname__
    made.__doc__ = function.__doc__
    return made


def _compile(function):
    code = function.__code__
    node = copy.deepcopy(source.tree_of(function))
    if isinstance(node, ast.Lambda):
        body = [ast.copy_location(ast.Return(node.body), node.body)]
        node = ast.copy_location(_definition("_cairn_lambda", node.args, body), node)
    node.decorator_list, node.returns = [], None
    for each in ast.walk(node.args):
        if isinstance(each, ast.arg):
            each.annotation = None
    node.args.defaults = [ast.Constant(None) for _ in node.args.defaults]
    node.args.kw_defaults = [None if each is None else ast.Constant(None) for each in node.args.kw_defaults]
    if node.name not in code.co_freevars:  # a function that calls itself finds itself where it was defined
        node.name = f"_cairn_{node.name}"
    path = function.__qualname__.split(".")
    owner = path[-2] if len(path) > 1 and path[-2] != "<locals>" else None
    misses = misses_return(node)
    made = _Function(node, owner).made()
    factory = _definition("_cairn_factory", _arguments(*code.co_freevars, "_cairn"), [made])
    module = ast.fix_missing_locations(ast.Module([ast.copy_location(factory, node)], []))
    compiled = compile(module, code.co_filename, "exec")
    own = source.inner_code(source.inner_code(compiled, "_cairn_factory"), node.name).replace(co_name=code.co_name)
    _keep(own)
    if misses:
        unended[own] = f"bound method '{function.__name__}' of {owner}" if owner else f"function '{function.__name__}'"
    return own


def _keep(code):
    _made.add(code)
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            _keep(each)


def _stored(statements):
    """The names that the statements assign in their own scope."""
    names = []

    def visit(node):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.append(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.append(node.name)
            return
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names.extend((each.asname or each.name).split(".")[0] for each in node.names)
        elif isinstance(node, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            return
        for each in ast.iter_child_nodes(node):
            visit(each)

    for each in statements:
        visit(each)
    return list(dict.fromkeys(names))


def _is_python(node):
    """Whether a condition never depends on the elements of a tensor."""
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.Compare):
        return all(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops)
    if isinstance(node, ast.BoolOp):
        return all(map(_is_python, node.values))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return _is_python(node.operand)
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "hasattr")


def _tested(node):
    """Marks the `and` and `or` of which a condition takes the truth alone."""
    if isinstance(node, ast.BoolOp):
        node.tested = True
        for each in node.values:
            _tested(each)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        _tested(node.operand)
    return node


def _assigns(node):
    """Whether the expression assigns a name, which only the function itself can."""
    return any(isinstance(each, ast.NamedExpr) for each in ast.walk(node))


def _arguments(*names):
    return ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])


def _definition(name, arguments, body):
    made = ast.FunctionDef(name, arguments, body, [])
    if "type_params" in ast.FunctionDef._fields:
        made.type_params = []
    return made


def _text(value):
    return ast.Constant(value)


def _flow(name, *arguments, keywords=()):
    function = ast.Attribute(_load("_cairn"), name, ast.Load())
    return ast.Call(function, list(arguments), list(keywords))


def _is_flow(function):
    return isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "_cairn"


def _thunk(node):
    return ast.copy_location(ast.Lambda(_arguments(), node), node)


_OPERATORS = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
    ast.In: "in", ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not",
}  # fmt: skip


class _Stores(ast.NodeTransformer):
    """x[i] = v of a name becomes x = setitem(x, i, v), so that x is seen to be assigned; attributes go through setattr."""

    def visit_FunctionDef(self, node):
        return node

    visit_Lambda = visit_ClassDef = visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Assign(self, node):
        if not any(isinstance(each, (ast.Subscript, ast.Attribute)) for each in node.targets):
            return node
        if len(node.targets) == 1:
            return self._store(node.targets[0], node.value, node)
        value = "_cairn_value"
        made = [_assign(value, node.value, node)]
        for target in node.targets:
            each = self._store(target, _load(value), node)
            made.append(each)
        return made

    def visit_Expr(self, node):
        called = node.value.func if isinstance(node.value, ast.Call) else None
        if isinstance(called, ast.Attribute) and called.attr == "append":
            kept = called.value.value if isinstance(called.value, ast.Subscript) else called.value
            check = _member(kept)
            if check is not None:
                return [ast.copy_location(ast.Expr(check), node), node]
        return node

    def visit_AugAssign(self, node):
        target = node.target
        if not isinstance(target, (ast.Subscript, ast.Attribute)) and not isinstance(node.op, (ast.LShift, ast.RShift)):
            return node
        read = copy.deepcopy(target)
        read.ctx = ast.Load()
        return self._store(target, ast.copy_location(ast.BinOp(read, node.op, node.value), node), node)

    def _store(self, target, value, like):
        if isinstance(target, ast.Subscript):
            index = target.slice
            made, of = _flow("setitem", _member(target.value) or target.value, _index(index), value), target.value
            root = of
            while isinstance(root, ast.Subscript):
                root = root.value
            while isinstance(root, ast.Name) and of is not root:  # xs[i][j] = v: the new xs[i] goes into xs
                made, of = _flow("put_back", of.value, _index(of.slice), made), of.value
            if isinstance(of, ast.Name):
                return ast.copy_location(ast.Assign([ast.Name(of.id, ast.Store())], made), like)
            return ast.copy_location(ast.Expr(made), like)
        if isinstance(target, ast.Attribute):
            made = _flow("set_attribute", target.value, _text(target.attr), value, _text(like.lineno))
            return ast.copy_location(ast.Expr(made), like)
        return ast.copy_location(ast.Assign([target], value), like)


def _member(node):
    """self.x, read as something that is written to; None for anything else."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        return _flow("member", node.value, _text(node.attr))
    return None


def _index(node):
    """The value of a subscript, with slices as calls."""
    if isinstance(node, ast.Slice):
        parts = [each or ast.Constant(None) for each in (node.lower, node.upper, node.step)]
        return ast.copy_location(ast.Call(ast.Attribute(_load("_cairn"), "slice_", ast.Load()), parts, []), node)
    if isinstance(node, ast.Tuple):
        return ast.copy_location(ast.Tuple([_index(each) for each in node.elts], ast.Load()), node)
    return node


class _Function(ast.NodeTransformer):
    """Rewrites one function; functions inside are rewritten by their own."""

    def __init__(self, node, owner, outer=None):
        self._node, self._owner = node, owner
        self._outer = outer
        self._counter = outer._counter if outer else [0]
        arguments = node.args
        all_arguments = arguments.posonlyargs + arguments.args + arguments.kwonlyargs
        self._parameters = [each.arg for each in all_arguments]
        self._parameters += [each.arg for each in (arguments.vararg, arguments.kwarg) if each is not None]
        self._globals, self._nonlocals = set(), set()
        self._shared = {}  # names that inner functions assign

    def made(self):
        node = self._node
        if isinstance(node, ast.AsyncFunctionDef):
            raise Uncaptured("Unsupported expression 'Async'", node.lineno)
        self._refuse(node.body)
        for each in node.body:
            for inner in ast.walk(each):
                if isinstance(inner, ast.Global):
                    self._globals.update(inner.names)
                elif isinstance(inner, ast.Nonlocal):
                    self._nonlocals.update(inner.names)
        stores = _Stores()
        body = []
        for each in lowered(node):
            each = stores.visit(each)
            body += each if isinstance(each, list) else [each]
        body = self._block(body)
        start = []
        for name in self._shared:
            if name not in self._parameters and name not in self._nonlocals:
                start.append(_assign(name, _flow("Undefined", _text(name)), node))
        at = 1 if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) else 0
        while at < len(body) and isinstance(body[at], (ast.Global, ast.Nonlocal)):
            at += 1
        node.body = body[:at] + start + body[at:] or [ast.Pass()]
        return node

    def _refuse(self, statements):
        for each in statements:
            if isinstance(each, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
                continue
            name = type(each).__name__
            if name in ("Yield", "YieldFrom", "Await", "AsyncFor", "AsyncWith", "AsyncFunctionDef"):
                raise Forbidden(f"Unsupported expression '{name}'", each.lineno)
            if name == "Try" and not each.handlers:
                raise Forbidden("Unsupported statement 'Try'.", each.lineno)
            if isinstance(each, (ast.For, ast.While)) and each.orelse:
                raise Forbidden(f"The '{name.lower()}...else...' statement is not supported now.", each.lineno)
            self._refuse(ast.iter_child_nodes(each))

    def _block(self, statements):
        out = []
        for each in statements:
            made = self.visit(each)
            if isinstance(made, list):
                out += made
            elif made is not None:
                out.append(made)
        return out

    def _fresh(self, stem):
        self._counter[0] += 1
        return f"_cairn_{stem}_{self._counter[0]}"

    def _names(self, *blocks):
        names = [name for block in blocks for name in _stored(block) if name not in self._globals]
        names = list(dict.fromkeys(names))
        self._shared.update(dict.fromkeys(names))
        return names

    def _inner(self, stem, body, names, like, arguments=()):
        """A function without results that assigns the names of this one."""
        name = self._fresh(stem)
        start = [ast.Nonlocal(names)] if names else []
        own = self._globals & set(_stored(body))
        if own:
            start.append(ast.Global(sorted(own)))
        made = _definition(name, _arguments(*arguments), start + (body or [ast.Pass()]))
        return ast.copy_location(made, like)

    def _access(self, names, like):
        loads = ast.Tuple([_load(name) for name in names], ast.Load())
        get = self._inner("get", [ast.Return(loads)], [], like)
        store = ast.Tuple([ast.Name(name, ast.Store()) for name in names], ast.Store())
        body = [ast.Assign([store], _load("_cairn_values"))] if names else []
        put = self._inner("put", body, names, like, ["_cairn_values"])
        return get, put, ast.Tuple([_text(name) for name in names], ast.Load())

    def _run(self, name, arguments, node):
        return ast.copy_location(ast.Expr(_flow(name, *arguments, _text(node.lineno))), node)

    # Statements

    def visit_If(self, node):
        if _is_python(node.test):
            node.test = self.visit(node.test)
            node.body, node.orelse = self._block(node.body), self._block(node.orelse)
            return node
        names = self._names(node.body, node.orelse)
        test = self.visit(_tested(node.test))
        then = self._inner("then", self._block(node.body), names, node)
        otherwise = self._inner("else", self._block(node.orelse), names, node)
        get, put, texts = self._access(names, node)
        arguments = [test, *(_load(each.name) for each in (then, otherwise, get, put)), texts]
        return [then, otherwise, get, put, self._run("if_", arguments, node)]

    def visit_While(self, node):
        tested = [ast.Expr(node.test)]
        names = self._names(node.body, tested)
        tested = _stored(tested)
        test = self.visit(_tested(node.test))
        if node.stop:
            names = list(dict.fromkeys([*names, node.stop]))
            test = _flow("and_", _thunk(_flow("not_", _load(node.stop))), _thunk(test))
        condition = self._inner("test", [ast.copy_location(ast.Return(test), node.test)], tested, node)
        body = self._inner("body", self._block(node.body), names, node)
        get, put, texts = self._access(names, node)
        arguments = [*(_load(each.name) for each in (condition, body, get, put)), texts]
        return [condition, body, get, put, self._run("while_", arguments, node)]

    def visit_For(self, node):
        target = _Stores()._store(node.target, _load("_cairn_item"), node)
        statements = [target, *node.body]
        names = self._names(statements)
        items = self.visit(node.iter)
        body = self._inner("body", self._block(statements), names, node, ["_cairn_item"])
        get, put, texts = self._access(names, node)
        stop = _text(names.index(node.stop) if node.stop else None)
        arguments = [items, *(_load(each.name) for each in (body, get, put)), texts, stop]
        return [body, get, put, self._run("for_", arguments, node)]

    def visit_Raise(self, node):
        kind = node.exc
        self.generic_visit(node)
        if node.exc is None:
            return node
        called = kind.func if isinstance(kind, ast.Call) else kind
        of = [_text(called.id), _thunk(_load(called.id))] if isinstance(called, ast.Name) else []
        node.exc = ast.copy_location(_flow("raised", node.exc), node.exc)
        check = ast.copy_location(ast.Expr(_flow("raising", _text(node.lineno), *of)), node)
        return [check, node]

    def visit_FunctionDef(self, node):
        node.decorator_list = [self.visit(each) for each in node.decorator_list]
        node.args.defaults = [self.visit(each) for each in node.args.defaults]
        node.args.kw_defaults = [each and self.visit(each) for each in node.args.kw_defaults]
        return _Function(node, self._owner, outer=self).made()

    def visit_ClassDef(self, node):
        return node

    # Expressions

    def visit_Constant(self, node):
        if isinstance(node.value, complex):
            raise ForbiddenType(f"Only support 'Number' type of 'int` and 'float' in a graph, but got {node.value}.", node.lineno)
        return node

    def visit_ListComp(self, node):
        if len(node.generators) > 1:
            told = f"The 'generators' supports 1 'comprehension' in ListComp/GeneratorExp, but got {len(node.generators)} comprehensions."
            raise ForbiddenType(told, node.lineno)
        return self.generic_visit(node)

    visit_GeneratorExp = visit_ListComp

    def visit_FormattedValue(self, node):  # its format stays as it is
        node.value = ast.copy_location(_flow("told", self.visit(node.value)), node.value)
        return node

    def visit_JoinedStr(self, node):
        plain = [isinstance(each, ast.FormattedValue) and each.conversion == -1 and each.format_spec is None for each in node.values]
        self.generic_visit(node)
        if not any(plain):
            return node
        parts = [
            each.value if bare else each if isinstance(each, ast.Constant) else ast.JoinedStr([each])
            for each, bare in zip(node.values, plain)
        ]
        return ast.copy_location(_flow("joined", *parts), node)

    def visit_Call(self, node):
        if isinstance(node.func, ast.Name) and node.func.id == "super":
            if not node.args and self._receiver():
                node.args = [_load("__class__"), _load(self._receiver())]
            return node
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "isinstance" and len(node.args) == 2:
            return ast.copy_location(_flow("isinstance_", *node.args), node)
        if isinstance(node.func, ast.Name) and node.func.id in _PLAIN_CALLS or _is_flow(node.func):
            return node
        if isinstance(node.func, ast.Attribute) and node.func.attr == "has_key":
            return ast.copy_location(_flow("has_key", node.func.value, *node.args), node)
        line = ast.keyword("_cairn_line", _text(node.lineno))
        made = ast.Call(ast.Attribute(_load("_cairn"), "call", ast.Load()), [node.func, *node.args], node.keywords + [line])
        return ast.copy_location(made, node)

    def _receiver(self):
        function = self
        while function._outer is not None:
            function = function._outer
        return function._parameters[0] if function._parameters and self._owner else None

    def visit_Attribute(self, node):
        self.generic_visit(node)
        if self._owner and node.attr.startswith("__") and not node.attr.endswith("__"):
            node.attr = f"_{self._owner.lstrip('_')}{node.attr}"
        of = getattr(node.value, "func", None)
        if isinstance(of, ast.Name) and of.id == "super":
            return ast.copy_location(_flow("of_super", node.value, _text(node.attr)), node)
        return node

    def visit_IfExp(self, node):
        plain = _is_python(node.test) or _assigns(node)
        _tested(node.test)
        self.generic_visit(node)
        if plain:
            return node
        made = _flow("choose", node.test, _thunk(node.body), _thunk(node.orelse), _text(node.lineno))
        return ast.copy_location(made, node)

    def visit_BoolOp(self, node):
        plain = _is_python(node) or _assigns(node)
        self.generic_visit(node)
        if plain:
            return node
        both = isinstance(node.op, ast.And)
        thunks = map(_thunk, node.values)
        if hasattr(node, "tested"):
            return ast.copy_location(_flow("and_" if both else "or_", *thunks), node)
        return ast.copy_location(_flow("one_of", ast.Constant(both), _text(node.lineno), *thunks), node)

    def visit_BinOp(self, node):
        self.generic_visit(node)
        if not isinstance(node.op, (ast.LShift, ast.RShift)):
            return node
        left = ast.Constant(isinstance(node.op, ast.LShift))
        return ast.copy_location(_flow("shifted", node.left, node.right, left), node)

    def visit_UnaryOp(self, node):
        plain = _is_python(node)
        if isinstance(node.op, ast.Not):
            _tested(node.operand)
        self.generic_visit(node)
        if plain or not isinstance(node.op, (ast.Not, ast.Invert)):
            return node
        return ast.copy_location(_flow("not_" if isinstance(node.op, ast.Not) else "inverted", node.operand), node)

    def visit_Compare(self, node):
        plain = len(node.ops) == 1 or _assigns(node)
        self.generic_visit(node)
        if len(node.ops) == 1 and isinstance(node.ops[0], (ast.In, ast.NotIn)):
            negated = ast.Constant(isinstance(node.ops[0], ast.NotIn))
            return ast.copy_location(_flow("contains", node.left, *node.comparators, negated), node)
        if plain:
            return node
        rest = [
            ast.Tuple([_text(_OPERATORS[type(op)]), _thunk(right)], ast.Load())
            for op, right in zip(node.ops, node.comparators)
        ]
        return ast.copy_location(_flow("chain", node.left, *rest), node)
