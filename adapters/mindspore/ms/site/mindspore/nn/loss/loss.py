"""Losses."""

import numpy as np
from cairn.ms import core, level
from cairn.ms.numerics import basic, losses, reductions, sequences
from mindspore._checkparam import Rel, Validator
from mindspore.common import dtype as mstype
from mindspore.common.tensor import Tensor
from mindspore.nn.cell import Cell
from mindspore.ops import operations as P


class LossBase(Cell):
    """The base of losses: get_loss(x, weights) reduces what construct computes."""

    _held = {"reduce_mean": lambda self: P.ReduceMean(), "reduce_sum": lambda self: P.ReduceSum(),
             "mul": lambda self: P.Mul(), "cast": lambda self: P.Cast()}  # fmt: skip

    def __init__(self, reduction="mean"):
        super().__init__()
        if reduction is None:
            reduction = "none"
        if reduction not in ("mean", "sum", "none"):
            raise ValueError(
                f"For '{type(self).__name__}', the 'reduction' must be in ['mean', 'sum', 'none'], but got {reduction}."
            )
        self.average, self.reduce = reduction == "mean", reduction != "none"
        self.reduction = reduction

    def get_axis(self, x):
        """All axes of x."""
        return tuple(range(len(x.shape)))

    def get_loss(self, x, weights=1.0):
        """x times the weights, as float32, reduced, with the dtype of x."""
        dtype = basic.nptype(x)
        x = basic.cast(x, np.float32)
        if isinstance(weights, Tensor):
            x = core.mul(basic.cast(weights, np.float32), x)
        elif weights != 1.0:
            x = core.mul(x, np.float32(weights))
        return basic.cast(losses.reduced(x, self.reduction), dtype)


_Loss = LossBase


def _same(owner, x, y, names=("logits", "labels")):
    for each, name in zip((x, y), names):
        if not isinstance(each, Tensor):
            raise TypeError(f"For '{owner}', the '{name}' must be a Tensor, but got {type(each).__name__}.")
    if tuple(x.shape) != tuple(y.shape):
        raise ValueError(
            f"For '{owner}', the shapes of {names[0]} and {names[1]} must be equal, but got {tuple(x.shape)} and {tuple(y.shape)}."
        )


class L1Loss(LossBase):
    """|x - y|"""

    def construct(self, logits, labels):
        _tensors("L1Loss", logits, labels)
        return self.get_loss(core.abs(core.sub(logits, labels)))


def _tensors(owner, *inputs):
    for each in inputs:
        if not isinstance(each, Tensor):
            raise TypeError(f"For '{owner}', the inputs must be Tensors, but got {type(each).__name__}.")


class MSELoss(LossBase):
    """(x - y)^2"""

    def construct(self, logits, labels):
        _tensors("MSELoss", logits, labels)
        return self.get_loss(core.squared_difference(logits, labels))


class RMSELoss(LossBase):
    """Root of the mean of (x - y)^2."""

    def __init__(self):
        super().__init__()

    def construct(self, logits, label):
        return core.sqrt(losses.reduced(core.squared_difference(logits, label), "mean"))


class MAELoss(LossBase):
    """|x - y|"""

    def construct(self, logits, label):
        return self.get_loss(core.abs(core.sub(logits, label)))


class SmoothL1Loss(LossBase):
    """Quadratic for differences below beta; sigma of 0.5 is 1 / sqrt(beta)."""

    def __init__(self, beta=1.0, reduction="none", sigma=None):
        super().__init__(reduction)
        if sigma is not None or not level.at_least("1.1"):
            beta = 1.0 / (sigma if sigma is not None else beta) ** 2
        Validator.check_value_type("beta", beta, [float], "SmoothL1Loss")
        Validator.check_number(beta, 0.0, Rel.GT if level.at_least("1.1") else Rel.GE, "beta", "SmoothL1Loss")
        self.beta = beta

    def construct(self, logits, labels):
        _same("SmoothL1Loss", logits, labels)
        return losses.reduced(losses.smooth_l1(logits, labels, self.beta), self.reduction)


class HuberLoss(LossBase):
    """Quadratic for differences up to delta, linear beyond."""

    def __init__(self, reduction="mean", delta=1.0):
        super().__init__(reduction)
        self.delta = Validator.check_number(delta, 0.0, Rel.GT, "delta", "HuberLoss")

    def construct(self, logits, labels):
        return losses.reduced(losses.huber(logits, labels, self.delta), self.reduction)


