"""A recording of a network's call as ONNX operators (a table of rows; convolutions turned back to channels first), and the file of them."""

import numpy as np
from cairn import _whole as whole
from cairn.ms import refuse, wire

_TYPES = {np.dtype(kind): number for kind, number in {"float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7,
          "bool": 9, "float16": 10, "float64": 11, "uint32": 12, "uint64": 13}.items()}  # fmt: skip
OPSET, IR_VERSION = 17, 8

# Rows that are one ONNX operator of the same inputs, without attributes.
_SAME = {"add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "pow": "Pow", "maximum": "Max", "minimum": "Min", "relu": "Relu", "sigmoid": "Sigmoid",
         "tanh": "Tanh", "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "neg": "Neg", "abs": "Abs", "erf": "Erf", "floor": "Floor", "ceil": "Ceil",
         "reciprocal": "Reciprocal", "sin": "Sin", "cos": "Cos", "sign": "Sign", "softplus": "Softplus", "equal": "Equal", "less": "Less",
         "greater": "Greater", "less_equal": "LessOrEqual", "greater_equal": "GreaterOrEqual", "logical_and": "And", "logical_or": "Or",
         "logical_not": "Not", "and": "And", "or": "Or", "xor": "Xor", "not": "Not", "tan": "Tan", "asin": "Asin", "acos": "Acos",
         "atan": "Atan", "sinh": "Sinh", "cosh": "Cosh", "asinh": "Asinh", "acosh": "Acosh", "atanh": "Atanh", "round": "Round", "is_nan": "IsNaN",
         "is_inf": "IsInf", "select": "Where", "identity": "Identity", "stop_gradient": "Identity", "broadcast_to": "Expand"}  # fmt: skip
_REDUCTIONS = {"reduce_mean": "ReduceMean", "reduce_max": "ReduceMax", "reduce_min": "ReduceMin", "reduce_prod": "ReduceProd"}
_TO_FIRST, _TO_LAST = [0, 3, 1, 2], [0, 2, 3, 1]


def _attribute(name, value):
    body = wire.bytes_field(1, name)
    if isinstance(value, float):
        return body + wire.float_field(2, value) + wire.number_field(20, 1)
    if isinstance(value, (bool, int)):
        return body + wire.number_field(3, int(value)) + wire.number_field(20, 2)
    if isinstance(value, str):
        return body + wire.bytes_field(4, value) + wire.number_field(20, 3)
    return body + b"".join(wire.number_field(8, int(each)) for each in value) + wire.number_field(20, 7)


def _tensor(name, array):
    array = np.asarray(array, order="C")
    dims = b"".join(wire.number_field(1, size) for size in array.shape)
    return dims + wire.number_field(2, _TYPES[array.dtype]) + wire.bytes_field(8, name) + wire.bytes_field(9, array.tobytes())


def _port(name, array):
    dims = b"".join(wire.bytes_field(1, wire.number_field(1, size)) for size in array.shape)
    tensor = wire.number_field(1, _TYPES[array.dtype]) + wire.bytes_field(2, dims)
    return wire.bytes_field(1, name) + wire.bytes_field(2, wire.bytes_field(1, tensor))


class Graph:
    """Nodes and initializers in the making."""

    def __init__(self, recording):
        self.constants, self.origins = dict(recording.constants), recording.origins
        self.nodes, self.used, self.count = [], {}, 0
        self.turned = {}  # name of a constant matrix -> the Parameter that it is the transpose of
        self.first = {}  # name of a value with channels last -> name of the same with channels first

    def fresh(self):
        """A new name."""
        self.count += 1
        return f"value_{self.count}"

    def constant(self, array, name=None):
        name = name or self.fresh()
        self.used[name] = array
        return name

    def input(self, value):
        """The name of a node's input."""
        if value is None:
            return ""
        if not isinstance(value, str):
            return self.constant(value)
        if value in self.constants:
            return self.constant(self.constants[value], value)
        return value

    def node(self, kind, inputs, outputs, **attributes):
        """An operator: (kind, names of inputs, names of results, attributes). Returns its first result."""
        self.nodes.append((kind, [self.input(each) for each in inputs], outputs, attributes))
        return outputs[0]

    def channels_first(self, value):
        """An image with its channels first."""
        return self.first.get(value) or self.node("Transpose", [value], [self.fresh()], perm=_TO_FIRST)

    def channels_last(self, value, output):
        """The same image, under the name that the recording has for it with channels last."""
        self.first[output] = value
        self.node("Transpose", [value], [output], perm=_TO_LAST)

    def kernel(self, value, who):
        """The name of a kernel [out, in, height, width], that of its Parameter where it is one, and its elements."""
        array = np.ascontiguousarray(self.array(value, who).transpose(3, 2, 0, 1))
        name, axes = self.origins.get(value, (None, None)) if isinstance(value, str) else (None, None)
        return self.constant(array, name if axes == (2, 3, 1, 0) else None), array

    def array(self, value, who):
        """The elements of an input that must be known."""
        if not isinstance(value, str):
            return value
        if value not in self.constants:
            refuse(f"ONNX export of {who}", "one of its inputs must be a constant")
        return self.constants[value]


