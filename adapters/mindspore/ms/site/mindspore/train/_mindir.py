"""MindIR files: networks written from the operators that _onnx.py finds, and files of 1.1 and 1.10 read into a graph that runs by
MindSpore's primitives."""

import inspect
import os

import numpy as np
from cairn import _whole as whole
from cairn.ms import gradient, refuse, wire

from mindspore.common.parameter import Parameter
from mindspore.common.tensor import Tensor
from mindspore.train import _mindir_function

_TYPES = {"float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9, "float16": 10, "float64": 11,
          "uint32": 12, "uint64": 13}  # fmt: skip
_KINDS = {**{number: np.dtype(kind) for kind, number in _TYPES.items()}, 17: np.dtype("float64")}
_FLOAT, _INT64, _STRING, _BOOL, _TENSORS = 1, 7, 8, 9, 19

_NAMES = {"Div": "RealDiv", "Max": "Maximum", "Min": "Minimum", "Relu": "ReLU", "LessOrEqual": "LessEqual", "GreaterOrEqual": "GreaterEqual",
          "And": "LogicalAnd", "Or": "LogicalOr", "Not": "LogicalNot", "Where": "Select"}  # fmt: skip
_PLAIN = {"Add", "Sub", "Mul", "Pow", "Sigmoid", "Tanh", "Exp", "Log", "Sqrt", "Neg", "Abs", "Erf", "Floor", "Ceil", "Reciprocal", "Sin", "Cos", "Sign",
          "Softplus", "Equal", "Less", "Greater", *_NAMES}  # fmt: skip


class Writer:
    """Nodes, parameters and constants of a file."""

    def __init__(self, graph, recording):
        self.graph, self.recording = graph, recording
        self.nodes, self.parameters, self.alias, self.count, self.numbers = [], {}, {}, 0, {}

    def fresh(self):
        self.count += 1
        return f"made_{self.count}"

    def name(self, value):
        """The name of an input: a tensor of the file, or a Python value as a constant."""
        if not isinstance(value, str):
            return self.constant(value)
        value = self.alias.get(value, value)
        if value in self.graph.used:
            self.parameters[value] = self.graph.used[value]
        return value

    def constant(self, value):
        name = self.fresh()
        self._append("Constant", [], [name], {"value": value})
        return name

    def _append(self, kind, inputs, outputs, attributes):
        body = b"".join(wire.bytes_field(1, "main:" + each) for each in inputs) + b"".join(wire.bytes_field(2, "main:" + each) for each in outputs)
        number = self.numbers[kind] = self.numbers.get(kind, -1) + 1
        body += wire.bytes_field(3, f"{kind}-op{number}") + wire.bytes_field(4, kind)
        self.nodes.append(body + b"".join(wire.bytes_field(5, _attribute(*each)) for each in attributes.items()))

    def node(self, kind, inputs, output, **attributes):
        self._append(kind, [self.name(each) for each in inputs], [output], attributes)
        return output

    def first_of(self, kind, inputs, output, **attributes):
        """An operator whose first result of several is wanted."""
        made = self.node(kind, inputs, self.fresh(), **attributes)
        return self.node("TupleGetItem", [made, 0], output)

    def array(self, name):
        return self.graph.used[name]

    def shape(self, name):
        return self.array(name).shape if name in self.graph.used else self.recording.tensors[name].asnumpy().shape


def _tensor(name, array):
    array = np.asarray(array, order="C")
    body = b"".join(wire.number_field(1, size) for size in array.shape) + wire.number_field(2, _TYPES[array.dtype.name])
    return body + wire.bytes_field(7, name) + wire.bytes_field(9, array.tobytes())


def _attribute(name, value):
    body = wire.bytes_field(1, name)
    if isinstance(value, np.ndarray):
        return body + wire.bytes_field(12, _tensor("", value)) + wire.bytes_field(15, "tensor:value0") + wire.number_field(16, _TENSORS)
    if isinstance(value, bool):
        return body + wire.number_field(3, int(value)) + wire.bytes_field(15, "scalar:value0") + wire.number_field(16, _BOOL)
    if isinstance(value, (int, np.integer)):
        return body + wire.number_field(3, int(value)) + wire.bytes_field(15, "scalar:value0") + wire.number_field(16, _INT64)
    if isinstance(value, (float, np.floating)):
        return body + wire.float_field(2, float(value)) + wire.bytes_field(15, "scalar:value0") + wire.number_field(16, _FLOAT)
    if isinstance(value, str):
        return body + wire.bytes_field(5, value) + wire.bytes_field(15, "scalar:value0") + wire.number_field(16, _STRING)
    body += b"".join(wire.number_field(10, int(each)) for each in value)
    return body + wire.bytes_field(15, "scalar:value0") + wire.number_field(16, _INT64)


