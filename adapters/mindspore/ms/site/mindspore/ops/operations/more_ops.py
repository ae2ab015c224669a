"""Primitives that came late: compositions of what the other modules have."""

import math

import numpy as np
from cairn.ms import core
from cairn.ms.numerics import arrays, basic, images, losses, reductions, sampling, updates
from mindspore._checkparam import Validator
from mindspore.common import dtype as mstype
from mindspore.common.tensor import Tensor
from mindspore.ops.operations._form import REQUIRED, binary, parameter, primitive, same_type, static, tensor, unary

Fmax, Fmin = binary("Fmax", core.maximum), binary("Fmin", core.minimum)


def gcd(x, y):
    """By Euclid's steps, as many as the type of the numbers can need."""
    x, y = core.abs(x), core.abs(y)
    one, zero = basic.number(1, x), basic.number(0, x)
    for _ in range({1: 12, 2: 24, 4: 47, 8: 93}[basic.nptype(x).itemsize]):
        done = core.equal(y, zero)
        x, y = core.select(done, x, y), core.select(done, zero, core.mod(x, core.select(done, one, y)))
    return x


def lcm(x, y):
    """|x / gcd * y|"""
    common = gcd(x, y)
    return core.abs(core.mul(core.truncate_div(x, core.maximum(common, basic.number(1, common))), y))


def heaviside(x, values):
    """0 below 0, values at 0, 1 above 0."""
    one, zero = basic.number(1, x), basic.number(0, x)
    return core.select(core.equal(x, zero), values, core.select(core.greater(x, zero), one, zero))


def sinc(x):
    """sin(pi x) / (pi x), 1 at 0."""
    x = core.mul(x, basic.number(np.pi, x))
    one, zero = basic.number(1, x), core.equal(x, basic.number(0, x))
    return core.select(zero, one, core.div(core.sin(x), core.select(zero, one, x)))


Gcd, Lcm, Heaviside = binary("Gcd", gcd, "int"), binary("Lcm", lcm, "int"), binary("Heaviside", heaviside, "float")
Sinc = unary("Sinc", sinc)


def _logit(self, x):
    if self.eps >= 0:
        x = core.clip(x, low=float(self.eps), high=float(1 - self.eps))
    return core.log(core.div(x, core.sub(basic.number(1, x), x)))


Logit = primitive("Logit", _logit, "log(x / (1 - x))", eps=-1.0)
Mvlgamma = primitive(
    "Mvlgamma", lambda self, x: mvlgamma(x, self.p), "Logarithm of the multivariate gamma function.", p=REQUIRED
)


def mvlgamma(x, p):
    """Sum of log_gamma(x - i / 2) and a constant."""
    total = basic.like(x, p * (p - 1) / 4 * math.log(math.pi))
    for i in range(p):
        total = core.add(total, core.log_gamma(core.sub(x, basic.number(i / 2, x))))
    return total


def nan_to_num(x, nan=0.0, posinf=None, neginf=None):
    """x with numbers for NaN and infinities."""
    most = np.finfo(basic.nptype(x)).max
    big = basic.number(most if posinf is None else posinf, x)
    small = basic.number(-most if neginf is None else neginf, x)
    zero = basic.number(0, x)
    out = core.select(core.is_nan(x), basic.number(nan, x), x)
    return core.select(core.is_inf(out), core.select(core.greater(out, zero), big, small), out)


