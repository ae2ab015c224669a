"""Makes one frozen graph and case for each TensorFlow op that is imported, in the forms that models use.

    python make_ops.py FOLDER
"""
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
import numpy as np
import tensorflow as tf

import numeric_ops
import training_ops
from make_models import save_case

tf1 = tf.compat.v1
raw = tf.raw_ops
R = np.random.default_rng(11)


def f(*shape):
    return R.normal(size=shape).astype(np.float32)


def i(low, high, *shape):
    return R.integers(low, high, size=shape).astype(np.int32)


X, P = f(2, 3, 4), np.abs(f(2, 3, 4)) + 0.5
IMAGE, KERNEL = f(2, 9, 8, 4), f(3, 3, 4, 6)
B = X > 0



# name: (function, arrays); the function's arguments become placeholders.
CASES = {
    **{name: ((lambda op: lambda x: op(x=x))(getattr(raw, name)), [X]) for name in
       ("Abs", "Ceil", "Cos", "Erf", "Exp", "Expm1", "Floor", "IsFinite", "IsInf", "IsNan", "Neg", "Rint", "Round", "Sigmoid",
        "Sign", "Sin", "Square", "Tanh", "OnesLike", "ZerosLike")},
    **{name: ((lambda op: lambda x: op(x=x))(getattr(raw, name)), [P]) for name in ("Log", "Log1p", "Rsqrt", "Sqrt", "Reciprocal", "Inv")},
    **{name: ((lambda op: lambda x: op(features=x))(getattr(raw, name)), [3 * X]) for name in
       ("Elu", "LeakyRelu", "Relu", "Relu6", "Selu", "Softplus", "Softsign")},
    **{name: ((lambda op: lambda x, y: op(x=x, y=y))(getattr(raw, name)), [X, f(3, 1)]) for name in
       ("Add", "AddV2", "Equal", "Greater", "GreaterEqual", "Less", "LessEqual", "Maximum", "Minimum", "Mul", "NotEqual", "RealDiv",
        "SquaredDifference", "Sub", "FloorDiv", "FloorMod", "Mod", "Div")},
    **{"Int" + name: ((lambda op: lambda x, y: op(x=x, y=y))(getattr(raw, name)), [i(-9, 9, 2, 5), i(1, 5, 5)]) for name in
       ("Add", "FloorDiv", "FloorMod", "TruncateDiv", "TruncateMod", "Div", "Maximum", "Less")},
    "Pow": (lambda x, y: raw.Pow(x=x, y=y), [P, X]),
    "DivNoNan": (lambda x, y: raw.DivNoNan(x=x, y=y), [X, (X > 0).astype(np.float32)]),
    "LogicalAnd": (lambda x, y: raw.LogicalAnd(x=x, y=y), [B, ~B]), "LogicalOr": (lambda x, y: raw.LogicalOr(x=x, y=y), [B, B]),
    "LogicalNot": (lambda x: raw.LogicalNot(x=x), [B]),
    "AddN": (lambda x, y, z: raw.AddN(inputs=[x, y, z]), [X, X + 1, X * 2]),
    "BiasAdd": (lambda x, b: raw.BiasAdd(value=x, bias=b), [X, f(4)]),
    "BiasAddNchw": (lambda x, b: raw.BiasAdd(value=x, bias=b, data_format="NCHW"), [f(2, 4, 3, 3), f(4)]),
    "ClipByValue": (lambda x: tf.clip_by_value(x, -0.5, 0.25), [X]),
    "CastToInt": (lambda x: raw.Cast(x=x, DstT=tf.int32), [5 * X]), "CastToBool": (lambda x: raw.Cast(x=x, DstT=tf.bool), [np.float32([0, 1, -2])]),
    "CastToHalf": (lambda x: tf.cast(tf.cast(x, tf.float16), tf.float32), [X]),
    "Select": (lambda c, x, y: raw.Select(condition=c, x=x, y=y), [np.array([True, False]), X, -X]),
    "SelectV2": (lambda c, x, y: raw.SelectV2(condition=c, t=x, e=y), [B[0, :1], X, f(2, 1, 4)]),
    "Sum": (lambda x: tf.reduce_sum(x, [0, 2]), [X]), "Mean": (lambda x: tf.reduce_mean(x, -1, keepdims=True), [X]),
    "Max": (lambda x: tf.reduce_max(x), [X]), "Min": (lambda x: tf.reduce_min(x, 1), [X]), "Prod": (lambda x: tf.reduce_prod(x, [1]), [X]),
    "SumNothing": (lambda x: raw.Sum(input=x, axis=np.zeros(0, np.int32)), [X]),
    "All": (lambda x: tf.reduce_all(x, 1), [B]), "Any": (lambda x: tf.reduce_any(x, [0, 1]), [B]),
    "ArgMax": (lambda x: tf.argmax(x, 1), [X]), "ArgMin": (lambda x: tf.argmin(x, -1, tf.int32), [X]),
    "Cumsum": (lambda x: tf.cumsum(x, 1, exclusive=True, reverse=True), [X]),
    "TopKV2": (lambda x: tf.math.top_k(x, 2)[0], [X]), "TopKIndices": (lambda x: tf.math.top_k(x, 2)[1], [X]),
    "Softmax": (lambda x: tf.nn.softmax(x), [X]), "LogSoftmax": (lambda x: tf.nn.log_softmax(x), [X]),
    "MatMul": (lambda x, y: tf.matmul(x, y, transpose_b=True), [f(3, 5), f(4, 5)]),
    "BatchMatMulV2": (lambda x, y: raw.BatchMatMulV2(x=x, y=y, adj_x=True), [f(2, 1, 5, 3), f(4, 5, 2)]),
    "Conv2DSame": (lambda x, k: tf.nn.conv2d(x, k, [1, 2, 2, 1], "SAME"), [IMAGE, KERNEL]),
    "Conv2DValidDilated": (lambda x, k: tf.nn.conv2d(x, k, 1, "VALID", dilations=2), [IMAGE, KERNEL]),
    "Conv2DExplicit": (lambda x, k: tf.nn.conv2d(x, k, [1, 2, 1, 1], [[0, 0], [1, 2], [0, 1], [0, 0]]), [IMAGE, KERNEL]),
    "Conv2DGroups": (lambda x, k: tf.nn.conv2d(x, k, 1, "SAME"), [IMAGE, f(3, 3, 2, 6)]),
    "DepthwiseConv2dNative": (lambda x, k: tf.nn.depthwise_conv2d(x, k, [1, 2, 2, 1], "SAME"), [IMAGE, f(3, 3, 4, 2)]),
    "MaxPool": (lambda x: tf.nn.max_pool2d(x, 3, 2, "SAME"), [IMAGE]), "AvgPool": (lambda x: tf.nn.avg_pool2d(x, [2, 3], [2, 1], "SAME"), [IMAGE]),
    "AvgPoolValid": (lambda x: tf.nn.avg_pool2d(x, 3, 2, "VALID"), [IMAGE]),
    "FusedBatchNormV3": (lambda x, s, o, m, v: raw.FusedBatchNormV3(x=x, scale=s, offset=o, mean=m, variance=v, epsilon=1e-3, is_training=False)[0],
                         [IMAGE, f(4), f(4), f(4), np.abs(f(4)) + 0.1]),
    "Reshape": (lambda x: tf.reshape(x, [4, -1]), [X]), "ReshapeComputed": (lambda x: tf.reshape(x, tf.stack([tf.shape(x)[0], -1])), [X]),
    "Squeeze": (lambda x: tf.squeeze(x, [1, -1]), [f(2, 1, 3, 1)]), "SqueezeAll": (lambda x: tf.squeeze(x), [f(2, 1, 3, 1)]),
    "ExpandDims": (lambda x: tf.expand_dims(x, -2), [X]), "ConcatV2": (lambda x, y: tf.concat([x, y, x], 1), [X, f(2, 1, 4)]),
    "Pack": (lambda x, y: tf.stack([x, y], -1), [X, -X]), "Unpack": (lambda x: tf.unstack(x, axis=1)[2], [X]),
    "Split": (lambda x: tf.split(x, 2, -1)[1], [X]), "SplitV": (lambda x: tf.split(x, [1, -1, 1], -1)[1], [X]),
    "Slice": (lambda x: tf.slice(x, [0, 1, 2], [-1, 2, 1]), [X]),
    "SliceComputed": (lambda x, b: tf.slice(x, b, [1, -1, 2]), [X, np.int32([1, 1, 0])]),
    "StridedSlice": (lambda x: x[0, 1:, ::-2], [X]), "StridedSliceEllipsis": (lambda x: x[..., tf.newaxis, 1:3], [X]),
    "StridedSliceNegative": (lambda x: x[-1, :-1, -3:], [X]),
    "StridedSliceComputed": (lambda x, n: x[:, n, n - 1:], [X, np.int32(-1)]),
    "Shape": (lambda x: tf.shape(x), [X]), "Rank": (lambda x: tf.rank(x) + 0 * tf.cast(x[0, 0, 0], tf.int32), [X]),
    "Size": (lambda x: tf.size(x) + tf.shape(x)[1], [X]),
    "Transpose": (lambda x: tf.transpose(x, [2, 0, 1]), [X]), "Tile": (lambda x: tf.tile(x, [1, 2, 3]), [X]),
    "Fill": (lambda x: tf.fill([2, 3], x), [np.float32(3)]), "FillComputed": (lambda x: tf.fill(tf.shape(x), 2.5), [X]),
    "BroadcastTo": (lambda x: tf.broadcast_to(x, [5, 2, 3, 4]), [X]), "Pad": (lambda x: tf.pad(x, [[0, 0], [1, 2], [0, 1]]), [X]),
    "PadV2": (lambda x: tf.pad(x, [[1, 0], [0, 0], [0, 1]], constant_values=-1.5), [X]),
    "MirrorPad": (lambda x: tf.pad(x, [[0, 0], [1, 2], [2, 3]], "REFLECT"), [X]), "Symmetric": (lambda x: tf.pad(x, [[2, 0], [0, 0], [4, 1]], "SYMMETRIC"), [X]),
    "ReverseV2": (lambda x: tf.reverse(x, [0, 2]), [X]),
    "GatherV2": (lambda x, n: tf.gather(x, n, axis=1), [X, i(0, 3, 2, 2)]), "GatherBatch": (lambda x, n: tf.gather(x, n, axis=1, batch_dims=1), [X, i(0, 3, 2, 5)]),
    "GatherNd": (lambda x, n: tf.gather_nd(x, n), [X, i(0, 2, 4, 2)]), "OneHot": (lambda n: tf.one_hot(n, 5, 2.0, -1.0, axis=0), [i(-1, 6, 3)]),
    "Range": (lambda n: tf.range(1, n, 2), [np.int32(8)]), "Where": (lambda x: tf.where(x), [B]),
    "Unique": (lambda x: tf.unique(x)[1], [np.int32([3, 1, 3, 2, 1])]),
    "ScatterNd": (lambda n, u: tf.scatter_nd(n, u, [6]), [np.int32([[4], [1], [4]]), f(3)]),
    "TensorScatterUpdate": (lambda x, n, u: tf.tensor_scatter_nd_update(x, n, u), [f(5, 2), np.int32([[4], [1]]), f(2, 2)]),
    "Identity": (lambda x: tf.identity(tf.stop_gradient(x)) + 0, [X]), "EnsureShape": (lambda x: tf.ensure_shape(x, [2, None, 4]) + 0, [X]),
}


