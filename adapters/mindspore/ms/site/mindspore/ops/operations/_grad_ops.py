"""Gradients of operators as operators, which tests of old scripts call: by formulas, or by differentiation of the operator."""

import numpy as np
from cairn.ms import core, gradient
from cairn.ms.numerics import basic, windows
from mindspore.common.tensor import Tensor
from mindspore.ops import operations as P
from mindspore.ops.operations import _grad_table
from mindspore.ops.operations._form import REQUIRED, primitive, static
from mindspore.ops.operations.more_ops import cdist_grad

_one = lambda x: basic.number(1, x)  # noqa: E731


def _of_result(name, rule):
    """Inputs (y, dy): the result and its gradient."""
    return primitive(name, lambda self, y, dy: core.mul(dy, rule(y)), f"{name} from the result and its gradient.")


TanhGrad = _of_result("TanhGrad", lambda y: core.sub(_one(y), core.square(y)))
SigmoidGrad = _of_result("SigmoidGrad", lambda y: core.mul(y, core.sub(_one(y), y)))
SqrtGrad = _of_result("SqrtGrad", lambda y: core.div(basic.number(0.5, y), y))
RsqrtGrad = _of_result("RsqrtGrad", lambda y: core.mul(core.mul(core.square(y), y), basic.number(-0.5, y)))
ReciprocalGrad = _of_result("ReciprocalGrad", lambda y: core.neg(core.square(y)))
InvGrad = _of_result("InvGrad", lambda y: core.neg(core.square(y)))
AsinhGrad = _of_result("AsinhGrad", lambda y: core.div(_one(y), core.cosh(y)))
AcoshGrad = _of_result("AcoshGrad", lambda y: core.div(_one(y), core.sinh(y)))


def slopes(function, inputs, dy, positions=(0,)):
    """Gradients of function(*inputs) by some of its inputs, for the gradient of its result."""
    _, made, _ = gradient.differentiate(function, inputs, positions=positions, seed=dy)
    return made[0] if len(made) == 1 else tuple(made)


def _of_input(name, forward, first=False, **attributes):
    """Inputs (x, dy), or (dy, x) with `first`; what follows is ignored."""

    def compute(self, *inputs):
        x, dy = (inputs[1], inputs[0]) if first else inputs[:2]
        operator = forward(*[getattr(self, each) for each in attributes])
        return slopes(operator, (x,), dy)

    return primitive(name, compute, f"{name} from the input and the gradient of the result.", **attributes)


for _name, _forward in {"Abs": P.Abs, "Asin": P.Asin, "ACos": P.ACos, "Atan": P.Atan}.items():
    globals()[_name + "Grad"] = _of_input(_name + "Grad", _forward)
for _name, _forward in {"ReLU6": P.ReLU6, "Softplus": P.Softplus, "HSwish": P.HSwish, "HSigmoid": P.HSigmoid, "GeLU": P.GeLU,
                        "FastGeLU": P.FastGeLU, "Softsign": P.Softsign, "SeLU": P.SeLU}.items():  # fmt: skip
    globals()[_name + "Grad"] = _of_input(_name + "Grad", _forward, first=True)
SoftShrinkGrad = _of_input("SoftShrinkGrad", P.SoftShrink, first=True, lambd=0.5)
HShrinkGrad = _of_input("HShrinkGrad", P.HShrink, first=True, lambd=0.5)
ReluGrad = primitive(
    "ReluGrad",
    lambda self, dy, y: core.select(core.greater(y, basic.number(0, y)), dy, basic.number(0, dy)),
    "dy where y is above 0.",
)
EluGrad = primitive(
    "EluGrad",
    lambda self, dy, y: core.mul(dy, core.select(core.greater(y, basic.number(0, y)), _one(y), core.add(y, _one(y)))),
    "dy * (y + 1) below 0.",
)
SoftmaxGrad = primitive(
    "SoftmaxGrad",
    lambda self, y, dy: core.mul(
        y, core.sub(dy, core.reduce_sum(core.mul(y, dy), axes=[len(y.shape) - 1], keep_dims=True))
    ),
    "Of softmax along the last axis.",
)


