"""Modules that load their parts when a name is first used, and refuse what is not there."""

import dis
import importlib
import sys

from cairn.ms.refusal import Unsupported

_PARTS = {
    "mindspore": ("train", "train.serialization", "train.model", "common.initializer", "communication", "amp",
                  "profiler", "common.api", "ops.composite"),
    "mindspore.train": ("mindspore.nn.metrics",),
    "mindspore.nn": ("layer", "loss", "metrics", "optim", "wrap", "dynamic_lr", "learning_rate_schedule", "grad"),
    "mindspore.ops.function": ("mindspore.ops.composite", "mindspore.ops.operations"),
    "mindspore.ops.composite": ("mindspore.ops.function",),
    "mindspore.ops.operations": ("mindspore.ops.operations._grad_ops",),
    "mindspore.ops": ("operations", "functional", "function", "composite"),
}  # fmt: skip


# Names that people will ask for: why not, and what works instead. Some can be imported, and refuse when they are called.
REFUSED = {
    "mindspore.nn.probability.bnn_layers": ("layers of distributions are not supported", "nn.probability.distribution"),
    "mindspore.nn.transformer": ("ready transformers are not supported", "nn.Dense, ops.BatchMatMul and nn.Softmax"),
    "mindspore.parallel.nn": ("ready transformers are not supported", "nn.Dense, ops.BatchMatMul and nn.Softmax"),
    "mindspore.nn.reinforcement": ("environments are not supported", "a loop in Python"),
    "mindspore.nn.PipelineCell": ("pipelines over several devices are not supported", "the cell itself"),
    "mindspore.boost": ("boosted training is not supported", "nn.TrainOneStepCell"),
    "mindspore.rewrite": ("rewriting of source is not supported", "insert_child_to_cell of Cells"),
    "mindspore.scipy.optimize": ("optimisation of functions is not supported", "mindspore.scipy.linalg and nn.Momentum"),
    "mindspore.mint": ("functions of 2.3 and later are not supported", "mindspore.ops"),
    "mindspore.hub": ("downloads are not supported", "load_checkpoint"),
    "mindspore.load_distributed_checkpoint": ("checkpoints in parts are not supported", "load_checkpoint"),
    "mindspore.dataset.audio.Vad": ("the detection of speech is not supported", "NumPy in GeneratorDataset"),
    "mindspore.ops.CustomRegOp": ("kernels of other languages are not supported here", "cairn.op"),
    "mindspore.ops.DataType": ("kernels of other languages are not supported here", "cairn.op"),
}
REFUSED.update((f"mindspore.ops.{name}", ("switches of data flow are not supported", "if, or ops.Select")) for name in (
    "GeSwitch", "Merge", "operations.GeSwitch", "operations.Merge", "functional.geswitch", "functional.merge"))  # fmt: skip
REFUSED.update((f"mindspore.ops.functional.{name}", ("a node of MindSpore's compiler is not supported", "ops.GradOperation")) for name in (
    "J", "array_reduce", "distribute", "environ_add", "environ_create", "environ_get", "environ_set", "hastype", "ref_to_embed"))  # fmt: skip
REFUSED.update((f"mindspore.dataset.{name}", ("this source is not read yet", "GeneratorDataset over a reader of your own")) for name in (
    "CLUEDataset", "FlickrDataset", "InMemoryGraphDataset", "OBSMindDataset", "RandomDataset", "SBUDataset"))  # fmt: skip


def parts(module):
    """The modules whose names are the module's as well."""
    return [part if part.startswith("mindspore.") else f"{module}.{part}" for part in _PARTS.get(module, ())]


def lazy(module):
    """A __getattr__ for the module: submodules, then names of its parts, then the refusal."""
    from cairn.ms import modules

    def find(name):
        if name.startswith("__"):
            raise AttributeError(name)
        if modules.exists(f"{module}.{name}"):
            return importlib.import_module(f"{module}.{name}")
        for part in parts(module):
            content = importlib.import_module(part).__dict__
            if name in content.get("__all__", content) and name in content:
                setattr(sys.modules[module], name, content[name])
                return content[name]
        raise missing(module, name, sys._getframe(1))

    return find


def missing(module, name, frame):
    """The refusal of a name that code of the frame asks a module for."""
    return (MissingImport if _imports(frame) else Missing)(sentence(module, name))


def refused(full):
    """The sentence for a name of the table; None for others."""
    if full not in REFUSED:
        return None
    reason, instead = REFUSED[full]
    return f"{full}: {reason}; use {instead}"


def sentence(module, name):
    """Why a module does not have a name, and what works instead."""
    full = f"{module}.{name}"
    if refused(full):
        return refused(full)
    near = nearest(module, name)
    return f"{full} is not supported" + (f"; the nearest that works is {near}" if near else "")


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
        loaded = sys.modules.get(part)
        known += [each for each in dir(loaded) if not each.startswith("_")] if loaded else []
    found = difflib.get_close_matches(name, known, 1, 0.6)
    return f"{module}.{found[0]}" if found else None
