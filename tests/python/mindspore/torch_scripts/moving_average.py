"""Image classifier with tqdm, AMP, EMA, warm-up by LambdaLR, early stopping, TensorBoard where it is there."""
import argparse
import copy
import math
import os
import random
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.cuda.amp import GradScaler, autocast
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm

try:
    from torch.utils.tensorboard import SummaryWriter
except ImportError:
    SummaryWriter = None


def seed_everything(seed=42):
    random.seed(seed)
    os.environ["PYTHONHASHSEED"] = str(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False


class AverageMeter:
    def __init__(self):
        self.reset()

    def reset(self):
        self.val = self.avg = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count


class EarlyStopping:
    def __init__(self, patience=3, delta=0.0, path="best.pt"):
        self.patience, self.delta, self.path = patience, delta, path
        self.counter, self.best_score, self.early_stop = 0, None, False

    def __call__(self, val_loss, model):
        score = -val_loss
        if self.best_score is None or score > self.best_score + self.delta:
            self.best_score = score
            self.counter = 0
            torch.save(model.state_dict(), self.path)
        else:
            self.counter += 1
            if self.counter >= self.patience:
                self.early_stop = True


class ModelEMA:
    def __init__(self, model, decay=0.99):
        self.ema = copy.deepcopy(model).eval()
        self.decay = decay
        for p in self.ema.parameters():
            p.requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        msd = model.state_dict()
        for k, v in self.ema.state_dict().items():
            if v.dtype.is_floating_point:
                v *= self.decay
                v += (1.0 - self.decay) * msd[k].detach()


class Images(Dataset):
    def __init__(self, n=48, transform=None):
        rng = np.random.RandomState(0)
        self.x = rng.rand(n, 3, 16, 16).astype(np.float32)
        self.y = (self.x.mean((1, 2, 3)) > 0.5).astype(np.int64)
        self.transform = transform

    def __len__(self):
        return len(self.y)

    def __getitem__(self, idx):
        img = torch.from_numpy(self.x[idx])
        if self.transform is not None:
            img = self.transform(img)
        return img, torch.tensor(self.y[idx])


class Normalize:
    def __init__(self, mean, std):
        self.mean, self.std = torch.tensor(mean).view(3, 1, 1), torch.tensor(std).view(3, 1, 1)

    def __call__(self, x):
        return (x - self.mean) / self.std


class ConvBNAct(nn.Sequential):
    def __init__(self, i, o, s=1):
        super().__init__(nn.Conv2d(i, o, 3, s, 1, bias=False), nn.BatchNorm2d(o), nn.SiLU(inplace=True))


class Net(nn.Module):
    def __init__(self, num_classes=2):
        super().__init__()
        self.stem = ConvBNAct(3, 8, 2)
        self.blocks = nn.ModuleList([ConvBNAct(8, 8) for _ in range(2)])
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(8, num_classes)
        self._init_weights()

    def _init_weights(self):
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(m, nn.BatchNorm2d):
                nn.init.constant_(m.weight, 1)
                nn.init.constant_(m.bias, 0)
            elif isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, 0, 0.01)
                nn.init.zeros_(m.bias)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = x + block(x)
        x = self.pool(x).flatten(1)
        return self.fc(x)


def lr_lambda(step, warmup=4, total=24):
    if step < warmup:
        return float(step + 1) / float(max(1, warmup))
    progress = float(step - warmup) / float(max(1, total - warmup))
    return max(0.0, 0.5 * (1.0 + math.cos(math.pi * progress)))


def train_one_epoch(model, loader, criterion, optimizer, scheduler, scaler, ema, device, epoch, writer):
    model.train()
    losses = AverageMeter()
    pbar = tqdm(loader, desc=f"Epoch {epoch}", disable=True)
    for step, (images, targets) in enumerate(pbar):
        images, targets = images.to(device, non_blocking=True), targets.to(device)
        optimizer.zero_grad(set_to_none=True)
        with autocast(enabled=False):
            outputs = model(images)
            loss = criterion(outputs, targets)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        scaler.step(optimizer)
        scaler.update()
        scheduler.step()
        ema.update(model)
        losses.update(loss.item(), images.size(0))
        pbar.set_postfix(loss=losses.avg, lr=optimizer.param_groups[0]["lr"])
        if writer is not None:
            writer.add_scalar("train/loss", loss.item(), epoch * len(loader) + step)
    return losses.avg


@torch.no_grad()
def evaluate(model, loader, criterion, device):
    model.eval()
    losses, correct, total = AverageMeter(), 0, 0
    for images, targets in tqdm(loader, leave=False, disable=True):
        images, targets = images.to(device), targets.to(device)
        outputs = model(images)
        losses.update(criterion(outputs, targets).item(), images.size(0))
        _, predicted = torch.max(outputs, 1)
        correct += predicted.eq(targets).sum().item()
        total += targets.size(0)
    return losses.avg, 100.0 * correct / total


def main(args):
    seed_everything(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    dataset = Images(transform=Normalize([0.5, 0.5, 0.5], [0.25, 0.25, 0.25]))
    train_loader = DataLoader(dataset, batch_size=args.batch_size, shuffle=True, num_workers=0, pin_memory=True, drop_last=True)
    val_loader = DataLoader(dataset, batch_size=16, shuffle=False)
    model = Net().to(device)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.05)
    scheduler = optim.lr_scheduler.LambdaLR(optimizer, lr_lambda=lr_lambda)
    scaler = GradScaler(enabled=torch.cuda.is_available())
    ema = ModelEMA(model)
    stopper = EarlyStopping(patience=2)
    writer = SummaryWriter("runs/exp") if SummaryWriter is not None and args.log else None
    for epoch in range(args.epochs):
        start = time.time()
        train_loss = train_one_epoch(model, train_loader, criterion, optimizer, scheduler, scaler, ema, device, epoch, writer)
        val_loss, acc = evaluate(ema.ema, val_loader, criterion, device)
        print(f"Epoch {epoch}: train {train_loss:.4f} val {val_loss:.4f} acc {acc:.2f}")
        stopper(val_loss, ema.ema)
        if stopper.early_stop:
            print("Early stopping")
            break


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch_size", type=int, default=8)
    parser.add_argument("--lr", type=float, default=1e-2)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--log", action="store_true")
    main(parser.parse_args())
