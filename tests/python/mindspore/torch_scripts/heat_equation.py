"""Derivatives of a network by its inputs, of first and second order, through a function of the script's own."""

import math

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(2, 12), nn.Tanh(), nn.Linear(12, 1))


def slope(y, x):
    return torch.autograd.grad(y, x, grad_outputs=torch.ones_like(y), create_graph=True)[0]


def curvature(y, x):
    first = slope(y, x)
    return slope(first, x)


def residual(x, t):
    u = net(torch.cat([x, t], dim=1))
    u_t = torch.autograd.grad(u.sum(), t, create_graph=True)[0]
    return u_t - 0.1 * curvature(u, x)


x = torch.linspace(0, 1, 16).view(-1, 1).requires_grad_(True)
t = torch.linspace(0, 0.5, 16).view(-1, 1).requires_grad_(True)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(6):
    optimizer.zero_grad()
    start = net(torch.cat([x, torch.zeros_like(t)], dim=1))
    loss = residual(x, t).pow(2).mean() + (start - torch.sin(math.pi * x)).pow(2).mean()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
