"""What callbacks keep of a training: backups that it goes on from, and the loss around its way."""

import os

import mindspore.dataset as ds
import numpy as np
import pytest
from mindspore import Model, Tensor, nn
from mindspore.train import summary_pb2
from mindspore.train.callback import BackupAndRestore, Callback, SummaryCollector, SummaryLandscape

X = np.random.RandomState(0).normal(size=(12, 3)).astype(np.float32)
Y = np.int32(X.sum(1) > 0)


def rows():
    return ds.NumpySlicesDataset((X, Y), ["x", "y"], shuffle=False).batch(4)


def made():
    net = nn.Dense(3, 2, weight_init=Tensor(np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)))
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    return net, Model(net, loss, nn.Momentum(net.trainable_params(), 0.1, 0.9), metrics={"Loss": nn.Loss()})


class Watch(Callback):
    def __init__(self, stop=None):
        self.epochs, self.stop = [], stop

    def epoch_end(self, run_context):
        self.epochs.append(run_context.original_args().cur_epoch_num)
        if self.epochs[-1] == self.stop:
            raise KeyboardInterrupt


@pytest.mark.parametrize("frequency", ["epoch", 3])
def test_a_training_goes_on_after_the_epoch_of_its_backup(frequency, tmp_path):
    net, model = made()
    model.train(4, rows())
    other, model = made()
    with pytest.raises(KeyboardInterrupt):
        model.train(4, rows(), callbacks=[BackupAndRestore(str(tmp_path), frequency), Watch(stop=2)])
    assert os.path.exists(tmp_path / "backup.ckpt")
    other, model = made()
    watch = Watch()
    model.train(4, rows(), callbacks=[BackupAndRestore(str(tmp_path), frequency), watch])
    assert watch.epochs[-1] == 4 and not os.path.exists(tmp_path / "backup.ckpt")
    if frequency == "epoch":
        assert watch.epochs == [3, 4]
        np.testing.assert_array_equal(other.weight.asnumpy(), net.weight.asnumpy())


def values(folder):
    """The values of the event files, by their tags."""
    found = {}
    for name in os.listdir(folder):
        if "summary" in name:
            data, place = (folder / name).read_bytes(), 0
            while place < len(data):
                length = int.from_bytes(data[place : place + 8], "little")
                event = summary_pb2.Event.FromString(data[place + 12 : place + 12 + length])
                found.update({each.tag: each for each in event.summary.value} if event.HasField("summary") else {})
                place += 16 + length
    return found


def test_the_loss_around_the_way_of_a_training(tmp_path):
    net, model = made()
    asked = {"landscape_size": 4, "unit": "epoch", "create_landscape": {"train": True, "result": True}, "num_samples": 12, "intervals": [[1, 2, 3, 4]]}
    model.train(4, rows(), callbacks=[SummaryCollector(str(tmp_path), collect_specified_data={"collect_landscape": asked})])
    end = float(model.eval(rows())["Loss"])

    def again():
        net, model = made()
        return model, net, rows(), {"Loss": nn.Loss()}

    landscape = SummaryLandscape(str(tmp_path))
    landscape.gen_landscapes_with_multi_process(again, collect_landscape={"landscape_size": 5}, device_ids=[0])
    found = values(tmp_path)
    train, result = found["landscape_[1, 4]"].loss_landscape, found["landscape_[4]"].loss_landscape
    assert train.landscape.z.shape == result.landscape.z.shape == (5, 5)
    assert (train.metadata.decomposition, train.metadata.unit, train.metadata.step_per_epoch) == ("PCA", "epoch", 3)
    assert train.loss_path.intervals == [1, 2, 3, 4] and train.loss_path.points.x.shape == (4,)
    assert train.loss_path.points.x[-1] == train.loss_path.points.y[-1] == 0
    np.testing.assert_allclose(result.landscape.z[2, 2], end, rtol=1e-5)  # whose middle is the result itself
    landscape.clean_ckpt()
    assert not os.path.exists(tmp_path / "ckpt_dir")


@pytest.mark.parametrize("told, error", [({"landscape_size": 2}, ValueError), ({"unit": "day"}, ValueError), ({"intervals": [[1, "2", 3]]}, TypeError),
                                         ({"create_landscape": {"train": 1}}, TypeError), ({"colour": 1}, ValueError)])  # fmt: skip
def test_landscapes_that_cannot_be_are_refused(told, error, tmp_path):
    with pytest.raises(error):
        SummaryLandscape(str(tmp_path)).gen_landscapes_with_multi_process(None, collect_landscape=told, device_ids=[0])
    with pytest.raises(FileNotFoundError, match="SummaryCollector"):
        SummaryLandscape(str(tmp_path)).gen_landscapes_with_multi_process(None, device_ids=[0])
