"""Model with callbacks, checkpoints, summaries."""

import os
import numpy as np
import pytest
from mindspore.train.callback._checkpoint import CheckpointManager, _chg_ckpt_file_name_if_same_exist
import mindspore as ms
import mindspore.nn as nn
import mindspore.dataset as ds
from mindspore import Tensor, Parameter, context, Model, save_checkpoint, load_checkpoint, load_param_into_net
from mindspore.train.callback import (
    Callback,
    LossMonitor,
    TimeMonitor,
    ModelCheckpoint,
    CheckpointConfig,
    RunContext,
    SummaryCollector,
    LearningRateScheduler,
    EarlyStopping,
    ReduceLROnPlateau,
    History,
    LambdaCallback,
    _CallbackManager,
    _InternalCallbackParam,
)
from mindspore.train.callback._callback import _checkpoint_cb_for_save_op, _set_cur_net
from mindspore.nn.optim.optimizer import Optimizer

context.set_context(mode=context.GRAPH_MODE, device_target="CPU")


def data(n=8):
    x = np.random.RandomState(0).randn(n, 4).astype(np.float32)
    return ds.NumpySlicesDataset((x, x.sum(1, keepdims=True).astype(np.float32)), ["x", "y"], shuffle=False).batch(4)


def model(**kw):
    net = nn.Dense(4, 1)
    return (Model(net, nn.MSELoss(), nn.Momentum(net.trainable_params(), 0.05, 0.9), **kw), net)


class Recorder(Callback):

    def __init__(self):
        super().__init__()
        self.seen = []

    def begin(self, run_context):
        self.seen.append("begin")

    def epoch_begin(self, run_context):
        self.seen.append("epoch_begin")

    def step_begin(self, run_context):
        self.seen.append("step_begin")

    def step_end(self, run_context):
        p = run_context.original_args()
        self.seen.append(("step_end", p.cur_step_num, p.cur_epoch_num))

    def epoch_end(self, run_context):
        self.seen.append("epoch_end")

    def end(self, run_context):
        self.seen.append("end")


def test_order():
    m, _ = model()
    r = Recorder()
    m.train(2, data(), callbacks=[r], dataset_sink_mode=False)
    one = ["epoch_begin", "step_begin", ("step_end", 1, 1), "step_begin", ("step_end", 2, 1), "epoch_end"]
    two = ["epoch_begin", "step_begin", ("step_end", 3, 2), "step_begin", ("step_end", 4, 2), "epoch_end"]
    assert r.seen == ["begin"] + one + two + ["end"]


def test_new_style_callback_names():

    class New(Callback):

        def __init__(self):
            self.seen = []

        def on_train_begin(self, run_context):
            self.seen.append("b")

        def on_train_epoch_end(self, run_context):
            self.seen.append("e")

        def on_eval_begin(self, run_context):
            self.seen.append("eb")

        def on_eval_end(self, run_context):
            self.seen.append("ee")

    m, _ = model(metrics={"loss"})
    c = New()
    m.fit(2, data(), data(), callbacks=c, dataset_sink_mode=False, valid_dataset_sink_mode=False)
    assert c.seen == ["b", "eb", "ee", "e", "eb", "ee", "e"] or sorted(c.seen) == sorted(["b", "eb", "ee", "e"] + ["eb", "ee", "e"])


def test_loss_and_time_monitor(capsys):
    m, _ = model()
    m.train(1, data(), callbacks=[LossMonitor(1), TimeMonitor(2)], dataset_sink_mode=False)
    out = capsys.readouterr().out
    assert "epoch: 1 step: 1, loss is " in out and "epoch: 1 step: 2, loss is " in out and ("per step time" in out)
    for bad in (-1, 1.5, "1"):
        with pytest.raises((ValueError, TypeError)):
            LossMonitor(bad)


def test_eval_and_predict():
    m, _ = model(metrics={"mse", "mae", "loss"})
    res = m.eval(data(), dataset_sink_mode=False)
    assert set(res) == {"mse", "mae", "loss"} and res["mse"] > 0
    assert m.predict(Tensor(np.ones((3, 4), np.float32))).shape == (3, 1)
    with pytest.raises(ValueError):
        Model(nn.Dense(4, 1), nn.MSELoss()).eval(data())
    with pytest.raises(KeyError):
        Model(nn.Dense(4, 1), nn.MSELoss(), metrics={"nothing"})
    with pytest.raises(TypeError):
        Model(nn.Dense(4, 1), nn.MSELoss(), metrics=[3])


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda m: m.train(0, data()), ValueError),
        (lambda m: m.train("1", data()), (TypeError, ValueError)),
        (lambda m: m.train(1, 3), TypeError),
        (lambda m: m.train(1, data(), callbacks=[3]), TypeError),
        (lambda m: m.train(1, data(), dataset_sink_mode="x"), TypeError),
        (lambda m: m.train(1, data(), sink_size=0), ValueError),
        (lambda m: m.train(1, data(), sink_size=-2), ValueError),
        (lambda m: m.fit(1, data(), data(), valid_frequency="x"), (TypeError, ValueError)),
        (lambda m: m.train(1, data(), initial_epoch=5), ValueError),
        (lambda m: m.train(1, data(), initial_epoch=-1), ValueError),
    ],
)
def test_model_refuses(call, error):
    with pytest.raises(error):
        call(model(metrics={"loss"})[0])


