"""What nodes, samplers and transforms of a pipeline were made with, which a pipeline as JSON holds."""


class Remembered:
    """Base of classes whose objects know their arguments; remembers = False where these may be large."""

    remembers = True
    _remembered = None

    def __new__(cls, *arguments, **named):
        made = super().__new__(cls)
        if cls.remembers:
            made._remembered = arguments, named
        return made
