"""The listings of chapter 5 (5-3 to 5-29, those in Python) and the code of the migration guide, as they stand, with the damage of
printing undone. What a listing takes from elsewhere in the text is given to it here."""

import math
import os
import types
from pathlib import Path

import mindspore
import mindspore.dataset as ds
import numpy as np
import pytest
from cairn.ms import level, modes
from mindspore import Model, Tensor, context, load_checkpoint, load_param_into_net, nn, save_checkpoint
from mindspore.common import dtype as mstype
from mindspore.communication.management import get_group_size, get_rank
from mindspore.dataset import engine
from mindspore.ops import operations as P
from mindspore.train import callback
from mindspore.train.loss_scale_manager import FixedLossScaleManager

LISTINGS = Path(__file__).parent / "listings"
IMPORTS = {"np": np, "nn": nn, "P": P, "Tensor": Tensor, "mstype": mstype, "Model": Model, "math": math, "os": os, "context": context, "ds": ds,
           "load_checkpoint": load_checkpoint, "load_param_into_net": load_param_into_net, "get_rank": get_rank, "get_group_size": get_group_size,
           "SoftmaxCrossEntropyWithLogits": nn.SoftmaxCrossEntropyWithLogits, "Momentum": nn.Momentum, "FixedLossScaleManager": FixedLossScaleManager}


