"""Checkpoint files of all eras: a row of protobuf messages, one parameter each.

A name always holds a whole file. Every length in a file is checked before it is believed; what is wrong with one is told in one sentence.
"""

import stat

import numpy as np
from cairn import _whole as whole
from cairn.ms import wire

from mindspore.train import _encryption

SLICE_BYTES = 512 << 20
MODEL_TYPE = "normal"
_TYPES = {"Bool": "bool", "Int8": "int8", "Int16": "int16", "Int32": "int32", "Int64": "int64", "UInt8": "uint8", "UInt16": "uint16",
          "UInt32": "uint32", "UInt64": "uint64", "Float16": "float16", "Float32": "float32", "Float64": "float64"}  # fmt: skip
_NAMES = {np.dtype(kind): name for name, kind in _TYPES.items()}


class Damaged(ValueError):
    """A file that is no checkpoint, or not a whole one."""


def encode(entries, model_type=None):
    """The bytes of a file, in parts. entries: (name, array or text). model_type: for readers of 0.5, which require it."""
    if model_type:
        yield wire.bytes_field(2, model_type)
    for name, value in entries:
        if isinstance(value, str):
            yield _value(name, [0], "str", value.encode())
            continue
        value = np.asarray(value)
        if value.dtype not in _NAMES:
            raise TypeError(f"{name}: a checkpoint cannot hold elements of {value.dtype}")
        dims = list(value.shape) or [0]
        data = memoryview(np.ascontiguousarray(value).reshape(-1).view(np.uint8))
        step = SLICE_BYTES // value.dtype.itemsize * value.dtype.itemsize
        for begin in range(0, max(len(data), 1), step):
            yield _value(name, dims, _NAMES[value.dtype], data[begin : begin + step])


def _value(name, dims, kind, content):
    tensor = b"".join(wire.number_field(1, size) for size in dims) + wire.bytes_field(2, kind) + wire.bytes_field(3, content)
    return wire.bytes_field(1, wire.bytes_field(1, name) + wire.bytes_field(2, tensor))


def write(path, entries, model_type=None, read_only=False, key=None, mode="AES-GCM"):
    """Writes a checkpoint, under a key where one is given. Until the new file is whole and on the disk the old one stays as it is."""
    parts = encode(entries, model_type)
    if key is not None:
        parts = [_encryption.encrypted(b"".join(parts), key, mode)]
    whole.write(path, parts, stat.S_IRUSR if read_only else stat.S_IRUSR | stat.S_IWUSR)


def read(path, key=None, mode="AES-GCM"):
    """({name: array or text}, model_type). Damaged where it is no whole checkpoint, or not under this key."""
    try:
        with open(path, "rb") as file:
            data = file.read()
        if key is None and _encryption.is_encrypted(data):
            raise ValueError("is encrypted; it needs dec_key and dec_mode")
        return _decode(data if key is None else _encryption.decrypted(data, key, mode))
    except (ValueError, OverflowError, UnicodeDecodeError) as error:
        raise Damaged(f"{path} {error}") from None


def _decode(data):
    slices, kinds, model_type = {}, {}, None
    for number, kind, value in wire.fields(data):
        if number == 1 and kind == wire.LENGTH:
            name, dims, type_name, content = _parts(value)
            if name in slices and kinds[name] != (dims, type_name):
                raise ValueError(f"holds {name[:80]!r} twice, with different shapes")
            slices.setdefault(name, []).append(content)
            kinds[name] = (dims, type_name)
        elif number == 2 and kind == wire.LENGTH:
            model_type = bytes(value).decode()
    if not slices:
        raise ValueError("holds no parameters: it is empty, or no checkpoint")
    return {name: _array(name, *kinds[name], parts) for name, parts in slices.items()}, model_type


def _parts(value):
    name = tensor = None
    for number, kind, field in wire.fields(value):
        if number == 1 and kind == wire.LENGTH:
            name = bytes(field).decode()
        elif number == 2 and kind == wire.LENGTH:
            tensor = field
    if name is None or tensor is None:
        raise ValueError("has a parameter without a name or a value")
    dims, type_name, content = [], None, None
    for number, kind, field in wire.fields(tensor):
        if number == 1:
            dims += wire.packed(field) if kind == wire.LENGTH else [wire.signed(field)]
        elif number == 2 and kind == wire.LENGTH:
            type_name = bytes(field).decode()
        elif number == 3 and kind == wire.LENGTH:
            content = field
    if type_name is None or content is None:
        raise ValueError(f"has no type or no content for {name[:80]!r}")
    return name, dims, type_name, content


def _array(name, dims, type_name, parts):
    if type_name == "str":
        return b"".join(bytes(part) for part in parts).decode()
    if type_name not in _TYPES:
        raise ValueError(f"has elements of an unknown type {type_name[:40]!r} for {name[:80]!r}")
    kind = np.dtype(_TYPES[type_name])
    content = parts[0] if len(parts) == 1 else b"".join(bytes(part) for part in parts)
    scalar = dims in ([0], []) and len(content) == kind.itemsize
    count = 1
    for size in [] if scalar else dims:
        if size < 0:
            raise ValueError(f"has the shape {dims} for {name[:80]!r}")
        count *= size
    if count * kind.itemsize != len(content):
        raise ValueError(f"has {len(content)} bytes for {name[:80]!r}, whose shape {dims} and type {type_name} need "
                         f"{count * kind.itemsize}")
    values = np.frombuffer(content, kind)
    return values.reshape(() if scalar else dims).copy()
