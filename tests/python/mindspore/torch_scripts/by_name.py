"""Layers, optimizers and schedules by their names; a sampler and an optimizer of the script's own."""

import sys

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Sampler, TensorDataset

CHOICES = {"layer": "Tanh", "optimizer": "AdamW", "schedule": "StepLR"} if len(sys.argv) < 2 else {}


class EveryThird(Sampler):
    def __init__(self, rows, batch):
        super().__init__()
        self.rows, self.batch = rows, batch

    def __iter__(self):
        for first in range(len(self)):
            yield list(range(first * 3, first * 3 + self.batch * 3, 3))

    def __len__(self):
        return 6


class Momentum(torch.optim.Optimizer):
    def __init__(self, params, lr, rate=0.9):
        super().__init__(params, dict(lr=lr, rate=rate))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if "mean" not in state:
                    state["mean"] = torch.zeros_like(p)
                mean = state["mean"]
                mean.mul_(group["rate"]).add_(p.grad, alpha=1 - group["rate"])
                p.add_(mean.sign(), alpha=-group["lr"])


digits = load_digits()
x, y = torch.tensor(digits.data / 16, dtype=torch.float32), torch.tensor(digits.target)
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(64, 24), getattr(nn, CHOICES["layer"])(), nn.Linear(24, 10))
optimizer = getattr(torch.optim, CHOICES["optimizer"])(net.parameters(), lr=0.01, weight_decay=0.1)
schedule = getattr(torch.optim.lr_scheduler, CHOICES["schedule"])(optimizer, step_size=2, gamma=0.5)
criterion = nn.CrossEntropyLoss()
for images, labels in DataLoader(TensorDataset(x, y), batch_sampler=EveryThird(x, 32)):
    optimizer.zero_grad()
    loss = criterion(net(images), labels)
    loss.backward()
    optimizer.step()
    schedule.step()
    print(loss.item(), schedule.get_last_lr())
own = Momentum(net.parameters(), lr=0.003)
for turn in range(4):
    own.zero_grad()
    loss = criterion(net(x[:200]), y[:200])
    loss.backward()
    own.step()
    print(loss.item())
