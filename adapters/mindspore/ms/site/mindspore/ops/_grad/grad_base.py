"""bprop_getters: the gradient of a primitive of one's own.

    @bprop_getters.register(MyPrimitive)
    def get_bprop(self):
        def bprop(x, y, out, dout):
            return dx, dy
        return bprop
"""

from mindspore import context
from mindspore.common.tensor import Tensor

from cairn.ms import core, gradient
from cairn.ms.refusal import WrongGradients


class BpropRegistry:
    """{primitive class: function that makes its gradient}"""

    def __init__(self):
        self.getters = {}

    def register(self, primitive):
        """Decorates the getter of a class of primitives, whose calls have the gradient from now on."""

        def mark(getter):
            self.getters[primitive] = getter
            _give(primitive, getter)
            return getter

        return mark

    def get(self, primitive, default=None):
        return self.getters.get(primitive if isinstance(primitive, type) else type(primitive), default)


def _give(primitive, getter):
    computes = getattr(primitive.__call__, "computes", primitive.__call__)

    def call(self, *inputs):
        def backward(given, results, gradients):
            made = core.prepared(getter(self))(*given, results, gradients)
            return checked(self.name, given, made if isinstance(made, tuple) else (made,))

        return gradient.with_bprop(core.prepared(computes.__get__(self)), backward, inputs)

    call.computes = computes
    primitive.__call__ = call


def checked(name, inputs, gradients):
    """The gradients, which with check_bprop must be like the inputs."""
    if len(gradients) != len(inputs):
        if context.get_context("check_bprop"):
            raise ValueError(f"For the bprop of '{name}', the number of gradients should be {len(inputs)}, but got {len(gradients)}.")
        gradients = (*gradients, *[None] * (len(inputs) - len(gradients)))
    if not context.get_context("check_bprop"):
        return gradients
    for i, (x, gradient) in enumerate(zip(inputs, gradients)):
        if not isinstance(x, Tensor):
            continue
        if isinstance(gradient, Tensor) and gradient.shape != x.shape:
            raise WrongGradients(f"For the bprop of '{name}', the {i}th gradient should have the same shape as the {i}th arg, {x.shape}, but got {gradient.shape}.")
        if not isinstance(gradient, Tensor) or gradient.dtype != x.dtype:
            raise TypeError(f"For the bprop of '{name}', the {i}th gradient should be a Tensor of {x.dtype}, but got {gradient}.")
    return gradients


bprop_getters = bprops = BpropRegistry()


def get_bprop_fn(prim):
    """The getter of a primitive, or None."""
    return bprop_getters.get(prim)