def _log_softmax(self, y, dy):
    total = core.reduce_sum(dy, axes=[self.axis % len(y.shape)], keep_dims=True)
    return core.sub(dy, core.mul(core.exp(y), total))


LogSoftmaxGrad = primitive("LogSoftmaxGrad", _log_softmax, "Of log_softmax from its result.", axis=-1)


def _bias(self, dy):
    axes = [a for a in range(len(dy.shape)) if a != (1 if self.data_format == "NCHW" else len(dy.shape) - 1)]
    return core.reduce_sum(dy, axes=axes, keep_dims=False)


BiasAddGrad = primitive("BiasAddGrad", _bias, "Sum over all axes but the channels.", data_format="NCHW")
FlattenGrad = primitive(
    "FlattenGrad", lambda self, dy, shape: basic.reshape(dy, tuple(shape)), "dy under the shape of the input."
)
DropoutGrad = primitive(
    "DropoutGrad",
    lambda self, dy, mask: core.mul(core.mul(dy, mask), basic.number(1 / self.keep_prob, dy)),
    "dy where the mask kept.",
    keep_prob=0.5,
)
ReshapeGrad = FlattenGrad
_WINDOW = {"kernel_size": 1, "strides": 1, "pad_mode": "VALID", "data_format": "NCHW"}


def _pool(name, forward):
    def compute(self, x, y, dy):
        return slopes(forward(self.kernel_size, self.strides, self.pad_mode, self.data_format), (x,), dy)

    return primitive(name, compute, "From the image, the result and its gradient.", **_WINDOW)


MaxPoolGrad, AvgPoolGrad = _pool("MaxPoolGrad", P.MaxPool), _pool("AvgPoolGrad", P.AvgPool)
MaxPoolGradV1 = _pool("MaxPoolGradV1", P.MaxPool)
AvgPoolGradV1 = primitive(
    "AvgPoolGradV1",
    lambda self, shape, dy: slopes(P.AvgPool(self.kernel_size, self.strides, self.pad_mode, self.data_format),
                                   (basic.filled(static(shape, "AvgPoolGradV1", "orig_input_shape"), 0, basic.nptype(dy)),), dy),
    "From the shape of the image and the gradient of the result.", **_WINDOW,
)  # fmt: skip


def _of_pair(name, forward, **attributes):
    """Inputs (x, y, dout)."""

    def compute(self, x, y, dout):
        operator = forward(*[getattr(self, each) for each in attributes])
        return slopes(operator, (x, y), dout)

    return primitive(name, compute, f"{name} by the first of two inputs.", **attributes)


SmoothL1LossGrad = _of_pair("SmoothL1LossGrad", P.SmoothL1Loss, beta=1.0, reduction="none")
KLDivLossGrad = primitive(
    "KLDivLossGrad",
    lambda self, dout, x, y: slopes(P.KLDivLoss(self.reduction), (x, y), dout),
    "By the logarithms.",
    reduction="mean",
)
SigmoidCrossEntropyWithLogitsGrad = _of_pair("SigmoidCrossEntropyWithLogitsGrad", P.SigmoidCrossEntropyWithLogits)
BinaryCrossEntropyGrad = primitive(
    "BinaryCrossEntropyGrad", lambda self, x, y, dout, weight=None: slopes(lambda x: P.BinaryCrossEntropy(self.reduction)(x, y, weight), (x,), dout),
    "By the probabilities.", reduction="mean",
)  # fmt: skip


def _extreme(name, forward):
    def compute(self, x, y, dout):
        return slopes(forward(), (x, y), dout, (0, 1))

    return primitive(name, compute, "By both inputs.", grad_x=True, grad_y=True)


