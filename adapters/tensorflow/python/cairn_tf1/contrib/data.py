"""tf.contrib.data: what became tf.data.experimental, under its old names."""

import tensorflow.compat.v1 as tf
from tensorflow.python.data.experimental.ops.batching import dense_to_sparse_batch, unbatch  # noqa: F401

_e = tf.data.experimental
AUTOTUNE = _e.AUTOTUNE
Optional, RandomDataset, SqlDataset, TFRecordWriter = _e.Optional, _e.RandomDataset, _e.SqlDataset, _e.TFRecordWriter
CsvDataset, Counter, Reducer = _e.CsvDataset, _e.Counter, _e.Reducer
CheckpointInputPipelineHook = _e.CheckpointInputPipelineHook
bucket_by_sequence_length, choose_from_datasets = _e.bucket_by_sequence_length, _e.choose_from_datasets
copy_to_device, enumerate_dataset, get_next_as_optional = _e.copy_to_device, _e.enumerate_dataset, _e.get_next_as_optional
get_single_element, group_by_reducer, group_by_window = _e.get_single_element, _e.group_by_reducer, _e.group_by_window
ignore_errors, make_batched_features_dataset = _e.ignore_errors, _e.make_batched_features_dataset
make_csv_dataset, make_saveable_from_iterator = _e.make_csv_dataset, _e.make_saveable_from_iterator
map_and_batch, parallel_interleave, parse_example_dataset = _e.map_and_batch, _e.parallel_interleave, _e.parse_example_dataset
prefetch_to_device, rejection_resample, scan = _e.prefetch_to_device, _e.rejection_resample, _e.scan
sample_from_datasets, shuffle_and_repeat, unique = _e.sample_from_datasets, _e.shuffle_and_repeat, _e.unique
Dataset, Iterator = tf.data.Dataset, tf.data.Iterator
FixedLengthRecordDataset, TextLineDataset = tf.data.FixedLengthRecordDataset, tf.data.TextLineDataset
TFRecordDataset = tf.data.TFRecordDataset


def batch_and_drop_remainder(batch_size):
    return lambda dataset: dataset.batch(batch_size, drop_remainder=True)


def padded_batch_and_drop_remainder(batch_size, padded_shapes, padding_values=None):
    return lambda dataset: dataset.padded_batch(batch_size, padded_shapes, padding_values, drop_remainder=True)


def assert_element_shape(expected_shapes):
    """Elements with these shapes; an element of another shape is an error when it is read."""

    def check(*element):
        structure = element[0] if len(element) == 1 else element
        shapes = expected_shapes[0] if len(element) == 1 and isinstance(expected_shapes, tuple) else expected_shapes
        return tf.nest.map_structure(lambda tensor, shape: tf.ensure_shape(tensor, shape), structure, shapes)

    return lambda dataset: dataset.map(check)


def sliding_window_batch(window_size, stride=None, window_shift=None, window_stride=1):
    """Windows of `window_size` elements, `window_shift` (or the older `stride`) apart; short ones are dropped."""
    shift = window_shift or stride or 1

    def windows(dataset):
        return dataset.window(window_size, shift, window_stride, drop_remainder=True).flat_map(
            lambda *parts: tf.data.Dataset.zip(tuple(part.batch(window_size) for part in parts))
            if len(parts) > 1
            else parts[0].batch(window_size)
        )

    return windows


def read_batch_features(file_pattern, batch_size, features, reader=None, reader_args=None, randomize_input=True,
                        num_epochs=None, capacity=10000):  # fmt: skip
    dataset = make_batched_features_dataset(
        file_pattern, batch_size, features, reader=reader or tf.data.TFRecordDataset, reader_args=reader_args,
        shuffle=randomize_input, num_epochs=num_epochs, shuffle_buffer_size=capacity,
    )  # fmt: skip
    return tf.data.make_one_shot_iterator(dataset).get_next()
