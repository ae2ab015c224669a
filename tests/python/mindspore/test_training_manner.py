"""Tests of training in the manner in which people write them for MindSpore: small cells, arrays of ones, errors by class."""

import os

import mindspore.dataset as ds
import mindspore.nn as nn
import numpy as np
import pytest
from cairn.ms import modes
from mindspore import Model, Tensor, amp
from mindspore.common import dtype as mstype
from mindspore.nn import TrainOneStepCell, WithLossCell
from mindspore.train.callback import CheckpointConfig, LossMonitor, ModelCheckpoint, RunContext, _InternalCallbackParam
from mindspore.train.loss_scale_manager import DynamicLossScaleManager, FixedLossScaleManager
from mindspore.train.serialization import load_checkpoint, save_checkpoint


class Net(nn.Cell):
    def __init__(self, in_channels, out_channels):
        super(Net, self).__init__()
        self.dense = nn.Dense(in_channels, out_channels)
        self.loss = nn.MSELoss()

    def construct(self, input_x, label):
        return self.loss(self.dense(input_x), label)


class NetNoLoss(nn.Cell):
    def __init__(self, in_channels, out_channels):
        super(NetNoLoss, self).__init__()
        self.dense = nn.Dense(in_channels, out_channels)

    def construct(self, input_x):
        return self.dense(input_x)


def momentum(net):
    return nn.Momentum(net.trainable_params(), learning_rate=0.1, momentum=0.9)


def dataset():
    return ds.NumpySlicesDataset((np.ones((4, 16), np.float32), np.zeros((4, 16), np.float32)), ["data", "label"]).batch(2)


@pytest.fixture(params=["graph", "pynative"])
def mode(request):
    modes.mode = modes.GRAPH if request.param == "graph" else modes.PYNATIVE


@pytest.mark.parametrize("level", ["O0", "O1", "O2", "O3"])
def test_amp_levels(mode, level):
    inputs, label = Tensor(np.ones([16, 16]).astype(np.float32)), Tensor(np.zeros([16, 16]).astype(np.float32))
    net = Net(16, 16)
    amp.build_train_network(net, momentum(net), level=level)(inputs, label)
    net = NetNoLoss(16, 16)
    made = amp.build_train_network(net, momentum(net), nn.MSELoss(), level=level)(inputs, label)
    assert isinstance(made, tuple) == (level == "O2")


def test_amp_errors():
    net = NetNoLoss(16, 16)
    for wrong in ({"level": "O9"}, {"level": "O2", "nothing": 1}):
        with pytest.raises(ValueError):
            amp.build_train_network(net, momentum(net), **wrong)


def test_checkpoint_save_steps(tmp_path):
    config = CheckpointConfig(save_checkpoint_steps=16, save_checkpoint_seconds=0, keep_checkpoint_max=5, keep_checkpoint_per_n_minutes=0)
    net, cb_params = NetNoLoss(16, 16), _InternalCallbackParam()
    cb_params.train_network = TrainOneStepCell(WithLossCell(net, nn.MSELoss()), momentum(net))
    cb_params.epoch_num, cb_params.cur_epoch_num, cb_params.cur_step_num, cb_params.batch_num = 10, 5, 160, 32
    run_context = RunContext(cb_params)
    ckpt_cb = ModelCheckpoint(directory=str(tmp_path), config=config)
    ckpt_cb.begin(run_context)
    ckpt_cb.step_end(run_context)
    ckpt_cb.end(run_context)
    assert sorted(os.listdir(tmp_path)) == ["CKP-5_32.ckpt", "CKP-graph.meta"]
    assert set(load_checkpoint(str(tmp_path / "CKP-5_32.ckpt"))) >= {"dense.weight", "dense.bias", "moments.dense.weight", "learning_rate", "momentum"}


def test_checkpoint_save_seconds(tmp_path):
    config = CheckpointConfig(save_checkpoint_steps=0, save_checkpoint_seconds=100, keep_checkpoint_max=0, keep_checkpoint_per_n_minutes=1)
    cb_params = _InternalCallbackParam(train_network=NetNoLoss(2, 2), cur_epoch_num=4, cur_step_num=128, batch_num=32)
    ckpt_cb = ModelCheckpoint(directory=str(tmp_path), config=config)
    ckpt_cb.begin(RunContext(cb_params))
    ckpt_cb.step_end(RunContext(cb_params))
    assert os.listdir(tmp_path) == ["CKP-graph.meta"]


def test_save_checkpoint_for_list(tmp_path):
    parameters = [{"name": "param_test", "data": Tensor(np.random.randint(0, 255, [1, 3, 22, 22]), dtype=mstype.float32)},
                  {"name": "param", "data": Tensor(np.random.randint(0, 255, [12, 22]), dtype=mstype.float32)}]
    save_checkpoint(parameters, str(tmp_path / "parameters.ckpt"))
    par_dict = load_checkpoint(str(tmp_path / "parameters.ckpt"))
    assert len(par_dict) == 2 and par_dict["param"].name == "param"
    assert par_dict["param"].data.asnumpy().shape == (12, 22) and par_dict["param_test"].data.dtype == mstype.float32
    save_checkpoint(parameters, str(tmp_path / "new_ckpt"), append_dict={"a": 1})
    assert os.path.exists(tmp_path / "new_ckpt.ckpt")


def test_loss_scale_managers():
    manager = DynamicLossScaleManager(init_loss_scale=4, scale_window=2)
    manager.update_loss_scale(True)
    assert manager.get_loss_scale() == 2
    manager.update_loss_scale(False)
    manager.update_loss_scale(False)
    assert manager.get_loss_scale() == 4
    assert isinstance(FixedLossScaleManager().get_update_cell(), nn.FixedLossScaleUpdateCell)
    assert FixedLossScaleManager(2, False).get_update_cell() is None
    for wrong in ({"init_loss_scale": 0.5}, {"scale_window": -1}, {"scale_factor": 0}):
        with pytest.raises(ValueError):
            DynamicLossScaleManager(**wrong)
    with pytest.raises(ValueError):
        FixedLossScaleManager(-1)


def test_model_with_an_eval_network(mode, capsys):
    net = NetNoLoss(16, 16)
    model = Model(net, nn.MSELoss(), momentum(net), metrics={"mse", "mae", "loss"}, eval_network=nn.WithEvalCell(net, nn.MSELoss()), eval_indexes=[0, 1, 2])
    result = model.eval(dataset())
    assert set(result) == {"mse", "mae", "loss"}
    np.testing.assert_allclose(result["mse"], 16 * result["loss"], rtol=1e-5)  # the metric divides by rows, the loss by elements
    assert model.predict(Tensor(np.ones([16, 16]).astype(np.float32))).shape == (16, 16)
    model.build(dataset(), dataset())
    model.train(1, dataset(), callbacks=[LossMonitor()])
    assert len(capsys.readouterr().out.splitlines()) == 2
    model.fit(2, dataset(), dataset())


def test_model_errors():
    for wrong in ({"metrics": {"acc"}}, {"loss_fn": nn.MSELoss(), "metrics": {"acc"}, "eval_network": NetNoLoss(2, 2), "eval_indexes": [0, 1]}):
        with pytest.raises(ValueError):
            Model(NetNoLoss(2, 2), **wrong)
    with pytest.raises((TypeError, ValueError, KeyError)):
        Model(NetNoLoss(2, 2), nn.MSELoss(), metrics="accc")