def _pad(told):
    """(pad_mode, pad) of ONNX attributes."""
    if "pads" in told:
        top, left, bottom, right = told["pads"]
        return "pad", (top, bottom, left, right)
    how = {"VALID": "valid", "SAME_UPPER": "same"}.get(told["auto_pad"])
    if how is None:
        refuse("MINDIR export of a convolution padded before its image", "MindSpore has none", "file_format='OM'")
    return how, (0, 0, 0, 0)


def _conv(w, inputs, output, told):
    out, _, height, width = w.shape(inputs[1])
    mode, pad = _pad(told)
    w.node("Conv2D", inputs, output, out_channel=out, kernel_size=(height, width), mode=1, pad_mode=mode, pad=pad, stride=(1, 1, *told["strides"]),
           dilation=(1, 1, *told["dilations"]), group=told["group"], format="NCHW")


def _conv_transpose(w, inputs, output, told):
    channels, _, height, width = w.shape(inputs[1])
    top, left, bottom, right = told["pads"]
    w.node("Conv2DBackpropInput", [*inputs, tuple(w.graph.shapes[output])], output, out_channel=channels, kernel_size=(height, width), mode=1,
           pad_mode="pad", pad=(top, bottom, left, right), stride=tuple(told["strides"]), dilation=tuple(told["dilations"]), group=told["group"], format="NCHW")


def _resize(w, inputs, output, told):
    size, coordinates = tuple(w.array(inputs[-1])[2:].tolist()), told["coordinate_transformation_mode"]
    corners = coordinates == "align_corners"
    if told["mode"] == "linear":
        w.node("ResizeBilinear", inputs[:1], output, size=size, align_corners=corners, half_pixel_centers=coordinates == "half_pixel")
    elif told["mode"] == "nearest" and (coordinates, told["nearest_mode"]) in (("asymmetric", "floor"), ("align_corners", "round_prefer_ceil")):
        w.node("ResizeNearestNeighbor", inputs[:1], output, size=size, align_corners=corners)
    else:
        refuse("MINDIR export of these resized images", "MindSpore 1.1 has none", "file_format='OM'")


def _pool(kind):
    def write(w, inputs, output, told):
        mode, pad = _pad(told)
        if (mode == "pad" and any(pad)) or told["ceil_mode"] or told.get("count_include_pad"):
            refuse("MINDIR export of pooling with pads of its own", "MindSpore's pooling is valid or same", "file_format='OM'")
        w.node(kind, inputs, output, kernel_size=(1, 1, *told["kernel_shape"]), strides=(1, 1, *told["strides"]),
               pad_mode="VALID" if mode == "pad" else mode.upper(), format="NCHW")

    return write


def _matmul(w, inputs, output, told):
    ranks = [w.array(each).ndim if each in w.graph.used else w.graph.ranks[each] for each in inputs]
    kind = "MatMul" if ranks == [2, 2] else "BatchMatMul"
    left, right = inputs
    own = w.graph.turned.get(right) if kind == "MatMul" else None  # the weight itself, under its name
    if own is not None:
        w.graph.used[own] = w.graph.constants[own]
    w.node(kind, [left, own or right], output, transpose_a=False, transpose_b=own is not None)


def _batch_norm(w, inputs, output, told):
    w.first_of("BatchNorm", inputs, output, is_training=False, epsilon=told["epsilon"], momentum=0.1, format="NCHW")


def _layer_norm(w, inputs, output, told):
    sizes = w.shape(inputs[0])[told["axis"] :]  # gamma and beta have these in MindSpore
    inputs = [inputs[0], *(np.broadcast_to(w.array(each), sizes) if w.shape(each) != sizes else each for each in inputs[1:])]
    w.first_of("LayerNorm", inputs, output, begin_norm_axis=told["axis"], begin_params_axis=told["axis"], epsilon=told["epsilon"])


def _reduce(kind):
    def write(w, inputs, output, told):
        axes = told["axes"] if "axes" in told else w.array(inputs[1]).tolist()
        w.node(kind, [inputs[0], tuple(axes)], output, keep_dims=bool(told["keepdims"]))

    return write


def _clip(w, inputs, output, told):
    low, high = (w.array(each) for each in inputs[1:])
    if low == 0 and high == 6:
        w.node("ReLU6", inputs[:1], output)
    else:
        w.node("Minimum", [w.node("Maximum", inputs[:2], w.fresh()), inputs[2]], output)


