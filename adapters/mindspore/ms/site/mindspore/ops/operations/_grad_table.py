"""Gradients of operators as operators, as a table: the inputs of each, and the operator that is differentiated for it."""

import numpy as np
from cairn.ms import core
from cairn.ms.numerics import basic
from mindspore.common.tensor import Tensor
from mindspore.ops import operations as P
from mindspore.ops.operations._form import REQUIRED, primitive


def _compute(slopes, name, inputs, forward, to):
    """The gradient of forward(self)(*to) for that of its result, dy. The one of `to` that is none of the inputs is zeros, of the input
    `shape` or of the shape of `like`."""
    inputs, to, by = inputs.split(), to.split(), _BY.get(name, (0,))

    def compute(self, *given):
        at = dict(zip(inputs, given))
        dy = at["dy"]
        shape = at["like"].shape if "like" in at else at.get("shape", getattr(self, _SHAPES.get(name, ""), None))
        if shape is not None:
            shape = shape.asnumpy().tolist() if hasattr(shape, "asnumpy") else shape
            unknown = next(each for each in to if each not in at)
            at[unknown] = basic.filled(tuple(shape), 0, basic.nptype(dy))
        if name in _SIZED:  # the size of the result is an attribute of the operator
            self.size = tuple(dy.shape[_SIZED[name]])
        return slopes(forward(self), [at[each] for each in to if each in at], dy, by)

    return compute


def gradients(slopes):
    """{name: primitive}"""
    return {
        name: primitive(name, _compute(slopes, name, inputs, forward, to), f"The gradient that {name} names.", **attributes)
        for name, inputs, forward, to, attributes in ROWS
    }


def _first(operator):
    """The first result of an operator."""
    return lambda *inputs: operator(*inputs)[0]


def _own(self, operator, *names):
    return operator(*[getattr(self, name) for name in names])


_UNPOOL = {"ksize": REQUIRED, "strides": 0, "pads": 0, "output_shape": (), "data_format": "NCHW"}
_WINDOW = {"kernel_size": (1, 1, 1), "strides": (1, 1, 1)}
_CONV3D = {
    "out_channel": REQUIRED, "kernel_size": REQUIRED, "mode": 1, "pad_mode": "valid", "pad": 0, "stride": 1, "dilation": 1, "group": 1,
    "data_format": "NCDHW",
}  # fmt: skip
_DEFORMED = {"strides": REQUIRED, "pads": REQUIRED, "ksize": REQUIRED, "dilations": (1, 1, 1, 1), "data_format": "NCHW", "deformable_groups": 1,
             "modulated": True}  # fmt: skip
_DEPTHWISE = {"channel_multiplier": REQUIRED, "kernel_size": REQUIRED, "pad_mode": "valid", "pad": 0, "pads": 0, "mode": 3, "stride": 1,
              "dilation": 1, "group": 1}  # fmt: skip


def _depthwise(self):
    return P.DepthwiseConv2dNative(self.channel_multiplier, self.kernel_size, self.mode, self.pad_mode, self.pad, self.stride, self.dilation,
                                   self.group)  # fmt: skip


