"""Networks that are never called as such: their weights are used by a function, or by functional_call."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(3, 8), nn.Linear(8, 1)

    def forward(self, x):
        return self.two(torch.relu(self.one(x)))

    def by_weights(self, x, weights):
        return F.linear(torch.relu(F.linear(x, weights[0], weights[1])), weights[2], weights[3])


class Meta:
    def __init__(self, net):
        self.net, self.weights = net, list(net.parameters())
        self.optimizer = torch.optim.Adam(self.weights, lr=1e-2)

    def adapted(self, x, y):
        fast = [w.clone() for w in self.weights]
        loss = F.mse_loss(self.net.by_weights(x, fast), y)
        return [w - 0.1 * g for w, g in zip(fast, torch.autograd.grad(loss, fast, create_graph=True))]

    def step(self, x, y):
        loss = F.mse_loss(self.net.by_weights(x, self.adapted(x, y)), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


def adapted(net, x, y):
    values = dict(net.named_parameters())
    for _ in range(2):
        loss = F.mse_loss(functional_call(net, values, (x,)), y)
        slopes = torch.autograd.grad(loss, values.values(), create_graph=True)
        values = {name: value - 0.1 * slope for (name, value), slope in zip(values.items(), slopes)}
    return values


torch.manual_seed(0)
x = torch.randn(16, 3)
y = x.sum(1, keepdim=True)
meta = Meta(Net())
for _ in range(4):
    meta.step(x, y)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
for _ in range(4):
    optimizer.zero_grad()
    outer = F.mse_loss(functional_call(net, adapted(net, x, y), (x,)), y)
    outer.backward()
    optimizer.step()
