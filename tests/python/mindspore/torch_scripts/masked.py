"""A masked autoencoder and a small field with positional encoding; gather by random masks, checkpoints, numpy in and out."""
import os
import numpy as np
import torch
from torch import nn, optim
from torch.nn import functional as F


class PosEnc(nn.Module):
    def __init__(self, n_freqs):
        super().__init__()
        self.register_buffer("freqs", 2.0 ** torch.linspace(0.0, n_freqs - 1, n_freqs))

    def forward(self, x):
        xb = x[..., None, :] * self.freqs[:, None]
        return torch.cat([x, torch.sin(xb).flatten(-2), torch.cos(xb).flatten(-2)], dim=-1)


class Field(nn.Module):
    def __init__(self, D=3, W=24, skips=(1,)):
        super().__init__()
        self.enc = PosEnc(3)
        d = 3 + 3 * 2 * 3
        self.skips = skips
        self.layers = nn.ModuleList([nn.Linear(d, W)] + [nn.Linear(W + d, W) if i in skips else nn.Linear(W, W) for i in range(D - 1)])
        self.rgb = nn.Linear(W, 4)

    def forward(self, x):
        e = self.enc(x)
        h = e
        for i, layer in enumerate(self.layers):
            h = F.relu(layer(h))
            if i in self.skips:
                pass
            if i + 0 in (self.skips[0] - 1,):
                h = torch.cat([h, e], -1) if self.layers[i + 1].in_features != h.shape[-1] else h
            elif i + 1 < len(self.layers) and self.layers[i + 1].in_features != h.shape[-1]:
                h = torch.cat([h, e], -1)
        out = self.rgb(h)
        return torch.sigmoid(out[..., :3]), F.softplus(out[..., 3])


def volume_render(rgb, sigma, z):
    deltas = z[:, 1:] - z[:, :-1]
    deltas = torch.cat([deltas, 1e2 * torch.ones_like(deltas[:, :1])], -1)
    alpha = 1.0 - torch.exp(-sigma * deltas)
    trans = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1.0 - alpha + 1e-10], -1), -1)[:, :-1]
    weights = alpha * trans
    return (weights[..., None] * rgb).sum(-2), (weights * z).sum(-1)


class MAE(nn.Module):
    def __init__(self, n=12, d=8, dim=16):
        super().__init__()
        self.embed, self.pos = nn.Linear(d, dim), nn.Parameter(torch.zeros(1, n, dim), requires_grad=True)
        self.mask_token = nn.Parameter(torch.zeros(1, 1, dim))
        layer = nn.TransformerEncoderLayer(d_model=dim, nhead=2, dim_feedforward=32, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers=2)
        self.head = nn.Linear(dim, d)
        nn.init.trunc_normal_(self.pos, std=0.02)

    def forward(self, x, noise, keep=6):
        N, L, _ = x.shape
        h = self.embed(x) + self.pos
        ids_shuffle = torch.argsort(noise, dim=1)
        ids_restore = torch.argsort(ids_shuffle, dim=1)
        ids_keep = ids_shuffle[:, :keep]
        kept = torch.gather(h, dim=1, index=ids_keep.unsqueeze(-1).repeat(1, 1, h.shape[-1]))
        kept = self.encoder(kept)
        tokens = self.mask_token.repeat(N, L - keep, 1)
        full = torch.cat([kept, tokens], dim=1)
        full = torch.gather(full, dim=1, index=ids_restore.unsqueeze(-1).repeat(1, 1, full.shape[2]))
        pred = self.head(full + self.pos)
        mask = torch.ones([N, L])
        mask[:, :keep] = 0
        mask = torch.gather(mask, dim=1, index=ids_restore)
        loss = ((pred - x) ** 2).mean(dim=-1)
        return (loss * mask).sum() / mask.sum()


torch.manual_seed(0)
np.random.seed(0)
field = Field()
opt = optim.Adam(field.parameters(), lr=5e-3)
rays = torch.tensor(np.random.randn(32, 3), dtype=torch.float)
z = torch.linspace(0.1, 2.0, steps=6).expand(32, 6)
target = torch.from_numpy(np.random.rand(32, 3)).float()
for i in range(4):
    pts = rays[:, None, :] * z[..., None]
    rgb, sigma = field(pts)
    color, depth = volume_render(rgb, sigma, z)
    loss = F.mse_loss(color, target)
    opt.zero_grad()
    loss.backward()
    opt.step()
    psnr = -10.0 * torch.log10(loss.detach())
    print("field", i, "loss", loss.item(), "psnr", psnr.item())
mae = MAE()
opt2 = optim.AdamW(mae.parameters(), lr=1e-3, betas=(0.9, 0.95))
x = torch.randn(8, 12, 8)
for i in range(3):
    loss = mae(x, torch.rand(8, 12))
    opt2.zero_grad()
    loss.backward()
    opt2.step()
    print("mae", i, "loss", loss.item())
torch.save({"field": field.state_dict(), "mae": mae.state_dict()}, "both.pth")
state = torch.load("both.pth", map_location="cpu")
field.load_state_dict(state["field"])
print(os.path.exists("both.pth"), depth.detach().cpu().numpy().shape)
