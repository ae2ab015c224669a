"""A mixture of experts on rows of wines: lists of layers from generators, rates that warm up, early stopping, the best state kept."""
import copy
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_wine
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(7)
x, y = load_wine(return_X_y=True)
x = torch.tensor((x - x.mean(0)) / x.std(0), dtype=torch.float32)
y = torch.tensor(y, dtype=torch.long)
train_set, val_set = random_split(TensorDataset(x, y), [0.8, 0.2])
train_loader = DataLoader(train_set, batch_size=16, shuffle=True)
val_loader = DataLoader(val_set, batch_size=64)


class Experts(nn.Module):
    def __init__(self, d_in, d_out, n=4, hidden=16):
        super().__init__()
        self.gate = nn.Linear(d_in, n)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(d_in, hidden), nn.ELU(), nn.Linear(hidden, d_out)) for _ in range(n))

    def forward(self, x):
        weights = F.softmax(self.gate(x), dim=-1)
        outs = torch.stack([e(x) for e in self.experts], dim=1)
        return torch.einsum('bn,bno->bo', weights, outs), weights


model = Experts(13, 3)
opt = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=1e-4)
sched = torch.optim.lr_scheduler.LambdaLR(opt, lr_lambda=lambda e: min(1.0, (e + 1) / 5))
best, best_state, patience = float('inf'), None, 0
for epoch in range(12):
    model.train()
    for xb, yb in train_loader:
        logits, w = model(xb)
        balance = (w.mean(0) * w.mean(0).log()).sum()
        loss = F.cross_entropy(logits, yb) + 0.01 * balance
        opt.zero_grad()
        loss.backward()
        opt.step()
    sched.step()
    model.eval()
    with torch.no_grad():
        val = sum(F.cross_entropy(model(xb)[0], yb, reduction='sum').item() for xb, yb in val_loader) / len(val_set)
    if val < best - 1e-4:
        best, best_state, patience = val, copy.deepcopy(model.state_dict()), 0
    else:
        patience += 1
        if patience >= 3:
            break
model.load_state_dict(best_state)
print('best %.4f' % best)
