"""A GAN with two optimizers, as scripts of MindSpore 1.1 write it: a loss cell and a TrainOneStepCell for each side.

    cairn ms --level 1.1 gan.py

The generator learns to make points of a ring from noise.
"""

import argparse

import mindspore.nn as nn
import mindspore.ops as ops
import numpy as np
from mindspore import Tensor, context
from mindspore.common import dtype as mstype
from mindspore.common import set_seed


class Generator(nn.Cell):
    def __init__(self):
        super(Generator, self).__init__(auto_prefix=True)
        self.body = nn.SequentialCell([nn.Dense(4, 32, weight_init="xavier_uniform"), nn.LeakyReLU(0.1),
                                       nn.Dense(32, 32, weight_init="xavier_uniform"), nn.LeakyReLU(0.1),
                                       nn.Dense(32, 2, weight_init="xavier_uniform")])

    def construct(self, noise):
        return self.body(noise)


class Discriminator(nn.Cell):
    def __init__(self):
        super(Discriminator, self).__init__(auto_prefix=True)
        self.body = nn.SequentialCell([nn.Dense(2, 32, weight_init="xavier_uniform"), nn.LeakyReLU(0.1),
                                       nn.Dense(32, 32, weight_init="xavier_uniform"), nn.LeakyReLU(0.1),
                                       nn.Dense(32, 1, weight_init="xavier_uniform")])

    def construct(self, x):
        return self.body(x)


class GenWithLossCell(nn.Cell):
    def __init__(self, net_g, net_d, loss_fn):
        super(GenWithLossCell, self).__init__(auto_prefix=True)
        self.net_g, self.net_d, self.loss_fn = net_g, net_d, loss_fn

    def construct(self, noise):
        fake_out = self.net_d(self.net_g(noise))
        return self.loss_fn(fake_out, ops.OnesLike()(fake_out))


class DisWithLossCell(nn.Cell):
    def __init__(self, net_g, net_d, loss_fn):
        super(DisWithLossCell, self).__init__(auto_prefix=True)
        self.net_g, self.net_d, self.loss_fn = net_g, net_d, loss_fn

    def construct(self, real, noise):
        real_out = self.net_d(real)
        fake_out = self.net_d(ops.stop_gradient(self.net_g(noise)))
        return self.loss_fn(real_out, ops.OnesLike()(real_out)) + self.loss_fn(fake_out, ops.ZerosLike()(fake_out))


class TrainOneStepCell(nn.Cell):
    """One step of each side."""

    def __init__(self, net_g, net_d, optimizer_g, optimizer_d):
        super(TrainOneStepCell, self).__init__(auto_prefix=False)
        self.net_g = nn.TrainOneStepCell(net_g, optimizer_g)
        self.net_d = nn.TrainOneStepCell(net_d, optimizer_d)

    def construct(self, real, noise):
        loss_d = self.net_d(real, noise)
        loss_g = self.net_g(noise)
        return loss_d, loss_g


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--mode", type=str, default="graph", choices=["graph", "pynative"])
    args = parser.parse_args()
    set_seed(1)
    context.set_context(mode=context.GRAPH_MODE if args.mode == "graph" else context.PYNATIVE_MODE, device_target="CPU")
    net_g, net_d = Generator(), Discriminator()
    net_g.update_parameters_name("generator.")
    net_d.update_parameters_name("discriminator.")
    loss_fn = nn.BCEWithLogitsLoss()
    train = TrainOneStepCell(GenWithLossCell(net_g, net_d, loss_fn), DisWithLossCell(net_g, net_d, loss_fn),
                             nn.Adam(net_g.trainable_params(), learning_rate=2e-3, beta1=0.5),
                             nn.Adam(net_d.trainable_params(), learning_rate=2e-3, beta1=0.5))
    train.set_train()
    rng = np.random.RandomState(0)
    for step in range(1, args.steps + 1):
        angle = rng.uniform(0, 2 * np.pi, 64)
        real = np.stack([np.cos(angle), np.sin(angle)], 1) * 2 + rng.normal(0, 0.05, (64, 2))
        loss_d, loss_g = train(Tensor(real, mstype.float32), Tensor(rng.normal(size=(64, 4)), mstype.float32))
        if step % 100 == 0:
            print("step: %d, loss of the discriminator: %.4f, of the generator: %.4f" % (step, loss_d.asnumpy(), loss_g.asnumpy()))
    made = net_g(Tensor(rng.normal(size=(512, 4)), mstype.float32)).asnumpy()
    radius = np.sqrt((made**2).sum(1))
    print("radius of made points: %.3f, of real ones: 2.000" % radius.mean())
