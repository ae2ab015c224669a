"""Primitives of effects and order: assignment, dependence, printing, summaries."""

import numpy as np
from cairn.ms import core, methods, modes, names
from cairn.ms.numerics import arrays, basic
from cairn.ms.promote import nptype
from cairn.ms.refusal import Unsupported
from mindspore._checkparam import Rel, Validator
from mindspore.common.tensor import Tensor
from mindspore.ops.operations._form import REQUIRED, Operator, parameter, primitive, same_type, tensor, written


def _assigned(name, combine):
    def compute(self, variable, value):
        parameter(variable, name)
        value = same_type(value, variable)
        return written(variable, value if combine is None else combine(variable, value))

    return primitive(name, compute, "Changes a Parameter and returns it.")


def _assign(self, variable, value):
    parameter(variable, "Assign")
    if not isinstance(value, (Tensor, int, float, bool)):
        raise TypeError(f"For 'Assign', the value must be a Tensor or a number, but got {type(value).__name__}.")
    value = same_type(value, variable)
    if tuple(value.shape) != tuple(variable.shape):
        alone = tuple(value.shape) == (1,) and variable.shape == ()
        value = (core.reshape if alone else core.broadcast_to)(value, basic.ints(variable.shape))
    return written(variable, value)


Assign = primitive("Assign", _assign, "Gives a Parameter a value and returns it.")
AssignAdd, AssignSub = _assigned("AssignAdd", core.add), _assigned("AssignSub", core.sub)
Load = primitive("Load", lambda self, variable, state=None: core.identity(variable), "The value of a Parameter.")
Depend = primitive("Depend", lambda self, value, expression: value, "The value; what made the expression runs before.")
ControlDepend = primitive(
    "ControlDepend", lambda self, src, dst: dst, "Order of two operators, which is that of the script.", lambda self: _mode(self), depend_mode=0
)


def _mode(self):
    Validator.check_int_range(self.depend_mode, 0, 1, Rel.INC_BOTH, "depend_mode", "ControlDepend")


def _check_bprop(self, gradients, inputs):
    for i, (made, x) in enumerate(zip(gradients, inputs)):
        if made.shape != x.shape or made.dtype != x.dtype:
            raise (ValueError if made.dtype == x.dtype else TypeError)(
                f"Bprop of {self.prim_to_check}: gradient {i} must be like its input, {x.dtype} of shape {tuple(x.shape)}, but got {made.dtype} of shape "
                f"{tuple(made.shape)}."
            )
    return gradients


def _uncalled(name):
    def compute(self, *inputs):
        raise Unsupported(names.refused(f"mindspore.ops.operations.{name}"))

    return primitive(name, compute, "Old networks make one that they never call: the call is refused.")


GeSwitch, Merge = _uncalled("GeSwitch"), _uncalled("Merge")
CheckBprop = primitive("CheckBprop", _check_bprop, "Gradients, which must be like the inputs.", prim_to_check="")
UpdateState = primitive(
    "UpdateState", lambda self, state, *others: state, "Order of effects, which is that of the script."
)
StopGradient = primitive("StopGradient", lambda self, x: core.stop_gradient(x), "x, through which no gradient flows.")
Partial = primitive(
    "Partial", lambda self, function, *bound: _Bound(function, bound), "A function with its first arguments."
)


class _Bound:
    def __init__(self, function, bound):
        self.function, self.bound = function, bound

    def __call__(self, *rest):
        return self.function(*self.bound, *rest)


class InsertGradientOf(Operator):
    """x, whose gradient goes through a function."""

    def __init__(self, f):
        super().__init__("InsertGradientOf")
        self.f = f

    def compute(self, x):
        def backward(inputs, results, gradients):
            made = core.prepared(self.f)(gradients[0])
            return (made if isinstance(made, Tensor) else Tensor(np.full(x.shape, made, nptype(x))),)

        (out,) = core.custom(lambda x: (core.identity(x),), backward, (x,))
        return out


class HookBackward(Operator):
    """Its inputs, whose gradients a function sees and may replace."""

    def __init__(self, hook_fn, cell_id=""):
        super().__init__("HookBackward")
        if not callable(hook_fn):
            raise TypeError(f"For 'HookBackward', the 'hook_fn' must be a function, but got {type(hook_fn).__name__}.")
        self.hook_fn = hook_fn

    def compute(self, *inputs):
        def backward(_, results, gradients):
            seen = self.hook_fn(tuple(gradients))
            return gradients if seen is None else seen if isinstance(seen, tuple) else (seen,)

        outputs = core.custom(lambda *given: tuple(map(core.identity, given)), backward, inputs)
        return outputs[0] if len(outputs) == 1 else outputs


