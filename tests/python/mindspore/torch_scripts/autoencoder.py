"""A denoising autoencoder with schedules of the learning rate and gradient accumulation."""
import numpy as np
import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, ReduceLROnPlateau
from torch.utils.data import DataLoader, TensorDataset


class Autoencoder(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(width, 16), nn.ReLU(), nn.Linear(16, 4))
        self.decoder = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, width), nn.Sigmoid())

    def forward(self, x):
        z = self.encoder(x)
        return self.decoder(z), z


accumulation_steps = 2
data = torch.from_numpy(np.random.RandomState(4).rand(48, 32).astype("float32"))
loader = DataLoader(TensorDataset(data, data), batch_size=8)
model = Autoencoder()
criterion = nn.SmoothL1Loss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
cosine = CosineAnnealingLR(optimizer, T_max=4)
plateau = ReduceLROnPlateau(optimizer, mode="min", factor=0.5, patience=0)

optimizer.zero_grad()
for epoch in range(3):
    losses = []
    for i, (noisy, clean) in enumerate(loader):
        noisy = noisy + 0.1 * torch.randn(noisy.shape)
        decoded, code = model(noisy)
        loss = criterion(decoded, clean) + 1e-3 * code.abs().mean()
        loss = loss / accumulation_steps
        loss.backward()
        if (i + 1) % accumulation_steps == 0:
            optimizer.step()
            optimizer.zero_grad()
        losses.append(loss.item() * accumulation_steps)
    if epoch < 2:
        cosine.step()
    else:
        plateau.step(np.mean(losses))
    print(epoch, np.mean(losses), optimizer.param_groups[0]["lr"] > 0)