def image_cases():
    resize = {}
    for corners, half in ((False, False), (True, False), (False, True)):
        for name in ("ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic"):
            resize[f"{name}{'Corners' * corners}{'Half' * half}"] = (
                lambda x, op=getattr(raw, name), a=corners, h=half: op(images=x, size=[13, 5], align_corners=a, half_pixel_centers=h), [IMAGE])
    boxes = np.sort(R.uniform(size=(12, 2, 2)).astype(np.float32), 1).reshape(12, 4)
    scores = R.uniform(size=12).astype(np.float32)
    return {
        **resize,
        "CropAndResize": (lambda x, b: tf.image.crop_and_resize(x, b, [0, 1, 1], [4, 5]), [IMAGE, boxes[:3]]),
        "CropAndResizeNearest": (lambda x, b: tf.image.crop_and_resize(x, b, [0, 1, 1], [4, 5], "nearest", 2.0), [IMAGE, 2 * boxes[:3]]),
        "CropAndResizeGradImage": (lambda d, b: raw.CropAndResizeGradImage(grads=d, boxes=b, box_ind=[0, 1, 1], image_size=[2, 9, 8, 3], T=tf.float32), [f(3, 4, 5, 3), 1.3 * boxes[:3]]),
        "CropAndResizeGradBoxes": (lambda d, x, b: raw.CropAndResizeGradBoxes(grads=d, image=x, boxes=b, box_ind=[0, 1, 1]), [f(3, 4, 5, 3), f(2, 9, 8, 3), 1.3 * boxes[:3]]),
        "NonMaxSuppression": (lambda b, s: raw.NonMaxSuppression(boxes=b, scores=s, max_output_size=5, iou_threshold=0.3), [boxes, scores]),
        "NonMaxSuppressionV2": (lambda b, s: raw.NonMaxSuppressionV2(boxes=b, scores=s, max_output_size=5, iou_threshold=0.3), [boxes, scores]),
        "NonMaxSuppressionV3": (lambda b, s: tf.gather(b, tf.image.non_max_suppression(b, s, 5, 0.3, 0.2)), [boxes, scores]),
        "NonMaxSuppressionV4": (lambda b, s: raw.NonMaxSuppressionV4(boxes=b, scores=s, max_output_size=15, iou_threshold=0.3, score_threshold=0.1, pad_to_max_output_size=True)[0], [boxes, scores]),
        "NonMaxSuppressionV5": (lambda b, s: raw.NonMaxSuppressionV5(boxes=b, scores=s, max_output_size=9, iou_threshold=0.6, score_threshold=0.1, soft_nms_sigma=0.5)[1], [boxes, scores]),
        "CombinedNonMaxSuppression": (lambda b, s: tf.image.combined_non_max_suppression(b, s, 4, 10, 0.3, 0.1)[0], [boxes.reshape(2, 6, 1, 4), f(2, 6, 3)]),
        "CombinedNonMaxSuppressionClasses": (lambda b, s: tf.image.combined_non_max_suppression(b, s, 4, 10, 0.3, 0.1, pad_per_class=True)[2], [boxes.reshape(2, 2, 3, 4), f(2, 2, 3)]),
        "SpaceToDepth": (lambda x: tf.nn.space_to_depth(x, 2), [f(2, 6, 8, 3)]), "DepthToSpace": (lambda x: tf.nn.depth_to_space(x, 2), [f(2, 3, 4, 12)]),
        "SpaceToBatchND": (lambda x: tf.space_to_batch(x, [2, 3], [[1, 0], [0, 1]]), [f(2, 7, 8, 3)]),
        "BatchToSpaceND": (lambda x: tf.batch_to_space(x, [2, 3], [[1, 0], [0, 2]]), [f(12, 4, 3, 2)]),
        "ExtractImagePatches": (lambda x: tf.image.extract_patches(x, [1, 3, 2, 1], [1, 2, 3, 1], [1, 2, 1, 1], "SAME"), [IMAGE]),
        "ExtractImagePatchesValid": (lambda x: tf.image.extract_patches(x, [1, 3, 2, 1], [1, 2, 3, 1], [1, 1, 1, 1], "VALID"), [IMAGE]),
    }


