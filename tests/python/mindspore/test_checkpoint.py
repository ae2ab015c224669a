"""Checkpoints: the format of both eras, what goes into a network, damaged files, and kills while saving."""

import os
import signal
import subprocess
import sys
import time

import mindspore
import numpy as np
import pytest
from cairn.ms import level, wire
from mindspore import Parameter, Tensor, load_checkpoint, load_param_into_net, nn, save_checkpoint
from mindspore.train import _checkpoint
from mindspore.train.callback import CheckpointConfig, ModelCheckpoint, RunContext, _InternalCallbackParam


class Layer(nn.Cell):
    def __init__(self, shape=(2, 3), kind=np.float32):
        super().__init__()
        self.weight = Parameter(Tensor(np.arange(np.prod(shape)).reshape(shape).astype(kind)))
        self.bias = Parameter(Tensor(np.ones(2, np.float32)), name="bias")


class Net(nn.Cell):
    def __init__(self, **options):
        super().__init__()
        self.fc = Layer(**options)
        self.step = Parameter(Tensor(np.array(3, np.int32)), name="step", requires_grad=False)


def arrays(parameters):
    return {name: value.asnumpy() for name, value in parameters.items()}


def zeroed(net):
    for each in net.get_parameters():
        each.set_data(Tensor(np.zeros(each.shape, each.asnumpy().dtype)))
    return net


def test_a_file_comes_back_and_the_bytes_are_the_format(tmp_path):
    path = str(tmp_path / "net.ckpt")
    save_checkpoint(Net(), path, append_dict={"epoch_num": 4, "lr": 0.5, "on": True})
    loaded = arrays(load_checkpoint(path))
    assert loaded["fc.weight"].tolist() == [[0, 1, 2], [3, 4, 5]] and loaded["step"] == 3 and loaded["step"].dtype == np.int32
    assert loaded["epoch_num"] == 4 and loaded["lr"] == 0.5 and loaded["on"]
    first = wire.bytes_field(1, wire.bytes_field(1, "fc.bias") + wire.bytes_field(2, b"\x08\x02" + wire.bytes_field(2, "Float32") + wire.bytes_field(3, np.ones(2, "<f4").tobytes())))
    assert first in open(path, "rb").read()
    assert not os.access(path, os.W_OK) or os.stat(path).st_mode & 0o777 == 0o400


def test_lists_and_types_come_back(tmp_path):
    path = str(tmp_path / "all.ckpt")
    values = {kind: np.array([[1, 0, 1]]).astype(kind) for kind in _checkpoint._TYPES.values()}
    save_checkpoint([{"name": name, "data": Tensor(value)} for name, value in values.items()], path)
    loaded = load_checkpoint(path)
    for name, value in values.items():
        np.testing.assert_array_equal(loaded[name].asnumpy(), value)
        assert loaded[name].asnumpy().dtype == value.dtype and isinstance(loaded[name], Parameter)


def test_the_form_of_05_has_its_model_type(tmp_path, monkeypatch):
    monkeypatch.setattr(level, "now", "0.5")
    path = str(tmp_path / "old.ckpt")
    save_checkpoint([{"name": "w", "data": Tensor(np.float32([1]))}], path, "normal")
    assert wire.bytes_field(2, "normal") in open(path, "rb").read()
    assert list(load_checkpoint(path, "normal")) == ["w"]
    with pytest.raises(KeyError, match="model type"):
        load_checkpoint(path, "quant")
    monkeypatch.setattr(level, "now", "1.10")
    assert list(load_checkpoint(path)) == ["w"]


def test_large_tensors_are_cut_into_slices(tmp_path, monkeypatch):
    monkeypatch.setattr(_checkpoint, "SLICE_BYTES", 16)
    path = str(tmp_path / "cut.ckpt")
    save_checkpoint([{"name": "w", "data": Tensor(np.arange(15, dtype=np.float32).reshape(3, 5))}], path)
    assert len(wire.messages(open(path, "rb").read(), 1)) == 4
    np.testing.assert_array_equal(load_checkpoint(path)["w"].asnumpy(), np.arange(15).reshape(3, 5))


def test_what_a_network_takes(tmp_path):
    path = str(tmp_path / "net.ckpt")
    save_checkpoint(Net(), path)
    net = zeroed(Net())
    assert load_param_into_net(net, load_checkpoint(path)) == []
    assert net.fc.weight.asnumpy().tolist() == [[0, 1, 2], [3, 4, 5]]
    bare = zeroed(Layer())
    assert load_param_into_net(bare, load_checkpoint(path)) == ["weight", "bias"]
    wrapped = nn.SequentialCell([zeroed(Layer())])
    inner = {name[len("fc.") :]: value for name, value in load_checkpoint(path, filter_prefix="step").items()}
    assert load_param_into_net(wrapped, inner) == []
    assert wrapped[0].weight.asnumpy()[1, 2] == 5
    half = Net(kind=np.float16)
    load_param_into_net(half, load_checkpoint(path))
    assert half.fc.weight.asnumpy().dtype == np.float16
    with pytest.raises(RuntimeError, match="same type"):
        load_param_into_net(half, load_checkpoint(path), strict_load=True)
    with pytest.raises(RuntimeError, match="same shape"):
        load_param_into_net(Net(shape=(3, 2)), load_checkpoint(path))
    load_param_into_net(Net(shape=(2, 3, 1)), load_checkpoint(path))
    with pytest.raises(TypeError):
        load_param_into_net("net", load_checkpoint(path))
    for wrong in ("net.ckpt", {"fc.weight": ""}, {"fc.weight": 3}):
        with pytest.raises(TypeError):
            load_param_into_net(net, wrong)


