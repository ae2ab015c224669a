"""Modules that load their parts when a name is first used, and refuse what is not there."""

import dis
import importlib
import importlib.util
import sys

from cairn.ms.refusal import Unsupported

_PARTS = {
    "mindspore": ("train", "train.serialization", "train.model", "common.initializer", "communication", "amp",
                  "profiler", "common.api", "ops.composite"),
    "mindspore.nn": ("layer", "loss", "metrics", "optim", "wrap", "dynamic_lr", "learning_rate_schedule", "sparse", "grad"),
    "mindspore.ops": ("operations", "functional", "function", "composite"),
}  # fmt: skip


def parts(module):
    """The modules whose names are the module's as well."""
    return _PARTS.get(module, ())


def lazy(module):
    """A __getattr__ for the module: submodules, then names of its parts, then the refusal."""

    def find(name):
        if name.startswith("__"):
            raise AttributeError(name)
        if importlib.util.find_spec(f"{module}.{name}") is not None:
            return importlib.import_module(f"{module}.{name}")
        for part in parts(module):
            full = f"{module}.{part}"
            try:
                found = importlib.util.find_spec(full)
            except ModuleNotFoundError:
                found = None
            if found is None:
                continue
            content = importlib.import_module(full).__dict__
            if name in content.get("__all__", content) and name in content:
                setattr(sys.modules[module], name, content[name])
                return content[name]
        near = nearest(module, name)
        sentence = f"{module}.{name} is not supported" + (f"; the nearest that works is {near}" if near else "")
        raise (MissingImport if _imports(sys._getframe(1)) else Missing)(sentence)

    return find


class Missing(Unsupported, AttributeError):
    """A name that a module does not have."""


class MissingImport(Unsupported, ImportError):
    """The same in `from mindspore import name`, where Python would put words of its own in an AttributeError's place."""


def _imports(frame):
    return frame.f_code.co_code[frame.f_lasti] == dis.opmap["IMPORT_FROM"]


def nearest(module, name):
    """The name of the module that looks most like it, or None."""
    import difflib

    known = [each for each in dir(sys.modules[module]) if not each.startswith("_")]
    for part in parts(module):
        loaded = sys.modules.get(f"{module}.{part}")
        known += [each for each in dir(loaded) if not each.startswith("_")] if loaded else []
    found = difflib.get_close_matches(name, known, 1, 0.6)
    return f"{module}.{found[0]}" if found else None