VOLUME, KERNEL3 = f(2, 5, 6, 7, 3), f(3, 2, 3, 3, 4)


def more_cases():
    return {
        **{name: ((lambda op: lambda x: op(x=x))(getattr(raw, name)), [np.clip(X, -0.9, 0.9)]) for name in
           ("Acos", "Asin", "Asinh", "Atan", "Atanh", "Cosh", "Sinh", "Tan", "Erfc")},
        "Acosh": (lambda x: raw.Acosh(x=x), [P + 1]), "Atan2": (lambda y, x: raw.Atan2(y=y, x=x), [np.round(3 * X), np.round(2 * f(2, 3, 4))]),
        "ApproximateEqual": (lambda x, y: raw.ApproximateEqual(x=x, y=y, tolerance=0.5), [X, X + f(2, 3, 4)]),
        **{name: ((lambda op: lambda x, y: op(x=x, y=y))(getattr(raw, name)), [np.float32([0, 0, 2]), np.float32([0, 1, 3])]) for name in
           ("Xlogy", "Xdivy", "Xlog1py", "MulNoNan")},
        "EuclideanNorm": (lambda x: tf.math.reduce_euclidean_norm(x, 1), [X]), "LinSpace": (lambda a, b: tf.linspace(a, b, 7), [np.float32(1), np.float32(4)]),
        "MatrixBandPart": (lambda x: tf.linalg.band_part(x, 1, -1), [f(2, 4, 5)]), "MatrixBandPartLower": (lambda x: tf.linalg.band_part(x, -1, 0), [f(5, 5)]),
        "Diag": (tf.linalg.tensor_diag, [f(5)]), "DiagPart": (tf.linalg.tensor_diag_part, [f(6, 6)]),
        "DiagOfMatrix": (tf.linalg.tensor_diag, [f(2, 3)]), "DiagPartOfMatrix": (tf.linalg.tensor_diag_part, [f(2, 3, 2, 3)]),
        "MatrixDiagV3": (lambda x: tf.linalg.diag(x), [f(2, 4)]), "MatrixDiagPartV3": (lambda x: tf.linalg.diag_part(x), [f(2, 4, 4)]),
        "MatrixSetDiagV3": (lambda x, d: tf.linalg.set_diag(x, d), [f(2, 4, 4), f(2, 4)]),
        "FakeQuantWithMinMaxArgs": (lambda x: tf.quantization.fake_quant_with_min_max_args(x, -1.3, 2.1), [X]),
        "FakeQuantWithMinMaxVars": (lambda x, a, b: tf.quantization.fake_quant_with_min_max_vars(x, a, b, 4, True), [X, np.float32(-0.9), np.float32(1.1)]),
        "FakeQuantPerChannel": (lambda x: tf.quantization.fake_quant_with_min_max_vars_per_channel(x, np.float32([-1, -2, 0, -3]), np.float32([1, 2, 3, 0.5])), [X]),
        "Roll": (lambda x: tf.roll(x, [1, -2], [0, 2]), [X]), "ReverseSequence": (lambda x, n: tf.reverse_sequence(x, n, 1, 0), [f(3, 4, 2), np.int32([2, 0, 4])]),
        "ReverseSequenceTime": (lambda x, n: tf.reverse_sequence(x, n, 0, 2), [f(4, 2, 3), np.int32([2, 0, 4])]),
        "TensorScatterAdd": (lambda x, n, u: tf.tensor_scatter_nd_add(x, n, u), [f(5, 2), np.int32([[4], [1], [4]]), f(3, 2)]),
        "TensorScatterSub": (lambda x, n, u: tf.tensor_scatter_nd_sub(x, n, u), [f(5, 2), np.int32([[4], [1], [4]]), f(3, 2)]),
        "BroadcastArgs": (lambda x, y: tf.broadcast_dynamic_shape(tf.shape(x), tf.shape(y)), [X, f(3, 1)]),
        "UniqueV2": (lambda x: raw.UniqueV2(x=x, axis=np.zeros(0, np.int32))[0], [np.int32([3, 1, 3, 2, 1])]),
        "Conv3DSame": (lambda x: tf.nn.conv3d(x, KERNEL3, [1, 2, 1, 2, 1], "SAME"), [VOLUME]),
        "Conv3DValid": (lambda x: tf.nn.conv3d(x, KERNEL3[:2], [1, 1, 1, 1, 1], "VALID"), [VOLUME]),
        "MaxPool3D": (lambda x: tf.nn.max_pool3d(x, [3, 2, 2], [2, 2, 2], "SAME"), [VOLUME]),
        "AvgPool3D": (lambda x: tf.nn.avg_pool3d(x, [3, 2, 3], [2, 2, 1], "SAME"), [VOLUME]),
        "AvgPool3DValid": (lambda x: tf.nn.avg_pool3d(x, [2, 2, 2], [2, 2, 2], "VALID"), [VOLUME]),
        **{f"Einsum{n}": (lambda *a, e=equation: tf.einsum(e, *a), arrays) for n, (equation, arrays) in enumerate([
            ("ab,bc->ac", [f(3, 4), f(4, 5)]), ("abc,cde->abde", [f(2, 3, 4), f(4, 2, 5)]), ("aecd,abcd->acbe", [f(2, 3, 2, 4), f(2, 5, 2, 4)]),
            ("acbe,aecd->abcd", [f(2, 2, 5, 3), f(2, 3, 2, 4)]), ("abcd,cde->abe", [f(2, 3, 2, 4), f(2, 4, 5)]), ("...ij,...jk->...ik", [f(2, 3, 4), f(2, 4, 2)]),
            ("ab->ba", [f(3, 4)]), ("ab,ab->a", [f(3, 4), f(3, 4)]), ("i,j->ij", [f(3), f(4)]), ("abc->b", [X]), ("bhid,bhjd->bhij", [f(2, 2, 3, 4), f(2, 2, 5, 4)])])},
        "Case": (lambda n, x: tf.switch_case(n, [lambda: x + 1, lambda: x * 2, lambda: -x]), [np.int32(1), X]),
        "CaseLast": (lambda n, x: tf.switch_case(n, [lambda: x + 1, lambda: x * 2, lambda: -x]), [np.int32(7), X]),
        "TensorListGrows": (lambda x: growing_list(x), [X]),
    }


