"""MessagePack of what rows of MindRecord hold: numbers, texts, lists and dicts."""

import struct

_FIXED = {0xC0: None, 0xC2: False, 0xC3: True}
_NUMBERS = {0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q"}
_LENGTHS = {0xC4: (">B", "bin"), 0xC5: (">H", "bin"), 0xC6: (">I", "bin"), 0xD9: (">B", "str"), 0xDA: (">H", "str"), 0xDB: (">I", "str"),
            0xDC: (">H", "array"), 0xDD: (">I", "array"), 0xDE: (">H", "map"), 0xDF: (">I", "map")}  # fmt: skip


def pack(value):
    """The bytes of a value."""
    if value is None or isinstance(value, bool):
        return bytes([{None: 0xC0, False: 0xC2, True: 0xC3}[value]])
    if isinstance(value, int):
        if -32 <= value < 128:
            return struct.pack(">b", value)
        return b"\xd3" + struct.pack(">q", value) if value < 2**63 else b"\xcf" + struct.pack(">Q", value)
    if isinstance(value, float):
        return b"\xcb" + struct.pack(">d", value)
    if isinstance(value, str):
        data = value.encode()
        return (bytes([0xA0 | len(data)]) if len(data) < 32 else b"\xdb" + struct.pack(">I", len(data))) + data
    if isinstance(value, dict):
        return b"\xdf" + struct.pack(">I", len(value)) + b"".join(pack(key) + pack(each) for key, each in value.items())
    return b"\xdd" + struct.pack(">I", len(value)) + b"".join(pack(each) for each in value)


def unpack(data):
    """The value of bytes. ValueError where they are no MessagePack."""
    try:
        value, place = _unpack(memoryview(data), 0, 0)
    except (struct.error, IndexError, TypeError, UnicodeDecodeError) as error:
        raise ValueError(f"is damaged: {error}") from None
    if place != len(data):
        raise ValueError("is damaged: bytes are left behind a row")
    return value


def _unpack(data, place, depth):
    if depth > 32:
        raise ValueError("is damaged: a row is nested too deep")
    kind, place = data[place], place + 1
    if kind < 0x80 or kind >= 0xE0:
        return (kind if kind < 0x80 else kind - 256), place
    if kind in _FIXED:
        return _FIXED[kind], place
    if kind in _NUMBERS:
        form = _NUMBERS[kind]
        return struct.unpack_from(form, data, place)[0], place + struct.calcsize(form)
    if kind in _LENGTHS:
        form, what = _LENGTHS[kind]
        (length,) = struct.unpack_from(form, data, place)
        place += struct.calcsize(form)
    elif kind < 0xC0:
        what, length = ("map", kind & 15) if kind < 0x90 else ("array", kind & 15) if kind < 0xA0 else ("str", kind & 31)
    else:
        raise ValueError(f"is damaged: a value of kind {kind:#x}")
    if length > len(data) - place:
        raise ValueError("is damaged: a value is longer than its row")
    if what in ("bin", "str"):
        value = bytes(data[place : place + length])
        return (value.decode() if what == "str" else value), place + length
    values = []
    for _ in range(length * (2 if what == "map" else 1)):
        value, place = _unpack(data, place, depth + 1)
        values.append(value)
    return (dict(zip(values[::2], values[1::2])) if what == "map" else values), place
