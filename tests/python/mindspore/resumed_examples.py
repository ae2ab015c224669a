"""Trains what an example trains for eight steps, once in one go and once from a checkpoint of the fourth: resumed_examples.py NAME MODE.
Prints the digest of parameters, optimizer's state and losses of each run."""

import hashlib
import runpy
import sys
from pathlib import Path

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn
from mindspore.train import Model
from mindspore.train.callback import Callback, CheckpointConfig, ModelCheckpoint

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "mindspore"
STEPS, BATCH = 4, 8  # of each half; of a step


class Losses(Callback):
    def __init__(self):
        self.seen = []

    def step_end(self, run_context):
        made = run_context.original_args().net_outputs
        self.seen.append(np.array((made[0] if isinstance(made, tuple) else made).asnumpy()))


class ByModel:
    """A network, loss and optimizer that Model.train brings together, whose checkpoints ModelCheckpoint writes."""

    def __init__(self, net, loss, optimizer, half, **more):
        self.net, self.optimizer, self.half, self.losses = net, optimizer, half, Losses()
        self.model = Model(net, loss, optimizer, **more)

    def train(self, number, folder=None):
        callbacks = [self.losses]
        if folder:
            callbacks.append(ModelCheckpoint("half", folder, CheckpointConfig(save_checkpoint_steps=STEPS)))
        self.model.train(1, self.half(number), callbacks=callbacks, dataset_sink_mode=False)

    def resume(self, folder):
        kept = ms.load_checkpoint(str(next(Path(folder).glob("half*.ckpt"))))
        ms.load_param_into_net(self.net, kept)
        ms.load_param_into_net(self.optimizer, kept)

    def parameters(self):
        return [*self.net.get_parameters(), *self.optimizer.get_parameters()]


class BySteps:
    """A step of the script's own, a Cell or a function of the batches of a half; `cells` hold what it changes."""

    def __init__(self, step, cells, batches):
        self.step, self.cells, self.batches, self.losses = step, cells, batches, Losses()

    def train(self, number, folder=None):
        for batch in self.batches[number * STEPS : (number + 1) * STEPS]:
            made = self.step(*map(Tensor, batch))
            self.losses.seen += [np.array(each.asnumpy()) for each in (made if isinstance(made, tuple) else (made,))]
        if folder:
            for place, each in enumerate(self.cells):
                ms.save_checkpoint(each, f"{folder}/half_{place}.ckpt")

    def resume(self, folder):
        for place, each in enumerate(self.cells):
            ms.load_param_into_net(each, ms.load_checkpoint(f"{folder}/half_{place}.ckpt"))

    def parameters(self):
        return [parameter for each in self.cells for parameter in each.get_parameters()]


def halves(*columns):
    """half(number): a dataset of that half of the rows, in their order."""
    import mindspore.dataset as ds

    names, size = [f"column_{i}" for i in range(len(columns))], STEPS * BATCH
    return lambda number: ds.NumpySlicesDataset(tuple(each[number * size : (number + 1) * size] for each in columns), names,
                                                shuffle=False).batch(BATCH)  # fmt: skip


def images(*shape):
    rng = np.random.RandomState(5)
    return rng.rand(2 * STEPS * BATCH, *shape).astype(np.float32), rng.randint(0, 10, 2 * STEPS * BATCH).astype(np.int32)


def lenet(of):
    net = of["LeNet5"]()
    loss = nn.SoftmaxCrossEntropyWithLogits(is_grad=False, sparse=True, reduction="mean")
    return ByModel(net, loss, nn.Momentum(net.trainable_params(), 0.02, 0.9), halves(*images(1, 32, 32)))


def resnet(of):
    net = of["ResNet"]([1, 1, 1], [16, 32, 64], 10)
    optimizer = nn.Momentum(net.trainable_params(), Tensor(of["get_lr"](0.1, 4, 2 * STEPS)), 0.9, loss_scale=1024)
    scale = ms.train.loss_scale_manager.FixedLossScaleManager(1024, drop_overflow_update=False)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    return ByModel(net, loss, optimizer, halves(*images(3, 32, 32)), loss_scale_manager=scale)


