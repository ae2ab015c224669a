"""Cases of make_ops.py for the ops of training: gradients, updates of variables, random numbers."""
import numpy as np
import tensorflow as tf

raw = tf.raw_ops
R = np.random.default_rng(12)


def f(*shape):
    return R.normal(size=shape).astype(np.float32)


def positive(*shape):
    return np.abs(f(*shape)) + np.float32(0.5)


def flat(*results):
    """Several results as one."""
    return tf.concat([tf.reshape(tf.cast(each, tf.float32), [-1]) for each in results], 0)


def conv(name, image, kernel, **more):
    """The two gradients of a convolution whose image sizes are computed, as they are in scripts."""
    op, of_kernel = getattr(raw, name + "BackpropInput"), getattr(raw, name + "BackpropFilter")
    forward = getattr(raw, name)(input=image, filter=kernel, **more)
    dy = (forward.numpy() if hasattr(forward, "numpy") else forward) * np.float32(0.5)
    return {
        "Input": (lambda x, k, d: op(input_sizes=tf.shape(x), filter=k, out_backprop=d, **more), [image, kernel, dy]),
        "Filter": (lambda x, k, d: of_kernel(input=x, filter_sizes=tf.shape(k), out_backprop=d, **more), [image, kernel, dy]),
    }


IMAGE, KERNEL = f(2, 9, 8, 4), f(3, 3, 4, 6)
X, DY = f(2, 3, 4), f(2, 3, 4)
SAME = dict(strides=[1, 2, 2, 1], padding="SAME")
CONVOLUTIONS = {
    "Conv2DSame": conv("Conv2D", IMAGE, KERNEL, **SAME),
    "Conv2DValid": conv("Conv2D", IMAGE, KERNEL, strides=[1, 1, 2, 1], padding="VALID"),
    "Conv2DExplicit": conv("Conv2D", IMAGE, KERNEL, strides=[1, 2, 1, 1], padding="EXPLICIT", explicit_paddings=[0, 0, 1, 2, 0, 1, 0, 0]),
    "Conv2DPointwise": conv("Conv2D", IMAGE, f(1, 1, 4, 3), **SAME),
    "DepthwiseConv2dNative": conv("DepthwiseConv2dNative", IMAGE, f(3, 3, 4, 2), **SAME),
}
POOL = dict(ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1])
POOLED, POOLED_VALID = f(2, 5, 4, 4), f(2, 4, 3, 4)
MAXIMA = raw.MaxPool(input=IMAGE, padding="SAME", **POOL).numpy()
SCALE, OFFSET, MEAN, VARIANCE = f(4), f(4), f(4), positive(4)


def batch_norm(**more):
    return lambda x, s, o, m, v: flat(*raw.FusedBatchNormV3(x=x, scale=s, offset=o, mean=m, variance=v, epsilon=1e-3, is_training=True, **more)[:5])


def batch_norm_gradient(training, **more):
    return lambda d, x, s, m, v: flat(*raw.FusedBatchNormGradV3(
        y_backprop=d, x=x, scale=s, reserve_space_1=m, reserve_space_2=v, reserve_space_3=tf.constant([], tf.float32),
        epsilon=1e-3, is_training=training, **more)[:3])


def fused(op, inputs, fused_ops=None, **attributes):
    """An op that TensorFlow's graph optimiser makes; it has no function in Python."""
    from tensorflow.python.framework import op_def_library, op_def_registry

    if fused_ops:
        attributes["fused_ops"] = fused_ops
    definition = op_def_registry.get(op)
    names = [each.name for each in definition.input_arg]
    wanted = {each.name for each in definition.attr}
    defaults = {"transpose_a": False, "transpose_b": False, "epsilon": 1e-3, "leakyrelu_alpha": 0.2, "data_format": "NHWC",
                "dilations": [1, 1, 1, 1], "explicit_paddings": [], "use_cudnn_on_gpu": True, "filter_format": "HWIO"}
    if "num_host_args" in wanted:
        defaults["num_args"] = len(inputs[2])
    attributes = {name: value for name, value in defaults.items() if name in wanted} | attributes
    return op_def_library.apply_op(op, name=op[1:], **dict(zip(names, inputs)), **attributes)


