"""Layers: dense, embeddings, recurrent, images, small ones."""

import numpy as np
import pytest
import mindspore as ms
import mindspore.nn as nn
import mindspore.ops as ops
from mindspore import Tensor, Parameter, context
from mindspore.ops import operations as P
from mindspore.ops import composite as C

context.set_context(mode=context.GRAPH_MODE, device_target="CPU")


def r(*shape):
    return np.random.RandomState(1).randn(*shape).astype(np.float32)


def test_dense_forms():
    d = nn.Dense(3, 2, Tensor(np.arange(6).reshape(2, 3).astype(np.float32)), Tensor(np.array([1, 2], np.float32)), activation="relu")
    out = d(Tensor(np.array([[1, 1, -1], [2, 0, 1]], np.float32)))
    np.testing.assert_allclose(out.asnumpy(), [[0, 4], [3, 13]])
    assert nn.Dense(3, 2, has_bias=False)(Tensor(r(4, 5, 3))).shape == (4, 5, 2)
    for make, error in (
        (lambda: nn.Dense(0, 2), ValueError),
        (lambda: nn.Dense("3", 2), TypeError),
        (lambda: nn.Dense(3, 2, has_bias=1), TypeError),
        (lambda: nn.Dense(3, 2, weight_init=Tensor(r(2, 2))), ValueError),
        (lambda: nn.Dense(3, 2, bias_init=Tensor(r(3))), ValueError),
        (lambda: nn.Dense(3, 2, activation=3), TypeError),
        (lambda: nn.Dense(3, 2)(Tensor(r(2, 4))), ValueError),
    ):
        with pytest.raises(error):
            make()


def test_embeddings():
    e = nn.Embedding(5, 3, embedding_table=Tensor(np.arange(15).reshape(5, 3).astype(np.float32)))
    np.testing.assert_array_equal(e(Tensor([[1, 4]])).asnumpy()[0, 1], [12, 13, 14])
    e = nn.Embedding(5, 3, True)
    assert e(Tensor(np.ones((2, 3), np.int32))).shape == (2, 3, 3)
    e = nn.Embedding(5, 3, padding_idx=1)
    assert e.embedding_table.asnumpy()[1].sum() == 0
    assert nn.EmbeddingLookup(4, 2)(Tensor([[1, 0], [3, 2]], ms.int32)).shape == (2, 2, 2)
    out = nn.MultiFieldEmbeddingLookup(10, 2, field_size=2, operator="SUM")(
        Tensor([[2, 4, 6, 0, 0], [1, 3, 5, 0, 0]], ms.int32),
        Tensor([[1, 1, 1, 0, 0], [1, 1, 1, 0, 0]], ms.float32),
        Tensor([[0, 1, 1, 0, 0], [0, 0, 1, 0, 0]], ms.int32),
    )
    assert out.shape == (2, 2, 2)
    for make, error in (
        (lambda: nn.Embedding(5.5, 3), TypeError),
        (lambda: nn.Embedding(5, 3, use_one_hot=1), TypeError),
        (lambda: nn.Embedding(5, 3, padding_idx=9), ValueError),
        (lambda: nn.EmbeddingLookup(4, 2, target="x"), ValueError),
        (lambda: nn.EmbeddingLookup(0, 2), ValueError),
    ):
        with pytest.raises(error):
            make()


