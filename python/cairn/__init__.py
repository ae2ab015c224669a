"""Cairn: load a model and run it.

    model = cairn.load("resnet50.om")            # or .onnx, .pb, a SavedModel folder
    outputs = model.run({"x": images})           # {name: array} -> {name: array}
"""

from cairn._cairn import *  # noqa: F401,F403
from cairn._cairn import __version__  # noqa: F401