NanToNum = primitive(
    "NanToNum", lambda self, x: nan_to_num(tensor(x, "NanToNum", "float"), self.nan, self.posinf, self.neginf), "x without NaN and infinities.",
    lambda self: Validator.check_value_type("nan", self.nan, [int, float, type(None)], "NanToNum"), nan=0.0, posinf=None, neginf=None,
)  # fmt: skip
CountNonZero = primitive(
    "CountNonZero",
    lambda self, x: reductions.count_nonzero(x, self.dims or (), False),
    "How many are not 0.",
    dims=None,
)
Trace = primitive(
    "Trace",
    lambda self, x: core.reduce_sum(arrays.diagonal(tensor(x, "Trace")), axes=[0], keep_dims=False),
    "Sum of the diagonal.",
)
CumulativeLogsumexp = primitive(
    "CumulativeLogsumexp", lambda self, x, axis: reductions.cumulative(basic.log_add_exp, x, static(axis, "CumulativeLogsumexp", "axis")),
    "Running log(sum(exp(x))).", exclusive=False, reverse=False,
)  # fmt: skip
SquareSumAll = primitive(
    "SquareSumAll",
    lambda self, x, y: tuple(reductions.total(core.square(each)) for each in (x, y)),
    "Sums of squares of two tensors.",
)
IdentityN = primitive("IdentityN", lambda self, inputs: tuple(map(core.identity, inputs)), "Its inputs.")
Expand = primitive(
    "Expand",
    lambda self, x, shape: core.broadcast_to(x, basic.ints(static(shape, "Expand", "shape"))),
    "x repeated to a shape.",
)
Eps = unary("Eps", lambda x: basic.like(x, np.finfo(basic.nptype(x)).eps))
Qr = primitive(
    "Qr",
    lambda self, x: core.qr(x, full=self.full_matrices),
    "Orthonormal columns and a triangle.",
    full_matrices=False,
)
IndexFill = primitive(
    "IndexFill",
    lambda self, x, dim, index, value: index_fill(x, static(dim, "IndexFill", "dim"), index, value),
    "x with a value in parts.",
)


def index_fill(x, axis, index, value):
    """x with a value in the parts that the index names."""
    index = basic.reshape(arrays.wide(index), (-1,))
    hits = core.equal(basic.expand(index, 1), np.arange(x.shape[axis], dtype=basic.nptype(index)))
    shape = [1] * len(x.shape)
    shape[axis] = x.shape[axis]
    chosen = core.reduce_any(hits, axes=[0], keep_dims=False)
    return core.select(basic.reshape(chosen, tuple(shape)), same_type(value, x), x)


def _band_part(self, x, lower, upper):
    lower, upper = (static(each, "MatrixBandPart", "lower") for each in (lower, upper))
    return arrays.band(x, None if lower < 0 else lower, None if upper < 0 else upper)


MatrixBandPart = primitive("MatrixBandPart", _band_part, "x with zeros outside of a band of diagonals.")


def cdist(x, y, p=2.0):
    """Distances between rows."""
    apart = core.sub(basic.expand(x, -2), basic.expand(y, -3))
    if p == 0:
        return basic.cast(reductions.count_nonzero(apart, -1), basic.nptype(apart))
    if p == float("inf"):
        return reductions.maximum(core.abs(apart), -1)
    last = len(apart.shape) - 1
    same = core.equal(reductions.maximum(core.abs(apart), last, True), basic.number(0, apart))  # whose distance has no derivative but 0
    made = reductions.norm(core.select(core.broadcast_to(same, list(apart.shape)), basic.number(1, apart), apart), last, p)
    return core.select(basic.reshape(same, tuple(made.shape)), basic.number(0, made), made)


def cdist_grad(dy, x, y, distances, p):
    """The gradient of x for that of its distances to y."""
    apart = core.sub(basic.expand(x, -2), basic.expand(y, -3))
    size, wide = core.abs(apart), basic.expand(distances, -1)
    if p == 0:
        return basic.like(x, 0)
    if p == float("inf"):
        slope = core.select(core.equal(size, wide), core.sign(apart), basic.number(0, apart))
    else:
        share = core.div(size, core.select(core.equal(wide, basic.number(0, wide)), basic.number(1, wide), wide))
        slope = core.mul(core.sign(apart), core.pow(share, basic.number(p - 1, apart)))
    return reductions.total(core.mul(slope, basic.expand(dy, -1)), len(apart.shape) - 2)


def pdist(x, p=2.0):
    """Distances between the rows of x, each pair once."""
    first, second = np.triu_indices(x.shape[-2], 1)
    rows = [core.gather(x, basic.ints(each), axis=len(x.shape) - 2) for each in (first, second)]
    return reductions.norm(core.sub(*rows), len(x.shape) - 1, p)


Cdist = primitive("Cdist", lambda self, x, y: cdist(x, y, self.p), "Distances between rows.", p=2.0)
Pdist = primitive("Pdist", lambda self, x: pdist(x, self.p), "Distances between the rows of one matrix.", p=2.0)
ChannelShuffle = primitive(
    "ChannelShuffle", lambda self, x: channel_shuffle(x, self.group), "Channels of groups in turn.", group=REQUIRED
)


