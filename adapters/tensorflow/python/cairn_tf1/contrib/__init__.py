"""tf.contrib: the parts that scripts use. A part is a module of this folder; what a part lacks, a script is told before it runs."""

import importlib


def __getattr__(name):
    try:
        return importlib.import_module(f"tensorflow.contrib.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"tensorflow.contrib.{name}":
            raise
        raise AttributeError(f"module 'tensorflow.contrib' has no attribute '{name}'") from None
