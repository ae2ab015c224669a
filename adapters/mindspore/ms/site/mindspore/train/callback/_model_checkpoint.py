"""ModelCheckpoint: files of a training, by step or time, of which the last ones are kept."""

import os
import re
import time

from cairn import _whole as whole
from cairn.ms import level
from cairn.ms.numerics import random

from mindspore import log as logger
from mindspore.common.tensor import Tensor
from mindspore.nn.cell import Cell
from mindspore.train import _checkpoint, _encryption
from mindspore.train._utils import check_value_type
from mindspore.train.callback._callback import Callback, make_directory
from mindspore.train.serialization import _array, wait_for_writer, whole_entries, write_entries

__all__ = ["CheckpointConfig", "CheckpointManager", "ModelCheckpoint"]


def _optional(name, value, least=0):
    if value is None:
        return None
    check_value_type(name, value, int, "CheckpointConfig")
    if value < least:
        raise ValueError(f"For 'CheckpointConfig', the argument '{name}' must be >= {least}, but got {value}.")
    return value


class CheckpointConfig:
    """When files are written, and which are kept."""

    def __init__(self, save_checkpoint_steps=1, save_checkpoint_seconds=0, keep_checkpoint_max=5, keep_checkpoint_per_n_minutes=0,
                 integrated_save=True, async_save=False, saved_network=None, append_info=None, enc_key=None, enc_mode="AES-GCM",
                 exception_save=False, **kwargs):
        if isinstance(integrated_save, str):  # 0.5: model_type
            kwargs["model_type"], integrated_save = integrated_save, True
        self.model_type = kwargs.pop("model_type", None if level.at_least("1.1") else _checkpoint.MODEL_TYPE)
        if kwargs:
            raise TypeError(f"CheckpointConfig() got an unexpected keyword argument '{next(iter(kwargs))}'")
        steps = _optional("save_checkpoint_steps", save_checkpoint_steps)
        seconds = _optional("save_checkpoint_seconds", save_checkpoint_seconds)
        most = _optional("keep_checkpoint_max", keep_checkpoint_max)
        minutes = _optional("keep_checkpoint_per_n_minutes", keep_checkpoint_per_n_minutes)
        if not steps and not seconds and not most and not minutes:
            raise ValueError("For 'CheckpointConfig', the argument 'save_checkpoint_steps', 'save_checkpoint_seconds', "
                             "'keep_checkpoint_max' "
                             "and 'keep_checkpoint_per_n_minutes' can't be all None or 0.")
        self._save_checkpoint_steps, self._save_checkpoint_seconds = steps, None if steps else seconds
        self._keep_checkpoint_max, self._keep_checkpoint_per_n_minutes = most, None if most else minutes
        if not self._keep_checkpoint_max and not self._keep_checkpoint_per_n_minutes:
            self._keep_checkpoint_max = 1
        self._integrated_save = check_value_type("integrated_save", integrated_save, bool, "CheckpointConfig")
        self._async_save = check_value_type("async_save", async_save, bool, "CheckpointConfig")
        if saved_network is not None and not isinstance(saved_network, Cell):
            raise TypeError(f"For 'CheckpointConfig', the type of 'saved_network' must be None or Cell, but got {type(saved_network)}.")
        self._saved_network, self._append_dict = saved_network, _append_info(append_info)
        self._exception_save = check_value_type("exception_save", exception_save, bool, "CheckpointConfig")
        _encryption.check(enc_key, enc_mode, "CheckpointConfig")
        self._enc_key, self._enc_mode = enc_key, enc_mode

    for _name in ("save_checkpoint_steps", "save_checkpoint_seconds", "keep_checkpoint_max", "keep_checkpoint_per_n_minutes",
                  "integrated_save", "async_save", "saved_network", "enc_key", "enc_mode"):
        locals()[_name] = property(lambda self, _name=_name: getattr(self, "_" + _name))
    del _name

    @property
    def append_dict(self):
        """Numbers that are written beside the parameters."""
        return self._append_dict

    def get_checkpoint_policy(self):
        """The rules as a dict."""
        return {"save_checkpoint_steps": self._save_checkpoint_steps, "save_checkpoint_seconds": self._save_checkpoint_seconds,
                "keep_checkpoint_max": self._keep_checkpoint_max, "keep_checkpoint_per_n_minutes": self._keep_checkpoint_per_n_minutes,
                "saved_network": self._saved_network}