def counting_cases():
    n, table = i(0, 8, 3, 7), np.int32([2, 0, 1, 0, 2, 1])
    classes = f(5, 4)
    classes[1, 2] = np.nan
    return {
        "Bincount": (lambda n: raw.Bincount(arr=n, size=5, weights=np.zeros(0, np.float32)), [n[0]]),
        "BincountRows": (lambda n, w: tf.math.bincount(n, w, minlength=6, maxlength=6, axis=-1), [n, f(3, 7)]),
        "BincountBinary": (lambda n: tf.math.bincount(n, minlength=4, maxlength=4, axis=-1, binary_output=True), [n]),
        "Bucketize": (lambda x: raw.Bucketize(input=x, boundaries=[-1.0, 0.0, 1.5]), [np.float32([[-2, -1, 0.1], [1.5, 9, -0.5]])]),
        "Cross": (lambda x, y: tf.linalg.cross(x, y), [f(4, 3), f(4, 3)]),
        "Cumprod": (lambda x: tf.math.cumprod(x, 1), [f(3, 7, 2)]),
        "CumprodReversed": (lambda x: tf.math.cumprod(x, -1, exclusive=True, reverse=True), [i(1, 4, 2, 6)]),
        "DynamicPartition": (lambda x, n: tf.concat(tf.dynamic_partition(x, n, 4), 0), [f(6, 2), table]),
        "DynamicStitchOpen": (lambda x, n: tf.dynamic_stitch(tf.dynamic_partition(tf.range(6), n, 3), tf.dynamic_partition(x, n, 3)), [f(6, 2), table]),
        "EmbeddingParts": (lambda n: tf1.nn.embedding_lookup([tf.constant(f(3, 2)), tf.constant(f(3, 2))], n, partition_strategy="div"), [i(0, 6, 5)]),
        "InTopKV2": (lambda x, n: tf.math.in_top_k(n, x, 2), [classes, np.int32([3, 0, 7, 1, 2])]),
        "InTopK": (lambda x, n: raw.InTopK(predictions=x, targets=n, k=3), [classes, np.int32([3, 0, -1, 1, 2])]),
        "LowerBound": (lambda x: tf.searchsorted(np.float32([0, 1, 1, 3]), x), [np.float32([1, -1, 3, 9, 0.5])]),
        "UpperBound": (lambda x: tf.searchsorted(np.float32([0, 1, 1, 3]), x, "right"), [np.float32([1, -1, 3, 9, 0.5])]),
        "Print": (lambda x: tf1.Print(2 * x, [x[0]], first_n=0), [X]),
        "SplitOpen": (lambda x, n: tf.split(x[:, :n], 2, 1)[1] + tf.split(tf.ensure_shape(x[:, :n], [2, 4, 3]), 2, 1)[1], [f(2, 5, 3), np.int32(4)]),
        "TensorScatterMax": (lambda x, n, u: tf.tensor_scatter_nd_max(x, n, u), [f(5, 2), np.int32([[4], [1], [4]]), f(3, 2)]),
        "TensorScatterMin": (lambda x, n, u: tf.tensor_scatter_nd_min(x, n, u), [f(5, 2), np.int32([[4], [1], [4]]), f(3, 2)]),
        "UniqueWithCounts": (lambda n: tf.unique_with_counts(n)[2], [np.int32([3, 1, 3, 2, 1, 3])]),
        "SizesOfAShape": (lambda x: tf.zeros([tf.shape(x)[1] * tf.shape(x)[2], 2]) + tf.reduce_sum(x), [X]),
    }


