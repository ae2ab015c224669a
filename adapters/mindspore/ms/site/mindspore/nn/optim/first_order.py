"""Optimizers of first order."""

import numpy as np
from cairn.ms import core, level
from cairn.ms.numerics import basic, reductions, updates
from mindspore._checkparam import Rel, Validator
from mindspore.common import dtype as mstype
from mindspore.common.parameter import Parameter
from mindspore.common.tensor import Tensor
from mindspore.nn.cell import Cell
from mindspore.nn.learning_rate_schedule import LearningRateSchedule, PolynomialDecayLR, WarmUpLR
from mindspore.nn.optim.optimizer import Optimizer, checked, not_normalisation
from mindspore.ops import operations as P


def _number(value, name):
    return Parameter(Tensor(value, mstype.float32), name=name, requires_grad=False)


class Momentum(Optimizer):
    """v = momentum * v + g; p -= lr * v"""

    _held = {"opt": lambda self: P.ApplyMomentum(use_nesterov=self.use_nesterov)}

    def __init__(self, params, learning_rate, momentum, weight_decay=0.0, loss_scale=1.0, use_nesterov=False):
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        Validator.check_value_type("momentum", momentum, [float], "Momentum")
        if momentum < 0.0:
            raise ValueError(f"For 'Momentum', the 'momentum' must be at least 0.0, but got {momentum}.")
        self.momentum = Parameter(Tensor(momentum, mstype.float32), name="momentum")
        self.use_nesterov = Validator.check_bool(use_nesterov, "use_nesterov", "Momentum")
        self.moments = self.slots("moments")
        self._slots = [self.moments]

    def update(self, i, p, g, lr):
        return updates.momentum(p, self.moments[i], g, lr, self.momentum, self.use_nesterov)


class SGD(Optimizer):
    """Gradient descent with momentum and dampening; decay is for every parameter."""

    def __init__(
        self, params, learning_rate=0.1, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False, loss_scale=1.0
    ):
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        if any(isinstance(each, Cell) for each in (weight_decay, *self.weight_decays)):
            raise TypeError("For 'SGD', dynamic weight decay is currently not supported, the argument 'weight_decay' or 'weight_decay' "
                            "set in grouped 'params' must be float or int type.")
        momentum, dampening = (
            float(x) if isinstance(x, int) and not isinstance(x, bool) else x for x in (momentum, dampening)
        )
        checked("SGD", momentum=momentum, dampening=dampening)
        Validator.check_bool(nesterov, "nesterov", "SGD")
        if nesterov and (momentum <= 0.0 or dampening != 0.0):
            raise ValueError(
                f"For 'SGD', nesterov needs a momentum above 0 and no dampening, but got {momentum} and {dampening}."
            )
        self.dampening, self.nesterov = dampening, nesterov
        self.momentum = Parameter(Tensor(momentum, mstype.float32), name="momentum")
        self.accum, self.stat = self.slots("accum"), self.slots("stat", "ones")
        self._slots, self.exec_weight_decay = [self.accum, self.stat], False
        self.plain = momentum == 0.0

    def update(self, i, p, g, lr):
        decay = self.weight_decays[i]
        if self.plain:
            g = core.add(g, updates.mul(p, decay)) if decay else g
            return (core.sub(p, updates.mul(g, lr)),)
        return updates.sgd(p, self.accum[i], self.stat[i], g, lr, self.momentum, self.dampening, decay, self.nesterov)


class Adam(Optimizer):
    """Adam in TensorFlow's form: epsilon outside of the correction."""

    _held = {"opt": lambda self: P.Adam(use_nesterov=self.use_nesterov)}

    def __init__(self, params, learning_rate=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, use_locking=False, use_nesterov=False,
                 weight_decay=0.0, loss_scale=1.0, use_amsgrad=False, **kwargs):  # fmt: skip
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        owner = type(self).__name__
        for key in kwargs:
            if key not in ("use_lazy", "use_offload"):
                raise ValueError(f"For '{owner}', the argument '{key}' is not known.")
        checked(owner, beta1=beta1, beta2=beta2, eps=eps)
        for name, value in (("use_locking", use_locking), ("use_nesterov", use_nesterov), ("use_amsgrad", use_amsgrad)):
            Validator.check_value_type(name, value, [bool], owner)
        self.beta1, self.beta2, self.eps = beta1, beta2, eps
        self.use_nesterov, self.use_amsgrad = use_nesterov, use_amsgrad
        self.beta1_power, self.beta2_power = _number(1.0, "beta1_power"), _number(1.0, "beta2_power")
        self.moment1, self.moment2 = self.slots("moment1"), self.slots("moment2")
        self._slots = [self.moment1, self.moment2]
        if use_amsgrad:
            self.vhat = self.slots("vhat")
            self._slots.append(self.vhat)

    def begin_step(self):
        for power, beta in ((self.beta1_power, self.beta1), (self.beta2_power, self.beta2)):
            core.assign(power, core.mul(power, np.float32(beta)))
        return self.beta1_power, self.beta2_power

    def update(self, i, p, g, lr, power1, power2):
        largest = self.vhat[i] if self.use_amsgrad else None
        return updates.adam(
            p,
            self.moment1[i],
            self.moment2[i],
            g,
            lr,
            self.beta1,
            self.beta2,
            self.eps,
            power1,
            power2,
            self.use_nesterov,
            largest,
        )