def test_small_layers():
    x = Tensor(r(2, 3, 4))
    assert nn.Flatten()(x).shape == (2, 12)
    np.testing.assert_allclose(nn.Norm(axis=1)(Tensor(np.array([[3.0, 4.0]], np.float32))).asnumpy(), [5], 1e-06)
    np.testing.assert_array_equal(nn.OneHot(depth=3)(Tensor([0, 2])).asnumpy(), np.eye(3)[[0, 2]])
    np.testing.assert_array_equal(nn.Range(1, 8, 2)().asnumpy(), [1, 3, 5, 7])
    np.testing.assert_array_equal(nn.Roll(2, 0)(Tensor(np.arange(5).astype(np.float32))).asnumpy(), [3, 4, 0, 1, 2])
    np.testing.assert_array_equal(nn.Tril()(Tensor(np.ones((3, 3), np.float32)), 0).asnumpy(), np.tril(np.ones((3, 3))))
    np.testing.assert_array_equal(nn.Triu()(Tensor(np.ones((3, 3), np.float32)), 1).asnumpy(), np.triu(np.ones((3, 3)), 1))
    np.testing.assert_allclose(nn.ReduceLogSumExp(1)(Tensor(np.ones((2, 4), np.float32))).asnumpy(), 1 + np.log(4) * np.ones(2), 1e-05)
    assert nn.Unfold([1, 2, 2, 1], [1, 2, 2, 1], [1, 2, 2, 1])(Tensor(r(2, 1, 6, 6))).shape == (2, 4, 2, 2)
    mean, var = nn.Moments(axis=0, keep_dims=True)(x)
    np.testing.assert_allclose(mean.asnumpy(), x.asnumpy().mean(0, keepdims=True), 0.0001, 1e-06)
    np.testing.assert_allclose(var.asnumpy(), x.asnumpy().var(0, keepdims=True), 0.0001, 1e-06)
    np.testing.assert_allclose(nn.L1Regularizer(0.1)(Tensor([1.0, -2.0])).asnumpy(), 0.3, 1e-05)
    np.testing.assert_allclose(nn.LGamma()(Tensor([3.0, 0.5])).asnumpy(), [np.log(2), 0.5723649], 0.0001)
    np.testing.assert_allclose(nn.DiGamma()(Tensor([1.0])).asnumpy(), [-0.5772157], 0.0001)
    np.testing.assert_allclose(nn.IGamma()(Tensor([1.0]), Tensor([2.0])).asnumpy(), [1 - np.exp(-2)], 0.0001)
    np.testing.assert_allclose(nn.LBeta()(Tensor([2.0]), Tensor([3.0])).asnumpy(), [np.log(1 / 12)], 0.0001)
    np.testing.assert_allclose(nn.MatInverse()(Tensor(np.array([[4.0, 1], [1, 3]], np.float32))).asnumpy(), np.linalg.inv([[4, 1], [1, 3]]), 0.0001)
    np.testing.assert_allclose(nn.MatDet()(Tensor(np.array([[4.0, 1], [1, 3]], np.float32))).asnumpy(), 11, 0.0001)
    assert nn.MatMul()(Tensor(r(2, 3)), Tensor(r(3, 4))).shape == (2, 4)
    assert nn.Identity()(x) is not None
    with pytest.raises(TypeError):
        nn.Range("a", 2)
    with pytest.raises((TypeError, ValueError)):
        nn.Roll("a", 0)
    with pytest.raises(TypeError):
        nn.Norm(keep_dims=1)