def colour_cases():
    colours = np.round(4 * R.uniform(size=(2, 5, 6, 3))).astype(np.float32) / 4  # with greys, blacks and equal channels
    kernels = ("lanczos1", "lanczos3", "lanczos5", "gaussian", "box", "triangle", "keyscubic", "mitchellcubic")
    quantise = {
        f"QuantizeAndDequantize{bits}{'Signed' * signed}{'Given' * given}{mode}": (
            lambda x, b=bits, s=signed, g=given, m=mode: raw.QuantizeAndDequantizeV2(
                input=x, input_min=-1.0, input_max=1.5, signed_input=s, num_bits=b, range_given=g, round_mode=m, narrow_range=g), [1.3 * X])
        for bits, signed, given, mode in ((8, True, True, "HALF_UP"), (4, True, False, "HALF_TO_EVEN"), (5, False, True, "HALF_TO_EVEN"),
                                          (8, False, False, "HALF_UP"), (3, True, True, "HALF_TO_EVEN"))}  # fmt: skip
    bounds = np.float32([-1, -2, -0.5, -3]), np.float32([1, 1, 2, 0.5])
    return {
        **quantise,
        "QuantizeAndDequantizeAxis": (lambda x: raw.QuantizeAndDequantizeV4(input=x, input_min=bounds[0], input_max=bounds[1], range_given=True, axis=2), [X]),
        "QuantizeAndDequantizeV3": (lambda x: raw.QuantizeAndDequantizeV3(input=x, input_min=-1.0, input_max=1.0, num_bits=6), [X]),
        "RGBToHSV": (lambda x: tf.image.rgb_to_hsv(x), [colours]), "HSVToRGB": (lambda x: tf.image.hsv_to_rgb(x), [colours]),
        "AdjustHue": (lambda x: tf.image.adjust_hue(x, -0.4), [colours]), "AdjustSaturation": (lambda x: tf.image.adjust_saturation(x, 0.3), [colours]),
        "AdjustContrastv2": (lambda x: tf.image.adjust_contrast(x, 1.7), [colours]),
        "ResizeArea": (lambda x: raw.ResizeArea(images=x, size=[4, 11]), [IMAGE]), "ResizeAreaCorners": (lambda x: raw.ResizeArea(images=x, size=[5, 3], align_corners=True), [IMAGE]),
        **{f"ScaleAndTranslate{name}{'Antialias' * soft}": (lambda x, k=name, a=soft: raw.ScaleAndTranslate(
            images=x, size=[5, 9], scale=[0.7, 1.3], translation=[0.5, -1.5], kernel_type=k, antialias=a), [IMAGE]) for name in kernels for soft in (True, False)},
        "DepthToSpaceOpen": (lambda x, n: tf.nn.depth_to_space(x[:, :n, :n], 2), [f(2, 5, 5, 12), np.int32(4)]),
        "SpaceToDepthOpen": (lambda x, n: tf.nn.space_to_depth(x[:, :n, :n], 2), [f(2, 5, 5, 3), np.int32(4)]),
        "SpaceToBatchOpen": (lambda x, n: tf.space_to_batch(x[:, :n, :n], [2, 3], [[1, 1], [0, 2]]), [f(2, 5, 5, 3), np.int32(4)]),
        "BatchToSpaceOpen": (lambda x, n: tf.batch_to_space(x[:, :n, :n], [2, 3], [[1, 0], [0, 2]]), [f(12, 5, 5, 3), np.int32(4)]),
        "AtrousOpen": (lambda x, n: tf.nn.atrous_conv2d(x[:, :n, :n], KERNEL, 2, "SAME"), [IMAGE, np.int32(7)]),
        "VolumeNorm": (lambda x: raw.FusedBatchNormV3(x=x, scale=np.float32([1, 2, 3]), offset=np.float32([0, 1, 2]), mean=np.float32([1, 0, 2]),
                                                      variance=np.float32([1, 2, 0.5]), is_training=False, data_format="NDHWC")[0], [VOLUME]),
        "Conv3DTransposed": (lambda x: tf.nn.conv3d_transpose(x, f(2, 3, 3, 4, 3), tf.stack([tf.shape(x)[0], 2 * tf.shape(x)[1], 12, 14, 4]), 2, "SAME"), [VOLUME]),
    }


