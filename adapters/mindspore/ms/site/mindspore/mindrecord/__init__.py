"""MindRecord files, written and read."""

import collections
import json
import os
import sqlite3
import struct

import numpy as np
from cairn import Error as MRMError
from cairn import _data
from cairn.ms import refuse

__all__ = ["FileReader", "FileWriter", "MRMError", "MRMGetMetaError", "MindPage", "ParamTypeError", "ParamValueError", "get_error_code"]



class ParamValueError(MRMError, ValueError):
    """An argument of a wrong value."""


class ParamTypeError(MRMError, TypeError):
    """An argument of a wrong type."""


class MRMGetMetaError(MRMError):
    """A schema that is asked for before there is one."""


# What other faults are called where scripts tell them apart; all that is raised here is one of them.
_KINDS = (
    "MRMUnsupportedSchemaError MRMInvalidSchemaError MRMInvalidPageSizeError MRMInvalidHeaderSizeError MRMSetHeaderError MRMWriteDatasetError "
    "MRMCommitError MRMOpenError MRMOpenForAppendError MRMReadCategoryInfoError MRMFetchCandidateFieldsError MRMAddSchemaError MRMBuildSchemaError "
    "MRMAddIndexError MRMDefineIndexError MRMDefineCategoryError MRMIndexGeneratorError MRMGenerateIndexError MRMInvalidIndexError "
    "MRMFetchDataError MRMLaunchError MRMFinishError MRMValidateDataError MRMDefineBlobError PathNotExistsError DbConnectionError MRMSavePngFail"
).split()
globals().update({name: type(name, (MRMError,), {"__module__": __name__}) for name in _KINDS})

SUCCESS, FAILED = "SUCCESS", "FAILED"
HEADER_SIZE, PAGE_SIZE = 1 << 24, 1 << 25
NUMBERS = ("int32", "int64", "float32", "float64")


class MissingFile(MRMError, ValueError):
    """A file that is not there: pipelines call that a wrong value."""


def shards_of(paths):
    """A single path stands for all files that its header names, a list for itself."""
    several = isinstance(paths, (list, tuple))
    paths = [os.fspath(path) for path in (paths if several else [paths])]
    for path in paths:
        if not os.path.isfile(path):
            raise MissingFile(f"{path}: there is no such MindRecord file")
    return paths if several else _data.mindrecord_shards(paths[0])


class FileWriter:
    """FileWriter(file_name, shard_num): add_schema, add_index, write_raw_data, commit."""

    def __init__(self, file_name, shard_num=1, overwrite=False):
        if not isinstance(file_name, str) or not file_name:
            raise ValueError(f"Parameter file_name must be a text that is not empty, but got {file_name!r}.")
        _whole(shard_num, "shard_num")
        if not 0 < shard_num <= 1000:
            raise ParamValueError(f"Parameter shard_num's value: {shard_num} should between 1 and 1000.")
        if not isinstance(overwrite, bool):
            raise ParamTypeError("Parameter overwrite's type is not bool.")
        self._paths = [file_name] if shard_num == 1 else [f"{file_name}{number:0{len(str(shard_num - 1))}d}" for number in range(shard_num)]
        for path in self._paths:
            if (os.path.exists(path) or os.path.exists(path + ".db")) and not overwrite:
                raise MRMError(f"Invalid file, mindrecord files already exist. Please check file path: {path}; overwrite=True replaces it")
        self._schema, self._index, self._writer = None, [], None
        self._header_size, self._page_size = HEADER_SIZE, PAGE_SIZE

    def set_header_size(self, header_size):
        """Room for the header: a power of two from 16 KB to 128 MB."""
        self._header_size = _size(header_size, "header_size", 1 << 14, 1 << 27)
        return SUCCESS

    def set_page_size(self, page_size):
        """Bytes of a page: a power of two from 32 KB to 256 MB."""
        self._page_size = _size(page_size, "page_size", 1 << 15, 1 << 28)
        return SUCCESS

    def add_schema(self, content, desc=None):
        """{column: {"type", "shape"}}: int32, int64, float32, float64, string, bytes."""
        if not isinstance(content, dict) or not 0 < len(content) <= 100:
            raise ValueError("A schema must be a dict of 1 to 100 columns.")
        if self._schema is not None:
            raise MRMError("a file has one schema")
        for name, told in content.items():
            if not isinstance(told, dict) or told.get("type") not in (*NUMBERS, "string", "bytes"):
                raise ValueError(f"Schema format is error: column '{name}' must have a type of {[*NUMBERS, 'string', 'bytes']}, but got {told}.")
            shape = told.get("shape", [])
            if "shape" in told and told["type"] not in NUMBERS or not isinstance(shape, list) or shape.count(-1) > 1:
                raise ValueError(f"Column '{name}': a shape is a list of sizes, of which one may be -1, of a column of "
                                 f"numbers, but got {told}.")
        self._schema = content
        return 0

    def add_index(self, index_fields):
        """Columns that the index holds too."""
        if self._schema is None:
            raise MRMGetMetaError("Failed to get meta info: add_schema() comes before add_index().")
        for name in index_fields:
            if name not in self._schema:
                raise MRMError(f"index field {name} is not in the schema")
            if self._schema[name]["type"] == "bytes" or "shape" in self._schema[name]:
                raise MRMError(f"index field {name} is a blob")
        self._index = list(index_fields)
        return SUCCESS

    def write_raw_data(self, raw_data, parallel_writer=False):
        """Rows, as dicts by column. A row that does not fit the schema is an error."""
        if self._schema is None:
            raise MRMError("add_schema() comes before write_raw_data()")
        if not isinstance(raw_data, (list, tuple)):
            raise ValueError("Parameter raw_data must be a list of dicts.")
        rows = [self._row(row) for row in raw_data]
        self._open()
        for row in rows:
            self._writer.write(row)
        return SUCCESS

    def open_and_set_header(self):
        """Opens the files; write_raw_data does it too."""
        self._open()
        return SUCCESS

    def _open(self):
        if self._writer is None:
            schema = [(name, told["type"], told.get("shape")) for name, told in self._schema.items()]
            self._writer = _data.MindWriter(self._paths, schema, self._index, self._header_size, self._page_size)

    def _row(self, row):
        if not isinstance(row, dict):
            raise MRMError(f"a row must be a dict, but got {type(row).__name__}")
        missing = [name for name in self._schema if name not in row]
        if missing:
            raise MRMError(f"column {missing[0]} is missing in a row, which has {sorted(row)}")
        try:
            return [_array(row[name], told["type"]) for name, told in self._schema.items()]
        except (TypeError, ValueError, OverflowError) as error:
            raise MRMError(f"a row does not fit the schema: {error}") from None

    def commit(self):
        """Puts files and indices in place."""
        self._open()
        self._writer.commit()
        return SUCCESS