class SoftMarginLoss(LossBase):
    """log(1 + exp(-x * y))"""

    def construct(self, logits, labels):
        return losses.reduced(core.softplus(core.neg(core.mul(logits, labels))), self.reduction)


_SOFTMAX_05 = ["is_grad", "sparse", "reduction", "smooth_factor", "num_classes"]


class SoftmaxCrossEntropyWithLogits(LossBase):
    """Cross entropy of logits [n, classes] and one-hot labels, or class numbers when sparse. At level 0.5 the arguments are
    (is_grad=True, sparse=False, reduction=None, smooth_factor=0, num_classes=2), and is_grad with sparse gives the gradient."""

    _held = {"softmax_cross_entropy": lambda self: P.SoftmaxCrossEntropyWithLogits(), "one_hot": lambda self: P.OneHot(),
             "sparse_softmax_cross_entropy": lambda self: P.SparseSoftmaxCrossEntropyWithLogits(),
             "on_value": lambda self: Tensor(1.0, mstype.float32), "off_value": lambda self: Tensor(0.0, mstype.float32)}  # fmt: skip

    def __init__(self, *args, **kwargs):
        old = not level.at_least("1.1") or bool({"is_grad", "smooth_factor", "num_classes"} & set(kwargs))
        names = _SOFTMAX_05 if old else ["sparse", "reduction"]
        given = dict(zip(names, args))
        if len(args) > len(names) or set(kwargs) - set(names) or set(given) & set(kwargs):
            raise TypeError(f"SoftmaxCrossEntropyWithLogits takes the arguments {names}, but got {args} and {kwargs}.")
        given.update(kwargs)
        super().__init__(given.get("reduction", None if old else "none"))
        self.sparse = Validator.check_bool(given.get("sparse", False), "sparse", "SoftmaxCrossEntropyWithLogits")
        self.is_grad = given.get("is_grad", old and not level.at_least("1.1"))
        self.smooth_factor, self.num_classes = given.get("smooth_factor", 0), given.get("num_classes", 2)
        self.old = old

    def construct(self, logits, labels):
        _tensors("SoftmaxCrossEntropyWithLogits", logits, labels)
        if self.sparse and self.old:
            # of CPU and GPU: the fused operator, whose result is the mean whatever the reduction
            loss, gradient = losses.sparse_softmax_cross_entropy(logits, labels)
            if self.is_grad:
                return core.div(gradient, basic.number(logits.shape[0], gradient))
            return losses.reduced(loss, "mean")
        if self.sparse and not self.smooth_factor:
            loss, _ = losses.sparse_softmax_cross_entropy(logits, labels)
            return losses.reduced(loss, self.reduction)
        if self.sparse:
            labels = core.one_hot(
                basic.cast(labels, np.int32), np.int64(logits.shape[-1]), np.float32(1), np.float32(0), axis=-1
            )
        _same("SoftmaxCrossEntropyWithLogits", logits, labels)
        labels = basic.cast(labels, basic.nptype(logits))
        if self.smooth_factor:
            off = self.smooth_factor / (self.num_classes - 1)
            scale = basic.number(1.0 - self.smooth_factor - off, labels)
            labels = core.add(core.mul(labels, scale), basic.number(off, labels))
        return self.get_loss(losses.softmax_cross_entropy(logits, labels)[0])


class SoftmaxCrossEntropyExpand(Cell):
    """Mean cross entropy of 0.5."""

    def __init__(self, sparse=False):
        super().__init__()
        self.loss = SoftmaxCrossEntropyWithLogits(is_grad=False, sparse=sparse, reduction="mean")

    def construct(self, logit, label):
        return losses.reduced(self.loss(logit, label), "mean")


class BCELoss(LossBase):
    """Binary cross entropy of probabilities."""

    def __init__(self, weight=None, reduction="none"):
        super().__init__(reduction)
        self.weight = weight

    def construct(self, logits, labels):
        _same("BCELoss", logits, labels)
        return losses.reduced(losses.binary_cross_entropy(logits, labels, self.weight), self.reduction)


