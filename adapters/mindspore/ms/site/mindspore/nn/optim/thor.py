"""THOR: gradients of layers are multiplied by inverses of the factors A and G of their curvature, then go to Momentum."""

import numpy as np
from cairn.ms import core, ranks
from cairn.ms.numerics import basic, collectives, updates
from mindspore._checkparam import Rel, Validator
from mindspore.common import dtype as mstype
from mindspore.common.parameter import Parameter
from mindspore.common.tensor import Tensor
from mindspore.nn.cell import Cell
from mindspore.nn.layer.basic import ClipByNorm
from mindspore.nn.layer.normalization import LayerNorm
from mindspore.nn.layer.thor_layer import Conv2dThor, DenseThor, factored, on_gpu
from mindspore.nn.optim.optimizer import Optimizer
from mindspore.parallel import _utils as parallel

__all__ = ["thor", "THOR"]

_BLOCK = 128  # factors are inverted in diagonal blocks of this size


def _blocks(size):
    return [(at, min(at + _BLOCK, size)) for at in range(0, size, _BLOCK)]


def _inverse(factor, damping, scale):
    """Rows of the inverses of the damped diagonal blocks, [size, block], times a number."""
    size = factor.shape[0]
    width, rows = min(size, _BLOCK), []
    for begin, end in _blocks(size):
        block = basic.part(basic.part(factor, 0, begin, end), 1, begin, end)
        damped = core.add(block, core.mul(damping, np.eye(end - begin, dtype=np.float32)))
        made = core.mul(core.matrix_inverse(damped), np.float32(scale))
        rows.append(core.pad(made, np.array([(0, 0), (0, width - (end - begin))], np.int64)))
    return rows[0] if len(rows) == 1 else core.concat(*rows, axis=0)


def _times(inverse, x):
    """inverse x, by blocks."""
    made = []
    for begin, end in _blocks(x.shape[0]):
        block = basic.part(basic.part(inverse, 0, begin, end), 1, 0, end - begin)
        made.append(core.matmul(block, basic.part(x, 0, begin, end)))
    return made[0] if len(made) == 1 else core.concat(*made, axis=0)


