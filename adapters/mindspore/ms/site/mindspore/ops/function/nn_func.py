"""Functions of networks."""

from cairn.ms import core
from cairn.ms.numerics import basic, images, losses, norms, random, reductions
from mindspore._checkparam import Validator, sizes
from mindspore.common.tensor import Tensor
from mindspore.ops import operations as P
from mindspore.ops.operations._form import tensor

_INSTANCES = {
    "relu": "ReLU", "relu6": "ReLU6", "sigmoid": "Sigmoid", "tanh": "Tanh", "hswish": "HSwish", "hardswish": "HSwish",
    "hsigmoid": "HSigmoid", "hardsigmoid": "HSigmoid", "selu": "SeLU", "silu": "SiLU", "softsign": "Softsign", "mish": "Mish",
    "fast_gelu": "FastGeLU", "prelu": "PReLU", "softplus": "Softplus", "bias_add": "BiasAdd", "l2_loss": "L2Loss",
    "sigmoid_cross_entropy_with_logits": "SigmoidCrossEntropyWithLogits",
}  # fmt: skip
for _name, _primitive in _INSTANCES.items():
    globals()[_name] = getattr(P, _primitive)()


def gelu(input_x, approximate="none"):
    """x * P(normal < x), by tanh if approximate is "tanh"."""
    if approximate not in ("none", "tanh"):
        raise ValueError(f"For ops.gelu, approximate must be 'none' or 'tanh', but got {approximate}.")
    return core.gelu(tensor(input_x, "GeLU", "float"), approximate=approximate == "tanh")


def elu(input_x, alpha=1.0):
    """x above 0, else exp(x) - 1."""
    return P.Elu(alpha)(input_x)


