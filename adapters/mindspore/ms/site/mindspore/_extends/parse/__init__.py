"""What scripts import of the parser."""

import os
import pickle
import uuid

from mindspore._extends.parse import standard_method  # noqa: F401


def dump_obj(obj, path):
    """Pickles the object to a new file in a folder, and returns the name of the file."""
    name = f"{type(obj).__name__}_{uuid.uuid4().hex}"
    with open(os.path.join(path, name), "wb") as file:
        pickle.dump(obj, file)
    return name


def load_obj(file_path):
    """The object of a file that dump_obj() wrote."""
    with open(file_path, "rb") as file:
        return pickle.load(file)