ROWS = (  # name, inputs, forward, what it is called with; by which of these; attributes
    ("LogitGrad", "dy x", lambda self: P.Logit(self.eps), "x", {"eps": -1.0}),
    ("SiLUGrad", "dy x", lambda self: lambda x: core.mul(x, core.sigmoid(x)), "x", {}),
    ("GLUGrad", "dy x", lambda self: P.GLU(self.axis), "x", {"axis": REQUIRED}),
    ("PdistGrad", "dy x _", lambda self: P.Pdist(self.p), "x", {"p": 2.0}),
    ("MultiMarginLossGrad", "dy x target weight", lambda self: _own(self, P.MultiMarginLoss, "p", "margin", "reduction"), "x target weight",
     {"p": 1, "margin": 1.0, "reduction": "mean"}),
    ("MultilabelMarginLossGrad", "dy x target _", lambda self: _first(P.MultilabelMarginLoss(self.reduction)), "x target", {"reduction": "mean"}),
    ("SoftMarginLossGrad", "x y dy", lambda self: P.SoftMarginLoss(self.reduction), "x y", {"reduction": "mean"}),
    ("CTCLossV2Grad", "dy x targets input_lengths target_lengths _ _",
     lambda self: _first(P.CTCLossV2(self.blank, self.reduction, self.zero_infinity)), "x targets input_lengths target_lengths",
     {"blank": 0, "reduction": "none", "zero_infinity": False}),
    ("DeformableOffsetsGrad", "dy x offsets", lambda self: _own(self, P.DeformableOffsets, *_DEFORMED), "x offsets", _DEFORMED),
    ("NLLLossGrad", "x dy target weight _", lambda self: _first(P.NLLLoss(self.reduction)), "x target weight", {"reduction": "mean"}),
    ("MedianGrad", "dy x _ _", lambda self: _first(_own(self, P.Median, "global_median", "axis", "keep_dims")), "x",
     {"global_median": False, "axis": 0, "keep_dims": False}),
    ("MaskedSelectGrad", "x mask dy", lambda self: P.MaskedSelect(), "x mask", {}),
    ("LRNGrad", "dy x _", lambda self: _own(self, P.LRN, "depth_radius", "bias", "alpha", "beta"), "x",
     {"depth_radius": 5, "bias": 1.0, "alpha": 1.0, "beta": 0.5}),
    ("MvlgammaGrad", "dy x", lambda self: P.Mvlgamma(self.p), "x", {"p": REQUIRED}),
    ("MaxPool3DGrad", "x _ dy", lambda self: P.MaxPool3D(self.kernel_size, self.strides, self.pad_mode, self.pad_list), "x",
     {**_WINDOW, "pad_mode": "VALID", "pad_list": 0, "data_format": "NCDHW"}),
    ("AdaptiveMaxPool3DGrad", "dy x _", lambda self: lambda x: P.AdaptiveMaxPool3D()(x, self.size)[0], "x", {}),
    ("MaxPool3DGradWithArgmax", "x dy _",
     lambda self: _first(P.MaxPool3DWithArgmax(self.ksize, self.strides, self.pads, self.dilation, self.ceil_mode)), "x",
     {"ksize": REQUIRED, "strides": REQUIRED, "pads": REQUIRED, "dilation": (1, 1, 1), "ceil_mode": False, "data_format": "NCDHW"}),
    ("MaxUnpool2DGrad", "x dy places", lambda self: P.MaxUnpool2D(self.ksize, self.strides, self.pads, self.output_shape), "x places", _UNPOOL),
    ("MaxUnpool3DGrad", "x dy places", lambda self: P.MaxUnpool3D(self.ksize, self.strides, self.pads, self.output_shape), "x places", _UNPOOL),
    ("ROIAlignGrad", "dy rois shape",
     lambda self: P.ROIAlign(self.pooled_height, self.pooled_width, self.spatial_scale, self.sample_num), "x rois",
     {"pooled_height": REQUIRED, "pooled_width": REQUIRED, "spatial_scale": REQUIRED, "sample_num": 2}),
    ("CropAndResizeGradImage", "dy boxes index shape",
     lambda self: lambda x, boxes, index: P.CropAndResize(self.method)(x, boxes, index, self.size), "x boxes index", {"T": REQUIRED, "method": "bilinear"}),
    ("CropAndResizeGradBoxes", "dy x boxes index",
     lambda self: lambda x, boxes, index: P.CropAndResize(self.method)(x, boxes, index, self.size), "x boxes index", {"method": "bilinear"}),
    ("AdaptiveMaxPool2DGrad", "dy x _", lambda self: lambda x: P.AdaptiveMaxPool2D(self.size)(x), "x", {}),
    ("ResizeBicubicGrad", "dy like", lambda self: lambda x: P.ResizeBicubic(self.align_corners, self.half_pixel_centers)(x, self.size), "x",
     {"align_corners": False, "half_pixel_centers": False}),
    ("ResizeLinear1DGrad", "dy like", lambda self: lambda x: P.ResizeLinear1D(self.coordinate_transformation_mode)(x, self.size), "x",
     {"coordinate_transformation_mode": "align_corners"}),
    ("SliceGrad", "dy like begin size", lambda self: P.Slice(), "x begin size", {}),
    ("StridedSliceV2Grad", "shape begin end strides dy", lambda self: P.StridedSlice(self.begin_mask, self.end_mask, self.ellipsis_mask,
     self.new_axis_mask, self.shrink_axis_mask), "x begin end strides",
     {"begin_mask": 0, "end_mask": 0, "ellipsis_mask": 0, "new_axis_mask": 0, "shrink_axis_mask": 0}),
    ("GatherDGradV2", "like dim index dy", lambda self: P.GatherD(), "x dim index", {}),
    ("GatherDGrad", "index dy", lambda self: lambda x, index: P.GatherD()(x, self.dim, index), "x index", {"dim": 0, "shape": None}),
    ("AdaptiveAvgPool2DGrad", "dy shape", lambda self: P.AdaptiveAvgPool2D(self.size), "x", {}),
    ("AdaptiveAvgPool3DGrad", "dy shape", lambda self: P.AdaptiveAvgPool3D(self.size), "x", {}),
    ("AvgPool3DGrad", "shape dy", lambda self: P.AvgPool3D(self.kernel_size, self.strides, self.pad_mode, self.pads, self.ceil_mode,
     self.count_include_pad, self.divisor_override), "x",
     {**_WINDOW, "pads": 0, "ceil_mode": False, "count_include_pad": True, "divisor_override": 0, "data_format": "NCDHW", "pad_mode": "pad"}),
    ("TraceGrad", "dy shape", lambda self: P.Trace(), "x", {}),
    ("Conv3DBackpropInput", "w dy shape", lambda self: _own(self, P.Conv3D, *_CONV3D), "x w", _CONV3D),
    ("Conv3DBackpropFilter", "x dy shape", lambda self: _own(self, P.Conv3D, *_CONV3D), "x w", _CONV3D),
    ("DepthwiseConv2dNativeBackpropInput", "shape w dy", _depthwise, "x w", _DEPTHWISE),
    ("DepthwiseConv2dNativeBackpropFilter", "x shape dy", _depthwise, "x w", _DEPTHWISE),
    ("Dilation2DBackpropInput", "x w dy", lambda self: _own(self, P.Dilation2D, "stride", "dilation", "pad_mode"), "x w",
     {"stride": REQUIRED, "dilation": REQUIRED, "pad_mode": "SAME", "data_format": "NCHW"}),
    ("Dilation2DBackpropFilter", "x w dy", lambda self: _own(self, P.Dilation2D, "stride", "dilation", "pad_mode"), "x w",
     {"stride": REQUIRED, "dilation": REQUIRED, "pad_mode": "SAME", "data_format": "NCHW"}),
    ("GridSampler2DGrad", "dy x grid", lambda self: _own(self, P.GridSampler2D, "interpolation_mode", "padding_mode", "align_corners"), "x grid",
     {"interpolation_mode": "bilinear", "padding_mode": "zeros", "align_corners": False}),
    ("GridSampler3DGrad", "dy x grid", lambda self: _own(self, P.GridSampler3D, "interpolation_mode", "padding_mode", "align_corners"), "x grid",
     {"interpolation_mode": "bilinear", "padding_mode": "zeros", "align_corners": False}),
    ("ScaleAndTranslateGrad", "dy like scale translation",
     lambda self: lambda x, *moved: P.ScaleAndTranslate(self.kernel_type, self.antialias)(x, Tensor(np.array(self.size)), *moved),
     "x scale translation", {"kernel_type": "lanczos3", "antialias": True}),
    ("UpsampleNearest3DGrad", "dy", lambda self: _own(self, P.UpsampleNearest3D, "output_size", "scales"), "x",
     {"input_size": REQUIRED, "output_size": None, "scales": None}),
    ("UpsampleTrilinear3DGrad", "dy", lambda self: _own(self, P.UpsampleTrilinear3D, "output_size", "scales", "align_corners"), "x",
     {"input_size": REQUIRED, "output_size": None, "scales": None, "align_corners": False}),
)  # fmt: skip
_BY = {"DeformableOffsetsGrad": (0, 1), "Dilation2DBackpropFilter": (1,), "Conv3DBackpropFilter": (1,), "DepthwiseConv2dNativeBackpropFilter": (1,),
       "CropAndResizeGradBoxes": (1,), "GridSampler2DGrad": (0, 1), "GridSampler3DGrad": (0, 1)}  # fmt: skip
_SHAPES = {"GatherDGrad": "shape", "UpsampleNearest3DGrad": "input_size", "UpsampleTrilinear3DGrad": "input_size"}
_SIZED = {  # which sizes of the result they are
    "AdaptiveAvgPool2DGrad": slice(-2, None), "AdaptiveAvgPool3DGrad": slice(-3, None), "AdaptiveMaxPool2DGrad": slice(-2, None),
    "AdaptiveMaxPool3DGrad": slice(-3, None), "ResizeBicubicGrad": slice(-2, None), "ResizeLinear1DGrad": slice(-1, None),
    "CropAndResizeGradImage": slice(1, 3), "CropAndResizeGradBoxes": slice(1, 3), "ScaleAndTranslateGrad": slice(1, 3),
}  # fmt: skip
