"""The platform's TensorFlow 1 interface on stock TensorFlow 2.15: importing it loads the graph passes that hand a
session's graph to Cairn's engine. Scripts start with `from npu_bridge.npu_init import *`."""

import atexit as _atexit
import logging as _logging
import os as _os

from tensorflow.python.autograph.core import config as _autograph

from npu_bridge import engine as _engine
from npu_bridge import sessions as _sessions

__version__ = "v1.15.0"

# What a tf.function calls of these packages is Python as it stands.
_autograph.CONVERSION_RULES = (*map(_autograph.DoNotConvert, ("npu_bridge", "npu_device", "hccl")), *_autograph.CONVERSION_RULES)
_engine.load()
_sessions.watch()
_level = {"0": "DEBUG", "1": "INFO", "2": "WARNING", "3": "ERROR"}.get(_os.getenv("ASCEND_GLOBAL_LOG_LEVEL", ""))
if _level:
    _logging.getLogger("npu_bridge").setLevel(_level)


def _close_at_exit():
    from npu_bridge.estimator.npu import npu_plugin

    npu_plugin.npu_close()


_atexit.register(_close_at_exit)
