"""Pre-training of a small BERT, as official models of MindSpore 1.10 write it: cells of their own for attention, the loss and the training
step, gradients clipped one by one, AdamWeightDecay with a schedule of warm-up and decay, a dynamic loss scale.

    cairn ms bert_tiny.py

Each sequence is made of the words of one topic of eight: a masked word can be told from its neighbours, up to the topic's seven words (loss 1.95).
"""

import argparse

import mindspore as ms
import mindspore.common.dtype as mstype
import mindspore.dataset as ds
import mindspore.nn as nn
import mindspore.ops as ops
import numpy as np
from mindspore.common.initializer import TruncatedNormal, initializer
from mindspore.nn.learning_rate_schedule import LearningRateSchedule, PolynomialDecayLR, WarmUpLR
from mindspore.ops import composite as C
from mindspore.ops import functional as F
from mindspore.ops import operations as P

VOCAB, LENGTH, MASKED, HIDDEN, HEADS, LAYERS = 64, 16, 3, 32, 2, 2
MASK = 1

GRADIENT_CLIP_VALUE = 1.0
clip_grad = C.MultitypeFuncGraph("clip_grad")


@clip_grad.register("Number", "Tensor")
def _clip_grad(clip_value, grad):
    return nn.ClipByNorm()(grad, F.cast(F.tuple_to_array((clip_value,)), F.dtype(grad)))


grad_scale = C.MultitypeFuncGraph("grad_scale")


@grad_scale.register("Tensor", "Tensor")
def tensor_grad_scale(scale, grad):
    return grad * F.cast(P.Reciprocal()(scale), F.dtype(grad))