def _append_info(info):
    if not info:
        return {}
    if not isinstance(info, list):
        raise TypeError(f"For 'CheckpointConfig', the type of 'append_info' must be list, but got {type(info)}.")
    told = {}
    for each in info:
        if isinstance(each, str):
            if each not in ("epoch_num", "step_num"):
                raise TypeError("For 'CheckpointConfig', the elements of 'append_info' that are str must be 'epoch_num' or "
                                f"'step_num', but got {each}.")
            told[each] = 0
        elif isinstance(each, dict):
            for name, value in each.items():
                if not isinstance(name, str) or not isinstance(value, (int, float, bool, Tensor)):
                    raise TypeError("For 'CheckpointConfig', 'append_info' must hold numbers and Parameters by name, but got "
                                    f"{name}: {value!r}.")
            told.update(each)
        else:
            raise TypeError(f"For 'CheckpointConfig', the elements of 'append_info' must be str or dict, but got {type(each)}.")
    return told


class CheckpointManager:
    """The files of one prefix in a folder, oldest first."""

    def __init__(self):
        self._ckpoint_filelist = []

    @property
    def ckpoint_filelist(self):
        """Paths, oldest first."""
        return self._ckpoint_filelist

    @property
    def ckpoint_num(self):
        """How many files there are."""
        return len(self._ckpoint_filelist)

    def update_ckpoint_filelist(self, directory, ckpt_prefix):
        """Looks into the folder."""
        names = [name for name in os.listdir(directory) if name.startswith(ckpt_prefix + "-") and name.endswith(".ckpt")]
        paths = [os.path.join(directory, name) for name in names]
        self._ckpoint_filelist = sorted(paths, key=lambda path: (os.path.getmtime(path), path))

    def remove_ckpoint_file(self, file_name):
        """Removes a file."""
        try:
            os.remove(file_name)
        except OSError as error:
            logger.warning(f"Failed to remove the older ckpt file {file_name}: {error}.")
        self._ckpoint_filelist = [each for each in self._ckpoint_filelist if each != file_name]

    def remove_oldest_ckpoint_file(self):
        """Removes the oldest file."""
        self.remove_ckpoint_file(self._ckpoint_filelist[0])

    def keep_newest(self, most):
        """Removes the oldest files beyond `most`; called when a newer one is whole and on the disk."""
        for path in self._ckpoint_filelist[: max(len(self._ckpoint_filelist) - most, 0)]:
            self.remove_ckpoint_file(path)

    def keep_one_ckpoint_per_minutes(self, minutes, cur_time):
        """Of the files of the last minutes only the oldest stays."""
        recent = [path for path in self._ckpoint_filelist if cur_time - os.path.getmtime(path) < 60 * minutes]
        for path in recent[1:]:
            self.remove_ckpoint_file(path)

    def keep_last_and(self, kept):
        """Removes all files but the newest and `kept`, those of earlier minutes."""
        for path in self._ckpoint_filelist[:-1]:
            if path not in kept:
                self.remove_ckpoint_file(path)


def free_prefix(directory, prefix):
    """The prefix, with _1, _2, ... where files of an earlier run have it."""
    found = -1
    for name in os.listdir(directory):
        match = re.fullmatch(re.escape(prefix) + r"(?:_(\d+))?-.*\.ckpt", name)
        if match:
            found = max(found, int(match.group(1) or 0))
    return prefix if found < 0 else f"{prefix}_{found + 1}"


def save_graph(network, file_name):
    """Writes what the network is made of, as text."""
    whole.write(file_name, [f"{network}\n".encode()], 0o400)