class BCEWithLogitsLoss(LossBase):
    """Binary cross entropy of logits."""

    def __init__(self, reduction="mean", weight=None, pos_weight=None):
        super().__init__(reduction)
        for each, name in ((weight, "weight"), (pos_weight, "pos_weight")):
            if each is not None and not isinstance(each, Tensor):
                raise TypeError(
                    f"For 'BCEWithLogitsLoss', the '{name}' must be a Tensor, but got {type(each).__name__}."
                )
        self.weight, self.pos_weight = weight, pos_weight

    def construct(self, logits, labels):
        _same("BCEWithLogitsLoss", logits, labels)
        one = basic.number(1, logits)
        weight, pos_weight = (one if each is None else each for each in (self.weight, self.pos_weight))
        return losses.reduced(losses.bce_with_logits(logits, labels, weight, pos_weight), self.reduction)


class NLLLoss(LossBase):
    """Of logarithms of probabilities, with classes along axis 1."""

    def __init__(self, weight=None, ignore_index=-100, reduction="mean"):
        super().__init__(reduction)
        Validator.check_value_type("ignore_index", ignore_index, [int], "NLLLoss")
        self.weight, self.ignore_index = weight, ignore_index

    def construct(self, logits, labels):
        _tensors("NLLLoss", logits, labels)
        return losses.nll_reduced(logits, labels, self.weight, self.ignore_index, self.reduction)


class CrossEntropyLoss(LossBase):
    """Of logits with classes along axis 1, and class numbers or probabilities."""

    def __init__(self, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0):
        super().__init__(reduction)
        Validator.check_value_type("ignore_index", ignore_index, [int], "CrossEntropyLoss")
        Validator.check_value_type("weight", weight, [Tensor, type(None)], "CrossEntropyLoss")
        Validator.check_value_type("label_smoothing", label_smoothing, [float], "CrossEntropyLoss")
        Validator.check_float_range(label_smoothing, 0.0, 1.0, Rel.INC_BOTH, "label_smoothing", "CrossEntropyLoss")
        self.weight, self.ignore_index, self.label_smoothing = weight, ignore_index, label_smoothing

    def construct(self, logits, labels):
        _tensors("CrossEntropyLoss", logits, labels)
        return losses.cross_entropy(
            logits, labels, self.weight, self.ignore_index, self.reduction, self.label_smoothing
        )


class KLDivLoss(LossBase):
    """Kullback and Leibler's divergence of logarithms of probabilities and probabilities."""

    def __init__(self, reduction="mean"):
        super().__init__("mean" if reduction == "batchmean" else reduction)
        self.kind = reduction

    def construct(self, logits, labels):
        loss = losses.kl_divergence(logits, labels)
        if self.kind == "batchmean":
            return core.div(losses.reduced(loss, "sum"), basic.number(logits.shape[0], loss))
        return losses.reduced(loss, self.reduction)


class CosineEmbeddingLoss(LossBase):
    """1 - cosine at label 1, max(0, cosine - margin) at -1."""

    def __init__(self, margin=0.0, reduction="mean"):
        super().__init__(reduction)
        self.margin = Validator.check_number_range(margin, -1.0, 1.0, Rel.INC_BOTH, "margin", "CosineEmbeddingLoss")

    def construct(self, logits_x1, logits_x2, labels):
        _same("CosineEmbeddingLoss", logits_x1, logits_x2, ("logits_x1", "logits_x2"))
        cosine = losses.cosine_similarity(logits_x1, logits_x2, 1)
        far = core.relu(core.sub(cosine, basic.number(self.margin, cosine)))
        near = core.sub(basic.number(1, cosine), cosine)
        zero = basic.number(0, cosine)
        one = core.equal(labels, basic.number(1, labels))
        other = core.equal(labels, basic.number(-1, labels))
        return self.get_loss(core.select(one, near, core.select(other, far, zero)))


class MarginRankingLoss(LossBase):
    """max(0, -label * (x1 - x2) + margin)"""

    def __init__(self, margin=0.0, reduction="mean"):
        super().__init__(reduction)
        self.margin = Validator.check_is_float(margin, "margin", "MarginRankingLoss")

    def construct(self, logits1, logits2, labels):
        apart = core.mul(core.neg(labels), core.sub(logits1, logits2))
        return self.get_loss(core.relu(core.add(apart, basic.number(self.margin, apart))))


