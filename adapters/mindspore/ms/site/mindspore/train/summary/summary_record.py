"""Event files in TensorBoard's manner: records with checksums, each a protobuf Event."""

import os
import struct
import threading
import time
import zlib

import numpy as np
from cairn.ms import wire

from mindspore import log as logger
from mindspore.common.tensor import Tensor

__all__ = ["SummaryRecord"]


def _table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_CRC = _table()


def crc32c(data):
    """The Castagnoli checksum."""
    value = 0xFFFFFFFF
    for byte in data:
        value = _CRC[(value ^ byte) & 255] ^ (value >> 8)
    return value ^ 0xFFFFFFFF


def _masked(data):
    crc = crc32c(data)
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


def record(data):
    """A record of an event file."""
    length = struct.pack("<Q", len(data))
    return length + _masked(length) + data + _masked(data)


def event(step=0, version=None, values=()):
    """The bytes of an Event. values: the bytes of Summary.Value messages."""
    body = wire.double_field(1, time.time()) + wire.number_field(2, step)
    if version:
        body += wire.bytes_field(3, version)
    if values:
        body += wire.bytes_field(5, b"".join(wire.bytes_field(1, each) for each in values))
    return body


def scalar(tag, value):
    """A number, twice: TensorBoard reads field 2, MindInsight field 3."""
    value = float(np.mean(value))
    return wire.bytes_field(1, tag) + wire.float_field(2, value) + wire.float_field(3, value)


def _calc_histogram_bins(count):
    """How many buckets so many numbers get: about ten in each, 90 at most."""
    return 1 if count == 0 else 2 if count <= 5 else 3 if count <= 10 else min(count // 10 + 1, 90)


def histogram(tag, value):
    """TensorBoard's histogram: least, most, count, sum, sum of squares, limits and counts of buckets; behind these how many
    elements are NaN, infinite and negative infinite, which summary_pb2 reads."""
    value = np.asarray(value, np.float64).ravel()
    odd = [np.count_nonzero(each) for each in (np.isnan(value), value == np.inf, value == -np.inf)]
    value = value[np.isfinite(value)]
    counts, edges = np.histogram(value, bins=_calc_histogram_bins(len(value))) if len(value) else (np.zeros(1), np.zeros(2))
    numbers = [value.min(initial=np.inf), value.max(initial=-np.inf), len(value), value.sum(), (value**2).sum()]
    body = b"".join(wire.double_field(place + 1, float(each)) for place, each in enumerate(numbers))
    body += wire.bytes_field(6, np.asarray(edges, "<f8")[1:].tobytes()) + wire.bytes_field(7, np.asarray(counts, "<f8").tobytes())
    body += b"".join(wire.number_field(place + 8, each) for place, each in enumerate(odd))
    return wire.bytes_field(1, tag) + wire.bytes_field(5, body)


def image(tag, value):
    """A PNG of the first image of an NCHW batch."""
    value = np.asarray(value)
    value = value[0] if value.ndim == 4 else value
    value = value.transpose(1, 2, 0)[..., : 3 if value.shape[0] >= 3 else 1]
    if value.dtype.kind == "f":
        low, high = value.min(), value.max()
        value = (value - low) / (high - low if high > low else 1) * 255
    value = np.ascontiguousarray(value.astype(np.uint8))
    height, width, channels = value.shape

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + row.tobytes() for row in value)
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 0, 0, 0, 0))
    png += chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    body = wire.number_field(1, height) + wire.number_field(2, width) + wire.number_field(3, channels) + wire.bytes_field(4, png)
    return wire.bytes_field(1, tag) + wire.bytes_field(4, body)


_KINDS = {"scalar": scalar, "histogram": histogram, "tensor": histogram, "image": image}


_kept = {}  # of operators in networks: "tag[:Kind]" -> the last value


def keep(kind, tag, value):
    """A value for the next record()."""
    _kept[f"{tag}[:{kind}]"] = value


def _cache_summary_tensor_data(summary):
    """What operators gave, as dictionaries of a name ("tag[:Kind]") and its data, for the next record()."""
    _kept.update((each["name"], each["data"]) for each in summary)
    return True


