"""Model: training in feed and sink mode, evaluation, prediction, loss scales, levels of precision, resuming, and what it refuses."""

import os
import threading

import mindspore
import mindspore.dataset as ds
import numpy as np
import pytest
from cairn.ms import level, modes
from mindspore import Model, Tensor, amp, context, load_checkpoint, load_param_into_net, nn
from mindspore.train import DynamicLossScaleManager, FixedLossScaleManager, LossMonitor, build_train_network
from mindspore.train.callback import Callback, CheckpointConfig, ModelCheckpoint


@pytest.fixture(params=["graph", "pynative"])
def mode(request):
    modes.mode = modes.GRAPH if request.param == "graph" else modes.PYNATIVE
    return request.param


@pytest.fixture
def ascend():
    context.set_context(device_target="Ascend")
    yield
    context.set_context(device_target="CPU")


class Net(nn.Cell):
    def __init__(self, keep=1.0):
        super().__init__()
        self.body = nn.SequentialCell(nn.Dense(6, 16, activation="relu"), nn.Dropout(keep), nn.Dense(16, 3))
        for place, each in enumerate(self.get_parameters()):
            each.set_data(Tensor(np.random.RandomState(place).normal(0, 0.4, each.shape).astype(np.float32)))

    def construct(self, x):
        return self.body(x)


def rows(count=24, batch=4, shuffle=False):
    rng = np.random.RandomState(5)
    x = rng.normal(size=(count, 6)).astype(np.float32)
    return ds.NumpySlicesDataset((x, x[:, :3].argmax(1).astype(np.int32)), ["x", "label"], shuffle=shuffle).batch(batch)


def loss():
    return nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")


def model(net, optimizer="momentum", **more):
    made = nn.Momentum(net.trainable_params(), 0.05, 0.9) if optimizer == "momentum" else nn.Adam(net.trainable_params(), 0.01)
    return Model(net, loss(), made, metrics={"acc", "loss"}, **more)


def weights(net):
    return np.concatenate([each.asnumpy().ravel() for each in net.get_parameters()])


def trained(epochs=2, data=None, run=None, **more):
    net = Net()
    model(net, **more).train(epochs, data or rows(), **(run or {"dataset_sink_mode": False}))
    return weights(net)


def test_training_learns_and_metrics_are_right(mode):
    net = Net()
    made = model(net)
    before = made.eval(rows(), dataset_sink_mode=False)
    made.train(15, rows(), dataset_sink_mode=False)
    after = made.eval(rows(), dataset_sink_mode=False)
    assert after["loss"] < before["loss"] and after["acc"] > 0.9
    x = next(rows(24, 24).create_tuple_iterator(output_numpy=True))
    logits = made.predict(Tensor(x[0])).asnumpy()
    assert (logits.argmax(1) == x[1]).mean() == after["acc"] and not net.training


def test_both_modes_feed_and_sink_agree(ascend):
    modes.mode = modes.GRAPH
    expected = trained()
    for sink in ({}, {"sink_size": 3}):
        epochs = 4 if sink else 2
        np.testing.assert_array_equal(trained(epochs, run=sink), expected)
    modes.mode = modes.PYNATIVE
    np.testing.assert_allclose(trained(), expected, rtol=1e-5, atol=1e-6)


def test_sink_mode_on_cpu_by_level(monkeypatch, capfd):
    monkeypatch.setattr(level, "now", "0.5")
    with pytest.raises(RuntimeError, match="dataset_sink_mode"):
        model(Net()).train(1, rows())
    monkeypatch.setattr(level, "now", "1.1")
    model(Net()).train(1, rows())
    assert "dataset not sink" in capfd.readouterr().err
    monkeypatch.setattr(level, "now", "1.10")
    model(Net()).train(1, rows())
    assert "dataset not sink" not in capfd.readouterr().err


def test_repeat_and_epochs_by_level(monkeypatch):
    class Count(Callback):
        steps = 0

        def step_end(self, run_context):
            self.steps += 1

    for wanted, steps in (("0.5", 2 * 6), ("1.1", 2 * 2 * 6)):
        monkeypatch.setattr(level, "now", wanted)
        count = Count()
        model(Net()).train(2, rows().repeat(2), callbacks=count, dataset_sink_mode=False)
        assert count.steps == steps