def test_missing_names_are_told_with_the_nearest(tmp_path, capfd):
    net = Net()
    parameters = {"fc.weights": net.fc.weight, "fc.bias": net.fc.bias, "step": net.step}
    assert load_param_into_net(net, parameters) == ["fc.weight"]
    assert "fc.weight is not loaded. The nearest name in the file is fc.weights." in capfd.readouterr().err


def test_filters_and_bad_arguments(tmp_path):
    path = str(tmp_path / "net.ckpt")
    save_checkpoint(Net(), path)
    assert sorted(load_checkpoint(path, filter_prefix="fc.")) == ["step"]
    assert sorted(load_checkpoint(path, specify_prefix=["fc.w"])) == ["fc.weight"]
    for wrong, error in ((3, TypeError), (str(tmp_path / "net.txt"), ValueError), (str(tmp_path / "none.ckpt"), ValueError)):
        with pytest.raises(error):
            load_checkpoint(wrong)
    with pytest.raises(ValueError):
        load_checkpoint(path, filter_prefix=["fc.", "step"])
    with pytest.raises(TypeError):
        load_checkpoint(path, filter_prefix=3)
    with pytest.raises(TypeError):
        save_checkpoint("net", path)
    with pytest.raises(ValueError):
        save_checkpoint(Net(), path, enc_key=b"0" * 15)
    (tmp_path / "empty.ckpt").touch()
    with pytest.raises(ValueError, match="empty"):
        load_checkpoint(str(tmp_path / "empty.ckpt"))


def test_an_asynchronous_save_is_whole_when_it_is_read(tmp_path):
    path = str(tmp_path / "a.ckpt")
    net = Net()
    save_checkpoint(net, path, async_save=True)
    net.step.set_data(Tensor(np.array(9, np.int32)))
    assert load_checkpoint(path)["step"].asnumpy() == 3


def test_two_thousand_damaged_files_give_a_sentence_or_a_value(tmp_path):
    good = b"".join(_checkpoint.encode([("fc.weight", np.arange(6, dtype=np.float32).reshape(2, 3)), ("step", np.array(3)), ("name", "text")], "normal"))
    rng, path, sentences = np.random.RandomState(0), tmp_path / "bad.ckpt", 0
    for number in range(2000):
        data = bytearray(good)
        for _ in range(rng.randint(1, 4)):
            place = rng.randint(len(data))
            kind = rng.randint(5)
            if kind == 0:
                data[place] = rng.randint(256)
            elif kind == 1:
                data[place] ^= 1 << rng.randint(8)
            elif kind == 2:
                del data[place:]
            elif kind == 3:
                data[place:place] = bytes(rng.randint(0, 256, rng.randint(1, 9), dtype=np.uint8))
            else:
                del data[place : place + rng.randint(1, 9)]
            if not data:
                data = bytearray(b"\xff")
        path.write_bytes(data)
        try:
            load_checkpoint(str(path))
        except ValueError as error:
            sentences += 1
            assert "bad.ckpt" in str(error) and "\n" not in str(error)
    assert sentences > 1000