MaximumGrad, MinimumGrad = _extreme("MaximumGrad", P.Maximum), _extreme("MinimumGrad", P.Minimum)
LayerNormGrad = primitive(
    "LayerNormGrad",
    lambda self, x, dy, variance, mean, gamma: slopes(
        lambda x, gamma, beta: P.LayerNorm(self.begin_norm_axis, self.begin_params_axis)(x, gamma, beta)[0], (x, gamma, basic.like(gamma, 0)), dy, (0, 1, 2)
    ),
    "By x, gamma and beta.", begin_norm_axis=1, begin_params_axis=1,
)  # fmt: skip
L2NormalizeGrad = primitive(
    "L2NormalizeGrad",
    lambda self, x, y, dy: slopes(P.L2Normalize(self.axis, self.epsilon), (x,), dy),
    "By x.",
    axis=0,
    epsilon=1e-4,
)
PReLUGrad = primitive("PReLUGrad", lambda self, dy, x, w: slopes(P.PReLU(), (x, w), dy, (0, 1)), "By x and the weight.")


def _resized(name, forward):
    def compute(self, dy, x):
        shape = x.shape if hasattr(x, "shape") else (*dy.shape[:2], *x)
        return slopes(forward(dy.shape[2:], self.align_corners), (basic.filled(shape, 0, np.float32),), dy)

    return primitive(name, compute, "By the image.", align_corners=False, half_pixel_centers=False)


ResizeBilinearGrad, ResizeNearestNeighborGrad = (
    _resized("ResizeBilinearGrad", P.ResizeBilinear),
    _resized("ResizeNearestNeighborGrad", P.ResizeNearestNeighbor),
)
Conv2DBackpropFilter, Conv2DBackpropInput = P.Conv2DBackpropFilter, P.Conv2DBackpropInput
ReluGradV2 = primitive("ReluGradV2", lambda self, dy, mask: core.mul(dy, basic.cast(mask, basic.nptype(dy))), "dy where the mask is set.")
UniqueGrad = primitive("UniqueGrad", lambda self, dy, index: P.Gather()(dy, index, 0), "The gradient of each element's value.")


def _batch_norm(self, dy, x, scale, mean, variance, reserve=None):
    """By x, scale and bias; while training mean and variance are those of x."""
    axis = 1 if self.data_format == "NCHW" or len(x.shape) == 2 else len(x.shape) - 1
    axes = [each for each in range(len(x.shape)) if each != axis]
    shape = [-1 if each == axis else 1 for each in range(len(x.shape))]
    along = lambda each: basic.reshape(each, shape)  # noqa: E731
    total = lambda each: core.reduce_sum(each, axes=axes, keep_dims=False)  # noqa: E731
    inverse = core.rsqrt(core.add(variance, basic.number(self.epsilon, variance)))
    normal = core.mul(core.sub(x, along(mean)), along(inverse))
    of_scale, of_bias = total(core.mul(dy, normal)), total(dy)
    if self.is_training:
        count = basic.number(1 / np.prod([x.shape[each] for each in axes]), x)
        dy = core.sub(dy, core.mul(core.add(along(of_bias), core.mul(normal, along(of_scale))), count))
    return core.mul(dy, along(core.mul(scale, inverse))), of_scale, of_bias


BatchNormGrad = primitive("BatchNormGrad", _batch_norm, "By x, scale and bias.", is_training=False, epsilon=1e-5, data_format="NCHW")


def _batch_norm_twice(self, x, dy, scale, mean, variance, *seeds):
    """By x, dy and scale, for gradients of what BatchNormGrad gives; while training mean and variance follow x."""
    kind, wide = basic.nptype(x), lambda each: basic.cast(each, np.float64)  # noqa: E731

    def first(x, dy, scale):
        center, spread = wide(mean), wide(variance)
        if self.is_training:
            axis = 1 if self.data_format == "NCHW" or len(x.shape) == 2 else len(x.shape) - 1
            axes = [each for each in range(len(x.shape)) if each != axis]
            center = core.reduce_mean(x, axes=axes, keep_dims=True)
            spread = core.reduce_mean(core.square(core.sub(x, center)), axes=axes, keep_dims=False)
            center = basic.reshape(center, scale.shape)
        return _batch_norm(self, dy, x, scale, center, spread)

    dx, ddy, dscale = _again(first, *map(wide, (x, dy, scale)), seeds=tuple(map(wide, seeds)))
    return basic.cast(dx, kind), basic.cast(ddy, kind), basic.cast(dscale, basic.nptype(scale))


BatchNormGradGrad = primitive("BatchNormGradGrad", _batch_norm_twice, "By x, dy and scale.", is_training=False, epsilon=1e-5, data_format="NCHW")


