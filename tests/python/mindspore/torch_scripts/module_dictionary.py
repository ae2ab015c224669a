"""Layers in a ModuleDict with tied weights, an activation in place before a sum, checkpoints under names that only the run knows."""

import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(6)


class RMSNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


class Residual(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.block = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(dim, dim), RMSNorm(dim))

    def forward(self, x):
        return x + self.block(x)


class Net(nn.Module):
    def __init__(self, vocab=11, dim=6):
        super().__init__()
        self.parts = nn.ModuleDict(dict(wte=nn.Embedding(vocab, dim), h=Residual(dim)))
        self.head = nn.Linear(dim, vocab, bias=False)
        self.parts.wte.weight = self.head.weight
        self.fast = hasattr(F, "scaled_dot_product_attention")

    def sizes(self):
        return self.parts.wte.weight.numel()

    def forward(self, ids):
        return self.head(self.parts.h(self.parts.wte(ids)))


def save(net, path):
    torch.save(net.state_dict(), path)


def load(net, path):
    net.load_state_dict(torch.load(path))


net = Net()
print(net.sizes())
optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
ids = torch.arange(10) % 11
place = os.path.join(tempfile.mkdtemp(), "net.pth")
for step in range(4):
    loss = F.cross_entropy(net(ids), (ids + 1) % 11)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    save(net, place)
    load(net, place)
