"""Models that are built from files and run."""

import enum
import os
import tempfile

import cairn
import numpy
from cairn.ms.refusal import Unsupported

from mindspore_lite.context import Context
from mindspore_lite.tensor import DataType, Tensor, type_of


class ModelType(enum.Enum):
    """Kinds of files: what a file is, it tells itself."""

    MINDIR = 0
    MINDIR_LITE = 4


def om_of_mindir(path, output, shapes=None):
    """Writes the network of a MindIR file as an .om file, for inputs of other shapes where some are given."""
    import mindspore
    from mindspore.nn import GraphCell
    from mindspore.train.serialization import _get_mindir_inputs

    given = _get_mindir_inputs(path)
    given = list(given) if isinstance(given, (tuple, list)) else [given]
    if shapes is not None:
        given = [mindspore.Tensor(numpy.zeros(shape, each.asnumpy().dtype)) for each, shape in zip(given, shapes)]
    mindspore.export(GraphCell(mindspore.load(path)), *given, file_name=output, file_format="OM")


def _loaded(path, threads, shapes=None):
    """The model of a file; `shapes`: those of its inputs, where they are not the file's."""
    if path.endswith(".mindir"):
        with tempfile.TemporaryDirectory() as folder:
            output = os.path.join(folder, "model.om")
            om_of_mindir(path, output, shapes)
            return cairn.load(output, threads=threads)
    if shapes is None:
        return cairn.load(path, threads=threads)
    names = [each.name for each in cairn.load(path).inputs]
    return cairn.load(path, threads=threads, input_shapes=dict(zip(names, shapes)))


class Model:
    """Model(): build_from_file(), then predict()."""

    def __init__(self):
        self._model, self._inputs, self._path, self._threads = None, [], None, 0

    def build_from_file(self, model_path, model_type=ModelType.MINDIR, context=None, config_path="", config_dict=None, dec_key=None, dec_mode="AES-GCM", **other):
        """Reads a .mindir, .om, .ms, .onnx, .pb or .prototxt file. config_path and config_dict are not read."""
        if not isinstance(model_path, str):
            raise TypeError(f"model_path must be str, but got {type(model_path)}.")
        if not isinstance(model_type, ModelType):
            raise TypeError(f"model_type must be ModelType, but got {type(model_type)}.")
        if context is not None and not isinstance(context, Context):
            raise TypeError(f"context must be Context, but got {type(context)}.")
        if dec_key or other:
            raise Unsupported("build_from_file(dec_key=...): encrypted models are not supported here; use mindspore.load")
        if not os.path.exists(model_path):
            raise RuntimeError(f"build_from_file failed, model_path does not exist: {model_path}")
        self._path, self._threads = model_path, context.threads if context else 0
        self._build()

    def _build(self, shapes=None):
        try:
            self._model = _loaded(self._path, self._threads, shapes)
        except (cairn.Error, RuntimeError, ValueError) as error:
            raise RuntimeError(f"build_from_file failed: {error}") from None
        self._inputs = [Tensor(each.name, self._sizes(each), type_of(each.dtype)) for each in self._model.inputs]

    @staticmethod
    def _sizes(port):
        return [-1 if each is None else int(each) for each in port.shape or ()]

    def _built(self):
        if self._model is None:
            raise RuntimeError("the model is not built; call build_from_file() first")
        return self._model

    def get_inputs(self):
        """The tensors that predict() takes."""
        self._built()
        return list(self._inputs)

    def get_outputs(self):
        """Tensors like the results of predict(), without their elements."""
        return [Tensor(each.name, self._sizes(each), type_of(each.dtype)) for each in self._built().outputs]

    def get_input_by_tensor_name(self, tensor_name):
        return self._named(self._inputs, tensor_name)

    def get_output_by_tensor_name(self, tensor_name):
        return self._named(self.get_outputs(), tensor_name)

    @staticmethod
    def _named(tensors, name):
        for each in tensors:
            if each.name == name:
                return each
        raise RuntimeError(f"no tensor is called {name}; there are {', '.join(each.name for each in tensors)}")

    def resize(self, inputs, dims):
        """Gives the inputs other shapes."""
        own = self.get_inputs()
        if len(inputs) != len(own) or len(dims) != len(own):
            raise ValueError(f"inputs and dims must have {len(own)} elements, but got {len(inputs)} and {len(dims)}.")
        if [list(each) for each in dims] != [each.shape for each in own]:
            self._build([list(each) for each in dims])
        for old, new in zip(inputs, self._inputs):
            old.shape = new.shape
        self._inputs = list(inputs)

    def predict(self, inputs, outputs=None):
        """Runs the model. The results are returned, and written to `outputs` where these are given."""
        model = self._built()
        if not isinstance(inputs, (list, tuple)) or len(inputs) != len(model.inputs):
            raise RuntimeError(f"predict failed: the model takes {len(model.inputs)} inputs.")
        arrays = {}
        for port, each in zip(model.inputs, inputs):
            array = each.get_data_to_numpy() if isinstance(each, Tensor) else each
            if type_of(array.dtype) != type_of(port.dtype) or type_of(port.dtype) is DataType.UNKNOWN:
                raise RuntimeError(f"predict failed: input {port.name} is of {port.dtype}, but got {array.dtype}.")
            arrays[port.name] = array
        try:
            made = model.run(arrays)
        except cairn.Error as error:
            raise RuntimeError(f"predict failed: {error}") from None
        results = [Tensor(name, array.shape, type_of(array.dtype), array) for name, array in made.items()]
        for given, result in zip(outputs or (), results):
            given.__dict__.update(result.__dict__)
        return results

    def __str__(self):
        return f"model_path: {self._path}."