def celu(x, alpha=1.0):
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1))"""
    return P.CeLU(alpha)(x)


def leaky_relu(x, alpha=0.2):
    """x above 0, else alpha * x."""
    return core.leaky_relu(x, alpha=float(alpha))


def hardshrink(x, lambd=0.5):
    """x, 0 where |x| <= lambd."""
    return P.HShrink(lambd)(x)


def soft_shrink(x, lambd=0.5):
    """x moved by lambd towards 0."""
    return P.SoftShrink(lambd)(x)


softshrink = soft_shrink


def log_sigmoid(x):
    """log(sigmoid(x))"""
    return basic.log_sigmoid(x)


logsigmoid = log_sigmoid


def glu(x, axis=-1):
    """The first half times sigmoid of the second."""
    half, rest = divmod(x.shape[axis], 2)
    if rest:
        raise ValueError(f"For 'glu', the size of x along the axis {axis} must be even, but got {x.shape[axis]}.")
    a, b = basic.split(x, axis, [half, half])
    return core.mul(a, core.sigmoid(b))


def softmax(x, axis=-1):
    """Softmax along an axis."""
    return P.Softmax(axis)(x)


def softmin(x, axis=-1):
    """Softmax of -x."""
    return P.Softmax(axis)(core.neg(x))


def log_softmax(logits, axis=-1):
    """Logarithm of softmax."""
    return P.LogSoftmax(axis)(logits)


def hardtanh(x, min_val=-1.0, max_val=1.0):
    """x inside of bounds."""
    return core.clip(x, low=float(min_val), high=float(max_val))


def threshold(x, thr, value):
    """x above thr, else value."""
    return core.select(core.greater(x, basic.number(thr, x)), x, basic.number(value, x))


def _conv(axes, primitive):
    def function(inputs, weight, pad_mode="valid", padding=0, stride=1, dilation=1, group=1):
        pad = (
            padding
            if isinstance(padding, int) or len(padding) == 2 * axes
            else tuple(p for p in padding for _ in (0, 1))
        )
        return primitive(
            weight.shape[0],
            tuple(weight.shape[2:]),
            pad_mode=pad_mode,
            pad=pad,
            stride=stride,
            dilation=dilation,
            group=group,
        )(inputs, weight)

    function.__doc__ = f"{axes}-D convolution of NC... tensors."
    return function


conv2d, conv3d = _conv(2, P.Conv2D), _conv(3, P.Conv3D)


def _pool(kind, axes):
    def function(x, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
        name = f"{kind}_pool{axes}d"
        window = sizes(kernel_size, axes, "kernel_size", name)
        step = window if stride is None else sizes(stride, axes, "stride", name)
        pads = [each for each in sizes(padding, axes, "padding", name, True) for _ in (0, 1)]
        options = {"ceil_mode": ceil_mode, **({"count_padding": count_include_pad} if kind == "avg" else {})}
        if axes > 1:
            return images.pool(kind, x, window, step, "pad", "NCHW", pads, **options)
        y = images.pool(kind, basic.expand(x, 2), (1, *window), (1, *step), "pad", "NCHW", [0, 0, *pads], **options)
        return reductions.squeezed(y, 2)

    function.__doc__ = f"{kind} pool over {axes} axes."
    return function


avg_pool1d, _avg_pool2d, avg_pool3d = (_pool("avg", axes) for axes in (1, 2, 3))
max_pool1d, max_pool2d, _max_pool3d = (_pool("max", axes) for axes in (1, 2, 3))


def avg_pool2d(x, kernel_size=1, strides=1, pad_mode="valid", data_format="NCHW", **numbers):
    """Means of windows; with stride, padding, ceil_mode or count_include_pad as releases after 1.10 take them."""
    if numbers:
        return _avg_pool2d(x, kernel_size, **numbers)
    return P.AvgPool(kernel_size, strides, pad_mode, data_format)(x)


def max_pool3d(x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """Largest of windows, and their places in a volume with return_indices."""
    if not return_indices and dilation == 1:
        return _max_pool3d(x, kernel_size, stride, padding, ceil_mode)
    made = P.MaxPool3DWithArgmax(kernel_size, kernel_size if stride is None else stride, padding, dilation, ceil_mode)(x)
    return made if return_indices else made[0]


def _adaptive(kind, axes):
    def function(input_x, output_size):
        return images.adaptive_pool(
            kind, input_x, [output_size] * axes if isinstance(output_size, int) else list(output_size)
        )

    return function


adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = (_adaptive("avg", axes) for axes in (1, 2, 3))
adaptive_max_pool1d = _adaptive("max", 1)


def adaptive_max_pool2d(input_x, output_size, return_indices=False):
    """Largest of as many windows as output_size says, and their places in a plane with return_indices."""
    return P.AdaptiveMaxPool2D(output_size, return_indices)(input_x)


def dropout(x, p=0.5, seed0=0, seed1=0):
    """(x with elements dropped with probability p and the rest divided by 1 - p, mask)"""
    return random.of_calls(P.Dropout(1 - p, seed0, seed1), seed0, seed1)(x)


def dropout2d(x, p=0.5):
    """Planes dropped with probability p: (x, mask)."""
    return P.Dropout2D(keep_prob=1 - p)(x)


def dropout3d(x, p=0.5):
    """Volumes dropped with probability p: (x, mask)."""
    return P.Dropout3D(keep_prob=1 - p)(x)


def batch_norm(input_x, running_mean, running_var, weight, bias, training=False, momentum=0.1, eps=1e-5):
    """Normalises each channel; training moves the running statistics."""
    return P.BatchNorm(training, eps, momentum)(input_x, weight, bias, running_mean, running_var)[0]


def layer_norm(input, normalized_shape, weight, bias, eps=1e-5):  # noqa: A002
    """Normalises the last axes."""
    return norms.layer_norm(input, weight, bias, len(input.shape) - len(normalized_shape), eps)


def pad(input_x, paddings):
    """x with zeros around."""
    return images.pad(input_x, [tuple(each) for each in paddings])


def lrn(x, depth_radius=5, bias=1.0, alpha=1.0, beta=0.5, norm_region="ACROSS_CHANNELS"):
    """Local response normalisation."""
    return P.LRN(depth_radius, bias, alpha, beta, norm_region)(x)


def interpolate(x, roi=None, scales=None, sizes=None, coordinate_transformation_mode="align_corners", mode="linear"):
    """Images or rows at another size."""
    size = sizes if sizes is not None else [int(s * f) for s, f in zip(x.shape[2:], scales[2:])]
    corners, half = coordinate_transformation_mode == "align_corners", coordinate_transformation_mode == "half_pixel"
    if len(x.shape) == 3:
        return reductions.squeezed(images.resize(basic.expand(x, 2), (1, size[-1]), "bilinear", corners, half), 2)
    return images.resize(x, size, "bilinear", corners, half)


def resize_bilinear(x, size, align_corners=False, half_pixel_centers=False):
    """NCHW images at another size."""
    return P.ResizeBilinear(size, align_corners, half_pixel_centers)(x)


def resize_nearest_neighbor(input_x, size, align_corners=False):
    """NCHW images at another size."""
    return P.ResizeNearestNeighbor(size, align_corners)(input_x)


def _check_loss(name, inputs, target, weight, ignore_index, reduction, label_smoothing):
    Validator.check_string(reduction, ["none", "mean", "sum"], "reduction", name)
    Validator.check_value_type("ignore_index", ignore_index, [int], name)
    Validator.check_value_type("label_smoothing", label_smoothing, [int, float], name)
    for each, which in ((inputs, "inputs"), (target, "target"), (weight, "weight")):
        if not isinstance(each, Tensor) and (each is not None or which != "weight"):
            raise TypeError(f"For '{name}', the '{which}' must be a Tensor, but got {type(each).__name__}.")


def cross_entropy(inputs, target, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0):
    """Of logits with classes along axis 1, and class numbers or probabilities."""
    _check_loss("cross_entropy", inputs, target, weight, ignore_index, reduction, label_smoothing)
    return losses.cross_entropy(inputs, target, weight, ignore_index, reduction, label_smoothing)


def nll_loss(inputs, target, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0):
    """Of logarithms of probabilities."""
    _check_loss("nll_loss", inputs, target, weight, ignore_index, reduction, label_smoothing)
    return losses.nll_reduced(inputs, target, weight, ignore_index, reduction, label_smoothing)


def binary_cross_entropy(logits, labels, weight=None, reduction="mean"):
    """Of probabilities."""
    return losses.reduced(losses.binary_cross_entropy(logits, labels, weight), reduction)


def binary_cross_entropy_with_logits(logits, label, weight=None, pos_weight=None, reduction="mean"):
    """Of logits."""
    ones = basic.like(logits, 1)
    weight, pos_weight = (ones if each is None else each for each in (weight, pos_weight))
    return losses.reduced(losses.bce_with_logits(logits, label, weight, pos_weight), reduction)


def kl_div(logits, labels, reduction="mean"):
    """Kullback and Leibler's divergence."""
    return P.KLDivLoss(reduction)(logits, labels)


