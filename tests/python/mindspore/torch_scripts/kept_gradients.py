"""Gradients that a script reads beside its parameters: clipped by hand, over a function's end, of an input, three optimizers."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Trainer:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.ReLU(), nn.Linear(8, 1))
        self.heads = [nn.Linear(1, 1), nn.Linear(1, 1)]
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1, momentum=0.9)
        self.first = torch.optim.Adam(self.heads[0].parameters(), lr=0.01)
        self.second = torch.optim.Adam(self.heads[1].parameters(), lr=0.01)

    def compute(self, x, y):
        out = self.net(x)
        loss = F.mse_loss(self.heads[0](out), y) + F.mse_loss(self.heads[1](out), -y)
        loss.backward()
        return loss

    def update(self):
        total = 0.0
        for p in self.net.parameters():
            if p.grad is not None:
                p.grad.data.clamp_(-0.5, 0.5)
                total += p.grad.data.norm(2).item() ** 2
        self.optimizer.step(); self.first.step(); self.second.step()
        return math.sqrt(total)

    def clear(self):
        self.optimizer.zero_grad(); self.first.zero_grad(); self.second.zero_grad()


torch.manual_seed(0)
trainer = Trainer()
x, y = torch.randn(16, 4), torch.randn(16, 1)
for step in range(5):
    trainer.clear()
    loss = trainer.compute(x, y)
    print(step, loss.item(), trainer.update())

w = torch.randn(4, 1, requires_grad=True)
for step in range(4):
    loss = (x.mm(w) - y).pow(2).mean(); loss.backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
        w.grad.zero_()

trainer.net.eval()
image = x.clone()
image.requires_grad = True
loss = trainer.net(image).pow(2).mean()
loss.backward()
moved = image + 0.1 * image.grad.sign()
print(trainer.net(moved).pow(2).mean().item())