class LazyAdam(Adam):
    """Adam; of dense gradients the same."""


class AdamOffload(Adam):
    """Adam; host and device are one here."""


class AdamWeightDecay(Optimizer):
    """Adam without correction and with decoupled decay."""

    def __init__(
        self, params, learning_rate=1e-3, beta1=0.9, beta2=0.999, eps=1e-6, weight_decay=0.0, decay_filter=None
    ):
        super().__init__(learning_rate, params, weight_decay)
        checked(type(self).__name__, beta1=beta1, beta2=beta2, eps=eps)
        self.beta1, self.beta2, self.eps = beta1, beta2, eps
        self.moments1, self.moments2 = self.slots("adam_m"), self.slots("adam_v")
        self._slots = [self.moments1, self.moments2]
        if decay_filter is not None and not self.is_group:
            self.decay_flags = tuple(bool(decay_filter(each)) and bool(weight_decay) for each in self.parameters)

    def construct(self, gradients):
        self.decays = self.decays_of_step()
        self.step(self.gradients_centralization(gradients))
        return True

    def update(self, i, p, g, lr):
        decay = self.decay_of(i)
        return updates.adam_weight_decay(
            p, self.moments1[i], self.moments2[i], g, lr, self.beta1, self.beta2, self.eps, decay
        )


class _WarmUpAndDecay(LearningRateSchedule):
    """Warm-up, then polynomial decay, as optimizers of 0.5 have it."""

    def __init__(self, learning_rate, end_learning_rate, decay_steps, warmup_steps, power):
        super().__init__()
        self.decay = PolynomialDecayLR(learning_rate, end_learning_rate, decay_steps, power)
        self.warmup_steps = warmup_steps
        self.warm = WarmUpLR(learning_rate, warmup_steps) if warmup_steps else None

    def construct(self, global_step):
        rate = self.decay(global_step)
        if not self.warmup_steps:
            return basic.reshape(rate, ())
        early = core.less(basic.cast(global_step, np.float32), np.float32(self.warmup_steps))
        return basic.reshape(core.select(early, self.warm(global_step), rate), ())


class AdamWeightDecayDynamicLR(AdamWeightDecay):
    """AdamWeightDecay of 0.5 with warm-up and polynomial decay of the rate."""

    def __init__(self, params, decay_steps, warmup_steps=0, learning_rate=0.001, end_learning_rate=0.0001, power=10.0, beta1=0.9,
                 beta2=0.999, eps=1e-6, weight_decay=0.0, decay_filter=not_normalisation):  # fmt: skip
        rate = _WarmUpAndDecay(learning_rate, end_learning_rate, decay_steps, warmup_steps, power)
        super().__init__(params, rate, beta1, beta2, eps, weight_decay, decay_filter)


def _not_norm_or_bias(parameter):
    return "layernorm" not in parameter.name.lower() and "bias" not in parameter.name.lower()


