"""MindSpore's scripts on Cairn: after `import cairn.ms`, `import mindspore` is the package in site/ beside this file.

    cairn ms train.py                   runs a script
    cairn ms -m pytest tests/           runs a module
"""

import os
import sys

SITE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "site")


def _activate():
    found = sys.modules.get("mindspore")
    if found is not None and not (getattr(found, "__file__", None) or "").startswith(SITE):
        raise ImportError("another package mindspore is imported already; import cairn.ms before it")
    if SITE not in sys.path:
        sys.path.insert(0, SITE)


_activate()

from cairn.ms import capture, flat, level, methods, modules, tensor_methods  # noqa: E402, F401
from cairn.ms.refusal import Unsupported, refuse  # noqa: E402, F401

modules.activate()
