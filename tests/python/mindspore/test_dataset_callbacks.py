"""Callbacks of a data pipeline, and what its transforms refuse in the words of the release."""

import mindspore.dataset as ds
import mindspore.dataset.text as text
import mindspore.dataset.transforms.c_transforms as c_transforms
import mindspore.dataset.transforms.py_transforms as py_transforms
import mindspore.nn as nn
import numpy as np
import pytest
from mindspore import Model
from mindspore import dtype as mstype
from mindspore.dataset.callback import DSCallback, WaitedDSCallback
from mindspore.train.callback import Callback


class Writes(DSCallback):
    def __init__(self, log, step_size=1):
        super().__init__(step_size)
        self.log = log

    def _write(self, event, at):
        self.log.append((event, at.cur_epoch_num, at.cur_step_num_in_epoch, at.cur_step_num))

    def ds_begin(self, at):
        self._write("begin", at)

    def ds_epoch_begin(self, at):
        self._write("epoch", at)

    def ds_epoch_end(self, at):
        self._write("end", at)

    def ds_step_begin(self, at):
        self._write("step", at)


def rows(count=4):
    return ds.NumpySlicesDataset(list(range(count)), ["c"], shuffle=False)


def test_events_come_in_order_with_their_numbers():
    log = []
    iterator = rows(3).map(lambda x: x + 1, callbacks=Writes(log, step_size=2)).create_tuple_iterator(num_epochs=2, output_numpy=True)
    assert [[int(row[0]) for row in iterator] for _ in range(2)] == [[1, 2, 3]] * 2
    assert log == [("begin", 0, 0, 0), ("epoch", 1, 0, 0), ("step", 1, 1, 1), ("step", 1, 3, 3), ("end", 1, 3, 3),
                   ("epoch", 2, 0, 3), ("step", 2, 1, 4), ("step", 2, 3, 6), ("end", 2, 3, 6)]  # fmt: skip


def test_a_pass_goes_through_what_is_repeated():
    log = []
    for _ in rows(2).map(lambda x: x, callbacks=[Writes(log)]).repeat(3).create_tuple_iterator(num_epochs=1):
        pass
    assert [each[0] for each in log] == ["begin", "epoch", *["step"] * 6, "end"]


def test_sizes_and_shapes_call_nothing():
    log = []
    data = rows().map(lambda x: x, callbacks=Writes(log))
    assert data.get_dataset_size() == 4 and data.output_shapes() == [[]] and not log


def test_transforms_of_the_library_are_told_as_well():
    log = []
    data = rows(2).map(c_transforms.TypeCast(mstype.float32), callbacks=Writes(log))
    assert [row[0].dtype for row in data.create_tuple_iterator(num_epochs=1, output_numpy=True)] == [np.float32] * 2 and len(log) == 5


class Syncs(WaitedDSCallback):
    def __init__(self, log, step_size=1):
        super().__init__(step_size)
        self.log = log

    def sync_epoch_begin(self, train, at):
        self.log.append(f"data epoch {at.cur_epoch_num} after {train.original_args().cur_step_num}")

    def sync_step_begin(self, train, at):
        self.log.append(f"data step {at.cur_step_num} after {train.original_args().cur_step_num}")


class Steps(Callback):
    def __init__(self, log):
        self.log = log

    def step_end(self, run_context):
        self.log.append(f"step {run_context.original_args().cur_step_num}")


class First(nn.Cell):
    def construct(self, x, y):
        return x


def pairs():
    return ds.NumpySlicesDataset(([1.0, 2.0], [1.0, 2.0]), ["a", "b"], shuffle=False)


def test_rows_wait_for_the_steps_before_them():
    log = []
    waits = Syncs(log)
    Model(First()).train(2, pairs().map(lambda x: x, callbacks=waits), dataset_sink_mode=False, callbacks=[Steps(log), waits])
    assert log == ["step 1", "data step 2 after 1", "step 2", "data epoch 2 after 2", "data step 3 after 2", "step 3", "data step 4 after 3", "step 4"]


def test_a_row_that_waits_in_vain_is_told():
    before = ds.config.get_callback_timeout()
    ds.config.set_callback_timeout(1)
    waits = Syncs([])
    with pytest.raises(RuntimeError, match=r"RuntimeError: ds_step_begin timed out after 1 second\(s\)"):
        Model(First()).train(1, pairs().map(lambda x: x, callbacks=waits).batch(2), dataset_sink_mode=False, callbacks=waits)
    ds.config.set_callback_timeout(before)