def channel_shuffle(x, groups):
    """Channels of groups in turn."""
    n, c, *rest = x.shape
    wide = core.transpose(basic.reshape(x, (n, groups, c // groups, -1)), permutation=[0, 2, 1, 3])
    return basic.reshape(wide, (n, c, *rest))


def _pad_v3(self, x, paddings, value=0.0):
    given = list(static(paddings, "PadV3", "paddings"))
    rank = len(x.shape)
    pads = [(0, 0)] * (rank - len(given) // 2) + [tuple(given[i : i + 2]) for i in range(len(given) - 2, -1, -2)]
    if self.mode == "constant":
        return images.pad(x, pads, float(value))
    return images.mirror(x, pads, {"edge": "edge", "reflect": "reflect"}[self.mode])


PadV3 = primitive(
    "PadV3", _pad_v3, "x with something around, pads of the last axis first.", mode="constant", paddings_contiguous=True
)


def _adaptive_max(x, sizes):
    values, places = sampling.adaptive_max_places(x, sizes)
    return values, basic.cast(places, np.int32)


AdaptiveMaxPool3D = primitive(
    "AdaptiveMaxPool3D",
    lambda self, x, size: _adaptive_max(x, list(static(size, "AdaptiveMaxPool3D", "output_size"))),
    "(largest, their places) of windows that cover a volume.",
)


def _segments(name, mode):
    def compute(self, x, segments):
        count = int(np.asarray(segments.asnumpy()).max()) + 1
        made = arrays.segment(x, segments, count, mode)
        if mode not in ("max", "min"):
            return made
        rows = arrays.segment(np.ones(segments.shape, np.int32), segments, count, "sum")  # where there are none it is 0
        filled = core.greater(rows, basic.number(0, rows))
        return core.select(reductions.expand_to(filled, len(made.shape)), made, basic.number(0, made))

    return primitive(name, compute, f"Rows of equal segment, which rise, combined by {mode}.")


for _name in ("Sum", "Mean", "Max", "Min", "Prod"):
    globals()["Segment" + _name] = _segments("Segment" + _name, _name.lower())


def _resize(name, mode):
    def compute(self, x, size):
        half = getattr(self, "half_pixel_centers", False)
        return images.resize(x, static(size, name, "size"), mode, self.align_corners, half)

    return primitive(name, compute, "NCHW images at another size.", align_corners=False, half_pixel_centers=False)


ResizeBilinearV2, ResizeNearestNeighborV2 = (
    _resize("ResizeBilinearV2", "bilinear"),
    _resize("ResizeNearestNeighborV2", "nearest"),
)
ResizeBicubic = _resize("ResizeBicubic", "bicubic")


def _in_top_k(self, x, targets):
    if len(tensor(x, "InTopK", "float").shape) != 2 or len(tensor(targets, "InTopK", "int", "x2").shape) != 1:
        raise ValueError(f"For 'InTopK', 'x1' must have 2 dimensions and 'x2' 1, but got shapes {x.shape} and {targets.shape}.")
    own = reductions.take_along(x, basic.expand(arrays.wide(targets), 1), 1)
    higher = basic.cast(core.greater(x, own), np.int32)
    return core.less(core.reduce_sum(higher, axes=[1], keep_dims=False), np.int32(self.k))


InTopK = primitive("InTopK", _in_top_k, "Whether each target is among the k largest.", k=REQUIRED)


def _bucketize(self, x):
    bounds = np.asarray(self.boundaries, np.float32)
    flags = core.greater_equal(basic.expand(basic.cast(x, np.float32), -1), bounds)
    return core.reduce_sum(basic.cast(flags, np.int32), axes=[len(x.shape)], keep_dims=False)


Bucketize = primitive("Bucketize", _bucketize, "Number of bounds that are not above each element.", boundaries=REQUIRED)


def _indices(name, make):
    def compute(self):
        return Tensor(np.stack(make(self.row, self.offset, self.col)).astype(basic.as_np(self.dtype)))

    return primitive(name, compute, "Places of a triangle.", row=REQUIRED, col=REQUIRED, offset=0, dtype=mstype.int32)


TrilIndices, TriuIndices = _indices("TrilIndices", np.tril_indices), _indices("TriuIndices", np.triu_indices)


def multi_margin(x, target, p=1, margin=1.0, weight=None):
    """Mean over classes of max(0, margin - x[target] + x)^p, without the target itself."""
    count = x.shape[1]
    hot = core.one_hot(arrays.wide(target), np.int64(count), basic.number(1, x), basic.number(0, x), axis=-1)
    own = core.reduce_sum(core.mul(hot, x), axes=[1], keep_dims=True)
    terms = core.relu(core.add(core.sub(x, own), basic.number(margin, x)))
    terms = core.mul(core.square(terms) if p == 2 else terms, core.sub(basic.number(1, x), hot))
    if weight is not None:
        terms = core.mul(terms, core.reduce_sum(core.mul(hot, weight), axes=[1], keep_dims=True))
    return core.div(core.reduce_sum(terms, axes=[1], keep_dims=False), basic.number(count, x))


def triplet_margin(x, positive, negative, p=2, margin=1.0, eps=1e-6, swap=False):
    """max(0, distance to the positive - distance to the negative + margin)"""

    def apart(a, b):
        step = core.add(core.sub(a, b), basic.number(eps, a))
        return reductions.norm(step, len(a.shape) - 1, p)

    far = apart(x, negative)
    if swap:
        far = core.minimum(far, apart(positive, negative))
    return core.relu(core.add(core.sub(apart(x, positive), far), basic.number(margin, x)))


def _check_multi_margin(self):
    Validator.check_value_type("p", self.p, [int], "MultiMarginLoss")
    Validator.check_value_type("margin", self.margin, [float], "MultiMarginLoss")
    if self.p not in (1, 2):
        raise ValueError(f"For 'MultiMarginLoss', the 'p' must be 1 or 2, but got {self.p}.")


MultiMarginLoss = primitive(
    "MultiMarginLoss", lambda self, x, target, weight=None: losses.reduced(multi_margin(x, target, self.p, self.margin, weight), self.reduction),
    "Hinge loss of classes.", _check_multi_margin, p=1, margin=1.0, reduction="mean",
)  # fmt: skip
TripletMarginLoss = primitive(
    "TripletMarginLoss", lambda self, x, a, b, margin=1.0: losses.reduced(triplet_margin(x, a, b, self.p, float(margin), self.eps, self.swap), self.reduction),
    "Hinge loss of distances.", p=2, eps=1e-6, swap=False, reduction="mean",
)  # fmt: skip


def _basic_lstm(self, x, h, c, w, b):
    gates = core.add(
        core.matmul(core.concat(x, h, axis=1), basic.reshape(w, (x.shape[1] + h.shape[1], -1))), basic.reshape(b, (-1,))
    )
    i, j, f, o = basic.split(gates, -1, [h.shape[1]] * 4)
    i, j, o = core.sigmoid(i), core.tanh(j), core.sigmoid(o)
    f = core.sigmoid(core.add(f, basic.number(self.forget_bias, f)))
    c = core.add(core.mul(c, f), core.mul(i, j))
    t = core.tanh(c)
    return c, core.mul(t, o), i, j, f, o, t


BasicLSTMCell = primitive(
    "BasicLSTMCell", _basic_lstm, "One step of an LSTM: (c, h, gates ..., tanh(c))", keep_prob=1.0, forget_bias=1.0,
    state_is_tuple=True, activation="tanh",
)  # fmt: skip


# Updates of rows that a gradient names


def _sparse(name, slots, rule, place=None, **attributes):
    """The rule on the rows of the Parameters that the indices name, of which equal ones are added. place: where the gradient and the
    indices stand among the inputs, None for the end."""

    def compute(self, *inputs):
        if place is not None:
            inputs = *inputs[:place], *inputs[place + 2 :], *inputs[place : place + 2]
        tensor(inputs[-2], name, "float", "grad")
        tensor(inputs[-1], name, "int", "indices")
        own, (gradient, indices) = [parameter(each, name) for each in inputs[:slots]], inputs[-2:]
        rows = own[0].shape[0]
        whole = arrays.scatter_rows(basic.like(own[0], 0), indices, updates.same(gradient, own[0]), "add")
        touched = arrays.scatter_rows(
            Tensor(np.zeros(rows, np.float32)), indices, basic.filled(indices.shape, 1, np.float32), "add"
        )
        on = basic.reshape(core.greater(touched, np.float32(0)), (rows,) + (1,) * (len(own[0].shape) - 1))
        for each, value in zip(own, rule(self, own, inputs[slots:-2], whole)):
            core.assign(each, core.select(on, value, each))
        return own[0] if slots == 1 else tuple(own)

    return primitive(name, compute, "An update of the rows that the indices name.", **attributes)


_LOCK = {"use_locking": False}
SparseApplyAdagrad = _sparse(
    "SparseApplyAdagrad",
    2,
    lambda self, s, o, g: updates.adagrad(*s, g, self.lr, self.update_slots),
    lr=REQUIRED,
    update_slots=True,
    **_LOCK,
)
SparseApplyAdagradV2 = _sparse(
    "SparseApplyAdagradV2",
    2,
    lambda self, s, o, g: updates.adagrad(*s, g, self.lr, self.update_slots, self.epsilon),
    lr=REQUIRED,
    epsilon=REQUIRED,
    use_locking=False,
    update_slots=True,
)
SparseApplyFtrl = FusedSparseFtrl = _sparse(
    "SparseApplyFtrl",
    3,
    lambda self, s, o, g: updates.ftrl(*s, g, self.lr, self.l1, self.l2, self.lr_power),
    lr=REQUIRED,
    l1=REQUIRED,
    l2=REQUIRED,
    lr_power=REQUIRED,
    **_LOCK,
)
SparseApplyProximalAdagrad = FusedSparseProximalAdagrad = _sparse(
    "SparseApplyProximalAdagrad", 2, lambda self, s, o, g: updates.proximal_adagrad(*s, g, *o), **_LOCK
)


def _sparse_adam(self, slots, others, gradient):
    power1, power2, lr, beta1, beta2, epsilon = others
    return updates.adam(*slots, gradient, lr, beta1, beta2, epsilon, power1, power2, self.use_nesterov)


FusedSparseAdam = FusedSparseLazyAdam = _sparse("FusedSparseLazyAdam", 3, _sparse_adam, use_locking=False, use_nesterov=False)

SparseApplyFtrlV2 = _sparse(
    "SparseApplyFtrlV2", 3,
    lambda self, s, o, g: updates.ftrl(*s, core.add(g, updates.mul(s[0], 2 * self.l2_shrinkage)), self.lr, self.l1, self.l2, self.lr_power),
    lr=REQUIRED, l1=REQUIRED, l2=REQUIRED, l2_shrinkage=REQUIRED, lr_power=REQUIRED, **_LOCK,
)  # fmt: skip
SparseApplyAdadelta = _sparse(
    "SparseApplyAdadelta", 3, lambda self, s, o, g: updates.ada_delta(*s, g, *o, self.epsilon), epsilon=REQUIRED, **_LOCK
)


def _sparse_rms_prop(self, slots, others, gradient):
    return updates.rms_prop(*slots, gradient, *others, self.rho, self.momentum, self.epsilon)


def _sparse_centered(self, slots, others, gradient):
    p, mean_gradient, mean_square, moment = slots
    p, mean_square, moment, mean_gradient = updates.rms_prop(p, mean_square, moment, gradient, *others, mean_gradient)
    return p, mean_gradient, mean_square, moment


SparseApplyMomentum = _sparse(
    "SparseApplyMomentum", 2, lambda self, s, o, g: updates.momentum(*s, g, *o, self.use_nesterov), 3, use_locking=False, use_nesterov=False
)
SparseApplyRMSProp = _sparse("SparseApplyRMSProp", 3, _sparse_rms_prop, rho=REQUIRED, momentum=REQUIRED, epsilon=REQUIRED, **_LOCK)
SparseApplyCenteredRMSProp = _sparse("SparseApplyCenteredRMSProp", 4, _sparse_centered, **_LOCK)
SparseApplyProximalGradientDescent = _sparse(
    "SparseApplyProximalGradientDescent", 1, lambda self, s, o, g: [updates.proximal(s[0], g, updates.of(o[0], s[0]), o[1], o[2])], **_LOCK
)
SparseApplyAdagradDA = _sparse("SparseApplyAdagradDA", 3, lambda self, s, o, g: updates.adagrad_da(*s, g, *o), 3, **_LOCK)


def _keras_momentum(self, p, v, lr, gradient, rate):
    v_new = core.sub(updates.mul(v, rate), updates.mul(gradient, lr))
    step = core.sub(updates.mul(v_new, rate), updates.mul(gradient, lr)) if self.use_nesterov else v_new
    for each, value in ((p, core.add(p, step)), (v, v_new)):
        core.assign(each, value)
    return p, v


ApplyKerasMomentum = primitive(
    "ApplyKerasMomentum", _keras_momentum, "v = momentum * v - lr * g; p += v", use_locking=False, use_nesterov=False
)
del _name