class Lamb(Optimizer):
    """Adam's step with a trust ratio for each parameter. At level 0.5: (params, decay_steps, warmup_steps, start_learning_rate,
    end_learning_rate, power, beta1, beta2, eps, weight_decay, decay_filter)."""

    def __init__(self, params, *args, **kwargs):
        old = not level.at_least("1.1") or bool({"decay_steps", "warmup_steps", "start_learning_rate"} & set(kwargs))
        new = {"learning_rate": None, "beta1": 0.9, "beta2": 0.999, "eps": 1e-6, "weight_decay": 0.0}
        earlier = {"decay_steps": None, "warmup_steps": 0, "start_learning_rate": 0.1, "end_learning_rate": 1e-4, "power": 1.0,
                   "beta1": 0.9, "beta2": 0.999, "eps": 1e-6, "weight_decay": 0.0, "decay_filter": _not_norm_or_bias}  # fmt: skip
        known = earlier if old else new
        if len(args) > len(known) or set(kwargs) - set(known):
            raise TypeError(f"Lamb takes the arguments {list(known)}, but got {args} and {kwargs}.")
        given = {**known, **dict(zip(known, args)), **kwargs}
        if given[next(iter(known))] is None:
            raise TypeError(f"Lamb misses the argument '{next(iter(known))}'.")
        decay_filter = given.get("decay_filter")
        if old:
            given["learning_rate"] = _WarmUpAndDecay(
                given["start_learning_rate"],
                given["end_learning_rate"],
                given["decay_steps"],
                given["warmup_steps"],
                given["power"],
            )
        super().__init__(given["learning_rate"], params, given["weight_decay"])
        checked("Lamb", beta1=given["beta1"], beta2=given["beta2"], eps=given["eps"])
        self.beta1, self.beta2, self.eps = given["beta1"], given["beta2"], given["eps"]
        self.moments1, self.moments2 = self.slots("lamb_m"), self.slots("lamb_v")
        self._slots = [self.moments1, self.moments2]
        if decay_filter is not None and not self.is_group:
            self.decay_flags = tuple(
                bool(decay_filter(each)) and bool(given["weight_decay"]) for each in self.parameters
            )

    def _advance(self):
        core.assign(self.global_step, core.add(self.global_step, np.int32(1)))

    def construct(self, gradients):
        self.decays = self.decays_of_step()
        self.step(self.gradients_centralization(gradients))
        return True

    def begin_step(self):
        return (core.add(basic.cast(basic.reshape(self.global_step, ()), np.float32), np.float32(1)),)

    def update(self, i, p, g, lr, step):
        decay = self.decay_of(i)
        return updates.lamb(p, self.moments1[i], self.moments2[i], g, lr, self.beta1, self.beta2, self.eps, decay, step)


class LARS(Optimizer):
    """Scales the gradients of another optimizer by the ratio of norms; takes over its weight decay and loss scale. At level 0.5:
    (optimizer, epsilon, hyperpara, weight_decay, use_clip, decay_filter, lars_filter, loss_scale)."""

    def __init__(self, optimizer, epsilon=1e-5, coefficient=0.001, *args, **kwargs):
        Cell.__init__(self, auto_prefix=False)
        Validator.check_value_type("optimizer", optimizer, [Optimizer], "LARS")
        old = not level.at_least("1.1") or bool(
            {"hyperpara", "weight_decay", "decay_filter", "loss_scale"} & set(kwargs)
        )
        names = (
            ["weight_decay", "use_clip", "decay_filter", "lars_filter", "loss_scale"]
            if old
            else ["use_clip", "lars_filter"]
        )
        if len(args) > len(names) or set(kwargs) - {*names, "hyperpara"}:
            raise TypeError(
                f"LARS takes the arguments {['optimizer', 'epsilon', 'coefficient', *names]}, but got {args} and {kwargs}."
            )
        given = {**dict(zip(names, args)), **kwargs}
        checked("LARS", epsilon=epsilon)
        self.opt, self.epsilon = optimizer, epsilon
        self.coefficient = given.get("hyperpara", coefficient)
        Validator.check_value_type("coefficient", self.coefficient, [float], "LARS")
        self.use_clip = Validator.check_value_type("use_clip", given.get("use_clip", False), [bool], "LARS")
        self.parameters = optimizer.parameters
        wanted = given.get("lars_filter") or (lambda x: "LayerNorm" not in x.name and "bias" not in x.name)
        self.lars_flag = tuple(bool(wanted(each)) for each in self.parameters)
        self.decay_flags, self.decays = optimizer.decay_flags, list(optimizer.weight_decays)
        if "weight_decay" in given:
            decayed = given.get("decay_filter") or (lambda x: "LayerNorm" not in x.name and "bias" not in x.name)
            self.decays = [given["weight_decay"]] * len(self.parameters)
            self.decay_flags = tuple(bool(decayed(each)) for each in self.parameters)
        self.scale = given.get("loss_scale", optimizer.loss_scale)
        optimizer.exec_weight_decay, optimizer.need_scale = False, False
        optimizer.weight_decays = [0.0] * len(self.parameters)

    def construct(self, gradients):
        made = []
        for i, (p, g) in enumerate(zip(self.parameters, gradients)):
            g = g if self.scale == 1.0 else core.mul(g, basic.number(1.0 / self.scale, g))
            if self.lars_flag[i]:
                decay = self.decays[i] if self.decay_flags[i] else 0.0
                rate = self.opt.rates_of_step()[i] if self.use_clip else 1.0
                g = updates.lars(p, g, decay, rate, self.epsilon, self.coefficient, self.use_clip)
            made.append(g)
        return self.opt(tuple(made))


