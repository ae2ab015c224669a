"""An optimizer that evaluates the loss several times a step."""
import torch
from torch import nn

x = torch.linspace(0, 1, 20).unsqueeze(1)
y = 3 * x + 1
model = nn.Linear(1, 1)
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5)


def closure():
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    return loss


for _ in range(3):
    print(optimizer.step(closure).item())
