"""MindRecord files: refused by name until they are read and written."""

from cairn.ms import refuse


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    refuse(f"mindspore.mindrecord.{name}", "MindRecord files are not supported yet", "mindspore.dataset.TFRecordDataset or GeneratorDataset")
