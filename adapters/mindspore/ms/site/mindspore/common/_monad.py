"""What stands for the order of effects in F.depend(): the order here is that of the script."""


class _Monad:
    def __init__(self, name):
        self._name = name

    def __repr__(self):
        return self._name


U, IO = _Monad("U"), _Monad("IO")
