"""The private settings that old scripts set: kept and read back, since one device has nothing to fuse."""

from mindspore import context


class _AutoParallelContext:
    def __init__(self):
        self._kept = {}

    def __getattr__(self, name):
        if name.startswith("set_"):
            return lambda *values, **_: self._kept.__setitem__(name[4:], values[0] if len(values) == 1 else values)
        if name.startswith("get_"):
            return lambda *_, **__: self._kept[name[4:]] if name[4:] in self._kept else _setting(name[4:])
        raise AttributeError(name)


def _setting(name):
    try:
        return context.get_auto_parallel_context(name)
    except ValueError:
        return None


_context = _AutoParallelContext()


def auto_parallel_context():
    """The settings."""
    return _context