def volumes(name, kernel, **more):
    """The two gradients of a 3-D convolution."""
    by_input, by_kernel = raw.Conv3DBackpropInputV2, raw.Conv3DBackpropFilterV2
    forward = raw.Conv3D(input=VOLUME, filter=kernel, **more)
    dy = (forward.numpy() if hasattr(forward, "numpy") else forward) * np.float32(0.5)
    return {
        f"Conv3DBackpropInput{name}": (lambda x, k, d: by_input(input_sizes=tf.shape(x), filter=k, out_backprop=d, **more), [VOLUME, kernel, dy]),
        f"Conv3DBackpropFilter{name}": (lambda x, k, d: by_kernel(input=x, filter_sizes=tf.shape(k), out_backprop=d, **more), [VOLUME, kernel, dy]),
    }


def pooled(kind, volume, ksize, strides, padding):
    """The gradient of 3-D pooling."""
    more = dict(ksize=[1, *ksize, 1], strides=[1, *strides, 1], padding=padding)
    y = getattr(raw, kind + "3D")(input=volume, **more).numpy()
    dy = f(*y.shape)
    if kind == "AvgPool":
        return lambda x, d: raw.AvgPool3DGrad(orig_input_shape=tf.shape(x), grad=d, **more), [volume, dy]
    return lambda x, y, d: raw.MaxPool3DGrad(orig_input=x, orig_output=y, grad=d, **more), [volume, y, dy]


VOLUME = f(2, 5, 6, 7, 3)
STRIDES = [1, 2, 1, 2, 1]
VOLUMES = {
    **volumes("Same", f(3, 2, 3, 3, 4), strides=STRIDES, padding="SAME"),
    **volumes("Valid", f(2, 2, 3, 3, 4), strides=STRIDES, padding="VALID"),
    **volumes("Dense", f(3, 1, 1, 3, 2), strides=[1, 1, 1, 1, 1], padding="SAME"),
}
POOLED_VOLUMES = {
    "AvgPool3DGrad": pooled("AvgPool", VOLUME, (3, 2, 3), (2, 2, 1), "SAME"),
    "AvgPool3DGradValid": pooled("AvgPool", VOLUME, (2, 2, 2), (3, 2, 2), "VALID"),
    "MaxPool3DGrad": pooled("MaxPool", VOLUME, (3, 2, 2), (2, 2, 2), "SAME"),
    "MaxPool3DGradOverlapping": pooled("MaxPool", VOLUME, (2, 3, 3), (1, 2, 1), "VALID"),
    "MaxPool3DGradTies": pooled("MaxPool", np.maximum(VOLUME, 0), (3, 3, 3), (2, 2, 2), "SAME"),
}

def unknown_sizes(x):
    """What dropout's gradient asks: the sizes of both are only known in the run, and equal."""
    kept = tf.where(tf.random.stateless_uniform(tf.shape(x), [1, 2]) > 2.0, x, tf.exp(x) * 0.5)
    return tf.reduce_sum(kept, raw.BroadcastGradientArgs(s0=tf.shape(x), s1=tf.shape(kept))[0])


LABELS = np.abs(f(5, 7))
LABELS /= LABELS.sum(1, keepdims=True)