def _again(operator, *inputs, seeds):
    """The gradients of a gradient by all of its inputs."""
    return slopes(operator, inputs, seeds, tuple(range(len(inputs))))


LayerNormGradGrad = primitive(
    "LayerNormGradGrad",
    lambda self, x, dy, variance, mean, gamma, *seeds: _again(
        lambda x, dy, gamma: LayerNormGrad(self.begin_norm_axis, self.begin_params_axis)(x, dy, variance, mean, gamma), x, dy, gamma, seeds=seeds,
    ),
    "By x, dy and gamma.", begin_norm_axis=1, begin_params_axis=1,
)  # fmt: skip
MaxPoolGradGrad = primitive(
    "MaxPoolGradGrad",
    lambda self, x, y, dx: slopes(
        lambda dy: MaxPoolGrad(self.kernel_size, self.strides, self.pad_mode, self.data_format)(x, y, dy), (y,), dx
    ),
    "By the gradient of the result.", **_WINDOW,
)  # fmt: skip


def _second(name, first):
    def compute(self, x, y, dx, dy):
        inner = lambda seed: first()(x, y, seed)  # noqa: E731
        return basic.like(x, 0), basic.like(y, 0), slopes(inner, (core.add(x, y),), (dx, dy))

    return primitive(name, compute, "By x, y and the gradient.", grad_x=True, grad_y=True)


MaximumGradGrad, MinimumGradGrad = _second("MaximumGradGrad", MaximumGrad), _second("MinimumGradGrad", MinimumGrad)


def _mirrored(name, forward):
    """Inputs (dy, paddings): what surrounds is added to what it mirrors."""

    def compute(self, dy, paddings):
        pads = paddings.asnumpy() if hasattr(paddings, "asnumpy") else np.asarray(paddings)
        pads = pads.reshape(-1, 2)
        shape = np.array(dy.shape)
        if name == "PadV3Grad":  # pairs begin with the last axis
            shape[-len(pads):] -= pads.sum(1)[::-1]
        else:
            shape -= pads.sum(1)
        return slopes(lambda x: forward(self)(x, paddings), (basic.filled(tuple(shape.tolist()), 0, basic.nptype(dy)),), dy)

    return compute


MirrorPadGrad = primitive("MirrorPadGrad", _mirrored("MirrorPadGrad", lambda self: P.MirrorPad(self.mode)), "By x.", mode="REFLECT")
PadV3Grad = primitive(
    "PadV3Grad", _mirrored("PadV3Grad", lambda self: P.PadV3(self.mode, self.paddings_contiguous)), "By x.", mode="reflect",
    paddings_contiguous=True,
)  # fmt: skip
MaxPoolGradWithArgmax = primitive(
    "MaxPoolGradWithArgmax",
    lambda self, x, dy, places: slopes(lambda x: P.MaxPoolWithArgmax(self.kernel_size, self.strides, self.pad_mode)(x)[0], (x,), dy),
    "By the image.", kernel_size=1, strides=1, pad_mode="valid", data_format="NCHW",
)  # fmt: skip
LuUnpackGrad = primitive(
    "LuUnpackGrad", lambda self, lower, upper, lu: (P.Tril(-1)(lower), P.Triu(0)(upper)), "Of both triangles.", L_grad_flag=True, U_grad_flag=True
)


def _offsets(self, shapes):
    """Where each of the joined tensors begins."""
    shapes = [getattr(each, "shape", each) for each in shapes]
    axis, made, at = self.axis % len(shapes[0]), [], 0
    for each in shapes:
        made.append(tuple(at if i == axis else 0 for i in range(len(each))))
        at += each[axis]
    return tuple(made)


