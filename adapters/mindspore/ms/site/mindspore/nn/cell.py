"""Cell: the base of networks and layers. Names of parameters are paths of attributes."""

import contextlib
import inspect
import types
from collections import OrderedDict

import numpy
from mindspore.common.hook_handle import HookHandle
from mindspore.common.parameter import DEFAULT_NAME, Parameter, ParameterTuple
from mindspore.common.tensor import Tensor
from mindspore.nn._accepted import Accepted, told_of_self

from cairn.ms import core, dtypes, gradient, modes, promote
from cairn.ms.numerics import collectives
from cairn.ms.names import Missing
from cairn.ms.primitive import Primitive
from cairn.ms.refusal import WrongGradients

_FLOATS = (dtypes.types["float16"], dtypes.types["float32"])


class Cell(Accepted):
    """Cell(auto_prefix=True, flags=None): a subclass calls super().__init__() first and computes in construct()."""

    def __init__(self, auto_prefix=True, flags=None):
        own = self.__dict__
        own.update(
            _params=OrderedDict(), _cells=OrderedDict(), _primitives=OrderedDict(), _tensor_list={}, _flags={},
            _auto_prefix=auto_prefix, training=False, requires_grad=False, _plain=True, _cast_to=None, _scope=None,
            _param_prefix="", _forward_pre_hook=OrderedDict(), _forward_hook=OrderedDict(),
            _backward_hooks=OrderedDict(), cell_type=None, _names_checked=False, phase="train", jit_config_dict={},
            instance_name=type(self).__name__, bprop_debug=False, _precision_mode="", _returns=None,
        )  # fmt: skip
        if type(self).bprop is not Cell.bprop:
            own["_plain"] = False
        if flags:
            self.add_flags(**flags)

    def __init_subclass__(cls, **keywords):
        super().__init_subclass__(**keywords)
        own = cls.__dict__.get("construct")
        if isinstance(own, types.FunctionType) and own.__code__.co_argcount and own.__code__.co_varnames[0] != "self":
            cls.construct = told_of_self(own, cls.__name__)

    def construct(self, *inputs, **kwargs):
        """What the cell computes; a subclass defines it."""
        raise Missing(f"For 'Cell', the method 'construct' is not defined by {type(self).__name__}.")

    def bprop(self, *inputs):
        """A subclass may define the gradients of its inputs, from them, the results and the gradients of these."""
        raise NotImplementedError

    # ---- calls ----

    def __call__(self, *args, **kwargs):
        for each in args:
            if isinstance(each, numpy.ndarray):
                raise TypeError(
                    "The inputs of a Cell should be Tensor, number, tuple, list or None, but got numpy.ndarray."
                )
        recorder = core.here.recorder
        if recorder is not None:
            return recorder.prepared(self.construct)(*args, **kwargs) if self._plain else self.run(args, kwargs)
        if core.graph_entry is not None and (modes.mode == modes.GRAPH or self._precision_mode and not self._is_hooked()):
            if modes.mode == modes.GRAPH and not self._names_checked:
                self.check_names()
                self.__dict__["_names_checked"] = True
            self.check_inputs(args)
            return core.graph_entry(self, args, kwargs)
        return self.construct(*args, **kwargs) if self._plain else self.run(args, kwargs)

    def _is_hooked(self):
        """Whether the cell or one below it has hooks, which a graph does not call."""
        return any(each._forward_pre_hook or each._forward_hook or each._backward_hooks for _, each in self.cells_and_names())

    def uncaptured(self, *args, **kwargs):
        """The call as it is, eagerly or as part of what is being captured."""
        return core.prepared(self.construct)(*args, **kwargs) if self._plain else self.run(args, kwargs)

    def run(self, args, kwargs):
        """construct() with hooks, a gradient of its own and mixed precision."""
        recorder = core.here.recorder
        hooked = modes.mode == modes.PYNATIVE and not modes.here.staged and (recorder is None or not recorder.symbolic)  # a graph calls none
        for hook in tuple(self._forward_pre_hook.values()) if hooked else ():
            changed = hook(self._scope_name(), args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        if self._precision_mode:
            args, kwargs = self._cast(args, _FLOATS[1].numpy), {key: self._cast(each, _FLOATS[1].numpy) for key, each in kwargs.items()}
        if self._cast_to is None:
            made = self._computed(args, kwargs, hooked)
        else:
            args, kwargs = self._cast(args), {key: self._cast(each) for key, each in kwargs.items()}
            with self._cast_constants():
                made = self._computed(args, kwargs, hooked)
            made = made if self._returns is None else self._cast(made, self._returns)
        for hook in tuple(self._forward_hook.values()) if hooked else ():
            changed = hook(self._scope_name(), args, made)
            made = made if changed is None else changed
        return made

    def _computed(self, args, kwargs, hooked):
        if type(self).bprop is not Cell.bprop:
            return self._with_bprop(args, kwargs)
        if self._backward_hooks and hooked:
            return self._with_backward_hooks(args, kwargs)
        return core.prepared(self.construct)(*args, **kwargs)

    @contextlib.contextmanager
    def _cast_constants(self):
        """In a graph, tensors among the attributes count as numbers of the type meanwhile, as Parameters do."""
        own, symbolic = self.__dict__, getattr(core.here.recorder, "symbolic", False)
        before = {key: each for key, each in own.items() if type(each) is Tensor} if symbolic else {}
        cast = {key: self._cast(each) for key, each in before.items()}
        own.update(cast)
        try:
            yield
        finally:
            own.update({key: each for key, each in before.items() if own[key] is cast[key]})

    def _scope_name(self):
        return f"{type(self).__name__}({id(self)})"

    def _with_bprop(self, args, kwargs):
        from mindspore import context
        from mindspore.ops._grad.grad_base import checked

        own = len(self.parameters_dict()) if context.get_context("check_bprop") else 0
        if own and core.here.recorder is not None and not core.here.recorder.symbolic:  # whose gradients bprop() does not return
            raise RuntimeError(f"When user defines the net bprop, there are {own} parameters that is not supported in the net.")

        def forward(*inputs):
            return core.prepared(self.construct)(*inputs, **kwargs)

        def backward(inputs, results, gradients):
            made = core.prepared(self.bprop)(*inputs, results, gradients)
            made = made if isinstance(made, tuple) else (made,)
            if len(made) != len(inputs):
                raise WrongGradients(
                    f"For user define net bprop, the gradients number: {len(made)} is not equal to the args number: {len(inputs)}. "
                    f"The method 'bprop' of {type(self).__name__} should return one for each input of construct."
                )
            return checked(type(self).__name__, inputs, made)

        return gradient.with_bprop(forward, backward, args)

    def _with_backward_hooks(self, args, kwargs):
        """Hooks see the gradients of the results, which come in, and those of the inputs, which go out and may be replaced."""
        seen = {}

        def of_results(inputs, results, gradients):
            seen["results"] = gradients
            return gradients

        def of_inputs(inputs, results, gradients):
            made = gradients
            for hook in tuple(self._backward_hooks.values()):
                changed = hook(self._scope_name(), seen.get("results", ()), made)
                if changed is not None:
                    made = changed if isinstance(changed, tuple) else (changed,)
            return made

        tensors = [i for i, each in enumerate(args) if isinstance(each, Tensor)]
        marked = core.custom(_as_they_are, of_inputs, [args[i] for i in tensors], always=True) if tensors else ()
        args = list(args)
        for i, each in zip(tensors, marked):
            args[i] = each
        made = core.prepared(self.construct)(*args, **kwargs)
        results = made if isinstance(made, tuple) else (made,)
        results = core.custom(_as_they_are, of_results, results)
        return results if isinstance(made, tuple) else results[0]

    def _cast(self, tree, floats=None):
        if isinstance(tree, Tensor):
            return promote.cast(tree, floats or self._cast_to) if promote.nptype(tree).kind == "f" else tree
        if isinstance(tree, (tuple, list)):
            return type(tree)(self._cast(each, floats) for each in tree)
        return tree

    def cast_param(self, param):
        """The parameter as mixed precision has it."""
        return param if self._cast_to is None else self._cast(param)

    def compile(self, *inputs):
        """Compiles the cell for these inputs; returns what tells them from others that it is compiled for."""
        self.check_names()
        return core.graph_entry.compile(self, inputs) if type(self).construct is not Cell.construct else None

    def compile_and_run(self, *inputs):
        return self(*inputs)

    # ---- attributes ----

    # What classes of a script's own that derive from this one call in their construct: {name: its maker}.
    _held = {}

    @classmethod
    def _maker(cls, name):
        return next((each.__dict__["_held"][name] for each in cls.__mro__ if name in each.__dict__.get("_held", ())), None)

    def __getattr__(self, name):
        own = self.__dict__
        if name in own.get("_cells", ()):
            return own["_cells"][name]
        if name in own.get("_params", ()):
            found = own["_params"][name]
            return found if own["_cast_to"] is None else self._cast(found)
        maker = self._maker(name) if "_cells" in own else None
        if maker is not None:
            object.__setattr__(self, name, maker(self))
            return own[name]
        hint = "" if "_cells" in own else " Please call super().__init__() in its __init__ first."
        if core.here.recorder is not None and core.here.recorder.symbolic:
            hint += f" External object has no attribute {name}."
        raise AttributeError(f"The '{type(self).__name__}' object has no attribute '{name}'.{hint}")

    def __setattr__(self, name, value):
        own = self.__dict__
        if "_cells" not in own:
            if isinstance(value, (Cell, Parameter, ParameterTuple)):
                raise AttributeError(f"For 'Cell', super().__init__() must be called before '{name}' is assigned.")
            object.__setattr__(self, name, value)
        elif isinstance(value, Parameter):
            self._set_parameter(name, value)
        elif isinstance(value, ParameterTuple):
            own.pop(name, None)
            for each in value:
                self.insert_param_to_cell(each.name, each, check_name_contain_dot=False)
            object.__setattr__(self, name, value)
        elif isinstance(value, Cell):
            self._set_cell(name, value)
        elif name in self._params:
            self._set_in_parameter(name, value)
        elif name in self._cells:
            if value is not None:
                raise TypeError(
                    f"For 'Cell', attribute '{name}' is a Cell and cannot be set to {type(value).__name__}."
                )
            self._cells[name] = None
        else:
            if isinstance(value, Primitive):
                self._primitives[name] = value
                value.set_prim_instance_name(name)
            elif isinstance(value, Tensor):
                self._tensor_list[name] = value
            object.__setattr__(self, name, value)

    def _set_parameter(self, name, value):
        own = self.__dict__
        if name in self._cells:
            raise TypeError(f"For 'Cell', the name '{name}' is that of a Cell and cannot become a Parameter.")
        own.pop(name, None)
        self._tensor_list.pop(name, None)
        self.insert_param_to_cell(name, value)

    def _set_cell(self, name, value):
        if name in self._params:
            raise TypeError(f"For 'Cell', the name '{name}' is that of a Parameter and cannot become a Cell.")
        self.__dict__.pop(name, None)
        if self._auto_prefix:
            value.update_parameters_name(name + ".")
        self._cells[name] = value

    def _set_in_parameter(self, name, value):
        if isinstance(value, Tensor) and self._params[name] is not None:
            self._params[name].set_data(value)
        elif value is not None:
            raise TypeError(
                f"For 'Cell', attribute '{name}' is a Parameter and cannot be set to {type(value).__name__}."
            )
        else:
            self._params[name] = None

    def __delattr__(self, name):
        for kind in ("_params", "_cells"):
            if name in self.__dict__[kind]:
                del self.__dict__[kind][name]
                return
        self._primitives.pop(name, None)
        self._tensor_list.pop(name, None)
        object.__delattr__(self, name)

    def __dir__(self):
        return [*super().__dir__(), *self._params, *self._cells]

    def insert_child_to_cell(self, child_name, child_cell):
        """Adds a child under a new name."""
        if not isinstance(child_name, str):
            raise TypeError(
                f"For 'insert_child_to_cell', 'child_name' should be str, but got {type(child_name).__name__}."
            )
        if not child_name or "." in child_name:
            raise KeyError(
                f"For 'insert_child_to_cell', 'child_name' cannot be empty or hold '.', but got '{child_name}'."
            )
        if hasattr(self, child_name) and child_name not in self._cells:
            raise KeyError(f"For 'insert_child_to_cell', the name '{child_name}' already exists in the cell.")
        if not isinstance(child_cell, Cell) and child_cell is not None:
            raise TypeError(
                f"For 'insert_child_to_cell', 'child_cell' should be a Cell, but got {type(child_cell).__name__}."
            )
        self._cells[child_name] = child_cell

    def insert_param_to_cell(self, param_name, param, check_name_contain_dot=True):
        """Adds a parameter under a new name, which is its own unless it has one."""
        if not isinstance(param_name, str):
            raise TypeError(
                f"For 'insert_param_to_cell', 'param_name' should be str, but got {type(param_name).__name__}."
            )
        if not param_name or (check_name_contain_dot and "." in param_name):
            raise KeyError(
                f"For 'insert_param_to_cell', 'param_name' cannot be empty or hold '.', but got '{param_name}'."
            )
        if hasattr(self, param_name) and param_name not in self._params:
            raise KeyError(f"For 'insert_param_to_cell', the name '{param_name}' already exists in the cell.")
        if not isinstance(param, Parameter) and param is not None:
            raise TypeError(
                f"For 'insert_param_to_cell', 'param' should be a Parameter, but got {type(param).__name__}."
            )
        if param is not None and param.name == DEFAULT_NAME:
            param.name = param_name
        self._params[param_name] = param
        if param is not None:
            param.held = True

    # ---- parameters and children ----

    def update_parameters_name(self, prefix="", recurse=True):
        """Puts the prefix before the path of each parameter."""
        if not isinstance(prefix, str):
            raise TypeError(f"For 'update_parameters_name', 'prefix' should be str, but got {type(prefix).__name__}.")
        for name, param in self.parameters_and_names(expand=recurse):
            if prefix:
                param.is_init = False
            param.name = prefix + name

    def parameters_and_names(self, name_prefix="", expand=True):
        """(path, parameter) of the cell, then of its children in order."""
        seen = set()
        cells = self.cells_and_names(name_prefix=name_prefix) if expand else [(name_prefix, self)]
        for cell_name, cell in cells:
            for name, param in cell._params.items():
                if param is None or id(param) in seen:
                    continue
                seen.add(id(param))
                yield (f"{cell_name}.{name}" if cell_name else name), param

    def cells_and_names(self, cells=None, name_prefix=""):
        """(path, cell) of the cell itself and of all below it."""
        seen = cells if cells is not None else set()
        if id(self) in seen:
            return
        seen.add(id(self))
        yield name_prefix, self
        for name, cell in self._cells.items():
            if cell is not None:
                yield from cell.cells_and_names(seen, f"{name_prefix}.{name}" if name_prefix else name)

    def get_parameters(self, expand=True):
        for _, param in self.parameters_and_names(expand=expand):
            yield param

    def trainable_params(self, recurse=True):
        return [param for param in self.get_parameters(expand=recurse) if param.requires_grad]

    def untrainable_params(self, recurse=True):
        return [param for param in self.get_parameters(expand=recurse) if not param.requires_grad]

    def parameters_dict(self, recurse=True):
        """{name: parameter}"""
        return OrderedDict((param.name, param) for param in self.get_parameters(expand=recurse))

    parameters_broadcast_dict = parameters_dict

    def check_names(self):
        """Raises ValueError where two parameters have one name; what several optimizers keep may."""
        known = {}
        for path, cell in self.cells_and_names():
            if any(base.__name__ == "Optimizer" for base in type(cell).__mro__):
                continue
            for name, param in cell._params.items():
                if param is not None and known.setdefault(param.name, param) is not param:
                    raise ValueError(
                        f"The value of {path}.{name} is {param}, its name '{param.name}' already exists. "
                        "Please set a unique name for the parameter."
                    )

    def name_cells(self):
        """{name: child}"""
        seen, made = set(), OrderedDict()
        for name, cell in self._cells.items():
            if cell is not None and id(cell) not in seen:
                seen.add(id(cell))
                made[name] = cell
        return made

    def cells(self):
        return self.name_cells().values()

    def apply(self, fn):
        """Calls fn on all cells below, then on this one."""
        for cell in self.cells():
            cell.apply(fn)
        fn(self)
        return self

    def update_cell_prefix(self):
        for path, cell in self.cells_and_names():
            cell._param_prefix = path

    @property
    def param_prefix(self):
        return self._param_prefix

    @property
    def parameter_layout_dict(self):
        return {}

    # ---- flags ----

    def set_train(self, mode=True):
        """Whether the cell and all below it train."""
        self.phase = "train" if mode else "predict"
        return self.add_flags_recursive(training=mode)

    def set_grad(self, requires_grad=True):
        self.requires_grad = requires_grad
        return self

    def add_flags(self, **flags):
        self._flags.update(flags)
        self.__dict__.update(flags)
        if "fp16" in flags or "fp32" in flags:
            asked = [floats.numpy for name, floats in zip(("fp16", "fp32"), _FLOATS) if flags.get(name)]
            self._compute_in(asked[0] if asked else None)
        return self

    def _compute_in(self, floats):
        """Inputs and parameters count as numbers of this type."""
        self.__dict__.update(_cast_to=floats, _plain=False)

    def add_flags_recursive(self, **flags):
        self.add_flags(**flags)
        for cell in self.cells():
            cell.add_flags_recursive(**flags)
        return self

    def get_flags(self):
        return self._flags

    def to_float(self, dst_type):
        """Has the cell and all below it compute in float16 or float32."""
        if dst_type not in _FLOATS:
            raise ValueError(
                f"For 'to_float', the argument 'dst_type' should be float32 or float16, but got {dst_type}."
            )
        return self.add_flags_recursive(fp16=dst_type is _FLOATS[0], fp32=dst_type is _FLOATS[1])

    def set_comm_fusion(self, fusion_type, recurse=True):
        """The bucket in which gradients of the trainable parameters are exchanged between ranks."""
        for each in self.trainable_params(recurse):
            each.comm_fusion = fusion_type
        return self

    def set_broadcast_flag(self, mode=True):
        """Gives all ranks the parameters of rank 0."""
        if mode:
            collectives.share(self.get_parameters())
        return self

    # ---- hooks ----

    def _add_hook(self, hooks, hook, name):
        if not inspect.isfunction(hook) and not inspect.ismethod(hook):
            raise TypeError(
                f"When using '{name}(hook_fn)', the type of 'hook_fn' should be a Python function, but got {type(hook).__name__}."
            )
        if hasattr(hook, "captured"):
            raise TypeError(f"Decorating hook function {hook.__name__} with '@ms_function' is not supported.")
        self.__dict__["_plain"] = False
        return HookHandle(hooks, hook)

    def register_forward_pre_hook(self, hook_fn):
        """hook_fn(cell_id, inputs) is called before construct; what it returns takes the inputs' place."""
        return self._add_hook(self._forward_pre_hook, hook_fn, "register_forward_pre_hook")

    def register_forward_hook(self, hook_fn):
        """hook_fn(cell_id, inputs, output) is called after construct; what it returns takes the output's place."""
        return self._add_hook(self._forward_hook, hook_fn, "register_forward_hook")

    def register_backward_hook(self, hook_fn):
        """hook_fn(cell_id, grad_input, grad_output): the gradients that come to the cell, of its results, and those that it
        passes on, of its inputs, whose place what it returns takes."""
        return self._add_hook(self._backward_hooks, hook_fn, "register_backward_hook")

    # ---- text ----

    def extend_repr(self):
        """What the text of the cell says after its class."""
        return ""

    def __repr__(self):
        extra = self.extend_repr()
        lines = [extra] if extra else []
        lines += [f"({name}): {cell!r}" for name, cell in self._cells.items()]
        if not self._cells:
            return f"{type(self).__name__}<{extra}>"
        body = "".join("\n" + line for line in lines).replace("\n", "\n  ")
        return f"{type(self).__name__}<{body}\n  >"


def _as_they_are(*tensors):
    return tensors


class GraphKernel(Cell):
    """A cell whose operators are compiled together, as all are."""


class GraphCell(Cell):
    """GraphCell(graph, params_init=None): runs a graph that was loaded."""

    def __init__(self, graph, params_init=None, obf_password=None):
        super().__init__(auto_prefix=True)
        if not callable(getattr(graph, "parameters", None)):
            raise TypeError(f"For 'GraphCell', the 'graph' must be a graph that mindspore.load() read, but got {type(graph).__name__}.")
        self.graph = graph
        params_init = {} if params_init is None else params_init
        if not isinstance(params_init, dict):
            raise TypeError(f"For 'GraphCell', the argument 'params_init' must be a dict, but got {type(params_init).__name__}.")
        for name, value in params_init.items():
            if not isinstance(name, str) or not isinstance(value, Tensor):
                raise TypeError(
                    "For 'GraphCell', the key of the 'params_init' must be str, and the value must be Tensor or Parameter, "
                    f"but got the key {name!r} and a value of type {type(value).__name__}.")
        graph.set_parameters(params_init)
        for name, param in graph.parameters().items():
            self._params[name] = param

    def construct(self, *inputs):
        return self.graph(*inputs)
