"""What layers of one's own import of the compiler's package."""

import functools
import inspect


def cell_attr_register(fn=None, attrs=None):
    """Decorates __init__ of a layer: the values of its arguments, or of those named, are kept as text in cell_init_args."""

    def mark(function):
        names = list(inspect.signature(function).parameters)[1:]
        kept = names if attrs is None else [attrs] if isinstance(attrs, str) else list(attrs)

        @functools.wraps(function)
        def make(self, *arguments, **keywords):
            function(self, *arguments, **keywords)
            given = inspect.signature(function).bind(self, *arguments, **keywords)
            given.apply_defaults()
            self.cell_init_args = type(self).__name__ + str([f"{name}: {given.arguments.get(name)!r}" for name in kept])

        return make

    return mark(fn) if fn is not None else mark
