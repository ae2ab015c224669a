"""Loaders of datasets whose rows are single tensors, nested or drawn anew, that are a tensor or only iterated."""

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

digits = load_digits()


class Images(Dataset):
    def __init__(self, count):
        self.x = torch.tensor(digits.data[:count] / 16, dtype=torch.float32)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.x[index]


class Pairs(Dataset):
    def __init__(self):
        self.x, self.y = (digits.data / 16).astype(np.float32)[:64], digits.target[:64]
        self.resample()

    def resample(self):
        self.other = np.roll(np.arange(64), 1)

    def __len__(self):
        return 64

    def __getitem__(self, index):
        label = self.y[index].item()
        return (self.x[index], self.x[self.other[index]]), label


class Stream(IterableDataset):
    def __iter__(self):
        for row, digit in zip(digits.data[:40], digits.target):
            yield torch.from_numpy(row).float() / 16, int(digit)


def forever(loader):
    while True:
        for batch in loader:
            yield batch


net = nn.Linear(64, 10)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)


def step(loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


for x in DataLoader(Images(32), batch_size=16):
    step((net(x) ** 2).mean())
rows = forever(DataLoader(Images(16).x, batch_size=8))
for _ in range(3):
    step(net(next(rows)).abs().mean())
pairs = DataLoader(Pairs(), batch_size=32)
for epoch in range(2):
    pairs.dataset.resample()
    for (one, other), label in pairs:
        step(nn.functional.cross_entropy(net(one) - net(other), label))
for x, label in DataLoader(Stream(), batch_size=16):
    step(nn.functional.cross_entropy(net(x), label))
for (x,) in DataLoader(TensorDataset(Images(16).x), batch_size=16):
    step(net(x).mean())
