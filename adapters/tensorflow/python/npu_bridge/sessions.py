"""What every session gets: the NpuOptimizer entry with checked options, TensorFlow's own rewriting switched as the
platform does, and several training steps in one run where the script asked for them."""

import functools
import weakref

import tensorflow.compat.v1 as tf
from tensorflow.core.protobuf import config_pb2
from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig
from tensorflow.python.client import session

from npu_bridge import engine, environment, observe, options, profiling

_steps = weakref.WeakKeyDictionary()  # graph -> {operation of a loop: steps in one run}
_state = {"every": False}  # whether sessions without the entry get it


def prepare(config):
    """Edits a ConfigProto in place as the platform does and returns it. Keeps the script's log_device_placement, and TensorFlow's own
    rewriting where sessions run on stock TensorFlow."""
    rewrite = config.graph_options.rewrite_options
    fresh = engine.entry_of(config) is None
    if fresh:
        rewrite.custom_optimizers.add(name=engine.OPTIMIZER)
    config.allow_soft_placement = True
    if engine.selected() == "tensorflow":
        return config
    if fresh:
        rewrite.memory_optimization = RewriterConfig.OFF
    rewrite.remapping = RewriterConfig.OFF
    engine.lighten(rewrite)
    config.graph_options.optimizer_options.global_jit_level = config_pb2.OptimizerOptions.OFF
    return config


def admit(config):
    """Checks the entry's options and that its engine is there; called for each new session. What it answers are the options of a
    session on the engine, none for one on stock TensorFlow."""
    entry = engine.entry_of(config)
    values = options.check_entry(entry)
    if values.get("hccl_timeout"):
        environment.set_timeout(values["hccl_timeout"])
    if not values.get("use_off_line", True):
        return {}
    engine.require()
    return values if engine.library() else {}


def patch():
    """Every later session gets the entry, those that TensorFlow's own code makes too."""
    _state["every"] = True
    watch()


def watch():
    """Changes Session and InteractiveSession once, so that what the entry of a session asks for is done."""
    for cls in (session.Session, session.InteractiveSession):
        if not hasattr(cls.__init__, "_npu_bridge"):
            cls.__init__ = _with_entry(cls.__init__)
    if not hasattr(session.BaseSession.run, "_npu_bridge"):
        session.BaseSession.run = _with_steps(session.BaseSession.run)
        session.BaseSession.close = _with_end(session.BaseSession.close)


def _with_entry(plain):
    @functools.wraps(plain)
    def init(self, target="", graph=None, config=None):
        self._session = None  # what __del__ looks at when the checks below raise
        given = config_pb2.ConfigProto()
        if config is not None:
            if not isinstance(config, config_pb2.ConfigProto):
                raise TypeError(f"config must be a tf.ConfigProto, but got {type(config)}")
            given.CopyFrom(config)  # the script's own object stays as it was
        if _state["every"]:
            prepare(given)
        elif engine.entry_of(given) is None:
            return plain(self, target=target, graph=graph, config=config)
        values = admit(given)
        observe.begin(values)
        plain(self, target=target, graph=graph, config=given)
        if values.get("profiling_mode"):
            profiling.start(self, values.get("profiling_options"))

    init._npu_bridge = True
    return init


def _with_end(plain):
    @functools.wraps(plain)
    def close(self):
        plain(self)
        profiling.stop(self)

    return close


def set_steps(operation, count):
    """`count` training steps whenever a run fetches `operation`."""
    _steps.setdefault(operation.graph, {})[operation] = count


def _with_steps(plain):
    @functools.wraps(plain)
    def run(self, fetches, feed_dict=None, options=None, run_metadata=None):
        observe.tell_lines(self.graph)
        loops = _steps.get(self.graph)
        if loops:
            operation = next((item for item in _flat(self.graph, fetches) if item in loops), None)
            for _ in range(loops.get(operation, 1) - 1):
                plain(self, operation, feed_dict)
        return plain(self, fetches, feed_dict, options, run_metadata)

    run._npu_bridge = True
    return run


def _flat(graph, fetches):
    """The operations among fetches, which may be nested (dicts of any keys, tuples with fields), and may be names."""
    if isinstance(fetches, dict):
        fetches = list(fetches.values())
    if isinstance(fetches, (list, tuple)):
        for item in fetches:
            yield from _flat(graph, item)
    elif isinstance(fetches, str) and ":" not in fetches:
        yield graph.as_graph_element(fetches)
    elif isinstance(fetches, tf.Operation):
        yield fetches