def test_checkpoint_files(tmp_path):
    m, net = model()
    cfg = CheckpointConfig(save_checkpoint_steps=1, keep_checkpoint_max=2, append_info=["epoch_num", "step_num", {"lr": 0.1}])
    cb = ModelCheckpoint(prefix="test", directory=str(tmp_path), config=cfg)
    m.train(2, data(), callbacks=[cb], dataset_sink_mode=False)
    files = sorted((f for f in os.listdir(tmp_path) if f.endswith(".ckpt")))
    assert files == ["test-2_1.ckpt", "test-2_2.ckpt"] and cb.latest_ckpt_file_name.endswith("test-2_2.ckpt")
    held = load_checkpoint(str(tmp_path / "test-2_2.ckpt"))
    assert int(held["epoch_num"].asnumpy()) == 2 and int(held["step_num"].asnumpy()) == 4 and (float(held["lr"].asnumpy()) == pytest.approx(0.1))
    assert "moments.weight" in held
    m.train(1, data(), callbacks=[ModelCheckpoint(prefix="test", directory=str(tmp_path), config=CheckpointConfig(1))], dataset_sink_mode=False)
    assert any((f.startswith("test_1-") for f in os.listdir(tmp_path)))


@pytest.mark.parametrize(
    "make, error",
    [
        (lambda: CheckpointConfig(0, 0, 0, 0), ValueError),
        (lambda: CheckpointConfig(-1), ValueError),
        (lambda: CheckpointConfig("a"), (TypeError, ValueError)),
        (lambda: CheckpointConfig(1, integrated_save=3), TypeError),
        (lambda: CheckpointConfig(1, async_save=1), TypeError),
        (lambda: CheckpointConfig(1, saved_network=3), TypeError),
        (lambda: CheckpointConfig(append_info=[3]), TypeError),
        (lambda: CheckpointConfig(append_info="epoch"), TypeError),
        (lambda: ModelCheckpoint(prefix=3), (TypeError, ValueError)),
        (lambda: ModelCheckpoint(prefix="a/b"), ValueError),
        (lambda: ModelCheckpoint(config=3), TypeError),
        (lambda: CheckpointConfig(keep_checkpoint_max="x"), (TypeError, ValueError)),
        (lambda: EarlyStopping(monitor=3), TypeError),
        (lambda: EarlyStopping(patience=-1), ValueError),
        (lambda: EarlyStopping(mode="x"), ValueError),
        (lambda: ReduceLROnPlateau(factor=1.5), ValueError),
        (lambda: ReduceLROnPlateau(mode=1), (TypeError, ValueError)),
        (lambda: RunContext(3), TypeError),
    ],
)
def test_callback_refusals(make, error):
    with pytest.raises(error):
        make()


def test_run_context():
    ctx = None
    p = _InternalCallbackParam()
    p.test = 3
    assert p.test == 3 and p["test"] == 3
    with pytest.raises(TypeError):
        RunContext([1])
    ctx = RunContext(p)
    assert ctx.original_args() is p and ctx.get_stop_requested() is False
    ctx.request_stop()
    assert ctx.get_stop_requested() is True


def test_learning_rate_scheduler():
    seen = []

    def rule(lr, step):
        seen.append((round(float(lr), 4), step))
        return lr * 0.5

    m, _ = model()
    m.train(1, data(), callbacks=[LearningRateScheduler(rule)], dataset_sink_mode=False)
    assert seen[0][1] == 1 and len(seen) == 2 and (seen[1][0] == pytest.approx(seen[0][0] / 2))


