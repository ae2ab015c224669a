"""Random numbers of one stream: its state is a Parameter, so that a compiled step advances it and a checkpoint can hold it."""

import contextlib

import numpy as np
from cairn.ms import core
from cairn.ms.numerics.basic import cast, ints, nptype, number

_state = None
_own = []  # states of the primitives with seeds of their own that are computing


def _parameter(numbers):
    from mindspore.common.parameter import Parameter
    from mindspore.common.tensor import Tensor

    return Parameter(Tensor(np.array(numbers, np.uint64)), name="random_state", requires_grad=False)


@contextlib.contextmanager
def stream(primitive, *seeds):
    """What is drawn in the block comes from a stream of the primitive's own, which its seeds begin; where all are 0, from the common one."""
    if any(seeds):
        if "_stream" not in vars(primitive):
            primitive._stream = _parameter([seeds[0], 0, seeds[-1]])
        _own.append(primitive._stream)
    try:
        yield
    finally:
        if any(seeds):
            _own.pop()


def state():
    """The Parameter u64[3] of the stream."""
    global _state
    if _own:
        return _own[-1]
    if _state is None:
        _state = _parameter(np.random.SeedSequence().generate_state(3, np.uint64))
    return _state


def seed(value):
    """Begins the stream anew."""
    from mindspore.common.tensor import Tensor

    state().set_data(Tensor(np.array([value, 0, value], np.uint64)))


def _draw(row, *inputs, **attributes):
    following, y = getattr(core, row)(state(), *inputs, **attributes)
    core.assign(state(), following)
    return y


def uniform(shape, dtype=np.float32):
    """Numbers in [0, 1)."""
    return _narrow(_draw("random_uniform", ints(shape), dtype=_wide(dtype)), dtype)


def normal(shape, dtype=np.float32):
    return _narrow(_draw("random_normal", ints(shape), dtype=_wide(dtype)), dtype)


def truncated_normal(shape, dtype=np.float32):
    return _narrow(_draw("random_truncated_normal", ints(shape), dtype=_wide(dtype)), dtype)


def integers(shape, low, high, dtype=np.int32):
    return cast(_draw("random_integers", ints(shape), low, high), dtype)


def shuffled(x):
    return _draw("random_shuffle", x)


def categorical(logits, count, dtype=np.int64):
    return _draw("random_categorical", logits, np.asarray(count, np.int64), dtype=np.dtype(dtype))


def dropped(x, keep, shared=()):
    """(x with elements kept with that probability and divided by it, what was kept as 0 or 1); along the `shared` axes all
    elements share their fate."""
    shape = [1 if axis in shared else size for axis, size in enumerate(x.shape)]
    mask = cast(core.less(uniform(shape), np.float32(keep)), nptype(x))
    return core.mul(core.mul(x, mask), number(1.0 / keep, x)), mask


def _wide(dtype):
    return np.dtype(np.float32) if np.dtype(dtype) == np.float16 else np.dtype(dtype)


def _narrow(y, dtype):
    return cast(y, dtype)


def generator():
    """NumPy's generator, begun from the stream: of distributions that no row draws."""
    return np.random.default_rng(integers((4,), np.int64(0), np.int64(2**31), np.int64).asnumpy())
