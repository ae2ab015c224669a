"""Caffe models for tests: prototxt text and caffemodel bytes, written by hand."""

import struct

import numpy as np


def varint(number):
    out = b""
    number &= (1 << 64) - 1
    while number > 0x7F:
        out += bytes([0x80 | number & 0x7F])
        number >>= 7
    return out + bytes([number])


def field(number, value):
    """A field of bytes, text or whole numbers."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def blob(array, old=False, wide=False, packed=True):
    """old: four sizes instead of a shape. wide: 64 bits."""
    array = np.asarray(array, np.float64 if wide else np.float32)
    if old:
        sizes = (1,) * (4 - array.ndim) + array.shape
        head = b"".join(field(i + 1, size) for i, size in enumerate(sizes))
    else:
        head = field(7, field(1, b"".join(map(varint, array.shape))) if array.ndim else b"")
    number = 8 if wide else 5
    if packed:
        return head + field(number, array.tobytes())
    return head + b"".join(varint(number << 3 | 5) + struct.pack("<f", x) for x in array.ravel())


def caffemodel(weights, generation=3, **how):
    """{layer: arrays}; generation 1 and 2 are the formats of `layers`."""
    out = field(1, "net")
    for name, arrays in weights.items():
        if generation == 3:
            out += field(100, field(1, name) + b"".join(field(7, blob(x, **how)) for x in arrays))
        elif generation == 2:
            out += field(2, field(4, name) + b"".join(field(6, blob(x, True, **how)) for x in arrays))
        else:
            inner = field(1, name) + b"".join(field(50, blob(x, True, **how)) for x in arrays)
            out += field(2, field(1, inner))
    return out


def text(value):
    """Fields of the text form from a dict; a list repeats the field, a dict is a message."""
    out = ""
    for name, one in value.items():
        for each in one if isinstance(one, (list, tuple)) else [one]:
            if isinstance(each, dict):
                out += f"{name} {{ {text(each)} }} "
            elif isinstance(each, bool):
                out += f"{name}: {str(each).lower()} "
            elif isinstance(each, str) and not each.isupper():
                out += f'{name}: "{each}" '
            else:
                out += f"{name}: {each} "
    return out


def layer(kind, bottoms, tops, name=None, **params):
    bottoms, tops = bottoms.split(), tops.split()
    head = f'layer {{ name: "{name or tops[0]}" type: "{kind}" '
    return head + text({"bottom": bottoms, "top": tops, **params}) + "}\n"


def inputs(**shapes):
    return "".join(
        f'layer {{ name: "{name}" type: "Input" top: "{name}" input_param {{ shape {{ '
        + " ".join(f"dim: {size}" for size in shape)
        + " } } }\n"
        for name, shape in shapes.items()
    )