def _get_summary_tensor_data():
    """What operators gave since the last call."""
    made = dict(_kept)
    _kept.clear()
    return made


class SummaryRecord:
    """Writes event files into a folder; a context manager."""

    def __init__(self, log_dir, file_prefix="events", file_suffix="_MS", network=None, max_file_size=None, raise_exception=False,
                 export_options=None):
        if not isinstance(log_dir, str) or not log_dir:
            raise TypeError(f"For 'SummaryRecord', the argument 'log_dir' must be a path, but got {log_dir!r}.")
        if max_file_size is not None and (isinstance(max_file_size, bool) or not isinstance(max_file_size, (int, float)) or max_file_size <= 0):
            raise TypeError(f"For 'SummaryRecord', the 'max_file_size' must be a positive number, but got {max_file_size!r}.")
        if not isinstance(raise_exception, bool):
            raise TypeError(f"For 'SummaryRecord', the 'raise_exception' should be bool, but got type {type(raise_exception)}.")
        os.makedirs(log_dir, exist_ok=True)
        self.log_dir, self._mode, self._closed, self._lock = os.path.realpath(log_dir), "train", False, threading.Lock()
        # TensorBoard looks for "tfevents" in names, MindInsight for "out.events.summary".
        name = f"{file_prefix}.out.events.summary.{int(time.time())}.tfevents-{os.getpid()}{file_suffix}"
        self.event_file_name, self.full_file_name = name, os.path.join(self.log_dir, name)
        self._most, self._values, self._full = max_file_size, [], False
        self._file = open(self.full_file_name, "wb")
        self._write(event(version="brain.Event:2"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def set_mode(self, mode):
        """train or eval."""
        if mode not in ("train", "eval"):
            raise ValueError(f"{mode!r} is not a recognized mode, for 'SummaryRecord.set_mode' it must be 'train' or 'eval'.")
        self._mode = mode

    def add_value(self, plugin, name, value):
        """A value that the next record() writes: plugin is scalar, image, tensor, histogram or landscape."""
        if plugin in ("graph", "train_lineage", "eval_lineage", "dataset_graph", "custom_lineage_data", "explainer"):
            return
        if plugin == "landscape":
            self._values.append(wire.bytes_field(1, name) + wire.bytes_field(10, value.message()))
            return
        if plugin not in _KINDS:
            raise ValueError(f"No such plugin of {plugin!r}")
        if not isinstance(name, str) or not name:
            raise ValueError(f"For 'SummaryRecord.add_value', the 'name' must be a text, but got {name!r}.")
        if not isinstance(value, Tensor):
            raise TypeError(f"For 'SummaryRecord.add_value', the 'value' must be a Tensor, but got {type(value).__name__}.")
        self._values.append(_KINDS[plugin](name, value.asnumpy()))

    def record(self, step, train_network=None, plugin_filter=None):
        """Writes what add_value and operators in networks were given since the last time."""
        if self._closed:
            logger.error("The record writer is closed.")
            return False
        if isinstance(step, bool) or not isinstance(step, int):
            raise TypeError(f"For 'SummaryRecord.record', the argument 'step' must be int, but got {type(step)}.")
        values, self._values = self._values, []
        for name, value in _get_summary_tensor_data().items():
            tag, kind = name[:-1].rsplit("[:", 1)
            values.append(_KINDS[kind.lower()](tag, value.asnumpy()))
        if values:
            self._write(event(step, values=values))
        return True

    def _write(self, data):
        data = record(data)
        if self._most is not None and self._file.tell() + len(data) > self._most:
            if not self._full:
                logger.warning(f"{self.full_file_name} has reached max_file_size; nothing more is written.")
            self._full = True
            return
        with self._lock:
            try:
                self._file.write(data)
                self._file.flush()
            except OSError as fault:
                raise OSError(fault.errno, f"cannot be written: {fault.strerror}", self.full_file_name) from None

    def flush(self):
        """Writes out what is buffered."""
        self._file.flush()

    def close(self):
        """Ends the file."""
        if not self._closed:
            self._closed = True
            self._file.close()
