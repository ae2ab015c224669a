"""Networks in the manner of the model zoo learn in both modes."""

import math
import numpy as np
import pytest
import mindspore as ms
import mindspore.nn as nn
import mindspore.common.dtype as mstype
from mindspore import Tensor, Parameter, context
from mindspore.common.initializer import initializer, Normal, XavierUniform, TruncatedNormal
from mindspore.ops import operations as P, functional as F, composite as C

grad_scale = C.MultitypeFuncGraph("grad_scale")
reciprocal = P.Reciprocal()


@grad_scale.register("Tensor", "Tensor")
def tensor_grad_scale(scale, grad):
    return grad * F.cast(reciprocal(scale), F.dtype(grad))


clip_grad = C.MultitypeFuncGraph("clip_grad")


@clip_grad.register("Number", "Number", "Tensor")
def _clip_grad(clip_type, clip_value, grad):
    if clip_type not in (0, 1):
        return grad
    dt = F.dtype(grad)
    if clip_type == 0:
        new_grad = C.clip_by_value(
            grad, F.cast(F.tuple_to_array((-clip_value,)), dt), F.cast(F.tuple_to_array((clip_value,)), dt)
        )
    else:
        new_grad = nn.ClipByNorm()(grad, F.cast(F.tuple_to_array((clip_value,)), dt))
    return new_grad


class BertAttention(nn.Cell):
    def __init__(self, hidden=8, heads=2, dropout=0.1):
        super(BertAttention, self).__init__()
        self.heads, self.size = heads, hidden // heads
        weight = TruncatedNormal(0.02)
        self.q, self.k, self.v = (nn.Dense(hidden, hidden, weight_init=weight) for _ in range(3))
        self.reshape, self.transpose = P.Reshape(), P.Transpose()
        self.matmul_trans_b, self.matmul = P.BatchMatMul(transpose_b=True), P.BatchMatMul()
        self.multiply = P.Mul()
        self.score = 1.0 / math.sqrt(float(self.size))
        self.multiply_data = Tensor([-10000.0], dtype=mstype.float32)
        self.softmax = nn.Softmax()
        self.dropout = nn.Dropout(1 - dropout)
        self.expand_dims, self.sub, self.add, self.cast = P.ExpandDims(), P.Sub(), P.TensorAdd(), P.Cast()
        self.get_dtype = P.DType()
        self.ln = nn.LayerNorm([hidden])

    def construct(self, x, mask):
        b, s, h = x.shape
        flat = self.reshape(x, (-1, h))
        shape = (b, s, self.heads, self.size)
        q = self.transpose(self.reshape(self.q(flat), shape), (0, 2, 1, 3))
        k = self.transpose(self.reshape(self.k(flat), shape), (0, 2, 1, 3))
        v = self.transpose(self.reshape(self.v(flat), shape), (0, 2, 1, 3))
        scores = self.multiply(self.matmul_trans_b(q, k), self.score)
        m = self.expand_dims(mask, 1)
        m = self.sub(self.cast(F.tuple_to_array((1.0,)), self.get_dtype(scores)), self.cast(m, self.get_dtype(scores)))
        scores = self.add(self.multiply(m, self.multiply_data), scores)
        out = self.matmul(self.dropout(self.softmax(scores)), v)
        out = self.reshape(self.transpose(out, (0, 2, 1, 3)), (b, s, h))
        return self.ln(out + x)


class PreTrain(nn.Cell):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.pos = Parameter(initializer(Normal(0.02), [6, 8], mstype.float32), name="pos")
        self.att = BertAttention()
        self.bias = Parameter(initializer("zeros", 20), name="bias")
        self.matmul = P.MatMul(transpose_b=True)
        self.onehot = P.OneHot()
        self.on, self.off = Tensor(1.0, mstype.float32), Tensor(0.0, mstype.float32)
        self.log_softmax = nn.LogSoftmax(axis=-1)
        self.reduce_sum, self.reduce_mean = P.ReduceSum(), P.ReduceMean()

    def construct(self, ids, mask, label):
        x = self.embed(ids) + self.pos
        x = self.att(x, mask)
        logits = self.matmul(F.reshape(x, (-1, 8)), self.embed.embedding_table) + self.bias
        lp = self.log_softmax(logits)
        hot = self.onehot(F.reshape(label, (-1,)), 20, self.on, self.off)
        per = -self.reduce_sum(lp * hot, (-1,))
        return self.reduce_mean(per, ())