def mobilenet_v2(of):
    net = of["MobileNetV2"]()
    rates = nn.cosine_decay_lr(0.0, 0.1, 2 * STEPS, STEPS, 2)
    optimizer = nn.SGD(net.trainable_params(), rates, momentum=0.9, weight_decay=4e-5, nesterov=True)
    return ByModel(net, nn.CrossEntropyLoss(label_smoothing=0.1), optimizer, halves(*images(3, 32, 32)))


def lstm_sentiment(of):
    table = Tensor(np.random.normal(0, 0.5, (of["WORDS"], 16)).astype(np.float32))
    net = of["SentimentNet"](of["WORDS"], 16, 24, 1, True, 2, table, BATCH)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    return ByModel(net, loss, nn.Adam(net.trainable_params(), learning_rate=0.01), halves(*of["sentences"](2 * STEPS * BATCH, 1)))


def bert_tiny(of):
    net = of["BertNetworkWithLoss"]()
    optimizer = nn.AdamWeightDecay(net.trainable_params(), of["BertLearningRate"](5e-3, 3, 2 * STEPS + 1), eps=1e-6)
    update = nn.DynamicLossScaleUpdateCell(loss_scale_value=2**16, scale_factor=2, scale_window=3)
    step = of["BertTrainOneStepCell"](net, optimizer, scale_update_cell=update)
    step.set_train()
    rows = of["sequences"](2 * STEPS * 16, 1)
    return BySteps(step, [step], [[each[i : i + 16] for each in rows] for i in range(0, 2 * STEPS * 16, 16)])


def gan(of):
    net_g, net_d = of["Generator"](), of["Discriminator"]()
    net_g.update_parameters_name("generator.")
    net_d.update_parameters_name("discriminator.")
    optimizers = [nn.Adam(net.trainable_params(), learning_rate=2e-3, beta1=0.5) for net in (net_g, net_d)]
    sides = [of[name](net_g, net_d, nn.BCEWithLogitsLoss()) for name in ("GenWithLossCell", "DisWithLossCell")]
    step = of["TrainOneStepCell"](*sides, *optimizers)
    step.set_train()
    rng = np.random.RandomState(0)
    batches = [[rng.normal(size=(64, size)).astype(np.float32) for size in (2, 4)] for _ in range(2 * STEPS)]
    return BySteps(step, [net_g, net_d, *optimizers], batches)


def policy_gradient(of):
    policy = of["Policy"]()
    optimizer = nn.Adam(policy.trainable_params(), learning_rate=0.02)
    on, off = Tensor(1.0, ms.float32), Tensor(0.0, ms.float32)

    def forward(states, actions, advantage):
        chosen = (ms.ops.log_softmax(policy(states), -1) * ms.ops.one_hot(actions, 2, on, off)).sum(-1)
        return -(chosen * advantage).mean()

    gradients = ms.ops.value_and_grad(forward, None, optimizer.parameters)

    def step(states, actions, advantage):
        loss, made = gradients(states, actions, advantage)
        optimizer(made)
        return loss

    rng = np.random.RandomState(0)
    batches = [[rng.randn(64, 4).astype(np.float32), rng.randint(0, 2, 64).astype(np.int32), rng.randn(64).astype(np.float32)] for _ in range(2 * STEPS)]
    return BySteps(step, [policy, optimizer], batches)


def digest(training):
    made = hashlib.sha256()
    for each in sorted(training.parameters(), key=lambda parameter: parameter.name):
        made.update(each.name.encode() + each.asnumpy().tobytes())
    for each in training.losses.seen[-STEPS:]:
        made.update(each.tobytes())
    return made.hexdigest()


def made(name, seed):
    ms.set_seed(seed)
    return globals()[name](runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="example"))


def main(name, mode):
    ms.context.set_context(mode=ms.context.GRAPH_MODE if mode == "graph" else ms.context.PYNATIVE_MODE, device_target="CPU")
    whole = made(name, 1)
    whole.train(0)
    half_way = digest(whole)
    whole.train(1)
    first = made(name, 1)
    first.train(0, folder=".")
    resumed = made(name, 2)  # begins elsewhere
    resumed.train(0)
    assert digest(resumed) != half_way == digest(first)
    resumed.resume(".")
    resumed.train(1)
    print("in one go:", digest(whole))
    print("resumed:", digest(resumed))


if __name__ == "__main__":
    main(*sys.argv[1:])