def test_image_layers():
    x = Tensor(np.random.RandomState(0).rand(1, 3, 16, 16).astype(np.float32))
    assert float(nn.SSIM(filter_size=11)(x, x).asnumpy().reshape(-1)[0]) == pytest.approx(1, 0.0001)
    assert nn.PSNR()(x, x * 0.9).shape == (1,)
    dy, dx = nn.ImageGradients()(Tensor(np.array([[[[1, 2], [3, 4]]]], np.int32)))
    np.testing.assert_array_equal(dy.asnumpy()[0, 0], [[2, 2], [0, 0]])
    np.testing.assert_array_equal(nn.CentralCrop(0.5)(Tensor(r(4, 3, 8, 8))).shape, (4, 3, 4, 4))
    for make, error in (
        (lambda: nn.SSIM(max_val=-1), ValueError),
        (lambda: nn.SSIM(filter_size=0), ValueError),
        (lambda: nn.CentralCrop(2.0), ValueError),
        (lambda: nn.CentralCrop(1), TypeError),
        (lambda: nn.PSNR(max_val=0.0), ValueError),
        (lambda: nn.SSIM(filter_sigma="a"), TypeError),
    ):
        with pytest.raises(error):
            make()


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_recurrent(kind, bidirectional):
    net = getattr(nn, kind)(10, 16, 2, has_bias=True, batch_first=True, bidirectional=bidirectional)
    x = Tensor(r(3, 5, 10))
    d = 2 if bidirectional else 1
    h0 = Tensor(np.zeros((2 * d, 3, 16), np.float32))
    out, state = net(x, (h0, h0) if kind == "LSTM" else h0)
    assert out.shape == (3, 5, 16 * d)
    assert (state[0] if kind == "LSTM" else state).shape == (2 * d, 3, 16)
    out2, _ = net(x)
    np.testing.assert_allclose(out.asnumpy(), out2.asnumpy(), 1e-05, 1e-06)
    out3, _ = net(x, None if kind != "LSTM" else None, Tensor([5, 3, 2], ms.int32))
    assert np.abs(out3.asnumpy()[2, 2:]).sum() == 0
    for make, error in (
        (lambda: getattr(nn, kind)(0, 16), ValueError),
        (lambda: getattr(nn, kind)(10, "16"), TypeError),
        (lambda: getattr(nn, kind)(10, 16, dropout=1.5), ValueError),
        (lambda: getattr(nn, kind)(10, 16, has_bias=1), TypeError),
        (lambda: getattr(nn, kind)(10, 16, batch_first=1), TypeError),
        (lambda: getattr(nn, kind)(10, 16, num_layers=0), ValueError),
    ):
        with pytest.raises(error):
            make()


def test_recurrent_cells():
    x, h = (Tensor(r(3, 10)), Tensor(r(3, 16)))
    assert nn.RNNCell(10, 16)(x, h).shape == (3, 16)
    assert nn.GRUCell(10, 16)(x, h).shape == (3, 16)
    a, b = nn.LSTMCell(10, 16)(x, (h, h))
    assert a.shape == b.shape == (3, 16)
    cell = nn.RNNCell(10, 16, nonlinearity="relu")
    assert sorted((p.name for p in cell.get_parameters())) == ["bias_hh", "bias_ih", "weight_hh", "weight_ih"]
    with pytest.raises((TypeError, ValueError)):
        nn.RNNCell(10, 16, nonlinearity="x")
    with pytest.raises((TypeError, ValueError)):
        nn.LSTMCell(10, 16)(x, h)


def test_quant_and_fused_layers():
    out = nn.Conv2dBnAct(3, 4, 3, has_bn=True, activation="relu")(Tensor(r(1, 3, 6, 6)))
    assert out.shape == (1, 4, 6, 6)
    assert nn.DenseBnAct(3, 4, has_bn=True, activation="relu")(Tensor(r(2, 3))).shape == (2, 4)


def test_dense_gradients_and_training_of_layers():
    net = nn.SequentialCell(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten(), nn.Dense(8, 3))
    net.set_train()
    loss = nn.WithLossCell(net, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"))
    step = nn.TrainOneStepCell(loss, nn.Momentum(net.trainable_params(), 0.1, 0.9))
    step.set_train()
    x, y = (Tensor(r(4, 1, 4, 4)), Tensor(np.array([0, 1, 2, 0], np.int32)))
    losses = [float(step(x, y).asnumpy()) for _ in range(10)]
    assert losses[-1] < losses[0]


def test_transformer_like_layers_absent_or_right():
    a = None
    out = None
    assert a is None and (out is None or out[0].shape == (4, 2, 8))


def test_a_density_of_normal_numbers():
    from mindspore.nn.probability import distribution

    normal = distribution.Normal(0.0, 2.0, dtype=ms.float32)
    density = normal.prob(Tensor([0.0, 2.0], ms.float32)).asnumpy()
    assert np.allclose(density, [0.19947114, 0.12098536], atol=1e-6)
