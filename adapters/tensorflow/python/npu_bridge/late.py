"""Names whose making costs memory and time that most scripts never need: TensorFlow's estimators take 7 MB to import. A `Late`
stands for such a class or module and answers as it does, making it when it is first used: called, derived from, asked for an
attribute."""


class Late:
    def __init__(self, make):
        self._make = make

    def __getattribute__(self, name):
        if name == "__mro_entries__":  # of a class derived from this one
            return lambda bases: (_made(self),)
        return getattr(_made(self), name)

    def __call__(self, *arguments, **more):
        return _made(self)(*arguments, **more)

    def __instancecheck__(self, instance):
        return isinstance(instance, _made(self))

    def __subclasscheck__(self, cls):
        return issubclass(cls, _made(self))


def _made(late):
    return object.__getattribute__(late, "_make")()
