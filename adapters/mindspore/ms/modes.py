"""Whether Cells run eagerly or as captured functions. The settings of scripts are in mindspore/context.py."""

from cairn.ms import level

GRAPH, PYNATIVE = 0, 1
mode = GRAPH
deterministic = False  # captured functions keep to the definition of convolutions, as eager ones do


def reset():
    """The default of the level: graph mode since 1.3."""
    global mode
    mode = GRAPH if level.at_least("1.10") else PYNATIVE


reset()
