"""Profiles of sessions: what `profiling_mode` and `profiling_options` of the NpuOptimizer entry ask for. A recording lasts from the
session's making to its closing; those of sessions that are open together are one."""

import ctypes
import json
import os
import weakref

from npu_bridge import engine

OLD_NAMES = {"op_trace": "task_trace"}
_open = weakref.WeakKeyDictionary()  # session -> what ends its recording


def start(session, options):
    """Records until the session is closed, is gone, or the process ends. `options` is the text of profiling_options: JSON, or
    names joined by colons as earlier versions had it."""
    library = _library()
    if options and not options.lstrip().startswith("{"):
        options = json.dumps({OLD_NAMES.get(name, name): "on" for name in options.split(":")})
    if library.cairn_profile_start((options or "{}").encode()):
        raise ValueError(f"profiling_options: {_last_error(library)}")
    _open[session] = weakref.finalize(session, _stop, library)


def stop(session):
    """Ends the session's recording, if there is one."""
    end = _open.pop(session, None)
    if end:
        end()


def _stop(library):
    folder = ctypes.c_void_p()
    if library.cairn_profile_stop(ctypes.byref(folder)):
        engine.tell(f"profile: {_last_error(library)}")
    elif folder:
        path = ctypes.string_at(folder).decode()
        engine.tell(f"profile in {path}; `cairn profile export {path}` makes tables and a page of it")
        library.cairn_free_text(folder)


def _library():
    """The engine that the op library uses: both find it by the same rule, so that it is loaded once."""
    path = os.environ.get("CAIRN_LIBRARY") or str(engine.LIBRARY.parent.parent / "cairn" / "libcairn.so")
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(f"npu_bridge: the engine cannot be loaded: {error}") from None
    library.cairn_free_text.argtypes = [ctypes.c_void_p]
    return library


class _Error(ctypes.Structure):
    """CairnError of cairn.h."""

    _fields_ = [("struct_size", ctypes.c_uint32), ("status", ctypes.c_int), ("where", ctypes.c_char_p),
                ("message", ctypes.c_char_p), ("report", ctypes.c_char_p)]  # fmt: skip


def _last_error(library):
    error = _Error(struct_size=ctypes.sizeof(_Error))
    library.cairn_last_error(ctypes.byref(error))
    return " ".join(part.decode() for part in (error.where, error.message) if part)