CASES = {
    **{name + "Backprop" + which: case for name, both in CONVOLUTIONS.items() for which, case in both.items()},
    **VOLUMES,
    **POOLED_VOLUMES,
    **{"CTCLoss" + which: (lambda x, p, v, n, more=more: flat(*raw.CTCLoss(inputs=x, labels_indices=p, labels_values=v, sequence_length=n, **more)),
                           [2 * f(7, 2, 5), np.int64([[0, 0], [0, 1], [0, 2], [1, 0]]), np.int32([1, 1, 3, 0]), np.int32([7, 5])])
       for which, more in (("", {}), ("Separate", {"ctc_merge_repeated": False}), ("Collapsed", {"preprocess_collapse_repeated": True}))},
    "MaxPoolGrad": (lambda x, y, d: raw.MaxPoolGrad(orig_input=x, orig_output=y, grad=d, padding="SAME", **POOL), [IMAGE, MAXIMA, POOLED]),
    "MaxPoolGradV2": (lambda x, y, d: raw.MaxPoolGradV2(orig_input=x, orig_output=y, grad=d, padding="SAME", **POOL), [IMAGE, MAXIMA, POOLED]),
    "AvgPoolGrad": (lambda x, d: raw.AvgPoolGrad(orig_input_shape=tf.shape(x), grad=d, padding="SAME", **POOL), [IMAGE, POOLED]),
    "AvgPoolGradValid": (lambda x, d: raw.AvgPoolGrad(orig_input_shape=tf.shape(x), grad=d, padding="VALID", **POOL), [IMAGE, POOLED_VALID]),
    "BatchNormTraining": (batch_norm(), [IMAGE, SCALE, OFFSET, MEAN, VARIANCE]),
    "BatchNormTrainingBlended": (batch_norm(exponential_avg_factor=0.25), [IMAGE, SCALE, OFFSET, MEAN, VARIANCE]),
    "FusedBatchNormGradV3": (batch_norm_gradient(True), [f(2, 9, 8, 4), IMAGE, SCALE, MEAN, VARIANCE]),
    "FusedBatchNormGradInference": (batch_norm_gradient(False), [f(2, 9, 8, 4), IMAGE, SCALE, MEAN, VARIANCE]),
    "BatchNormTrainingVolume": (batch_norm(data_format="NDHWC"), [f(2, 3, 4, 5, 4), SCALE, OFFSET, MEAN, VARIANCE]),
    **{f"FusedBatchNormGradVolume{training}": (batch_norm_gradient(training, data_format="NDHWC"), [f(2, 3, 4, 5, 4), f(2, 3, 4, 5, 4), SCALE, MEAN, VARIANCE])
       for training in (True, False)},
    "SoftmaxCrossEntropy": (lambda x, y: flat(*raw.SoftmaxCrossEntropyWithLogits(features=x, labels=y)), [3 * f(5, 7), LABELS]),
    "SoftmaxCrossEntropyBroadcast": (lambda x, y: flat(*raw.SoftmaxCrossEntropyWithLogits(features=x, labels=y)), [f(5, 7), LABELS[:1]]),
    "SparseSoftmaxCrossEntropy": (lambda x, y: flat(*raw.SparseSoftmaxCrossEntropyWithLogits(features=x, labels=y)), [3 * f(5, 7), np.int32([0, 6, 3, 3, 1])]),
    "BiasAddGrad": (lambda d: raw.BiasAddGrad(out_backprop=d), [IMAGE]),
    "BiasAddGradNchw": (lambda d: raw.BiasAddGrad(out_backprop=d, data_format="NCHW"), [IMAGE]),
    **{name: ((lambda op: lambda d, x: op(gradients=d, features=x))(getattr(raw, name)), [DY, 4 * X])
       for name in ("ReluGrad", "Relu6Grad", "LeakyReluGrad", "SoftplusGrad", "SoftsignGrad")},
    **{name: ((lambda op: lambda d, y: op(gradients=d, outputs=y))(getattr(raw, name)), [DY, X]) for name in ("EluGrad", "SeluGrad")},
    **{name: ((lambda op: lambda y, d: op(y=y, dy=d))(getattr(raw, name)), [positive(2, 3, 4), DY])
       for name in ("TanhGrad", "SigmoidGrad", "RsqrtGrad", "SqrtGrad", "ReciprocalGrad", "InvGrad")},
    "L2Loss": (lambda x: raw.L2Loss(t=x), [X]),
    "BroadcastGradientArgs": (lambda x, y: tf.reduce_sum(x * y, raw.BroadcastGradientArgs(s0=tf.shape(x), s1=tf.shape(y))[1]), [X, f(3, 1)]),
    "BroadcastGradientArgsLike": (lambda x, n: unknown_sizes(tf.reshape(x, n)), [X, np.int32([2, 12])]),
    "InvertPermutation": (lambda x: tf.transpose(x, tf.math.invert_permutation([2, 0, 1])), [X]),
    "ConcatOffset": (lambda x, y: tf.slice(tf.concat([x, y], 1), raw.ConcatOffset(concat_dim=1, shape=[tf.shape(x), tf.shape(y)])[1], [-1, 2, 4]), [X, f(2, 2, 4)]),
    "MirrorPadGradReflect": (lambda d: raw.MirrorPadGrad(input=d, paddings=[[0, 0], [1, 2], [2, 3]], mode="REFLECT"), [f(2, 7, 9)]),
    "MirrorPadGradSymmetric": (lambda d: raw.MirrorPadGrad(input=d, paddings=[[0, 0], [3, 2], [0, 4]], mode="SYMMETRIC"), [f(2, 8, 9)]),
    "ResizeBilinearGrad": (lambda d, x: raw.ResizeBilinearGrad(grads=d, original_image=x), [f(2, 9, 5, 3), f(2, 4, 3, 3)]),
    "ResizeBilinearGradCorners": (lambda d, x: raw.ResizeBilinearGrad(grads=d, original_image=x, align_corners=True), [f(2, 9, 5, 3), f(2, 4, 7, 3)]),
    "ResizeBilinearGradCentres": (lambda d, x: raw.ResizeBilinearGrad(grads=d, original_image=x, half_pixel_centers=True), [f(2, 9, 5, 3), f(2, 4, 7, 3)]),
    "ResizeNearestNeighborGrad": (lambda d: raw.ResizeNearestNeighborGrad(grads=d, size=[4, 3]), [f(2, 9, 5, 3)]),
    "ResizeNearestNeighborGradOfRun": (lambda d, size: raw.ResizeNearestNeighborGrad(grads=d, size=size), [f(2, 9, 5, 3), np.int32([4, 3])]),
    "ResizeNearestNeighborGradCentres": (lambda d: raw.ResizeNearestNeighborGrad(grads=d, size=[4, 3], half_pixel_centers=True), [f(2, 9, 5, 3)]),
    "LRN": (lambda x: raw.LRN(input=x, depth_radius=2, bias=1.5, alpha=0.3, beta=0.6), [f(2, 3, 4, 7)]),
    "LRNGrad": (lambda d, x, y: raw.LRNGrad(input_grads=d, input_image=x, output_image=y, depth_radius=2, bias=1.5, alpha=0.3, beta=0.6), [f(2, 3, 4, 7), f(2, 3, 4, 7), f(2, 3, 4, 7)]),
    **{f"StridedSliceGrad{n}": ((lambda cut: lambda x, k: tf.gradients(cut(x), x, k * cut(x))[0])(cut), [f(6, 7, 5), np.float32(3)]) for n, cut in enumerate([
        lambda x: x[0, 1:, ::-2], lambda x: x[..., tf.newaxis, 1:3], lambda x: x[1:4, -1, ::3], lambda x: x[5:1:-3, 1:1], lambda x: x[:, 2:6:2, tf.newaxis]])},
    **{"UnsortedSegment" + name: ((lambda op: lambda x, n: op(data=x, segment_ids=n, num_segments=4))(getattr(raw, "UnsortedSegment" + name)),
                                  [f(6, 3), np.int32([2, 0, -1, 2, 2, 0])]) for name in ("Sum", "Prod", "Max", "Min")},
    **{"Segment" + name: ((lambda op: lambda x, n: op(data=x, segment_ids=n))(getattr(raw, "Segment" + name)),
                          [f(6, 3), np.int32([0, 0, 2, 2, 2, 4])]) for name in ("Sum", "Mean", "Prod", "Max", "Min")},
    **{"SparseSegment" + name: ((lambda op: lambda x, i, n: op(data=x, indices=i, segment_ids=n))(getattr(raw, "SparseSegment" + name)),
                                [f(6, 3), np.int32([5, 0, 5, 2, 1]), np.int32([0, 0, 2, 2, 2])]) for name in ("Sum", "Mean", "SqrtN")},
    **{"SparseSegment" + name + "Grad": ((lambda op: lambda d, i, n: op(grad=d, indices=i, segment_ids=n, output_dim0=6))(getattr(raw, "SparseSegment" + name + "Grad")),
                                         [f(3, 4), np.int32([5, 0, 5, 2, 1]), np.int32([0, 0, 2, 2, 2])]) for name in ("Sum", "Mean", "SqrtN")},
    **{f"SparseSegment{name}GradV2{kind}": ((lambda op, part, to: lambda d, i, n: op(grad=d, indices=tf.cast(i, to), segment_ids=n, dense_output_dim0=6)[part])(
        getattr(raw, f"SparseSegment{name}GradV2"), part, to), [f(3, 4), np.int32([5, 0, 5, 2, 1]), np.int32([0, 0, 2, 2, 2])])
       for name in ("Sum", "Mean", "SqrtN") for kind, part, to in (("", 0, tf.int32), ("Wide", 0, tf.int64), ("Rows", 1, tf.int64))},
    **{"SparseTensorDenseMatMul" + which: ((lambda more: lambda i, v, b: raw.SparseTensorDenseMatMul(
        a_indices=i, a_values=v, a_shape=tf.constant([3, 4], tf.int64), b=b, **more))(more), [np.int64([[0, 1], [2, 0], [2, 3]]), f(3), b])
       for which, more, b in (("", {}, f(4, 5)), ("AdjointA", {"adjoint_a": True}, f(3, 5)), ("AdjointB", {"adjoint_b": True}, f(5, 4)))},
    "SparseToDense": (lambda i, v: raw.SparseToDense(sparse_indices=i, output_shape=[3, 4], sparse_values=v, default_value=0.5),
                      [np.int64([[0, 1], [1, 0], [2, 3]]), f(3)]),
    "SparseToDenseVector": (lambda i, v: raw.SparseToDense(sparse_indices=i, output_shape=[7], sparse_values=v, default_value=0.5), [np.int64([1, 4]), np.float32(3)]),
    "CheckNumerics": (lambda x: raw.CheckNumerics(tensor=x, message="loss") + 0, [X]),
    "DynamicStitch": (lambda x, y: tf.dynamic_stitch([[0, 3], [2, 1, 3]], [x, y]), [f(2, 3), f(3, 3)]),
    "SumGradient": (lambda x: tf.gradients(tf.reduce_sum(x, [1]) ** 2, x)[0], [X]),
    "FusedMatMul": (lambda x, y, b: fused("_FusedMatMul", [x, y, [b]], ["BiasAdd", "Relu"]), [f(4, 5), f(5, 3), f(3)]),
    "FusedConv2DBiasElu": (lambda x, k, b: fused("_FusedConv2D", [x, k, [b], []], ["BiasAdd", "Elu"], **SAME), [IMAGE, KERNEL, f(6)]),
    "FusedConv2DNorm": (lambda x, k, s, o, m, v: fused("_FusedConv2D", [x, k, [s, o, m, v], []], ["FusedBatchNorm", "Relu6"], **SAME),
                        [IMAGE, KERNEL, f(6), f(6), f(6), positive(6)]),
    "FusedConv3D": (lambda x, k, b: fused("_FusedConv3D", [x, k, [b]], ["BiasAdd", "Relu"], strides=[1] * 5, dilations=[1] * 5,
                                            data_format="NDHWC", padding="SAME", padding_list=[]), [f(2, 5, 6, 7, 3), f(3, 2, 3, 3, 4), f(4)]),
    "FusedBatchMatMul": (lambda x, y, s, b: fused("_MklFusedBatchMatMulV2", [x, y, [s, b]], ["Mul", "Add"], adj_x=False, adj_y=True),
                         [f(2, 3, 4, 5), f(2, 3, 6, 5), np.float32(0.3), f(2, 1, 4, 6)]),
    "FusedSwish": (lambda x: fused("_MklSwish", [x]), [X]), "FusedMish": (lambda x: fused("_MklFusedMish", [x]), [X]),
    "FusedLayerNorm": (lambda x, s, o: fused("_MklLayerNorm", [x, s, o], epsilon=0.01), [f(2, 4, 5), f(5), f(5)]),
    "FusedInstanceNorm": (lambda x, s, o: fused("_MklFusedInstanceNorm", [x, s, o], ["LeakyRelu"], reduction_axes=[1, 2]), [f(2, 4, 5, 3), f(3), f(3)]),
    "UnaryOpsComposition": (lambda x: fused("_UnaryOpsComposition", [x], op_names=["Tanh", "Abs", "Sqrt"]), [X]),
}

# Inputs whose first dim is no batch: kernels, what broadcasts, what an index picks from.
FIXED = {
    **{name + "Backprop" + which: (1,) for name, both in CONVOLUTIONS.items() for which in both},
    **{name: (1,) for name in VOLUMES},
    **{"CTCLoss" + which: (0, 1, 2) for which in ("", "Separate", "Collapsed")},
    "FusedConv3D": (1,),
    "SoftmaxCrossEntropyBroadcast": (1,),
    "ResizeNearestNeighborGradOfRun": (1,),
    "BroadcastGradientArgs": (1,),
    "BroadcastGradientArgsLike": (1,),
    "SparseToDenseVector": (0,),
    **{"SparseTensorDenseMatMul" + which: (2,) for which in ("", "AdjointA", "AdjointB")},
    **{f"StridedSliceGrad{n}": (0,) for n in (0, 2, 3)},
}
