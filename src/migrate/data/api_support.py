"""Writes api_support.txt: what this version of Cairn does with TensorFlow's public names.

Which operators a function makes is read from its code and that of the functions it calls; whether the engine takes an operator
is asked of the installed engine as the TensorFlow adapter asks it; what the TensorFlow 1 layer supplies is asked of that
layer. Run: python src/migrate/data/api_support.py > src/migrate/data/api_support.txt"""

import ctypes
import importlib
import inspect
import json
import os
import pathlib
import pkgutil
import re
import types

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
HEAD = """\
# What this version of Cairn does with TensorFlow's public names; written by api_support.py. A name of TensorFlow 2.15
# (tf_api.txt) without a row runs. Columns: name (a final * stands for any rest, longest match wins), verdict, note.
# engine: its operators run on the engine; part: all but those named; host: they run in TensorFlow; layer: `cairn tf1`
# supplies it, a module of which only the names with a row exist; missing: nothing does."""
BY_HAND = """\
tf.contrib.* missing nothing supplies this part of tf.contrib
tf.estimator.tpu.* runs runs as a plain Estimator with use_tpu=False
tf.tpu.* missing there is no TPU here; set use_tpu=False and remove the call
tf.distribute.experimental.TPUStrategy missing there is no TPU here
tf.distribute.TPUStrategy missing there is no TPU here
tf.keras.mixed_precision.experimental missing tf.keras.mixed_precision has its names; set_policy is set_global_policy there
tf.keras.mixed_precision.experimental.set_policy missing tf.keras.mixed_precision.set_global_policy is its name in TensorFlow 2.15
tf.keras.mixed_precision.experimental.* missing its name in TensorFlow 2.15 is without experimental
tf.keras.utils.multi_gpu_model missing one process a rank takes its place: wrap the optimizer and start with cairn launch -n N
tf.keras.wrappers.* missing TensorFlow 2.15 has no such name; the package scikeras has these wrappers"""
LOOPS = "engine loops and branches go there whole, when everything in them does"
BY_HAND += "".join(
    f"\ntf.{name} {LOOPS}"
    for name in ("while_loop", "cond", "case", "map_fn", "scan", "foldl", "foldr", "nn.dynamic_rnn", "nn.raw_rnn",
                 "nn.bidirectional_dynamic_rnn")
)  # fmt: skip
DEPTH = 3  # of calls that are followed
# Code that every function goes through, and that makes operators only for arguments of rare kinds.
COMMON = ("framework.", "eager.", "util.", "platform.", "ops.check_ops", "ops.control_flow_assert", "ops.ragged.", "ops.sparse_ops",
          "ops.resource_variable_ops", "ops.variable", "ops.cond", "ops.while", "ops.control_flow", "ops.tensor_array_ops",
          "ops.script_ops", "ops.list_ops", "ops.handle_data_util", "ops.logging_ops", "ops.random_ops_util", "distribute.",
          "ops.embedding_ops", "ops.gradient", "ops.stateless_random_ops", "ops.string_ops", "trackable.", "training.")  # fmt: skip
# Modules of Keras that scripts of its time did not have.
INTERNAL = re.compile(r"_test|\.tests|\.benchmarks|testing_infra|dtensor|\.distribute\b|feature_column|legacy_tf_layers|premade|\.export\b")
# Operators that hold or name things and compute nothing.
SILENT = {"Assert", "Print", "PrintV2", "NoOp", "Const", "Placeholder", "VarHandleOp", "VariableV2", "Identity", "IdentityN", "Shape",
          "EagerPyFunc", "PyFunc", "StringFormat"}  # fmt: skip
# Made for complex numbers, sparse hints and loops only; they count where a function makes nothing else.
RARE = {"Angle", "Complex", "ComplexAbs", "Conj", "ConjugateTranspose", "Enter", "Imag", "Real", "SparseMatMul"}


def main():
    import tensorflow as tf

    makers = Makers(tf)
    names = {}
    for line in pathlib.Path(__file__).with_name("tf_api.txt").read_text().splitlines()[1:]:
        name, kind = line.split()
        if kind[0] == "f" and not name.startswith("raw_ops."):
            names[name] = makers.operators(find(tf.compat.v1, name) if "1" in kind else find(tf, name))
    refused = engine_refuses(sorted({op for made in names.values() for op in made}))
    decided = {row.split()[0] for row in BY_HAND.splitlines()}
    rows = [f"tf.{name} {verdict(made, refused)}" for name, made in names.items() if made and f"tf.{name}" not in decided]
    print(HEAD, BY_HAND, *rows, *dict.fromkeys(supplied_by_the_layer()), sep="\n")


def verdict(made, refused):
    made = made - RARE or made
    left = sorted(made & refused.keys())
    if not left:
        return "engine"
    return ("part " if made - refused.keys() else "host ") + ", ".join(left[:4]) + (" and more" if len(left) > 4 else "")


def find(module, name):
    for part in name.split("."):
        module = getattr(module, part)
    return module


class Makers:
    """Which operators Python functions of TensorFlow make."""

    def __init__(self, tf):
        self._ops = {name for name in dir(tf.raw_ops) if name[0].isalpha()}
        self._found = {}  # function -> operators that it makes itself, functions that it calls

    def operators(self, function):
        """Those of calls down to DEPTH, without what every function does."""
        pending, seen, made = [plain(function)], set(), set()
        for _ in range(DEPTH + 1):
            called = []
            for one in pending:
                if one is not None and one not in seen:
                    seen.add(one)
                    own, below = self._look(one)
                    made |= own
                    called += below
            pending = called
        return made - SILENT

    def _look(self, function):
        if function not in self._found:
            constants, callees = set(), []
            for code in codes(function.__code__):
                constants.update(value for value in code.co_consts if isinstance(value, str))
                callees += [plain(value) for value in reached(code, function.__globals__)]
            generated = function.__module__.rpartition(".")[2].startswith("gen_")
            self._found[function] = constants & self._ops if generated else set(), [] if generated else list(filter(followed, callees))
        return self._found[function]