def test_history_early_stop_plateau():
    h = History()
    m, _ = model(metrics={"loss"})
    out = m.fit(3, data(), data(), callbacks=[h], dataset_sink_mode=False, valid_dataset_sink_mode=False)
    assert h.epoch["epoch"] == [1, 2, 3]
    m, _ = model(metrics={"loss"})
    h = History()
    m.fit(
        9,
        data(),
        data(),
        callbacks=[EarlyStopping(monitor="eval_loss", patience=0, min_delta=1000000000.0, verbose=True), h],
        dataset_sink_mode=False,
        valid_dataset_sink_mode=False,
    )
    assert len(h.epoch["epoch"]) < 9
    m, net = model(metrics={"loss"})
    m.fit(
        4,
        data(),
        data(),
        callbacks=[ReduceLROnPlateau(monitor="eval_loss", patience=1, min_delta=1000000000.0, factor=0.5)],
        dataset_sink_mode=False,
        valid_dataset_sink_mode=False,
    )


def test_lambda_callback_and_manager():
    seen = []
    cb = LambdaCallback(on_train_begin=lambda c: seen.append(1), on_train_step_end=lambda c: seen.append(2), on_train_end=lambda c: seen.append(3))
    m, _ = model()
    m.train(1, data(), callbacks=cb, dataset_sink_mode=False)
    assert seen == [1, 2, 2, 3]
    with _CallbackManager([LossMonitor()]) as manager:
        assert isinstance(manager, _CallbackManager)
    with pytest.raises(TypeError):
        _CallbackManager(3)


def test_save_load_forms(tmp_path):
    path = str(tmp_path / "a.ckpt")
    save_checkpoint(
        [
            {"name": "x", "data": Tensor([1.0, 2.0])},
            {"name": "i", "data": Tensor(3)},
            {"name": "h", "data": Tensor(np.ones((2, 2), np.float16))},
            {"name": "b", "data": Tensor([True])},
        ],
        path,
    )
    d = load_checkpoint(path)
    assert list(d) == ["x", "i", "h", "b"] and d["h"].dtype == ms.float16 and (d["i"].asnumpy() == 3) and isinstance(d["x"], Parameter)
    for call, error in (
        (lambda: save_checkpoint("x", path), TypeError),
        (lambda: save_checkpoint([{"name": "x", "data": Tensor(1)}], path, integrated_save=3), TypeError),
        (lambda: save_checkpoint([{"name": "x", "data": Tensor(1)}], path, append_dict=3), TypeError),
        (lambda: load_checkpoint(str(tmp_path / "no.ckpt")), (ValueError, FileNotFoundError)),
        (lambda: load_checkpoint(str(tmp_path / "a.txt")), ValueError),
        (lambda: load_checkpoint(3), (TypeError, ValueError)),
        (lambda: load_checkpoint(path, net=3), TypeError),
        (lambda: load_param_into_net(3, d), TypeError),
        (lambda: load_param_into_net(nn.Dense(2, 2), 3), TypeError),
        (lambda: load_param_into_net(nn.Dense(2, 2), {"a": 3}), TypeError),
        (lambda: load_checkpoint(path, filter_prefix=3), TypeError),
        (lambda: load_checkpoint(path, filter_prefix=[]), ValueError),
        (lambda: load_checkpoint(path, filter_prefix="x") and load_checkpoint(path, filter_prefix=["x", "i", "h", "b"]), ValueError),
    ):
        with pytest.raises(error):
            call()


def test_load_into_net(tmp_path):
    a, b = (nn.Dense(3, 2, weight_init="ones"), nn.Dense(3, 2, weight_init="zeros"))
    save_checkpoint(a, str(tmp_path / "n.ckpt"))
    left = load_param_into_net(b, load_checkpoint(str(tmp_path / "n.ckpt")))
    assert left == [] and b.weight.asnumpy().sum() == 6
    c = nn.SequentialCell(nn.Dense(3, 2), nn.Dense(2, 2))
    left = load_param_into_net(c, load_checkpoint(str(tmp_path / "n.ckpt")))
    assert len(left) == 4
    with pytest.raises(RuntimeError):
        load_param_into_net(nn.Dense(4, 2), load_checkpoint(str(tmp_path / "n.ckpt")))
    half = {"weight": Parameter(Tensor(np.ones((2, 3), np.float16)), name="weight")}
    load_param_into_net(b, half)
    assert b.weight.dtype == ms.float32
    with pytest.raises(RuntimeError):
        load_param_into_net(b, half, strict_load=True)
    with pytest.raises(RuntimeError):
        load_param_into_net(b, {"weight": Parameter(Tensor(np.ones((2, 3), np.int32)), name="weight")})


def test_async_and_append(tmp_path):
    path = str(tmp_path / "b.ckpt")
    save_checkpoint(nn.Dense(2, 2), path, append_dict={"epoch": 3, "lr": 0.5, "flag": True, "text": "hello"})
    d = load_checkpoint(path)
    assert int(d["epoch"].asnumpy()) == 3 and bool(d["flag"].asnumpy()) is True
    assert str(d["text"]) == "hello" or d["text"] == "hello"
    save_checkpoint(nn.Dense(2, 2), str(tmp_path / "c.ckpt"), async_save=True)


