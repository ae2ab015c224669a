"""Callbacks: the exact lines of each level, stopping, and what is called when."""

import os
import sys
import types

import mindspore.dataset as ds
import numpy as np
import pytest
from cairn.ms import level
from mindspore import Model, Tensor, nn
from mindspore.train import callback as callbacks
from mindspore.train.callback import (
    Callback,
    EarlyStopping,
    LambdaCallback,
    LossMonitor,
    ModelCheckpoint,
    ReduceLROnPlateau,
    RunContext,
    SummaryCollector,
    TimeMonitor,
    _CallbackManager,
    _InternalCallbackParam,
)


@pytest.fixture
def at(monkeypatch):
    return lambda wanted: monkeypatch.setattr(level, "now", wanted)


def context(step=1, batches=4, loss=0.5, **more):
    return RunContext(_InternalCallbackParam(cur_step_num=step, cur_epoch_num=(step - 1) // batches + 1, batch_num=batches, mode="train",
                                             net_outputs=Tensor(np.float32(loss)) if loss is not None else None, **more))


LINES = {"0.5": "epoch: 2 step 2, loss is 0.1\n", "1.1": "epoch: 2 step: 2, loss is 0.1\n", "1.10": "epoch: 2 step: 2, loss is 0.10000000149011612\n"}
INVALID = {"0.5": "epoch: 1 step: 1. Invalid loss, terminating training.", "1.1": "epoch: 1 step: 1. Invalid loss, terminating training.",
           "1.10": "In epoch: 1 step: 1, loss is NAN or INF, training process cannot continue, terminating training."}


@pytest.mark.parametrize("wanted", LINES)
def test_loss_monitor_prints_the_line_of_the_level(at, capsys, wanted):
    at(wanted)
    monitor = LossMonitor()
    monitor.step_end(context(6, loss=0.1))
    assert capsys.readouterr().out == LINES[wanted]
    for value in (np.nan, np.inf):
        with pytest.raises(ValueError) as error:
            monitor.step_end(context(1, loss=value))
        assert str(error.value) == INVALID[wanted]


def test_loss_monitor_takes_the_first_of_a_tuple_and_the_mean(capsys):
    run = context()
    run.original_args().net_outputs = (Tensor(np.float32([1, 2])), Tensor(np.float32(9)))
    LossMonitor().step_end(run)
    assert capsys.readouterr().out == "epoch: 1 step: 1, loss is 1.5\n"


@pytest.mark.parametrize("wanted, steps", [("1.1", [3, 6, 9]), ("1.10", [4, 8])])
def test_loss_monitor_counts_its_times_by_level(at, capsys, wanted, steps):
    at(wanted)
    monitor = LossMonitor(3)
    for step in (3, 6, 9) if wanted == "1.1" else (2, 4, 6, 8):
        monitor.step_end(context(step, batches=10))
    assert [int(line.split("step: ")[1].split(",")[0]) for line in capsys.readouterr().out.splitlines()] == steps
    with pytest.raises(ValueError):
        LossMonitor(-1)


TIMES = {"0.5": r"epoch time: [\d.]+, per step time: [\d.]+\n", "1.1": r"epoch time: +\d+\.\d{3} ms, per step time: +\d+\.\d{3} ms\n",
         "1.10": r"Train epoch time: +\d+\.\d{3} ms, per step time: +\d+\.\d{3} ms\n"}


@pytest.mark.parametrize("wanted", TIMES)
def test_time_monitor_prints_the_line_of_the_level(at, capsys, wanted):
    import re

    at(wanted)
    monitor = TimeMonitor(4)
    monitor.epoch_begin(context())
    monitor.epoch_end(context())
    assert re.fullmatch(TIMES[wanted], capsys.readouterr().out)
    if wanted == "0.5":
        with pytest.raises(TypeError):
            TimeMonitor()


def test_callbacks_are_called_in_order_by_their_older_names_too():
    calls = []

    class Old(Callback):
        def begin(self, run_context):
            calls.append("begin")

        def step_end(self, run_context):
            calls.append("step_end")

    class New(Callback):
        def on_train_begin(self, run_context):
            calls.append("on_train_begin")

    with _CallbackManager([Old(), New(), LambdaCallback(on_train_step_end=lambda run: calls.append("lambda"))]) as manager:
        manager.on_train_begin(context())
        manager.on_train_step_end(context())
    assert calls == ["begin", "on_train_begin", "step_end", "lambda"]
    with pytest.raises(TypeError):
        _CallbackManager([3])
    with pytest.raises(TypeError):
        RunContext({})


def test_the_manager_calls_older_names_of_all(capsys):
    with _CallbackManager([LossMonitor(1), TimeMonitor(2)]) as manager:
        run = context(2, 2)
        for moment in ("begin", "epoch_begin", "step_begin", "step_end", "epoch_end", "end"):
            getattr(manager, moment)(run)
    assert capsys.readouterr().out.startswith("epoch: 1 step: 2, loss is 0.5\nTrain epoch time: ")
    for wrong in ([None], ["Error"], [LossMonitor(1), "Error", None]):
        with pytest.raises(TypeError):
            _CallbackManager(wrong)


def test_the_graph_file_is_written_once(tmp_path):
    run, saver = context(train_network=Tiny(), network=Tiny()), ModelCheckpoint("test", str(tmp_path))
    saver.begin(run)
    saver.step_end(run)
    os.remove(tmp_path / "test-graph.meta")
    saver.step_end(run)
    assert not os.path.exists(tmp_path / "test-graph.meta")