def _leaky_relu(w, inputs, output, told):
    bent = w.node("Mul", [inputs[0], np.float32(told["alpha"]).reshape(())], w.fresh())
    w.node("Maximum", [inputs[0], bent], output)


def _slice(w, inputs, output, told):
    begin, end, _, steps = (w.array(each).tolist() for each in inputs[1:])
    sizes = w.shape(inputs[0])
    parts = [slice(*each).indices(size) for each, size in zip(zip(begin, end, steps), sizes)]
    parts = [(first, last if last >= 0 else -size - 1, step) for (first, last, step), size in zip(parts, sizes)]  # -1 would be the last one
    masks = dict.fromkeys(("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0)
    w.node("StridedSlice", [inputs[0], *(tuple(each) for each in zip(*parts))], output, **masks)


_OPERATORS = {
    "Conv": _conv, "ConvTranspose": _conv_transpose, "Resize": _resize, "MaxPool": _pool("MaxPool"), "AveragePool": _pool("AvgPool"), "MatMul": _matmul, "BatchNormalization": _batch_norm,
    "LayerNormalization": _layer_norm, "Clip": _clip, "Slice": _slice, "ReduceMean": _reduce("ReduceMean"), "ReduceMax": _reduce("ReduceMax"),
    "ReduceMin": _reduce("ReduceMin"), "ReduceProd": _reduce("ReduceProd"), "ReduceSum": _reduce("ReduceSum"),
    "Transpose": lambda w, inputs, output, told: w.node("Transpose", [inputs[0], tuple(told["perm"])], output),
    "Reshape": lambda w, inputs, output, told: w.node("Reshape", [inputs[0], tuple(w.array(inputs[1]).tolist())], output),
    "Tile": lambda w, inputs, output, told: w.node("Tile", [inputs[0], tuple(w.array(inputs[1]).tolist())], output),
    "Expand": lambda w, inputs, output, told: w.node("BroadcastTo", inputs[:1], output, shape=tuple(w.array(inputs[1]).tolist())),
    "Softmax": lambda w, inputs, output, told: w.node("Softmax", inputs, output, axis=(told["axis"],)),
    "LogSoftmax": lambda w, inputs, output, told: w.node("LogSoftmax", inputs, output, axis=told["axis"]),
    "Concat": lambda w, inputs, output, told: w.node("Concat", [w.node("MakeTuple", inputs, w.fresh())], output, axis=told["axis"]),
    "Gather": lambda w, inputs, output, told: w.node("Gather", [*inputs, told["axis"]], output),
    "LeakyRelu": _leaky_relu,
}  # fmt: skip


def write(recording, results, path):
    """A .mindir file, in the form of 1.1, which later readers take too."""
    from mindspore.train import _onnx

    graph, names = _onnx.graph_of(recording, results)
    w = Writer(graph, recording)
    for kind, inputs, (output, *_), told in graph.nodes:
        if kind == "Identity":
            w.alias[output] = w.alias.get(inputs[0], inputs[0])
        elif kind in _PLAIN:
            w.node(_NAMES.get(kind, kind), inputs, output)
        elif kind in _OPERATORS:
            _OPERATORS[kind](w, inputs, output, told)
        else:
            refuse(f"MINDIR export of {kind}", "this format has no row for it", "file_format='OM'")
    inputs = {name: recording.tensors[name].asnumpy() for name in recording.inputs}
    whole.write(path, [_file(w, inputs, [(w.name(name), recording.tensors[result].asnumpy()) for name, result in names.items()])])


def write_function(form, inputs, path):
    """A .mindir file of a captured call with these inputs."""
    w = Writer(_mindir_function.graph_of(), None)
    named = {f"x{place}" if place else "x": np.asarray(each.asnumpy(), order="C") for place, each in enumerate(gradient.tensors_of(inputs))}
    results = _mindir_function.nodes(form, w, list(named))
    whole.write(path, [_file(w, named, list(zip(results, form.results)))])


def _file(w, inputs, results):
    """The bytes of a file. inputs: {name: array}; results: (name, array)."""
    body = b"".join(wire.bytes_field(1, each) for each in w.nodes) + wire.bytes_field(2, "main")
    body += b"".join(wire.bytes_field(3, _tensor("main:" + name, array)) for name, array in w.parameters.items())
    body += b"".join(wire.bytes_field(5, _port(*each)) for each in inputs.items())
    body += b"".join(wire.bytes_field(6, _port(*each)) for each in results)
    return wire.bytes_field(1, "0.1.0") + wire.bytes_field(2, "Cairn") + wire.bytes_field(7, body)


def _port(name, array):
    shape = b"".join(wire.number_field(1, size) for size in array.shape) + wire.number_field(2, _TYPES[array.dtype.name])
    return wire.bytes_field(1, "main:" + name) + wire.bytes_field(2, shape)


# Reading.


def _text(value):
    if isinstance(value, int):
        raise ValueError("has a number where a text belongs")
    return bytes(value).decode()


def _grouped(data):
    """{field number: values} of a message."""
    found = {}
    for number, _, value in wire.fields(data):
        found.setdefault(number, []).append(value)
    return found


def _elements(data):
    """(name, array) of a TensorProto."""
    parts = _grouped(data)
    name = _text(parts.get(7, [b""])[0])
    if 12 in parts:
        refuse("mindspore.load", f"the elements of {name!r} are in files beside this one", "a file that holds them itself")
    dims = wire.integers(data, 1)
    kind = _KINDS.get(parts.get(2, [1])[0])
    if kind is None:
        raise ValueError(f"has elements of type {parts[2][0]} for {name!r}, which are not numbers")
    raw = parts.get(9, [b""])[0]
    if isinstance(raw, int):
        raise ValueError(f"has no elements for {name!r}")
    count = 1
    for size in dims:
        if size < 0:
            raise ValueError(f"has the shape {dims} for {name!r}")
        count *= size
    if len(raw) != count * kind.itemsize:
        raise ValueError(f"has {len(raw)} bytes for {name!r}, whose shape {dims} and type {kind.name} need {count * kind.itemsize}")
    return name, np.frombuffer(raw, kind).reshape(dims).copy()


def _value(data):
    """What an AttributeProto holds."""
    parts = _grouped(data)
    kind = parts.get(16, [0])[0]
    if 17 in parts:
        return tuple(_value(each) for each in parts[17])
    for number in (6, 12):
        if number in parts:
            arrays = [Tensor(_elements(each)[1]) for each in parts[number]]
            return arrays[0] if len(arrays) == 1 else tuple(arrays)
    if 10 in parts:
        return tuple(wire.integers(data, 10))
    if 8 in parts:
        return tuple(wire.float_of(each) for each in parts[8])
    if 11 in parts:
        return tuple(_text(each) for each in parts[11])
    if 5 in parts:
        return _text(parts[5][0])
    if 2 in parts:
        return wire.float_of(parts[2][0])
    if 4 in parts:
        return wire.double_of(parts[4][0])
    if 3 in parts:
        return bool(parts[3][0]) if kind == _BOOL else wire.signed(parts[3][0])
    return None


class Node:
    """An operator of a graph, ready to be called."""

    def __init__(self, data, primitives):
        parts = _grouped(data)
        self.inputs, self.outputs = [_text(each) for each in parts.get(1, [])], [_text(each) for each in parts.get(2, [])]
        self.kind = _text(parts.get(4, [b""])[0])
        told = parts.get(5, [])
        if self.kind.startswith("REF::"):
            if self.kind[5:] not in primitives:
                raise ValueError(f"has no primitive {self.kind[5:]!r}")
            self.kind, told = primitives[self.kind[5:]]
        self.told = {_text(_grouped(each).get(1, [b""])[0]): _value(each) for each in told}
        self._primitive = None

    def call(self, values):
        """The result."""
        if self.kind == "Constant":
            return self.told.get("value")
        if self.kind == "MakeTuple":
            return tuple(values)
        if self.kind == "TupleGetItem":
            return values[0][values[1]]
        if self.kind in ("Load", "Depend", "Return", "identity"):
            return values[0]
        if self.kind == "UpdateState":
            return None
        if self._primitive is None:
            self._primitive = self._made()
        return self._primitive(*values)

    def _made(self):
        from mindspore.ops import operations

        if self.kind == _mindir_function.KIND:
            return _mindir_function.Loaded(self.told["function"])
        primitive = getattr(operations, self.kind, None)
        if primitive is None or not isinstance(primitive, type):
            refuse("mindspore.load", f"the file has an operator {self.kind}, which is not supported")
        known = inspect.signature(primitive).parameters
        told = {"data_format" if name == "format" else name: value for name, value in self.told.items()}
        for name in ("stride", "strides", "dilation", "kernel_size"):
            if isinstance(told.get(name), tuple) and len(told[name]) == 4:
                told[name] = told[name][2:]
        return primitive(**{name: value for name, value in told.items() if name in known})


class Graph:
    """A graph that was read. Calls run it operator by operator, or are captured with what surrounds them."""

    def __init__(self, data, primitives):
        parts = _grouped(data)
        self.nodes = [Node(each, primitives) for each in parts.get(1, [])]
        arrays = dict(_elements(each) for each in parts.get(3, []))
        self._parameters = {name: Parameter(Tensor(array), name=name.partition(":")[2] or name) for name, array in arrays.items()}
        self.ports = [_port_of(each) for each in parts.get(5, [])]
        self.inputs = [name for name, _, _ in self.ports]
        self.outputs = [_text(_grouped(each).get(1, [b""])[0]) for each in parts.get(6, [])]
        made = {*self.inputs, *self._parameters}
        for node in self.nodes:
            missing = [each for each in node.inputs if each not in made]
            if missing:
                raise ValueError(f"has an operator {node.kind!r} of {missing[0]!r}, which nothing makes")
            made.update(node.outputs)
        missing = [each for each in self.outputs if each not in made]
        if missing or not self.outputs:
            raise ValueError(f"has a result {missing[0]!r}, which nothing makes" if missing else "has no results")

    def parameters(self):
        """{name: Parameter}"""
        return {parameter.name: parameter for parameter in self._parameters.values()}

    def set_parameters(self, values):
        """Other values for parameters, by name."""
        own = self.parameters()
        for name, value in values.items():
            if name not in own:
                continue
            if tuple(value.shape) != tuple(own[name].shape) or value.dtype != own[name].dtype:
                raise ValueError(
                    f"Only support update parameter by Tensor or Parameter with same shape and dtype as it. The parameter '{name}' has shape "
                    f"{tuple(own[name].shape)} and dtype {own[name].dtype}, but got {tuple(value.shape)} and {value.dtype}.")
            own[name].set_data(value)

    def __call__(self, *inputs):
        if len(inputs) != len(self.inputs):
            raise ValueError(f"the graph takes {len(self.inputs)} inputs, but got {len(inputs)}")
        values = {**self._parameters, **dict(zip(self.inputs, inputs))}
        for node in self.nodes:
            made = node.call([values[each] for each in node.inputs])
            values.update({node.outputs[0]: made} if len(node.outputs) == 1 else zip(node.outputs, made))
        results = tuple(values[each] for each in self.outputs)
        return results[0] if len(results) == 1 else results


def _port_of(data):
    """(name, dtype or None, dims) of an input."""
    parts = _grouped(data)
    told = _grouped(parts[2][0]) if 2 in parts else {}
    return _text(parts.get(1, [b""])[0]), _KINDS.get(told.get(2, [0])[0]), wire.integers(parts[2][0], 1) if told else []


def inputs_of(path):
    """Tensors of zeros in the types and shapes of the inputs of a .mindir file: one, or a tuple."""
    made = []
    for name, kind, dims in load(path).ports:
        if kind is None or any(size <= 0 for size in dims):
            raise RuntimeError(f"the input {name!r} of {path} has no fixed type and shape: {kind}, {dims}.")
        made.append(Tensor(np.zeros(dims, kind)))
    return made[0] if len(made) == 1 else tuple(made)


def load(path, read=None):
    """The graph of a .mindir file. read: makes the bytes of a file plain."""
    if not isinstance(path, str):
        raise ValueError(f"For 'load', the argument 'file_name' must be string, but got {type(path)}.")
    if not path.endswith(".mindir"):
        raise ValueError("For 'load', the argument 'file_name'(MindIR file) should end with '.mindir', please input the "
                         "correct 'file_name'.")
    if not os.path.exists(path):
        raise ValueError(f"For 'load', the argument 'file_name'(MindIR file) does not exist: {path}.")
    try:
        with open(path, "rb") as file:
            data = file.read()
        parts = _grouped(read(data) if read else data)
        if 7 not in parts:
            raise ValueError("has no graph")
        if 8 in parts:
            refuse("mindspore.load", f"{path} has functions beside its graph", "a network without control flow")
        return Graph(parts[7][0], dict(_primitive(each) for each in parts.get(12, [])))
    except (ValueError, TypeError, OverflowError, MemoryError) as error:
        raise RuntimeError(f"Load MindIR failed: {path} {str(error) or type(error).__name__}.") from None


def _primitive(data):
    """(name, (operator, its attributes)) of an entry that nodes refer to."""
    parts = _grouped(data)
    return _text(parts.get(1, [b""])[0]), (_text(parts.get(2, [b""])[0]), parts.get(3, []))
