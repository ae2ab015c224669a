"""MindRecord files: a header in JSON, pages of rows and of blobs, and beside each file an index in SQLite that says where rows lie."""

import json
import os
import sqlite3
import struct

import numpy as np

from mindspore.mindrecord import msgpack

HEADER_SIZE, PAGE_SIZE = 1 << 24, 1 << 25
NUMBERS = {"int32": np.int32, "int64": np.int64, "float32": np.float32, "float64": np.float64}
_WIDTHS = (1, 2, 4, 8)
_LARGEST_HEADER = 1 << 27


class MRMError(RuntimeError):
    """A file that cannot be read or written."""


class MissingFile(MRMError, ValueError):
    """A file that is not there: pipelines call that a wrong value."""


def blob_fields(schema):
    """Columns that lie in blob pages: bytes, and arrays of numbers."""
    return [name for name, told in schema.items() if told["type"] == "bytes" or "shape" in told]


def encode_blob(value, told):
    """The bytes of a blob."""
    if told["type"] == "bytes":
        return bytes(value)
    array = np.ascontiguousarray(value, NUMBERS[told["type"]]).ravel()
    return narrowed(array) if array.dtype.kind == "i" else array.tobytes()


def narrowed(array):
    """Integers in as few bytes as each needs: their count, two bits of width for each, the values."""
    codes = [next(code for code, width in enumerate(_WIDTHS) if -(1 << 8 * width - 1) <= value < 1 << 8 * width - 1)
             for value in array.tolist()]  # fmt: skip
    padded = codes + [0] * (-len(codes) % 4)
    widths = bytes(padded[i] << 6 | padded[i + 1] << 4 | padded[i + 2] << 2 | padded[i + 3] for i in range(0, len(padded), 4))
    values = b"".join(value.to_bytes(_WIDTHS[code], "little", signed=True) for value, code in zip(array.tolist(), codes))
    return struct.pack(">I", len(codes)) + widths + values


