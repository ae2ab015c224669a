"""Contrastive learning of two views."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class ProjectionHead(nn.Module):
    def __init__(self, in_dim, out_dim):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(in_dim, in_dim), nn.BatchNorm1d(in_dim), nn.ReLU(), nn.Linear(in_dim, out_dim))

    def forward(self, x):
        return F.normalize(self.net(x), dim=1)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.norm = nn.GroupNorm(4, 8)
        self.conv2 = nn.Conv2d(8, 16, 3, stride=2, padding=1, groups=2)

    def forward(self, x):
        x = F.silu(self.norm(self.conv1(x)))
        x = F.gelu(self.conv2(x))
        return F.adaptive_avg_pool2d(x, 1).flatten(1)


def nt_xent(z1, z2, temperature=0.5):
    n = z1.size(0)
    z = torch.cat([z1, z2], dim=0)
    sim = torch.mm(z, z.t()) / temperature
    mask = torch.eye(2 * n, dtype=torch.bool)
    sim = sim.masked_fill(mask, -1e9)
    targets = torch.cat([torch.arange(n, 2 * n), torch.arange(0, n)])
    return F.cross_entropy(sim, targets)


rng = np.random.RandomState(0)
encoder, head = Encoder(), ProjectionHead(16, 8)
params = list(encoder.parameters()) + list(head.parameters())
optimizer = torch.optim.SGD(params, lr=0.1, momentum=0.9)
for step in range(4):
    x = torch.from_numpy(rng.randn(6, 3, 8, 8)).float()
    x1 = x + 0.1 * torch.randn_like(x)
    x2 = torch.flip(x, dims=[3])
    z1, z2 = head(encoder(x1)), head(encoder(x2))
    loss = nt_xent(z1, z2)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    std = z1.std(dim=0).mean()
    print(step, loss.item(), std.item())
