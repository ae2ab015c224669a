"""Pipelines as JSON: each node by its class and arguments, the source innermost. Functions and generators of a script are named in it, and cannot be
made again from it."""

import importlib
import inspect
import json
from enum import Enum

import numpy as np
from cairn.ms import dtypes

from mindspore import log as logger
from mindspore.dataset.core.remembered import Remembered
from mindspore.dataset.engine.datasets import Dataset
from mindspore.dataset.engine.samplers import BuiltinSampler

__all__ = ["compare", "deserialize", "serialize", "show"]

_HOME = "mindspore.dataset."


def serialize(dataset, json_filepath=""):
    """The pipeline as a dictionary, which is also written to the file."""
    if not isinstance(dataset, Dataset):
        raise TypeError(f"Argument dataset with value {dataset} is not of type [Dataset], but got {type(dataset)}.")
    made = _node(dataset)
    if json_filepath:
        with open(json_filepath, "w", encoding="utf-8") as file:
            json.dump(made, file, indent=2)
    return made


def serialize_tuned(dataset, path):
    """Writes the pipeline with the remarks that go with settings found by tuning."""
    told = {"remark": "The pipeline as it was run.", "summary": ["Workers are chosen in each run."], "tree": _node(dataset)}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(told, file, indent=2)


def show(dataset, indentation=2):
    """Logs the pipeline as JSON."""
    logger.info(json.dumps(serialize(dataset), indent=indentation))


def compare(pipeline1, pipeline2):
    """Whether two pipelines are made alike."""
    return serialize(pipeline1) == serialize(pipeline2)


def deserialize(input_dict=None, json_filepath=None):
    """The pipeline of a dictionary or file."""
    if json_filepath:
        with open(json_filepath, encoding="utf-8") as file:
            input_dict = json.load(file)
    if not isinstance(input_dict, dict):
        raise ValueError("deserialize: give input_dict or json_filepath.")
    return _dataset(input_dict.get("tree", input_dict))


def _node(dataset):
    children = []
    if dataset._remembered is None:
        return {"op_type": type(dataset).__name__, "python": True, "children": [_node(each) for each in dataset.children]}
    arguments = {name: _value(each, children) for name, each in _bound(dataset).items()}
    return {"op_type": type(dataset).__name__, **_place(dataset), "arguments": arguments, "children": children}


def _bound(made):
    arguments, named = made._remembered
    bound = inspect.signature(type(made)).bind(*arguments, **named)
    bound.apply_defaults()
    return bound.arguments


def _place(made):
    return {"module": type(made).__module__}


def _value(value, children):
    """The JSON of an argument; datasets among them go to children."""
    if isinstance(value, Dataset):
        children.append(_node(value))
        return {"child": len(children) - 1}
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, (list, tuple)):
        return [_value(each, children) for each in value]
    if isinstance(value, dict):
        return {"pairs": [[_value(key, children), _value(each, children)] for key, each in value.items()]}
    if isinstance(value, Enum):
        return {"enum": type(value).__name__, "module": type(value).__module__, "name": value.name}
    if isinstance(value, dtypes.Type):
        return {"dtype": value.name}
    if isinstance(value, (np.ndarray, np.generic)):
        return {"array": value.tolist(), "of": value.dtype.name}
    if isinstance(value, type) and issubclass(value, np.generic):
        return {"numpy": np.dtype(value).name}
    if isinstance(value, Remembered) and value._remembered is not None and type(value).__module__.startswith(_HOME):
        made = {"tensor_op_name": type(value).__name__, **_place(value), "tensor_op_params": {k: _value(v, children) for k, v in _bound(value).items()}}
        if isinstance(value, BuiltinSampler) and value.child_sampler is not None:
            made["child_sampler"] = _value(value.child_sampler, children)
        return made
    return {"python": getattr(value, "__name__", type(value).__name__)}


def _refused(name):
    return RuntimeError(f"deserialize: {name} is a part of the script, which the pipeline's JSON does not hold.")


def _class(told, name):
    module = told.get("module", "")
    if not module.startswith(_HOME):
        raise ValueError(f"deserialize: {name} is of no module of mindspore.dataset: {module!r}.")
    return getattr(importlib.import_module(module), name)


def _called(kind, arguments):
    bound = inspect.signature(kind).bind_partial()
    bound.arguments.update(arguments)
    return kind(*bound.args, **bound.kwargs)


def _dataset(told):
    if told.get("python"):
        raise _refused(told["op_type"])
    children = [_dataset(each) for each in told["children"]]
    return _called(_class(told, told["op_type"]), {name: _object(each, children) for name, each in told["arguments"].items()})


def _object(told, children):
    if isinstance(told, list):
        return [_object(each, children) for each in told]
    if not isinstance(told, dict):
        return told
    if "child" in told:
        return children[told["child"]]
    if "python" in told:
        raise _refused(told["python"])
    if "pairs" in told:
        return {_object(key, children): _object(each, children) for key, each in told["pairs"]}
    if "enum" in told:
        return _class(told, told["enum"])[told["name"]]
    if "dtype" in told:
        return dtypes.named(told["dtype"])
    if "array" in told:
        return np.array(told["array"], told["of"])
    if "numpy" in told:
        return np.dtype(told["numpy"]).type
    made = _called(_class(told, told["tensor_op_name"]), {name: _object(each, children) for name, each in told["tensor_op_params"].items()})
    if "child_sampler" in told:
        made.add_child(_object(told["child_sampler"], children))
    return made