def smooth_l1_loss(logits, labels, beta=1.0, reduction="none"):
    """Smooth L1 loss."""
    return P.SmoothL1Loss(beta, reduction)(logits, labels)


def l1_loss(x, target, reduction="mean"):
    """|x - target|"""
    return losses.reduced(core.abs(core.sub(x, target)), reduction)


def mse_loss(input_x, target, reduction="mean"):
    """(x - target)^2"""
    return losses.reduced(core.squared_difference(input_x, target), reduction)


def huber_loss(x, target, reduction="mean", delta=1.0):
    """Quadratic inside of delta, linear outside."""
    return losses.reduced(losses.huber(x, target, delta), reduction)


def soft_margin_loss(x, target, reduction="mean"):
    """log(1 + exp(-x * target))"""
    return P.SoftMarginLoss(reduction)(x, target)


def hinge_embedding_loss(inputs, targets, margin=1.0, reduction="mean"):
    """x at target 1, max(0, margin - x) at -1."""
    positive = core.greater(targets, basic.number(0, targets))
    return losses.reduced(
        core.select(positive, inputs, core.relu(core.sub(basic.number(margin, inputs), inputs))), reduction
    )


def margin_ranking_loss(input1, input2, target, margin=0.0, reduction="mean"):
    """max(0, -target * (x1 - x2) + margin)"""
    apart = core.mul(core.neg(target), core.sub(input1, input2))
    return losses.reduced(core.relu(core.add(apart, basic.number(margin, apart))), reduction)


def cosine_embedding_loss(input1, input2, target, margin=0.0, reduction="mean"):
    """1 - cosine at target 1, max(0, cosine - margin) at -1."""
    cosine = losses.cosine_similarity(input1, input2, len(input1.shape) - 1)
    positive = core.greater(target, basic.number(0, target))
    far = core.relu(core.sub(cosine, basic.number(margin, cosine)))
    return losses.reduced(core.select(positive, core.sub(basic.number(1, cosine), cosine), far), reduction)


def gumbel_softmax(logits, tau=1, hard=False, dim=-1):
    """A sample of softmax that has a gradient."""
    u = core.clip(random.uniform(logits.shape), low=1e-20, high=1.0)
    noise = core.neg(core.log(core.neg(core.log(u))))
    y = core.softmax(core.div(core.add(logits, noise), basic.number(tau, logits)), axis=dim)
    if not hard:
        return y
    best = core.equal(y, reductions.maximum(y, dim, True))
    return core.add(core.sub(basic.cast(best, basic.nptype(y)), core.stop_gradient(y)), y)


def normalize(x, p=2, axis=1, epsilon=1e-12):
    """x / max(norm, epsilon)"""
    size = reductions.norm(x, axis, p, True)
    return core.div(x, core.maximum(size, basic.number(epsilon, x)))


del _name, _primitive


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False):
    """(loss, logarithms of the forward variables) of connectionist temporal classification."""
    return P.CTCLossV2(blank, reduction, zero_infinity)(log_probs, targets, input_lengths, target_lengths)


def bidense(input1, input2, weight, bias=None):
    """input1 * weight[i] * input2 for each i, and the bias."""
    x, y = (basic.reshape(each, (-1, each.shape[-1])) for each in (input1, input2))
    wide = P.MatMul()(x, basic.reshape(core.transpose(weight, permutation=[1, 0, 2]), (weight.shape[1], -1)))
    wide = basic.reshape(wide, (-1, weight.shape[0], weight.shape[2]))
    out = core.reduce_sum(core.mul(wide, basic.expand(y, 1)), axes=[2], keep_dims=False)
    return basic.reshape(out if bias is None else core.add(out, bias), (*input1.shape[:-1], weight.shape[0]))