ConcatOffset = primitive("ConcatOffset", _offsets, "Where each of the joined tensors begins.", N=2, axis=0)
CdistGrad = primitive("CdistGrad", lambda self, dy, x, y, distances: cdist_grad(dy, x, y, distances, self.p), "By x.", p=2.0)
LSTMGrad = primitive(
    "LSTMGrad",
    lambda self, x, h, c, w, y, hy, cy, dy, dhy, dcy, reserve=None: slopes(
        lambda *given: P.LSTM(self.input_size, self.hidden_size, self.num_layers, self.has_bias, self.bidirectional, self.dropout)(*given)[:3],
        (x, h, c, w), (dy, dhy, dcy), (0, 1, 2, 3),
    ),
    "By x, both states and the weights.", input_size=REQUIRED, hidden_size=REQUIRED, num_layers=REQUIRED, has_bias=REQUIRED,
    bidirectional=REQUIRED, dropout=REQUIRED,
)  # fmt: skip
globals().update(_grad_table.gradients(slopes))
SparseSegmentSumGrad, SparseSegmentMeanGrad, SparseSegmentSqrtNGrad = P.SparseSegmentSumGrad, P.SparseSegmentMeanGrad, P.SparseSegmentSqrtNGrad
StridedSliceGrad = primitive(
    "StridedSliceGrad",
    lambda self, dy, shape, begin, end, strides: slopes(
        lambda x: P.StridedSlice(self.begin_mask, self.end_mask, self.ellipsis_mask, self.new_axis_mask, self.shrink_axis_mask)(x, begin, end, strides),
        (basic.filled(shape, 0, basic.nptype(dy)),), dy,
    ),
    "By the sliced tensor.", begin_mask=0, end_mask=0, ellipsis_mask=0, new_axis_mask=0, shrink_axis_mask=0,
)  # fmt: skip
IgammaGradA = primitive("IgammaGradA", lambda self, a, x: slopes(core.incomplete_gamma, (a, x), basic.like(core.add(a, x), 1)), "By a.")
CholeskyGrad = primitive(
    "CholeskyGrad", lambda self, factor, dy: slopes(core.cholesky, (basic.matmul(factor, factor, transpose_y=True),), dy), "By the matrix."
)


def _einsum(self, inputs, dy):
    made = slopes(lambda *inputs: P.Einsum(self.equation)(inputs), tuple(inputs), dy, tuple(range(len(inputs))))
    return made if isinstance(made, tuple) else (made,)


EinsumGrad = primitive("EinsumGrad", _einsum, "By each operand.", equation=REQUIRED)


def _affine_grid(self, dy, size):
    rank = dy.shape[-1]
    theta = basic.filled((dy.shape[0], rank, rank + 1), 0, basic.nptype(dy))
    return slopes(lambda theta: P.AffineGrid(self.align_corners)(theta, size), (theta,), dy)


AffineGridGrad = primitive("AffineGridGrad", _affine_grid, "By the maps.", align_corners=False)


def _put(x, dy, places, rank):
    """dy at the places that index the last axes of x, taken as one; zeros elsewhere."""
    rows = tuple(x.shape[: len(x.shape) - rank])
    flat = lambda each: basic.reshape(each, (*rows, -1))  # noqa: E731
    return basic.reshape(slopes(lambda x: P.GatherD()(x, len(rows), flat(places)), (flat(x),), flat(dy)), x.shape)


def _taken(x, places, rank):
    """Elements of x at places that index its last axes, taken as one."""
    rows = tuple(x.shape[: len(x.shape) - rank])
    return basic.reshape(P.GatherD()(basic.reshape(x, (*rows, -1)), len(rows), basic.reshape(places, (*rows, -1))), places.shape)


FractionalMaxPoolGradWithFixedKsize = primitive(
    "FractionalMaxPoolGradWithFixedKsize", lambda self, x, dy, places: _put(x, dy, places, 2), "By the image.", data_format="NCHW"
)
FractionalMaxPool3DGradWithFixedKsize = primitive(
    "FractionalMaxPool3DGradWithFixedKsize", lambda self, x, dy, places: _put(x, dy, places, 3), "By the volume.", data_format="NCDHW"
)


