"""Operators of users in training scripts: those of a library, and those that cairn.op makes of Python functions.

    ops = tf.load_op_library("libexample_ops.so")     # of <cairn/op.hpp>; TensorFlow's own libraries load as ever
    y = ops.swish(x, beta=1.5)

    from npu_bridge.user_ops import operator
    y = operator("acme.clip_abs")(x, limit=2.0)
"""

import json
import os
import re
import types

import cairn
import numpy as np
import tensorflow as tf
from cairn import _cairn
from tensorflow.core.framework import attr_value_pb2, graph_pb2, node_def_pb2
from tensorflow.python.eager import context, execute
from tensorflow.python.framework import op_def_library, ops

from npu_bridge import engine


def _attr(kind, value):
    """A value as an attribute of the row's kind."""
    made = attr_value_pb2.AttrValue()
    if kind == "boolean":
        made.b = bool(value)
    elif kind == "integer":
        made.i = int(value)
    elif kind == "number":
        made.f = float(value)
    elif kind == "text":
        made.s = value.encode()
    elif kind == "integers":
        made.list.i.extend(int(each) for each in value)
    elif kind == "numbers":
        made.list.f.extend(float(each) for each in value)
    elif kind == "texts":
        made.list.s.extend(each.encode() for each in value)
    elif kind == "dtype":
        made.type = tf.as_dtype(value).as_datatype_enum
    else:
        raise TypeError(f"an attribute of kind {kind} cannot be given in TensorFlow")
    return made


def _apply(op_name, inputs, types_out, attributes, name):
    """A node of an operator with one list of inputs and one of outputs."""
    types_in = [each.dtype.base_dtype.as_datatype_enum for each in inputs]
    types_out = [tf.as_dtype(each).as_datatype_enum for each in types_out]
    flat = tuple(item for pair in attributes.items() for item in pair) + ("Tin", types_in, "Tout", types_out)
    if context.executing_eagerly():
        made = execute.execute(
            op_name.encode(), len(types_out), inputs=list(inputs), attrs=flat, ctx=context.context(), name=name
        )
    else:
        keywords = {"x": list(inputs), "Tout": types_out, "name": name, **attributes}
        node = op_def_library._apply_op_helper(op_name, **keywords)[2]
        inputs, made = node.inputs, node.outputs
    if execute.must_record_gradient():
        execute.record_gradient(op_name, list(inputs), flat, list(made))
    return list(made)


class Operator:
    """A row as a function of tensors."""

    def __init__(self, row):
        self.name = row["name"]
        self.__doc__ = row["summary"]
        self.__name__ = self.name.rpartition(".")[2]
        self._row = row
        self._kinds = {each["name"]: each["kind"] for each in row["attributes"]}

    def __call__(self, *inputs, name=None, **attributes):
        engine.require()
        if engine.library() is None:
            raise RuntimeError(f"operator {self.name} runs on Cairn's engine alone, and CAIRN_ENGINE=tensorflow asks for none")
        names = [each["name"] for each in self._row["inputs"]]
        inputs = list(inputs) + [attributes.pop(each) for each in names[len(inputs) :] if each in attributes]
        unknown = [each for each in attributes if each not in self._kinds]
        if unknown:
            raise TypeError(f"{self.name} has no attribute {unknown[0]}")
        tensors = [tf.convert_to_tensor(each) for each in inputs]
        types_out, shapes = self._results(tensors, attributes)
        node = node_def_pb2.NodeDef(name="node", op=self.name)
        for key, value in attributes.items():
            node.attr[key].CopyFrom(_attr(self._kinds[key], value))
        graph = graph_pb2.GraphDef(node=[node]).SerializeToString(deterministic=True)
        made = _apply("CairnUserOp", tensors, types_out, {"node": graph}, name or self.__name__)
        for tensor, shape in zip(made, shapes):
            if not context.executing_eagerly():
                tensor.set_shape(shape)
        return made[0] if len(made) == 1 else tuple(made)

    def _results(self, tensors, attributes):
        """Types and shapes of the results by the row's own rule."""
        builder = _cairn._Builder(self.name)
        handles = []
        for index, tensor in enumerate(tensors):
            value = tf.get_static_value(tensor) if tensor.dtype.is_integer else None
            if value is not None:
                handles.append(builder.constant(np.ascontiguousarray(value)))
                continue
            shape = tensor.shape.as_list() if tensor.shape.rank is not None else None
            handles.append(builder.param(f"x{index}", tensor.dtype.base_dtype.name, shape))
        given = {
            key: np.dtype(tf.as_dtype(value).as_numpy_dtype) if self._kinds[key] == "dtype" else value
            for key, value in attributes.items()
        }
        made = builder.add(self.name, handles, given, len(self._row["results"]))
        known = [builder.type(each) for each in made]
        return [dtype for dtype, _ in known], [shape for _, shape in known]


def _gradient(op, *dys):
    wanted = [i for i, each in enumerate(op.inputs) if each.dtype.is_floating]
    given = [tf.zeros_like(y) if dy is None else dy for y, dy in zip(op.outputs, dys)]
    types_out = [op.inputs[i].dtype.base_dtype for i in wanted]
    attributes = {"node": op.get_attr("node"), "wanted": wanted}
    made = iter(_apply("CairnUserOpGrad", list(op.inputs) + given, types_out, attributes, None))
    return [next(made) if i in wanted else None for i in range(len(op.inputs))]


ops.RegisterGradient("CairnUserOp")(_gradient)
ops.NotDifferentiable("CairnUserOpGrad")


def operator(name):
    """The operator of that name, "domain.name", as a function of tensors."""
    for row in json.loads(_cairn._ops()):
        if row["name"] == name and "library" in row:
            return Operator(row)
    raise cairn.Error(
        f"operator {name} comes from no library that is loaded; load it with tf.load_op_library or cairn.load_op_library"
    )


def load_op_library(path):
    """The operators of the library as functions of a module, by their names without the domain."""
    before = {row["name"] for row in json.loads(_cairn._ops())}
    cairn.load_op_library(path)
    rows = [row for row in json.loads(_cairn._ops()) if "library" in row]
    added = [row for row in rows if row["name"] not in before]
    if not added:  # loaded before
        real = os.path.realpath(path)
        added = [row for row in rows if os.path.realpath(row["library"]) == real]
    module = types.ModuleType(re.sub(r"\W", "_", str(path)))
    for row in added:
        made = Operator(row)
        setattr(module, made.__name__, made)
    return module