class SelfAttention(nn.Cell):
    def __init__(self):
        super().__init__()
        self.query = nn.Dense(HIDDEN, HIDDEN, weight_init=TruncatedNormal(0.02))
        self.key = nn.Dense(HIDDEN, HIDDEN, weight_init=TruncatedNormal(0.02))
        self.value = nn.Dense(HIDDEN, HIDDEN, weight_init=TruncatedNormal(0.02))
        self.output = nn.Dense(HIDDEN, HIDDEN, weight_init=TruncatedNormal(0.02))
        self.reshape, self.transpose = P.Reshape(), P.Transpose()
        self.scores, self.context = P.BatchMatMul(transpose_b=True), P.BatchMatMul()
        self.softmax = nn.Softmax()
        self.dropout = nn.Dropout(0.9)
        self.scale = float(HIDDEN // HEADS) ** -0.5

    def split(self, x):
        return self.transpose(self.reshape(x, (-1, LENGTH, HEADS, HIDDEN // HEADS)), (0, 2, 1, 3))

    def construct(self, x):
        probabilities = self.softmax(self.scores(self.split(self.query(x)), self.split(self.key(x))) * self.scale)
        mixed = self.context(self.dropout(probabilities), self.split(self.value(x)))
        return self.output(self.reshape(self.transpose(mixed, (0, 2, 1, 3)), (-1, LENGTH, HIDDEN)))


class EncoderLayer(nn.Cell):
    def __init__(self):
        super().__init__()
        self.attention = SelfAttention()
        self.norm1, self.norm2 = nn.LayerNorm((HIDDEN,)), nn.LayerNorm((HIDDEN,))
        self.intermediate = nn.Dense(HIDDEN, 4 * HIDDEN, activation="gelu", weight_init=TruncatedNormal(0.02))
        self.output = nn.Dense(4 * HIDDEN, HIDDEN, weight_init=TruncatedNormal(0.02))

    def construct(self, x):
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.output(self.intermediate(x)))


class BertModel(nn.Cell):
    def __init__(self):
        super().__init__()
        self.word = nn.Embedding(VOCAB, HIDDEN, embedding_table=TruncatedNormal(0.02))
        self.position = ms.Parameter(initializer(TruncatedNormal(0.02), [1, LENGTH, HIDDEN]), name="position")
        self.norm = nn.LayerNorm((HIDDEN,))
        self.layers = nn.CellList([EncoderLayer() for _ in range(LAYERS)])

    def construct(self, input_ids):
        x = self.norm(self.word(input_ids) + self.position)
        for layer in self.layers:
            x = layer(x)
        return x


class BertNetworkWithLoss(nn.Cell):
    """The loss of the masked tokens."""

    def __init__(self):
        super().__init__()
        self.bert = BertModel()
        self.bias = ms.Parameter(initializer("zeros", [VOCAB]), name="bias")
        self.gather, self.matmul, self.log_softmax = P.GatherD(), P.MatMul(transpose_b=True), nn.LogSoftmax()
        self.onehot, self.reduce_sum = P.OneHot(), P.ReduceSum()
        self.on_value, self.off_value = ms.Tensor(1.0, mstype.float32), ms.Tensor(0.0, mstype.float32)
        self.tile = P.Tile()

    def construct(self, input_ids, positions, labels):
        states = self.bert(input_ids)
        index = self.tile(F.expand_dims(positions, -1), (1, 1, HIDDEN))
        masked = F.reshape(self.gather(states, 1, index), (-1, HIDDEN))
        logits = self.matmul(masked, self.bert.word.embedding_table) + self.bias
        hot = self.onehot(F.reshape(labels, (-1,)), VOCAB, self.on_value, self.off_value)
        return -self.reduce_sum(self.log_softmax(logits) * hot) / F.scalar_to_tensor(float(MASKED * 16), mstype.float32)


class BertTrainOneStepCell(nn.TrainOneStepWithLossScaleCell):
    """A step that clips each gradient after its scale was taken away."""

    def __init__(self, network, optimizer, scale_update_cell):
        super().__init__(network, optimizer, scale_update_cell)
        self.hyper_map = C.HyperMap()

    def construct(self, input_ids, positions, labels):
        weights = self.weights
        loss = self.network(input_ids, positions, labels)
        scaling_sens = self.scale_sense
        status, scaling_sens = self.start_overflow_check(loss, scaling_sens)
        grads = self.grad(self.network, weights)(input_ids, positions, labels, F.cast(scaling_sens, mstype.float32))
        grads = self.hyper_map(F.partial(grad_scale, scaling_sens), grads)
        grads = self.hyper_map(F.partial(clip_grad, GRADIENT_CLIP_VALUE), grads)
        overflow = self.process_loss_scale(self.get_overflow_status(status, grads))
        if not overflow:
            self.optimizer(grads)
        return loss, overflow, scaling_sens


class BertLearningRate(LearningRateSchedule):
    def __init__(self, learning_rate, warmup_steps, decay_steps):
        super().__init__()
        self.warmup_lr = WarmUpLR(learning_rate, warmup_steps)
        self.decay_lr = PolynomialDecayLR(learning_rate, 0.0, decay_steps, 1.0)
        self.warmup_steps = ms.Tensor(np.array([warmup_steps]).astype(np.float32))
        self.greater, self.one, self.cast = P.Greater(), ms.Tensor(np.array([1.0]).astype(np.float32)), P.Cast()

    def construct(self, global_step):
        decay_lr = self.decay_lr(global_step)
        is_warmup = self.cast(self.greater(self.warmup_steps, global_step), mstype.float32)
        warmup_lr = self.warmup_lr(global_step)
        return (self.one - is_warmup) * decay_lr + is_warmup * warmup_lr


def sequences(count, seed):
    rng = np.random.RandomState(seed)
    topic = rng.randint(0, 8, (count, 1))
    tokens = 2 + topic * 7 + rng.randint(0, 7, (count, LENGTH))
    positions = np.stack([rng.choice(LENGTH, MASKED, replace=False) for _ in range(count)])
    labels = np.take_along_axis(tokens, positions, 1)
    np.put_along_axis(tokens, positions, MASK, 1)
    return tokens.astype(np.int32), positions.astype(np.int32), labels.astype(np.int32)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--mode", default="graph", choices=["graph", "pynative"])
    args = parser.parse_args()
    ms.set_seed(1)
    ms.set_context(mode=ms.GRAPH_MODE if args.mode == "graph" else ms.PYNATIVE_MODE, device_target="CPU")
    data = ds.NumpySlicesDataset(sequences(16 * args.steps, 1), ["input_ids", "positions", "labels"], shuffle=False).batch(16)
    network = BertNetworkWithLoss()
    schedule = BertLearningRate(5e-3, 10, args.steps + 1)
    decayed = [each for each in network.trainable_params() if "norm" not in each.name and "bias" not in each.name]
    others = [each for each in network.trainable_params() if "norm" in each.name or "bias" in each.name]
    groups = [{"params": decayed, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}, {"order_params": network.trainable_params()}]
    optimizer = nn.AdamWeightDecay(groups, schedule, eps=1e-6)
    update = nn.DynamicLossScaleUpdateCell(loss_scale_value=2**16, scale_factor=2, scale_window=20)
    step = BertTrainOneStepCell(network, optimizer, scale_update_cell=update)
    step.set_train()
    for number, (ids, positions, labels) in enumerate(data.create_tuple_iterator(num_epochs=1), 1):
        loss, overflow, scale = step(ids, positions, labels)
        if number % 10 == 0:
            print(f"step: {number}, loss: {float(loss.asnumpy()):.4f}, overflow: {bool(overflow.asnumpy())}, scale: {float(scale.asnumpy()):.0f}")
