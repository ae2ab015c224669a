"""The private settings that old scripts set, kept and read back. Those that are keys of the parallel context are set there."""

from mindspore import context


_KEYS = {"all_reduce_fusion_split_indices": "all_reduce_fusion_config"}


class _AutoParallelContext:
    def __init__(self):
        self._kept = {}

    def __getattr__(self, name):
        if name.startswith("set_"):
            return lambda *values, **_: self._set(name[4:], values[0] if len(values) == 1 else values)
        if name.startswith("get_"):
            return lambda *_, **__: self._kept[name[4:]] if name[4:] in self._kept else _setting(_KEYS.get(name[4:], name[4:]))
        raise AttributeError(name)

    def _set(self, name, value):
        key = _KEYS.get(name, name)
        if name == "all_reduce_fusion_split_indices" and isinstance(value, tuple):
            value = value[0]  # of (indices, group)
        if key in context._PARALLEL:
            context.set_auto_parallel_context(**{key: value})
        else:
            self._kept[name] = value


def _setting(name):
    try:
        return context.get_auto_parallel_context(name)
    except ValueError:
        return None


_context = _AutoParallelContext()


def auto_parallel_context():
    """The settings."""
    return _context
