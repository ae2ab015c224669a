"""Whether Cells run eagerly or as captured functions. The settings of scripts are in mindspore/context.py."""

import contextlib
import threading

from cairn.ms import level

GRAPH, PYNATIVE = 0, 1
mode = GRAPH
call_depth = 1000  # how deep functions may call each other while they are captured: max_call_depth
deterministic = False  # captured functions keep to the definition of convolutions, as eager ones do


class _Here(threading.local):
    staged = 0  # calls of ms_function under way that run eagerly


here = _Here()


@contextlib.contextmanager
def as_graph():
    """Inside of it Cells call no hooks, as those of graphs."""
    here.staged += 1
    try:
        yield
    finally:
        here.staged -= 1


def reset():
    """The default of the level: graph mode since 1.3."""
    global mode
    mode = GRAPH if level.at_least("1.10") else PYNATIVE


reset()
