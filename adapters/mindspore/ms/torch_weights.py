"""Weights of PyTorch without PyTorch: state dicts of .pt and .pth files, and what MindSpore calls their parameters.

A file is a zip of a pickle and of raw storages. The pickle is read by a reader that knows the few things a state dict is made of
and calls nothing else: whatever a file names beyond them is refused."""

import collections
import io
import os
import pickle
import re
import zipfile

import numpy as np


class Refused(ValueError):
    """A file that is no state dict, or that would run something."""


_STORAGES = {"FloatStorage": "f4", "DoubleStorage": "f8", "HalfStorage": "f2", "LongStorage": "i8", "IntStorage": "i4",
             "ShortStorage": "i2", "CharStorage": "i1", "ByteStorage": "u1", "BoolStorage": "?", "BFloat16Storage": "bf16"}  # fmt: skip
_ELEMENTS = 1 << 33  # of a file's tensors, views of one storage among them


class _Kind:
    def __init__(self, name):
        self.name = name



def _tensor(storage, offset, size, strides, *_):
    array, size, strides = storage, tuple(size), tuple(strides)
    if len(size) != len(strides) or any(not isinstance(each, int) or each < 0 for each in (offset, *size, *strides)):
        raise Refused("a tensor has no valid shape")
    last = offset + sum((length - 1) * stride for length, stride in zip(size, strides)) if all(size) else 0
    if all(size) and last >= array.size:
        raise Refused("a tensor reaches beyond its storage")
    if np.prod(size, dtype=np.float64) > _ELEMENTS:
        raise Refused("a tensor has more elements than can be read")
    view = np.lib.stride_tricks.as_strided(
        array[offset:], size, [stride * array.itemsize for stride in strides], writeable=False
    )
    return np.ascontiguousarray(view).reshape(size)


def _parameter(data, *_):
    return data


class _Reader(pickle.Unpickler):
    def __init__(self, file, storage):
        super().__init__(file)
        self._storage = storage

    def find_class(self, module, name):
        if module == "collections" and name == "OrderedDict":
            return collections.OrderedDict
        if module == "torch._utils" and name in ("_rebuild_tensor_v2", "_rebuild_tensor"):
            return _tensor
        if module == "torch._utils" and name == "_rebuild_parameter":
            return _parameter
        if module in ("torch", "torch.storage") and name in _STORAGES:
            return _Kind(name)
        if module == "torch" and name == "Size":
            return tuple
        raise Refused(f"the file asks for {module}.{name}, which no state dict needs")

    def persistent_load(self, key):
        if not isinstance(key, tuple) or len(key) < 5 or key[0] != "storage" or not isinstance(key[1], _Kind):
            raise Refused("a storage is not described as one")
        return self._storage(key[1].name, str(key[2]), key[4])


def _array(data, kind, count):
    if kind == "BFloat16Storage":
        if len(data) != 2 * count:
            raise Refused("a storage has another size than is told")
        return (np.frombuffer(data, "<u2").astype(np.uint32) << 16).view(np.float32)
    kind = np.dtype(_STORAGES[kind])
    if not isinstance(count, int) or len(data) != kind.itemsize * count:
        raise Refused("a storage has another size than is told")
    return np.frombuffer(data, kind.newbyteorder("<")).astype(kind)


def read(path):
    """{name: array} of a file that torch.save wrote; of nested dicts the state dict among them. Raises Refused."""
    try:
        found = _read(path)
    except Refused as fault:
        raise Refused(f"{path}: {fault}") from None
    except (zipfile.BadZipFile, pickle.UnpicklingError, KeyError, ValueError, TypeError, IndexError, AttributeError,
            EOFError, MemoryError, OverflowError, RecursionError, NotImplementedError, RuntimeError) as fault:  # fmt: skip
        raise Refused(f"{path}: no whole file of torch.save ({type(fault).__name__}: {fault})") from None
    for name in ("state_dict", "model_state_dict", "model", "net", "weights", None):
        inner = found if name is None else found.get(name) if isinstance(found, dict) else None
        if isinstance(inner, dict) and any(isinstance(each, np.ndarray) for each in inner.values()):
            return {str(key): value for key, value in inner.items() if isinstance(value, np.ndarray)}
    raise Refused(f"{path}: it holds no dict of tensors")


def _read(path):
    if not zipfile.is_zipfile(path):
        raise Refused("no zip: save it again with a PyTorch from 1.6 on")
    size = os.path.getsize(path)
    with zipfile.ZipFile(path) as archive:
        names = {entry.filename: entry for entry in archive.infolist()}
        pickled = next((name for name in names if name.endswith("data.pkl")), None)
        if pickled is None:
            raise Refused("no data.pkl inside")
        folder, storages = pickled[: -len("data.pkl")], {}

        def storage(kind, key, count):
            if key not in storages:
                entry = names[f"{folder}data/{key}"]
                if entry.compress_type != zipfile.ZIP_STORED or entry.file_size > size:
                    raise Refused("a storage is compressed, which PyTorch never does")
                storages[key] = _array(archive.read(entry), kind, count)
            return storages[key]

        if names[pickled].file_size > size and names[pickled].compress_type == zipfile.ZIP_STORED:
            raise Refused("a part is longer than the file")
        return _Reader(io.BytesIO(archive.read(pickled)), storage).load()


# ---- names ----

_NORM = {"weight": "gamma", "bias": "beta", "running_mean": "moving_mean", "running_var": "moving_variance"}


def _candidates(name):
    """What a parameter of PyTorch may be called in MindSpore, the likeliest first."""
    layer, _, last = name.rpartition(".")
    lead = layer + "." if layer else ""
    found = [name]
    found += [lead + _NORM[last]] if last in _NORM else []
    found += [lead + "embedding_table", lead + "w"] if last == "weight" else []
    packed = re.fullmatch(r"(weight|bias)_(ih|hh)", last)
    found += [f"{lead}{last}"] if packed else []
    return found


def mapped(state, expected=None):
    """({name in MindSpore: array}, [sentences about what has no place]). expected: {name: shape} of the cell; without it the
    layers are told by what they hold."""
    made, lost = {}, []
    norms = {name.rpartition(".")[0] for name in state if name.endswith("running_mean")}
    for name, value in state.items():
        name = name.removeprefix("module.")
        layer, _, last = name.rpartition(".")
        if last == "num_batches_tracked":
            continue
        if expected is None:
            norm = layer in norms or (last in ("weight", "bias") and _is_norm(state, layer))
            made[f"{layer}.{_NORM[last]}" if norm and last in _NORM and layer else name] = value
            continue
        place = next((each for each in _candidates(name) if each in expected), None)
        if place is None:
            lost.append(f"{name} {list(value.shape)} has no place in the cell")
        elif tuple(expected[place]) != value.shape and int(np.prod(expected[place])) != value.size:
            lost.append(f"{name} {list(value.shape)} does not fit {place} {list(expected[place])}")
        else:
            made[place] = value.reshape(expected[place])
    if expected is not None:
        lost += [f"{name} {list(expected[name])} gets nothing" for name in expected if name not in made]
    return made, lost


def _is_norm(state, layer):
    """A weight and a bias of one axis and one length."""
    weight, bias = state.get(layer + ".weight"), state.get(layer + ".bias")
    return weight is not None and bias is not None and weight.ndim == 1 and weight.shape == bias.shape