def _captures():
    return core.here.recorder is not None and core.here.recorder.symbolic


def _print(self, *values):
    if _captures():
        core.here.recorder.show(methods.show, *values)
    elif modes.mode == modes.GRAPH:
        methods.show(values)
    else:
        for each in values:
            print(Tensor.__repr__(each) if isinstance(each, Tensor) else each)


Print = primitive("Print", _print, "Prints its inputs.")
Assert = primitive(
    "Assert",
    lambda self, condition, values: core.assert_(
        condition if isinstance(condition, Tensor) else np.asarray(condition, np.bool_), *values, message="assert failed",
        places=list(range(len(values))),
    ),
    "Stops the run unless the condition holds.",
    summarize=3,
)


def _summary(name):
    def compute(self, tag, value):
        Validator.check_value_type("tag", tag, [str], name)
        if value is None or isinstance(value, str):
            raise TypeError(f"For '{name}', the 'value' must be a Tensor or a number, but got {type(value).__name__}.")
        if _captures():
            core.here.recorder.show(_summarize, name, tag, value)
        else:
            _summarize((name, tag, value))
        return value

    return primitive(name, compute, "Gives a value to the next record() of a SummaryRecord.")


def _summarize(told):
    from mindspore.train.summary import summary_record

    name, tag, value = told
    value = value if isinstance(value, Tensor) else Tensor(value)
    summary_record.keep(name[: -len("Summary")], tag, Tensor(value.asnumpy().copy()))


ScalarSummary, TensorSummary, ImageSummary, HistogramSummary = map(
    _summary, ("ScalarSummary", "TensorSummary", "ImageSummary", "HistogramSummary")
)


# Images and boxes


def _check_valid(self, boxes, metas):
    x0, y0, x1, y1 = (basic.at(boxes, -1, i) for i in range(4))
    height, width, ratio = (basic.cast(each, basic.nptype(boxes)) for each in arrays.unstack(metas, 0))
    one, zero = basic.number(1, boxes), basic.number(0, boxes)
    inside = core.and_(core.greater_equal(x0, zero), core.greater_equal(y0, zero))
    inside = core.and_(inside, core.less_equal(x1, core.sub(core.mul(width, ratio), one)))
    return core.and_(inside, core.less_equal(y1, core.sub(core.mul(height, ratio), one)))


def _corners(boxes, offset):
    x0, y0, x1, y1 = (basic.at(boxes, -1, i) for i in range(4))
    one = basic.number(offset, boxes)
    return x0, y0, x1, y1, core.add(core.sub(x1, x0), one), core.add(core.sub(y1, y0), one)


def _iou(self, anchors, truths):
    a = [basic.expand(each, 0) for each in _corners(anchors, 1)]
    b = [basic.expand(each, 1) for each in _corners(truths, 1)]
    one, zero = basic.number(1, anchors), basic.number(0, anchors)
    width = core.maximum(core.add(core.sub(core.minimum(a[2], b[2]), core.maximum(a[0], b[0])), one), zero)
    height = core.maximum(core.add(core.sub(core.minimum(a[3], b[3]), core.maximum(a[1], b[1])), one), zero)
    both, of_a, of_b = core.mul(width, height), core.mul(a[4], a[5]), core.mul(b[4], b[5])
    return core.div(both, of_b if self.mode == "iof" else core.sub(core.add(of_a, of_b), both))


def _encode(self, anchors, truths):
    a, t = _corners(anchors, 1), _corners(truths, 1)
    half = basic.number(0.5, anchors)
    deltas = []
    for low, size in ((0, 4), (1, 5)):
        centres = [core.mul(core.add(each[low], each[low + 2]), half) for each in (a, t)]
        deltas.append(core.div(core.sub(centres[1], centres[0]), a[size]))
    deltas += [core.log(core.div(t[size], a[size])) for size in (4, 5)]
    scaled = [
        core.div(core.sub(d, basic.number(m, d)), basic.number(s, d)) for d, m, s in zip(deltas, self.means, self.stds)
    ]
    return basic.stack(scaled, -1)


