"""Optimizer: parameters in groups, learning rates of all kinds, weight decay, loss scale."""

from collections.abc import Iterable

import numpy as np
from cairn.ms import core, modes, ranks
from cairn.ms.numerics import basic, collectives, updates
from cairn.ms.refusal import Wrong
from mindspore._checkparam import Validator
from mindspore.common import dtype as mstype
from mindspore.common.parameter import Parameter, ParameterTuple
from mindspore.common.tensor import Tensor
from mindspore.nn.cell import Cell
from mindspore.nn.layer.container import CellList
from mindspore.nn.learning_rate_schedule import LearningRateSchedule
from mindspore.ops import composite
from mindspore.ops import operations as P
from mindspore.parallel import _utils as parallel

_KEYS = ("params", "lr", "weight_decay", "grad_centralization", "order_params")


class _ListedRate(LearningRateSchedule):
    """Element global_step of a list; the last one behind its end."""

    def __init__(self, values, name):
        super().__init__()
        self.learning_rate = Parameter(values, name=name)

    def construct(self, global_step):
        last = np.int32(self.learning_rate.shape[0] - 1)
        index = basic.reshape(core.minimum(global_step, last), ())
        return core.gather(self.learning_rate, index, axis=0)


class _HeldRate(LearningRateSchedule):
    """One number, among rates that depend on the step."""

    def __init__(self, value):
        super().__init__()
        self.learning_rate = value

    def construct(self, global_step):
        return self.learning_rate


def _rate_kind(rate, owner):
    """A number as float, a list as array, or a schedule; raises for anything else."""
    if isinstance(rate, LearningRateSchedule):
        return rate
    if isinstance(rate, bool):
        raise TypeError(
            f"For '{owner}', the 'learning_rate' must be a number, Tensor, Iterable or LearningRateSchedule, but got bool."
        )
    if isinstance(rate, (int, float)):
        if rate < 0:
            raise ValueError(f"For '{owner}', the 'learning_rate' must be greater than or equal to 0, but got {rate}.")
        return float(rate)
    if isinstance(rate, Tensor):
        rate = rate.asnumpy()
        if rate.ndim == 0:
            return float(rate)
    elif isinstance(rate, str):  # of its letters 1.10 makes a list
        raise Wrong(f"For '{owner}', the 'learning_rate' must be a number, Tensor, Iterable or LearningRateSchedule, but got the text '{rate}'.")
    elif isinstance(rate, Iterable) and not isinstance(rate, dict):
        rate = np.asarray(list(rate))
    else:
        raise TypeError(
            f"For '{owner}', the 'learning_rate' must be int, float, Tensor, Iterable or LearningRateSchedule, but got {type(rate).__name__}."
        )
    if rate.ndim != 1 or rate.dtype.kind not in "fiu":
        raise ValueError(
            f"For '{owner}', a 'learning_rate' of several numbers must have 1 dimension, but got {rate.ndim}."
        )
    return rate.astype(np.float32)


def _decay_kind(decay, owner):
    """A number of 0 or more, or a Cell of the step."""
    if isinstance(decay, Cell):
        return decay
    if isinstance(decay, bool) or not isinstance(decay, (int, float)):
        raise TypeError(
            f"For '{owner}', the 'weight_decay' must be int, float or Cell, but got {type(decay).__name__}."
        )
    if decay < 0:
        raise ValueError(f"For '{owner}', the 'weight_decay' must be greater than or equal to 0, but got {decay}.")
    return float(decay)


def not_normalisation(parameter):
    """Whether weight decay is for a parameter, by its name."""
    return "beta" not in parameter.name and "gamma" not in parameter.name


