"""TFRecord files of tf.train.Example, read without TensorFlow."""

import struct

import numpy as np
from cairn.ms import wire


def records(path):
    """The records of a file."""
    with open(path, "rb") as file:
        data = file.read()
    place = 0
    while place < len(data):
        if place + 12 > len(data):
            raise RuntimeError(f"Invalid file, {path} ends inside a record")
        (length,) = struct.unpack_from("<Q", data, place)
        if length > len(data) - place - 16:
            raise RuntimeError(f"Invalid file, {path}: the record at byte {place} is longer than the file")
        yield data[place + 12 : place + 12 + length]
        place += 16 + length


def examples(path):
    """{name: array} for each example: int64, float32 or bytes."""
    for record in records(path):
        example = {}
        for features in wire.messages(record, 1):
            for entry in wire.messages(features, 1):
                parts = {number: value for number, _, value in wire.fields(entry)}
                example[bytes(parts[1]).decode()] = _feature(parts.get(2, b""))
        yield example


def _feature(data):
    for number, _, value in wire.fields(data):
        if number == 1:
            return np.array([bytes(each) for each in wire.messages(value, 1)], dtype="S")
        if number == 2:
            held = b"".join(struct.pack("<I", each) if isinstance(each, int) else bytes(each) for n, _, each in wire.fields(value) if n == 1)
            return np.frombuffer(held, "<f4").copy()
        if number == 3:
            return np.array(wire.integers(value, 1), dtype=np.int64)
    return np.zeros(0, np.int64)