class RMSProp(Optimizer):
    """Gradients over the root of the mean of their squares."""

    def __init__(self, params, learning_rate=0.1, decay=0.9, momentum=0.0, epsilon=1e-10, use_locking=False, centered=False,
                 loss_scale=1.0, weight_decay=0.0):  # fmt: skip
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        checked("RMSProp", decay=decay, momentum=momentum, epsilon=epsilon)
        for name, value in (("use_locking", use_locking), ("centered", centered)):
            Validator.check_value_type(name, value, [bool], "RMSProp")
        self.decay, self.momentum, self.epsilon, self.centered = decay, momentum, epsilon, centered
        self.ms, self.moment = self.slots("mean_square", "ones"), self.slots("moment")
        self._slots = [self.ms, self.moment]
        if centered:
            self.mg = self.slots("mean_grad")
            self._slots.append(self.mg)

    def update(self, i, p, g, lr):
        mean = self.mg[i] if self.centered else None
        return updates.rms_prop(p, self.ms[i], self.moment[i], g, lr, self.decay, self.momentum, self.epsilon, mean)


class FTRL(Optimizer):
    """Follow the regularised leader."""

    def __init__(self, params, initial_accum=0.1, learning_rate=0.001, lr_power=-0.5, l1=0.0, l2=0.0, use_locking=False,
                 loss_scale=1.0, weight_decay=0.0):  # fmt: skip
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        if self.dynamic_lr or self.is_group_lr:
            raise ValueError("For 'FTRL', the 'learning_rate' must be one number for all parameters.")
        checked("FTRL", initial_accum=initial_accum, l1=l1, l2=l2)
        Validator.check_value_type("lr_power", lr_power, [float], "FTRL")
        Validator.check_number(lr_power, 0.0, Rel.LE, "lr_power", "FTRL")
        self.l1, self.l2, self.lr_power = l1, l2, lr_power
        self.moments, self.linear = self.slots("moments", initial_accum), self.slots("linear")
        self._slots = [self.moments, self.linear]

    def update(self, i, p, g, lr):
        return updates.ftrl(p, self.moments[i], self.linear[i], g, lr, self.l1, self.l2, self.lr_power)


class Adagrad(Optimizer):
    """Gradients over the root of the sum of their squares."""

    def __init__(self, params, accum=0.1, learning_rate=0.001, update_slots=True, loss_scale=1.0, weight_decay=0.0):
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        checked("Adagrad", accum=accum)
        self.update_slots = Validator.check_value_type("update_slots", update_slots, [bool], "Adagrad")
        self.accum = self.slots("accum", accum)
        self._slots = [self.accum]

    def update(self, i, p, g, lr):
        return updates.adagrad(p, self.accum[i], g, lr, self.update_slots)


class ProximalAdagrad(Optimizer):
    """Adagrad with shrinking by l1 and l2."""

    def __init__(
        self,
        params,
        accum=0.1,
        learning_rate=0.001,
        l1=0.0,
        l2=0.0,
        use_locking=False,
        loss_scale=1.0,
        weight_decay=0.0,
    ):
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        checked("ProximalAdagrad", accum=accum, l1=l1, l2=l2)
        self.l1, self.l2 = l1, l2
        self.accum = self.slots("accum", accum)
        self._slots = [self.accum]

    def update(self, i, p, g, lr):
        return updates.proximal_adagrad(p, self.accum[i], g, lr, self.l1, self.l2)


class Adadelta(Optimizer):
    """Steps in the ratio of two running means of squares."""

    def __init__(self, params, learning_rate=1.0, rho=0.9, epsilon=1e-6, loss_scale=1.0, weight_decay=0.0):
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        checked("Adadelta", rho=rho, epsilon=epsilon)
        self.rho, self.epsilon = rho, epsilon
        self.accum, self.accum_update = self.slots("accum"), self.slots("accum_update")
        self._slots = [self.accum, self.accum_update]

    def update(self, i, p, g, lr):
        return updates.ada_delta(p, self.accum[i], self.accum_update[i], g, lr, self.rho, self.epsilon)


