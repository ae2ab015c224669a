"""Update rules of optimisers: new values of a parameter and its slots, from numbers that are tensors or Python's."""

from cairn.ms import core
from cairn.ms.numerics.basic import nptype, number


def of(value, like):
    """A number or tensor as an operand beside `like`."""
    if not hasattr(value, "shape"):
        return number(value, like)
    return value if nptype(value) == nptype(like) else core.cast(value, dtype=nptype(like))


def add(x, y):
    return core.add(of(x, y) if hasattr(y, "shape") else x, of(y, x) if hasattr(x, "shape") else y)


def sub(x, y):
    return core.sub(of(x, y) if hasattr(y, "shape") else x, of(y, x) if hasattr(x, "shape") else y)


def mul(x, y):
    return core.mul(of(x, y) if hasattr(y, "shape") else x, of(y, x) if hasattr(x, "shape") else y)


def div(x, y):
    return core.div(of(x, y) if hasattr(y, "shape") else x, of(y, x) if hasattr(x, "shape") else y)


def one_less(x):
    return 1 - x if not hasattr(x, "shape") else core.sub(number(1, x), x)


def mixed(old, new, rate):
    """old * rate + new * (1 - rate)"""
    return core.add(mul(old, rate), mul(new, of(one_less(rate), new)))


def momentum(p, v, g, lr, rate, nesterov=False):
    v = core.add(mul(v, rate), g)
    step = core.add(g, mul(v, rate)) if nesterov else v
    return core.sub(p, mul(step, lr)), v


def sgd(p, accum, stat, g, lr, rate, dampening, decay, nesterov):
    """stat is 1 before the first step, which takes the gradient as it is, and 0 from then on."""
    if decay:
        g = core.add(g, mul(p, decay))
    first = core.greater(stat, number(0, stat))
    accum = core.select(first, g, core.add(mul(accum, rate), mul(g, 1 - dampening)))
    step = core.add(g, mul(accum, rate)) if nesterov else accum
    return core.sub(p, mul(step, lr)), accum, core.mul(stat, number(0, stat))


def adam(p, m, v, g, lr, beta1, beta2, epsilon, power1, power2, nesterov=False, largest=None):
    """With `largest`, the running maximum of v (AMSGrad), this stands in the root, and comes back as a third slot."""
    m, v = mixed(m, g, beta1), mixed(v, core.square(g), beta2)
    rate = div(mul(core.sqrt(one_less(of(power2, p))), lr), one_less(of(power1, p)))
    root = v if largest is None else core.maximum(largest, v)
    step = mixed(m, g, beta1) if nesterov else m
    p = core.sub(p, div(mul(step, rate), core.add(core.sqrt(root), of(epsilon, root))))
    return (p, m, v) if largest is None else (p, m, v, root)


def adam_weight_decay(p, m, v, g, lr, beta1, beta2, epsilon, decay=None):
    """Without bias correction; decay None for none."""
    m, v = mixed(m, g, beta1), mixed(v, core.square(g), beta2)
    step = core.div(m, core.add(core.sqrt(v), of(epsilon, v)))
    if decay is not None:
        step = core.add(step, mul(p, decay))
    return core.sub(p, mul(step, lr)), m, v


def size(x):
    return core.sqrt(core.reduce_sum(core.square(x), axes=list(range(len(x.shape))), keep_dims=False))


def ratio_of_sizes(p, step):
    """|p| / |step|, 1 where either is 0."""
    of_p, of_step = size(p), size(step)
    zero = number(0, p)
    some = core.and_(core.greater(of_p, zero), core.greater(of_step, zero))
    return core.select(some, core.div(of_p, core.select(some, of_step, number(1, p))), number(1, p))


def lamb(p, m, v, g, lr, beta1, beta2, epsilon, decay, step):
    """step is the number of this step, from 1 on."""
    m, v = mixed(m, g, beta1), mixed(v, core.square(g), beta2)
    right1 = one_less(core.pow(number(beta1, p), of(step, p)))
    right2 = one_less(core.pow(number(beta2, p), of(step, p)))
    update = core.div(core.div(m, right1), core.add(core.sqrt(core.div(v, right2)), of(epsilon, v)))
    if decay is not None:
        update = core.add(update, mul(p, decay))
    scale = mul(core.mul(ratio_of_sizes(p, update), number(1, p)), of(lr, p))
    return core.sub(p, core.mul(update, scale)), m, v


def same(x, like):
    """x with the dtype of another tensor."""
    return x if nptype(x) == nptype(like) else core.cast(x, dtype=nptype(like))