@pytest.mark.parametrize("optimizer", ["momentum", "adam"])
def test_a_resumed_run_has_the_same_bits(tmp_path, mode, optimizer):
    """Dropout and shuffled rows included."""

    def start():
        mindspore.set_seed(3)
        net = Net(keep=0.8)
        return net, model(net, optimizer)

    net, made = start()
    made.train(4, rows(shuffle=True), dataset_sink_mode=False)
    expected = weights(net)
    net, made = start()
    saver = ModelCheckpoint("net", str(tmp_path), CheckpointConfig(save_checkpoint_steps=6))
    made.train(2, rows(shuffle=True), callbacks=saver, dataset_sink_mode=False)
    mindspore.set_seed(3)
    net = Net(keep=0.8)
    made = model(net, optimizer)
    parameters = load_checkpoint(str(tmp_path / "net-2_6.ckpt"))
    assert load_param_into_net(made.train_network, parameters) == []
    made.train(4, rows(shuffle=True), dataset_sink_mode=False, initial_epoch=2)
    np.testing.assert_array_equal(weights(net), expected)


def test_a_resumed_run_in_sink_mode(tmp_path, ascend):
    def run(net, made, epochs, **more):
        mindspore.set_seed(3)
        made.train(epochs, rows(shuffle=True), sink_size=4, **more)
        return weights(net)

    net = Net()
    expected = run(net, model(net), 5)
    net = Net()
    saver = ModelCheckpoint("net", str(tmp_path), CheckpointConfig(save_checkpoint_steps=4))
    run(net, model(net), 2, callbacks=saver)
    net = Net()
    made = model(net)
    load_param_into_net(made.train_network, load_checkpoint(str(tmp_path / "net-2_4.ckpt")))
    np.testing.assert_array_equal(run(net, made, 5, initial_epoch=2), expected)


def test_loss_scales_change_nothing_but_rounding(mode):
    plain = trained()
    for manager in (FixedLossScaleManager(256.0, False), FixedLossScaleManager(256.0, True), DynamicLossScaleManager(2**10, 2, 4)):
        net = Net()
        sens = 1.0 if manager.get_update_cell() is not None else 256.0
        made = Model(net, loss(), nn.Momentum(net.trainable_params(), 0.05, 0.9, loss_scale=sens), loss_scale_manager=manager)
        made.train(2, rows(), dataset_sink_mode=False)
        np.testing.assert_allclose(weights(net), plain, rtol=1e-4, atol=1e-6)


def test_overflow_leaves_the_step_out_and_halves_the_scale(mode):
    data = ds.NumpySlicesDataset((np.full((4, 6), 1e38, np.float32), np.zeros(4, np.int32)), ["x", "label"]).batch(4)
    net = Net()
    before = weights(net)
    outputs = []

    class Keep(Callback):
        def step_end(self, run_context):
            outputs.append([each.asnumpy().item() for each in run_context.original_args().net_outputs])

    made = Model(net, loss(), nn.Momentum(net.trainable_params(), 0.05, 0.9), loss_scale_manager=DynamicLossScaleManager(1024, 2, 100))
    made.train(2, data, callbacks=Keep(), dataset_sink_mode=False)
    np.testing.assert_array_equal(weights(net), before)
    assert [each[1] for each in outputs] == [True, True] and outputs[1][2] == outputs[0][2] / 2


def test_levels_of_mixed_precision(mode):
    plain = trained()
    for amp_level in ("O1", "O2", "O3"):
        found = trained(amp_level=amp_level, loss_scale_manager=None)
        np.testing.assert_allclose(found, plain, rtol=0.02, atol=5e-3)
        assert np.abs(found - plain).max() > 1e-5
    assert isinstance(build_train_network(Net(), nn.Momentum(Net().trainable_params(), 0.1, 0.9), loss(), level="O2"), nn.TrainOneStepWithLossScaleCell)
    with pytest.raises(ValueError, match="auto"):
        model(Net(), amp_level="auto")
    with pytest.raises(ValueError):
        model(Net(), amp_level="O4")


