"""Quantisation after training: what `cairn quantize` does, from Python."""

import json
import os

from cairn import _cairn


class Quantized:
    """What quantize() returns: `module`, which Model(module) and save() take, and `report`, what `cairn quantize --json` prints."""

    def __init__(self, module, report):
        self.module = module
        self.report = report

    def save(self, path):
        """Writes an .om file."""
        self.module.save(os.fspath(path))


def quantize(source, data=None, output=None, *, method="mse", weights_only=0, budget="", labels="", report=None, threads=0,
             options=None, **more):
    """A model whose convolutions and matrix products compute on 8 bits, as far as the budget allows.

        small = cairn.quantize("net.onnx", {"x": images, "y": classes}, "net.om")
        small.report["final"]["accuracy"]

    data: {input: array}, one array, or the path of an .npz file; examples along the first dim. An array called labels, label or
    y (or as `labels` says) holds the right classes. method: minmax, percentile, kl, mse. weights_only: 8 or 4 bits, data stays
    f32 and may be left out. budget: "0.5%" of accuracy (without labels: of the results), or "25dB". report: .html file to write.
    options: as for convert(). more: percentile, group, batch, keep, calibrate_on, without, and files of AMCT: config, record,
    write_config, write_record.
    """
    from cairn import _options

    chosen = {"method": method, "weights_only": weights_only, "budget": budget, "labels": labels, "threads": threads,
              **{key: os.fspath(value) if hasattr(value, "__fspath__") else value for key, value in more.items()}}
    if report:
        chosen["report"] = os.fspath(report)
    module = source if isinstance(source, _cairn.Module) else _cairn.Module(os.fspath(source), _options(**(options or {})))
    arrays = {}
    if isinstance(data, (str, os.PathLike)):
        import numpy

        chosen["data"] = os.fspath(data)
        with numpy.load(data) as file:
            arrays = dict(file)
    elif data is not None:
        arrays = dict(data) if hasattr(data, "keys") else {"": data}
    chosen = {key: value for key, value in chosen.items() if value not in ("", None)}
    made, text = module._quantize(arrays, json.dumps(chosen))
    if output:
        made.save(os.fspath(output))
    return Quantized(made, json.loads(text))
