"""THOR: the second-order optimizer, against NumPy, and in a Model that computes inverses now and then."""

import cairn.ms  # noqa: F401
import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, context, nn
from mindspore import dataset as ds
from mindspore.train.train_thor import ConvertModelUtils, ConvertNetUtils

DAMPING, RATE, BATCH = 0.04, 0.1, 8


@pytest.fixture(params=[context.GRAPH_MODE, context.PYNATIVE_MODE], autouse=True)
def both_modes(request):
    context.set_context(mode=request.param, device_target="CPU")
    yield
    context.set_context(mode=context.PYNATIVE_MODE, device_target="CPU")


def drawn(*shape, seed=0):
    return np.random.RandomState(seed).randn(*shape).astype(np.float32)


def step_of(net, loss, inputs, label, **more):
    """One step of THOR without momentum; returns what it subtracted from each weight, over the rate."""
    optimizer = nn.thor(net, Tensor([RATE, RATE]), Tensor([DAMPING, DAMPING]), 0.0, batch_size=BATCH, frequency=2, **more)
    before = [each.asnumpy().copy() for each in optimizer.parameters]
    train = nn.TrainOneStepCell(nn.WithLossCell(net, loss), optimizer)
    train.set_train()
    train(Tensor(inputs), Tensor(label))
    return [(old - new.asnumpy()) / RATE for old, new in zip(before, optimizer.parameters)], optimizer


def inverse(matrix, damping):
    return np.linalg.inv(matrix.astype(np.float64) + damping * np.eye(len(matrix)))


