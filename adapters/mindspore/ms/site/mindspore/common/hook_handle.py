"""What registering a hook returns."""


class HookHandle:
    """remove() takes the hook back."""

    _count = 0

    def __init__(self, hooks, hook):
        HookHandle._count += 1
        self._hooks, self._key = hooks, HookHandle._count
        hooks[self._key] = hook

    def remove(self):
        self._hooks.pop(self._key, None)
