"""What is not supported is refused in one sentence, which names the nearest thing that works."""


class Unsupported(NotImplementedError):
    """A name of MindSpore's that Cairn does not have."""


class Uncaptured(ValueError):
    """What a captured function cannot do. `line`: where, if that is known."""

    def __init__(self, reason, line=None):
        super().__init__(reason)
        self.line = line


def refuse(name, reason, instead=None):
    """Raises Unsupported."""
    raise Unsupported(f"{name}: {reason}" + (f"; {instead} works" if instead else ""))