def measured(watcher, values, key="loss", **more):
    """The epochs after which a watcher has asked to stop."""
    run = context(**more)
    watcher.on_train_begin(run)
    for epoch, value in enumerate(values, 1):
        run.original_args().update(cur_epoch_num=epoch, eval_results={key: value})
        watcher.on_train_epoch_end(run)
        if run.get_stop_requested():
            return epoch
    watcher.on_train_end(run)
    return None


def test_early_stopping():
    assert measured(EarlyStopping(patience=2), [3, 2, 1, 1.5, 1.2, 0.5]) == 5
    assert measured(EarlyStopping(monitor="eval_acc", patience=1), [0.1, 0.2, 0.2], "acc") == 3
    assert measured(EarlyStopping(min_delta=0.5, patience=1), [3, 2.8]) == 2
    assert measured(EarlyStopping(patience=1, baseline=0.1), [3]) == 1
    for wrong in ({"mode": "x"}, {"patience": -1}):
        with pytest.raises(ValueError):
            EarlyStopping(**wrong)


def test_reduce_lr_on_plateau(capsys):
    class Optimizer:
        learning_rate = __import__("mindspore").Parameter(Tensor(np.float32(1.0)), name="learning_rate")

    measured(ReduceLROnPlateau(patience=2, factor=0.5, verbose=True), [1, 1, 1, 1, 1], optimizer=Optimizer)
    assert float(Optimizer.learning_rate.asnumpy()) == 0.25
    assert capsys.readouterr().out.splitlines()[0] == "Epoch 00003: ReduceLROnPlateau reducing learning rate to 0.5."


class Tiny(nn.Cell):
    """Without an optimizer a Model calls the network; its result is the loss."""

    def construct(self, x):
        return x.mean()


def rows(count=8):
    return ds.NumpySlicesDataset({"x": np.ones((count, 1, 2, 2), np.float32)}, shuffle=False).batch(2)


def test_moments_and_values_of_a_run_in_feed_and_sink_mode():
    from mindspore import context as settings

    seen = []

    class Seen(Callback):
        def step_end(self, run_context):
            told = run_context.original_args()
            seen.append((told.cur_epoch_num, told.cur_step_num, told.batch_num, told.dataset_sink_mode))

        def epoch_end(self, run_context):
            seen.append("epoch")

    Model(Tiny()).train(2, rows(), callbacks=Seen(), dataset_sink_mode=False)
    assert seen == [(1, 1, 4, False), (1, 2, 4, False), (1, 3, 4, False), (1, 4, 4, False), "epoch",
                    (2, 5, 4, False), (2, 6, 4, False), (2, 7, 4, False), (2, 8, 4, False), "epoch"]  # fmt: skip
    settings.set_context(device_target="Ascend")
    try:
        seen.clear()
        Model(Tiny()).train(2, rows(), callbacks=[Seen()])
        assert seen == [(1, 4, 4, True), "epoch", (2, 8, 4, True), "epoch"]
        seen.clear()
        Model(Tiny()).train(2, rows(), callbacks=[Seen()], sink_size=3)
        assert seen == [(1, 3, 3, True), "epoch", (2, 6, 3, True), "epoch"]
    finally:
        settings.set_context(device_target="CPU")


def test_request_stop_ends_the_run():
    class Stop(Callback):
        steps = 0

        def step_end(self, run_context):
            self.steps += 1
            run_context.request_stop()

    stop = Stop()
    Model(Tiny()).train(3, rows(), callbacks=stop, dataset_sink_mode=False)
    assert stop.steps == 1


def test_summary_files_are_read_by_tensorboard(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard.compat.notf", types.ModuleType("tensorboard.compat.notf"))  # without TensorFlow's import
    loader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    collector = SummaryCollector(str(tmp_path), collect_freq=1)
    Model(Tiny()).train(1, rows(), callbacks=collector, dataset_sink_mode=False)
    events = loader.EventAccumulator(str(tmp_path))
    events.Reload()
    assert [(each.step, each.value) for each in events.Scalars("loss")] == [(1, 1.0), (2, 1.0), (3, 1.0), (4, 1.0)]
    assert len(events.Images("input_data")) == 4
    (name,) = os.listdir(tmp_path)
    assert ".out.events.summary." in name
    with pytest.raises(ValueError):
        SummaryCollector(str(tmp_path), collect_specified_data={"nothing": True})


def test_histograms_are_of_the_parameters_that_the_optimizer_has(tmp_path):
    net = nn.SequentialCell([nn.Dense(1, 1) for _ in range(4)])
    run = context(optimizer=nn.SGD(net.trainable_params()[1:]))

    def names(**options):
        collector, found = SummaryCollector(str(tmp_path), **options), []
        collector._record = types.SimpleNamespace(add_value=lambda kind, name, value: found.append(name))
        collector._collect_histogram(run.original_args())
        return found

    assert names() == ["0.bias/auto", "1.weight/auto", "1.bias/auto", "2.weight/auto", "2.bias/auto"]
    assert names(collect_specified_data={"histogram_regular": ".*bias"}) == [f"{i}.bias/auto" for i in range(4)]
    assert names(keep_default_action=False) == []


def test_the_checkpoint_of_an_exception(tmp_path):
    class Fails(Callback):
        def step_end(self, run_context):
            if run_context.original_args().cur_step_num == 3:
                raise RuntimeError("enough")

    net = Tiny()
    net.w = __import__("mindspore").Parameter(Tensor(np.float32([1])), name="w")
    saver = ModelCheckpoint("n", str(tmp_path), callbacks.CheckpointConfig(100, exception_save=True))
    with pytest.raises(RuntimeError, match="enough"):
        Model(net).train(1, rows(), callbacks=[saver, Fails()], dataset_sink_mode=False)
    assert "n-1_3_breakpoint.ckpt" in os.listdir(tmp_path)
