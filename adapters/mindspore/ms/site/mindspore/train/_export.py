"""Networks as files: the operators of one call, recorded and written as an .om, .onnx or .mindir model."""

import inspect
import os
import tempfile
import types

import cairn
import numpy as np
from cairn import _cairn
from cairn.ms import capture, core, gradient, refuse
from cairn.ms.refusal import Uncaptured, Unsupported, UnsupportedValue
from cairn.ms.tensor import wrap

from mindspore import log as logger
from mindspore.common.tensor import Tensor
from mindspore.nn.cell import Cell
from mindspore.train import _encryption, _onnx

_ENDINGS = {"OM": ".om", "ONNX": ".onnx", "MINDIR": ".mindir"}


class Recording:
    """The recorder of core while a network is called once: operators run, and become nodes.

    names: {id of a tensor: its name}; tensors: {name: tensor}; nodes: (row, inputs, attributes, outputs), where an input is a name,
    an array or None.
    """

    symbolic = False
    decided = False  # whether Python went by what a tensor holds that depends on the inputs

    def __init__(self, inputs):
        self.names, self.tensors, self.nodes, self.constants = {}, {}, [], {}
        self.origins = {}  # name of a constant -> (name of the Parameter that it is, which axes of it)
        self.inputs = [self._name(each, f"x{place}" if place else "x") for place, each in enumerate(inputs)]

    def _name(self, tensor, name):
        while name in self.tensors:
            name += "_"
        self.names[id(tensor)] = name
        self.tensors[name] = tensor  # an id is of one tensor as long as that lives
        return name

    def call(self, row, inputs, attributes):
        made = row.run(*inputs, **attributes)
        if row.random:
            refuse(f"export of a network that calls {row.name}", "a file has no random state", "net.set_train(False) before it")
        like = next((each.asnumpy().dtype for each in inputs if isinstance(each, Tensor)), np.dtype(np.float32))
        given = [self._input(row.role(place), each, like) for place, each in enumerate(inputs)]
        results = made if isinstance(made, tuple) else (made,)
        outputs = [self._name(each, f"{row.name}_{len(self.tensors)}") for each in results]
        if all(each in self.constants for each in given if isinstance(each, str)):
            self.constants.update((name, each.asnumpy()) for name, each in zip(outputs, results))
            if row.name == "transpose" and given[0] in self.origins:
                parameter, axes = self.origins[given[0]]
                self.origins[outputs[0]] = parameter, tuple(axes[i] for i in attributes["permutation"])
            return made
        self.nodes.append((row.name, given, dict(attributes), outputs))
        return made

    def decides(self, tensor):
        """Python reads the only element of the tensor."""
        name = self.names.get(id(tensor))
        self.decided = self.decided or name is not None and name not in self.constants

    def _input(self, role, value, like):
        if value is None:
            return None
        if isinstance(value, Tensor):
            name = self.names.get(id(value))
            if name is None:
                name = self._name(value, getattr(value, "name", None) or f"constant_{len(self.constants)}")
                self.constants[name] = value.asnumpy()
                if hasattr(value, "requires_grad"):
                    self.origins[name] = name, tuple(range(len(value.shape)))
            return name
        if isinstance(value, np.ndarray) or (isinstance(value, np.generic) and role not in ("shape", "index")):
            return np.asarray(value)
        return np.asarray(value, np.int64 if role in ("shape", "index") else like)

    def came(self, integers, given):
        """Gradients are not taken."""

    def assign(self, parameter, value):
        refuse("export of a network that assigns to a Parameter", "a file has no state", "net.set_train(False) before it")

    def custom(self, forward, backward, inputs):
        return forward(*inputs)

    def prepared(self, function):
        return function

    def scope(self):
        refuse("export of a network that takes gradients", "a file holds the forward computation", "the inner network")


def with_constants(result):
    """The result with numbers and bools as the tensors that a file holds."""
    if type(result) in (tuple, list):
        return tuple([with_constants(each) for each in result])
    return Tensor(np.asarray(result)) if isinstance(result, (bool, int, float)) else result


def contiguous(inputs):
    """The arguments with each tensor a copy in one piece."""
    return gradient.rebuilt(tuple(inputs), lambda each: Tensor(np.array(each.asnumpy(), order="C")))


def _checked(inputs):
    """The arguments of the call: tensors, also in containers, are inputs of the file; numbers, bools and texts are constants."""
    inputs = [Tensor(each) if isinstance(each, np.ndarray) else each for each in inputs]
    for each in gradient.tensors_of(inputs):
        if -1 in each.shape:
            refuse(f"export for an input of the open shape {list(each.shape)}", "a file is for the sizes of its call", "inputs of fixed sizes")
    return inputs


def record(net, inputs):
    """(Recording, names of the results) of a call."""
    inputs = gradient.rebuilt(tuple(inputs), lambda each: wrap(each.asnumpy()))  # one passed twice is two inputs
    recording = Recording(gradient.tensors_of(inputs))
    outer, core.here.recorder = core.here.recorder, recording
    try:
        made = net.run(inputs, {}) if isinstance(net, Cell) else net(*inputs)
    finally:
        core.here.recorder = outer
    results = gradient.tensors_of(with_constants(made))
    if not results:
        raise TypeError(f"export: the network must return Tensors, but got {type(made).__name__}.")
    return recording, [recording._input("", each, None) for each in results]


