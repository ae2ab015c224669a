"""Gradients of operands that were broadcast."""

from mindspore.ops import operations as P


def _within(grad, shape):
    """The sums of grad that shape's elements gave more than once."""
    own = (1,) * (len(grad.shape) - len(shape)) + tuple(shape)
    axes = tuple(axis for axis, (m, n) in enumerate(zip(own, grad.shape)) if m != n)
    return P.Reshape()(P.ReduceSum(True)(grad, axes) if axes else grad, tuple(shape))


def binop_grad_common(x, y, dx, dy):
    """The gradients dx and dy in the shapes of x and y."""
    return _within(dx, x.shape), _within(dy, y.shape)
