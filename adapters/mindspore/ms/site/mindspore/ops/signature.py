"""What the signature of a primitive of one's own says of its inputs; kept, as primitives convert their inputs themselves."""

from collections import namedtuple
from enum import Enum


class sig_rw(Enum):  # noqa: N801
    """Whether an input is read or written."""

    RW_READ = 0
    RW_WRITE = 1
    RW_REF = 2
    RW_EMPTY_DEFAULT_VALUE = 3


class sig_kind(Enum):  # noqa: N801
    """How an input is passed."""

    KIND_POSITIONAL_KEYWORD = 0
    KIND_VAR_POSITIONAL = 1
    KIND_KEYWORD_ONLY = 2
    KIND_VAR_KEYWARD = 3
    KIND_EMPTY_DEFAULT_VALUE = 4


sig_dtype = Enum("sig_dtype", ["T", *(f"T{i}" for i in range(1, 10)), "T_EMPTY_DEFAULT_VALUE"])
Signature = namedtuple("Signature", "name rw kind default_value dtype")


def make_sig(name="var", rw=sig_rw.RW_READ, kind=sig_kind.KIND_POSITIONAL_KEYWORD, default=None, dtype=sig_dtype.T_EMPTY_DEFAULT_VALUE):
    """The description of one input."""
    return Signature(name, rw, kind, default, dtype)
