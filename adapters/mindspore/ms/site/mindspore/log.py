"""MindSpore's log: lines on the standard error stream from the level of GLOG_v on (0 debug, 1 info, 2 warning, 3 error, 4 critical)."""

import logging
import os
import sys
import threading
import time

__all__ = ["critical", "debug", "error", "get_level", "get_log_config", "info", "warning"]

_LEVELS = {"0": logging.DEBUG, "1": logging.INFO, "2": logging.WARNING, "3": logging.ERROR, "4": logging.CRITICAL}


class _Format(logging.Formatter):
    def format(self, record):
        now = time.time()
        clock = time.strftime("%Y-%m-%d-%H:%M:%S", time.localtime(now)) + f".{int(now % 1 * 1e3):03d}.{int(now % 1e-3 * 1e6):03d}"
        place = os.path.join(os.path.basename(os.path.dirname(record.pathname)), record.filename)
        return (f"[{record.levelname}] ME({os.getpid()}:{threading.get_ident()},{record.processName}):{clock} "
                f"[{place}:{record.lineno}] {record.getMessage()}")


class _Stream(logging.StreamHandler):
    """The standard error stream of the moment, which tests replace."""

    def __init__(self):
        logging.Handler.__init__(self)

    @property
    def stream(self):
        return sys.stderr


_logger = logging.getLogger("mindspore")
_logger.propagate = False
_logger.setLevel(_LEVELS.get(os.environ.get("GLOG_v", "2"), logging.WARNING))
if not _logger.handlers:
    _handler = _Stream()
    _handler.setFormatter(_Format())
    _logger.addHandler(_handler)

# The methods themselves, so that lines name the caller.
debug, info, warning, error, critical = _logger.debug, _logger.info, _logger.warning, _logger.error, _logger.critical


def get_level():
    """The level as GLOG_v numbers it."""
    return next((name for name, level in _LEVELS.items() if level == _logger.level), "2")


def set_level(level):
    """Sets the level, as GLOG_v numbers it."""
    _logger.setLevel(_LEVELS[str(level)])


def get_log_config():
    """The settings in force."""
    return {"GLOG_v": get_level(), "GLOG_logtostderr": "1"}
