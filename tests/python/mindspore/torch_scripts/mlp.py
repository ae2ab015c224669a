"""Regression with a multilayer perceptron, full batches."""
import numpy as np
import torch
from torch import nn, optim

rng = np.random.RandomState(0)
X = torch.tensor(rng.randn(64, 5), dtype=torch.float32)
y = torch.from_numpy(rng.randn(64, 1).astype(np.float32))

model = nn.Sequential(
    nn.Linear(5, 16),
    nn.Tanh(),
    nn.Linear(16, 16),
    nn.LeakyReLU(),
    nn.Linear(16, 1),
)
loss_fn = nn.MSELoss()
optimizer = optim.Adam(model.parameters(), lr=1e-2, betas=(0.9, 0.99), weight_decay=1e-3)

for step in range(10):
    pred = model(X)
    loss = loss_fn(pred, y)

    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 5 == 0:
        print("step {:2d} loss {:.5f}".format(step, loss.item()))