def test_errors_of_callbacks_and_what_is_none():
    class Fails(DSCallback):
        def ds_begin(self, at):
            raise ValueError("not today")

    with pytest.raises(RuntimeError, match="ValueError: not today"):
        list(rows().map(lambda x: x, callbacks=Fails()))
    with pytest.raises(TypeError, match=r"callbacks\[1\] with value 3"):
        rows().map(lambda x: x, callbacks=[Writes([]), 3])
    with pytest.raises(AttributeError, match="did not override any of the 6 callback methods"):
        rows().map(lambda x: x, callbacks=DSCallback())
    with pytest.raises(ValueError, match="step_size"):
        DSCallback(0)


def test_iterators_have_nodes_of_their_own():
    class Named(dict):
        def __getattr__(self, key):
            return self[key]

        def __call__(self, value):
            return value

    data = rows().map([Named()])
    iterator = data.create_tuple_iterator(num_epochs=1)
    assert iterator.dataset is not data and iterator.dataset.operations[0] is data.operations[0]
    with pytest.raises(TypeError, match='output_numpy with value "yes" is not of type'):
        data.create_dict_iterator(output_numpy="yes")


def applied(transform, value):
    (row,) = ds.NumpySlicesDataset([value], ["c"]).map(transform).create_tuple_iterator(num_epochs=1, output_numpy=True)
    return row[0]


@pytest.mark.parametrize(
    "option, words, error",
    [([7], "Index 7 is out of bounds", RuntimeError), ([], "Both indices and slices can not be empty", RuntimeError),
     ([[0]], r"slice_option\[0\] with value \[0\] is not of type \[<class 'int'>\]", TypeError), ("x", r"slice_option\[0\]", TypeError)],
)  # fmt: skip
def test_slices_are_checked(option, words, error):
    with pytest.raises(error, match=words):
        applied(c_transforms.Slice(option), [1, 2, 3])


def test_slice_of_true_is_all():
    assert applied(c_transforms.Slice(True), [1, 2]).tolist() == [1, 2]


def test_masks_compare_in_the_type_of_the_column():
    assert applied(c_transforms.Mask(c_transforms.Relational.EQ, 3.7), [3, 4]).tolist() == [True, False]
    with pytest.raises(RuntimeError, match="input datatype does not match the value datatype"):
        applied(c_transforms.Mask(c_transforms.Relational.EQ, "3"), [3, 4])
    with pytest.raises(RuntimeError, match="Only supports bool or numeric datatype"):
        applied(c_transforms.Mask(c_transforms.Relational.EQ, "3", mstype.string), ["3", "4"])


def test_composes_speak_their_modules_words():
    with pytest.raises(TypeError, match=r"op_list\[0\] is neither"):
        c_transforms.Compose([1])
    with pytest.raises(ValueError, match="op_list can not be empty"):
        c_transforms.Compose([])
    with pytest.raises(ValueError, match=r"transforms\[0\] is not callable"):
        py_transforms.Compose([1])
    with pytest.raises(TypeError, match="Compose was called without an image"):
        py_transforms.Compose([lambda x: x])()


def test_buckets_and_shards_are_checked():
    for boundaries, sizes, error, words in (
        ([], [1], ValueError, "bucket_boundaries cannot be empty"),
        ([0, 1], [1, 1, 1], ValueError, "must only contain positive numbers"),
        ([2, 2], [1, 1, 1], ValueError, "strictly increasing"),
        ([1, 2], ["1"] * 3, TypeError, "bucket_batch_sizes should be a list of int"),
    ):
        with pytest.raises(error, match=words):
            rows().bucket_batch_by_length(["c"], boundaries, sizes)
    with pytest.raises(ValueError, match="num_shards is not within the required interval"):
        ds.NumpySlicesDataset([1, 2], num_shards=2**40, shard_id=0)
    with pytest.raises(ValueError, match="column_names should not be empty"):
        ds.NumpySlicesDataset([1, 2], column_names=[])


def test_vocabularies_are_checked():
    vocab = text.Vocab.from_list(["a", "b"])
    for wrong in ("a", [1, "b"]):
        with pytest.raises(TypeError):
            vocab.ids_to_tokens(wrong)
    with pytest.raises(TypeError):
        vocab.tokens_to_ids(3)
    with pytest.raises(ValueError, match="special_tokens contains duplicate"):
        text.Vocab.from_list(["a"], special_tokens=["s", "s"])
    with pytest.raises(RuntimeError, match="doesn't exist in vocab"):
        text.Lookup(vocab, "z")
    with pytest.raises(RuntimeError, match="must be numeric including bool"):
        text.Lookup(vocab, "a", mstype.string)