def told(net, step, batches=4):
    context = _InternalCallbackParam(train_network=net, network=net, cur_epoch_num=(step - 1) // batches + 1, cur_step_num=step, batch_num=batches)
    return RunContext(context)


def names(folder):
    return sorted(each for each in os.listdir(folder) if each.endswith(".ckpt"))


def test_asynchronous_files_are_kept_and_removed_alike(tmp_path):
    net = Net()
    saver = ModelCheckpoint("net", str(tmp_path), CheckpointConfig(keep_checkpoint_max=2, async_save=True))
    for step in range(1, 6):
        saver.step_end(told(net, step))
        time.sleep(0.01)
    saver.end(told(net, 5))
    assert names(tmp_path) == ["net-1_4.ckpt", "net-2_1.ckpt"]
    assert all(load_checkpoint(str(tmp_path / name)) for name in names(tmp_path))


def test_files_of_some_minutes_are_kept(tmp_path):
    saver = ModelCheckpoint("net", str(tmp_path), CheckpointConfig(keep_checkpoint_max=0, keep_checkpoint_per_n_minutes=1))
    for step in range(1, 4):
        if step == 2:
            saver._last_kept -= 61
        saver.step_end(told(Net(), step))
        time.sleep(0.01)
    assert names(tmp_path) == ["net-1_2.ckpt", "net-1_3.ckpt"]


def test_model_checkpoint_names_and_keeps_files(tmp_path):
    net = Net()
    saver = ModelCheckpoint("net", str(tmp_path), CheckpointConfig(save_checkpoint_steps=3, keep_checkpoint_max=2, append_info=["epoch_num", {"lr": 0.1}]))
    saver.begin(told(net, 1))
    for step in range(1, 11):
        saver.step_end(told(net, step))
        time.sleep(0.01)
    saver.end(told(net, 10))
    assert names(tmp_path) == ["net-3_1.ckpt", "net-3_2.ckpt"] and os.path.exists(tmp_path / "net-graph.meta")
    assert load_checkpoint(str(tmp_path / "net-3_2.ckpt"))["epoch_num"].asnumpy() == 3
    assert saver.latest_ckpt_file_name.endswith("net-3_2.ckpt")
    again = ModelCheckpoint("net", str(tmp_path))
    again.step_end(told(net, 1))
    assert "net_1-1_1.ckpt" in names(tmp_path)
    third = ModelCheckpoint("net", str(tmp_path))
    third.step_end(told(net, 1))
    assert "net_2-1_1.ckpt" in names(tmp_path)
    with pytest.raises(ValueError, match="prefix"):
        ModelCheckpoint("a/b")
    with pytest.raises(ValueError):
        CheckpointConfig(0, 0, 0, 0)
    with pytest.raises(ValueError):
        CheckpointConfig(save_checkpoint_steps=-1)


@pytest.mark.parametrize("rounds", [4, pytest.param(20, marks=pytest.mark.long)])
def test_a_kill_while_saving_leaves_the_last_good_file(tmp_path, rounds):
    """One process is forked for each kill, so that the imports are paid once."""
    rng = np.random.RandomState(0)
    for round_ in range(rounds):
        folder = tmp_path / str(round_)
        folder.mkdir()
        for _ in range(10):
            child = os.fork()
            if child == 0:
                try:
                    save_for_ever(str(folder))
                finally:
                    os._exit(1)
            time.sleep(rng.uniform(0.005, 0.05))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            for name in names(folder):
                loaded = load_checkpoint(str(folder / name))
                assert (loaded["w"].asnumpy() == np.arange(1 << 14) + loaded["step"].asnumpy()).all()
        assert names(folder)
        assert len([each for each in os.listdir(folder) if each.endswith(".part")]) <= 1
        save_checkpoint([{"name": "w", "data": Tensor(np.ones(3, np.float32))}], str(folder / "next.ckpt"))
        assert not [each for each in os.listdir(folder) if each.endswith(".part")]


def save_for_ever(folder):
    from mindspore.train.callback._model_checkpoint import CheckpointManager

    manager, values, step = CheckpointManager(), np.arange(1 << 14, dtype=np.float32), 0
    manager.update_ckpoint_filelist(folder, "net")
    while True:
        step += 1
        _checkpoint.write(f"{folder}/net-1_{step % 7}.ckpt", [("w", values + step), ("step", np.array(step))], read_only=True)
        manager.update_ckpoint_filelist(folder, "net")
        manager.keep_newest(2)


def test_a_kill_of_a_whole_process_too(tmp_path):
    code = "import os, sys; sys.path[:0] = sys.argv[2:]\nimport cairn.ms, test_checkpoint\nprint('ready', flush=True)\ntest_checkpoint.save_for_ever(sys.argv[1])"
    child = subprocess.Popen([sys.executable, "-c", code, str(tmp_path), os.path.dirname(__file__)], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    time.sleep(0.3)
    child.kill()
    child.wait()
    assert [load_checkpoint(str(tmp_path / name)) for name in names(tmp_path)]


def test_the_state_of_random_operators_is_kept(tmp_path):
    random = pytest.importorskip("cairn.ms.numerics.random")
    mindspore.set_seed(1)
    random.uniform((2,))
    net = Net()
    ModelCheckpoint("net", str(tmp_path)).step_end(told(net, 1))
    expected = random.uniform((4,)).asnumpy()
    load_param_into_net(net, load_checkpoint(str(tmp_path / "net-1_1.ckpt")))
    np.testing.assert_array_equal(random.uniform((4,)).asnumpy(), expected)


def test_the_last_of_several_parameters_of_one_name_is_in_the_file(tmp_path, capfd):
    class Twins(nn.Cell):
        def __init__(self):
            super().__init__(auto_prefix=False)
            weights = [Parameter(Tensor([float(each)]), name="weight") for each in (1, 2)]
            self.first, self.second = nn.SGD(weights[:1], 0.1), nn.SGD(weights[1:], 0.1)

    path = str(tmp_path / "twins.ckpt")
    save_checkpoint(Twins(), path)
    assert load_checkpoint(path)["weight"].asnumpy() == [2] and load_checkpoint(path)["global_step"].shape == (1,)
    assert "Several parameters are named" in capfd.readouterr().err
