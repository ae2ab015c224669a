"""A forecaster trained by a class."""
import os
import time
import numpy as np
import torch
from torch import nn
from torch.utils.data import Dataset, DataLoader, random_split


class Windows(Dataset):
    """Windows over a series."""

    def __init__(self, series, window=8, transform=None):
        self.series, self.window, self.transform = series, window, transform

    def __len__(self):
        return len(self.series) - self.window

    def __getitem__(self, idx):
        sample = {"x": self.series[idx:idx + self.window, None], "y": self.series[idx + self.window]}
        x = torch.from_numpy(sample["x"])
        y = torch.tensor([sample["y"]])
        return x, y


class GRUForecaster(nn.Module):
    def __init__(self, hidden=12):
        super().__init__()
        self.gru = nn.GRU(1, hidden, batch_first=True)
        self.conv = nn.Conv1d(hidden, 4, 3)
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        out, _ = self.gru(x)
        out = torch.tanh(self.conv(out.permute(0, 2, 1)))
        return self.head(out.mean(dim=-1))


class EarlyStopping:
    def __init__(self, patience=3):
        self.patience, self.best, self.count = patience, float("inf"), 0

    def __call__(self, value):
        if value < self.best:
            self.best, self.count = value, 0
        else:
            self.count += 1
        return self.count >= self.patience


class Trainer:
    def __init__(self, model, train_loader, val_loader, lr=1e-2, device=None):
        self.device = device or torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
        self.model = model.to(self.device)
        self.train_loader, self.val_loader = train_loader, val_loader
        self.criterion = nn.HuberLoss()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=lr)
        self.scheduler = torch.optim.lr_scheduler.ExponentialLR(self.optimizer, gamma=0.9)
        self.stopper = EarlyStopping()

    def train_epoch(self):
        self.model.train()
        losses = []
        for x, y in self.train_loader:
            x = x.to(self.device, non_blocking=True)
            y = y.to(self.device, non_blocking=True)
            self.optimizer.zero_grad()
            pred = self.model(x)
            loss = self.criterion(pred, y)
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            losses.append(loss.detach().cpu().item())
        return np.mean(losses)

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        total, count = 0.0, 0
        for x, y in self.val_loader:
            pred = self.model(x.to(self.device))
            total += nn.functional.l1_loss(pred, y.to(self.device), reduction="sum").item()
            count += y.size(0)
        return total / count

    def fit(self, epochs):
        for epoch in range(epochs):
            start = time.time()
            train_loss = self.train_epoch()
            val_loss = self.validate()
            self.scheduler.step()
            lr = self.optimizer.param_groups[0]["lr"]
            print(f"epoch {epoch}: train {train_loss:.4f} val {val_loss:.4f} lr {lr:.5f}")
            if self.stopper(val_loss):
                break
        torch.save(self.model.state_dict(), "forecaster.pth")


def main():
    torch.manual_seed(3)
    series = np.sin(np.arange(60) / 5).astype(np.float32)
    dataset = Windows(series)
    n_val = 12
    train_set, val_set = random_split(dataset, [len(dataset) - n_val, n_val])
    train_loader = DataLoader(train_set, batch_size=8, shuffle=True, drop_last=True)
    val_loader = DataLoader(val_set, batch_size=12)
    trainer = Trainer(GRUForecaster(), train_loader, val_loader)
    trainer.fit(2)


if __name__ == "__main__":
    main()
