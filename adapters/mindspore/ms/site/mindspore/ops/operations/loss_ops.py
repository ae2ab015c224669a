"""Primitives that are losses."""

from cairn.ms import core
from cairn.ms.numerics import basic, losses
from mindspore._checkparam import Rel, Validator
from mindspore.ops.operations._form import primitive, tensor


def _same_shape(name, x, y):
    if tuple(tensor(x, name).shape) != tuple(tensor(y, name).shape):
        raise ValueError(f"For '{name}', the shapes must be equal, but got {tuple(x.shape)} and {tuple(y.shape)}.")


def _two(name, function, doc, prepare=None, **attributes):
    def compute(self, x, y):
        _same_shape(name, x, y)
        return function(self, x, y)

    return primitive(name, compute, doc, prepare, **attributes)


SoftmaxCrossEntropyWithLogits = _two(
    "SoftmaxCrossEntropyWithLogits",
    lambda self, x, y: losses.softmax_cross_entropy(x, y),
    "(loss of each row, gradient)",
)
SigmoidCrossEntropyWithLogits = _two(
    "SigmoidCrossEntropyWithLogits",
    lambda self, x, y: losses.sigmoid_cross_entropy(x, core.stop_gradient(y)),
    "Binary cross entropy of logits; the labels have no gradient.",
)
SmoothL1Loss = _two(
    "SmoothL1Loss",
    lambda self, x, y: losses.reduced(losses.smooth_l1(x, y, self.beta), self.reduction),
    "Smooth L1 loss.",
    lambda self: Validator.check_number(self.beta, 0, Rel.GE, "beta", "SmoothL1Loss"),
    beta=1.0,
    reduction="none",
)
KLDivLoss = _two(
    "KLDivLoss",
    lambda self, x, y: _kl_reduced(x, losses.kl_divergence(x, y), self.reduction),
    "Kullback and Leibler's divergence.",
    reduction="mean",
)
SoftMarginLoss = _two(
    "SoftMarginLoss",
    lambda self, x, y: losses.reduced(core.softplus(core.neg(core.mul(x, y))), self.reduction),
    "log(1 + exp(-x * y))",
    reduction="mean",
)


def _kl_reduced(x, loss, reduction):
    if reduction == "batchmean":
        return core.div(losses.reduced(loss, "sum"), basic.number(x.shape[0], x))
    return losses.reduced(loss, reduction)


def _sparse_softmax(self, logits, labels):
    tensor(logits, self.name, "float"), tensor(labels, self.name, "int")
    if len(tensor(logits, self.name).shape) != 2 or tuple(tensor(labels, self.name).shape) != (logits.shape[0],):
        raise ValueError(
            f"For '{self.name}', logits and labels must be [n, classes] and [n], but got {logits.shape} and {labels.shape}."
        )
    loss, gradient = losses.sparse_softmax_cross_entropy(logits, labels)
    if self.is_grad:
        return core.div(gradient, basic.number(logits.shape[0], gradient))
    return losses.reduced(loss, "mean")


SparseSoftmaxCrossEntropyWithLogitsV2 = primitive(
    "SparseSoftmaxCrossEntropyWithLogitsV2", lambda self, logits, labels: losses.sparse_softmax_cross_entropy(logits, labels),
    "(loss of each row, its gradient).",
)  # fmt: skip


def _check_is_grad(self):
    Validator.check_bool(self.is_grad, "is_grad", self.name)


SparseSoftmaxCrossEntropyWithLogits = primitive(
    "SparseSoftmaxCrossEntropyWithLogits",
    _sparse_softmax,
    "Mean loss, or with is_grad its gradient.",
    _check_is_grad,
    is_grad=False,
)
BCEWithLogitsLoss = primitive(
    "BCEWithLogitsLoss", lambda self, x, y, weight, pos: losses.reduced(losses.bce_with_logits(x, y, weight, pos), self.reduction),
    "Binary cross entropy of logits with weights.", reduction="mean",
)  # fmt: skip
BinaryCrossEntropy = primitive(
    "BinaryCrossEntropy", lambda self, x, y, weight=None: losses.reduced(losses.binary_cross_entropy(x, y, weight), self.reduction),
    "Binary cross entropy of probabilities.", reduction="mean",
)  # fmt: skip


def _nll(self, logits, labels, weight):
    loss, weights, _ = losses.nll(logits, labels, core.stop_gradient(weight))
    total = losses.reduced(weights, "sum")
    if self.reduction == "mean":
        return core.div(losses.reduced(loss, "sum"), total), total
    return losses.reduced(loss, self.reduction), total


NLLLoss = primitive("NLLLoss", _nll, "(loss, sum of the weights)", reduction="mean")


def _ctc_loss(self, x, indices, values, lengths):
    return core.ctc_loss(
        x, indices, values, lengths, merge_repeated=self.ctc_merge_repeated,
        collapse_repeated=self.preprocess_collapse_repeated, ignore_longer=self.ignore_longer_outputs_than_inputs,
    )  # fmt: skip


CTCLoss = primitive(
    "CTCLoss", _ctc_loss, "(loss, gradient) of connectionist temporal classification.", preprocess_collapse_repeated=False,
    ctc_merge_repeated=True, ignore_longer_outputs_than_inputs=False,
)  # fmt: skip
