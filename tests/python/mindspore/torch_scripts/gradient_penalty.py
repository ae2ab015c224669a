"""WGAN with gradient penalty by autograd.grad."""
import torch
import torch.nn as nn
from torch import autograd


class G(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 6))

    def forward(self, z):
        return self.net(z)


class D(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))

    def forward(self, x):
        return self.net(x)


def gradient_penalty(critic, real, fake, alpha):
    interpolates = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
    d = critic(interpolates)
    gradients = autograd.grad(outputs=d, inputs=interpolates, grad_outputs=torch.ones_like(d), create_graph=True, retain_graph=True, only_inputs=True)[0]
    gradients = gradients.view(gradients.size(0), -1)
    return ((gradients.norm(2, dim=1) - 1) ** 2).mean()


torch.manual_seed(0)
g, d = G(), D()
opt_g = torch.optim.Adam(g.parameters(), lr=1e-2, betas=(0.5, 0.9))
opt_d = torch.optim.Adam(d.parameters(), lr=1e-2, betas=(0.5, 0.9))
for step in range(6):
    real, z, alpha = torch.randn(8, 6) + 1, torch.randn(8, 4), torch.rand(8, 1)
    opt_d.zero_grad()
    fake = g(z).detach()
    d_loss = d(fake).mean() - d(real).mean() + 10 * gradient_penalty(d, real, fake, alpha)
    d_loss.backward()
    opt_d.step()
    opt_g.zero_grad()
    g_loss = -d(g(z)).mean()
    g_loss.backward()
    opt_g.step()
    print("step", step, "d %.5f g %.5f" % (d_loss.item(), g_loss.item()))
