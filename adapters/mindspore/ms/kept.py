"""What was compiled in this process, and how much memory it keeps: above the bound the ones used longest ago are forgotten."""

import collections
import os
import weakref

from cairn import _cairn
from cairn.ms import modes

MOST = 512  # functions
MOST_BYTES = 0  # 0: a quarter of the machine's memory

_used = collections.OrderedDict()  # weak references to functions; the one used last behind


class Function:
    """A compiled function."""

    def __init__(self, module, bind_state=False, precision_mode=""):
        self.model = _cairn.Model(module, 0, "", 0.0, 0, bind_state, modes.deterministic or not bind_state, precision_mode)

    def keep(self, forget):
        """Counts it; forget(it) is called when there is no room for it any more."""
        self._own = weakref.ref(self, lambda own, used=_used: used.pop(own, None))  # also while Python ends
        _used[self._own], self._forget = None, forget
        _make_room()

    def used(self):
        """It is the one used last."""
        if self._own in _used:
            _used.move_to_end(self._own)


def memory():
    """Bytes of all that is kept."""
    return sum(each.model.memory for each in (own() for own in list(_used)) if each is not None)


def _make_room():
    most = MOST_BYTES or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
    while len(_used) > 1 and (len(_used) > MOST or memory() > most):
        oldest = _used.popitem(last=False)[0]()
        if oldest is not None:
            oldest._forget(oldest)
