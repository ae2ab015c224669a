"""Model with callbacks, checkpoints and exports, loss scale."""
import os
import stat
import numpy as np
import pytest
import mindspore as ms
import mindspore.dataset as ds
import mindspore.nn as nn
from mindspore import Model, Parameter, ParameterTuple, Tensor, context
from mindspore import load_checkpoint, load_param_into_net, save_checkpoint
from mindspore.common import dtype as mstype
from mindspore.common.initializer import Normal
from mindspore.nn import WithLossCell
from mindspore.ops import composite as C
from mindspore.ops import functional as F
from mindspore.ops import operations as P
from mindspore.train.callback import Callback, CheckpointConfig, LossMonitor, ModelCheckpoint, RunContext, TimeMonitor, LambdaCallback
from mindspore.train.callback import _CallbackManager, _InternalCallbackParam
from mindspore.train.loss_scale_manager import DynamicLossScaleManager, FixedLossScaleManager
from mindspore.nn.wrap.loss_scale import DynamicLossScaleUpdateCell, TrainOneStepWithLossScaleCell


W = np.arange(6).reshape(2, 3).astype(np.float32) / 10
G = [np.full((2, 3), k, np.float32) for k in (0.1, -0.2, 0.3)]
MODES = [context.GRAPH_MODE, context.PYNATIVE_MODE]


class LinearNet(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(4, 2, weight_init=Normal(0.02))

    def construct(self, x):
        return self.fc(x)


def data(n=12, batch=4):
    rs = np.random.RandomState(0)
    x = rs.rand(n, 4).astype(np.float32)
    y = (x @ rs.rand(4, 2)).astype(np.float32)
    return ds.NumpySlicesDataset({"data": x, "label": y}, shuffle=False).batch(batch)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("sink", [True, False])
def test_model_trains(mode, sink):
    context.set_context(mode=mode)
    ms.set_seed(1)
    net = LinearNet()
    seen = []

    class Losses(Callback):
        def step_end(self, run_context):
            seen.append(float(run_context.original_args().net_outputs.asnumpy()))

    model = Model(net, nn.MSELoss(), nn.Momentum(net.trainable_params(), 0.1, 0.9), metrics={"mae", "loss"})
    model.train(8, data(), callbacks=[Losses()], dataset_sink_mode=sink)
    assert seen[-1] < seen[0]
    result = model.eval(data(), dataset_sink_mode=sink)
    assert set(result) == {"mae", "loss"} and result["loss"] < 0.5
    assert model.predict(Tensor(np.ones((1, 4), np.float32))).shape == (1, 2)


def test_order_of_callbacks():
    context.set_context(mode=context.PYNATIVE_MODE)
    calls = []

    class Record(Callback):
        def begin(self, run_context):
            calls.append("begin")

        def epoch_begin(self, run_context):
            calls.append("epoch_begin")

        def step_begin(self, run_context):
            calls.append("step_begin")

        def step_end(self, run_context):
            args = run_context.original_args()
            calls.append(f"step_end {args.cur_epoch_num} {args.cur_step_num} {args.batch_num}")

        def epoch_end(self, run_context):
            calls.append("epoch_end")

        def end(self, run_context):
            calls.append("end")

    net = LinearNet()
    Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1)).train(2, data(8), callbacks=Record(), dataset_sink_mode=False)
    one = lambda e, s: ["step_begin", f"step_end {e} {s} 2"]
    assert calls == (["begin", "epoch_begin", *one(1, 1), *one(1, 2), "epoch_end", "epoch_begin", *one(2, 3), *one(2, 4), "epoch_end", "end"])


def test_request_stop():
    class Stop(Callback):
        count = 0

        def step_end(self, run_context):
            self.count += 1
            if self.count == 2:
                run_context.request_stop()

    net, stop = LinearNet(), Stop()
    Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1)).train(5, data(), callbacks=[stop], dataset_sink_mode=False)
    assert stop.count == 2


def test_loss_monitor_text(capsys):
    net = LinearNet()
    Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1)).train(1, data(), callbacks=[LossMonitor(), TimeMonitor()], dataset_sink_mode=False)
    out = capsys.readouterr().out
    assert "epoch: 1 step: 1, loss is " in out and "epoch: 1 step: 3, loss is " in out and "per step time" in out


def test_loss_monitor_stops_at_nan():
    params = _InternalCallbackParam()
    params.cur_epoch_num, params.cur_step_num, params.batch_num = 1, 1, 1
    params.net_outputs = Tensor(np.nan, mstype.float32)
    with pytest.raises(ValueError):
        LossMonitor(1).step_end(RunContext(params))


def test_run_context_and_manager():
    params = _InternalCallbackParam()
    params.cur_step_num = 3
    run_context = RunContext(params)
    assert run_context.original_args().cur_step_num == 3
    assert not run_context.get_stop_requested()
    run_context.request_stop()
    assert run_context.get_stop_requested()
    with pytest.raises(TypeError):
        RunContext("x")
    with pytest.raises(TypeError):
        _CallbackManager(["x"])
    with pytest.raises(KeyError):
        params.nothing