def growing_list(x):
    array = tf.TensorArray(tf.float32, 0, dynamic_size=True, element_shape=[4])
    return tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a.write(i, x[1, i] * 2)), [0, array])[1].stack()


CASES.update(image_cases())
CASES.update(more_cases())
CASES.update(counting_cases())
CASES.update(colour_cases())



def main():
    root = sys.argv[1]
    if os.path.exists(os.path.join(root, "done")):
        return
    for name, (function, arrays) in (CASES | training_ops.CASES | numeric_ops.CASES).items():
        fixed = (training_ops.FIXED | numeric_ops.FIXED).get(name, ())
        for batch in ("static", "free"):  # free: the first dim of each input is only known in the run
            if (name, batch) == ("SqueezeAll", "free"):
                continue  # its rank would be, too
            folder = os.path.join(root, f"{name}.{batch}")
            with tf1.Graph().as_default() as graph:
                shapes = [(None,) + a.shape[1:] if batch == "free" and a.ndim and n not in fixed else a.shape
                          for n, a in enumerate(map(np.asarray, arrays))]
                inputs = [tf1.placeholder(np.asarray(a).dtype, s, f"x{n}") for n, (a, s) in enumerate(zip(arrays, shapes))]
                tf.identity(function(*inputs), name="y")
                with tf1.Session(graph=graph) as session:
                    answer = session.run("y:0", {x: a for x, a in zip(inputs, arrays)})
                tf1.train.write_graph(graph.as_graph_def(), folder, "graph.pb", as_text=False)
            save_case(folder, {f"x{n}": a for n, a in enumerate(arrays)}, {"y": answer})
    open(os.path.join(root, "done"), "w").close()


main()