def _whole(value, name, told="'s type"):
    if value is None:
        raise ParamValueError(f"Parameter {name} is None.")
    if isinstance(value, bool) or not isinstance(value, int):
        raise ParamTypeError(f"Parameter {name}{told} is not int.")


def _size(value, name, least, most):
    if not isinstance(value, int) or not least <= value <= most or value & (value - 1):
        raise MRMError(f"{name} must be a power of two from {least} to {most}, but got {value}")
    return value


def _array(value, kind):
    if kind == "bytes":
        return np.frombuffer(bytes(value), np.uint8)
    if kind == "string" and not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return np.asarray(value)


def _header(path):
    """What the head of a file says, as a dict."""
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8).ljust(8, b"\0"))[0]
        if size > 1 << 27:
            raise MRMError(f"Invalid file, the size of mindrecord file header is larger than the upper limit. [{path}]")
        try:
            return json.loads(file.read(size))
        except ValueError as error:
            raise MRMError(f"{path}: the header is damaged: {error}") from None


def _whole_files(paths):
    """The files of a data set, each of which must be there with its index."""
    paths = paths if isinstance(paths, (list, tuple)) else [paths]
    lost = "{} can not be found. Please check whether the mindrecord file exists and do not rename the mindrecord file."
    for path in paths:
        if not os.path.isfile(path):
            raise MRMError(lost.format(path))
        _header(path)
    files = shards_of(paths[0] if len(paths) == 1 else list(paths))
    for path in files:
        if not os.path.isfile(path):
            raise MRMError(lost.format(path))
        if not os.path.isfile(path + ".db"):
            raise MRMError(f"Please check whether {path}.db exists and do not rename the mindrecord file and meta file.")
        try:
            with sqlite3.connect(f"file:{path}.db?mode=ro", uri=True) as index:
                index.execute("SELECT name FROM sqlite_master").fetchall()
        except sqlite3.Error as error:
            words = f"Failed to execute the sql [ SELECT NAME from SHARD_NAME; ] while verifying meta file, {path}.db: {error}"
            raise MRMError(words) from None
    return files