def test_summary_collector_and_record(tmp_path):
    from mindspore.train.summary import SummaryRecord

    with SummaryRecord(str(tmp_path / "s")) as record:
        record.add_value("scalar", "loss", Tensor(1.5))
        record.add_value("tensor", "t", Tensor(np.ones((2, 2), np.float32)))
        record.add_value("histogram", "h", Tensor(np.ones((2, 2), np.float32)))
        assert record.record(1) is True
        assert os.path.exists(record.log_dir)
    with pytest.raises((TypeError, ValueError)):
        SummaryRecord(3)
    with SummaryRecord(str(tmp_path / "s2")) as record:
        for call in (
            lambda: record.add_value("scalar", "a/b", 3),
            lambda: record.add_value("no", "x", Tensor(1)),
            lambda: record.record("1"),
            lambda: record.set_mode("x"),
        ):
            with pytest.raises((TypeError, ValueError)):
                call()
    m, _ = model()
    m.train(1, data(), callbacks=[SummaryCollector(str(tmp_path / "c"), collect_freq=1)], dataset_sink_mode=False)
    assert os.listdir(tmp_path / "c")
    for kw in (
        {"collect_freq": 0},
        {"collect_freq": "x"},
        {"keep_default_action": 1},
        {"collect_specified_data": {"zzz": 1}},
        {"collect_specified_data": 3},
        {"custom_lineage_data": {3: 1}},
        {"collect_tensor_freq": "a"},
        {"max_file_size": 0},
        {"export_options": {"a": 1}},
    ):
        with pytest.raises((TypeError, ValueError)):
            SummaryCollector(str(tmp_path / "d"), **kw)


def test_change_name_if_exists(tmp_path):
    (tmp_path / "p-1_1.ckpt").write_bytes(b"")
    assert _chg_ckpt_file_name_if_same_exist(str(tmp_path), "p") == "p_1"
    assert _chg_ckpt_file_name_if_same_exist(str(tmp_path), "q") == "q"
    manager = CheckpointManager()
    manager.update_ckpoint_filelist(str(tmp_path), "p")
    assert manager.ckpoint_num == 1
    manager.remove_oldest_ckpoint_file()
    assert manager.ckpoint_num == 0


def test_a_key_has_16_24_or_32_bytes(tmp_path):
    with pytest.raises(ValueError):
        save_checkpoint(nn.Dense(2, 2), str(tmp_path / "e.ckpt"), enc_key=b"0123456789ABCDE")


@pytest.mark.parametrize(
    "outputs, loss",
    [
        (None, None),
        (1, Tensor(1)),
        (1.5, Tensor(1.5)),
        (Tensor(1), Tensor(1)),
        ([1], Tensor(1)),
        ([Tensor(1)], Tensor(1)),
        ({}, None),
        (Tensor([[1, 2], [3, 4]]), Tensor(2.5)),
        ((Tensor([[3, 4, 5]]), 7), Tensor(4.0)),
        (tuple([1]), Tensor(1)),
    ],
)
def test_loss_of_a_step(tmp_path, outputs, loss):
    told = _InternalCallbackParam()
    told.net_outputs = outputs
    collector = SummaryCollector(str(tmp_path))
    found = collector._get_loss(told)
    assert found == loss if loss is not None else found is None
    assert collector._is_parse_loss_success is (loss is not None)


def test_optimizer_of_the_parameters(tmp_path):
    told = _InternalCallbackParam()
    told.optimizer = Optimizer(learning_rate=0.1, parameters=[Parameter(Tensor(1.0), "weight")])
    collector = SummaryCollector(str(tmp_path))
    assert collector._get_optimizer(told) is told.optimizer
    assert collector._get_optimizer(told) is told.optimizer


@pytest.mark.parametrize("mode", ["train", "eval"])
def test_optimizer_of_a_network(tmp_path, mode):

    class Net(nn.Cell):

        def __init__(self, add):
            super().__init__()
            self.p = Parameter(Tensor(1.0), name="p")
            if add:
                self.optimizer = Optimizer(learning_rate=1.0, parameters=[Parameter(Tensor(1.0), "w")])

        def construct(self, x):
            return x

    for add in (True, False):
        told = _InternalCallbackParam()
        told.optimizer, told.mode = (None, mode)
        told["train_network" if mode == "train" else "eval_network"] = Net(add)
        found = SummaryCollector(str(tmp_path))._get_optimizer(told)
        assert isinstance(found, Optimizer) if add else found is None
