"""Small gradients: what eps of AdamW is added to shows."""

import torch
import torch.nn as nn
import torch.optim as optim
from sklearn.datasets import load_digits


class AE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Conv2d(1, 8, 3, 2, 1), nn.LeakyReLU(0.1), nn.Conv2d(8, 16, 3, 2, 1), nn.LeakyReLU(0.1))
        self.dec = nn.Sequential(nn.ConvTranspose2d(16, 8, 4, 2, 1), nn.LeakyReLU(0.1), nn.ConvTranspose2d(8, 1, 4, 2, 1))

    def forward(self, x):
        return torch.sigmoid(self.dec(self.enc(x)))


images = torch.tensor(load_digits().images / 16.0, dtype=torch.float32).unsqueeze(1)
torch.manual_seed(0)
net = AE()
opt = optim.AdamW(net.parameters(), lr=3e-3, weight_decay=1e-4)
sched = optim.lr_scheduler.CosineAnnealingLR(opt, T_max=20)
loss_fn = nn.SmoothL1Loss()
for epoch in range(3):
    for i in range(0, 1024, 128):
        batch = images[i:i + 128]
        opt.zero_grad()
        loss = loss_fn(net(batch), batch)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
    sched.step()
    print(epoch, round(loss.item(), 6))