@pytest.fixture(autouse=True, params=["graph", "pynative"])
def a_place(request, tmp_path, monkeypatch):
    """A folder of its own, level 1.1, and both modes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(level, "now", "1.1")
    modes.mode = modes.GRAPH if request.param == "graph" else modes.PYNATIVE
    yield
    context.set_context(device_target="CPU")
    context.reset_auto_parallel_context()


def run(name, **given):
    """What the listing leaves behind."""
    path = LISTINGS / f"{name}.py"
    names = {"__name__": "__main__", **IMPORTS, **given}
    exec(compile(path.read_text(), str(path), "exec"), names)
    return types.SimpleNamespace(**names)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.flatten, self.dense = nn.Flatten(), nn.Dense(12, 4)

    def construct(self, x):
        return self.dense(self.flatten(x))


def rows(one_hot, batch=4, count=8):
    labels = np.arange(count) % 4
    labels = np.eye(4, dtype=np.float32)[labels] if one_hot else labels.astype(np.int32)
    return ds.NumpySlicesDataset((np.random.RandomState(0).rand(count, 3, 2, 2).astype(np.float32), labels), ["image", "label"], shuffle=False).batch(batch)


def cifar(folder, count=4):
    np.random.RandomState(0).randint(0, 10, (count, 3073)).astype(np.uint8).tofile(folder / "data_batch_1.bin")
    return str(folder)


CONFIG = types.SimpleNamespace(lr=0.1, warmup_epochs=1, epoch_size=2, pretrain_epoch_size=0, momentum=0.9, weight_decay=1e-4, loss_scale=1024,
                               class_num=4, batch_size=4, frequency=2, save_checkpoint=True, save_checkpoint_steps=2, keep_checkpoint_max=2,
                               save_checkpoint_path="./ckpt")  # fmt: skip


def test_5_03_second_derivative(capsys):
    run("l5_03")
    assert float(capsys.readouterr().out) == 12.0


def test_5_04_training_and_5_05_saving(tmp_path):
    made = run("l5_04", create_custom_dataset=lambda: rows(True), Net=Net)
    assert made.model is not None
    net = Net()
    model = Model(net, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"), nn.Momentum(net.trainable_params(), 0.1, 0.9))
    run("l5_05", model=model, epoch_num=16, dataset=rows(False))
    assert sorted(each for each in os.listdir(tmp_path) if each.endswith(".ckpt")) == ["resnet50-16_2.ckpt"]


def test_5_09_addition(capsys):
    run("l5_09")
    assert "".join(capsys.readouterr().out.split()) in ("[[2.2.]]", "[[22]]")


def test_5_10_data(tmp_path):
    dataset = run("l5_10").create_dataset1(cifar(tmp_path), True, batch_size=2)
    row = next(dataset.create_dict_iterator(output_numpy=True))
    assert row["image"].shape == (2, 3, 224, 224) and row["image"].dtype == np.float32 and row["label"].dtype == np.int32
    assert dataset.get_dataset_size() == 2


def test_5_11_to_5_18_resnet50_takes_a_step():
    np.random.seed(0)
    net = run("l5_11_to_5_17").resnet50()
    names = [each.name for each in net.get_parameters()]
    assert len(net.trainable_params()) == 161
    assert "layer1.0.conv1.weight" in names and "layer4.2.bn3.moving_mean" in names
    assert sum(each.asnumpy().size for each in net.trainable_params()) == 23528522
    loss_fn = run("l5_18").CrossEntropySmooth(smooth_factor=0.1, num_classes=10)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss_fn), nn.Momentum(net.trainable_params(), 0.01, 0.9)).set_train()
    image, label = Tensor(np.random.randn(2, 3, 32, 32).astype(np.float32)), Tensor(np.array([1, 2], np.int32))
    losses = [float(step(image, label).asnumpy()) for _ in range(3)]
    assert np.isfinite(losses).all() and losses[-1] < losses[0]


def test_5_19_rates_and_5_20_optimizer():
    rates = run("l5_19")
    lr = rates.warmup_cosine_annealing_lr(0.1, 4, 1, 3)
    assert lr.shape == (12,) and lr[3] == np.float32(0.1) and lr[-1] < lr[4]
    made = run("l5_20", config=CONFIG, step_size=4, net=Net(), warmup_cosine_annealing_lr=rates.warmup_cosine_annealing_lr)
    assert len(made.opt.parameters) == 2


def test_5_23_evaluation(tmp_path):
    net = Net()
    save_checkpoint(net, str(tmp_path / "net.ckpt"))
    stand = Net()
    made = run("l5_23", ResNet=lambda: stand, CrossEntropyLoss=lambda: nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"),
               Momentum=lambda: nn.Momentum(stand.trainable_params(), 0.1, 0.9), create_dataset=lambda: rows(False),
               args_opt=types.SimpleNamespace(checkpoint_path=str(tmp_path / "net.ckpt")))
    assert set(made.output) == {"accuracy", "loss", "precision", "recall", "f1_score"}
    np.testing.assert_array_equal(stand.dense.weight.asnumpy(), net.dense.weight.asnumpy())


def test_5_25_and_5_26_ranks(tmp_path, monkeypatch):
    monkeypatch.setenv("DEVICE_ID", "0")
    mode = modes.mode
    run("l5_25")
    modes.mode = mode
    assert run("l5_26", data_path=cifar(tmp_path)).data_set.get_dataset_size() == 4


def test_5_27_training_of_several_devices_on_one(capsys):
    made = run("l5_27", create_dataset=lambda epochs: rows(False), resnet50=lambda batch, classes: Net(),
               SoftmaxCrossEntropyExpand=lambda sparse: nn.SoftmaxCrossEntropyWithLogits(sparse=sparse, reduction="mean"))
    made.test_train_cifar(epoch_size=1)
    assert [line.split(",")[0] for line in capsys.readouterr().out.splitlines()] == ["epoch: 1 step: 1", "epoch: 1 step: 2"]


def test_5_28_mixed_precision():
    net = Net()
    made = run("l5_28", resnet=lambda class_num: net, config=CONFIG, group_params=net.trainable_params(), lr=0.1)
    before = net.dense.weight.asnumpy().copy()
    made.model.train(1, rows(False))
    assert (net.dense.weight.asnumpy() != before).any()


def test_5_29_thor():
    context.set_context(device_target="Ascend")
    made = run("l5_29", Net=Net, lr=Tensor([0.1] * 4), damping=np.ones(4, np.float32), config=CONFIG, split_indices=None, model=None,
               ConvertModelUtils=mindspore.ConvertModelUtils, loss=nn.SoftmaxCrossEntropyWithLogits(reduction="mean"),
               loss_scale=FixedLossScaleManager(CONFIG.loss_scale, drop_overflow_update=False), dataset=rows(True), cb=[])  # fmt: skip
    assert np.abs(made.net.dense.matrix_a.asnumpy()).sum() > 0 and int(made.opt.cov_step.asnumpy()[0]) == 4


def test_the_code_of_the_migration_guide(tmp_path, capsys):
    resnet = run("l5_11_to_5_17")
    made = run("seed001_net", **{name: getattr(resnet, name) for name in ("_weight_variable", "_conv1x1", "_conv3x3", "_bn_last")})
    layer = made._make_layer(None, made.ResidualBlock, 2, 4, 8, 2)
    assert layer(Tensor(np.ones((1, 4, 6, 6), np.float32))).shape == (1, 8, 3, 3)
    parts = {name: getattr(callback, name) for name in ("TimeMonitor", "LossMonitor", "CheckpointConfig", "ModelCheckpoint")}
    net = Net()
    loss = lambda sparse: nn.SoftmaxCrossEntropyWithLogits(sparse=sparse, reduction="mean")  # noqa: E731
    made = run("seed001", de=engine, dataset_path=cifar(tmp_path), device_num=1, net=net, lr=0.1, config=CONFIG, step_size=2, epoch_size=2,
               dataset=rows(False), SoftmaxCrossEntropyWithLogits=loss, **parts)
    assert made.ds.get_dataset_size() == 4
    assert "resnet-2_2.ckpt" in os.listdir(tmp_path / "ckpt")
    assert capsys.readouterr().out.count("loss is") == 4
    assert mindspore.__version__
