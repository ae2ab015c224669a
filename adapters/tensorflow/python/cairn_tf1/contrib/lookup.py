"""tf.contrib.lookup: tf.lookup under its old names."""

import tensorflow.compat.v1 as tf
from tensorflow.python.ops.lookup_ops import (  # noqa: F401
    HashTable,
    IdTableWithHashBuckets,
    InitializableLookupTableBase,
    KeyValueTensorInitializer,
    MutableHashTable,
    TextFileIdTableInitializer,
    TextFileIndex,
    TextFileInitializer,
    TextFileStringTableInitializer,
    index_table_from_file,
    index_table_from_tensor,
    index_to_string_table_from_file,
    index_to_string_table_from_tensor,
)
from tensorflow.python.ops.lookup_ops import MutableDenseHashTable as DenseHashTable

MutableDenseHashTable = DenseHashTable
LookupInterface = InitializableLookupTableBase


def string_to_index_table_from_file(vocabulary_file=None, num_oov_buckets=0, vocab_size=None, default_value=-1, **kwargs):
    return index_table_from_file(vocabulary_file, num_oov_buckets, vocab_size, default_value)


def string_to_index_table_from_tensor(mapping, num_oov_buckets=0, default_value=-1, **kwargs):
    return index_table_from_tensor(tf.convert_to_tensor(mapping), num_oov_buckets, default_value)


def string_to_index(tensor, mapping, default_value=-1, name=None):
    return index_table_from_tensor(tf.convert_to_tensor(mapping), default_value=default_value).lookup(tensor)


def index_to_string(tensor, mapping, default_value="UNK", name=None):
    return index_to_string_table_from_tensor(tf.convert_to_tensor(mapping), default_value).lookup(tensor)
