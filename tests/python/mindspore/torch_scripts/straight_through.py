"""A straight-through binariser and a clamped exponential as autograd.Function."""
import torch
import torch.nn as nn


class BinarizeSTE(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sign()

    @staticmethod
    def backward(ctx, grad_output):
        x, = ctx.saved_tensors
        grad_input = grad_output.clone()
        grad_input[x.abs() > 1] = 0
        return grad_input


class ScaledExp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        y = torch.exp(x.clamp(max=5.0)) * scale
        ctx.scale = scale
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad * y, None


class BinaryLinear(nn.Linear):
    def forward(self, x):
        weight = BinarizeSTE.apply(self.weight)
        return nn.functional.linear(x, weight, self.bias)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = BinaryLinear(10, 16), BinaryLinear(16, 2)

    def forward(self, x):
        x = torch.tanh(self.fc1(x))
        return ScaledExp.apply(self.fc2(x) * 0.1, 0.5)


torch.manual_seed(0)
net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
x = torch.randn(32, 10)
y = torch.stack([x[:, 0].abs(), x[:, 1].abs()], 1)
for step in range(6):
    loss = ((net(x) - y) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("step", step, "loss", round(loss.item(), 5))
