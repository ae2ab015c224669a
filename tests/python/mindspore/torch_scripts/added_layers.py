"""A sequence that is filled layer by layer."""

import torch
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.layers = nn.Sequential()
        for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
            self.layers.add_module(f"dense{i}", nn.Linear(a, b))
            self.layers.add_module(f"act{i}", nn.Tanh())

    def forward(self, x):
        return self.layers(x)


net = Net([4, 8, 1])
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
x = torch.randn(16, 4)
for step in range(3):
    optimizer.zero_grad()
    loss = (net(x) - 0.5).pow(2).mean()
    loss.backward()
    optimizer.step()
    print(loss.item())