def _decode(self, anchors, deltas):
    a = _corners(anchors, 1)
    parts = [
        core.add(
            core.mul(basic.at(deltas, -1, i), basic.number(self.stds[i], deltas)), basic.number(self.means[i], deltas)
        )
        for i in range(4)
    ]
    limit = abs(np.log(self.wh_ratio_clip))
    half = basic.number(0.5, anchors)
    corners = []
    for i, (low, size, most) in enumerate(((0, 4, self.max_shape[1]), (1, 5, self.max_shape[0]))):
        centre = core.add(core.mul(core.add(a[low], a[low + 2]), half), core.mul(a[size], parts[i]))
        length = core.mul(a[size], core.exp(core.clip(parts[i + 2], low=-limit, high=limit)))
        shift = core.mul(core.sub(length, basic.number(1, length)), half)
        corners.append(
            [
                core.clip(edge, low=0.0, high=float(most - 1))
                for edge in (core.sub(centre, shift), core.add(centre, shift))
            ]
        )
    (x0, x1), (y0, y1) = corners
    return basic.stack([x0, y0, x1, y1], -1)


CheckValid = primitive("CheckValid", _check_valid, "Which boxes lie inside of an image.")


def _check_overlap(self):
    if self.mode not in ("iou", "iof"):
        raise KeyError(f"For 'IOU', only 'iou' or 'iof' are supported, but got 'mode': {self.mode}.")


IOU = primitive(
    "IOU",
    _iou,
    "Overlap of boxes over their union.",
    _check_overlap,
    mode="iou",
)
_BOXES = {"max_shape": REQUIRED, "means": (0.0, 0.0, 0.0, 0.0), "stds": (1.0, 1.0, 1.0, 1.0), "wh_ratio_clip": 0.016}
BoundingBoxEncode = primitive(
    "BoundingBoxEncode", _encode, "Boxes as steps from anchors.", means=_BOXES["means"], stds=_BOXES["stds"]
)
BoundingBoxDecode = primitive("BoundingBoxDecode", _decode, "Boxes from anchors and steps.", **_BOXES)


def _nms(self, boxes):
    """Boxes in falling order of score, their places in it, and which remain."""
    if len(tensor(boxes, "NMSWithMask", "float").shape) != 2 or boxes.shape[1] != 5:
        raise ValueError(f"For 'NMSWithMask', each box needs 4 corners and a score, but the shape is {boxes.shape}.")
    order = basic.cast(core.top_k(basic.at(boxes, 1, 4), np.int64(boxes.shape[0]))[1], np.int32)
    rows = core.gather(boxes, order, axis=0)
    x0, y0, x1, y1, w, h = _corners(basic.part(rows, 1, 0, 4), 0)
    area = core.mul(w, h)

    def both(low, high):
        upper = core.minimum(basic.expand(high, 0), basic.expand(high, 1))
        return core.relu(core.sub(upper, core.maximum(basic.expand(low, 0), basic.expand(low, 1))))

    overlap = core.mul(both(x0, x1), both(y0, y1))
    union = core.sub(core.add(basic.expand(area, 0), basic.expand(area, 1)), overlap)
    near = basic.cast(core.greater(core.div(overlap, union), basic.number(self.iou_threshold, union)), np.float32)
    near = arrays.band(near, -1, None)
    count = boxes.shape[0]
    kept = basic.filled((count,), 1, np.float32)
    for i in range(count):
        alive = core.reshape(basic.part(kept, 0, i, i + 1), basic.ints(()))
        kept = core.mul(kept, core.sub(np.float32(1), core.mul(basic.at(near, 0, i), alive)))
    return rows, core.identity(np.arange(count, dtype=np.int32)), core.greater(kept, np.float32(0))


NMSWithMask = primitive(
    "NMSWithMask",
    _nms,
    "Boxes by score, their indices, which ones remain.",
    lambda self: Validator.check_float_range(self.iou_threshold, 0, 1, Rel.INC_RIGHT, "iou_threshold", "NMSWithMask"),
    iou_threshold=0.5,
)


def _confusion(labels, predictions, classes, weights=None):
    places = core.add(core.mul(labels, basic.number(classes, labels)), basic.cast(predictions, basic.nptype(labels)))
    weights = basic.filled(places.shape, 1, np.float32) if weights is None else weights
    return basic.reshape(arrays.segment(weights, places, classes * classes, "sum"), (classes, classes))


ConfusionMatrix = primitive(
    "ConfusionMatrix",
    lambda self, labels, predictions, weights=None: _confusion(labels, predictions, self.num_classes, weights),
    "Counts of label and prediction.",
    num_classes=REQUIRED,
    dtype="int32",
)