class FileReader:
    """FileReader(file_name): get_next() goes through the rows."""

    def __init__(self, file_name, num_consumer=4, columns=None, operator=None):
        _whole(num_consumer, "num_consumer", "")
        files = _whole_files(file_name)
        self._reader = _data.mindrecord(files, [], _data.sequential_sampler(0, 0), "")
        self._schema = {name: {"type": kind} if shape is None else {"type": kind, "shape": shape}
                        for name, kind, shape in _data.mindrecord_schema(files[0])}
        self._columns = list(columns) if columns else self._reader.columns
        unknown = [name for name in self._columns if name not in self._reader.columns]
        if unknown:
            raise MRMError(f"column {unknown[0]} is not in the file, which has {self._reader.columns}")

    def get_next(self):
        """Rows, as dicts of bytes, texts, numbers and arrays."""
        for number in range(self.len()):
            if self._reader is None:
                return
            row = dict(zip(self._reader.columns, self._reader.read(number)))
            yield {name: self._value(name, row[name]) for name in self._columns}

    def _value(self, name, value):
        told = self._schema[name]
        return value.tobytes() if told["type"] == "bytes" else value if value.ndim else value.item()

    def len(self):
        """The number of rows."""
        return self._reader.count() if self._reader is not None else 0

    def schema(self):
        """The columns as they were told."""
        return self._schema

    def close(self):
        """Closes the files."""
        self._reader = None


def save_dataset(dataset, file_name, num_files, file_type):
    """Rows of a pipeline as files."""
    if file_type != "mindrecord":
        raise ValueError(f"{file_type} dataset format is not supported.")
    writer, names = None, dataset.get_col_names()
    for row in dataset.create_dict_iterator(num_epochs=1, output_numpy=True):
        if writer is None:
            writer = FileWriter(file_name, num_files, overwrite=True)
            writer.add_schema({name: _told(row[name]) for name in names})
        writer.write_raw_data([{name: _saved(row[name]) for name in names}])
    if writer is None:
        raise RuntimeError("the dataset has no rows to save")
    writer.commit()


def _told(array):
    if array.dtype.kind in "SU":
        return {"type": "string"}
    if array.dtype == np.uint8 and array.ndim == 1:
        return {"type": "bytes"}
    wide = array.dtype.itemsize == 8 or array.dtype == np.uint32
    kind = ("float" if array.dtype.kind == "f" else "int") + ("64" if wide else "32")
    return {"type": kind, "shape": [-1, *array.shape[1:]]} if array.ndim else {"type": kind}


def _saved(array):
    if array.dtype.kind in "SU":
        return str(np.char.decode(array) if array.dtype.kind == "S" else array)
    return array.tobytes() if array.dtype == np.uint8 and array.ndim == 1 else array


def get_error_code(message=None):
    """There are no codes."""
    return 0


class MindPage:
    """MindPage(file_name): rows by categories, which are the values of an index column, a page at a time."""

    def __init__(self, file_name, num_consumer=4):
        _whole(num_consumer, "num_consumer", "")
        files = _whole_files(file_name)
        self._rows = FileReader(file_name, num_consumer)
        self._candidates = [each["index_field"] for each in _header(files[0])["index_fields"]]
        self._field = self._candidates[0] if self._candidates else None

    @property
    def candidate_fields(self):
        """The columns that may be categories."""
        return self._candidates

    @property
    def category_field(self):
        return self._field

    @category_field.setter
    def category_field(self, field):
        if not isinstance(field, str) or field not in self._candidates:
            raise MRMError(f"category_field {field!r} is not one of the candidates {self._candidates}")
        self._field = field

    def get_category_fields(self):
        return self._candidates

    def set_category_field(self, category_field):
        self.category_field = category_field
        return True

    def _categories(self):
        """[(value, its rows)], by value."""
        rows = collections.defaultdict(list)
        for row in self._rows.get_next():
            rows[row[self._field]].append(row)
        return sorted(rows.items())

    def read_category_info(self):
        """The categories as a text of JSON."""
        told = [{"count": len(rows), "id": i, "name": str(value)} for i, (value, rows) in enumerate(self._categories())]
        return json.dumps({"categories": told, "key": self._field})

    def read_at_page_by_id(self, category_id, page, num_row):
        """The rows of a page of `num_row` of the category that has the number."""
        for name, value in (("category_id", category_id), ("page", page), ("num_row", num_row)):
            if isinstance(value, bool) or not isinstance(value, int) or value < (name == "num_row"):
                raise ParamValueError(f"Parameter {name} must be a whole number that is not negative, but got {value!r}.")
        known = self._categories()
        if category_id >= len(known):
            raise MRMError(f"Invalid data, category_id: {category_id} must be in the range [0, {len(known)}].")
        return known[category_id][1][page * num_row : (page + 1) * num_row]

    def read_at_page_by_name(self, category_name, page, num_row):
        """The same for a category by its name."""
        if not isinstance(category_name, str):
            raise ParamValueError(f"Parameter category_name must be a text, but got {category_name!r}.")
        self.read_at_page_by_id(0, page, num_row)
        names = [str(value) for value, _ in self._categories()]
        if category_name not in names:
            raise MRMError(f"category_name: {category_name} could not found.")
        return self.read_at_page_by_id(names.index(category_name), page, num_row)


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    refuse(f"mindspore.mindrecord.{name}", "this converter is not supported", "FileWriter over a mindspore.dataset source")
