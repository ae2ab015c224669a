"""Dumps that the options of a session ask for: started in the engine through its C interface, together with the script lines of
the graph's nodes."""

import ctypes
import json
import os
import weakref

from npu_bridge import engine, profiling

DUMP = ("enable_dump", "enable_dump_debug", "enable_exception_dump", "dump_path", "dump_step", "dump_mode", "dump_data",
        "dump_layer", "dump_debug_mode")  # fmt: skip
INSIDE = tuple(f"{os.sep}{name}{os.sep}" for name in ("tensorflow", "keras", "tensorflow_estimator", "npu_bridge", "npu_device", "cairn_tf1"))

_state = {"started": None,
          "lines": bool(os.environ.get("CAIRN_DUMP") or os.environ.get("PROFILING_MODE") in ("true", "dynamic"))}  # asked for from outside
_told = weakref.WeakKeyDictionary()  # graph -> how many of its operations were looked at


class Location(ctypes.Structure):
    """CairnLocation of cairn.h."""

    _fields_ = [("node", ctypes.c_char_p), ("location", ctypes.c_char_p)]


def call(name, *arguments):
    """Calls a function of the C interface; its failure is a ValueError in its own words."""
    library = profiling._library()
    if getattr(library, name)(*arguments):
        raise ValueError(profiling._last_error(library))


def start_dump(options):
    """`options`: as cairn_dump_start takes them. Script lines are told from now on."""
    call("cairn_dump_start", json.dumps(options).encode())
    _state["lines"] = True


def stop_dump():
    """The dump's folder."""
    folder = ctypes.c_void_p()
    call("cairn_dump_stop", ctypes.byref(folder))
    path = ctypes.string_at(folder).decode()
    profiling._library().cairn_free_text(folder)
    return path


def begin(values):
    """What the options of a new session ask for; sessions with equal options share one dump. `values` is empty for a session on
    stock TensorFlow."""
    dump = {key: values[key] for key in DUMP if values.get(key) not in (None, "", False)}
    if values.get("profiling_mode"):
        _state["lines"] = True
    # An estimator asks for exception dumps by default; without a folder there is none to put them in.
    if "dump_path" not in dump or not any(dump.get(key) for key in DUMP[:3]) or _state["started"] == dump:
        return
    start_dump(dump)
    _state["started"] = dump


def tell_lines(graph):
    """Before a run: which script lines made the nodes that are new in the graph."""
    if not _state["lines"] or engine.selected() == "tensorflow":
        return
    operations = graph.get_operations()
    known = _told.get(graph, 0)
    if len(operations) == known:
        return
    _told[graph] = len(operations)
    lines = [(operation.name.encode(), line_of(operation).encode()) for operation in operations[known:]]
    told = (Location * len(lines))(*(Location(node, line) for node, line in lines if line))
    call("cairn_set_script_lines", told, sum(bool(line) for _, line in lines))


def line_of(operation):
    """The innermost line of the script itself, "train.py:41", or ""."""
    for frame in reversed(operation.traceback or ()):
        if frame.filename.endswith(".py") and not any(folder in frame.filename for folder in INSIDE):
            return f"{os.path.basename(frame.filename)}:{frame.lineno}"
    return ""