def widened(data, kind):
    """The integers again."""
    (count,) = struct.unpack_from(">I", data)
    begin = 4 + -(-count // 4)
    if begin > len(data):
        raise ValueError("is damaged: integers are longer than their blob")
    widths = np.frombuffer(data, np.uint8, begin - 4, 4)
    codes = np.stack([widths >> shift & 3 for shift in (6, 4, 2, 0)], 1).ravel()[:count]
    sizes = np.array(_WIDTHS)[codes]
    starts = begin + np.concatenate([[0], np.cumsum(sizes)])
    if starts[-1] != len(data):
        raise ValueError("is damaged: integers do not fill their blob")
    values = np.zeros(count, kind)
    raw = np.frombuffer(data, np.uint8)
    for width in _WIDTHS:
        chosen = np.flatnonzero(sizes == width)
        if len(chosen):
            values[chosen] = raw[starts[chosen][:, None] + np.arange(width)].copy().view(f"<i{width}").ravel()
    return values


def decode_blob(data, told):
    """The value of a blob."""
    if told["type"] == "bytes":
        return np.frombuffer(data, np.uint8)
    kind = np.dtype(NUMBERS[told["type"]])
    values = widened(data, kind) if kind.kind == "i" else np.frombuffer(data, kind)
    return values.reshape(told["shape"])


class Shard:
    """One file in the making."""

    def __init__(self, path, header_size, page_size, schema, index):
        self.path, self.header_size, self.page_size, self.schema, self.index = path, header_size, page_size, schema, index
        self.file = open(path, "wb")
        self.pages, self.open, self.rows = [], {}, []

    def _page(self, kind, size):
        """The page of a kind that has room for `size` more bytes."""
        page = self.open.get(kind)
        if size > self.page_size:
            raise MRMError(f"{self.path}: a row of {size} bytes does not fit into a page of {self.page_size}; set_page_size() "
                           "makes pages larger")
        if page is None or page["page_size"] + size > self.page_size:
            of_kind = sum(each["page_type"] == kind for each in self.pages)
            page = {"page_id": len(self.pages), "shard_id": 0, "page_type": kind, "page_type_id": of_kind, "start_row_id": len(self.rows),
                    "end_row_id": len(self.rows), "row_group_ids": [], "page_size": 0}
            self.pages.append(page)
            self.open[kind] = page
            if kind == "BLOB_DATA":
                page["row_group_ids"] = [{"id": of_kind, "offset": 0}]
        return page

    def _put(self, kind, data):
        """(page number, begin, end) of data with its length in front."""
        data = struct.pack("<Q", len(data)) + data
        page = self._page(kind, len(data))
        begin = page["page_size"]
        self.file.seek(self.header_size + page["page_id"] * self.page_size + begin)
        self.file.write(data)
        page["page_size"] += len(data)
        page["end_row_id"] = len(self.rows) + 1
        return page["page_id"], begin, page["page_size"]

    def write(self, raw, blob, indexed):
        """One row."""
        page_raw, raw_begin, raw_end = self._put("RAW_DATA", raw)
        page_blob, blob_begin, blob_end = self._put("BLOB_DATA", blob)
        group = self.open["BLOB_DATA"]["row_group_ids"][0]["id"]
        self.rows.append((len(self.rows), page_raw, raw_begin, raw_end, group, page_blob, blob_begin, blob_end, *indexed))

    def close(self, addresses, number):
        """Writes header and index."""
        for page in self.pages:
            page["shard_id"] = number
        header = {"header_size": self.header_size, "page_size": self.page_size,
                  "index_fields": [{"schema_id": 0, "field_name": name} for name in self.index],
                  "page": self.pages, "schema": [{"schema": self.schema, "blob_fields": blob_fields(self.schema), "desc": "", "schema_id": 0}],
                  "shard_addresses": addresses, "shard_id": number, "statistics": [], "version": "3.0"}
        data = json.dumps(header).encode()
        if len(data) + 8 > self.header_size:
            raise MRMError(f"{self.path}: the header of {len(data)} bytes does not fit into {self.header_size}; "
                           "set_header_size() makes room")
        self.file.seek(0)
        self.file.write(struct.pack("<Q", len(data)) + data)
        if not self.pages:
            self.file.truncate(self.header_size)
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()
        columns = "".join(f", INC_{place} INT, {name}_0 "
                          f"{'TEXT' if self.schema[name]['type'] == 'string' else 'NUMERIC'}" for place, name in enumerate(self.index))
        if os.path.exists(self.path + ".db"):
            os.remove(self.path + ".db")
        with sqlite3.connect(self.path + ".db") as base:
            base.execute("CREATE TABLE SHARD_NAME(NAME TEXT NOT NULL)")
            base.execute("INSERT INTO SHARD_NAME VALUES (?)", (os.path.basename(self.path),))
            base.execute("CREATE TABLE INDEXES(ROW_ID INT NOT NULL, PAGE_ID_RAW INT, PAGE_OFFSET_RAW INT, PAGE_OFFSET_RAW_END "
                         "INT, ROW_GROUP_ID INT, "
                         f"PAGE_ID_BLOB INT, PAGE_OFFSET_BLOB INT, PAGE_OFFSET_BLOB_END INT{columns}, PRIMARY KEY(ROW_ID))")
            rows = [(*row[:8], *(each for place, value in enumerate(row[8:]) for each in (place, value))) for row in self.rows]
            base.executemany(f"INSERT INTO INDEXES VALUES ({','.join('?' * (8 + 2 * len(self.index)))})", rows)
        base.close()


class Part:
    """One file that is read."""

    def __init__(self, path):
        self.path = path
        if not os.path.isfile(path):
            raise MissingFile(f"{path}: there is no such MindRecord file")
        if not os.path.isfile(path + ".db"):
            raise MRMError(f"{path}: its index {os.path.basename(path)}.db is missing; both belong together and cannot be renamed")
        try:
            with open(path, "rb") as file:
                (length,) = struct.unpack("<Q", file.read(8))
                if length > _LARGEST_HEADER:
                    raise ValueError(f"has a header of {length} bytes")
                self.header = json.loads(file.read(length))
            self.header_size, self.page_size = int(self.header["header_size"]), int(self.header["page_size"])
            if self.header.get("version") not in ("2.0", "3.0"):
                raise ValueError(f"is of version {self.header.get('version')}, 2.0 and 3.0 are read")
            self.schema = self.header["schema"][0]["schema"]
            self.blobs = list(self.header["schema"][0].get("blob_fields", ()))
            self.addresses = [os.path.basename(each) for each in self.header["shard_addresses"]]
            with sqlite3.connect(f"file:{path}.db?mode=ro", uri=True) as base:
                self.rows = base.execute("SELECT PAGE_ID_RAW, PAGE_OFFSET_RAW, PAGE_OFFSET_RAW_END, PAGE_ID_BLOB, PAGE_OFFSET_BLOB, "
                                         "PAGE_OFFSET_BLOB_END FROM INDEXES ORDER BY ROW_ID").fetchall()  # fmt: skip
            base.close()
        except (ValueError, KeyError, IndexError, TypeError, AttributeError, struct.error, sqlite3.Error) as error:
            raise MRMError(f"{path} is no MindRecord file, or damaged: {error}") from None
        self.file = None

    def _bytes(self, page, begin, end):
        if self.file is None:
            self.file = open(self.path, "rb")
        self.file.seek(self.header_size + page * self.page_size + begin)
        data = self.file.read(end - begin)
        if len(data) != end - begin or len(data) < 8:
            raise ValueError("ends inside a row")
        (length,) = struct.unpack_from("<Q", data)
        if length != len(data) - 8:
            raise ValueError("has a row whose length is not the index's")
        return data[8:]

    def row(self, number):
        """{column: array}"""
        page_raw, raw_begin, raw_end, page_blob, blob_begin, blob_end = self.rows[number]
        try:
            row = msgpack.unpack(self._bytes(page_raw, raw_begin, raw_end))
            values = {name: self._plain(row[name], told) for name, told in self.schema.items() if name not in self.blobs}
            if self.blobs:
                values.update(self._blobs(self._bytes(page_blob, blob_begin, blob_end)))
        except (ValueError, KeyError, TypeError, OverflowError, struct.error) as error:
            raise MRMError(f"{self.path}: row {number}: {error}") from None
        return {name: values[name] for name in self.schema}

    @staticmethod
    def _plain(value, told):
        return np.asarray(value) if told["type"] == "string" else np.asarray(value, NUMBERS[told["type"]])

    def _blobs(self, data):
        if len(self.blobs) == 1:
            return {self.blobs[0]: decode_blob(data, self.schema[self.blobs[0]])}
        values, place = {}, 0
        for name in self.blobs:
            (length,) = struct.unpack_from(">Q", data, place)
            values[name] = decode_blob(data[place + 8 : place + 8 + length], self.schema[name])
            place += 8 + length
        return values


class Reader:
    """The rows of all shards. A single path stands for all shards that its header names, a list for itself."""

    def __init__(self, paths):
        if isinstance(paths, (list, tuple)):
            self.parts = [Part(os.fspath(each)) for each in paths]
        else:
            first = Part(os.fspath(paths))
            folder = os.path.dirname(first.path)
            self.parts = [first if each == os.path.basename(first.path) else Part(os.path.join(folder, each)) for each in first.addresses]
        if not self.parts:
            raise MRMError("no MindRecord file is given")
        self.schema, self.columns = self.parts[0].schema, list(self.parts[0].schema)
        self._begins = np.cumsum([0, *(len(each.rows) for each in self.parts)])

    def __len__(self):
        return int(self._begins[-1])

    def __getitem__(self, index):
        part = int(np.searchsorted(self._begins, index, side="right")) - 1
        return self.parts[part].row(index - int(self._begins[part]))
