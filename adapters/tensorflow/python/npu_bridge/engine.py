"""Which engine runs a session: Cairn's, through the op library beside this file, or stock TensorFlow when
CAIRN_ENGINE=tensorflow asks for it. Nothing else decides it, and a missing library is an error, not a silent change."""

import functools
import os
import pathlib
import sys

import tensorflow.compat.v1 as tf
from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig

SUPPORTED = "2.15."
LIBRARY = pathlib.Path(__file__).with_name("_cairn_tf.so")
OPTIMIZER = "NpuOptimizer"

_state = {"library": None, "reason": "", "told": False, "used": False}


def selected():
    """`cairn` or `tensorflow`, from CAIRN_ENGINE."""
    name = os.environ.get("CAIRN_ENGINE", "") or "cairn"
    if name not in ("cairn", "tensorflow"):
        raise ValueError(f"CAIRN_ENGINE is {name}, should be cairn or tensorflow")
    return name


def load():
    """Loads the op library once. What went wrong is kept for `require`, so that importing never fails for it."""
    if not _state["library"] and selected() != "tensorflow":
        _load()


def _load():
    if not tf.version.VERSION.startswith(SUPPORTED):
        _state["reason"] = f"needs TensorFlow {SUPPORTED}x, found {tf.version.VERSION}"
    elif not LIBRARY.exists():
        _state["reason"] = f"{LIBRARY.name} is not installed beside {__name__.split('.', maxsplit=1)[0]}"
    else:
        try:
            _state["library"] = tf.load_op_library(str(LIBRARY))
            _take_libraries_of_operators()
        except Exception as error:  # TensorFlow raises several kinds; the text is what helps
            _state["reason"] = f"{LIBRARY.name} does not load: {error}"


def _take_libraries_of_operators():
    """tf.load_op_library takes libraries of Cairn's operators (<cairn/op.hpp>) as well."""
    plain = tf.load_op_library
    if getattr(plain, "_cairn", False):
        return

    @functools.wraps(plain)
    def load_op_library(library_filename):
        try:
            ours = b"cairn_register_ops" in pathlib.Path(library_filename).read_bytes()
        except OSError:
            ours = False
        if not ours:
            return plain(library_filename)
        from npu_bridge import user_ops

        return user_ops.load_op_library(library_filename)

    load_op_library._cairn = True
    for name in ("tensorflow", "tensorflow.compat.v1"):
        if name in sys.modules:
            sys.modules[name].load_op_library = load_op_library
    tf.load_op_library = load_op_library


def load_collectives():
    """What exchanges tensors with other ranks is the engine's, also where sessions run on stock TensorFlow."""
    if _state["library"] is None and not _state["reason"]:
        _load()
    if _state["library"] is None:
        raise ImportError(f"npu_bridge: no collectives: {_state['reason']}")


def library():
    """The loaded op library's module, or None."""
    return _state["library"]


def require():
    """Called for every session that wants the engine."""
    _state["used"] = True
    if selected() == "tensorflow":
        tell_once("CAIRN_ENGINE=tensorflow: sessions run on stock TensorFlow, not on Cairn's engine")
    elif _state["library"] is None:
        raise ImportError(
            f"npu_bridge: no engine for this session: {_state['reason']}; set CAIRN_ENGINE=tensorflow, or use_off_line"
            " to False, to run on stock TensorFlow"
        )


def tell(sentence):
    """A line on standard error, where that can be written."""
    try:
        print(f"npu_bridge: {sentence}", file=sys.stderr, flush=True)
    except (OSError, ValueError):
        pass


def tell_once(sentence):
    if not _state["told"]:
        _state["told"] = True
        tell(sentence)


def _refuse_in_child():
    """TensorFlow's threads stay in the process that forks: a step in the child would wait for them for ever."""
    if not _state["used"]:
        return
    from tensorflow.python.client import session
    from tensorflow.python.eager import execute

    def refuse(*_arguments, **_options):
        raise RuntimeError(
            "npu_bridge: this process was forked after its parent had opened a session, and TensorFlow's threads stay in the"
            " parent; start it with multiprocessing's spawn method to run TensorFlow in it"
        )

    session.BaseSession.run = refuse
    execute.execute = execute.quick_execute = refuse


os.register_at_fork(after_in_child=_refuse_in_child)


def entry_of(config):
    """The NpuOptimizer entry of a ConfigProto, or None."""
    for entry in config.graph_options.rewrite_options.custom_optimizers:
        if entry.name == OPTIMIZER:
            return entry
    return None


def lighten(rewrite):
    """TensorFlow's own rewriting of graphs for the engine, which rewrites them once more: one round, without what only TensorFlow's
    kernels gain from. What the script has chosen stays."""
    rewrite.disable_tfg_optimizer = True
    for name, value in (
        ("meta_optimizer_iterations", RewriterConfig.ONE),
        ("layout_optimizer", RewriterConfig.OFF),
        ("common_subgraph_elimination", RewriterConfig.OFF),
    ):
        setattr(rewrite, name, getattr(rewrite, name) or value)


def add_to_functions(entry_fields=None):
    """Lets tf.function and Keras' fit in eager mode see the entry: they take their options from the eager context."""
    from tensorflow.python.eager import context

    require()
    if selected() == "tensorflow":
        return
    plain = getattr(context.Context, "_cairn_plain_config", None) or context.Context.config

    def config(self):
        value = plain.fget(self)
        if entry_of(value) is None:
            entry = value.graph_options.rewrite_options.custom_optimizers.add(name=OPTIMIZER)
            for key, field in (entry_fields or {}).items():
                entry.parameter_map[key].CopyFrom(field)
        lighten(value.graph_options.rewrite_options)
        return value

    context.Context._cairn_plain_config = plain
    context.Context.config = property(config)
    if context.context()._context_handle is not None:
        raise RuntimeError("npu_bridge: import it, or open the device, before TensorFlow runs its first eager operation")
