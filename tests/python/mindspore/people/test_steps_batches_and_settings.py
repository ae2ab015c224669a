"""What training steps of the model zoo pass through, batches that are mixed, and settings that test files ask for."""
import numpy as np
import pytest
import mindspore.dataset as ds
import mindspore.dataset.transforms as transforms
import mindspore.dataset.vision as vision
import mindspore.nn as nn
from mindspore import ParameterTuple, Tensor, context, ops
from mindspore.common.api import _cell_graph_executor
from mindspore.dataset.vision.utils import ImageBatchFormat
from mindspore.ops import composite as C
from mindspore.ops import functional as F
from mindspore.ops import operations as P
from mindspore.parallel import _cost_model_context as costs
from mindspore.parallel._utils import _reset_op_id
from mindspore.train.dataset_helper import DatasetHelper

both_modes = pytest.mark.parametrize("mode", [context.GRAPH_MODE, context.PYNATIVE_MODE])
X = np.array([[1, 2], [3, 4]], np.float32)


class Reduced(nn.Cell):
    """A step whose gradients go through F.identity where there is one rank."""

    def __init__(self, network):
        super().__init__(auto_prefix=False)
        self.network, self.weights = network, ParameterTuple(network.trainable_params())
        self.grad, self.reducer = C.GradOperation(get_by_list=True), F.identity

    def construct(self, x):
        return self.reducer(self.grad(self.network, self.weights)(x))


@both_modes
def test_identity_of_all_gradients(mode):
    context.set_context(mode=mode)
    weight, bias = Reduced(nn.Dense(2, 1, weight_init="ones"))(Tensor(X))
    assert (weight.asnumpy() == X.sum(0)).all() and bias.asnumpy() == 2
    assert (F.identity(Tensor(X)).asnumpy() == X).all()


class Pair(nn.Cell):
    def construct(self, x, y):
        return 2 * x, y**3


@both_modes
def test_vjp_of_a_function_of_two_inputs(mode):
    context.set_context(mode=mode)
    _, back = ops.vjp(Pair(), Tensor(X), Tensor(X))
    made = back(Tensor(X), Tensor(X))
    assert (made[0].asnumpy() == 2 * X).all() and np.allclose(made[1].asnumpy(), 3 * X**3)
    value, made = ops.vjp(lambda x: x * x, Tensor(X), Tensor(X))
    assert (value.asnumpy() == X * X).all() and (made.asnumpy() == 2 * X * X).all()
    with pytest.raises(TypeError):
        ops.vjp(lambda x: x**3, 1)[1](1)


class Rows:
    """A data set of the test's own, whose rows are one more than its size says."""

    def get_dataset_size(self):
        return 2

    def create_tuple_iterator(self, num_epochs=-1, do_copy=True):
        return iter([(Tensor(X),)] * 3)


def test_a_helper_takes_the_rows_that_a_data_set_of_the_script_gives():
    assert sum(1 for _ in DatasetHelper(Rows(), dataset_sink_mode=False)) == 3


def test_settings():
    assert context.get_context("enable_ge") is False and context.get_context("enable_loop_sink") is False
    with pytest.raises(ValueError):
        context.get_context("enable_gee")
    costs.set_cost_model_context(costmodel_allreduce_fusion_times=2)
    assert costs.get_cost_model_context("costmodel_allreduce_fusion_times") == 2
    costs.reset_cost_model_context()
    assert costs.get_cost_model_context("costmodel_allreduce_fusion_times") == 0
    with pytest.raises(ValueError):
        costs.set_cost_model_context(costmodel=1)


def test_a_net_of_several_devices_has_no_strategies_here():
    context.set_auto_parallel_context(device_num=8, parallel_mode="auto_parallel")
    _reset_op_id()
    net = Pair()
    net.set_auto_parallel()
    _cell_graph_executor.compile(net, Tensor(X), Tensor(X))
    for name, strategy in _cell_graph_executor._get_shard_strategy(net).items():
        assert strategy == [[8, 1], [1, 1]], name
    context.reset_auto_parallel_context()


@both_modes
def test_map_uniform(mode):
    context.set_context(mode=mode)
    assert P.MapUniform()(Tensor(np.arange(6, dtype=np.int32)), 2, 3).asnumpy().tolist() == [0, 2, 4, 1, 3, 5]


def mixed(operation, batched=True, hot=True, columns=("image", "label")):
    rows = {"image": np.ones((6, 8, 8, 3), np.uint8), "label": np.arange(6, dtype=np.uint32)}
    data = ds.NumpySlicesDataset(rows, shuffle=False)
    if hot:
        data = data.map(operations=transforms.OneHot(num_classes=6), input_columns=["label"])
    if batched:
        data = data.batch(3)
    return [row[0].shape for row in data.map(operations=operation, input_columns=list(columns)).create_tuple_iterator(output_numpy=True)]


@pytest.mark.parametrize("operation", [vision.MixUpBatch(1.0), vision.CutMixBatch(ImageBatchFormat.NHWC, 1.0, 1.0)])
def test_mixed_batches_say_what_they_need(operation):
    assert mixed(operation) == [(3, 8, 8, 3)] * 2
    for given, words in ((dict(batched=False), "You must make sure images are HWC or CHW and batched"), (dict(hot=False), "wrong labels shape"),
                         (dict(columns=("image",)), "size of input should be 2 (including image and label)")):
        with pytest.raises(RuntimeError) as info:
            mixed(operation, **given)
        assert words in str(info.value)


def test_a_cut_knows_where_the_channels_are():
    with pytest.raises(RuntimeError) as info:
        mixed(vision.CutMixBatch(ImageBatchFormat.NCHW))
    assert "image doesn't match the <N,C,H,W> format" in str(info.value)
