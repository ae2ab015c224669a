"""A small denoising diffusion model on 2-D points."""
import argparse
import math
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def sinusoidal_embedding(timesteps, dim):
    half = dim // 2
    freqs = torch.exp(-math.log(10000.0) * torch.arange(half, dtype=torch.float32, device=timesteps.device) / half)
    args = timesteps[:, None].float() * freqs[None]
    return torch.cat([torch.sin(args), torch.cos(args)], dim=-1)


class Block(nn.Module):
    def __init__(self, width, time_dim):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.fc1 = nn.Linear(width, width * 2)
        self.fc2 = nn.Linear(width * 2, width)
        self.time = nn.Linear(time_dim, width * 2)
        self.act = nn.SiLU()

    def forward(self, x, t):
        h = self.act(self.fc1(self.norm(x)) + self.time(t))
        return x + self.fc2(h)


class Denoiser(nn.Module):
    def __init__(self, width=64, depth=3, time_dim=32):
        super().__init__()
        self.time_dim = time_dim
        self.inp = nn.Linear(2, width)
        self.time_mlp = nn.Sequential(nn.Linear(time_dim, time_dim), nn.SiLU(), nn.Linear(time_dim, time_dim))
        self.blocks = nn.ModuleList([Block(width, time_dim) for _ in range(depth)])
        self.out = nn.Linear(width, 2)

    def forward(self, x, t):
        emb = self.time_mlp(sinusoidal_embedding(t, self.time_dim))
        h = self.inp(x)
        for block in self.blocks:
            h = block(h, emb)
        return self.out(h)


class Diffusion:
    def __init__(self, steps=100, device="cpu"):
        self.steps = steps
        betas = torch.linspace(1e-4, 0.02, steps, device=device)
        alphas = 1.0 - betas
        self.alpha_bar = torch.cumprod(alphas, dim=0)
        self.betas, self.alphas = betas, alphas

    def noise(self, x0, t, eps):
        a = self.alpha_bar[t].unsqueeze(-1)
        return a.sqrt() * x0 + (1 - a).sqrt() * eps

    @torch.no_grad()
    def sample(self, model, n):
        x = torch.randn(n, 2)
        for i in reversed(range(self.steps)):
            t = torch.full((n,), i, dtype=torch.long)
            eps = model(x, t)
            a, ab = self.alphas[i], self.alpha_bar[i]
            x = (x - (1 - a) / torch.sqrt(1 - ab) * eps) / torch.sqrt(a)
            if i > 0:
                x = x + torch.sqrt(self.betas[i]) * torch.randn_like(x)
        return x


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--lr", type=float, default=2e-3)
    args = parser.parse_args()
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    angle = torch.rand(1024) * 2 * math.pi
    data = torch.stack([angle.cos(), angle.sin()], dim=1) + 0.05 * torch.randn(1024, 2)
    loader = DataLoader(TensorDataset(data), batch_size=128, shuffle=True, drop_last=True)
    model = Denoiser().to(device)
    diffusion = Diffusion(device=device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.epochs)
    ema = {k: v.clone() for k, v in model.state_dict().items()}
    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for (x0,) in loader:
            x0 = x0.to(device)
            t = torch.randint(0, diffusion.steps, (x0.size(0),), device=device)
            eps = torch.randn_like(x0)
            pred = model(diffusion.noise(x0, t, eps), t)
            loss = F.mse_loss(pred, eps)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            with torch.no_grad():
                for k, v in model.state_dict().items():
                    ema[k].mul_(0.99).add_(v, alpha=0.01)
            total += loss.item() * x0.size(0)
        scheduler.step()
        print(f"epoch {epoch} loss {total / len(data):.4f} lr {scheduler.get_last_lr()[0]:.5f}")
    model.load_state_dict(ema)
    model.eval()
    samples = diffusion.sample(model, 64)
    print("radius", samples.norm(dim=1).mean().item())


if __name__ == "__main__":
    main()
