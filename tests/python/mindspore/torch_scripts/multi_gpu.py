"""Data parallel training in mixed precision: what belongs to several GPUs goes."""
import os

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.cuda.amp import GradScaler, autocast
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset

os.environ.setdefault("MASTER_ADDR", "localhost")
os.environ.setdefault("MASTER_PORT", "29577")
dist.init_process_group("gloo", rank=0, world_size=1)
torch.backends.cudnn.benchmark = True
rng = np.random.RandomState(0)
dataset = TensorDataset(torch.tensor(rng.randn(32, 6), dtype=torch.float32), torch.tensor(rng.randint(0, 3, 32)))
loader = DataLoader(dataset, batch_size=8, num_workers=0, pin_memory=True)
model = nn.Sequential(nn.Linear(6, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Linear(12, 3))
model = DDP(model)
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
scaler = GradScaler(enabled=False)
for epoch in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        with autocast(enabled=False):
            out = model(x)
            loss = criterion(out, y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
    if dist.get_rank() == 0:
        print(epoch, loss.item())
dist.destroy_process_group()