class HingeEmbeddingLoss(LossBase):
    """x at label 1, max(0, margin - x) at -1."""

    def __init__(self, margin=1.0, reduction="mean"):
        super().__init__(reduction)
        self.margin = margin

    def construct(self, logits, labels):
        far = core.relu(core.sub(basic.number(self.margin, logits), logits))
        return losses.reduced(core.select(core.greater(labels, basic.number(0, labels)), logits, far), self.reduction)


class DiceLoss(LossBase):
    """1 - 2 * sum of x * y / (sum of x^2 + sum of y^2)"""

    def __init__(self, smooth=1e-5):
        super().__init__()
        self.smooth = Validator.check_positive_float(smooth, "smooth", "DiceLoss")

    def construct(self, logits, label):
        _same("DiceLoss", logits, label)
        both = reductions.total(core.mul(logits, label))
        below = core.add(reductions.total(core.square(logits)), reductions.total(core.square(label)))
        share = core.div(core.mul(both, basic.number(2, both)), core.add(below, basic.number(self.smooth, below)))
        return core.sub(basic.number(1, share), share)


class MultiClassDiceLoss(LossBase):
    """Mean of DiceLoss over classes (axis 1), after an activation, softmax along the last axis."""

    def __init__(self, weights=None, ignore_indiex=None, activation="softmax"):
        super().__init__()
        from mindspore.nn.layer.basic import activation_of

        self.dice = DiceLoss(smooth=1e-5)
        for name, each, kind in (("weights", weights, Tensor), ("ignore_indiex", ignore_indiex, int)):
            if each is not None:
                Validator.check_value_type(name, each, [kind], "MultiClassDiceLoss")
        self.weights, self.ignore_indiex = weights, ignore_indiex
        try:
            self.activation = activation_of(activation, "MultiClassDiceLoss")
        except KeyError as error:
            raise ValueError(error.args[0]) from None

    def construct(self, logits, label):
        _same("MultiClassDiceLoss", logits, label)
        if self.activation is not None:
            logits = self.activation(logits)
        total = None
        for i in range(label.shape[1]):
            if i == self.ignore_indiex:
                continue
            each = self.dice(basic.at(logits, 1, i), basic.at(label, 1, i))
            if self.weights is not None:
                each = core.mul(
                    each, basic.at(basic.at(self.weights, -1, i) if len(self.weights.shape) > 1 else self.weights, 0, i)
                )
            total = each if total is None else core.add(total, each)
        return core.div(total, basic.number(label.shape[1], total))


class FocalLoss(LossBase):
    """Cross entropy, weighed by (1 - probability)^gamma."""

    def __init__(self, weight=None, gamma=2.0, reduction="mean"):
        super().__init__(reduction)
        self.gamma = Validator.check_value_type("gamma", gamma, [float], "FocalLoss")
        if weight is not None and not isinstance(weight, Tensor):
            raise TypeError(f"For 'FocalLoss', the 'weight' must be a Tensor, but got {type(weight).__name__}.")
        self.weight = weight

    def construct(self, logits, labels):
        n, c = logits.shape[:2]
        logits = core.transpose(basic.reshape(logits, (n, c, -1)), permutation=[0, 2, 1])
        log_p = core.log_softmax(logits, axis=2)
        if len(labels.shape) > 1 and labels.shape[1] == c and c > 1:
            hot = core.transpose(basic.reshape(labels, (n, c, -1)), permutation=[0, 2, 1])
            hot = basic.cast(hot, basic.nptype(logits))
        else:
            numbers = basic.cast(basic.reshape(labels, (n, -1)), np.int32)
            hot = core.one_hot(numbers, np.int64(c), basic.number(1, logits), basic.number(0, logits), axis=-1)
        p = core.exp(log_p)
        scale = core.pow(core.sub(basic.number(1, p), p), basic.number(self.gamma, p))
        terms = core.neg(core.mul(core.mul(scale, log_p), hot))
        if self.weight is not None:
            terms = core.mul(terms, basic.cast(self.weight, basic.nptype(terms)))
        loss = core.reduce_mean(core.reduce_sum(terms, axes=[2], keep_dims=False), axes=[1], keep_dims=False)
        return losses.reduced(loss, self.reduction)