def test_a_graph_at_a_level_multiplies_16_bits_and_returns_f32():
    modes.mode = modes.GRAPH
    net = nn.Dense(2, 1, weight_init=Tensor(np.array([[1 + 2**-12, 2048]], np.float32)), has_bias=False)
    x = Tensor(np.array([[1, 1 + 2**-11]], np.float32))
    assert net(x).asnumpy() == np.float32(1 + 2**-12 + 2049)
    made = amp.auto_mixed_precision(net, "O2")(x)
    assert made.dtype == mindspore.float32 and made.asnumpy() == 2048  # of 2049, which is even in f16


@pytest.mark.parametrize("level", ["O2", "O3"])
def test_both_modes_train_alike_at_a_level(level):
    x, label = Tensor(np.random.default_rng(2).normal(size=(8, 6)).astype(np.float32)), Tensor(np.arange(8, dtype=np.int32) % 3)
    found = []
    for modes.mode in (modes.GRAPH, modes.PYNATIVE):
        mindspore.set_seed(4)
        net = nn.SequentialCell(nn.Dense(6, 8), nn.ReLU(), nn.Dropout(0.5), nn.Dense(8, 3))
        step = build_train_network(net, nn.Momentum(net.trainable_params(), 0.1, 0.9), loss(), level=level)
        made = [step(x, label) for _ in range(20)]
        net.set_train(False)
        found.append([*(np.array(each[0] if isinstance(each, tuple) else each) for each in made), net(x).asnumpy()])
    assert all(np.array_equal(*pair) for pair in zip(*found))


def test_hooks_are_called_at_a_level():
    modes.mode = modes.PYNATIVE
    net, calls = amp.auto_mixed_precision(nn.SequentialCell(nn.Dense(2, 2)), "O2"), []
    net[0].register_forward_hook(lambda *told: calls.append(told))
    net(Tensor(np.ones((1, 2), np.float32)))
    assert len(calls) == 1


def test_attributes_that_a_network_sets_are_set_in_each_eager_call_at_a_level():
    class Counts(nn.Dense):
        calls = 0

        def construct(self, x):
            self.calls = self.calls + 1
            return super().construct(x)

    modes.mode = modes.PYNATIVE
    net = amp.auto_mixed_precision(Counts(2, 2), "O2")
    for _ in range(3):
        net(Tensor(np.ones((1, 2), np.float32)))
    assert net.calls == 3


def test_functions_of_amp(mode):
    from mindspore import amp, ops

    scaler = amp.DynamicLossScaler(1024, 2, 2)
    good, bad = (Tensor(np.float32([1, 2])),), (Tensor(np.float32([1, np.inf])),)
    assert bool(amp.all_finite(good)) and not bool(amp.all_finite(bad))
    assert scaler.scale(good[0]).asnumpy()[0] == 1024 and scaler.unscale(good)[0].asnumpy()[1] == np.float32(2 / 1024)
    scales = []
    for gradients in (good, bad, good, good):
        scaler.adjust(amp.all_finite(gradients))
        scales.append(float(scaler.scale_value.asnumpy()))
    assert scales == [1024, 512, 512, 1024]
    assert ops is not None


def test_fit_evaluates_and_prints(capsys):
    made = model(Net())
    made.fit(2, rows(), rows(8), callbacks=LossMonitor(6), dataset_sink_mode=False, valid_dataset_sink_mode=False)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["epoch", "Eval result", "epoch", "Eval result"]
    assert lines[1].startswith("Eval result: epoch 1, metrics: {")
    with pytest.raises(ValueError):
        Model(Net(), loss(), nn.SGD(Net().trainable_params())).fit(1, rows(), rows())