class ModelCheckpoint(Callback):
    """Writes what the training changes: parameters, the optimizer's slots and counters, and the state of random operators."""

    def __init__(self, prefix="CKP", directory=None, config=None):
        if not isinstance(prefix, str) or prefix.find("/") >= 0:
            raise ValueError("For 'ModelCheckpoint', the argument 'prefix' for checkpoint file name is invalid, 'prefix' must "
                             "be string and does not contain '/', "
                             "but got {}.".format(prefix))
        self._prefix, self._exception_prefix = prefix, prefix
        self._directory = make_directory(directory if directory is not None else os.path.join(os.getcwd(), ""), "directory")
        if config is not None and not isinstance(config, CheckpointConfig):
            raise TypeError(f"For 'ModelCheckpoint', the type of argument 'config' should be 'CheckpointConfig', but got {type(config)}.")
        self._config = config or CheckpointConfig()
        self._manager = CheckpointManager()
        self._last_saved_step = self._last_triggered_step = 0
        self._last_time = self._last_kept = time.time()
        self._kept, self._latest = [], ""
        self._graph_saved = False

    def begin(self, run_context):
        """A prefix that no file of an earlier run has."""
        self._last_time = self._last_kept = time.time()

    def on_eval_begin(self, run_context):
        """Nothing is written while evaluating."""

    on_eval_step_end = on_eval_end = on_eval_begin

    def step_end(self, run_context):
        told = run_context.original_args()
        if not self._graph_saved:
            self._prefix = free_prefix(self._directory, self._prefix)
            self._save_graph(told)
        self._save(told)

    def _save_graph(self, told):
        self._graph_saved = True
        path = os.path.join(self._directory, self._prefix + "-graph.meta")
        if not os.path.exists(path):
            save_graph(told.train_network, path)

    def end(self, run_context):
        told = run_context.original_args()
        if self._graph_saved:
            self._save(told, force=True)
        wait_for_writer()
        self._prune()

    def _due(self, told, force):
        if force:
            return told.cur_step_num != self._last_saved_step
        if self._config.save_checkpoint_steps:
            if told.cur_step_num >= self._last_triggered_step + self._config.save_checkpoint_steps:
                self._last_triggered_step = told.cur_step_num
                return True
        elif self._config.save_checkpoint_seconds:
            if time.time() - self._last_time > self._config.save_checkpoint_seconds:
                self._last_time = time.time()
                return True
        return False

    def _save(self, told, force=False):
        if not self._due(told, force):
            return
        self._last_saved_step = told.cur_step_num
        step = int((told.cur_step_num - 1) % told.batch_num + 1)
        path = os.path.join(self._directory, f"{self._prefix}-{told.cur_epoch_num}_{step}.ckpt")
        self.write(told, path)
        self._latest = path
        if self._config.keep_checkpoint_per_n_minutes and time.time() - self._last_kept > self._config.keep_checkpoint_per_n_minutes * 60:
            self._kept.append(path)
            self._last_kept = time.time()
        self._prune()

    def _prune(self):
        """Removes old files. An asynchronous file counts when it is there: until then the ones before it stay."""
        self._manager.update_ckpoint_filelist(self._directory, self._prefix)
        if self._config.keep_checkpoint_max:
            self._manager.keep_newest(self._config.keep_checkpoint_max)
        else:
            self._manager.keep_last_and(self._kept)

    def write(self, told, path):
        """One file."""
        network = self._config.saved_network if self._config.saved_network is not None else told.train_network
        append = dict(self._config.append_dict)
        for name, value in (("epoch_num", told.cur_epoch_num), ("step_num", told.cur_step_num)):
            if name in append:
                append[name] = value
        entries = [(each.name, each) for _, each in network.parameters_and_names()]
        entries = whole_entries(entries, self._config.integrated_save) + list(append.items())
        arrays = [(name, _array(name, value)) for name, value in entries]
        write_entries(arrays + random.kept(network), path, self._config.async_save, self._config.model_type, key=self._config.enc_key,
                      mode=self._config.enc_mode)

    @property
    def latest_ckpt_file_name(self):
        """The last file written."""
        return self._latest

    @property
    def _get_save_checkpoint_steps(self):
        return self._config.save_checkpoint_steps
