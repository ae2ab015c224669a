"""Cairn: load a model and run it.

    model = cairn.load("resnet50.om")            # or .onnx, .pb, a SavedModel folder
    outputs = model.run({"x": images})           # {name: array} -> {name: array}
    slope = cairn.grad("loss.onnx", wrt=["x"])   # slope({"x": images})["x"]
"""

import contextlib
import json
import os
import sys
import warnings

from cairn import _cairn, job, ops
from cairn._cairn import Error, List, Model, Module, Port, __version__  # noqa: F401
from cairn.gradients import grad, jvp, vjp
from cairn.quantization import Quantized, quantize
from cairn.training import Trainer, train
from cairn.user_ops import Builder, Value, load_op_library, op

__all__ = [
    "Builder",
    "Converted",
    "Dump",
    "Error",
    "List",
    "Model",
    "Module",
    "Port",
    "Profiler",
    "Quantized",
    "Range",
    "Trainer",
    "Value",
    "aipp_parameters",
    "convert",
    "grad",
    "job",
    "jvp",
    "load",
    "load_op_library",
    "op",
    "ops",
    "quantize",
    "run_op",
    "text",
    "train",
    "vjp",
]


def load(path, threads=0, engines=None, max_seconds=0, plan_memory=0, deterministic=False, **options):
    """A model from an .om, .onnx, .pb or .prototxt file, a SavedModel folder, or text.

    threads: 0 for all that the process may use. engines: names, best first. max_seconds: for reading and optimising, 0 for
    any time. plan_memory: bytes that the plans for the input shapes seen and the memory of their runs may keep, 0 for
    CAIRN_PLAN_MEMORY or 1 GiB. deterministic: convolutions by their definition alone, not by Winograd's method, which is faster and
    rounds otherwise (results are equal in every run in any case). options: as for convert().
    """
    return Model(os.fspath(path), threads, ",".join(engines or ()), _options(**options), max_seconds, plan_memory,
                 deterministic)


class Converted(str):
    """The path of an .om file that convert() wrote. `report` is what `cairn convert --json` prints, and `notes`: inputs, outputs,
    sizes, FLOPs, and under `reference` which operators run on the reference engine, why, and with what share of time and FLOPs.
    """


def convert(source, output, max_seconds=0, **options):
    """Writes `source` as one .om file, or an .onnx file where `output` ends so, and returns its path, a text with a `report`. `cairn convert` and atc write the same bytes for
    equal options.

    options: input_shapes {name: shape}, -1 or None for an open size, (low, high) for a range; outputs: tensors to end at;
    signature and tags of a SavedModel; weights, the .caffemodel file of a Caffe model; cut, replace; output_type, output_types; input_fp16_nodes, input_format,
    insert_op_conf; dynamic_batch_size, dynamic_image_size, dynamic_dims; precision_mode, mixed_lists, keep_types,
    custom_types; disabled_passes, keep_memory, deterministic, external_weights. max_seconds: 0 for any time.
    """
    output = os.fspath(output)
    if not output.endswith((".om", ".onnx")):
        output += ".om"
    converted = Converted(output)
    converted.report = json.loads(_cairn._convert(os.fspath(source), output, _options(**options), max_seconds))
    for note in converted.report["notes"]:
        warnings.warn(note, stacklevel=2)
    return converted


def text(source, **options):
    """The text form of a model. options: as for convert()."""
    return _cairn.Module(os.fspath(source), _options(**options)).text()


def run_op(name, inputs, *, threads=0, engines=None, **attributes):
    """Runs one operator on arrays: run_op("add", [a, b]). Returns its result, or a tuple of them."""
    return _cairn._run_op(name, list(inputs), attributes, threads, ",".join(engines or ()))


def aipp_parameters(config, images=1):
    """What a model with dynamic image preprocessing takes as its input ascend_dynamic_aipp_data, as an array of bytes.

    config: text of an AIPP configuration, of one aipp_op for all images or one for each.
    """
    import numpy

    return numpy.frombuffer(_cairn._aipp_parameters(config, images), numpy.uint8)


class Profiler:
    """Records every run of this process while it is open, on all threads; profilers nest.

        with cairn.Profiler(output_path="profiles") as profiler:
            model.run(inputs)
        profiler.folder    # PROF_*; `cairn profile export FOLDER` makes tables and a page of it

    level: "marks" for whole runs, "ops" for every step, "counters" with the processor's counters; the platform's "L0" is
    ops, "L1" and "L2" are counters. aic_metrics: as on the platform; any group reads the same counters.
    """

    open = 0  # how many are open in this process

    def __init__(self, *, level="ops", aic_metrics="", output_path=""):
        self._options = {"level": level, "output": os.fspath(output_path) or "."}
        if aic_metrics:
            self._options["aic_metrics"] = aic_metrics
        self.folder = None

    def __enter__(self):
        _cairn._profile_start(json.dumps(self._options))
        Profiler.open += 1
        return self

    def __exit__(self, *exception):
        self.folder = _cairn._profile_stop()
        Profiler.open -= 1
        if "cairn.data" in sys.modules:
            sys.modules["cairn.data"].reports.write(self.folder)


class Range(contextlib.ContextDecorator):
    """A range of your own in the recording that is on, on this thread; ranges nest. Also decorates functions.

        with cairn.Profiler(output_path="profiles"), cairn.Range("epoch 1"):
            model.run(inputs)
    """

    def __init__(self, name):
        self._name = name

    def __enter__(self):
        _cairn._range_begin(self._name)
        return self

    def __exit__(self, *exception):
        _cairn._range_end()


class Dump:
    """Writes what every operator of every run makes while it is open, for `cairn compare`.

        with cairn.Dump("dumps", dump_step="0|5|10-20") as dump:
            model.run(inputs)
        dump.folder

    Options as on the platform: dump_step, dump_mode ("input", "output", "all"), dump_data ("tensor", "stats"), dump_layer
    (names between blanks), enable_dump_debug (only operators that make NaN or infinite values), enable_exception_dump; and
    dump_format ("dump", "npy"), dump_budget ("500MB").
    """

    def __init__(self, dump_path, **options):
        self._options = {"dump_path": os.fspath(dump_path), **options}
        self.folder = None

    def __enter__(self):
        _cairn._dump_start(json.dumps(self._options))
        return self

    def __exit__(self, *exception):
        self.folder = _cairn._dump_stop()


def _options(input_shapes=None, **options):
    options = {key: value for key, value in options.items() if value is not None}
    if "weights" in options:
        options["weights"] = os.fspath(options["weights"])
    if input_shapes:
        options["input_shapes"] = {
            name: [-1 if size is None else list(map(int, size)) if isinstance(size, (tuple, list)) else int(size)
                   for size in shape]
            for name, shape in input_shapes.items()
        }  # fmt: skip
    return json.dumps(options, default=list) if options else ""