@pytest.mark.parametrize("target", ["CPU", "GPU"])
def test_a_dense_layer_divides_by_the_curvature_of_inputs_and_gradients(target):
    context.set_context(device_target=target)
    x, label = drawn(BATCH, 5), drawn(BATCH, 3, seed=1)
    net = nn.Dense(5, 3, weight_init=Tensor(drawn(3, 5, seed=2)))
    dy = 2 * (x @ net.weight.asnumpy().T - label) / label.size
    rows = BATCH if target == "CPU" else None
    (made, bias), _ = step_of(net, nn.MSELoss(), x, label)
    a = x.T @ x / (rows or 5)
    g = dy.T @ dy / (rows or 3) * BATCH**2
    root = np.sqrt(DAMPING)
    np.testing.assert_allclose(made, inverse(g, root) @ (dy.T @ x) @ inverse(a, root), rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(bias, dy.sum(0), rtol=1e-4, atol=1e-6)


def test_factors_are_inverted_in_blocks_of_128():
    x, label = drawn(BATCH, 150), drawn(BATCH, 2, seed=1)
    net = nn.Dense(150, 2, weight_init=Tensor(drawn(2, 150, seed=2) * 0.1), has_bias=False)
    dy = 2 * (x @ net.weight.asnumpy().T - label) / label.size
    (made,), _ = step_of(net, nn.MSELoss(), x, label)
    root, a, whole = np.sqrt(DAMPING), x.T @ x / BATCH, np.zeros((150, 150))
    for part in (slice(0, 128), slice(128, 150)):
        whole[part, part] = inverse(a[part, part], root)
    np.testing.assert_allclose(made, inverse(dy.T @ dy * BATCH, root) @ (dy.T @ x) @ whole, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("target", ["CPU", "GPU"])
@pytest.mark.parametrize("pad_mode", ["same", "valid"])
def test_a_convolution_does_so_over_windows(target, pad_mode):
    context.set_context(device_target=target)
    net = nn.Conv2d(2, 3, 3, 2, pad_mode, weight_init=Tensor(drawn(3, 2, 3, 3, seed=2)))
    x = drawn(BATCH, 2, 7, 7)
    label = drawn(*net(Tensor(x)).shape, seed=1)
    dy = (2 * (net(Tensor(x)).asnumpy() - label) / label.size).reshape(BATCH, 3, -1)
    (made,), _ = step_of(net, nn.MSELoss(), x, label)
    around = 1 if pad_mode == "same" else 0
    padded = np.pad(x, [(0, 0), (0, 0), (around, around), (around, around)])
    size = label.shape[-1]
    columns = np.stack([padded[:, :, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3].reshape(BATCH, -1) for i in range(size) for j in range(size)], -1)
    places = size * size

    def factor(rows):
        if target == "GPU":
            return rows.mean(0) @ rows.mean(0).T / places
        return np.einsum("nap,nbp->ab", rows, rows) / (BATCH * places)

    root = np.sqrt(DAMPING * (1 if target == "GPU" else BATCH) / places)
    gradient = np.einsum("ngp,nap->ga", dy, columns)
    expected = inverse(factor(dy) * BATCH**2, root) @ gradient @ inverse(factor(columns), root) / places
    np.testing.assert_allclose(made.reshape(3, -1), expected, rtol=2e-3, atol=1e-5)


def test_rows_of_a_table_count_how_often_they_were_asked_for():
    ids = np.array([0, 1, 1, 3, 3, 3, 0, 1], np.int32)
    net = nn.Embedding(5, 4, embedding_table=Tensor(drawn(5, 4)))
    label = drawn(BATCH, 4, seed=1)
    dy = 2 * (net.embedding_table.asnumpy()[ids] - label) / label.size
    (made,), _ = step_of(net, nn.MSELoss(), ids, label)
    hot, root = np.eye(5)[ids], np.sqrt(DAMPING)
    rows = hot.T @ dy / (hot.sum(0) / BATCH + root)[:, None]
    np.testing.assert_allclose(made, rows @ inverse(dy.T @ dy * BATCH, root), rtol=1e-3, atol=1e-5)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.flatten = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Flatten()
        self.dense, self.relu = nn.Dense(4 * 64, 10, activation="relu"), nn.ReLU()
        self.last = nn.Dense(10, 3)

    def construct(self, x):
        return self.last(self.dense(self.flatten(self.relu(self.norm(self.conv(x))))))


def rows():
    label = np.random.RandomState(0).randint(0, 3, 32).astype(np.int32)
    images = drawn(32, 1, 8, 8) + label.astype(np.float32)[:, None, None, None]
    return ds.NumpySlicesDataset((images, label), ["x", "y"], shuffle=False).batch(BATCH)


def trained(epochs, level="O0", sink=True, **more):
    ms.set_seed(1)
    net, loss = Net(), nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    optimizer = nn.thor(net, Tensor(np.full(40, 0.02, np.float32)), Tensor(np.full(40, 0.1, np.float32)), 0.9, 1e-4, batch_size=BATCH, frequency=3, **more)
    model = ms.Model(net, loss, optimizer, metrics={"acc"})
    scale = ms.FixedLossScaleManager(more.get("loss_scale", 1.0), drop_overflow_update=False)
    model = ConvertModelUtils().convert_to_thor_model(
        model=model, network=net, loss_fn=loss, optimizer=optimizer, loss_scale_manager=scale, metrics={"acc"}, amp_level=level, keep_batchnorm_fp32=False)
    seen = []

    class Look(ms.train.callback.Callback):
        def step_end(self, run_context):
            seen.append(optimizer.inverse_a_0.asnumpy().copy())

    model.train(epochs, rows(), callbacks=[Look()], dataset_sink_mode=sink)
    return net, optimizer, model, seen


@pytest.mark.parametrize("level", ["O0", "O2"])
def test_a_model_learns_and_renews_the_inverses_every_third_step(level):
    _, _, model, seen = trained(6, level, sink=False, loss_scale=128.0, enable_clip_grad=level == "O2")
    changes = [not np.array_equal(a, b) for a, b in zip(seen, seen[1:])]
    assert changes == [i % 3 == 2 for i in range(len(changes))]
    assert model.eval(rows())["acc"] > 0.8


def test_a_run_gives_the_same_bits_again_and_its_net_loads_into_a_plain_one(tmp_path):
    net, optimizer, _, _ = trained(3)
    again, _, _, _ = trained(3)
    assert all(np.array_equal(a.asnumpy(), b.asnumpy()) for a, b in zip(net.get_parameters(), again.get_parameters()))
    assert int(optimizer.cov_step.asnumpy()[0]) == 12
    names = [each.name for each in net.get_parameters()]
    assert {"conv.matrix_a", "conv.matrix_g", "dense.matrix_a", "last.matrix_g"} <= set(names)
    ms.save_checkpoint(net, str(tmp_path / "thor.ckpt"))
    plain = Net()
    assert ms.load_param_into_net(plain, ms.load_checkpoint(str(tmp_path / "thor.ckpt"))) == []
    plain.set_train(False)
    net.set_train(False)
    assert np.array_equal(plain(Tensor(drawn(2, 1, 8, 8))).asnumpy(), net(Tensor(drawn(2, 1, 8, 8))).asnumpy())


def test_other_optimizers_keep_their_model_and_wrong_arguments_are_named():
    net = Net()
    model = ms.Model(net, nn.MSELoss(), nn.Momentum(net.trainable_params(), 0.1, 0.9))
    assert ConvertModelUtils.convert_to_thor_model(model, net, optimizer=model._optimizer) is model
    assert type(ConvertNetUtils().convert_to_thor_net(Net()).dense).__name__ == "DenseThor"
    with pytest.raises(ValueError, match="frequency"):
        nn.thor(Net(), Tensor([0.1]), Tensor([0.1]), 0.9, frequency=1)
    with pytest.raises(TypeError, match="momentum"):
        nn.thor(Net(), Tensor([0.1]), Tensor([0.1]), "0.9")