def _pieces(row):
    """By an NHWC image that fractional pooling cut at the given edges."""

    def pooled(self, x, edges):
        out, size = x, 1
        for axis, each in enumerate(edges, 1):
            out = windows.pool_pieces(out, axis, each, self.overlapping, row)
            ends = np.minimum(each[1:] + self.overlapping, x.shape[axis])
            size = size * (ends - each[:-1]).reshape([-1 if i == axis else 1 for i in range(1, 4)])
        return core.div(out, basic.number(size, out)) if row == "reduce_sum" else out

    def compute(self, x, *inputs):
        dy, *edges = inputs[-3:]
        edges = [np.asarray(static(each, self.name, "edges")) for each in edges]
        if row == "reduce_sum":  # the image is known by its shape
            x = basic.filled(static(x, self.name, "shape"), 0, basic.nptype(dy))
        return slopes(lambda x: pooled(self, x, edges), (x,), dy)

    return compute


FractionalMaxPoolGrad = primitive("FractionalMaxPoolGrad", _pieces("reduce_max"), "By the image.", overlapping=False)
FractionalAvgPoolGrad = primitive("FractionalAvgPoolGrad", _pieces("reduce_sum"), "By the image.", overlapping=False)
MaxPoolGradWithArgmaxV2 = primitive(
    "MaxPoolGradWithArgmaxV2", lambda self, x, dy, places: _put(x, dy, places, 2), "By the image.", kernel_size=REQUIRED, strides=None, pads=0,
    dilation=(1, 1), ceil_mode=False, argmax_type=np.int64,
)  # fmt: skip
MaxPoolGradGradWithArgmax = primitive(
    "MaxPoolGradGradWithArgmax", lambda self, x, dx, places: _taken(dx, places, 3), "By dy.", kernel_size=1, strides=1, pad_mode="VALID",
    data_format="NCHW",
)  # fmt: skip
MaxPool3DGradGrad = primitive(
    "MaxPool3DGradGrad",
    lambda self, x, y, dx: slopes(
        lambda dy: globals()["MaxPool3DGrad"](self.kernel_size, self.strides, self.pad_mode)(x, y, dy), (y,), dx
    ),
    "By dy.", kernel_size=1, strides=1, pad_mode="VALID", data_format="NCDHW",
)  # fmt: skip
SparseFillEmptyRowsGrad = primitive(
    "SparseFillEmptyRowsGrad",
    lambda self, places, dy: (
        P.Gather()(dy, places, 0),
        core.sub(
            core.reduce_sum(dy, axes=[0], keep_dims=False), core.reduce_sum(P.Gather()(dy, places, 0), axes=[0], keep_dims=False)
        ),
    ),
    "By the values and by what fills.",
)


def _sparse_slice(self, dy, indices, start, kept):
    """By the values of a sparse tensor of which a part was taken: `kept` are the part's indices."""
    indices, start, kept = (each.asnumpy() if hasattr(each, "asnumpy") else np.asarray(each) for each in (indices, start, kept))
    at = {tuple(row): place for place, row in enumerate((kept + start).tolist())}
    places = np.array([at.get(tuple(row), len(at)) for row in indices.tolist()])
    return P.Gather()(core.concat(dy, basic.filled((1,), 0, basic.nptype(dy)), axis=0), Tensor(places), 0)


SparseSliceGrad = primitive("SparseSliceGrad", _sparse_slice, "By the values.")


def _instance_norm(self, dy, x, gamma, mean, variance):
    function = lambda x, gamma, beta: P.InstanceNorm(self.epsilon, self.momentum)(x, gamma, beta, mean, variance)[0]  # noqa: E731
    return slopes(function, (x, gamma, basic.like(gamma, 0)), dy, (0, 1, 2))


InstanceNormGrad = primitive("InstanceNormGrad", _instance_norm, "By x, gamma and beta.", epsilon=0.0, momentum=0.1)
ResizeNearestNeighborV2Grad = primitive(
    "ResizeNearestNeighborV2Grad",
    lambda self, dy, size: slopes(
        lambda x: P.ResizeNearestNeighborV2(self.align_corners, self.half_pixel_centers)(x, tuple(dy.shape[2:])),
        (basic.filled((*dy.shape[:2], *static(size, "ResizeNearestNeighborV2Grad", "size")), 0, basic.nptype(dy)),), dy,
    ),
    "By the image.", align_corners=False, half_pixel_centers=False,
)  # fmt: skip
GluGrad, SeluGrad = globals()["GLUGrad"], globals()["SeLUGrad"]
del _name, _forward