def plain(function):
    """The Python function below decorators, dispatchers and aliases; None when there is none."""
    from tensorflow.python.util import tf_decorator

    function = inspect.unwrap(tf_decorator.unwrap(function)[1]) if callable(function) else None
    function = getattr(function, "__func__", function)
    return function if isinstance(function, types.FunctionType) else None


def followed(function):
    module = function.__module__ if function else ""
    inside = module.startswith(("tensorflow.python.ops.", "tensorflow.python.framework.")) and not function.__name__.endswith("fallback")
    return inside and not module.removeprefix("tensorflow.python.").startswith(COMMON)


def codes(code):
    yield code
    for value in code.co_consts:
        if isinstance(value, types.CodeType):
            yield from codes(value)


def reached(code, names):
    """Values of the chains `name`, `module.name` that the code may load."""
    for name in code.co_names:
        value = names.get(name)
        if isinstance(value, types.ModuleType):
            yield from (vars(value)[inner] for inner in code.co_names if callable(vars(value).get(inner)))
        elif isinstance(value, types.FunctionType):
            yield value


def engine_refuses(ops):
    """{operator: reason} of those that the engine takes into no cluster, in float32 where they have the choice."""
    import cairn
    from tensorflow.core.framework import graph_pb2, types_pb2
    from tensorflow.python.framework import op_def_registry

    graph = graph_pb2.GraphDef()
    for op in ops:
        node = graph.node.add(name=op, op=op)
        definition = op_def_registry.get(op)
        for attribute in definition.attr:
            allowed = attribute.allowed_values.list.type
            if attribute.HasField("default_value"):
                node.attr[attribute.name].CopyFrom(attribute.default_value)
            elif attribute.type == "type":
                wanted = types_pb2.DT_FLOAT if not allowed or types_pb2.DT_FLOAT in allowed else allowed[0]
                node.attr[attribute.name].type = wanted
    library = ctypes.CDLL(str(next(pathlib.Path(cairn.__file__).parent.glob("libcairn.so*"))))
    data, answer = graph.SerializeToString(), ctypes.c_char_p()
    if library.cairn_cluster_refusals(data, ctypes.c_size_t(len(data)), ctypes.byref(answer)):
        raise RuntimeError("the engine does not read the graph of all operators")
    return json.loads(answer.value)


def supplied_by_the_layer():
    """Rows for the parts of tf.contrib, and the other names of TensorFlow 1 that the layer puts back."""
    import cairn_tf1
    from cairn_tf1 import contrib, moved

    cairn_tf1.install()
    parts = [part.name for part in pkgutil.iter_modules(contrib.__path__)]
    yield f"tf.contrib module {contrib.__name__}"
    for part in sorted({*parts, *moved.CONTRIB, *(key.split(".")[0] for key in moved.CONTRIB)}):
        try:
            module = importlib.import_module(f"tensorflow.contrib.{part}")
        except ImportError:  # the package of another task, as for tensorboard's plugins
            continue
        yield from rows_of(f"tf.contrib.{part}", module)
    yield from names_of_keras(moved.MODULES)
    yield "tf.examples.tutorials.mnist* layer reads local files; nothing is downloaded"


def names_of_keras(moved):
    """Rows of what Keras keeps in modules that are not public, as it did in its time by itself."""
    import keras.src

    public = {line.split()[0] for line in pathlib.Path(__file__).with_name("tf_api.txt").read_text().splitlines()}
    found = pkgutil.walk_packages(keras.src.__path__, "keras.src.", onerror=lambda name: None)
    paths = [part.name for part in found if not INTERNAL.search(part.name)] + [name for name in moved if name.startswith("keras.src.")]
    for path in sorted(paths):
        name = path.replace("keras.src", "keras", 1)
        if name in public:
            continue
        try:
            module = importlib.import_module(path.replace("keras.src", "keras", 1))
        except ImportError:  # of packages that are not here
            continue
        yield f"tf.{name} module {module.__name__}"
        for member, value in sorted(vars(module).items()):
            own = (getattr(value, "__module__", None) or "keras").startswith("keras")
            if not member.startswith("_") and own and not isinstance(value, types.ModuleType):
                yield f"tf.{name}.{member} layer {getattr(value, '__module__', None) or module.__name__}"


def rows_of(prefix, module):
    """Rows of a module and of the modules inside it that are part of the layer too."""
    yield f"{prefix} module {module.__name__}"
    for name, value in sorted(vars(module).items()):
        if name.startswith("_"):
            continue
        if isinstance(value, types.ModuleType):
            below = value.__name__.startswith(("tf_slim.", "cairn_tf1.contrib.")) and value.__name__ != module.__name__
            if below and prefix.count(".") < 4:
                yield from rows_of(f"{prefix}.{name}", value)
            elif value.__name__.startswith("tensorflow.python.util") and module.__name__.startswith("cairn_tf1."):
                # One of TensorFlow's own, handed on as a whole: framework.nest.
                yield f"{prefix}.{name} layer {value.__name__}"
        else:
            yield f"{prefix}.{name} layer {getattr(value, '__module__', None) or module.__name__}"


main()
