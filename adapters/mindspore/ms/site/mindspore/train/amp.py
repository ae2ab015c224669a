"""Levels of mixed precision: the cells of a training step and its loss scale.

At O1 convolutions, dense and recurrent layers compute in fp16 and return f32. A network at O2 or O3 is computed in mixed precision:
convolutions, matrix products and what stands between them have operands and results of fp16 and sums of f32. That holds for what is compiled: in PYNATIVE_MODE too a call of the network, or of the training step that
build_train_network() makes, is captured; what is not (hooks, gradients that a script takes itself) is computed in f32, which is said once.
"""

from cairn.ms import level as compatibility
from cairn.ms import modes

from mindspore import log as logger
from mindspore import nn
from mindspore.common import dtype as mstype
from mindspore.train.loss_scale_manager import DynamicLossScaleManager, LossScaleManager

__all__ = ["auto_mixed_precision", "build_train_network", "custom_mixed_precision", "get_black_list", "get_white_list"]

_WHITE = ("Conv1d", "Conv2d", "Conv3d", "Conv1dTranspose", "Conv2dTranspose", "Conv3dTranspose", "Dense", "LSTMCell", "RNNCell", "GRUCell")
_BLACK = ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "LayerNorm")

LEVELS = ("O0", "O1", "O2", "O3", "auto")
_CONFIG = {"O0": {"keep_batchnorm_fp32": False, "cast_model_type": "float32", "loss_scale_manager": None},
           "O1": {"keep_batchnorm_fp32": False, "cast_model_type": "float32", "loss_scale_manager": None},
           "O2": {"keep_batchnorm_fp32": True, "cast_model_type": "float16", "loss_scale_manager": DynamicLossScaleManager},
           "O3": {"keep_batchnorm_fp32": False, "cast_model_type": "float16", "loss_scale_manager": None}}  # fmt: skip
_said = False


def resolve(level):
    """A level without "auto": O2 on GPU, O3 on Ascend."""
    if level not in LEVELS:
        raise ValueError(f"The argument `level` must be one of ['O0', 'O2', 'O3', 'auto'], but got {level}.")
    if level != "auto":
        return level
    from mindspore import context

    target = context.get_context("device_target")
    if target not in ("GPU", "Ascend"):
        raise ValueError(f"The argument `level` is 'auto', which is for GPU and Ascend, but the device target is {target}.")
    return "O2" if target == "GPU" else "O3"


def lower(network, level):
    """Has the network computed at the level; O0 leaves it as it is."""
    global _said
    if level == "O0":
        return
    if level == "O1":
        _in_halves(network, get_white_list())
        return
    network.__dict__.update(_precision_mode="mixed_float16", _plain=False)
    if modes.mode != modes.GRAPH and not _said:
        _said = True
        logger.warning(f"amp level {level}: in PYNATIVE_MODE gradients that a script takes itself, and cells with hooks, are computed in float32.")


def get_white_list():
    """The layers that level O1 computes in fp16, as a list of the caller's own."""
    return [getattr(nn, name) for name in _WHITE]


def get_black_list():
    """The layers that level O2 keeps in f32, as a list of the caller's own."""
    return [getattr(nn, name) for name in _BLACK]


def _in_halves(cell, chosen, others=None):
    """Has the chosen classes of cells compute in fp16 and return f32; with `others`, all cells without parts but those."""
    kind = type(cell)
    parts = list(cell.cells())
    if kind in chosen if others is None else kind not in others and not parts:
        cell.to_float(mstype.float16).__dict__["_returns"] = mstype.float32.numpy
    elif others is None or kind not in others:
        for each in parts:
            _in_halves(each, chosen, others)


def custom_mixed_precision(network, *, white_list=None, black_list=None):
    """The network with the layers of the white list in fp16, or all but those of the black list."""
    if not isinstance(network, nn.Cell):
        raise TypeError(f"The network type should be Cell, but got {type(network)}.")
    if (white_list is None) == (black_list is None):
        raise ValueError("For 'custom_mixed_precision', one of 'white_list' and 'black_list' must be given, and not both.")
    for each in white_list or black_list or ():
        if not isinstance(each, type) or not issubclass(each, nn.Cell):
            raise TypeError(f"For 'custom_mixed_precision', the lists must hold classes of Cells, but got {each}.")
    _in_halves(network, white_list or (), black_list)
    return network


def _check_kwargs(kwargs):
    for name, value in kwargs.items():
        if name not in ("cast_model_type", "keep_batchnorm_fp32", "loss_scale_manager"):
            raise ValueError(f"Unsupported arg '{name}'")
        if name == "keep_batchnorm_fp32" and value is not None and not isinstance(value, bool):
            raise TypeError(f"The argument 'keep_batchnorm_fp32' must be bool, but got {type(value)}.")
        if name == "loss_scale_manager" and value is not None and not isinstance(value, LossScaleManager):
            raise TypeError(f"The argument 'loss_scale_manager' must be LossScaleManager, but got {type(value)}.")
        if name == "cast_model_type" and str(value).lower() not in ("float16", "float32"):
            raise ValueError(f"The argument 'cast_model_type' must be mindspore.float16 or mindspore.float32, but got {value}.")


def auto_mixed_precision(network, amp_level="O0"):
    """The network at a level."""
    if not isinstance(network, nn.Cell):
        raise TypeError(f"The network type should be Cell, but got {type(network)}.")
    lower(network, resolve(amp_level))
    return network


def build_train_network(network, optimizer, loss_fn=None, level="O0", boost_level="O0", **kwargs):
    """The cell of one training step: network and loss, gradients, optimizer, and loss scale where the level or a manager has one."""
    if not isinstance(network, nn.Cell):
        raise TypeError(f"The argument 'network' must be Cell, but got {type(network)}.")
    if not isinstance(optimizer, (nn.Optimizer, nn.Cell)):
        raise TypeError(f"The argument 'optimizer' must be Optimizer, but got {type(optimizer)}.")
    level = resolve(level)
    _check_kwargs(kwargs)
    config = {**_CONFIG[level], **kwargs}
    lower(network, level)
    if loss_fn is not None:
        network = nn.WithLossCell(network, loss_fn)
    step = _step(network, optimizer, config["loss_scale_manager"])
    lower(step, level)
    return step.set_train()


def _step(network, optimizer, manager):
    if isinstance(manager, type):
        manager = manager()
    scale = 1.0
    if manager is not None:
        scale, update = manager.get_loss_scale(), manager.get_update_cell()
        if update is not None:
            if compatibility.at_least("1.1"):
                return nn.TrainOneStepWithLossScaleCell(network, optimizer, scale_sense=update)
            return nn.TrainOneStepWithLossScaleCell(network, optimizer, scale_update_cell=update)
    return nn.TrainOneStepCell(network, optimizer, scale)
