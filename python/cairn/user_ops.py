"""Operators of users in Python, and modules built from Python.

    @cairn.op("acme.clip_abs")
    def clip_abs(x, limit=1.0):                       # NumPy in, NumPy out
        return numpy.clip(numpy.abs(x), 0, limit)

    @clip_abs.gradient
    def _(x, y, dy, limit):                           # written with Cairn's operators
        return dy * x.sign() * (x.abs() < limit).cast(dtype=x.dtype)

    @cairn.op("acme.swish", traced=True)              # written with Cairn's operators: compiled, fused, differentiable
    def swish(x, beta=1.0):
        return x * (beta * x).sigmoid()
"""

import inspect
import os
import traceback

import numpy

from cairn import _cairn

__all__ = ["Builder", "Op", "Value", "load_op_library", "op"]

_ROLES = {"data": 0, "shape": 1, "index": 2, "state": 3}
_FLAGS = {"elementwise": 1, "random": 2}


def load_op_library(path):
    """Loads a shared library of operators (<cairn/op.h>); from now on models of this process may use them."""
    _cairn._load_op_library(os.fspath(path))


class Value:
    """A tensor in a function that is traced. Operators of Cairn are its methods: x.relu(), x.reduce_sum(axes=[0])."""

    __slots__ = ("_builder", "_handle", "_type")
    __array_ufunc__ = None  # a NumPy array on the left leaves + and the like to us

    def __init__(self, builder, handle):
        self._builder, self._handle, self._type = builder, handle, None

    def _known(self):
        if self._type is None:
            self._type = self._builder.type(self._handle)
        return self._type

    @property
    def dtype(self):
        return self._known()[0]

    @property
    def shape(self):
        """A tuple with None for open sizes; None where nothing is known."""
        return self._known()[1]

    def _other(self, value):
        """A number takes this value's element type, an array becomes a constant."""
        if isinstance(value, Value):
            return value
        if isinstance(value, (bool, int, float)):
            return Value(self._builder, self._builder.number(float(value), self.dtype))
        return Value(self._builder, self._builder.constant(numpy.asarray(value, order="C")))

    def apply(self, name, /, *others, results=1, **attributes):
        """A node of the operator of that name with this as its first input; a tuple where it has more results."""
        inputs = [self._handle] + [self._other(other)._handle for other in others]
        if isinstance(attributes.get("dtype"), str):
            attributes["dtype"] = numpy.dtype(attributes["dtype"])
        made = [Value(self._builder, handle) for handle in self._builder.add(name, inputs, attributes, results)]
        return made[0] if results == 1 else tuple(made)

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *others, **attributes: self.apply(name, *others, **attributes)

    def __add__(self, other):
        return self.apply("add", other)

    def __sub__(self, other):
        return self.apply("sub", other)

    def __mul__(self, other):
        return self.apply("mul", other)

    def __truediv__(self, other):
        return self.apply("div", other)

    def __matmul__(self, other):
        return self.apply("matmul", other)

    def __pow__(self, other):
        return self.apply("pow", other)

    __radd__ = __add__
    __rmul__ = __mul__

    def __rsub__(self, other):
        return self._other(other) - self

    def __rtruediv__(self, other):
        return self._other(other) / self

    def __rmatmul__(self, other):
        return self._other(other) @ self

    def __neg__(self):
        return self.apply("neg")

    def __lt__(self, other):
        return self.apply("less", other)

    def __le__(self, other):
        return self.apply("less_equal", other)

    def __gt__(self, other):
        return self.apply("greater", other)

    def __ge__(self, other):
        return self.apply("greater_equal", other)

    def __bool__(self):
        raise TypeError("the elements of a traced value are not known while it is traced; use select()")


class Builder:
    """A model built operator by operator.

        b = cairn.Builder()
        x = b.input("x", "float32", [None, 3])
        b.output("y", x.relu())
        model = cairn.load(b.save("relu.om"))
    """

    def __init__(self, name="model"):
        self._builder = _cairn._Builder(name)

    def input(self, name, dtype, shape):
        """shape: None for open sizes."""
        return Value(self._builder, self._builder.param(name, str(numpy.dtype(dtype)), shape))

    def constant(self, value):
        return Value(self._builder, self._builder.constant(numpy.asarray(value, order="C")))

    def output(self, name, value, updates=None):
        """updates: the input that is a variable, whose content after a run the value is."""
        self._builder.result(name, value._handle, updates._handle if updates is not None else 0)

    def gradients(self, results, wanted, seeds=None):
        """The gradients of the values `wanted`, given those of `results` (seeds; ones without)."""
        handles = [[value._handle for value in values] for values in (results, seeds or (), wanted)]
        return [Value(self._builder, handle) for handle in self._builder.gradients(*handles)]

    def finish(self):
        """The model as a cairn.Module. The builder has no model any more."""
        return _cairn.Module(self._builder.finish())

    def save(self, path):
        """Writes the model as an .om file and returns its path. The builder has no model any more."""
        path = os.fspath(path)
        self._builder.save(path)
        return path


def _told(body):
    """None, or in one line what went wrong."""
    try:
        body()
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if frame.filename != __file__]
        place = f" ({os.path.basename(own[-1].filename)}:{own[-1].lineno})" if own else ""
        return f"{type(error).__name__}: {error}{place}"
    return None


