"""A policy gradient (REINFORCE with a baseline) on a pole that is to be balanced, in the functional style of MindSpore 1.10.

    cairn ms policy_gradient.py
"""

import argparse

import mindspore as ms
import numpy as np
from mindspore import nn, ops


class Poles:
    """Several poles on carts at once; a push to the left or right each step. A pole that falls, or leaves the track, is at its end."""

    def __init__(self, count, rng):
        self.state = rng.uniform(-0.05, 0.05, (count, 4))

    def step(self, action):
        x, v, angle, turn = self.state.T
        force = np.where(action == 1, 10.0, -10.0)
        sine, cosine = np.sin(angle), np.cos(angle)
        push = (force + 0.05 * turn**2 * sine) / 1.1
        bend = (9.8 * sine - cosine * push) / (0.5 * (4 / 3 - 0.1 * cosine**2 / 1.1))
        self.state = self.state + 0.02 * np.stack([v, push - 0.05 * bend * cosine / 1.1, turn, bend], 1)
        return (np.abs(self.state[:, 0]) < 2.4) & (np.abs(self.state[:, 2]) < 0.21)


class Policy(nn.Cell):
    def __init__(self):
        super().__init__()
        self.body = nn.SequentialCell(nn.Dense(4, 32, weight_init="xavier_uniform"), nn.Tanh(), nn.Dense(32, 2, weight_init="xavier_uniform"))

    def construct(self, state):
        return self.body(state)


def episodes(policy, rng, count=16, most=100):
    """(states, actions, what each action was worth, steps of the episodes)"""
    poles, alive = Poles(count, rng), np.ones(count, bool)
    states, actions, lived = [], [], []
    for _ in range(most):
        states.append(poles.state.astype(np.float32))
        logits = policy(ms.Tensor(states[-1])).asnumpy()
        chance = 1 / (1 + np.exp(logits[:, 0] - logits[:, 1]))
        actions.append((rng.uniform(size=count) < chance).astype(np.int32))
        lived.append(alive)
        alive = alive & poles.step(actions[-1])
    lived = np.array(lived, np.float32)
    worth = np.zeros(lived.shape, np.float32)
    ahead = np.zeros(count, np.float32)
    for step in range(most - 1, -1, -1):
        ahead = lived[step] * (1 + 0.98 * ahead)
        worth[step] = ahead
    advantage = (worth - (worth * lived).sum() / lived.sum()) * lived / worth[lived > 0].std()
    return np.concatenate(states), np.concatenate(actions), advantage.ravel(), lived.sum(0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=25)
    parser.add_argument("--mode", default="graph", choices=["graph", "pynative"])
    args = parser.parse_args()
    ms.set_seed(1)
    ms.set_context(mode=ms.GRAPH_MODE if args.mode == "graph" else ms.PYNATIVE_MODE, device_target="CPU")
    policy = Policy()
    optimizer = nn.Adam(policy.trainable_params(), learning_rate=0.02)

    def forward_fn(states, actions, advantage):
        chances = ops.log_softmax(policy(states), -1)
        chosen = (chances * ops.one_hot(actions, 2, ms.Tensor(1.0, ms.float32), ms.Tensor(0.0, ms.float32))).sum(-1)
        return -(chosen * advantage).mean()

    grad_fn = ops.value_and_grad(forward_fn, None, optimizer.parameters)
    rng = np.random.RandomState(0)
    for update in range(1, args.updates + 1):
        states, actions, advantage, lived = episodes(policy, rng)
        loss, grads = grad_fn(ms.Tensor(states), ms.Tensor(actions), ms.Tensor(advantage))
        optimizer(grads)
        if update % 5 == 0:
            print(f"update: {update}, steps of an episode: {lived.mean():.1f}, loss: {float(loss.asnumpy()):.4f}")
