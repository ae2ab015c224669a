"""Files of rows. They are there when commit() returns; until then what lay in their place is."""

import os

from cairn import _data


class MindRecordWriter:
    """MindRecord files: schema is {column: (type, shape or None)}, types int32, int64, float32, float64, string, bytes."""

    def __init__(self, path, schema, shards=1, index=(), header_size=1 << 24, page_size=1 << 25):
        path = os.fspath(path)
        width = len(str(shards - 1))
        self.paths = [path] if shards == 1 else [f"{path}{number:0{width}d}" for number in range(shards)]
        self.columns = list(schema)
        told = [(name, kind, shape) for name, (kind, shape) in schema.items()]
        self._writer = _data.MindWriter(self.paths, told, list(index), header_size, page_size)

    def write(self, row):
        """A row: {column: value}."""
        self._writer.write([row[name] for name in self.columns])

    def commit(self):
        """Puts files and indices in place."""
        self._writer.commit()


class TFRecordWriter:
    """A TFRecord file of tf.train.Example."""

    def __init__(self, path):
        self._writer = _data.TfrecordWriter(os.fspath(path))

    def write(self, row):
        """A row: {column: value}. Texts and uint8 become bytes, floats float, other numbers int64."""
        self._writer.write(list(row), list(row.values()))

    def commit(self):
        """Puts the file in place."""
        self._writer.commit()


def write_mindrecord(dataset, path, shards=1, index=(), workers=2):
    """All rows of a pipeline as MindRecord files; returns their number."""
    writer, number = None, 0
    with dataset.iterate(workers, epochs=1) as rows:
        for row in rows:
            if writer is None:
                told = _data.schema_of(list(row), list(row.values()))
                writer = MindRecordWriter(path, {name: (kind, shape) for name, kind, shape in told}, shards, index)
            writer.write(row)
            number += 1
    if writer is None:
        raise ValueError("the pipeline has no rows, which would tell the columns")
    writer.commit()
    return number


def write_tfrecord(dataset, path, workers=2):
    """All rows of a pipeline as a TFRecord file; returns their number."""
    writer, number = TFRecordWriter(path), 0
    with dataset.iterate(workers, epochs=1) as rows:
        for row in rows:
            writer.write(row)
            number += 1
    writer.commit()
    return number
