"""What the tests of the TensorFlow adapter share: how a script is run, and on which engines."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ROOT / "adapters" / "tensorflow" / "python"
EXAMPLES = ROOT / "examples" / "tensorflow"
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "2"}


def use_packages():
    """The adapter's packages for this process: the installed ones, else those of the tree."""
    if importlib.util.find_spec("npu_bridge") is None:
        sys.path.insert(0, str(PACKAGES))


def environment(engine, **more):
    """For a subprocess. The packages of the tree come last, so that installed ones win."""
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    if importlib.util.find_spec("npu_bridge") is None or str(PACKAGES) in sys.path:
        paths.append(str(PACKAGES))
    return {**os.environ, **QUIET, "CAIRN_ENGINE": engine, "PYTHONPATH": os.pathsep.join(paths), **more}


def run_python(arguments, engine="tensorflow", timeout=600, **more):
    """The finished process of .venv's Python with these arguments; `more` is added to its environment."""
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, env=environment(engine, **more), capture_output=True, text=True, timeout=timeout)
