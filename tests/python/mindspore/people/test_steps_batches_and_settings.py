"""What training steps of the model zoo pass through, batches that are mixed, and settings that test files ask for."""
import numpy as np
import pytest
import mindspore.dataset as ds
import mindspore.dataset.transforms as transforms
import mindspore.dataset.vision as vision
import mindspore.nn as nn
from mindspore import ParameterTuple, Tensor, context, export, load, ops
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


@both_modes
def test_hyper_add_of_nested_values(mode):
    context.set_context(mode=mode)
    first, (second,) = C.hyper_add((Tensor(X), (Tensor(X),)), (Tensor(X), (Tensor(2 * X),)))
    assert (first.asnumpy() == 2 * X).all() and (second.asnumpy() == 3 * X).all()


def test_a_loaded_graph_takes_parameters_of_its_own_kind_alone(tmp_path):
    context.set_context(mode=context.GRAPH_MODE)
    export(nn.Dense(2, 1, weight_init="ones"), Tensor(X), file_name=str(tmp_path / "dense"), file_format="MINDIR")
    graph = load(str(tmp_path / "dense.mindir"))
    assert nn.GraphCell(graph, params_init={"weight": Tensor(2 * np.ones((1, 2), np.float32))})(Tensor(X)).asnumpy().tolist() == [[6], [14]]
    for given, error, words in (
        (np.ones(2), TypeError, "the argument 'params_init' must be a dict, but got"),
        ({"weight": np.ones((1, 2), np.float32)}, TypeError, "the key of the 'params_init' must be str, and the value must be Tensor or Parameter"),
        ({"weight": Tensor(X)}, ValueError, "Only support update parameter by Tensor or Parameter with same shape and dtype as it"),
        ({"weight": Tensor(np.ones((1, 2)))}, ValueError, "Only support update parameter by Tensor or Parameter with same shape and dtype as it"),
    ):
        with pytest.raises(error) as info:
            nn.GraphCell(graph, params_init=given)
        assert words in str(info.value)


def test_a_loaded_graph_keeps_the_names_of_the_net(tmp_path):
    context.set_context(mode=context.GRAPH_MODE)
    net = nn.SequentialCell(nn.Conv2d(1, 2, 3, weight_init="ones"), nn.BatchNorm2d(2), nn.Flatten(), nn.Dense(32, 3, weight_init="ones"), nn.ReLU(), nn.Dense(3, 3, weight_init="ones"))
    net.set_train(False)
    x = Tensor(np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4))
    export(net, x, file_name=str(tmp_path / "net"), file_format="MINDIR")
    graph = nn.GraphCell(load(str(tmp_path / "net.mindir")))
    assert {each.name: each.shape for each in graph.get_parameters()} == {each.name: each.shape for each in net.get_parameters()}
    assert np.allclose(graph(x).asnumpy(), net(x).asnumpy())
    other = {each.name: Tensor(np.random.RandomState(i).rand(*each.shape).astype(np.float32)) for i, each in enumerate(net.get_parameters())}
    for each in net.get_parameters():
        each.set_data(other[each.name])
    assert np.allclose(nn.GraphCell(load(str(tmp_path / "net.mindir")), params_init=other)(x).asnumpy(), net(x).asnumpy(), rtol=1e-5)


def test_what_synchronised_rows_refuse():
    data = ds.NumpySlicesDataset([1, 2, 3], ["x"], shuffle=False).sync_wait(condition_name="loss", callback=lambda told: None)
    for wrong, words in ((lambda: data.shuffle(2), "No shuffle after sync operators"), (lambda: data.sync_wait("loss"), "Condition name is already in use"),
                         (lambda: data.sync_update("loss", num_batch=-1), "Sync_update batch size can only be positive"),
                         (lambda: data.sync_update("lost"), "Condition name not found")):
        with pytest.raises(RuntimeError) as info:
            wrong()
        assert words in str(info.value)
    with pytest.raises(ValueError) as info:
        data.sync_wait("other", num_batch=0)
    assert "num_batch need to be greater than 0." in str(info.value)
    data.disable_sync()
    assert [int(row["x"].asnumpy()) for row in data.create_dict_iterator(num_epochs=1)] == [1, 2, 3]
