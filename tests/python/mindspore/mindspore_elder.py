"""A conftest.py that gives MindSpore 2.x names which releases up to 1.10 had, and lets errors come where the call is."""

import importlib
import sys
import types

import mindspore
import mindspore._checkparam as checks
import mindspore.common
import mindspore.common.api
import mindspore.dataset.engine.datasets_user_defined as generators
import numpy
import pytest


def ms_function(fn=None, obj=None, input_signature=None, hash_args=None, jit_config=None):
    """Decorates a function, which is compiled."""
    return mindspore.jit if fn is None else mindspore.jit(fn)


class Getters:
    """Of gradients of primitives of one's own, which are not there any more: what is registered has no effect."""

    def register(self, primitive):
        return lambda getter: getter


class Numpy:
    """NumPy 2, whose array(x, copy=False) copies where it must, as that of NumPy 1 did, which 2.10 was written for."""

    def __getattr__(self, name):
        return getattr(numpy, name)

    def array(self, x, *arguments, copy=True, **keywords):
        return numpy.array(x, *arguments, copy=copy or None, **keywords)


generators.np = Numpy()
relations = ("EQ", "NE", "LT", "LE", "GT", "GE", "INC_LEFT", "INC_RIGHT", "INC_BOTH", "INC_NEITHER")
checks.Rel = types.SimpleNamespace(**{name: getattr(checks, name, None) for name in relations})
checks.Validator = types.SimpleNamespace(**{name: value for name, value in vars(checks).items() if callable(value)})
for module in (mindspore, mindspore.common, mindspore.common.api):
    module.ms_function, module.ms_class = ms_function, mindspore.jit_class
for package in ("mindspore.dataset.vision", "mindspore.dataset.transforms"):  # whose two kinds of transforms became one
    for name in ("c_transforms", "py_transforms"):
        sys.modules[f"{package}.{name}"] = importlib.import_module(package)
        setattr(sys.modules[package], name, sys.modules[package])
for name in ("mindspore.ops._grad", "mindspore.ops._grad.grad_base"):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].bprop_getters = Getters()


@pytest.fixture(autouse=True)
def at_once():
    """Errors of operators come where they are called."""
    mindspore.set_context(pynative_synchronize=True)