def test_what_is_wrong_is_refused():
    net = Net()
    for wrong in ({"network": "net"}, {"loss_scale_manager": 3}):
        with pytest.raises(TypeError):
            Model(**{"network": net, "loss_fn": loss(), "optimizer": nn.SGD(net.trainable_params()), **wrong})
    with pytest.raises(ValueError, match="nothing"):
        Model(net, nothing=1)
    with pytest.raises(ValueError):
        Model(net, loss(), loss_scale_manager=FixedLossScaleManager())
    made = model(net)
    for wrong, error in (((0, rows()), ValueError), (("2", rows()), TypeError), ((1, "rows"), TypeError)):
        with pytest.raises(error):
            made.train(*wrong, dataset_sink_mode=False)
    with pytest.raises(TypeError):
        made.train(1, rows(), callbacks=3, dataset_sink_mode=False)
    with pytest.raises(TypeError):
        made.train(1, rows(), dataset_sink_mode=1)
    with pytest.raises(ValueError, match="two elements"):
        made.train(1, rows().map(lambda x: (x, x), "x", ["x", "y"], ["x", "y", "label"]), dataset_sink_mode=False)
    with pytest.raises(ValueError):
        Model(net, loss(), nn.SGD(net.trainable_params())).eval(rows())
    with pytest.raises(ValueError):
        made.train(2, rows(), initial_epoch=2, dataset_sink_mode=False)


def test_a_dataset_in_one_models_sink_is_refused_to_another(ascend):
    data = rows()
    model(Net()).train(1, data)
    with pytest.raises(RuntimeError, match="other model"):
        model(Net()).train(1, data)


def test_a_class_of_the_script_that_answers_like_a_dataset():
    class Data:
        """It begins anew at reset() alone."""

        def __init__(self):
            self.place = 0

        def get_dataset_size(self):
            return 6

        def create_tuple_iterator(self, num_epochs=-1, do_copy=True):
            return self

        def reset(self):
            self.place = 0

        def __iter__(self):
            return self

        def __next__(self):
            if self.place == 6:
                raise StopIteration
            self.place += 1
            return list(rows().create_tuple_iterator(num_epochs=1))[self.place - 1]

    np.testing.assert_array_equal(trained(data=Data()), trained())


def test_ranks_and_private_names():
    from mindspore.communication import create_group, get_group_size, get_rank, init, release
    from mindspore.parallel._auto_parallel_context import auto_parallel_context
    from mindspore.parallel._utils import _get_device_num, _get_gradients_mean, _get_mirror_mean, _get_parallel_mode
    from mindspore.train.model import ParallelMode
    from mindspore.train.parallel_utils import ParallelMode as old

    init()
    assert (get_rank(), get_group_size(), _get_device_num(), _get_parallel_mode()) == (0, 1, 1, "stand_alone")
    assert _get_mirror_mean() is _get_gradients_mean() is False and old is ParallelMode
    auto_parallel_context().set_all_reduce_fusion_split_indices([1, 2])
    with pytest.raises(ValueError):
        create_group("g", [0, 1])
    release()


def test_the_profiler_records_a_run(tmp_path):
    profiler = mindspore.Profiler(output_path=str(tmp_path))
    model(Net()).train(1, rows(), dataset_sink_mode=False)
    profiler.analyse()
    assert os.path.isdir(profiler.folder) and os.path.exists(tmp_path / "profiler" / "profiler_info.json")


class Source:
    """Rows of which it says in which thread each was made; one of a later pass may fail."""

    def __init__(self, bad=None):
        self.bad, self.made, self.passes = bad, [], 0

    def __iter__(self):
        self.passes += 1
        for index in range(12):
            if index == self.bad and self.passes > 1:
                raise ValueError("row 7 is bad")
            self.made.append(threading.current_thread().name)
            yield np.full(6, index, np.float32), np.int32(index % 3)


def sunk(source, **more):
    data = ds.GeneratorDataset(source, ["x", "label"], shuffle=False).batch(4)
    model(Net()).train(2, data, **more)


def test_sink_mode_makes_rows_in_a_thread_that_ends(ascend):
    source = Source()
    sunk(source)
    assert set(source.made[12:]) == {"cairn ms data"}  # the size was counted before
    threads = {each.name for each in threading.enumerate()}
    assert "cairn ms data" not in threads


def test_a_row_that_fails_ends_sink_mode(ascend):
    with pytest.raises(Exception, match="row 7 is bad"):
        sunk(Source(bad=7))
    assert "cairn ms data" not in {each.name for each in threading.enumerate()}


def test_stopping_early_ends_the_thread_of_rows(ascend):
    class Stop(Callback):
        def epoch_end(self, run_context):
            run_context.request_stop()

    sunk(Source(), callbacks=Stop(), sink_size=1)
    assert "cairn ms data" not in {each.name for each in threading.enumerate()}
