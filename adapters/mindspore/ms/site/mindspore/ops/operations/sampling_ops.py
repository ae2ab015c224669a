"""Primitives of windows at computed places: fractional pools, deformable convolutions; losses of unaligned sequences."""

import numpy as np
from cairn.ms import core
from cairn.ms.numerics import basic, losses, sequences, windows
from mindspore._checkparam import Validator
from mindspore.common.tensor import Tensor
from mindspore.ops.operations._form import REQUIRED, primitive, static, tensor


def _ctc(self, log_probs, targets, input_lengths, target_lengths):
    if len(tensor(log_probs, self.name, "float").shape) != 3:
        raise ValueError(f"For '{self.name}', log_probs must be [steps, batch, classes], but got {log_probs.shape}.")
    lengths = [_lengths(self, *each) for each in ((input_lengths, "input_lengths"), (target_lengths, "target_lengths"))]
    if not 0 <= self.blank < log_probs.shape[2]:
        raise ValueError(f"For '{self.name}', 'blank' must be in [0, {log_probs.shape[2]}), but got {self.blank}.")
    loss, history = sequences.ctc_loss(log_probs, tensor(targets, self.name, "int", "targets"), *lengths, self.blank, self.zero_infinity)
    if self.reduction == "mean":
        below = core.maximum(basic.cast(lengths[1], basic.nptype(loss)), basic.number(1, loss))
        return core.reduce_mean(core.div(loss, below), axes=[0], keep_dims=False), history
    return losses.reduced(loss, self.reduction), history


def _lengths(self, given, name):
    values = np.asarray(given) if isinstance(given, (tuple, list)) else None
    if values is not None and values.dtype.kind in "iu":
        return Tensor(values)
    if values is not None:
        raise TypeError(f"For '{self.name}', the type of '{name}' must be int, but got Float32.")
    return tensor(given, self.name, "int", name)


CTCLossV2 = primitive(
    "CTCLossV2", _ctc, "(loss, logarithms of the forward variables) of connectionist temporal classification.", blank=0, reduction="none",
    zero_infinity=False,
)  # fmt: skip


def _rnnt(self, acts, labels, input_lengths, label_lengths):
    loss = lambda x: sequences.rnnt_loss(x, labels, input_lengths, label_lengths, self.blank_label)  # noqa: E731
    from mindspore.ops.operations._grad_ops import slopes

    costs = loss(acts)
    return costs, slopes(loss, (acts,), basic.like(costs, 1))


RNNTLoss = primitive("RNNTLoss", _rnnt, "(losses, gradients by acts) of a transducer's logits.", blank_label=0)


def _ratios(self):
    Validator.check_value_type("pooling_ratio", self.pooling_ratio, [list, tuple], self.name)
    ratio = self.pooling_ratio
    if len(ratio) != 4 or ratio[0] != 1.0 or ratio[3] != 1.0 or min(ratio) < 1:
        raise ValueError(f"For '{self.name}', 'pooling_ratio' must be (1.0, rows, columns, 1.0) with numbers of at least 1, but got {ratio}.")
    self.add_prim_attr("ratio", ratio)


def _fractional(name, row):
    def compute(self, x):
        seeds = [each for each in (self.seed, self.seed2) if each]
        generator = np.random.RandomState(seeds or None)
        edges = [
            windows.fractional_edges(size, int(size / ratio), generator, self.pseudo_random) for size, ratio in zip(x.shape[1:3], self.ratio[1:3])
        ]
        out, size = x, 1
        for axis, each in enumerate(edges, 1):
            out = windows.pool_pieces(out, axis, each, self.overlapping, row)
            ends = np.minimum(each[1:] + self.overlapping, x.shape[axis])
            size = size * (ends - each[:-1]).reshape([-1 if i == axis else 1 for i in range(1, 4)])
        if row == "reduce_sum":
            out = core.div(out, basic.number(size, out))
        return (out, *(Tensor(np.asarray(each, np.int64)) for each in edges))

    return primitive(
        name, compute, "(pooled, row edges, column edges) of NHWC images in pieces of two lengths.", _ratios, pooling_ratio=REQUIRED,
        pseudo_random=False, overlapping=False, deterministic=False, seed=0, seed2=0,
    )  # fmt: skip


FractionalMaxPool = _fractional("FractionalMaxPool", "reduce_max")
FractionalAvgPool = _fractional("FractionalAvgPool", "reduce_sum")


def _fixed(name, dims, places):
    def compute(self, x, samples):
        if len(tensor(x, name).shape) not in (dims + 1, dims + 2):
            raise ValueError(f"For '{name}', x must have {dims + 2} axes, but got {tuple(x.shape)}.")
        kernel, counts = (tuple(int(n) for n in np.broadcast_to(each, dims)) for each in (self.ksize, self.output_shape))
        one = len(x.shape) == dims + 1
        if any(count + size - 1 > whole - (dims == 3) for count, size, whole in zip(counts, kernel, x.shape[-dims:])):
            raise ValueError(f"For '{name}', the windows {kernel} are too large for x of {tuple(x.shape)} and {counts} results.")
        if basic.nptype(x).kind in "iu":
            largest, where = compute(self, basic.cast(x, np.float64), samples)
            return basic.cast(largest, basic.nptype(x)), where
        largest, where = windows.fractional_max_pool(basic.expand(x, 0) if one else x, basic.cast(samples, basic.nptype(x)), kernel, counts)
        where = basic.cast(where, places)
        return (basic.at(largest, 0, 0), basic.at(where, 0, 0)) if one else (largest, where)

    return primitive(name, compute, "(largest, places) of windows that samples shift.", ksize=REQUIRED, output_shape=REQUIRED,
                     data_format="NCDHW" if dims == 3 else "NCHW")  # fmt: skip


FractionalMaxPoolWithFixedKsize = _fixed("FractionalMaxPoolWithFixedKsize", 2, np.int64)
FractionalMaxPool3DWithFixedKsize = _fixed("FractionalMaxPool3DWithFixedKsize", 3, np.int32)


def _deformable_offsets(self, x, offsets):
    if basic.nptype(x) == np.float16:  # whose places have too few bits
        return basic.cast(_deformable_offsets(self, basic.cast(x, np.float32), basic.cast(offsets, np.float32)), np.float16)
    channels = 2 if self.data_format == "NCHW" else 1
    strides, dilations = (each[channels : channels + 2] for each in (self.strides, self.dilations))
    if self.data_format == "NHWC":
        x, offsets = (core.transpose(each, permutation=[0, 3, 1, 2]) for each in (x, offsets))
    out = windows.deformable_offsets(x, offsets, strides, self.pads, self.ksize, dilations, self.deformable_groups, self.modulated)
    return out if self.data_format == "NCHW" else core.transpose(out, permutation=[0, 2, 3, 1])


DeformableOffsets = primitive(
    "DeformableOffsets", _deformable_offsets, "Images at the elements of windows, moved by offsets.", strides=REQUIRED, pads=REQUIRED,
    ksize=REQUIRED, dilations=(1, 1, 1, 1), data_format="NCHW", deformable_groups=1, modulated=True,
)  # fmt: skip


def _concat_offset(self, axis, tensors):
    from mindspore.ops.operations._grad_ops import ConcatOffset

    axis = static(axis, self.name, "axis")
    return tuple(Tensor(np.array(each, np.int32)) for each in ConcatOffset(len(tensors), axis)([tuple(map(int, each.asnumpy())) for each in tensors]))


ConcatOffsetV1 = primitive("ConcatOffsetV1", _concat_offset, "Where each of the joined tensors, given by shapes, begins.")
