"""Training steps with a loss scale, and cells that change it."""

import numpy as np
from cairn.ms import core, ranks
from cairn.ms.numerics import basic, collectives

from mindspore.common import dtype as mstype
from mindspore.common.parameter import Parameter
from mindspore.common.tensor import Tensor
from mindspore.nn.cell import Cell
from mindspore.nn.wrap.cell_wrapper import TrainOneStepCell
from mindspore.ops import operations as P


class DynamicLossScaleUpdateCell(Cell):
    """Overflow divides the scale, at least to 1; scale_window steps without one multiply it. Returns whether it overflowed."""

    def __init__(self, loss_scale_value, scale_factor, scale_window):
        super().__init__()
        self.scale_window, self.loss_scale_value = scale_window, loss_scale_value
        self.scale_factor = scale_factor
        self.cur_iter = Parameter(Tensor(1, mstype.int32), name="current_iterator_step", requires_grad=False)
        self.last_overflow_iter = Parameter(
            Tensor(0, mstype.int32), name="last_overflow_iterator_step", requires_grad=False
        )

    def get_loss_scale(self):
        return self.loss_scale_value

    def construct(self, loss_scale, overflow):
        overflow = basic.reshape(basic.cast(overflow, np.bool_), ())
        factor, one = np.float32(self.scale_factor), np.float32(1)
        lower = core.maximum(core.div(loss_scale, factor), one)
        scale = core.select(overflow, lower, loss_scale)
        last = core.select(overflow, self.cur_iter, self.last_overflow_iter)
        due = core.equal(core.sub(self.cur_iter, last), np.int32(self.scale_window))
        scale = core.select(due, core.mul(scale, factor), scale)
        core.assign(self.last_overflow_iter, core.select(due, self.cur_iter, last))
        core.assign(loss_scale, basic.reshape(scale, loss_scale.shape))
        core.assign(self.cur_iter, core.add(self.cur_iter, np.int32(1)))
        return overflow


class FixedLossScaleUpdateCell(Cell):
    """Keeps the scale. Returns whether it overflowed."""

    def __init__(self, loss_scale_value):
        super().__init__()
        self.loss_scale_value = loss_scale_value

    def get_loss_scale(self):
        return self.loss_scale_value

    def construct(self, _, overflow):
        return overflow


class TrainOneStepWithLossScaleCell(TrainOneStepCell):
    """One step whose loss is scaled: (loss, overflow, scale). A step that overflows changes no parameter."""

    _held = {"base": lambda self: Tensor(1, mstype.float32), "reduce_sum": lambda self: P.ReduceSum(keep_dims=False),
             "less_equal": lambda self: P.LessEqual(), "reduce_all": lambda self: P.ReduceAll(keep_dims=False),
             "reduce_any": lambda self: P.ReduceAny(keep_dims=False), "logic_not": lambda self: P.LogicalNot()}  # fmt: skip

    def __init__(self, network, optimizer, scale_sense=None, scale_update_cell=None):
        super().__init__(network, optimizer, sens=None)
        self.is_distributed = self.parallel_mode != "stand_alone" and ranks.several()
        scale_sense = scale_sense if scale_update_cell is None else scale_update_cell
        self.loss_scaling_manager = None
        if isinstance(scale_sense, Cell):
            self.loss_scaling_manager = scale_sense
            value = Tensor(scale_sense.get_loss_scale(), mstype.float32)
        elif isinstance(scale_sense, Tensor):
            if scale_sense.shape not in ((), (1,)):
                raise ValueError(
                    f"For 'TrainOneStepWithLossScaleCell', the 'scale_sense' must be one number, but got shape {scale_sense.shape}."
                )
            value = Tensor(scale_sense.asnumpy(), mstype.float32)
        else:
            raise TypeError(
                f"For 'TrainOneStepWithLossScaleCell', the 'scale_sense' must be Cell or Tensor, but got {type(scale_sense).__name__}."
            )
        self.scale_sense = Parameter(value, name="scale_sense", requires_grad=False)

    def set_sense_scale(self, sens):
        """Another scale: a number or Tensor."""
        if not isinstance(sens, Tensor):
            raise TypeError(
                f"For 'TrainOneStepWithLossScaleCell.set_sense_scale', the 'sens' must be a Tensor, but got {type(sens).__name__}."
            )
        self.scale_sense.set_data(sens)

    def start_overflow_check(self, pre_cond, compute_input):
        """(status, compute_input): overflow is found in the gradients."""
        return basic.filled((8,), 0, np.float32), compute_input

    def get_overflow_status(self, status, compute_output):
        """Whether a gradient is not finite, on any rank."""
        found = overflowed(compute_output)
        if not self.is_distributed:
            return found
        return basic.cast(collectives.all_reduce(basic.cast(found, np.int32), "max", name="overflow"), np.bool_)

    def process_loss_scale(self, overflow):
        """Changes the scale by the manager."""
        return overflow if self.loss_scaling_manager is None else self.loss_scaling_manager(self.scale_sense, overflow)

    def construct(self, *inputs):
        scale = basic.reshape(core.identity(self.scale_sense), ())
        loss, gradients = self.value_and_gradients(inputs, scale)
        gradients = tuple(core.div(g, basic.cast(scale, basic.nptype(g))) for g in gradients)
        overflow = self.process_loss_scale(self.get_overflow_status(None, gradients))
        self.guarded(gradients, overflow)
        return loss, overflow, scale

    def guarded(self, gradients, overflow):
        """The optimizer's step; what it writes stays as it was where it overflowed."""
        if core.here.recorder is None:
            if not bool(overflow):
                self.optimizer(gradients)
            return
        written = [p for p in self.optimizer.get_parameters() if p.is_here]
        before = [core.identity(p) for p in written]
        self.optimizer(gradients)
        for p, old in zip(written, before):
            core.assign(p, core.select(overflow, old, core.identity(p)))


def overflowed(gradients):
    """Whether an element of a gradient is not finite."""
    finite = None
    for each in gradients:
        whole = (
            core.reduce_all(core.is_finite(each), axes=list(range(len(each.shape))), keep_dims=False)
            if len(each.shape)
            else core.is_finite(each)
        )
        finite = whole if finite is None else core.and_(finite, whole)
    return core.not_(finite)


__all__ = ["TrainOneStepWithLossScaleCell", "DynamicLossScaleUpdateCell", "FixedLossScaleUpdateCell"]
