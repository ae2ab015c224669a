"""tensor_operator_registry: operators by name, as functions."""


class Registry:
    """The functions of mindspore.ops by name, and what was registered."""

    def __init__(self):
        self._known = {}

    def register(self, name, operator):
        self._known[name] = operator

    def get(self, name):
        from mindspore import ops

        return self._known[name] if name in self._known else getattr(ops, name)


tensor_operator_registry = Registry()
