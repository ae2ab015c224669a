"""Functions and Cells in both modes: the captured one must be captured, and give the same bits as the eager one."""

import copy

import numpy as np
from cairn.ms import capture, core, modes
from mindspore import Tensor
from mindspore.nn import Cell


def tensor(*values, dtype=np.float32):
    return Tensor(np.array(values[0] if len(values) == 1 else values, dtype))


def total(x):
    return core.reduce_sum(x, axes=list(range(len(x.shape))))


def arrays(tree):
    if isinstance(tree, Tensor):
        return tree.asnumpy().copy()
    if isinstance(tree, dict):
        return {key: arrays(each) for key, each in tree.items()}
    if isinstance(tree, (tuple, list)):
        return [arrays(each) for each in tree]
    return tree


def same(a, b, rtol=0):
    """Equal types, shapes and elements; to the bit unless rtol is given."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key], rtol) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(same(x, y, rtol) for x, y in zip(a, b))
    if isinstance(a, np.ndarray):
        equal = np.allclose(a, b, rtol, rtol) if rtol else a.tobytes() == b.tobytes()
        return a.dtype == b.dtype and a.shape == b.shape and equal
    return a == b


class Function(Cell):
    """A Cell that computes a function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def construct(self, *inputs):
        return self.function(*inputs)


def captured(target, *inputs):
    """The result in graph mode; nothing of it may run eagerly."""
    before = capture.statistics["eager"]
    modes.mode = modes.GRAPH
    try:
        made = arrays(target(*inputs))
    finally:
        modes.mode = modes.PYNATIVE
    assert capture.statistics["eager"] == before, "was not captured"
    return made


def both(target, *calls, rtol=0):
    """The results of one target for several calls, equal in both modes. Targets with states start from equal ones."""
    if not isinstance(target, Cell):
        target = Function(target)
    other = copy.deepcopy(target) if list(target.get_parameters()) else target
    results = []
    for inputs in calls:
        inputs = inputs if isinstance(inputs, tuple) else (inputs,)
        eager = arrays(target(*inputs))
        graph = captured(other, *inputs)
        assert same(eager, graph, rtol), f"{eager} eagerly, {graph} captured"
        results.append(graph)
    for mine, theirs in zip(target.get_parameters(), other.get_parameters()):
        assert same(arrays(mine), arrays(theirs), rtol), mine.name
    return results[0] if len(results) == 1 else results


def refused(target, *inputs):
    """What the notice says of a target that cannot be captured; its result is the eager one."""
    import contextlib
    import io

    if not isinstance(target, Cell):
        target = Function(target)
    capture._told.clear()
    eager = arrays(target(*inputs))
    told = io.StringIO()
    modes.mode = modes.GRAPH
    try:
        with contextlib.redirect_stderr(told):
            assert same(arrays(target(*inputs)), eager)
    finally:
        modes.mode = modes.PYNATIVE
    assert told.getvalue(), "was captured"
    return told.getvalue()
