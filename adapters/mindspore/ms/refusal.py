"""What is not supported is refused in one sentence, which names the nearest thing that works; what the engine refuses is an
error of the class that MindSpore's checks raise."""

import re

from cairn import Error


class Unsupported(NotImplementedError):
    """A name of MindSpore's that Cairn does not have."""


class Uncaptured(ValueError):
    """What a captured function cannot do. `line`: where, if that is known. `raised`: the last one, which a script's own
    handler may have caught."""

    raised = None

    def __init__(self, reason, line=None):
        super().__init__(reason)
        self.line = line
        Uncaptured.raised = self


class Forbidden(Uncaptured, RuntimeError):
    """A statement that no captured function may have, also where it could run eagerly."""


class UnsupportedValue(Unsupported, ValueError):
    """A value of an argument that Cairn does not have, for which releases raise ValueError as well."""


class ForbiddenType(Forbidden, TypeError):
    """The same, where releases raise TypeError."""


class WrongIndex(TypeError, RuntimeError):
    """A bound of a slice that is none: releases raise the one for numbers, the other for tensors."""


class WrongGradients(TypeError, ValueError):
    """What the bprop of a script returned are not the gradients of its inputs: releases raise one eagerly, the other in graphs."""


def refuse(name, reason, instead=None, error=Unsupported):
    """Raises Unsupported."""
    raise error(f"{name}: {reason}" + (f"; use {instead}" if instead else ""))


class Wrong(TypeError, ValueError):
    """An argument for which releases raise one or the other."""


class WrongType(TypeError, Error):
    """An operator got elements of a type that it does not take."""


class WrongValue(ValueError, Error):
    """An operator got shapes, attributes or elements that it does not take."""


def fault(error):
    """The exception for a cairn.Error of an operator."""
    if "assert failed" in str(error) or error.kind not in ("invalid_model", "invalid_argument"):
        return error
    text = str(error)
    of_type = re.search(r"element type|must be [^,]+, found", text)
    made = (WrongType if of_type else WrongValue)(text)
    made.kind, made.where, made.report = error.kind, error.where, error.report
    return made


def of_index(error):
    """The exception for a cairn.Error of an operator that ran: an index outside of what it gathers from is told in MindSpore's words."""
    found = re.search(r"gather: index (-?\d+) is out of range for (\d+) elements", str(error))
    if found is None:
        return error
    return RuntimeError(f"For 'Gather', the 'input_indices' should be in the range [-{found[2]}, {found[2]}), but got {found[1]}.")
