"""Cells around a network: losses, steps, loss scales, clipping, amp."""

import numpy as np
import pytest
import mindspore as ms
import mindspore.nn as nn
from mindspore import Tensor, Parameter, ParameterTuple, context, Model, DynamicLossScaleManager, FixedLossScaleManager
from mindspore.nn import (
    TrainOneStepCell,
    WithLossCell,
    WithEvalCell,
    WithGradCell,
    TrainOneStepWithLossScaleCell,
    DynamicLossScaleUpdateCell,
    FixedLossScaleUpdateCell,
    ParameterUpdate,
    MicroBatchInterleaved,
)
from mindspore.nn.layer.timedistributed import TimeDistributed
from mindspore.ops import operations as P
from mindspore.ops import composite as C
from mindspore.ops import functional as F
from mindspore import amp

context.set_context(mode=context.GRAPH_MODE, device_target="CPU")


class Net(nn.Cell):

    def __init__(self, i=4, o=2):
        super().__init__()
        self.weight = Parameter(Tensor(np.ones([o, i], np.float32)), name="weight")
        self.matmul = P.MatMul(transpose_b=True)

    def construct(self, x):
        return self.matmul(x, self.weight)


X, Y = (Tensor(np.ones([8, 4], np.float32)), Tensor(np.zeros([8, 2], np.float32)))


def test_with_loss_and_eval():
    net, loss = (Net(), nn.MSELoss())
    assert WithLossCell(net, loss)(X, Y).asnumpy() == 16
    assert WithLossCell(net, loss).backbone_network is net
    out = WithEvalCell(net, loss)(X, Y)
    assert len(out) == 3 and out[0].asnumpy() == 16 and (out[1].shape == (8, 2))
    with pytest.raises(TypeError):
        WithLossCell(net, loss)(X)
    with pytest.raises(TypeError):
        WithEvalCell(net, loss, add_cast_fp32=1)


def test_train_one_step():
    net = Net()
    step = TrainOneStepCell(WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.1))
    step.set_train()
    assert step(X, Y).asnumpy() == 16
    np.testing.assert_allclose(net.weight.asnumpy(), np.full((2, 4), 1 - 0.1 * 4), 1e-05)
    assert [p.name for p in step.get_parameters()][:1] == ["weight"] and step.sens == 1.0


def test_with_grad_cell():
    net = Net()
    grads = WithGradCell(net, nn.MSELoss())(X, Y)
    np.testing.assert_allclose(grads[0].asnumpy(), np.full((2, 4), 4.0))
    with pytest.raises((TypeError, ValueError)):
        WithGradCell(3)


def test_loss_scale_cells():
    net = Net()
    opt = nn.Momentum(net.trainable_params(), 0.1, 0.0)
    step = TrainOneStepWithLossScaleCell(WithLossCell(net, nn.MSELoss()), opt, scale_sense=DynamicLossScaleUpdateCell(2**12, 2, 2))
    step.set_train()
    for expect in (4096, 8192, 8192):
        loss, overflow, scale = step(X, Y)
        assert not bool(overflow.asnumpy())
    assert float(scale.asnumpy()) in (8192.0, 4096.0)
    bad = Tensor(np.full([8, 4], np.inf, np.float32))
    before = net.weight.asnumpy().copy()
    loss, overflow, scale = step(bad, Y)
    assert bool(overflow.asnumpy())
    np.testing.assert_array_equal(net.weight.asnumpy(), before)
    step.set_sense_scale(Tensor(np.float32(2.0))) if isinstance(step.scale_sense, Parameter) else None
    step = TrainOneStepWithLossScaleCell(WithLossCell(net, nn.MSELoss()), opt, scale_sense=Tensor(np.float32(1024)))
    assert step.scale_sense.asnumpy() == 1024
    with pytest.raises(TypeError):
        TrainOneStepWithLossScaleCell(net, opt, scale_sense=3)
    with pytest.raises(ValueError):
        TrainOneStepWithLossScaleCell(net, opt, scale_sense=Tensor(np.ones((2, 2), np.float32)))
    cell = FixedLossScaleUpdateCell(128)
    assert cell.get_loss_scale() == 128 and (not cell(Tensor(np.float32(128)), Tensor(False)) in (None,))


