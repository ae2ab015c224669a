"""Summary operators in networks: what SummaryRecord and SummaryCollector write of them."""

import pathlib

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
from mindspore.train.summary.summary_record import _get_summary_tensor_data


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