def _tuple(value):
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


class Op:
    """An operator of a user; call it on arrays, or on values while something is traced."""

    def __init__(self, function, name, results, shape, roles, flags, traced, cases):
        self.name = name
        self.__doc__ = function.__doc__
        self.__name__ = getattr(function, "__name__", name)
        self._function, self._shape, self._gradient = function, shape, None
        self._results = list(results)
        parameters = inspect.signature(function).parameters.values()
        self._inputs = [p for p in parameters if p.default is p.empty]
        attributes = {p.name: p.default for p in parameters if p.default is not p.empty}
        inputs = [
            (p.name, _ROLES[roles.get(p.name, "data")], 2 if p.kind is p.VAR_POSITIONAL else 0) for p in self._inputs
        ]
        functions = {"decompose": self._decompose}
        if not traced:
            functions = {"kernel": self._kernel, "shape": self._infer, "gradient": self._differentiate}
        self._traced = traced
        summary = (function.__doc__ or f"the Python function {self.__name__}").strip().splitlines()[0]
        code = function.__code__
        origin = f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}"
        flag_bits = sum(_FLAGS[flag] for flag in flags)
        _cairn._register_op(
            name, summary, inputs, attributes, self._results, flag_bits, list(cases), functions, origin
        )

    def __call__(self, *inputs, **attributes):
        for each in inputs:
            if isinstance(each, Value):
                others = [each._other(other) for other in inputs]
                return others[0].apply(self.name, *others[1:], results=len(self._results), **attributes)
        return _cairn._run_op(self.name, list(inputs), attributes, 0, "")

    def gradient(self, function):
        """Decorates the function that makes the gradients of the inputs: of the inputs, the results, the gradients of the
        results and the attributes, by Cairn's operators. None: no gradient."""
        if self._traced:
            raise ValueError(f"{self.name} is traced: its gradient is that of the operators it is made of")
        self._gradient = function
        return function

    def _infer(self, inputs, attributes, types):
        def body():
            if self._shape is not None:
                made = self._shape(*inputs, **attributes)
                types.extend(made if isinstance(made, list) else [made])
            else:
                types.extend([inputs[0]] * len(self._results))
            for index, (dtype, dims) in enumerate(types):
                types[index] = (str(numpy.dtype(dtype)), dims)

        return _told(body)

    def _kernel(self, inputs, attributes, outputs, dtypes, open_):
        def body():
            results = _tuple(self._function(*inputs, **attributes))
            if len(results) != len(outputs):
                raise ValueError(f"returned {len(results)} results, expected {len(outputs)}")
            for index, (result, output) in enumerate(zip(results, outputs)):
                result = numpy.asarray(result)
                if output is None:
                    open_.append((index, numpy.ascontiguousarray(result, dtypes[index])))
                elif result.shape != output.shape:
                    raise ValueError(
                        f"result {self._results[index]} has shape {list(result.shape)}, expected {list(output.shape)}; "
                        "shape= of cairn.op says what it is"
                    )
                else:
                    numpy.copyto(output, result, casting="same_kind")

        return _told(body)

    def _decompose(self, builder, inputs, attributes, made):
        def body():
            values = [Value(builder, handle) for handle in inputs]
            results = _tuple(self._function(*values, **attributes))
            if len(results) != len(self._results):
                raise ValueError(f"returned {len(results)} results, expected {len(self._results)}")
            made.extend(values[0]._other(result)._handle for result in results)

        return _told(body)

    def _differentiate(self, builder, inputs, results, gradients, wanted, attributes, made):
        def body():
            if self._gradient is None:
                raise ValueError(f"{self.name} has no gradient; decorate one with .gradient")
            xs = [Value(builder, handle) for handle in inputs]
            ys = [Value(builder, handle) for handle in results]
            dys = [Value(builder, handle) if handle else y * 0.0 for handle, y in zip(gradients, ys)]
            grads = _tuple(self._gradient(*xs, *ys, *dys, **attributes))
            if len(grads) != len(xs):
                raise ValueError(f"the gradient returned {len(grads)} values, expected {len(xs)}: one for each input")
            made.extend(0 if grad is None or not want else grad._handle for grad, want in zip(grads, wanted))

        return _told(body)


def op(name=None, *, results=("y",), shape=None, roles=None, flags=(), traced=False, cases=()):
    """Makes an operator of a function; models, scripts and other operators can use it under its name.

    Parameters without a default are inputs, those with one are attributes. name: "domain.name"; without one "python." and
    the function's. shape: of a NumPy function, maps inputs (dtype, dims with None for open sizes) and attributes to the
    result as (dtype, dims), or a list of them; without one every result is like the first input. results: their names.
    roles: {input: "shape", "index" or "state"} of what is no data. flags: "elementwise", "random" (equal inputs may give
    other results). traced: the function takes and returns values instead of arrays. cases: inputs worth testing,
    "f32[2, 3] {limit = 2.0}".
    """

    def make(function):
        own = name if isinstance(name, str) else "python." + function.__name__
        return Op(function, own, results, shape, roles or {}, flags, traced, cases)

    return make(name) if callable(name) else make
