"""Primitives that put elements at indices: in place, as new tensors, by rows; and rows looked up."""

import numpy as np
from cairn.ms import core
from cairn.ms.numerics import arrays, basic, reductions
from mindspore._checkparam import Validator
from mindspore.common.tensor import Tensor
from mindspore.ops.operations._form import REQUIRED, parameter, primitive, same_type, static, tensor, written


def _scatter(name, mode, writer):
    """In place, for a Parameter: rows (`Scatter*`) or index vectors (`ScatterNd*`)."""

    def compute(self, variable, indices, updates):
        if core.here.recorder is not None or not isinstance(variable, Tensor):  # eagerly a Tensor is written as well
            parameter(variable, name, "input_x")
        value = writer(variable, tensor(indices, name, "int", "indices"), same_type(updates, variable), mode)
        return written(variable, value)

    return primitive(name, compute, f"Combines updates into a Parameter by {mode}.", use_locking=mode == "update")


def _tensor_scatter(name, mode):
    def compute(self, x, indices, updates):
        depth = tensor(indices, name, "int", "indices").shape[-1:]
        if not depth or depth[0] > len(tensor(x, name).shape):
            raise ValueError(f"For '{name}', the last size of 'indices' {indices.shape} must not be above the rank of {x.shape}.")
        return arrays.scatter_nd(x, indices, updates, mode)

    return primitive(name, compute, f"x with updates at index vectors by {mode}.")


_MODES = {"Update": "update", "Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div", "Max": "max", "Min": "min"}
for _name, _mode in _MODES.items():
    globals()["Scatter" + _name] = _scatter("Scatter" + _name, _mode, arrays.scatter_rows)
    globals()["ScatterNd" + _name] = _scatter("ScatterNd" + _name, _mode, arrays.scatter_nd)
    globals()["TensorScatter" + _name] = _tensor_scatter("TensorScatter" + _name, _mode)
ScatterNonAliasingAdd = _scatter("ScatterNonAliasingAdd", "add", arrays.scatter_nd)
ScatterNd = primitive(
    "ScatterNd", lambda self, indices, updates, shape: arrays.scatter_new(tensor(indices, "ScatterNd", "int"), updates, static(shape, "ScatterNd", "shape")),
    "Zeros with updates added at index vectors.",
)  # fmt: skip
TensorScatterElements = primitive(
    "TensorScatterElements",
    lambda self, x, indices, updates: arrays.scatter_elements(x, indices, updates, self.axis, {"none": "update"}.get(self.reduction, self.reduction)),
    "x with updates by an index of its rank.", axis=0, reduction="none",
)  # fmt: skip


def _inplace(name, mode):
    def compute(self, x, v):
        rows = np.asarray([self.indices] if isinstance(self.indices, int) else self.indices, np.int32)
        return arrays.scatter_rows(x, Tensor(rows), basic.reshape(v, (len(rows), *x.shape[1:])), mode)

    def check(self):
        Validator.check_value_type("indices", self.indices, [int, tuple], name)

    return primitive(name, compute, f"x with rows replaced or combined by {mode}.", check, indices=REQUIRED)


InplaceUpdate, InplaceAdd, InplaceSub = (_inplace("Inplace" + n, n.lower()) for n in ("Update", "Add", "Sub"))


def _index_add(self, x, indices, y):
    lined = basic.moved(x, self.axis, 0)
    out = basic.moved(arrays.scatter_rows(lined, indices, basic.moved(y, self.axis, 0), "add"), 0, self.axis)
    core.assign(parameter(x, "IndexAdd", "x"), out)
    return out  # through which gradients reach y


IndexAdd = primitive(
    "IndexAdd", _index_add, "Adds parts of y into a Parameter.", axis=REQUIRED, use_lock=True, check_index_bound=True
)
InplaceIndexAdd = primitive("InplaceIndexAdd", _index_add, "Adds parts of y into a Parameter.", axis=REQUIRED)
EmbeddingLookup = primitive(
    "EmbeddingLookup",
    lambda self, x, indices, offset: _lookup(x, indices, offset),
    "Rows by index less an offset; zeros outside.",
)


def _lookup(x, indices, offset):
    places = core.sub(arrays.wide(indices), basic.number(offset, arrays.wide(indices)))
    inside = core.and_(core.greater_equal(places, basic.number(0, places)), core.less(places, basic.number(x.shape[0], places)))
    rows = core.gather(x, core.select(inside, places, basic.number(0, places)), axis=0)
    return core.select(reductions.expand_to(inside, len(rows.shape)), rows, basic.number(0, rows))


del _name, _mode
