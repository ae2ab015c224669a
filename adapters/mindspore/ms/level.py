"""The compatibility level of the process: "0.5", "1.1" or "1.10". Names with two meanings are read by it."""

import os
import sys

LEVELS = ("0.5", "1.1", "1.10")
now = os.environ.get("CAIRN_MS_LEVEL", LEVELS[-1])


def _numbers(level):
    return tuple(int(part) for part in level.split("."))


def select(level):
    """Sets the level; before the script imports mindspore, since defaults are read by it."""
    global now
    if level not in LEVELS:
        raise ValueError(f"level is {level}, expected one of {', '.join(LEVELS)}")
    now = level
    entry = sys.modules.get("cairn.ms.modes")
    if entry:
        entry.reset()


def at_least(level):
    return _numbers(now) >= _numbers(level)


if now not in LEVELS:
    raise ValueError(f"CAIRN_MS_LEVEL is {now}, expected one of {', '.join(LEVELS)}")
