"""Callbacks."""

from cairn.ms import modules, names

from mindspore.train.callback._callback import Callback, RunContext
from mindspore.train.callback._callback import CallbackManager as _CallbackManager
from mindspore.train.callback._callback import InternalCallbackParam as _InternalCallbackParam
from mindspore.train.callback._callback import checkpoint_cb_for_save_op as _checkpoint_cb_for_save_op
from mindspore.train.callback._callback import set_cur_net as _set_cur_net
from mindspore.train.callback._backup import BackupAndRestore
from mindspore.train.callback._landscape import SummaryLandscape
from mindspore.train.callback._model_checkpoint import CheckpointConfig, ModelCheckpoint
from mindspore.train.callback._model_checkpoint import CheckpointManager as _CheckpointManager
from mindspore.train.callback._model_checkpoint import CheckpointManager  # noqa: F401
from mindspore.train.callback._model_checkpoint import free_prefix as _chg_ckpt_file_name_if_same_exist  # noqa: F401
from mindspore.train.callback._monitors import LossMonitor, TimeMonitor
from mindspore.train.callback._stopping import EarlyStopping, History, LambdaCallback, LearningRateScheduler, ReduceLROnPlateau
from mindspore.train.callback._summary import SummaryCollector, SummaryStep

__all__ = ["BackupAndRestore", "Callback", "CheckpointConfig", "EarlyStopping", "History", "LambdaCallback", "LearningRateScheduler", "LossMonitor",
           "ModelCheckpoint", "ReduceLROnPlateau", "RunContext", "SummaryCollector", "SummaryLandscape", "SummaryStep", "TimeMonitor"]  # fmt: skip
__getattr__ = names.lazy("mindspore.train.callback")
modules.share(__name__)
