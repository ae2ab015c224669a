"""A loss that one method computes and another one trains by."""

import torch
from torch import nn


class Learner:
    def __init__(self, net, rate):
        self.net, self.criterion = net, nn.MSELoss()
        self.optimizer = torch.optim.SGD(net.parameters(), lr=rate, momentum=0.9)

    def loss_of(self, x, y):
        made = self.net(x)
        return self.criterion(made, y), made.detach().abs().mean()

    def learn(self, loss, limit=1.0):
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.net.parameters(), limit)
        self.optimizer.step()


def step(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


torch.manual_seed(0)
x = torch.randn(32, 4)
y = x.sum(1, keepdim=True)
learner = Learner(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)), 0.05)
for turn in range(4):
    loss, size = learner.loss_of(x, y)
    learner.learn(loss, limit=0.5)
    print(turn, loss.item(), size.item())
other = nn.Linear(4, 1)
adam = torch.optim.Adam(other.parameters(), lr=0.1)
for turn in range(4):
    error = other(x) - y
    step(adam, error.pow(2).mean())
    print(turn, error.abs().max().item())