class AdaMax(Optimizer):
    """Adam with the infinity norm."""

    def __init__(
        self, params, learning_rate=0.001, beta1=0.9, beta2=0.999, eps=1e-08, weight_decay=0.0, loss_scale=1.0
    ):
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        checked("AdaMax", beta1=beta1, beta2=beta2, eps=eps)
        self.beta1, self.beta2, self.eps = beta1, beta2, eps
        self.beta1_power = _number(1.0, "beta1_power")
        self.moment1, self.moment2 = self.slots("moment1"), self.slots("moment2")
        self._slots = [self.moment1, self.moment2]

    def begin_step(self):
        core.assign(self.beta1_power, core.mul(self.beta1_power, np.float32(self.beta1)))
        return (self.beta1_power,)

    def update(self, i, p, g, lr, power):
        return updates.ada_max(p, self.moment1[i], self.moment2[i], g, lr, self.beta1, self.beta2, self.eps, power)


class ASGD(Optimizer):
    """Averaged gradient descent."""

    def __init__(self, params, learning_rate=0.1, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0.0):
        super().__init__(learning_rate, params, weight_decay)
        for name, value in (("lambd", lambd), ("alpha", alpha), ("t0", t0)):
            Validator.check_value_type(name, value, [float], "ASGD")
        self.lambd, self.alpha, self.t0 = lambd, alpha, t0
        self.ax = self.slots("ax")
        self._slots = [self.ax]
        self.eta, self.mu = _number(float(self._first_rate()), "eta"), _number(1.0, "mu")

    def _first_rate(self):
        rate = self.rates[0]
        return rate(self.global_step).asnumpy() if isinstance(rate, Cell) else rate.asnumpy()

    def _advance(self):
        core.assign(self.global_step, core.add(self.global_step, np.int32(1)))
        step = core.add(basic.cast(basic.reshape(self.global_step, ()), np.float32), np.float32(0))
        lr = basic.reshape(self.rates_of_step()[0], ())
        below = core.add(core.mul(core.mul(step, lr), np.float32(self.lambd)), np.float32(1))
        core.assign(self.eta, core.div(lr, core.pow(below, np.float32(self.alpha))))
        late = core.maximum(core.sub(step, np.float32(self.t0)), np.float32(1))
        core.assign(self.mu, core.div(np.float32(1), late))

    def update(self, i, p, g, lr):
        keep = core.sub(np.float32(1), core.mul(self.eta, np.float32(self.lambd)))
        new = core.sub(updates.mul(p, keep), updates.mul(g, self.eta))
        return new, core.add(self.ax[i], updates.mul(core.sub(new, self.ax[i]), self.mu))


class Rprop(Optimizer):
    """Steps that grow while the sign of the gradient stays."""

    def __init__(self, params, learning_rate=0.1, etas=(0.5, 1.2), step_sizes=(1e-6, 50.0), weight_decay=0.0):
        super().__init__(learning_rate, params, weight_decay)
        for name, value in (("etas", etas), ("step_sizes", step_sizes)):
            Validator.check_value_type(name, value, [tuple], "Rprop")
            if len(value) != 2:
                raise ValueError(f"For 'Rprop', the '{name}' must have 2 numbers, but got {value}.")
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"For 'Rprop', the 'etas' must be below and above 1, but got {etas}.")
        self.etas, self.step_sizes = etas, step_sizes
        first = self.rates[0]
        rate = float((first(self.global_step) if isinstance(first, Cell) else first).asnumpy())
        self.prev, self.step_size = self.slots("prev"), self.slots("step_size", rate)
        self._slots = [self.prev, self.step_size]

    def update(self, i, p, g, lr):
        agree, zero = core.mul(g, self.prev[i]), basic.number(0, g)
        grown = core.select(core.less(agree, zero), basic.number(self.etas[0], g), basic.number(1, g))
        factor = core.select(core.greater(agree, zero), basic.number(self.etas[1], g), grown)
        size = core.clip(core.mul(self.step_size[i], factor), low=self.step_sizes[0], high=self.step_sizes[1])
        g = core.select(core.less(agree, zero), zero, g)
        return core.sub(p, core.mul(core.sign(g), size)), g, size