class Optimizer(Cell):
    """The base: a subclass has update(), which makes new values of a parameter and its slots, or a construct() of its own."""

    _held = {"global_step_increase_tensor": lambda self: Tensor(1, mstype.int32), "assignadd": lambda self: P.AssignAdd(),
             "cast": lambda self: P.Cast()}  # fmt: skip
    _support_parallel_optimizer = False
    map_, map_reverse = composite.Map(), composite.Map(None, True)
    hyper_map, hyper_map_reverse = composite.HyperMap(), composite.HyperMap(None, True)

    def __init__(self, learning_rate, parameters, weight_decay=0.0, loss_scale=1.0):
        super().__init__(auto_prefix=False)
        owner = type(self).__name__
        parameters = self._listed(parameters, owner)
        self.loss_scale = self._checked_scale(loss_scale, owner)
        self.reciprocal_scale = Tensor(1.0 / self.loss_scale, mstype.float32)
        self.need_scale = self.loss_scale != 1.0
        self.is_group = isinstance(parameters[0], dict)
        self.global_step = Parameter(Tensor(np.zeros(1, np.int32)), name="global_step", requires_grad=False)
        self.is_group_lr = self.is_group and any("lr" in each for each in parameters)
        self.is_group_params_ordered = self.is_group and any("order_params" in each for each in parameters)
        self._slots, self.exec_weight_decay = [], True
        if self.is_group:
            chosen = self._of_groups(parameters, learning_rate, weight_decay, owner)
        else:
            kind, decay = self._rate(learning_rate, "learning_rate", owner), _decay_kind(weight_decay, owner)
            chosen = [(each, kind, decay, False) for each in parameters]
        self._settle(chosen, owner)

    # ---- arguments ----

    @staticmethod
    def _listed(parameters, owner):
        if parameters is None:
            raise ValueError(f"For '{owner}', the 'params' cannot be None.")
        if not isinstance(parameters, Iterable) or isinstance(parameters, (str, Tensor)):
            raise TypeError(f"For '{owner}', the 'params' must be Iterable, but got {type(parameters).__name__}.")
        parameters = list(parameters)
        if not parameters:
            raise ValueError(f"For '{owner}', the 'params' must not be empty: Optimizer got an empty parameter list")
        kind = dict if isinstance(parameters[0], dict) else Parameter
        for each in parameters:
            if not isinstance(each, kind):
                raise TypeError(
                    f"For '{owner}', all elements of 'params' must be of type Parameter or dict, but got {type(each).__name__}."
                )
        return parameters

    @staticmethod
    def _checked_scale(loss_scale, owner):
        if isinstance(loss_scale, int) and not isinstance(loss_scale, bool):
            loss_scale = float(loss_scale)
        Validator.check_value_type("loss_scale", loss_scale, [float], owner)
        return Validator.check_positive_float(loss_scale, "loss_scale", owner)

    def _rate(self, rate, name, owner):
        """A Parameter of one number, or a Cell of the step."""
        kind = _rate_kind(rate, owner)
        if isinstance(kind, LearningRateSchedule):
            return kind
        if isinstance(kind, np.ndarray):
            return _ListedRate(Tensor(kind), name)
        made = Parameter(Tensor(kind, mstype.float32), name=name)
        return _HeldRate(made) if self.is_group_lr and self.dynamic_lr else made

    def _look_at_rates(self, groups, learning_rate, owner):
        """Whether a rate of a group depends on the step; lists of rates have one length."""
        kinds = [_rate_kind(rate, owner) for rate in [learning_rate, *(each["lr"] for each in groups if "lr" in each)]]
        if len({len(each) for each in kinds if isinstance(each, np.ndarray)}) > 1:
            raise ValueError(f"For '{owner}', the lists of learning rates of groups must be of the same size.")
        self.dynamic_lr = any(not isinstance(each, float) for each in kinds)

    def _of_groups(self, groups, learning_rate, weight_decay, owner):
        self._look_at_rates(groups, learning_rate, owner)
        default = self._rate(learning_rate, "learning_rate", owner)
        chosen, order, seen = [], None, set()
        for number, group in enumerate(groups):
            for key in group:
                if key not in _KEYS:
                    raise KeyError(f"For '{owner}', the keys of a group must be in {_KEYS}, but got {key}.")
            if "order_params" in group:
                if len(group) > 1:
                    raise ValueError(f"For '{owner}', a group with 'order_params' can have no other key.")
                if order is not None:
                    raise ValueError(f"For '{owner}', 'order_params' can be there once.")
                order = list(group["order_params"])
                continue
            if not group["params"]:
                raise ValueError(f"For '{owner}', a group of parameters must have 'params' that are not empty.")
            rate = self._rate(group["lr"], f"learning_rate_group_{number}", owner) if "lr" in group else default
            decay = _decay_kind(group.get("weight_decay", weight_decay), owner)
            for each in self._listed(group["params"], owner):
                if id(each) in seen:
                    raise RuntimeError(f"For '{owner}', the parameter {each.name} is there twice.")
                seen.add(id(each))
                chosen.append((each, rate, decay, bool(group.get("grad_centralization", False))))
        if order is not None:
            places = {id(each): i for i, each in enumerate(order)}
            if len(order) != len(chosen) or any(id(each[0]) not in places for each in chosen):
                raise ValueError(f"For '{owner}', 'order_params' must hold all parameters of the groups.")
            chosen.sort(key=lambda each: places[id(each[0])])
        return chosen

    def _settle(self, chosen, owner):
        """Keeps what is known of each parameter: its rate, decay and whether its gradient is centred."""
        parameters = [each[0] for each in chosen]
        names = set()
        for each in parameters:
            if each.name in names:
                raise ValueError(f"For '{owner}', the name '{each.name}' of a parameter is there twice.")
            names.add(each.name)
        self.parameters = ParameterTuple(parameters)
        self._parameters = self.params = self.parameters
        self.param_length = len(parameters)
        rates = [each[1] for each in chosen]
        self.dynamic_lr = any(isinstance(each, Cell) for each in rates)
        different = list({id(each): each for each in rates}.values())
        self.rates, self._own_rates = rates, different
        if not self.is_group_lr:
            self.learning_rate = rates[0]
        else:
            self.learning_rate = CellList(rates, auto_prefix=False) if self.dynamic_lr else ParameterTuple(rates)
        self.weight_decays = [each[2] for each in chosen]
        self.dynamic_weight_decay = any(isinstance(each, Cell) for each in self.weight_decays)
        for i, each in enumerate({id(d): d for d in self.weight_decays if isinstance(d, Cell)}.values()):
            setattr(self, f"weight_decay_cell_{i}", each)
        held = [each if isinstance(each, Cell) else Tensor(each * self.loss_scale, mstype.float32) for each in self.weight_decays]
        decayed = [isinstance(each, Cell) or each > 0 for each in self.weight_decays]
        self.weight_decay = tuple(held) if self.is_group else held[0]
        self.decay_flags = tuple(decayed) if self.is_group else tuple(map(not_normalisation, parameters))
        self.exec_weight_decay = any(decayed)
        self.grad_centralization_flags = tuple(each[3] for each in chosen)
        self._spread()

    def _spread(self):
        """With enable_parallel_optimizer each rank updates a part of the parameters, has the state of these alone, and tells the others."""
        self.use_parallel = parallel._get_enable_parallel_optimizer() and parallel._get_parallel_mode() == "data_parallel"
        if parallel._get_enable_parallel_optimizer() and not self.use_parallel:
            raise RuntimeError(f"Parallel optimizer is not supported in {parallel._get_parallel_mode()}.")
        self.dev_num, rank = (ranks.group().size, ranks.group().rank) if self.use_parallel else (1, 0)
        if self.dev_num > self.param_length:
            raise RuntimeError(f"Parallel optimizer can not be applied in the case Number of parameters "
                               f"{self.param_length} < Number of devices {self.dev_num}")  # fmt: skip
        self.param_rank = tuple(i % self.dev_num for i in range(self.param_length))
        self.optim_filter = tuple(each == rank for each in self.param_rank)

    # ---- what subclasses use ----

    def slots(self, prefix, init="zeros"):
        """Parameters like the optimised ones, named `prefix.name`; those of other ranks' parameters take no memory until they are written."""
        made = self.parameters.clone(prefix, init)
        if self.dev_num > 1:
            for each, rank, own in zip(made, self.param_rank, self.optim_filter):
                each.owner = rank
                if not own:
                    each._array = np.zeros(each.shape, basic.nptype(each))
        return made

    def _advance(self):
        if self.dynamic_lr or self.dynamic_weight_decay:
            core.assign(self.global_step, core.add(self.global_step, np.int32(1)))

    def rates_of_step(self):
        """The learning rate of each parameter."""
        known = {id(each): each(self.global_step) if isinstance(each, Cell) else each for each in self._own_rates}
        return [known[id(each)] for each in self.rates]

    def get_lr(self):
        """The learning rate of this step, a tuple of them for groups that have their own; counts the step."""
        rates = self.rates_of_step()
        self._advance()
        return tuple(rates) if self.is_group_lr else rates[0]

    def get_weight_decay(self):
        """The weight decay of this step times the loss scale, a tuple of them for groups."""
        if not self.dynamic_weight_decay:
            return self.weight_decay
        made = tuple(
            core.mul(each(self.global_step), np.float32(self.loss_scale)) if isinstance(each, Cell) else each
            for each in (self.weight_decay if self.is_group else [self.weight_decay])
        )
        return made if self.is_group else made[0]

    def decay_of(self, i):
        """The weight decay of a parameter in this step, None where it has none; after `decays` were set for the step."""
        decay = self.decays[i] if self.decay_flags[i] else None
        return decay if isinstance(decay, Tensor) or decay else None

    def decays_of_step(self):
        """The weight decay of each parameter in this step."""
        known = {}
        for each in self.weight_decays:
            if id(each) not in known:
                known[id(each)] = each(self.global_step) if isinstance(each, Cell) else each
        return [known[id(each)] for each in self.weight_decays]

    def get_lr_parameter(self, param):
        """The Parameter, or Cell, that is the learning rate of a parameter or of each of a list."""
        many = isinstance(param, (list, tuple))
        found = []
        for each in param if many else [param]:
            if not isinstance(each, Parameter):
                raise TypeError(
                    f"For 'get_lr_parameter', the 'param' must be a Parameter, but got {type(each).__name__}."
                )
            index = [i for i, own in enumerate(self.parameters) if own.name == each.name]
            if not index:
                raise ValueError(f"For 'get_lr_parameter', the parameter {each.name} is not optimised here.")
            rate = self.rates[index[0]]
            found.append(rate.learning_rate if isinstance(rate, (_ListedRate, _HeldRate)) else rate)
        return found if many else found[0]

    def decay_weight(self, gradients):
        """Gradients plus decay * loss_scale * parameter where it is decayed."""
        if not self.exec_weight_decay:
            return gradients
        made = []
        for p, g, decay, on in zip(self.parameters, gradients, self.decays_of_step(), self.decay_flags):
            if on and (isinstance(decay, Tensor) or decay):
                rate = (
                    core.mul(decay, np.float32(self.loss_scale))
                    if isinstance(decay, Tensor)
                    else decay * self.loss_scale
                )
                g = core.add(g, updates.same(updates.mul(p, rate), g))
            made.append(g)
        return tuple(made)

    unique = True  # rows of sparse gradients are added up before an update

    @property
    def target(self):
        """Where rows of sparse gradients would be updated: all is here."""
        return self.__dict__.get("_target", "Ascend")

    @target.setter
    def target(self, value):
        if not isinstance(value, str):
            raise TypeError(f"The value must be str type, but got value type is {type(value)}")
        if value not in ("CPU", "Ascend", "GPU"):
            raise ValueError(f"The value must be 'CPU', 'Ascend' or 'GPU', but got value {value}")
        self.__dict__["_target"] = value

    def gradients_centralization(self, gradients):
        """Gradients of convolutions less their mean over all axes but the first, where the group says so."""
        if not any(self.grad_centralization_flags):
            return gradients
        return tuple(
            core.sub(g, core.reduce_mean(g, axes=list(range(1, len(g.shape))), keep_dims=True))
            if on and len(g.shape) > 3
            else g
            for g, on in zip(gradients, self.grad_centralization_flags)
        )

    def scale_grad(self, gradients):
        """Gradients over the loss scale."""
        if not self.need_scale:
            return gradients
        scale = self.reciprocal_scale
        if not isinstance(scale, Tensor):
            return tuple(core.mul(g, basic.number(scale, g)) for g in gradients)
        return tuple(core.mul(g, basic.cast(scale, basic.nptype(g))) for g in gradients)

    def flatten_gradients(self, gradients):
        return gradients

    # ---- the step ----

    def begin_step(self):
        """What a subclass computes once in each step and hands to update()."""
        return ()

    def update(self, i, p, g, lr, *of_step):
        """New values: of the parameter, then of its slots."""
        raise NotImplementedError

    def __call__(self, *args, **kwargs):
        if core.here.recorder is None and modes.mode == modes.PYNATIVE and type(self).__module__.startswith("mindspore."):
            return core.graph_entry(self, args, kwargs)  # one compiled function eagerly, too
        return super().__call__(*args, **kwargs)

    def _compute_in(self, floats):
        """Weights are written as they are."""

    def capture_key(self):
        """The numbers that a compiled step holds as constants."""
        return tuple([(name, x) for name, x in self.__dict__.items() if type(x) in (bool, int, float, str)])

    def construct(self, gradients=None):
        if type(self) is Optimizer:
            raise NotImplementedError("the method 'construct' of Optimizer is what a subclass defines")
        gradients = self.scale_grad(self.gradients_centralization(self.decay_weight(gradients)))
        self.step(gradients)
        return True

    def step(self, gradients):
        rates = self.rates_of_step()
        of_step = self.begin_step()
        for i, (p, g) in enumerate(zip(self.parameters, gradients)):
            if not self.optim_filter[i]:
                continue
            values = self.update(i, p, updates.same(g, p), rates[i], *of_step)
            for target, value in zip((p, *(slot[i] for slot in self._slots)), values):
                core.assign(target, value)
        self._advance()
        if self.dev_num > 1:
            self.broadcast_params(True)

    def broadcast_params(self, optim_result):
        """Gives all ranks the parameters that each has updated, those of one rank and element type together."""
        for root in range(self.dev_num):
            own = [p for p, rank in zip(self.parameters, self.param_rank) if rank == root]
            for dtype in dict.fromkeys(map(basic.nptype, own)):
                alike = [p for p in own if basic.nptype(p) == dtype]
                flat = collectives.broadcast(core.concat(*[basic.reshape(p, (-1,)) for p in alike], axis=0), root)
                parts = basic.split(flat, 0, [int(np.prod(p.shape)) for p in alike])
                for p, part in zip(alike, parts):
                    core.assign(p, basic.reshape(part, tuple(p.shape)))
        return optim_result


def checked(owner, **values):
    """Numbers that must be floats in [0, 1) ("beta..."), above 0 ("eps...") or 0 or more."""
    for name, value in values.items():
        Validator.check_value_type(name, value, [float], owner)
        if name.startswith("beta"):
            if not 0.0 <= value < 1.0 or (value == 0.0 and owner.startswith("Adam")):
                raise ValueError(f"For '{owner}', the '{name}' must be in range (0.0, 1.0), but got {value}.")
        elif name.startswith("eps"):
            Validator.check_positive_float(value, name, owner)
        else:
            Validator.check_non_negative_float(value, name, owner)


__all__ = ["Optimizer"]
