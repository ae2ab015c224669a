"""Schedules of PyTorch: after each step the rates and, by the losses, the momentum."""
import numpy as np
import torch
from torch import nn
from torch.optim import lr_scheduler

kinds = {
    "one": lambda o: lr_scheduler.OneCycleLR(o, max_lr=0.2, total_steps=12),
    "three": lambda o: lr_scheduler.OneCycleLR(o, 0.1, epochs=3, steps_per_epoch=4, anneal_strategy="linear", three_phase=True),
    "restarts": lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, T_0=2, T_mult=2, eta_min=1e-3),
    "cyclic": lambda o: lr_scheduler.CyclicLR(o, base_lr=0.01, max_lr=0.1, step_size_up=3, mode="triangular2", cycle_momentum=False),
    "linear": lambda o: lr_scheduler.LinearLR(o, start_factor=0.25, total_iters=4),
    "constant": lambda o: lr_scheduler.ConstantLR(o, factor=0.5, total_iters=3),
    "sequence": lambda o: lr_scheduler.SequentialLR(
        o, schedulers=[lr_scheduler.LinearLR(o, 0.1, 1.0, 3), lr_scheduler.CosineAnnealingLR(o, T_max=9)], milestones=[3]),
    "plateau": lambda o: lr_scheduler.StepLR(o, step_size=4, gamma=0.3, last_epoch=-1),
}
rng = np.random.RandomState(0)
x = torch.tensor(rng.randn(16, 5), dtype=torch.float32)
y = torch.tensor(rng.randint(0, 3, 16))
criterion = nn.CrossEntropyLoss()


def train(name, adam):
    net = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3))
    if adam:
        optimizer = torch.optim.Adam(net.parameters(), lr=0.01, fused=False)
    else:
        optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, foreach=False)
    scheduler = kinds[name](optimizer)
    rates = []
    for step in range(12):
        loss = criterion(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        rates.append(scheduler.get_last_lr()[0])
        if step < 11:
            scheduler.step()
    print(name, " ".join("%.5f" % rate for rate in rates))
    return loss.item()


print([train(name, adam) for name in kinds for adam in (False, True)])
