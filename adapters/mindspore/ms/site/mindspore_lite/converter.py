"""Files of frameworks made models for Model.build_from_file()."""

import enum
import os
import shutil
import tempfile

import cairn
from cairn.ms.refusal import Unsupported

from mindspore_lite.model import om_of_mindir


class FmkType(enum.Enum):
    """Frameworks that files are of."""

    TF = 0
    CAFFE = 1
    ONNX = 2
    MINDIR = 3
    TFLITE = 4
    PYTORCH = 5


def _converted(kind, model, output, weights, shapes):
    if kind is FmkType.MINDIR:
        om_of_mindir(model, output, None)
        return
    options = {"weights": weights} if weights else {}
    if shapes:
        options["input_shapes"] = {name: list(shape) for name, shape in shapes.items()}
    cairn.convert(model, output, **options)


class Converter:
    """Converter(fmk_type, model_file, output_file, weight_file="", config_file="").converter(), or, as later releases have it,
    Converter().convert(fmk_type, model_file, output_file, ...). Writes output_file.ms, which holds what an .om file does."""

    def __init__(self, fmk_type=None, model_file=None, output_file=None, weight_file="", config_file=""):
        self._given = fmk_type, model_file, output_file, weight_file, config_file
        self.input_shape, self.optimize, self.save_type, self.weight_fp16 = {}, "general", None, False

    def set_input_shape(self, input_shape):
        if not isinstance(input_shape, dict):
            raise TypeError(f"input_shape must be dict, but got {type(input_shape)}.")
        self.input_shape = input_shape

    def get_input_shape(self):
        return self.input_shape

    def converter(self):
        self.convert(*self._given)

    def convert(self, fmk_type, model_file, output_file, weight_file="", config_file=""):
        if not isinstance(fmk_type, FmkType):
            raise TypeError(f"fmk_type must be FmkType, but got {type(fmk_type)}.")
        for name, value in (("model_file", model_file), ("output_file", output_file), ("weight_file", weight_file), ("config_file", config_file)):
            if not isinstance(value, str):
                raise TypeError(f"{name} must be str, but got {type(value)}.")
        for file in filter(None, (model_file, weight_file, config_file)):
            if not os.path.exists(file):
                raise RuntimeError(f"Converter failed: {file} does not exist.")
        if config_file or fmk_type in (FmkType.TFLITE, FmkType.PYTORCH):
            what = "config_file" if config_file else f"FmkType.{fmk_type.name}"
            raise Unsupported(f"Converter: {what} is not supported; use a MindIR, ONNX, frozen TensorFlow or Caffe file")
        path = output_file if output_file.endswith(".ms") else f"{output_file}.ms"
        with tempfile.TemporaryDirectory(dir=os.path.dirname(os.path.abspath(path))) as folder:
            beside = os.path.join(folder, "model.om")
            try:
                _converted(fmk_type, model_file, beside, weight_file, self.input_shape)
            except (cairn.Error, RuntimeError, ValueError) as error:
                raise RuntimeError(f"Converter failed: {error}") from None
            shutil.move(beside, path)
