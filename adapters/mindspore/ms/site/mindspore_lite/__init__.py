"""MindSpore Lite's Python: models from MindIR, .om, ONNX, frozen TensorFlow or Caffe files, run by Model.predict, and the Converter.

    model = mindspore_lite.Model()
    model.build_from_file("net.mindir", mindspore_lite.ModelType.MINDIR, mindspore_lite.Context())
    inputs = model.get_inputs()
    inputs[0].set_data_from_numpy(x)
    outputs = model.predict(inputs)        # or, as up to 1.10, predict(inputs, outputs) of model.get_outputs()

A .ms file of the Converter holds what an .om file does; those of MindSpore Lite's own converter are refused.
"""

from cairn.ms.refusal import Unsupported

from mindspore_lite.context import AscendDeviceInfo, Context, CPUDeviceInfo, DeviceInfo, GPUDeviceInfo
from mindspore_lite.converter import Converter, FmkType
from mindspore_lite.model import Model, ModelType
from mindspore_lite.tensor import DataType, Format, Tensor

__version__ = "1.10.0"
__all__ = [
    "AscendDeviceInfo", "CPUDeviceInfo", "Context", "Converter", "DataType", "DeviceInfo", "FmkType", "Format", "GPUDeviceInfo", "Model", "ModelType", "Tensor",
]  # fmt: skip


def __getattr__(name):
    instead = {"ModelParallelRunner": "a Model for each thread", "RunnerConfig": "Context", "ModelGroup": "a Model for each file"}.get(name)
    if instead is None:
        raise AttributeError(f"module 'mindspore_lite' has no attribute '{name}'")
    raise Unsupported(f"mindspore_lite.{name} is not supported; use {instead}")