def write_om(recording, results, path):
    """An .om file."""
    builder = _cairn._Builder("main")
    handles = {}
    for name in recording.inputs:
        array = recording.tensors[name].asnumpy()
        handles[name] = builder.param(name, array.dtype.name, array.shape)
    for name, array in recording.constants.items():
        handles[name] = builder.constant(np.asarray(array, order="C"))
    for row, inputs, attributes, outputs in recording.nodes:
        while inputs and inputs[-1] is None:
            inputs = inputs[:-1]
        given = [handles[each] if isinstance(each, str) else builder.constant(np.asarray(each, order="C")) for each in inputs]
        handles.update(zip(outputs, builder.add(row, given, attributes, len(outputs))))
    for place, name in enumerate(results):
        builder.result(f"output{place}" if place else "output", handles[name], 0)
    _cairn.Module(builder.finish()).save(path)


def _write_frozen(net, inputs, path):
    """An .om file of all branches and loops of the network, whose Parameters are constants."""

    def form(graph, result):
        results = gradient.tensors_of(with_constants(result))
        graph.finish(results).save(path)
        return types.SimpleNamespace()

    try:
        capture.formed(net, contiguous(inputs), form, frozen=True)
    except Uncaptured as reason:
        refuse("export of a network whose course depends on its inputs", str(reason))


def _onnx_of(write, path):
    """An .onnx file of the .om file that write(path) makes."""
    beside = os.path.splitext(path)[0] + ".om"
    try:
        write(beside)
        cairn.convert(beside, path)
    except cairn.Error as error:
        raise Unsupported(f"export: {error}; use file_format='OM'") from None
    finally:
        if os.path.exists(beside):
            os.remove(beside)


def _write_beside(path, write):
    folder, name = os.path.split(os.path.abspath(path))
    handle, beside = tempfile.mkstemp(prefix=f".{name}.", suffix=os.path.splitext(name)[1], dir=folder)
    os.close(handle)
    try:
        write(beside)
        os.chmod(beside, 0o644)
        os.replace(beside, path)
    except BaseException:
        os.remove(beside)
        raise


def _under_key(enc_key, enc_mode):
    """A function of a file's bytes; None without a key. In releases of 1.9 and later the mode may be a function of the script."""
    if enc_key is not None and callable(enc_mode):
        return lambda data: enc_mode(data, enc_key)
    return (lambda data: _encryption.encrypted(data, enc_key, enc_mode)) if _encryption.check(enc_key, enc_mode, "export") else None


def _encrypt_file(path, change):
    with open(path, "rb") as file:
        data = change(file.read())
    with open(path, "wb") as file:
        file.write(data)


def _of_dataset(net, dataset):
    """The first columns of a row, as many as the network takes."""
    row = next(dataset.create_tuple_iterator(num_epochs=1))
    logger.warning("The file holds the network alone: the pipeline of the dataset gives the shapes of its inputs.")
    return row[: len(inspect.signature(net.construct).parameters)]


def export(net, inputs, file_name, file_format, options):
    """Writes the network as it is called with these inputs."""
    if not isinstance(net, Cell):
        raise TypeError(f"For 'export', the argument 'net' must be a Cell, but got {type(net).__name__}.")
    if not isinstance(file_name, str):
        raise TypeError(f"For 'export', the argument 'file_name' must be a string, but got {type(file_name).__name__}.")
    if file_format not in ("AIR", "ONNX", "MINDIR", "OM"):
        raise ValueError(f"For 'export', the argument 'file_format' must be one of 'AIR', 'ONNX', 'MINDIR', 'OM', but got {file_format}.")
    change = _under_key(options.pop("enc_key", None), options.pop("enc_mode", "AES-GCM"))
    if options:
        refuse(f"export({next(iter(options))}=...)", "is not supported", "export without it")
    if file_format not in _ENDINGS:
        refuse(f"export(file_format='{file_format}')", "files of the device's compiler are not "
               "written", "file_format='OM', 'ONNX' or 'MINDIR'", UnsupportedValue)
    path = file_name if file_name.endswith(_ENDINGS[file_format]) else file_name + _ENDINGS[file_format]
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    if len(inputs) == 1 and hasattr(inputs[0], "create_tuple_iterator"):
        inputs = _of_dataset(net, inputs[0])
    inputs = _checked(inputs)

    def write_all(beside):
        _write(net, inputs, file_format, beside)
        if change:
            _encrypt_file(beside, change)

    trained = net.training
    net.set_train(False)
    try:
        _write_beside(path, write_all)
    finally:
        net.set_train(trained)


def _write(net, inputs, file_format, path):
    """Writes the operators of a call, with all branches and loops where its course depends on the inputs; a .mindir file then holds the compiled
    function."""
    if file_format == "MINDIR":
        return _write_mindir(net, inputs, path)
    recording, results = record(net, inputs)
    if recording.decided:
        return _write_frozen(net, inputs, path) if file_format == "OM" else _onnx_of(lambda om: _write_frozen(net, inputs, om), path)
    if file_format == "OM":
        return write_om(recording, results, path)
    try:
        return _onnx.write(recording, results, path)
    except Unsupported:  # a row that this table lacks
        return _onnx_of(lambda om: write_om(recording, results, om), path)


def _write_mindir(net, inputs, path):
    from mindspore.train import _mindir, _mindir_function

    refused = None
    try:
        recording, results = record(net, inputs)
        if not recording.decided:
            return _mindir.write(recording, results, path)
    except Unsupported as error:
        refused = error
    form = _mindir_function.form_of(net, inputs, refused)
    return _mindir.write(recording, results, path) if form is None else _mindir.write_function(form, inputs, path)
