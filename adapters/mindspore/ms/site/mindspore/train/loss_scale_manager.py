"""Loss scales: fixed, and moved by overflow."""

from mindspore import nn

__all__ = ["DynamicLossScaleManager", "FixedLossScaleManager", "LossScaleManager"]


class LossScaleManager:
    """Base: a scale, how it changes, and the cell that changes it inside a step."""

    def get_loss_scale(self):
        """The scale now."""

    def update_loss_scale(self, overflow):
        """Changes the scale after a step."""

    def get_update_cell(self):
        """The cell that does both in a step, or None."""


class FixedLossScaleManager(LossScaleManager):
    """One scale; with drop_overflow_update a step that overflows changes nothing."""

    def __init__(self, loss_scale=128.0, drop_overflow_update=True):
        if isinstance(loss_scale, bool) or not isinstance(loss_scale, (int, float)):
            raise TypeError(f"For 'FixedLossScaleManager', the argument 'loss_scale' must be a number, but got {type(loss_scale)}.")
        if loss_scale < 1:
            raise ValueError(f"The argument 'loss_scale' must be >= 1, but got {loss_scale}")
        self._loss_scale, self._drop_overflow_update = loss_scale, drop_overflow_update

    def get_loss_scale(self):
        return self._loss_scale

    def get_drop_overflow_update(self):
        """Whether a step that overflows is left out."""
        return self._drop_overflow_update

    def update_loss_scale(self, overflow):
        """The scale is fixed."""

    def get_update_cell(self):
        return nn.FixedLossScaleUpdateCell(self._loss_scale) if self._drop_overflow_update else None


class DynamicLossScaleManager(LossScaleManager):
    """A scale that overflow divides, and that grows after scale_window steps without it."""

    def __init__(self, init_loss_scale=2**24, scale_factor=2, scale_window=2000):
        if isinstance(init_loss_scale, bool) or not isinstance(init_loss_scale, (int, float)):
            raise TypeError(f"For 'DynamicLossScaleManager', the argument 'init_loss_scale' must be a number, but got {type(init_loss_scale)}.")
        if init_loss_scale < 1:
            raise ValueError(f"The argument 'init_loss_scale' must be > 1, but got {init_loss_scale}")
        for name, value in (("scale_factor", scale_factor), ("scale_window", scale_window)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"For 'DynamicLossScaleManager', the argument '{name}' must be int, but got {type(value)}.")
            if value <= 0:
                raise ValueError(f"For 'DynamicLossScaleManager', the argument '{name}' must be > 0, but got {value}.")
        self.loss_scale, self.scale_factor, self.scale_window = init_loss_scale, scale_factor, scale_window
        self.increase_ratio, self.decrease_ratio = scale_factor, 1 / scale_factor
        self.cur_iter, self.last_overflow_iter, self.bad_step_max, self.bad_step = 1, 0, 1000, 0

    def get_loss_scale(self):
        return self.loss_scale

    def get_drop_overflow_update(self):
        """A step that overflows is left out."""
        return True

    def update_loss_scale(self, overflow):
        if not isinstance(overflow, bool):
            raise TypeError(f"For 'DynamicLossScaleManager.update_loss_scale', the argument 'overflow' must be bool, but got {type(overflow)}.")
        if overflow:
            self.loss_scale = max(self.loss_scale * self.decrease_ratio, 1)
            self.last_overflow_iter = self.cur_iter
            self.bad_step += 1
        else:
            if (self.cur_iter - self.last_overflow_iter) % self.scale_window == 0:
                self.loss_scale *= self.increase_ratio
            self.bad_step = 0
        if self.bad_step > self.bad_step_max:
            raise RuntimeError("Dynamic loss scale Continuous overflow ({}) times, has exceeded maximum threshold.".format(self.bad_step))
        self.cur_iter += 1

    def get_update_cell(self):
        return nn.DynamicLossScaleUpdateCell(self.loss_scale, self.scale_factor, self.scale_window)
