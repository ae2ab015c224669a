"""BackupAndRestore: a training that was interrupted goes on where its last backup was made."""

import os

from mindspore.train._utils import check_int, check_value_type
from mindspore.train.callback._callback import Callback, make_directory
from mindspore.train.serialization import load_checkpoint, load_param_into_net, save_checkpoint

__all__ = ["BackupAndRestore"]


class BackupAndRestore(Callback):
    """Writes backup_dir/backup.ckpt after each epoch, or each save_freq steps; begins with the epoch after the one of a backup that is there,
    and removes it at the end where delete_checkpoint is True."""

    def __init__(self, backup_dir, save_freq="epoch", delete_checkpoint=True):
        self.backup_file = os.path.join(make_directory(backup_dir, "backup_dir"), "backup.ckpt")
        self.save_freq = save_freq if save_freq == "epoch" else check_int("save_freq", save_freq, 1, "BackupAndRestore")
        self.delete_checkpoint = check_value_type("delete_checkpoint", delete_checkpoint, bool, "BackupAndRestore")

    def on_train_begin(self, run_context):
        if os.path.exists(self.backup_file):
            told, values = run_context.original_args(), load_checkpoint(self.backup_file)
            told.cur_epoch_num, told.cur_step_num = (int(values.pop(name).asnumpy()) for name in ("epoch_num", "step_num"))
            load_param_into_net(told.train_network, values)

    def on_train_step_end(self, run_context):
        told = run_context.original_args()
        if self.save_freq != "epoch" and told.cur_step_num % self.save_freq == 0:
            self._save(told, told.cur_epoch_num - 1)

    def on_train_epoch_end(self, run_context):
        if self.save_freq == "epoch":
            told = run_context.original_args()
            self._save(told, told.cur_epoch_num)

    def _save(self, told, epochs):
        steps = epochs * told.batch_num
        save_checkpoint(told.train_network, self.backup_file, append_dict={"epoch_num": epochs, "step_num": steps})

    def on_train_end(self, run_context):
        if self.delete_checkpoint and os.path.exists(self.backup_file):
            os.remove(self.backup_file)
