"""Layers whose class a variable holds: a default, a partial(), one of several."""

from functools import partial

import torch
from torch import nn


def feed_forward(dim, inner, dense=nn.Linear, act=nn.GELU):
    return nn.Sequential(dense(dim, inner), act(), dense(inner, dim))


ACTIVATIONS = {"relu": nn.ReLU, "gelu": nn.GELU}


class Block(nn.Module):
    def __init__(self, dim, norm=None):
        super().__init__()
        self.norm = (norm or partial(nn.LayerNorm, eps=1e-6))(dim)
        self.tokens = feed_forward(4, 8, partial(nn.Conv1d, kernel_size=1), nn.ReLU)
        self.channels = feed_forward(dim, 2 * dim, act=nn.Tanh)
        self.kind = nn.GELU
        self.act = nn.Sequential(self.kind(), ACTIVATIONS["gelu" if norm is None else "relu"]())

    def forward(self, x):
        return self.act(self.channels(self.tokens(self.norm(x))))


torch.manual_seed(0)
wide, narrow = partial(nn.Conv1d, kernel_size=1), nn.Linear
net = nn.Sequential(Block(6), Block(6, nn.LayerNorm), feed_forward(6, 4, narrow), feed_forward(4, 4, wide))
x, y = torch.randn(5, 4, 6), torch.randn(5, 4, 6)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(5):
    loss = nn.functional.mse_loss(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
