"""VAE with torch.distributions."""
import torch
from torch import nn
from torch.distributions import Bernoulli, Independent, Normal, kl_divergence
import torch.distributions as td


class VAE(nn.Module):
    def __init__(self, d=20, h=16, z=4):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(d, h), nn.Tanh())
        self.loc, self.scale = nn.Linear(h, z), nn.Sequential(nn.Linear(h, z), nn.Softplus())
        self.dec = nn.Sequential(nn.Linear(z, h), nn.Tanh(), nn.Linear(h, d))
        self.register_buffer("prior_loc", torch.zeros(z))
        self.register_buffer("prior_scale", torch.ones(z))

    def encode(self, x):
        h = self.enc(x)
        return Normal(self.loc(h), self.scale(h) + 1e-4)

    def forward(self, x):
        q = self.encode(x)
        z = q.rsample()
        logits = self.dec(z)
        p = Bernoulli(logits=logits)
        log_px = p.log_prob(x).sum(-1)
        kl = kl_divergence(q, Normal(self.prior_loc, self.prior_scale)).sum(-1)
        return -(log_px - kl).mean(), log_px.mean(), kl.mean(), q.entropy().mean()


torch.manual_seed(0)
model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
x = torch.bernoulli(torch.rand(64, 20))
for epoch in range(3):
    for i in range(0, 64, 16):
        loss, log_px, kl, entropy = model(x[i:i + 16])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} elbo {-loss.item():.4f} kl {kl.item():.4f}")
uniform = td.Uniform(torch.tensor([0.0]), torch.tensor([2.0]))
print(uniform.log_prob(torch.tensor([1.0])).item(), uniform.mean.item(), td.Normal(0.0, 1.0).cdf(torch.tensor(0.5)).item())
