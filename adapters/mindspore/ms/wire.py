"""The wire format of protocol buffers, read and written: enough for checkpoints, MindIR, TFRecord and summary files.

A reader walks (field number, wire type, value): integers for varints and fixed sizes, memory for everything with a length. Whatever is wrong
with the bytes is a ValueError that says where.
"""

import struct

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5


def _varint(data, place):
    value = shift = 0
    while True:
        if place >= len(data):
            raise ValueError(f"ends inside a number at byte {place}")
        byte = data[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & (2**64 - 1), place
        shift += 7
        if shift > 63:
            raise ValueError(f"has a number that is too long at byte {place}")


def fields(data):
    """(number, type, value) of a message, in order."""
    data, place = memoryview(data), 0
    while place < len(data):
        begin = place
        key, place = _varint(data, place)
        number, kind = key >> 3, key & 7
        if number == 0:
            raise ValueError(f"has field number 0 at byte {begin}")
        if kind == VARINT:
            value, place = _varint(data, place)
        elif kind in (FIXED64, FIXED32, LENGTH):
            length = {FIXED64: 8, FIXED32: 4}.get(kind)
            if length is None:
                length, place = _varint(data, place)
            if length > len(data) - place:
                raise ValueError(f"has a field of {length} bytes at byte {begin} where {len(data) - place} are left")
            value = data[place : place + length]
            value = bytes(value) if kind == LENGTH and length < 64 else value if kind == LENGTH else int.from_bytes(value, "little")
            place += length
        else:
            raise ValueError(f"has a field of unknown type {kind} at byte {begin}")
        yield number, kind, value


def messages(data, number):
    """The values with a length of one field."""
    return [value for field, kind, value in fields(data) if field == number and kind == LENGTH]


def signed(value):
    """An int64 from its varint."""
    return value - 2**64 if value >= 2**63 else value


def integers(data, number):
    """A repeated int64 field, packed or not."""
    values = []
    for field, kind, value in fields(data):
        if field == number:
            values += packed(value) if kind == LENGTH else [signed(value)]
    return values


def packed(value):
    """The int64 values of a packed field."""
    values, place = [], 0
    while place < len(value):
        one, place = _varint(value, place)
        values.append(signed(one))
    return values


def varint(value):
    """The bytes of a number."""
    value &= 2**64 - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def number_field(number, value):
    """A varint field."""
    return varint(number << 3 | VARINT) + varint(value)


def bytes_field(number, value):
    """A field with a length: bytes, text or a message."""
    value = value.encode() if isinstance(value, str) else bytes(value)
    return varint(number << 3 | LENGTH) + varint(len(value)) + value


def float_field(number, value):
    """A float field."""
    return varint(number << 3 | FIXED32) + struct.pack("<f", value)


def double_field(number, value):
    """A double field."""
    return varint(number << 3 | FIXED64) + struct.pack("<d", value)


def _number(bits):
    if not isinstance(bits, int):
        raise ValueError("has a text where a number is due")
    return bits


def float_of(bits):
    """The float of a FIXED32 value."""
    return struct.unpack("<f", _number(bits).to_bytes(4, "little"))[0]


def double_of(bits):
    """The double of a FIXED64 value."""
    return struct.unpack("<d", _number(bits).to_bytes(8, "little"))[0]
