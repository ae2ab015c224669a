"""Checkpoints of several things, samplers, an average of weights, keyword arguments in dictionaries."""
import argparse
import os

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, SubsetRandomSampler, WeightedRandomSampler

use_cuda = torch.cuda.is_available()
kwargs = {"num_workers": 0, "pin_memory": True} if use_cuda else {}


class Rows(Dataset):
    def __init__(self):
        rng = np.random.RandomState(0)
        self.x = rng.randn(40, 6).astype(np.float32)
        self.y = (self.x.sum(1) > 0).astype(np.int64)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        sample = {"features": torch.from_numpy(self.x[i]), "label": int(self.y[i])}
        return sample


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 12), nn.BatchNorm1d(12), nn.GELU())
        self.head = nn.Linear(12, 2)

    def forward(self, x):
        return self.head(self.body(x))


def save_checkpoint(state, is_best, filename="checkpoint.pth.tar"):
    torch.save(state, filename)
    if is_best:
        torch.save(state, "model_best.pth.tar")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", default=2, type=int)
    parser.add_argument("--resume", default="", type=str)
    args = parser.parse_args()
    data = Rows()
    train_kwargs = {"batch_size": 8, "drop_last": True}
    train_kwargs.update(kwargs)
    loader = DataLoader(data, sampler=SubsetRandomSampler(range(len(data))), **train_kwargs)
    weights = np.where(data.y == 1, 1.0, 2.0)
    extra = DataLoader(data, batch_size=10, sampler=WeightedRandomSampler(weights, len(data)))
    model, average = Net(), Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, betas=(0.9, 0.98), weight_decay=0.05)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)
    criterion = nn.CrossEntropyLoss()
    start_epoch, best = 0, 0.0
    if args.resume:
        checkpoint = torch.load(args.resume)
        start_epoch = checkpoint["epoch"]
        model.load_state_dict(checkpoint["state_dict"])
        optimizer.load_state_dict(checkpoint["optimizer"])
    for epoch in range(start_epoch, args.epochs):
        model.train()
        for i, batch in enumerate(loader):
            features, label = batch["features"], batch["label"]
            output = model(features)
            loss = criterion(output, label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            with torch.no_grad():
                for kept, new in zip(average.parameters(), model.parameters()):
                    kept.data.mul_(0.9).add_(new.data, alpha=0.1)
        scheduler.step()
        model.eval()
        correct = 0
        with torch.no_grad():
            for batch in extra:
                prediction = model(batch["features"]).argmax(dim=1)
                correct += (prediction == batch["label"]).sum().item()
        accuracy = 100.0 * correct / len(data)
        save_checkpoint({
            "epoch": epoch + 1,
            "arch": "net",
            "state_dict": model.state_dict(),
            "best": max(best, accuracy),
            "optimizer": optimizer.state_dict(),
        }, accuracy > best)
        best = max(best, accuracy)
        print("epoch %d loss %.4f" % (epoch, loss.item()))
    again = torch.load("checkpoint.pth.tar", weights_only=False)
    other = Net()
    other.load_state_dict(again["state_dict"])
    print(again["epoch"], again["arch"], os.path.exists("model_best.pth.tar"))


if __name__ == "__main__":
    main()