class AdaFactor(Optimizer):
    """Adam whose second moment is kept as rows and columns."""

    def __init__(self, params, learning_rate=None, eps=(1e-30, 1e-3), clip_threshold=1.0, decay_rate=0.8, beta1=0.9,
                 weight_decay=0.0, scale_parameter=True, relative_step=True, warmup_init=False, compression=False, loss_scale=1.0):  # fmt: skip
        if learning_rate is not None and relative_step:
            raise ValueError("For 'AdaFactor', the 'learning_rate' must be None when 'relative_step' is True.")
        if warmup_init and not relative_step:
            raise ValueError("For 'AdaFactor', 'warmup_init' needs 'relative_step'.")
        super().__init__(0.0 if learning_rate is None else learning_rate, params, weight_decay, loss_scale)
        for name, value in (("clip_threshold", clip_threshold), ("decay_rate", decay_rate), ("beta1", beta1)):
            Validator.check_value_type(name, value, [float], "AdaFactor")
        self.eps, self.clip_threshold, self.decay_rate, self.beta1 = eps, clip_threshold, decay_rate, beta1
        self.scale_parameter, self.relative_step, self.warmup_init = scale_parameter, relative_step, warmup_init
        zeros = [(p.name, p.shape) for p in self.parameters]
        self.rows = [
            self._state("exp_avg_sq_row", n, s[:-1] if len(s) > 1 else (1,), i) for i, (n, s) in enumerate(zeros)
        ]
        self.columns = [
            self._state("exp_avg_sq_col", n, s[:-2] + s[-1:] if len(s) > 1 else (1,), i)
            for i, (n, s) in enumerate(zeros)
        ]
        self.whole = [self._state("exp_avg_sq", n, s if len(s) < 2 else (1,), i) for i, (n, s) in enumerate(zeros)]
        self.exp_avg = self.slots("exp_avg")
        self._slots = [self.exp_avg, self.rows, self.columns, self.whole]

    def _state(self, prefix, name, shape, index):
        made = Parameter(Tensor(np.zeros(shape, np.float32)), name=f"{prefix}.{name}", requires_grad=False)
        made.owner = self.param_rank[index] if self.dev_num > 1 else None
        self.insert_param_to_cell(f"{prefix}_{index}", made)
        return made

    def _advance(self):
        core.assign(self.global_step, core.add(self.global_step, np.int32(1)))

    def begin_step(self):
        step = core.add(basic.cast(basic.reshape(self.global_step, ()), np.float32), np.float32(1))
        rate = None
        if self.relative_step:
            most = core.mul(step, np.float32(1e-6)) if self.warmup_init else np.float32(1e-2)
            rate = core.minimum(core.rsqrt(step), most)
        beta2 = core.sub(np.float32(1), core.pow(step, np.float32(-self.decay_rate)))
        return rate, beta2

    def update(self, i, p, g, lr, relative, beta2):
        rate = lr if relative is None else relative
        if self.scale_parameter:
            rate = core.mul(
                rate, core.maximum(core.sqrt(reductions.mean(core.square(p))), basic.number(self.eps[1], p))
            )
        square = core.add(core.square(g), basic.number(self.eps[0], g))
        row, column, whole = self.rows[i], self.columns[i], self.whole[i]
        if len(p.shape) > 1:
            row = updates.mixed(row, reductions.mean(square, -1), beta2)
            column = updates.mixed(column, reductions.mean(square, -2), beta2)
            of_rows = core.rsqrt(core.div(row, reductions.mean(row, -1, True)))
            step = core.mul(core.mul(basic.expand(of_rows, -1), basic.expand(core.rsqrt(column), -2)), g)
        else:
            whole = updates.mixed(whole, square, beta2)
            step = core.mul(core.rsqrt(whole), g)
        root = core.sqrt(reductions.mean(core.square(step)))
        step = core.div(
            step, core.maximum(core.div(root, basic.number(self.clip_threshold, root)), basic.number(1, root))
        )
        step = core.mul(step, rate)
        mean = updates.mixed(self.exp_avg[i], step, self.beta1)
        return core.sub(p, mean), mean, row, column, whole


__all__ = [
    "Momentum", "SGD", "Adam", "LazyAdam", "AdamOffload", "AdamWeightDecay", "AdamWeightDecayDynamicLR", "Lamb", "LARS", "RMSProp",
    "FTRL", "Adagrad", "ProximalAdagrad", "Adadelta", "AdaMax", "ASGD", "Rprop", "AdaFactor",
]  # fmt: skip