def test_callbacks_as_with_block():
    seen = []

    class Enter(Callback):
        def __enter__(self):
            seen.append("enter")
            return self

        def __exit__(self, *error):
            seen.append("exit")

        def step_end(self, run_context):
            seen.append("step")

    params = _InternalCallbackParam()
    with _CallbackManager([Enter()]) as manager:
        manager.step_end(RunContext(params))
    assert seen == ["enter", "step", "exit"]


def test_lambda_callback():
    seen = []
    net = LinearNet()
    callback = LambdaCallback(on_train_epoch_end=lambda run_context: seen.append(run_context.original_args().cur_epoch_num))
    Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1)).train(3, data(), callbacks=[callback], dataset_sink_mode=False)
    assert seen == [1, 2, 3]


def test_model_checkpoint(tmp_path):
    net = LinearNet()
    config = CheckpointConfig(save_checkpoint_steps=2, keep_checkpoint_max=2)
    callback = ModelCheckpoint(prefix="net", directory=str(tmp_path), config=config)
    Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1)).train(2, data(), callbacks=[callback], dataset_sink_mode=False)
    files = sorted(f for f in os.listdir(tmp_path) if f.endswith(".ckpt"))
    assert files == ["net-2_1.ckpt", "net-2_3.ckpt"]
    loaded = load_checkpoint(str(tmp_path / "net-2_3.ckpt"))
    np.testing.assert_array_equal(loaded["fc.weight"].asnumpy(), net.fc.weight.asnumpy())
    assert callback.latest_ckpt_file_name.endswith("net-2_3.ckpt")


@pytest.mark.parametrize("arguments", [dict(save_checkpoint_steps=-1), dict(save_checkpoint_seconds=-1), dict(keep_checkpoint_max=-1),
                                       dict(keep_checkpoint_per_n_minutes=-1), dict(save_checkpoint_steps="1"), dict(integrated_save=2)])
def test_checkpoint_config_refuses(arguments):
    with pytest.raises((ValueError, TypeError)):
        CheckpointConfig(**arguments)


def test_model_checkpoint_refuses():
    with pytest.raises(ValueError):
        ModelCheckpoint(prefix=123)
    with pytest.raises((TypeError, ValueError)):
        ModelCheckpoint(directory="")
    with pytest.raises(TypeError):
        ModelCheckpoint(config='type')


def test_save_and_load_a_list(tmp_path):
    file = str(tmp_path / "parameters.ckpt")
    arrays = {"a": np.ones((2, 3), np.float32), "b": np.arange(4).astype(np.int32), "c": np.array([1.5], np.float16),
              "d": np.array(3, np.int64), "e": np.array([True, False])}
    save_checkpoint([{"name": name, "data": Tensor(value)} for name, value in arrays.items()], file)
    loaded = load_checkpoint(file)
    assert list(loaded) == list(arrays)
    for name, value in arrays.items():
        assert isinstance(loaded[name], Parameter) and loaded[name].name == name
        assert loaded[name].asnumpy().dtype == value.dtype
        np.testing.assert_array_equal(loaded[name].asnumpy().reshape(value.shape), value)
    assert not os.stat(file).st_mode & stat.S_IWUSR


def test_append_dict(tmp_path):
    file = str(tmp_path / "n.ckpt")
    save_checkpoint(LinearNet(), file, append_dict={"epoch": 3, "lr": 0.5, "name": "net"})
    loaded = load_checkpoint(file)
    assert int(loaded["epoch"].asnumpy()) == 3 and float(loaded["lr"].asnumpy()) == 0.5


def test_load_into_net(tmp_path):
    file = str(tmp_path / "n.ckpt")
    first, second = LinearNet(), LinearNet()
    save_checkpoint(first, file)
    left = load_param_into_net(second, load_checkpoint(file))
    assert left == []
    np.testing.assert_array_equal(first.fc.weight.asnumpy(), second.fc.weight.asnumpy())
    load_checkpoint(file, net=LinearNet())


def test_load_what_does_not_fit():
    net = LinearNet()
    with pytest.raises(RuntimeError):
        load_param_into_net(net, {"fc.weight": Parameter(Tensor(np.ones((3, 4), np.float32)), name="fc.weight")})
    with pytest.raises(RuntimeError):
        load_param_into_net(net, {"fc.weight": Parameter(Tensor(np.ones((2, 4), np.int32)), name="fc.weight")})
    left = load_param_into_net(net, {"other": Parameter(Tensor(np.ones((3, 4), np.float32)), name="other")})
    assert sorted(left) == ["fc.bias", "fc.weight"]
    with pytest.raises(TypeError):
        load_param_into_net(net, {"fc.weight": np.ones((2, 4))})