def test_managers():
    m = DynamicLossScaleManager(init_loss_scale=1024, scale_factor=2, scale_window=3)
    assert m.get_loss_scale() == 1024 and isinstance(m.get_update_cell(), nn.Cell) and (m.get_drop_overflow_update() is True)
    m.update_loss_scale(True)
    assert m.get_loss_scale() == 512
    for _ in range(3):
        m.update_loss_scale(False)
    assert m.get_loss_scale() == 1024
    f = FixedLossScaleManager(8.0, drop_overflow_update=False)
    assert f.get_update_cell() is None and f.get_loss_scale() == 8.0
    for make, error in (
        (lambda: DynamicLossScaleManager(0), ValueError),
        (lambda: DynamicLossScaleManager(scale_window=0), ValueError),
        (lambda: DynamicLossScaleManager("1"), TypeError),
        (lambda: DynamicLossScaleManager(scale_factor=-1), ValueError),
        (lambda: FixedLossScaleManager(0), ValueError),
        (lambda: m.update_loss_scale(3), (TypeError, ValueError)),
    ):
        with pytest.raises(error):
            make()


def test_own_step_with_clip():

    class Step(TrainOneStepCell):

        def __init__(self, net, opt, sens=1.0):
            super().__init__(net, opt, sens)
            self.hyper = C.HyperMap()

        def construct(self, x, y):
            loss = self.network(x, y)
            grads = self.grad(self.network, self.weights)(x, y, F.fill(loss.dtype, loss.shape, self.sens))
            grads = self.hyper(F.partial(clip, -1.0, 1.0), grads)
            grads = self.grad_reducer(grads)
            return F.depend(loss, self.optimizer(grads))

    clip = C.MultitypeFuncGraph("clip")

    @clip.register("Number", "Number", "Tensor")
    def _clip(low, high, g):
        return C.clip_by_value(g, F.cast(F.tuple_to_array((low,)), F.dtype(g)), F.cast(F.tuple_to_array((high,)), F.dtype(g)))

    net = Net()
    step = Step(WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.1))
    step(X, Y)
    np.testing.assert_allclose(net.weight.asnumpy(), np.full((2, 4), 0.9), 1e-05)


def test_parameter_update_and_time_distributed():
    net = Net()
    ParameterUpdate(net.weight)(Tensor(np.full([2, 4], 3, np.float32)))
    assert (net.weight.asnumpy() == 3).all()
    td = TimeDistributed(nn.Dense(3, 5), time_axis=1, reshape_with_axis=0)
    assert td(Tensor(np.ones([2, 4, 3], np.float32))).shape == (2, 4, 5)
    with pytest.raises(TypeError):
        ParameterUpdate(3)


def test_micro_batch():
    net = Net()
    cell = MicroBatchInterleaved(WithLossCell(net, nn.MSELoss()), 2)
    assert cell(X, Y).asnumpy() == 16


def test_clip_by_global_norm():

    class Clip(nn.Cell):

        def construct(self, x):
            return C.clip_by_global_norm(x, 1.0)

    a = np.array([[3.0, 4.0]], np.float32)
    out = Clip()((Tensor(a), Tensor(a * 0)))
    np.testing.assert_allclose(out[0].asnumpy(), a / 5, 1e-05)
    out = nn.ClipByNorm()(Tensor(a), Tensor(2.5, ms.float32))
    np.testing.assert_allclose(out.asnumpy(), a / 2, 1e-05)
    for bad, error in (
        (lambda: C.clip_by_value(Tensor(a)), ValueError),
        (lambda: C.clip_by_value(3, 1, 2), TypeError),
        (lambda: C.clip_by_global_norm((Tensor(a),), clip_norm="x"), TypeError),
        (lambda: C.clip_by_global_norm((Tensor(a),), clip_norm=-1.0), ValueError),
    ):
        with pytest.raises(error):
            bad()


@pytest.mark.parametrize("level", ["O0", "O2", "O3"])
def test_build_train_network(level):
    net = Net()
    step = amp.build_train_network(
        net,
        nn.Momentum(net.trainable_params(), 0.01, 0.9),
        nn.MSELoss(),
        level=level,
        loss_scale_manager=FixedLossScaleManager(drop_overflow_update=False),
    )
    step.set_train()
    loss = step(X, Y)
    assert np.isfinite((loss[0] if isinstance(loss, tuple) else loss).asnumpy()).all()


