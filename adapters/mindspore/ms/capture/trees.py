"""Variables as trees: nested tuples, lists, dicts and sparse tensors of tensors and numbers."""

import numpy
from cairn.ms.tensor import Tensor

from .conditions import is_number, nptype


def parts(tree):
    if isinstance(tree, dict):
        return list(tree.values())
    if hasattr(type(tree), "of_parts"):
        return list(tree.parts())
    return list(tree) if isinstance(tree, (tuple, list)) and not hasattr(tree, "_fields") else None


def leaves(tree):
    inner = parts(tree)
    return [tree] if inner is None else [leaf for each in inner for leaf in leaves(each)]


def rebuilt(tree, make):
    """The same tree with make(leaf) for each leaf, in order."""
    if parts(tree) is None:
        return make(tree)
    if isinstance(tree, dict):
        return {key: rebuilt(each, make) for key, each in tree.items()}
    if hasattr(type(tree), "of_parts"):
        return tree.of_parts([rebuilt(each, make) for each in tree.parts()])
    return type(tree)([rebuilt(each, make) for each in tree])


def form(tree):
    inner = parts(tree)
    if inner is None:
        return None
    named = tuple(tree) if isinstance(tree, dict) else tree.shape if hasattr(type(tree), "of_parts") else ()
    return type(tree), named, tuple(map(form, inner))


def is_carriable(tree):
    return all(isinstance(leaf, Tensor) or is_number(leaf) for leaf in leaves(tree))


def zeros(tree):
    """A tree of that form, types and shapes."""

    def zero(leaf):
        if isinstance(leaf, Tensor):
            return Tensor(numpy.zeros(leaf.shape, nptype(leaf)))
        return type(leaf)(0) if is_number(leaf) else leaf

    return rebuilt(tree, zero)