def _pads(attributes):
    how = attributes.get("padding", "valid")
    if how == "explicit":
        top, bottom, left, right = attributes["pads"]
        return {"pads": [top, left, bottom, right]}
    return {"auto_pad": {"valid": "VALID", "same": "SAME_UPPER", "same_lower": "SAME_LOWER"}[how]}


def _conv(graph, inputs, outputs, attributes):
    kernel, _ = graph.kernel(inputs[1], "conv2d")
    made = graph.node("Conv", [graph.channels_first(inputs[0]), kernel], [graph.fresh()], group=attributes.get("groups", 1),
                      strides=attributes.get("strides", [1, 1]), dilations=attributes.get("dilations", [1, 1]), **_pads(attributes))
    graph.channels_last(made, outputs[0])


def _conv_transpose(graph, inputs, outputs, attributes):
    """A transposed convolution: the image before one, from its result."""
    named, kernel = graph.kernel(inputs[1], "conv2d_input_gradient")
    shape, given = graph.shapes[outputs[0]], graph.shapes[inputs[0]]
    strides, dilations = attributes.get("strides", [1, 1]), attributes.get("dilations", [1, 1])
    reach = [(size - 1) * step + 1 for size, step in zip(kernel.shape[2:], dilations)]
    how = attributes.get("padding", "valid")
    if how == "explicit":
        top, bottom, left, right = attributes["pads"]
    else:
        whole_pads = [max((few - 1) * step + far - many, 0) if how != "valid" else 0
                      for few, step, far, many in zip(given[1:3], strides, reach, shape[1:3])]
        (top, bottom), (left, right) = (sorted((each // 2, each - each // 2), reverse=how == "same_lower") for each in whole_pads)
    more = [many - (step * (few - 1) + far - pads)
            for many, step, few, far, pads in zip(shape[1:3], strides, given[1:3], reach, (top + bottom, left + right))]
    made = graph.node("ConvTranspose", [graph.channels_first(inputs[0]), named], [graph.fresh()], group=attributes.get("groups", 1),
                      strides=strides, dilations=dilations, pads=[top, left, bottom, right], output_padding=more)
    graph.shapes[made] = [shape[each] for each in _TO_FIRST]
    graph.channels_last(made, outputs[0])


def _resize(graph, inputs, outputs, attributes):
    mode, rounding = attributes.get("mode", "nearest"), attributes.get("rounding", "floor")
    coordinates = attributes.get("coordinates", "asymmetric")
    if mode == "nearest" and rounding == "floor" and coordinates == "half_pixel":
        refuse("export of nearest pixels below the middle", "ONNX has none", "file_format='OM'")
    first = [graph.shapes[outputs[0]][each] for each in _TO_FIRST]
    told = {"nearest": {"nearest_mode": {"floor": "floor", "half_up": "round_prefer_ceil", "half_down": "round_prefer_floor", "ceil": "ceil"}[rounding]},
            "bilinear": {}, "bicubic": {"cubic_coeff_a": float(attributes.get("cubic", -0.75))}}[mode]  # fmt: skip
    made = graph.node("Resize", [graph.channels_first(inputs[0]), None, None, np.asarray(first, np.int64)], [graph.fresh()],
                      mode={"nearest": "nearest", "bilinear": "linear", "bicubic": "cubic"}[mode], coordinate_transformation_mode=coordinates, **told)
    graph.channels_last(made, outputs[0])


def _of_bools(kind):
    """any and all as the largest and the least of 0 and 1."""

    def write(graph, inputs, outputs, attributes):
        numbers = graph.node("Cast", [inputs[0]], [graph.fresh()], to=_TYPES[np.dtype("int32")])
        made = graph.node(kind, [numbers], [graph.fresh()], axes=attributes["axes"], keepdims=int(attributes.get("keep_dims", False)))
        graph.node("Cast", [made], outputs, to=_TYPES[np.dtype("bool")])

    return write


def _then(first, last):
    """Two operators in a row."""
    return lambda graph, inputs, outputs, attributes: graph.node(last, [graph.node(first, inputs, [graph.fresh()])], outputs)


def _floor_div(graph, inputs, outputs, attributes):
    """Div and Floor of floats; the quotient of integers, which ONNX cuts, is one less where a rest has not the sign of y."""
    x, y = inputs
    kind = graph.kinds[outputs[0]]
    if kind.kind == "f":
        _then("Div", "Floor")(graph, inputs, outputs, attributes)
        return

    def made(name, *given, **told):
        return graph.node(name, list(given), [graph.fresh()], **told)

    zero, cut = np.zeros((), kind), made("Div", x, y)
    rest = made("Sub", x, made("Mul", cut, y))
    less = made("And", made("Not", made("Equal", rest, zero)), made("Xor", made("Less", rest, zero), made("Less", y, zero)))
    graph.node("Sub", [cut, made("Cast", less, to=_TYPES[kind])], outputs)


def _place_of(kind):
    def write(graph, inputs, outputs, attributes):
        made = graph.node(kind, [inputs[0]], [graph.fresh()], axis=attributes["axis"], keepdims=int(attributes.get("keep_dims", False)))
        graph.node("Cast", [made], outputs, to=_TYPES[np.dtype(attributes.get("dtype", "int64"))])

    return write


def _cumsum(graph, inputs, outputs, attributes):
    graph.node("CumSum", [inputs[0], np.asarray(attributes["axis"], np.int64)], outputs, exclusive=int(attributes.get("exclusive", False)),
               reverse=int(attributes.get("reverse", False)))


def _pool(kind):
    def write(graph, inputs, outputs, attributes):
        told = {"count_include_pad": int(attributes.get("count_padding", False))} if kind == "AveragePool" else {}
        made = graph.node(kind, [graph.channels_first(inputs[0])], [graph.fresh()], kernel_shape=attributes["window"],
                          strides=attributes.get("strides", [1, 1]), ceil_mode=int(attributes.get("ceil_mode", False)), **_pads(attributes), **told)
        graph.channels_last(made, outputs[0])

    return write


def _transpose(graph, inputs, outputs, attributes):
    order = list(attributes["permutation"])
    if order == _TO_LAST:
        graph.first[outputs[0]] = inputs[0]
    if order == _TO_FIRST and inputs[0] in graph.first:
        graph.node("Identity", [graph.first[inputs[0]]], outputs)
    else:
        graph.node("Transpose", inputs, outputs, perm=order)


def _matmul(graph, inputs, outputs, attributes):
    left, right = inputs
    sides = []
    for value, turned in ((left, attributes.get("transpose_a")), (right, attributes.get("transpose_b"))):
        if turned:
            array = graph.constants.get(value) if isinstance(value, str) else value
            if array is not None:
                made = graph.constant(np.ascontiguousarray(np.swapaxes(array, -1, -2)))
                if isinstance(value, str) and graph.origins.get(value) == (value, (0, 1)):
                    graph.turned[made] = value
                value = made
            else:
                rank = graph.ranks[value]
                value = graph.node("Transpose", [value], [graph.fresh()], perm=[*range(rank - 2), rank - 1, rank - 2])
                graph.ranks[value] = rank
        sides.append(value)
    graph.node("MatMul", sides, outputs)


def _batch_norm(graph, inputs, outputs, attributes):
    if attributes.get("axis", 1) != 1:
        refuse("ONNX export of a batch norm with channels last", "ONNX has none")
    graph.node("BatchNormalization", inputs, outputs, epsilon=float(attributes["epsilon"]))


def _reduction(graph, inputs, outputs, attributes, kind):
    graph.node(kind, inputs, outputs, axes=attributes["axes"], keepdims=int(attributes.get("keep_dims", False)))


def _special(kind, *renamed, **fixed):
    """A row with attributes: pairs of ours and theirs; others change its meaning, which the file cannot say."""
    known = {ours for ours, _ in renamed} | {"from_start"}

    def write(graph, inputs, outputs, attributes):
        more = [name for name, value in attributes.items() if value and name not in known]
        if more:
            refuse(f"ONNX export of {kind} with '{more[0]}'", "ONNX has none", "file_format='OM'")
        told = {theirs: attributes[ours] for ours, theirs in renamed if ours in attributes}
        graph.node(kind, inputs, outputs, **{**fixed, **told})

    return write


def _gather(graph, inputs, outputs, attributes):
    """GatherND where leading dims of both go together, which Gather has none of."""
    axis, batch = attributes.get("axis", 0), attributes.get("batch_dims", 0)
    if not batch:
        graph.node("Gather", inputs, outputs, axis=axis)
        return
    rank = graph.ranks[inputs[0]] if isinstance(inputs[0], str) and inputs[0] in graph.ranks else np.ndim(graph.array(inputs[0], "gather"))
    if axis % rank != batch:
        refuse("ONNX export of a gather behind an axis that is no batch", "ONNX has none", "file_format='OM'")
    places = graph.node("Cast", [inputs[1]], [graph.fresh()], to=_TYPES[np.dtype("int64")])
    places = graph.node("Unsqueeze", [places, np.asarray([-1], np.int64)], [graph.fresh()])
    graph.node("GatherND", [inputs[0], places], outputs, batch_dims=batch)


def _square(graph, inputs, outputs, attributes):
    graph.node("Mul", [inputs[0], inputs[0]], outputs)


def _rsqrt(graph, inputs, outputs, attributes):
    graph.node("Reciprocal", [graph.node("Sqrt", inputs, [graph.fresh()])], outputs)


def _clip(graph, inputs, outputs, attributes):
    graph.node("Clip", [inputs[0], *(np.float32(attributes[each]) for each in ("low", "high"))], outputs)


def _reduce_sum(graph, inputs, outputs, attributes):
    graph.node("ReduceSum", [inputs[0], np.asarray(attributes["axes"], np.int64)], outputs, keepdims=int(attributes.get("keep_dims", False)))


def _reshape(graph, inputs, outputs, attributes):
    graph.node("Reshape", [inputs[0], np.asarray(graph.array(inputs[1], "reshape"), np.int64)], outputs)


def _tile(graph, inputs, outputs, attributes):
    graph.node("Tile", [inputs[0], np.asarray(graph.array(inputs[1], "tile"), np.int64)], outputs)


def _cast(graph, inputs, outputs, attributes):
    graph.node("Cast", inputs, outputs, to=_TYPES[np.dtype(attributes["dtype"])])


def _slice(graph, inputs, outputs, attributes):
    begin, end = (np.asarray(graph.array(each, "slice"), np.int64) for each in inputs[1:3])
    steps = np.asarray(attributes.get("steps") or [1] * len(begin), np.int64)
    graph.node("Slice", [inputs[0], begin, end, np.arange(len(begin)), steps], outputs)


def _gelu(graph, inputs, outputs, attributes):
    x, one, half = inputs[0], np.float32(1), np.float32(0.5)
    if attributes.get("approximate"):
        cube = graph.node("Mul", [graph.node("Mul", [x, x], [graph.fresh()]), x], [graph.fresh()])
        inner = graph.node("Add", [x, graph.node("Mul", [cube, np.float32(0.044715)], [graph.fresh()])], [graph.fresh()])
        bent = graph.node("Tanh", [graph.node("Mul", [inner, np.float32(np.sqrt(2 / np.pi))], [graph.fresh()])], [graph.fresh()])
    else:
        bent = graph.node("Erf", [graph.node("Mul", [x, np.float32(np.sqrt(0.5))], [graph.fresh()])], [graph.fresh()])
    graph.node("Mul", [graph.node("Mul", [x, half], [graph.fresh()]), graph.node("Add", [bent, one], [graph.fresh()])], outputs)


_ROWS = {"conv2d": _conv, "conv2d_input_gradient": _conv_transpose, "resize2d": _resize, "max_pool2d": _pool("MaxPool"), "avg_pool2d": _pool("AveragePool"), "transpose": _transpose, "matmul": _matmul,
         "batch_norm": _batch_norm, "clip": _clip, "square": _square, "rsqrt": _rsqrt, "reduce_sum": _reduce_sum, "reshape": _reshape, "tile": _tile,
         "cast": _cast, "slice": _slice, "softmax": _special("Softmax", ("axis", "axis"), axis=-1),
         "log_softmax": _special("LogSoftmax", ("axis", "axis"), axis=-1), "concat": _special("Concat", ("axis", "axis")),
         "gather": _gather, "leaky_relu": _special("LeakyRelu", ("alpha", "alpha")),
         "reduce_any": _of_bools("ReduceMax"), "reduce_all": _of_bools("ReduceMin"), "not_equal": _then("Equal", "Not"),
         "floor_div": _floor_div, "elu": _special("Elu", ("alpha", "alpha"), alpha=1.0), "arg_max": _place_of("ArgMax"),
         "arg_min": _place_of("ArgMin"), "gather_nd": _special("GatherND", ("batch_dims", "batch_dims"), batch_dims=0), "cumsum": _cumsum,
         "layer_norm": _special("LayerNormalization", ("epsilon", "epsilon"), ("axis", "axis"), axis=-1), "gelu": _gelu}  # fmt: skip


def graph_of(recording, results):
    """(graph, {name of a result of the file: name in the recording}); the graph's nodes are those that the results need."""
    graph = Graph(recording)
    arrays = {name: tensor.asnumpy() for name, tensor in recording.tensors.items()}
    graph.shapes = {name: array.shape for name, array in arrays.items()}
    graph.ranks = {name: len(shape) for name, shape in graph.shapes.items()}
    graph.kinds = {name: array.dtype for name, array in arrays.items()}
    for row, inputs, attributes, outputs in recording.nodes:
        if row in _SAME:
            graph.node(_SAME[row], inputs, outputs)
        elif row in _REDUCTIONS:
            _reduction(graph, inputs, outputs, attributes, _REDUCTIONS[row])
        elif row in _ROWS:
            _ROWS[row](graph, inputs, outputs, attributes)
        else:
            refuse(f"export of the operator {row}", "this format has no row for it", "file_format='OM'")
    names = {f"output{place}" if place else "output": result for place, result in enumerate(results)}
    for name, result in names.items():
        graph.node("Identity", [result], [name])
    wanted, kept = set(names), []
    for node in reversed(graph.nodes):
        if wanted.intersection(node[2]):
            wanted.update(node[1])
            kept.append(node)
    graph.nodes = kept[::-1]
    graph.used = {name: array for name, array in graph.used.items() if name in wanted}
    return graph, names


def write(recording, results, path):
    """An .onnx file."""
    graph, names = graph_of(recording, results)
    body = b"".join(wire.bytes_field(1, _node(place, *node)) for place, node in enumerate(graph.nodes)) + wire.bytes_field(2, "main")
    body += b"".join(wire.bytes_field(5, _tensor(name, array)) for name, array in graph.used.items())
    body += b"".join(wire.bytes_field(11, _port(name, recording.tensors[name].asnumpy())) for name in recording.inputs)
    body += b"".join(wire.bytes_field(12, _port(name, recording.tensors[result].asnumpy())) for name, result in names.items())
    model = wire.number_field(1, IR_VERSION) + wire.bytes_field(2, "cairn") + wire.bytes_field(7, body)
    model += wire.bytes_field(8, wire.number_field(2, OPSET))
    whole.write(path, [model])


def _node(place, kind, inputs, outputs, attributes):
    body = b"".join(wire.bytes_field(1, each) for each in inputs) + b"".join(wire.bytes_field(2, each) for each in outputs)
    body += wire.bytes_field(3, f"{kind}_{place}") + wire.bytes_field(4, kind)
    return body + b"".join(wire.bytes_field(5, _attribute(*each)) for each in attributes.items())
