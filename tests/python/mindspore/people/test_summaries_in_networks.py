"""Summary operators in networks: what SummaryRecord and SummaryCollector write of them."""

import pathlib
import struct

import numpy as np
import pytest

import mindspore as ms
import mindspore.dataset as ds
import mindspore.nn as nn
import mindspore.ops as ops
from mindspore import Model, Parameter, Tensor, context
from mindspore.nn.optim.optimizer import Optimizer
from mindspore.train.callback import SummaryCollector
from mindspore.train.callback import _InternalCallbackParam
from mindspore.train.summary import SummaryRecord
from mindspore.train.summary._summary_adapter import _calc_histogram_bins
from mindspore.train.summary.summary_record import _cache_summary_tensor_data, _get_summary_tensor_data
from mindspore.train.summary_pb2 import Event


@pytest.fixture(params=[context.GRAPH_MODE, context.PYNATIVE_MODE], ids=["graph", "eager"])
def mode(request):
    context.set_context(mode=request.param)
    _get_summary_tensor_data()
    yield request.param
    context.set_context(mode=context.GRAPH_MODE)


class Watched(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(4, 3)
        self.scalar, self.tensor = ops.ScalarSummary(), ops.TensorSummary()
        self.image, self.histogram = ops.ImageSummary(), ops.HistogramSummary()

    def construct(self, x):
        self.image("picture", x)
        self.tensor("input", x)
        made = self.dense(x.reshape((x.shape[0], 4)))
        self.histogram("weights", self.dense.weight)
        self.scalar("mean", made.mean())
        return made


def test_each_run_gives_its_values(mode):
    net = Watched()
    for factor in (1, 2):
        x = np.full((2, 1, 2, 2), factor, np.float32)
        made = net(Tensor(x))
        told = _get_summary_tensor_data()
        assert sorted(told) == ["input[:Tensor]", "mean[:Scalar]", "picture[:Image]", "weights[:Histogram]"]
        np.testing.assert_array_equal(told["input[:Tensor]"].asnumpy(), x)
        np.testing.assert_allclose(told["mean[:Scalar]"].asnumpy(), made.asnumpy().mean(), 1e-5)
        assert told["weights[:Histogram]"].shape == (3, 4)
    assert not _get_summary_tensor_data()


def test_a_training_step_gives_them_and_the_values_stay_as_they_were(mode):
    net = Watched()
    data = ds.NumpySlicesDataset((np.ones((4, 1, 2, 2), np.float32), np.array([0, 1, 2, 0], np.int32)), ["x", "y"], shuffle=False).batch(2)
    before = net.dense.weight.asnumpy().copy()
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    Model(net, loss, nn.Momentum(net.trainable_params(), 0.1, 0.9)).train(1, data.take(1), dataset_sink_mode=False)
    told = _get_summary_tensor_data()
    np.testing.assert_array_equal(told["weights[:Histogram]"].asnumpy(), before)
    assert (net.dense.weight.asnumpy() != before).any()


def test_a_record_writes_them(mode, tmp_path):
    net = Watched()
    with SummaryRecord(str(tmp_path)) as record:
        net(Tensor(np.ones((1, 1, 2, 2), np.float32)))
        record.record(1)
        first = pathlib.Path(record.full_file_name).stat().st_size
        record.record(2)
        assert pathlib.Path(record.full_file_name).stat().st_size == first
    content = pathlib.Path(record.full_file_name).read_bytes()
    assert all(tag in content for tag in (b"picture", b"input", b"mean", b"weights"))


def test_the_collector_looks_at_what_a_run_tells(tmp_path):
    told = _InternalCallbackParam()
    for invalid in ((), None, [None]):
        told.train_dataset_element = invalid
        with SummaryCollector(str(tmp_path)) as collector:
            collector._collect_input_data(told)
            assert not collector._collect_specified_data["collect_input_data"]
    told.list_callback = [SummaryCollector(str(tmp_path)), SummaryCollector(str(tmp_path))]
    with pytest.raises(ValueError, match="more than one SummaryCollector instance in callback list"):
        SummaryCollector(str(tmp_path))._check_callbacks(told)
    collector = SummaryCollector(str(tmp_path))
    told.optimizer, told.train_network, told.mode = None, nn.Dense(2, 2), "train"
    assert collector._get_optimizer(told) is None and collector._temp_optimizer == "Failed"
    told.optimizer = Optimizer(0.1, [Parameter(Tensor(1.0, ms.float32), name="w")])
    assert SummaryCollector(str(tmp_path))._get_optimizer(told) is told.optimizer


@pytest.mark.parametrize("arguments, words", [
    ({"collect_freq": 0.5}, "For `collect_freq` the type should be a valid type of ['int'], but got float."),
    ({"keep_default_action": 1}, "For `keep_default_action` the type should be a valid type of ['bool'], but got int."),
    ({"custom_lineage_data": {"a": None}}, "For `the value of custom_lineage_data -> a` the type should be a valid type of ['int', 'str', 'float'], "
     "but got NoneType."),
])  # fmt: skip
def test_words_of_types(arguments, words, tmp_path):
    with pytest.raises(TypeError) as raised:
        SummaryCollector(str(tmp_path), **arguments)
    assert str(raised.value) == words


def written(tmp_path, *values):
    """The messages of a file that each of the values is a step of."""
    with SummaryRecord(str(tmp_path)) as record:
        for step, value in enumerate(values):
            _cache_summary_tensor_data([{"name": "seen[:Histogram]", "data": Tensor(value)}])
            record.record(step=step)
        name = record.event_file_name
    data, made = (tmp_path / name).read_bytes(), []
    while data:
        (size,) = struct.unpack("<Q", data[:8])
        made.append(Event.FromString(data[12 : 12 + size]))
        data = data[16 + size :]
    assert made[0].version and [each.step for each in made[1:]] == list(range(len(values)))
    return [each.summary.value[0] for each in made[1:]]


@pytest.mark.parametrize("shape", [(), (1,), (6,), (40, 50)])
def test_histograms_are_read(tmp_path, shape):
    x = np.random.RandomState(1).normal(size=shape).astype(np.float32)
    (value,) = written(tmp_path, x)
    held = value.histogram
    assert value.tag == "seen" and value.WhichOneof("value") == "histogram" and held.count == x.size
    assert sum(each.count for each in held.buckets) == x.size and (held.nan_count, held.pos_inf_count) == (0, 0)
    assert len(held.buckets) == _calc_histogram_bins(x.size)
    assert np.allclose([held.min, held.max, held.sum], [x.min(), x.max(), x.sum()], rtol=1e-4)
    counts, _ = np.histogram(x.astype(np.float64), bins=len(held.buckets))
    assert [each.count for each in held.buckets] == counts.tolist()


def test_histograms_count_what_is_no_number(tmp_path):
    first, second = written(tmp_path, np.float32([np.nan, 1, np.inf, np.nan, -np.inf, 2]), np.float32([np.nan]))
    held = first.histogram
    assert (held.nan_count, held.pos_inf_count, held.neg_inf_count, held.count) == (2, 1, 1, 6)
    assert second.histogram.nan_count == 1 and second.histogram.count == 1


@pytest.mark.parametrize("count, wanted", [(0, 1), (1, 2), (5, 2), (6, 3), (10, 3), (11, 2), (100, 11), (880, 89), (5000, 90)])
def test_buckets_by_the_number_of_elements(count, wanted):
    assert _calc_histogram_bins(count) == wanted


@pytest.mark.parametrize("wrong", ["", None, 3])
def test_raise_exception_is_a_truth(tmp_path, wrong):
    with pytest.raises(TypeError, match="raise_exception"):
        SummaryRecord(str(tmp_path), raise_exception=wrong)