def lars(p, g, decay, rate, epsilon, coefficient, clip, squares=None):
    """The gradient scaled by coefficient * |p| / (|g| + decay * |p| + epsilon); squares: sums of p^2 and g^2, if they are known."""
    of_p, of_g = (size(p), size(g)) if squares is None else map(core.sqrt, squares)
    zero, one = number(0, p), number(1, p)
    below = core.add(core.add(of_g, mul(of_p, of(decay, p))), of(epsilon, p))
    trust = core.div(core.mul(of_p, number(coefficient, p)), below)
    some = core.and_(core.greater(of_p, zero), core.greater(of_g, zero))
    trust = core.select(some, trust, one)
    if clip:
        trust = core.minimum(div(trust, rate), one)
    return core.mul(core.add(g, mul(p, decay)), trust)


def ada_max(p, m, v, g, lr, beta1, beta2, epsilon, power1):
    m = mixed(m, g, beta1)
    v = core.maximum(mul(v, beta2), core.abs(g))
    rate = div(of(lr, p), one_less(of(power1, p)))
    return core.sub(p, div(mul(m, rate), add(v, epsilon))), m, v


def adagrad(p, accum, g, lr, update_slots=True, epsilon=0.0):
    if update_slots:
        accum = core.add(accum, core.square(g))
    root = core.sqrt(accum)
    if epsilon:
        root = add(root, epsilon)
    return core.sub(p, core.div(mul(g, lr), root)), accum


def proximal(p, g, rate, l1, l2):
    """A step, then shrinking by rate * l1 and division by 1 + rate * l2."""
    p = core.sub(p, mul(g, rate))
    shrunk = core.relu(core.sub(core.abs(p), mul(rate, of(l1, p))))
    return core.div(core.mul(core.sign(p), shrunk), core.add(number(1, p), mul(rate, of(l2, p))))


def proximal_adagrad(p, accum, g, lr, l1, l2):
    accum = core.add(accum, core.square(g))
    return proximal(p, g, core.div(of(lr, p), core.sqrt(accum)), l1, l2), accum


def ftrl(p, accum, linear, g, lr, l1, l2, power):
    new = core.add(accum, core.square(g))

    def powered(x):
        return core.sqrt(x) if power == -0.5 else core.pow(x, number(-power, x))

    roots = powered(new), powered(accum)
    sigma = core.div(core.sub(*roots), of(lr, p))
    linear = core.sub(core.add(linear, g), core.mul(sigma, p))
    bound = of(l1, p)
    below = core.add(core.div(roots[0], of(lr, p)), mul(of(l2, p), 2))
    moved = core.div(core.sub(core.mul(core.sign(linear), bound), linear), below)
    return core.select(core.greater(core.abs(linear), bound), moved, number(0, p)), new, linear


def rms_prop(p, mean_square, moment, g, lr, decay, rate, epsilon, mean_gradient=None):
    mean_square = mixed(mean_square, core.square(g), decay)
    spread = mean_square
    if mean_gradient is not None:
        mean_gradient = mixed(mean_gradient, g, decay)
        spread = core.sub(mean_square, core.square(mean_gradient))
    step = core.div(mul(g, lr), core.sqrt(core.add(spread, of(epsilon, spread))))
    moment = core.add(mul(moment, rate), step)
    out = (core.sub(p, moment), mean_square, moment)
    return out if mean_gradient is None else (*out, mean_gradient)


def ada_delta(p, accum, update_accum, g, lr, rho, epsilon):
    accum = mixed(accum, core.square(g), rho)
    small = of(epsilon, accum)
    step = core.mul(core.sqrt(core.div(core.add(update_accum, small), core.add(accum, small))), g)
    return core.sub(p, mul(step, lr)), accum, mixed(update_accum, core.square(step), rho)


def signed(p, m, g, lr, beta, alpha, decay, power):
    """AddSign, or with `power` PowerSign, which raises e to alpha times the sign, as MindSpore documents it."""
    m = mixed(m, g, beta)
    agree = core.mul(core.mul(core.sign(g), core.sign(m)), of(decay, g))
    if power:
        scale = core.exp(mul(agree, of(alpha, g)))
    else:
        scale = core.add(agree, of(alpha, g))
    return core.sub(p, mul(core.mul(scale, g), of(lr, g))), m


def adagrad_da(p, accum, squares, g, lr, l1, l2, step):
    """Dual averaging: the parameter follows from all gradients so far."""
    accum, squares = core.add(accum, g), core.add(squares, core.square(g))
    shrunk = mul(core.sign(accum), core.relu(core.sub(core.abs(accum), mul(of(step, accum), of(l1, accum)))))
    scale = core.add(mul(mul(of(step, p), of(lr, p)), of(l2, p)), core.sqrt(squares))
    return core.neg(div(mul(shrunk, of(lr, p)), scale)), accum, squares
