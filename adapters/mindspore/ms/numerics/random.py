"""Random numbers of one stream: its state is a Parameter, so that a compiled step advances it and a checkpoint can hold it."""

import contextlib

import numpy as np
from cairn.ms import core
from cairn.ms.numerics.basic import cast, ints, nptype, number

_state = None
_own = []  # states of the primitives with seeds of their own that are computing
_of_calls = {}  # (name, *seeds): the state that the calls of a function by these seeds share
STATE = "random_state"  # what a checkpoint calls the common state; those of seeds of their own are called so with an ending


def _parameter(numbers):
    from mindspore.common.parameter import Parameter
    from mindspore.common.tensor import Tensor

    made = Parameter(Tensor(np.array(numbers, np.uint64)), name=STATE, requires_grad=False)
    made.held = True  # many are called so in a graph
    return made


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


def _of_call(key):
    from mindspore.common.seed import get_seed

    if key not in _of_calls:
        _of_calls[key] = _parameter([key[1], 0, get_seed() or 0])
    return _of_calls[key]


def of_calls(primitive, *seeds):
    """The primitive of a function of the script's; where a seed is given it goes on where the last call by these seeds ended."""
    if any(seeds):
        primitive._stream = _of_call((primitive.name, *seeds))
    return primitive


@contextlib.contextmanager
def called(name, seed):
    """The same for what is drawn in the block."""
    if seed:
        _own.append(_of_call((name, seed)))
    try:
        yield
    finally:
        if seed:
            _own.pop()


def _placed(net):
    """{name: primitive} of the network's primitives that have seeds."""
    if not hasattr(net, "cells_and_names"):
        return {}
    cells = [(path, cell._primitives) for path, cell in net.cells_and_names()]
    return {".".join(filter(None, (STATE, path, name))): each for path, own in cells for name, each in own.items() if _SEEDS & each.attrs.keys()}


_SEEDS = {"seed", "seed2", "Seed0", "Seed1"}


def kept(net=None):
    """[(name, array)] of the states that were used, for a checkpoint of the network."""
    made = {} if _state is None else {STATE: _state}
    made.update((".".join(map(str, (STATE, "calls", *key))), each) for key, each in _of_calls.items())
    made.update((name, each._stream) for name, each in _placed(net).items() if "_stream" in vars(each))
    return [(name, np.array(each.asnumpy())) for name, each in made.items()]


def restore(net, values):
    """Has the streams go on where those of a checkpoint's {name: Tensor} ended."""
    placed = _placed(net)
    for name, value in values.items():
        if name.partition(".")[0] != STATE or not hasattr(value, "asnumpy"):
            continue
        array = np.array(value.asnumpy())
        if name == STATE:
            state().set_data(value)
        elif name.startswith(STATE + ".calls."):
            kind, *seeds = name.split(".")[2:]
            _of_call((kind, *map(int, seeds))).set_data(value)
        elif name in placed:
            vars(placed[name]).setdefault("_stream", _parameter(array)).set_data(value)


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
    for (_, first, *_), each in _of_calls.items():
        each.set_data(Tensor(np.array([first, 0, value], np.uint64)))


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