class THOR(Optimizer):
    """The optimizer that `thor` makes. While its `thor` is set a step computes new inverses; else it takes those of before."""

    def __init__(self, net, learning_rate, damping, momentum, weight_decay=0.0, loss_scale=1.0, batch_size=32, use_nesterov=False,
                 decay_filter=lambda x: x.name not in [], split_indices=None, enable_clip_grad=False, frequency=100):  # fmt: skip
        Validator.check_value_type("net", net, [Cell], "THOR")
        layers = factored(net)
        super().__init__(learning_rate, [each for each in net.get_parameters() if each.requires_grad], 0.0, loss_scale)
        Validator.check_value_type("momentum", momentum, [float], "THOR")
        Validator.check_non_negative_float(momentum, "momentum", "THOR")
        Validator.check_non_negative_float(weight_decay, "weight_decay", "THOR")
        Validator.check_positive_int(batch_size, "batch_size", "THOR")
        self.frequency = Validator.check_int(frequency, 2, Rel.GE, "frequency", "THOR")
        self.damping = Parameter(Tensor(np.atleast_1d(damping.asnumpy() if isinstance(damping, Tensor) else damping).astype(np.float32)), "damping", False)
        self.momentum = Parameter(Tensor(momentum, mstype.float32), "momentum")
        self.cov_step = Parameter(Tensor(np.zeros(1, np.int32)), "cov_step", False)
        self.use_nesterov = Validator.check_bool(use_nesterov, "use_nesterov", "THOR")
        self.enable_clip_grad = Validator.check_bool(enable_clip_grad, "enable_clip_grad", "THOR")
        self.decay, self.batch_size, self.thor, self.split_indices = weight_decay, batch_size, True, split_indices
        self.thor_decays = tuple(bool(decay_filter(each)) for each in self.parameters)
        self.moments = self.slots("moments")
        self._slots = [self.moments]
        self._find(net, layers)

    def get_frequency(self):
        """Steps from one computation of inverses to the next."""
        return self.frequency

    def _find(self, net, layers):
        """Which layer each parameter is the weight of, and where its inverses are held."""
        weights = {id(each.factored_parameter()): each for each in layers}
        self.layer_of = tuple(weights.get(id(each)) for each in self.parameters)
        norms = [each for _, each in net.cells_and_names() if isinstance(each, LayerNorm)]
        of_norms = {id(each) for norm in norms for each in (norm.gamma, norm.beta)}
        self.normalises = tuple(id(each) in of_norms for each in self.parameters)
        for i, layer in enumerate(self.layer_of):
            for name in ("a", "g") if layer is not None else ():
                size = getattr(layer, f"matrix_{name}").shape
                held = np.zeros((size[0], min(size[0], _BLOCK)) if len(size) == 2 else size, np.float32)
                setattr(self, f"inverse_{name}_{i}", Parameter(Tensor(held), f"matrix_{name}_inv.{self.parameters[i].name}", False))

    def _renew(self, i, layer, damping):
        """The inverses of a layer, from its factors now."""
        g = core.mul(layer.matrix_g, np.float32(self.batch_size**2 / self.loss_scale**2))
        scale = 1.0
        if isinstance(layer, Conv2dThor):
            scale = layer.places**-0.5
            damping = core.mul(damping, np.float32((1 if on_gpu() else self.batch_size) / layer.places))
        root = core.sqrt(damping)
        if isinstance(layer, (Conv2dThor, DenseThor)):
            a = _inverse(layer.matrix_a, root, scale)
        else:
            a = core.reciprocal(core.add(core.mul(layer.matrix_a, np.float32(1 / self.batch_size)), root))
        for name, made in (("a", a), ("g", _inverse(g, root, scale))):
            if parallel._reduces_gradients() and ranks.several():
                made = core.mul(collectives.all_reduce(made), np.float32(1 / ranks.group().size))
            core.assign(getattr(self, f"inverse_{name}_{i}"), made)

    def _natural(self, i, gradient, damping):
        """The gradient times the inverses of its layer."""
        layer = self.layer_of[i]
        if layer is None:
            if not self.normalises[i]:
                return gradient
            square = core.mul(core.square(gradient), np.float32(1 / self.batch_size))
            return core.div(gradient, core.add(square, core.sqrt(damping)))
        if self.thor:
            self._renew(i, layer, damping)
        a, g = getattr(self, f"inverse_a_{i}"), getattr(self, f"inverse_g_{i}")
        flat = basic.reshape(gradient, (gradient.shape[0], -1))
        if isinstance(layer, (Conv2dThor, DenseThor)):
            left = basic.swapped(_times(g, flat), 0, 1)
            made = basic.swapped(_times(a, left), 0, 1)
        else:
            made = basic.swapped(_times(g, basic.swapped(core.mul(flat, basic.expand(a, 1)), 0, 1)), 0, 1)
        return basic.reshape(made, tuple(gradient.shape))

    def construct(self, gradients):
        last = np.int32(self.damping.shape[0] - 1)
        damping = core.gather(self.damping, basic.reshape(core.minimum(self.cov_step, last), ()), axis=0)
        gradients = [basic.cast(each, np.float32) for each in self.scale_grad(gradients)]
        gradients = [self._natural(i, each, damping) for i, each in enumerate(gradients)]
        core.assign(self.cov_step, core.add(self.cov_step, np.int32(1)))
        if self.decay:
            gradients = [core.add(g, updates.same(updates.mul(p, self.decay), g)) if on else g
                         for p, g, on in zip(self.parameters, gradients, self.thor_decays)]  # fmt: skip
        if self.enable_clip_grad:
            gradients = [ClipByNorm().construct(each, 1.0) for each in gradients]
        self.step(gradients)
        return True

    def update(self, i, p, g, lr):
        return updates.momentum(p, self.moments[i], g, lr, self.momentum, self.use_nesterov)


def thor(net, learning_rate, damping, momentum, weight_decay=0.0, loss_scale=1.0, batch_size=32, use_nesterov=False,
         decay_filter=lambda x: x.name not in [], split_indices=None, enable_clip_grad=False, frequency=100):  # fmt: skip
    """THOR for a net, whose Dense, Conv2d, Embedding and EmbeddingLookup layers keep factors from now on."""
    return THOR(net, learning_rate, damping, momentum, weight_decay, loss_scale, batch_size, use_nesterov, decay_filter, split_indices,
                enable_clip_grad, frequency)  # fmt: skip
