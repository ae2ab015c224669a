"""Training: Model, callbacks, loss scales, checkpoints."""

from cairn.ms import names

from mindspore.train import amp, callback, serialization
from mindspore.train.amp import build_train_network
from mindspore.train.callback import *  # noqa: F403
from mindspore.train.dataset_helper import DatasetHelper, connect_network_with_dataset
from mindspore.train.loss_scale_manager import DynamicLossScaleManager, FixedLossScaleManager, LossScaleManager
from mindspore.train.model import Model
from mindspore.train.serialization import export, load, load_checkpoint, load_param_into_net, save_checkpoint
from mindspore.train.summary import SummaryRecord
from mindspore.train.train_thor import ConvertModelUtils, ConvertNetUtils

__all__ = ["ConvertModelUtils", "ConvertNetUtils", "DatasetHelper", "DynamicLossScaleManager", "FixedLossScaleManager", "LossScaleManager", "Model",
           "SummaryRecord", "amp", "build_train_network", "callback", "connect_network_with_dataset", "export", "load", "load_checkpoint",
           "load_param_into_net", "save_checkpoint", "serialization", *callback.__all__]  # fmt: skip
__getattr__ = names.lazy("mindspore.train")
