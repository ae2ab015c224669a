"""Primitives: operators with attributes at construction and tensors at the call."""

import functools
import inspect
import types

import numpy
from cairn.ms import core, gradient
from cairn.ms.refusal import refuse
from cairn.ms.tensor import wrap


class Primitive:
    """Primitive(name): a subclass computes in __call__, with cairn.ms.core. One of a script may compute in vm_impl(), and says its
    gradient by get_bprop()."""

    def __init_subclass__(cls, **keywords):
        super().__init_subclass__(**keywords)
        own = cls.__dict__.get("__call__")
        if own is not None and cls.__module__.partition(".")[0] not in ("mindspore", "cairn"):
            cls.__call__ = _of_script(own)

    def __init__(self, name):
        self.name = self.instance_name = name
        self.attrs, self.init_attrs = {}, {"name": name}

    def __getattr__(self, name):
        if not name.startswith("_") and name in self.__dict__.get("attrs", ()):
            return self.__dict__["attrs"][name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def add_prim_attr(self, name, value):
        self.__dict__[name] = value
        self.attrs[name] = value
        return self

    def del_prim_attr(self, name):
        self.__dict__.pop(name, None)
        self.attrs.pop(name, None)
        return self

    def init_prim_io_names(self, inputs, outputs):
        """Names of the inputs and results, which are attributes as well."""
        self.add_prim_attr("input_names", inputs)
        self.add_prim_attr("output_names", outputs)

    def set_prim_instance_name(self, name):
        self.instance_name = name
        return self

    def set_device(self, device_target):
        return self.add_prim_attr("primitive_target", device_target)

    def set_stage(self, stage):
        return self.add_prim_attr("stage", stage)

    def shard(self, in_strategy=None, out_strategy=None):
        """Kept as an attribute: operators are not split over ranks."""
        if in_strategy is not None and not isinstance(in_strategy, tuple):
            raise TypeError(f"in_strategy must be tuple type, but got: {type(in_strategy)}")
        return self.add_prim_attr("in_strategy", in_strategy)

    set_strategy = shard

    def recompute(self, mode=True):
        """Accepted: the compiler decides what is kept."""
        return self

    def set_const_prim(self, const_prim=False):
        self.const_prim = const_prim
        return self

    @property
    def update_parameter(self):
        """Whether an input is written."""
        return bool(self.attrs.get("side_effect_mem"))

    def check_elim(self, *inputs):
        return False, None

    def _infer(self, inputs):
        """Calls what a subclass says of its results: it raises for inputs that it does not take."""
        if all(hasattr(each, "shape") for each in inputs):
            for name, asked in (("infer_shape", [list(x.shape) for x in inputs]), ("infer_dtype", [x.dtype for x in inputs])):
                getattr(self, name, lambda *_: None)(*asked)

    def __call__(self, *inputs):
        if type(self) is Primitive:
            from mindspore.ops import _named

            function = _named.function_of(self)
            if function is not None:
                return function(*inputs)
        self._infer(inputs)
        if hasattr(self, "vm_impl"):
            return _of_script(lambda self, *given: self.vm_impl(*given))(self, *inputs)
        if _is_inferred(self):
            return _of_script(_stand_in)(self, *inputs)
        self._refuse()

    def _refuse(self):
        refuse(f"Primitive {self.name}", "has no computation here", "a Cell, or cairn.op,")

    def __deepcopy__(self, memo):
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)
        made.attrs = dict(self.attrs)
        return made

    def __repr__(self):
        shown = ", ".join(f"{key}={value}" for key, value in self.attrs.items() if "names" not in key)
        return f"Prim[{self.name}]<{shown}>" if shown else f"Prim[{self.name}]"


def _of_script(computes):
    """A script's computation of a primitive, whose gradients are those of its get_bprop()."""
    says_nothing = getattr(computes, "__code__", None) is not None and computes.__code__.co_names == ("NotImplementedError",)

    def call(self, *inputs):
        if core.here.recorder is None:
            return computes(self, *inputs)
        forward = _stand_in if says_nothing and _is_inferred(self) else computes
        if forward is _stand_in and not hasattr(self, "get_bprop"):
            return _stand_in(self, *inputs)

        def backward(given, results, gradients):
            from mindspore.ops._grad.grad_base import checked

            if not hasattr(self, "get_bprop"):
                raise RuntimeError(f"Illegal primitive: Primitive {self.name}'s bprop not defined.")
            made = core.prepared(self.get_bprop())(*given, results, gradients)
            return checked(self.name, given, made if isinstance(made, tuple) else (made,))

        return gradient.with_bprop(core.prepared(types.MethodType(forward, self)), backward, inputs)

    call.computes = computes
    return call


def _is_inferred(primitive):
    """Whether a graph can be compiled with the primitive, although nothing computes it."""
    own = type(primitive)
    says = issubclass(own, PrimitiveWithInfer) and PrimitiveWithInfer.infer_shape not in (own.infer_shape, own.infer_dtype)
    return says and getattr(core.here.recorder, "symbolic", False)


def _stand_in(primitive, *inputs):
    """What a graph is compiled with in place of the primitive's result; running it is refused."""
    shape = primitive.infer_shape(*(list(each.shape) for each in inputs))
    dtype = primitive.infer_dtype(*(each.dtype for each in inputs))
    core.here.recorder.shown.append((lambda _: primitive._refuse(), ()))
    return core.broadcast_to(wrap(numpy.zeros((), dtype.numpy)), list(shape))


class PrimitiveWithCheck(Primitive):
    """A primitive whose inputs __check__ looks at."""

    def check_shape(self, *shapes):
        """A subclass may raise for shapes that it does not take."""

    check_dtype = check_shape


class PrimitiveWithInfer(Primitive):
    """A primitive that says what its results are; one with vm_impl computes by it, in NumPy."""

    def infer_shape(self, *shapes):
        """A subclass may say the shapes of its results."""

    infer_dtype = infer_value = infer_shape


def prim_attr_register(function):
    """Decorates __init__ of a primitive: its arguments become attributes."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def make(self, *arguments, **keywords):
        if "attrs" not in self.__dict__:
            class_name = type(self).__name__
            Primitive.__init__(self, getattr(self, "name", class_name) if "name" in type(self).__dict__ else class_name)
        bound = signature.bind(self, *arguments, **keywords)
        bound.apply_defaults()
        for name, value in list(bound.arguments.items())[1:]:
            self.add_prim_attr(name, value)
            self.init_attrs[name] = value
        return function(self, *arguments, **keywords)

    return make


def constexpr(fn=None, get_instance=True, name=None, reuse_result=True, check=True):
    """Decorates a function of constants, which runs in Python also while a graph is captured."""

    def mark(function):
        function.is_constexpr = True
        return function if get_instance else lambda: function

    return mark(fn) if fn is not None else mark