def test_amp_refusals():
    net = Net()
    opt = nn.Momentum(net.trainable_params(), 0.01, 0.9)
    for call, error in (
        (lambda: amp.build_train_network(net, opt, level="O9"), ValueError),
        (lambda: amp.build_train_network(3, opt), (TypeError, ValueError)),
        (lambda: amp.build_train_network(net, opt, cast_model_type=ms.float16, whatever=1), ValueError),
        (lambda: Model(net, nn.MSELoss(), opt, amp_level="O5"), ValueError),
    ):
        with pytest.raises(error):
            call()


def test_amp_functions():
    assert bool(amp.all_finite((X, Y)).asnumpy()) and (not bool(amp.all_finite((Tensor([np.inf], ms.float32),)).asnumpy()))
    s = amp.StaticLossScaler(4)
    assert s.scale(X).asnumpy().max() == 4 and s.unscale(X).asnumpy().max() == 0.25
    d = amp.DynamicLossScaler(scale_value=16, scale_factor=2, scale_window=1)
    d.adjust(Tensor(False))
    assert float(d.scale_value.asnumpy()) == 8
    d.adjust(Tensor(True))
    assert float(d.scale_value.asnumpy()) == 16
    net = amp.auto_mixed_precision(Net(), "O2")
    assert net(X).shape == (8, 2)


def test_get_next_and_distributed_reducer():
    reducer = nn.DistributedGradReducer(Net().trainable_params(), mean=True, degree=1)
    out = reducer((X,))
    np.testing.assert_array_equal(out[0].asnumpy(), X.asnumpy())
    with pytest.raises((TypeError, ValueError)):
        nn.DistributedGradReducer(Net().trainable_params(), mean=True, degree=0)
    with pytest.raises((TypeError, ValueError)):
        TrainOneStepCell(Net(), 3)


class ConvNet(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.last = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dense(4, 2)

    def construct(self, x):
        return self.last(self.norm(self.conv(x)).mean((2, 3)))


@pytest.mark.parametrize("mode", [context.GRAPH_MODE, context.PYNATIVE_MODE])
def test_level_o1_computes_layers_of_weights_alone_in_halves(mode):
    context.set_context(mode=mode)
    x = Tensor(np.random.randn(2, 3, 8, 8).astype(np.float32))
    net = ConvNet()
    plain = net(x).asnumpy()
    names = [each.name for each in net.get_parameters()]
    lowered = amp.auto_mixed_precision(net, "O1")
    assert lowered.conv(x).dtype == ms.float32 and lowered.conv.get_flags()["fp16"] and not lowered.norm.get_flags().get("fp16")
    assert [each.name for each in lowered.get_parameters()] == names
    assert np.allclose(lowered(x).asnumpy(), plain, atol=1e-2) and not np.array_equal(lowered(x).asnumpy(), plain)
    context.set_context(mode=context.GRAPH_MODE)


def test_layers_of_a_list_compute_in_halves():
    white = amp.get_white_list()
    assert nn.Conv2d in white and nn.BatchNorm2d in amp.get_black_list()
    net = amp.custom_mixed_precision(ConvNet(), white_list=[nn.Conv2d])
    assert net.conv.get_flags()["fp16"] and not net.last.get_flags().get("fp16")
    net = amp.custom_mixed_precision(ConvNet(), black_list=[nn.BatchNorm2d, nn.Conv2d])
    assert net.last.get_flags()["fp16"] and not net.conv.get_flags().get("fp16")
    with pytest.raises(ValueError):
        amp.custom_mixed_precision(ConvNet())


def test_inputs_of_doubles_are_lowered_too():
    net = ConvNet()
    step = amp.build_train_network(net, nn.Momentum(net.trainable_params(), 0.1, 0.9), nn.MSELoss(), level="O3",
                                   loss_scale_manager=FixedLossScaleManager(drop_overflow_update=False))
    loss = step(Tensor(np.random.randn(2, 3, 8, 8)), Tensor(np.zeros((2, 2), np.float32)))
    assert np.isfinite(loss.asnumpy())