class SampledSoftmaxLoss(LossBase):
    """Softmax cross entropy over the true class and some drawn ones."""

    def __init__(
        self,
        num_sampled,
        num_classes,
        num_true=1,
        sampled_values=None,
        remove_accidental_hits=True,
        seed=0,
        reduction="none",
    ):
        super().__init__(reduction)
        if num_true != 1:
            raise ValueError(f"For 'SampledSoftmaxLoss', the 'num_true' must be 1, but got {num_true}.")
        Validator.check_int_range(num_sampled, 1, num_classes, Rel.INC_BOTH, "num_sampled", "SampledSoftmaxLoss")
        from mindspore.ops import operations as P

        self.sampler = P.UniformCandidateSampler(num_true, num_sampled, True, num_classes, seed)
        self.sampled_values, self.remove = sampled_values, remove_accidental_hits

    def construct(self, weights, biases, labels, logits):
        labels = basic.reshape(labels, (-1, 1))
        sampled, of_true, of_sampled = self.sampled_values or self.sampler(labels)
        flat = basic.reshape(labels, (-1,))
        true_row, true_bias = core.gather(weights, flat, axis=0), core.gather(biases, flat, axis=0)
        true = core.add(
            core.reduce_sum(core.mul(true_row, logits), axes=[1], keep_dims=True), basic.expand(true_bias, 1)
        )
        others = core.matmul(logits, core.gather(weights, sampled, axis=0), transpose_b=True)
        others = core.add(others, core.gather(biases, sampled, axis=0))
        if self.remove:
            hit = core.equal(basic.expand(flat, 1), basic.expand(basic.cast(sampled, basic.nptype(flat)), 0))
            others = core.select(hit, core.add(others, basic.number(-3.4e38, others)), others)
        true = core.sub(true, core.log(of_true))
        joined = core.concat(true, core.sub(others, core.log(of_sampled)), axis=1)
        loss, _ = losses.sparse_softmax_cross_entropy(joined, basic.filled(flat.shape, 0, np.int32))
        return losses.reduced(loss, self.reduction)


class CTCLoss(LossBase):
    """Connectionist temporal classification of log probabilities [steps, batch, classes] or [steps, classes]; the blank is `blank`."""

    def __init__(self, blank=0, reduction="mean", zero_infinity=False):
        super().__init__(reduction)
        self.blank, self.zero_infinity = blank, zero_infinity

    def construct(self, log_probs, targets, input_lengths, target_lengths):
        if len(log_probs.shape) == 2:
            lengths = [np.asarray(each.asnumpy() if isinstance(each, Tensor) else each, np.int32).reshape(1) for each in (input_lengths, target_lengths)]
            loss = self.construct(basic.expand(log_probs, 1), basic.expand(targets, 0), *map(Tensor, lengths))
            return basic.reshape(loss, ()) if self.reduction == "none" else loss
        lengths = target_lengths.asnumpy() if isinstance(target_lengths, Tensor) else np.asarray(target_lengths)
        loss = self._each(log_probs, targets, input_lengths, lengths)
        if self.zero_infinity:
            loss = core.select(core.is_inf(loss), basic.number(0, loss), loss)
        if self.reduction == "mean":
            loss = core.div(loss, np.maximum(lengths, 1).astype(basic.nptype(loss)))
        return losses.reduced(loss, self.reduction)

    def _each(self, log_probs, targets, input_lengths, lengths):
        """The loss of each sequence."""
        (steps, batch, classes), rows = log_probs.shape, targets.asnumpy()
        starts = np.concatenate([[0], np.cumsum(lengths)])
        rows = [rows[i, : lengths[i]] if rows.ndim == 2 else rows[starts[i] : starts[i + 1]] for i in range(batch)]
        labels = np.concatenate(rows).astype(np.int32)
        if (labels == self.blank).any():
            return sequences.ctc_loss(log_probs, targets, input_lengths, lengths.astype(np.int32), self.blank)[0]
        keep = [i for i in range(classes) if i != self.blank] + [self.blank]
        places = np.array([(i, j) for i in range(batch) for j in range(lengths[i])], np.int64)
        steps_each = basic.cast(input_lengths, np.int32)
        loss, _ = core.ctc_loss(core.gather(log_probs, basic.ints(keep), axis=2), places, labels - (labels > self.blank).astype(np.int32), steps_each)
        of_one = core.sub(log_probs, core.log_softmax(log_probs, axis=2))  # what each step's probabilities add up to
        counts = core.less(np.arange(steps, dtype=np.int32)[:, None], basic.expand(steps_each, 0))
        whole = core.mul(basic.at(of_one, 2, 0), basic.cast(counts, basic.nptype(log_probs)))
        return core.sub(loss, core.stop_gradient(core.reduce_sum(whole, axes=[0], keep_dims=False)))


