"""Messages of summary files, read: what SummaryRecord writes, under the names of MindSpore's own messages."""

import struct
import types

import numpy as np
from cairn.ms import wire

__all__ = ["Event"]


def _text(data):
    return bytes(data).decode()


def _real(bits):
    return struct.unpack("<d", struct.pack("<Q", bits))[0]


def _number(bits):
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def _image(data):
    held = {number: value for number, _, value in wire.fields(data)}
    return types.SimpleNamespace(height=held[1], width=held[2], colorspace=held[3], encoded_image=bytes(held[4]))


def _histogram(data):
    held = {number: value for number, _, value in wire.fields(data)}
    limits, counts = (np.frombuffer(held[number], "<f8") for number in (6, 7))
    least, most, count, total = (_real(held[number]) for number in (1, 2, 3, 4))
    lefts = np.concatenate([[least], limits[:-1]])
    buckets = [types.SimpleNamespace(left=a, width=b - a, count=int(n)) for a, b, n in zip(lefts, limits, counts)]
    odd = dict(zip(("nan_count", "pos_inf_count", "neg_inf_count"), (held.get(number, 0) for number in (8, 9, 10))))
    return types.SimpleNamespace(buckets=buckets, min=least, max=most, sum=total, count=int(count) + sum(odd.values()), **odd)


def _floats(data):
    """A TensorProto of numbers."""
    dims = wire.integers(data, 1)
    return np.array([_number(value) for number, _, value in wire.fields(data) if number == 3], np.float32).reshape(dims)


def _point(data):
    return types.SimpleNamespace(**{name: _floats(each) for name, each in zip("xyz", (wire.messages(data, place)[0] for place in (1, 2, 3)))})


def _landscape(data):
    parts = {number: value for number, _, value in wire.fields(data)}
    told = {number: value for number, _, value in wire.fields(parts[3])}
    path = types.SimpleNamespace(intervals=wire.integers(parts[2], 1), points=_point(wire.messages(parts[2], 2)[0])) if 2 in parts else None
    about = types.SimpleNamespace(decomposition=_text(told[1]), unit=_text(told[2]), step_per_epoch=told[3])
    return types.SimpleNamespace(landscape=_point(parts[1]), loss_path=path, metadata=about, convergence_point=_point(parts[4]))


_PARTS = {1: ("tag", _text), 3: ("scalar_value", _number), 4: ("image", _image), 5: ("histogram", _histogram),
          10: ("loss_landscape", _landscape)}  # fmt: skip


class _Message(types.SimpleNamespace):
    def HasField(self, name):
        return hasattr(self, name)

    def WhichOneof(self, group):
        return next((name for name in list(vars(self))[::-1] if name not in ("tag", "wall_time", "step")), None)


class Event(_Message):
    """One record: wall_time, step, and version or summary, whose values hold a scalar, an image or a histogram."""

    def ParseFromString(self, data):
        self.__dict__.update(wall_time=0.0, step=0)
        for number, _, value in wire.fields(data):
            if number in (1, 2):
                self.__dict__.update({"wall_time": _real(value)} if number == 1 else {"step": value})
            elif number == 3:
                self.version = _text(value)
            elif number == 5:
                values = [self._value(each) for each in wire.messages(value, 1)]
                self.summary = types.SimpleNamespace(value=values)
        return len(data)

    @staticmethod
    def _value(data):
        held = [(*_PARTS[number], value) for number, _, value in wire.fields(data) if number in _PARTS]
        return _Message(**{name: read(value) for name, read, value in held})

    @classmethod
    def FromString(cls, data):
        made = cls()
        made.ParseFromString(data)
        return made