class BertStep(nn.Cell):
    def __init__(self, network, optimizer, scale_update_cell=None):
        super().__init__(auto_prefix=False)
        self.network = network
        self.weights = optimizer.parameters
        self.optimizer = optimizer
        self.grad = C.GradOperation(get_by_list=True, sens_param=True)
        self.hyper_map = C.HyperMap()
        self.cast = P.Cast()
        self.loss_scale = Parameter(Tensor(scale_update_cell.get_loss_scale(), dtype=mstype.float32), name="loss_scale")
        self.loss_scaling_manager = scale_update_cell
        self.addn = P.AddN()
        self.base = Tensor(1, mstype.float32)
        self.less_equal = P.LessEqual()
        self.reduce_sum = P.ReduceSum(keep_dims=False)

    def construct(self, ids, mask, label, sens=None):
        weights = self.weights
        loss = self.network(ids, mask, label)
        scaling_sens = self.loss_scale if sens is None else sens
        grads = self.grad(self.network, weights)(ids, mask, label, self.cast(scaling_sens, mstype.float32))
        grads = self.hyper_map(F.partial(grad_scale, scaling_sens), grads)
        grads = self.hyper_map(F.partial(clip_grad, 1, 1.0), grads)
        cond = self.less_equal(self.base, self.base * 0)

        if sens is None:
            cond = self.loss_scaling_manager(self.loss_scale, cond)
        succ = self.optimizer(grads)
        return F.depend(loss, succ), cond, scaling_sens


@pytest.mark.parametrize("mode", [context.GRAPH_MODE, context.PYNATIVE_MODE])
def test_bert(mode):
    context.set_context(mode=mode)
    ms.set_seed(0)
    net = PreTrain()
    opt = nn.Lamb(net.trainable_params(), learning_rate=nn.PolynomialDecayLR(0.05, 0.001, 10, 1.0))
    step = BertStep(net, opt, nn.DynamicLossScaleUpdateCell(2**10, 2, 1000))
    step.set_train()
    rng = np.random.RandomState(0)
    ids, mask = Tensor(rng.randint(0, 20, (2, 6)), ms.int32), Tensor(np.ones((2, 6, 6)), ms.float32)
    losses = [float(step(ids, mask, ids)[0]) for _ in range(4)]
    assert losses[-1] < losses[0]


def _conv3x3(i, o, stride=1):
    return nn.Conv2d(i, o, 3, stride, pad_mode="same", weight_init="he_normal")


class Block(nn.Cell):
    expansion = 2

    def __init__(self, i, o, stride=1):
        super().__init__()
        mid = o // self.expansion
        self.conv1 = nn.Conv2d(i, mid, 1)
        self.bn1 = nn.BatchNorm2d(
            mid, eps=1e-4, momentum=0.9, gamma_init=1, beta_init=0, moving_mean_init=0, moving_var_init=1
        )
        self.conv2 = _conv3x3(mid, o, stride)
        self.bn2 = nn.BatchNorm2d(o, gamma_init=0)
        self.relu = nn.ReLU()
        self.down_sample = False
        if stride != 1 or i != o:
            self.down_sample = True
        self.down_sample_layer = None
        if self.down_sample:
            self.down_sample_layer = nn.SequentialCell([nn.Conv2d(i, o, 1, stride), nn.BatchNorm2d(o)])
        self.add = P.Add()

    def construct(self, x):
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.down_sample:
            identity = self.down_sample_layer(identity)
        return self.relu(self.add(out, identity))