class _OfFunction(LossBase):
    """A loss that is a function of mindspore.ops with some settings."""

    function, defaults = None, {}

    def __init__(self, *args, reduction="mean", **kwargs):
        names = list(self.defaults)
        given = {**self.defaults, **dict(zip(names, args)), **kwargs}
        if len(args) > len(names) + 1 or set(given) - set(names):
            raise TypeError(
                f"{type(self).__name__} takes the arguments {[*names, 'reduction']}, but got {args} and {kwargs}."
            )
        super().__init__(args[-1] if len(args) > len(names) else reduction)
        self.settings = given

    def construct(self, *inputs):
        from mindspore.ops import functional

        return getattr(functional, self.function)(*inputs, **self.settings, reduction=self.reduction)


class TripletMarginLoss(_OfFunction):
    """Hinge loss of distances: (anchor, positive, negative)."""

    function, defaults = "triplet_margin_loss", {"p": 2, "swap": False, "eps": 1e-6, "margin": 1.0}


class MultiMarginLoss(_OfFunction):
    """Hinge loss of classes."""

    function, defaults = "multi_margin_loss", {"p": 1, "margin": 1.0, "weight": None}

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        from mindspore.ops import operations as P

        P.MultiMarginLoss(self.settings["p"], self.settings["margin"], self.reduction)  # checks them


class MultiLabelSoftMarginLoss(_OfFunction):
    """Mean over classes of binary cross entropies of logits."""

    function, defaults = "multilabel_soft_margin_loss", {"weight": None}


class GaussianNLLLoss(_OfFunction):
    """Of normal distributions: (mean, target, variance)."""

    function, defaults = "gaussian_nll_loss", {"full": False, "eps": 1e-6}


class MultilabelMarginLoss(_OfFunction):
    """Hinge loss of several labels, which stand before the first -1."""

    function = "multilabel_margin_loss"


class PoissonNLLLoss(_OfFunction):
    """Of Poisson's distributions of that rate, or of its logarithm."""

    function, defaults = "poisson_nll_loss", {"log_input": True, "full": False, "eps": 1e-8}


class TripletMarginWithDistanceLoss(LossBase):
    """Hinge loss of distances by a function: (anchor, positive, negative)."""

    def __init__(self, distance_function=None, swap=False, margin=1.0, reduction="mean"):
        super().__init__(reduction)
        self.distance, self.swap, self.margin = distance_function, Validator.check_bool(swap, "swap", "TripletMarginWithDistanceLoss"), margin

    def construct(self, x, positive, negative):
        apart = self.distance or (lambda a, b: reductions.norm(core.sub(a, b), len(a.shape) - 1))
        far = apart(x, negative)
        far = core.minimum(far, apart(positive, negative)) if self.swap else far
        return losses.reduced(core.relu(core.add(core.sub(apart(x, positive), far), basic.number(self.margin, x))), self.reduction)


__all__ = [
    "MultilabelMarginLoss", "PoissonNLLLoss", "TripletMarginWithDistanceLoss",
    "LossBase", "_Loss", "L1Loss", "MSELoss", "RMSELoss", "MAELoss", "SmoothL1Loss", "HuberLoss", "SoftMarginLoss", "SoftmaxCrossEntropyWithLogits",
    "SoftmaxCrossEntropyExpand", "BCELoss", "BCEWithLogitsLoss", "NLLLoss", "CrossEntropyLoss", "KLDivLoss", "CosineEmbeddingLoss",
    "MarginRankingLoss", "HingeEmbeddingLoss", "DiceLoss", "MultiClassDiceLoss", "FocalLoss", "SampledSoftmaxLoss", "TripletMarginLoss", "MultiMarginLoss", "MultiLabelSoftMarginLoss", "GaussianNLLLoss", "CTCLoss",
]  # fmt: skip
