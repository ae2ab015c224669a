"""Products of Jacobians and vectors of a network."""

from mindspore.nn.cell import Cell
from mindspore.ops.composite import transforms


class Jvp(Cell):
    """Jvp(fn): called with the inputs and their direction, (results, changes)."""

    def __init__(self, fn):
        super().__init__(auto_prefix=False)
        self.fn = fn

    def construct(self, *args):
        *inputs, v = args
        directions = v if isinstance(v, tuple) else (v,)
        if isinstance(v, tuple) == (len(inputs) == 1) or len(directions) != len(inputs):
            raise TypeError(f"For 'Jvp', the direction must be a Tensor for each of the {len(inputs)} inputs, in a tuple where there are several.")
        return transforms._jvp(self.fn, tuple(inputs), directions, False)


class Vjp(Cell):
    """Vjp(fn): called with the inputs and the gradients of the results, (results, gradients of the inputs)."""

    def __init__(self, fn):
        super().__init__(auto_prefix=False)
        self.fn = fn

    def construct(self, *args):
        *inputs, v = args
        return transforms._vjp(self.fn, tuple(inputs), v)