class ResNet(nn.Cell):
    def __init__(self, blocks=(1, 1), channels=(8, 16), classes=4):
        super().__init__()
        self.conv1 = _conv3x3(3, 8, 2)
        self.bn1 = nn.BatchNorm2d(8)
        self.pool = nn.MaxPool2d(3, 2, "same")
        layers, i = [], 8
        for n, o in zip(blocks, channels):
            layers.append(self._make(n, i, o, 1 if i == o else 2))
            i = o
        self.layers = nn.CellList(layers)
        self.mean = P.ReduceMean(keep_dims=True)
        self.flatten = nn.Flatten()
        self.end_point = nn.Dense(i, classes)

    def _make(self, n, i, o, stride):
        return nn.SequentialCell([Block(i, o, stride)] + [Block(o, o) for _ in range(1, n)])

    def construct(self, x):
        x = self.pool(F.relu(self.bn1(self.conv1(x))))
        for layer in self.layers:
            x = layer(x)
        return self.end_point(self.flatten(self.mean(x, (2, 3))))


@pytest.mark.parametrize("mode", [context.GRAPH_MODE, context.PYNATIVE_MODE])
def test_resnet(mode):
    context.set_context(mode=mode)
    net = ResNet()
    decayed = list(
        filter(
            lambda p: "beta" not in p.name and "gamma" not in p.name and "bias" not in p.name, net.trainable_params()
        )
    )
    no = [p for p in net.trainable_params() if all(p is not q for q in decayed)]
    opt = nn.Momentum(
        [{"params": decayed, "weight_decay": 1e-4}, {"params": no}, {"order_params": net.trainable_params()}],
        0.05,
        0.9,
        loss_scale=128,
    )
    step = nn.TrainOneStepCell(
        nn.WithLossCell(net, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")), opt, sens=128
    )
    step.set_train()
    rng = np.random.RandomState(0)
    x, y = Tensor(rng.randn(4, 3, 16, 16).astype(np.float32)), Tensor([0, 1, 2, 3], ms.int32)
    losses = [float(step(x, y)) for _ in range(5)]
    assert losses[-1] < losses[0]


class GCNLayer(nn.Cell):
    def __init__(self, i, o, keep=1.0):
        super().__init__()
        self.fc = nn.Dense(i, o, weight_init=XavierUniform(), has_bias=False, activation=nn.ReLU())
        self.drop = nn.Dropout(keep_prob=keep)
        self.matmul = P.MatMul()

    def construct(self, adj, x):
        return self.matmul(adj, self.fc(self.drop(x)))


class Attention(nn.Cell):
    """GAT head"""

    def __init__(self, i, o):
        super().__init__()
        self.w = nn.Dense(i, o, has_bias=False)
        self.a1, self.a2 = nn.Dense(o, 1), nn.Dense(o, 1)
        self.leaky = nn.LeakyReLU()
        self.softmax = nn.Softmax()

    def construct(self, x, bias):
        h = self.w(x)
        logits = self.a1(h) + P.Transpose()(self.a2(h), (1, 0))
        return P.MatMul()(self.softmax(self.leaky(logits) + bias), h)


def test_graph_nets():
    for mode in (0, 1):
        context.set_context(mode=mode)
        adj = Tensor(np.eye(5, dtype=np.float32))
        x = Tensor(np.random.RandomState(0).randn(5, 3).astype(np.float32))
        assert GCNLayer(3, 2)(adj, x).shape == (5, 2)
        assert Attention(3, 2)(x, adj * 0).shape == (5, 2)


class DeepFM(nn.Cell):
    def __init__(self, vocab=20, dim=4, fields=3):
        super().__init__()
        self.w = Parameter(initializer(Normal(0.01), [vocab, 1], mstype.float32), name="FM_W")
        self.v = Parameter(initializer(Normal(0.01), [vocab, dim], mstype.float32), name="FM_V")
        self.mlp = nn.SequentialCell(nn.Dense(fields * dim, 8, activation="relu"), nn.Dense(8, 1))
        self.gather, self.mul, self.sum, self.square = P.Gather(), P.Mul(), P.ReduceSum(), P.Square()
        self.concat, self.cast = P.Concat(1), P.Cast()

    def construct(self, ids, vals):
        mask = P.Reshape()(vals, (-1, 3, 1))
        lin = self.sum(self.mul(self.gather(self.w, ids, 0), mask), 1)
        vx = self.mul(self.gather(self.v, ids, 0), mask)
        fm = 0.5 * self.sum(self.square(self.sum(vx, 1)) - self.sum(self.square(vx), 1), 1)
        fm = P.Reshape()(fm, (-1, 1))
        return lin + fm + self.mlp(P.Reshape()(vx, (-1, 12)))


def test_deepfm_and_wide():
    context.set_context(mode=context.GRAPH_MODE)
    net = DeepFM()
    loss = P.SigmoidCrossEntropyWithLogits()

    class L(nn.Cell):
        def __init__(self):
            super().__init__(auto_prefix=False)
            self.net, self.loss, self.mean = net, loss, P.ReduceMean()
            self.l2 = nn.L1Regularizer(0.0) if False else P.L2Loss()

        def construct(self, i, v, y):
            out = self.net(i, v)
            return self.mean(self.loss(out, y)) + 0.01 * self.l2(self.net.v)

    step = nn.TrainOneStepCell(L(), nn.Adam(net.trainable_params(), 0.05, eps=5e-8, loss_scale=1024.0), sens=1024.0)
    i = Tensor(np.random.RandomState(0).randint(0, 20, (4, 3)), ms.int32)
    v = Tensor(np.ones((4, 3), np.float32))
    y = Tensor(np.array([[1.0], [0], [1], [0]], np.float32))
    losses = [float(step(i, v, y)) for _ in range(6)]
    assert losses[-1] < losses[0]


class DQN(nn.Cell):
    def __init__(self):
        super().__init__()
        self.l1, self.l2, self.relu = nn.Dense(4, 16), nn.Dense(16, 2), nn.ReLU()

    def construct(self, x):
        return self.l2(self.relu(self.l1(x)))


def test_dqn():
    context.set_context(mode=context.PYNATIVE_MODE)
    policy, target = DQN(), DQN()

    class WithLoss(nn.Cell):
        def __init__(self, net, loss_fn):
            super().__init__(auto_prefix=False)
            self.net, self.loss_fn, self.gather = net, loss_fn, P.GatherD()

        def construct(self, s, a, y):
            return self.loss_fn(self.gather(self.net(s), 1, a), y)

    step = nn.TrainOneStepCell(WithLoss(policy, nn.MSELoss()), nn.RMSProp(policy.trainable_params(), 0.01))
    s, a = Tensor(np.random.RandomState(0).randn(8, 4).astype(np.float32)), Tensor(np.zeros((8, 1)), ms.int32)
    q = target(s).max(axis=1) if True else None
    y = (q * 0.9 + 1).expand_dims(1)
    l0 = float(step(s, a, y))
    for _ in range(20):
        l1 = float(step(s, a, y))
    assert l1 < l0
    for p, t in zip(policy.trainable_params(), target.trainable_params()):
        t.set_data(p)
    assert np.allclose(policy(s).asnumpy(), target(s).asnumpy())


def test_gan():
    context.set_context(mode=context.GRAPH_MODE)
    g = nn.SequentialCell(nn.Dense(4, 8), nn.BatchNorm1d(8), nn.LeakyReLU(0.2), nn.Dense(8, 2), nn.Tanh())
    d = nn.SequentialCell(nn.Dense(2, 8), nn.LeakyReLU(0.2), nn.Dense(8, 1), nn.Sigmoid())
    for p in g.get_parameters():
        p.name = "g." + p.name
    for p in d.get_parameters():
        p.name = "d." + p.name
    bce = nn.BCELoss(reduction="mean")

    class GL(nn.Cell):
        def __init__(self):
            super().__init__(auto_prefix=False)
            self.g, self.d, self.bce, self.ones = g, d, bce, P.OnesLike()

        def construct(self, z):
            o = self.d(self.g(z))
            return self.bce(o, self.ones(o))

    class DL(nn.Cell):
        def __init__(self):
            super().__init__(auto_prefix=False)
            self.g, self.d, self.bce = g, d, bce

        def construct(self, x, z):
            r, f = self.d(x), self.d(F.stop_gradient(self.g(z)))
            return self.bce(r, F.ones_like(r)) + self.bce(f, F.zeros_like(f))

    gs = nn.TrainOneStepCell(GL(), nn.Adam(g.trainable_params(), 2e-3, beta1=0.5))
    dstep = nn.TrainOneStepCell(DL(), nn.Adam(d.trainable_params(), 2e-3, beta1=0.5))
    rng = np.random.RandomState(0)
    for _ in range(3):
        z, x = Tensor(rng.randn(8, 4).astype(np.float32)), Tensor(rng.randn(8, 2).astype(np.float32))
        a, b = dstep(x, z), gs(z)
    assert np.isfinite(float(a)) and np.isfinite(float(b))


class YoloBlock(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = nn.SequentialCell(
            [
                nn.Conv2d(3, 8, 3, 2, pad_mode="pad", padding=1),
                nn.BatchNorm2d(8, momentum=0.9, eps=1e-5),
                nn.LeakyReLU(0.1),
            ]
        )
        self.head = nn.Conv2d(8, 3 * 7, 1, has_bias=True)
        self.anchors = Tensor([(10, 13), (16, 30), (33, 23)], ms.float32)
        self.concat = P.Concat(axis=-1)
        self.tile, self.sigmoid, self.exp = P.Tile(), P.Sigmoid(), P.Exp()

    def construct(self, x, input_shape):
        p = self.head(self.conv(x))
        n, _, gh, gw = p.shape
        p = P.Reshape()(p, (n, 3, 7, gh, gw))
        p = P.Transpose()(p, (0, 3, 4, 1, 2))
        rx = range(gw)
        gx = P.Cast()(F.tuple_to_array(rx), ms.float32)
        gy = P.Cast()(F.tuple_to_array(range(gh)), ms.float32)
        gx = self.tile(P.Reshape()(gx, (1, 1, -1, 1, 1)), (1, gh, 1, 1, 1))
        gy = self.tile(P.Reshape()(gy, (1, -1, 1, 1, 1)), (1, 1, gw, 1, 1))
        grid = self.concat((gx, gy))
        xy = (self.sigmoid(p[:, :, :, :, :2]) + grid) / P.Cast()(F.tuple_to_array((gw, gh)), ms.float32)
        wh = self.exp(p[:, :, :, :, 2:4]) * self.anchors / input_shape
        return self.concat((xy, wh)), self.sigmoid(p[:, :, :, :, 4:5])


@pytest.mark.parametrize("mode", [0, 1])
def test_yolo(mode):
    context.set_context(mode=mode)
    b, c = YoloBlock()(Tensor(np.random.rand(1, 3, 16, 16).astype(np.float32)), Tensor([16, 16], ms.float32))
    assert b.shape == (1, 8, 8, 3, 4) and c.shape == (1, 8, 8, 3, 1)


class Sentiment(nn.Cell):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(30, 6, embedding_table=Tensor(np.random.rand(30, 6).astype(np.float32)))
        self.embedding.embedding_table.requires_grad = False
        self.trans, self.perm = P.Transpose(), (1, 0, 2)
        self.encoder = nn.LSTM(6, 5, num_layers=2, has_bias=True, bidirectional=True, dropout=0.0)
        self.concat, self.squeeze = P.Concat(1), P.Squeeze(axis=0)
        self.decoder = nn.Dense(20, 2)
        self.h, self.c = (Tensor(np.zeros((4, 3, 5)).astype(np.float32)) for _ in range(2))

    def construct(self, x):
        e = self.trans(self.embedding(x), self.perm)
        out, _ = self.encoder(e, (self.h, self.c))
        return self.decoder(self.concat((out[0], out[-1])))


@pytest.mark.parametrize("mode", [0, 1])
def test_lstm(mode):
    context.set_context(mode=mode)
    net = Sentiment()
    step = nn.TrainOneStepCell(
        nn.WithLossCell(net, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")),
        nn.Momentum(net.trainable_params(), 0.1, 0.9),
    )
    x, y = Tensor(np.random.RandomState(0).randint(0, 30, (3, 7)), ms.int32), Tensor([0, 1, 0], ms.int32)
    losses = [float(step(x, y)) for _ in range(6)]
    assert losses[-1] < losses[0]