def test_strict_load(tmp_path):
    net = LinearNet()
    half = Parameter(Tensor(np.ones((2, 4), np.float16)), name="fc.weight")
    load_param_into_net(net, {"fc.weight": half})
    assert net.fc.weight.dtype == mstype.float32
    with pytest.raises(RuntimeError):
        load_param_into_net(net, {"fc.weight": half}, strict_load=True)


def test_filter_prefix(tmp_path):
    file = str(tmp_path / "n.ckpt")
    save_checkpoint([{"name": "moments.w", "data": Tensor([1.])}, {"name": "w", "data": Tensor([2.])}], file)
    assert list(load_checkpoint(file, filter_prefix="moments")) == ["w"]
    with pytest.raises((ValueError, TypeError)):
        load_checkpoint(file, filter_prefix=123)


@pytest.mark.parametrize("content", [b"", b"nothing", b"\x0a\xff\xff"])
def test_damaged_files(tmp_path, content):
    file = tmp_path / "bad.ckpt"
    file.write_bytes(content)
    with pytest.raises(ValueError):
        load_checkpoint(str(file))


def test_export_and_load_mindir(tmp_path):
    net = LinearNet()
    x = Tensor(np.ones((2, 4), np.float32))
    ms.export(net, x, file_name=str(tmp_path / "net"), file_format="MINDIR")
    graph = nn.GraphCell(ms.load(str(tmp_path / "net.mindir")))
    np.testing.assert_allclose(graph(x).asnumpy(), net(x).asnumpy(), 1e-5)


def test_export_refuses(tmp_path):
    with pytest.raises((ValueError, TypeError)):
        ms.export(LinearNet(), Tensor(np.ones((2, 4), np.float32)), file_name=str(tmp_path / "n"), file_format="NOTHING")


@pytest.mark.parametrize("mode", MODES)
def test_train_one_step_with_loss_scale(mode):
    context.set_context(mode=mode)
    net = LinearNet()
    cell = TrainOneStepWithLossScaleCell(WithLossCell(net, nn.MSELoss()), nn.Momentum(net.trainable_params(), 0.1, 0.9),
                                         DynamicLossScaleUpdateCell(loss_scale_value=2 ** 12, scale_factor=2, scale_window=1000))
    cell.set_train()
    loss, overflow, scale = cell(Tensor(np.ones((3, 4), np.float32)), Tensor(np.ones((3, 2), np.float32)))
    assert loss.shape == () and not overflow.asnumpy() and scale.asnumpy() == 2 ** 12
    before = net.fc.weight.asnumpy().copy()
    loss, overflow, scale = cell(Tensor(np.full((3, 4), np.inf, np.float32)), Tensor(np.ones((3, 2), np.float32)))
    assert overflow.asnumpy()
    np.testing.assert_array_equal(net.fc.weight.asnumpy(), before)


def test_loss_scale_managers():
    fixed = FixedLossScaleManager(128.0)
    assert fixed.get_loss_scale() == 128.0 and fixed.get_drop_overflow_update()
    dynamic = DynamicLossScaleManager(2 ** 10, 2, 3)
    dynamic.update_loss_scale(True)
    assert dynamic.get_loss_scale() == 2 ** 9
    for _ in range(3):
        dynamic.update_loss_scale(False)
    assert dynamic.get_loss_scale() == 2 ** 10
    with pytest.raises(ValueError):
        FixedLossScaleManager(0.0)


def test_own_training_cell():
    context.set_context(mode=context.GRAPH_MODE)

    class Train(nn.Cell):
        def __init__(self, network, optimizer, sens=1.0):
            super().__init__(auto_prefix=False)
            self.network = network
            self.network.set_grad()
            self.weights = ParameterTuple(network.trainable_params())
            self.optimizer = optimizer
            self.grad = C.GradOperation(get_by_list=True, sens_param=True)
            self.sens = sens

        def construct(self, x, y):
            loss = self.network(x, y)
            sens = P.Fill()(P.DType()(loss), P.Shape()(loss), self.sens)
            grads = self.grad(self.network, self.weights)(x, y, sens)
            return F.depend(loss, self.optimizer(grads))

    net = LinearNet()
    train = Train(WithLossCell(net, nn.MSELoss()), nn.Adam(net.trainable_params(), 0.05)).set_train()
    x, y = Tensor(np.random.RandomState(0).rand(8, 4).astype(np.float32)), Tensor(np.ones((8, 2), np.float32))
    losses = [float(train(x, y).asnumpy()) for _ in range(30)]
    assert losses[-1] < 0.3 * losses[0]


def test_an_own_metric():
    class Own(nn.Metric):
        def clear(self):
            self.total = 0

        def update(self, *inputs):
            self.total += self._convert_data(inputs[0]).sum()

        def eval(self):
            return self.total

    net = LinearNet()
    result = Model(net, nn.MSELoss(), metrics={"own": Own()}).eval(data(), dataset_sink_mode=False)
    assert np.isfinite(result["own"])
