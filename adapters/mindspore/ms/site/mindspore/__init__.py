"""MindSpore's Python interface on Cairn."""

from mindspore import common, context
from mindspore.common import *  # noqa: F403
from mindspore.common import dtype
from mindspore.common.dtype import *  # noqa: F403
from mindspore.context import (
    GRAPH_MODE,
    PYNATIVE_MODE,
    ParallelMode,
    get_auto_parallel_context,
    get_context,
    get_ps_context,
    reset_auto_parallel_context,
    reset_ps_context,
    set_auto_parallel_context,
    set_context,
    set_ps_context,
)

from mindspore.version import __version__  # noqa: F401

from cairn.ms import names

__getattr__ = names.lazy("mindspore")
