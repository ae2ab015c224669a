"""Puts a module named `tensorflow` in place whose names are compat.v1's, and an import hook behind it for the parts of TensorFlow
1 that moved or went away."""

import importlib
import importlib.abc
import importlib.machinery
import sys
import types
import warnings

from cairn_tf1 import moved

VERSION = "1.15.0"  # what scripts that compare versions are to see
REAL_ONLY = ("python", "core", "tools", "compiler", "lite", "dtensor", "_api", "compat")
KERAS_COPY = "tensorflow.python.keras"
KERAS_OWN = ("src", "api", "protobuf")  # parts of the package itself, behind both of its interfaces
_installed = {}


class _TensorFlow1(types.ModuleType):
    """compat.v1 first, then what only the real module has."""

    def __getattr__(self, name):
        if name in ("contrib", "examples"):
            return importlib.import_module(f"tensorflow.{name}")
        for module in (_installed["v1"], _installed["real"]):
            try:
                return getattr(module, name)
            except AttributeError:
                pass
        raise AttributeError(f"module 'tensorflow' has no attribute '{name}'")

    def __dir__(self):
        return sorted({*dir(_installed["v1"]), "contrib"})


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds a module under another name: where `target` gives one, that module takes this name's place."""

    def __init__(self, target):
        self._target = target

    def find_spec(self, name, path=None, target=None):
        found = self._target(name)
        return importlib.machinery.ModuleSpec(name, self, origin=found, is_package=True) if found else None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        # The import system keeps what lies in sys.modules after this.
        found = importlib.import_module(module.__spec__.origin)
        if not hasattr(found, "__path__"):
            found.__path__ = []  # so that the import system asks for names inside it
        sys.modules[module.__name__] = found


def _tensorflow_part(name):
    """`tensorflow.nn` is compat.v1's; `tensorflow.keras` and `keras` Keras' first interface; `tensorflow.contrib` ours."""
    if name in moved.MODULES:
        return moved.MODULES[name]
    if name.startswith("keras.") and name.split(".")[1] not in KERAS_OWN:
        return _keras_first(name[len("keras.") :])
    if not name.startswith("tensorflow."):
        return None
    first, _, rest = name[len("tensorflow.") :].partition(".")
    if first == "contrib":
        return _contrib_part(rest)
    if first == "examples":
        return "cairn_tf1." + name[len("tensorflow.") :] if _exists("cairn_tf1." + name[len("tensorflow.") :]) else None
    if name.startswith("tensorflow.python.estimator"):
        return "tensorflow_estimator.python.estimator" + name[len("tensorflow.python.estimator") :]
    if first == "keras":
        return _keras_first(rest) if rest else "keras.api._v1.keras"
    if first == "estimator":
        return "tensorflow_estimator.python.estimator.api._v1" + name[len("tensorflow") :]
    if name == KERAS_COPY or name.startswith(KERAS_COPY + "."):
        return _first_that_exists("keras.src" + name[len(KERAS_COPY) :])
    if first in REAL_ONLY:
        return None
    return _first_that_exists("tensorflow._api.v2.compat.v1." + name[len("tensorflow.") :])


def _keras_first(rest):
    """What a module of Keras 2.0 to 2.3 is now: public, or where the package keeps it."""
    return moved.MODULES.get("keras.src." + rest) or _first_that_exists("keras.api._v1.keras." + rest, "keras.src." + rest)


def _contrib_part(rest):
    if not rest:
        return "cairn_tf1.contrib"
    name = moved.CONTRIB.get(rest)
    if name is None:
        first = rest.split(".")[0]
        exact = "cairn_tf1.contrib." + rest
        # The private modules inside a part (contrib.rnn.python.ops.rnn_cell) are answered by the part.
        name = exact if _exists(exact) else "cairn_tf1.contrib." + first if ".python" in rest + "." else None
    return name if name and _exists(name) else None


def _keras_part(name):
    """TensorFlow's own layers look for Keras under a name that 2.15 does not have."""
    return "keras.src" + name[len("tf_keras") :] if name == "tf_keras" or name.startswith("tf_keras.") else None


def _exists(name):
    try:
        return name in sys.modules or importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _first_that_exists(*names):
    return next((name for name in names if _exists(name)), None)


def _quieten():
    """A script that is run as TensorFlow 1 need not be told that its names are old."""
    from tensorflow.python.util import deprecation

    deprecation._PRINT_DEPRECATION_WARNINGS = False
    warnings.filterwarnings("ignore", ".*(deprecated|will be removed).*", UserWarning, "__main__|keras.*|tf_slim.*")
    warnings.filterwarnings("ignore", r"`tf\.(compat\.v1\.)?(layers|nn)\..* is deprecated", UserWarning)


def _show_first_keras():
    """The package `keras` by itself shows its first interface as well: its second has no sessions."""
    package, first = importlib.import_module("keras"), importlib.import_module("keras.api._v1.keras")
    for part in [name for name in sys.modules if name.startswith("keras.") and name.split(".")[1] not in KERAS_OWN]:
        del sys.modules[part]
    for name in [name for name in vars(package) if not name.startswith("_") and name not in KERAS_OWN]:
        delattr(package, name)
    vars(package).update({name: value for name, value in vars(first).items() if not name.startswith("_")})


def install():
    """For the rest of the process; a second call does nothing."""
    if _installed:
        return
    import tensorflow as real
    import tensorflow.compat.v1 as v1

    _quieten()
    v1.disable_v2_behavior()
    sys.meta_path.append(_Finder(_keras_part))  # last: a real tf_keras wins
    moved.restore(v1)
    module = _TensorFlow1("tensorflow")
    module.__dict__.update({name: value for name, value in vars(real).items() if name.startswith("__")})
    parts = {name: getattr(real, name, sys.modules.get(f"tensorflow.{name}")) for name in REAL_ONLY}
    module.__dict__.update({name: part for name, part in parts.items() if part is not None})
    module.__dict__.update(__cairn_tf1__=True, __version__=VERSION, VERSION=VERSION)
    module.compat = v1.compat
    # Keras' second interface, when something has imported it before; and TensorFlow's old copy of Keras, whose layers and
    # sessions are not tf.keras'. What TensorFlow itself holds of that copy it keeps.
    for part in [name for name in sys.modules if name.startswith(("tensorflow.keras", KERAS_COPY))]:
        del sys.modules[part]
    sys.modules["tensorflow.python"].keras = importlib.import_module("keras.src")
    _show_first_keras()
    _installed.update(real=real, v1=v1)
    sys.meta_path.insert(0, _Finder(_tensorflow_part))
    sys.modules["tensorflow"] = module
