"""Optimizers of torch.optim that MindSpore computes otherwise or lacks, with weight decay by groups."""
import torch
import torch.nn as nn

torch.manual_seed(0)
x, y = torch.randn(16, 4), torch.randn(16, 1)


def trained(make):
    net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = make(net)
    for step in range(3):
        optimizer.zero_grad(); loss = (net(x) - y).pow(2).mean(); loss.backward(); optimizer.step()
    print(loss.item())


def groups(net):
    return [{"params": net[0].parameters(), "weight_decay": 0.3}, {"params": net[3].parameters(), "weight_decay": 0.0, "lr": 0.05}]


trained(lambda net: torch.optim.NAdam(net.parameters(), lr=0.02, weight_decay=0.1))
trained(lambda net: torch.optim.RAdam(net.parameters(), lr=0.02, betas=(0.8, 0.9)))
trained(lambda net: torch.optim.ASGD(net.parameters(), lr=0.05))
trained(lambda net: torch.optim.Rprop(net.parameters(), lr=0.02))
trained(lambda net: torch.optim.RMSprop(net.parameters(), lr=0.01, weight_decay=0.2, momentum=0.5))
trained(lambda net: torch.optim.AdamW(groups(net), lr=0.01, weight_decay=0.1))
trained(lambda net: torch.optim.Adagrad(net.parameters(), lr=0.02, weight_decay=0.2))
