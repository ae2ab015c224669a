"""A U-Net by cross entropy and dice over shapes, with rows by name, keyword arguments in a dictionary and mixed precision."""
import os
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import Dataset, DataLoader, random_split
from torch.optim.lr_scheduler import ReduceLROnPlateau

class Shapes(Dataset):
    def __init__(self, n=96, size=32, transform=None):
        rng = np.random.RandomState(0)
        self.images = rng.rand(n, 3, size, size).astype(np.float32) * 0.3
        self.masks = np.zeros((n, 1, size, size), np.float32)
        for i in range(n):
            r, c = rng.randint(4, 20, 2); h, w = rng.randint(5, 12, 2)
            self.masks[i, 0, r:r + h, c:c + w] = 1
            self.images[i, :, r:r + h, c:c + w] += 0.5
        self.transform = transform
    def __len__(self):
        return self.images.shape[0]
    def __getitem__(self, idx):
        image, mask = self.images[idx], self.masks[idx]
        if self.transform is not None:
            image, mask = self.transform(image, mask)
        return {'image': torch.from_numpy(image), 'mask': torch.from_numpy(mask)}

class DoubleConv(nn.Module):
    """(convolution => [BN] => ReLU) * 2"""
    def __init__(self, in_channels, out_channels, mid_channels=None):
        super().__init__()
        if not mid_channels:
            mid_channels = out_channels
        self.double_conv = nn.Sequential(
            nn.Conv2d(in_channels, mid_channels, kernel_size=3, padding=1, bias=False),
            nn.GroupNorm(4, mid_channels), nn.ReLU(inplace=True),
            nn.Conv2d(mid_channels, out_channels, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(out_channels), nn.PReLU())
    def forward(self, x):
        return self.double_conv(x)

class Up(nn.Module):
    def __init__(self, in_channels, out_channels, bilinear=True):
        super().__init__()
        if bilinear:
            self.up = nn.Upsample(scale_factor=2, mode='bilinear', align_corners=True)
            self.conv = DoubleConv(in_channels, out_channels, in_channels // 2)
        else:
            self.up = nn.ConvTranspose2d(in_channels, in_channels // 2, kernel_size=2, stride=2)
            self.conv = DoubleConv(in_channels, out_channels)
    def forward(self, x1, x2):
        x1 = self.up(x1)
        diffY = x2.size()[2] - x1.size()[2]
        diffX = x2.size()[3] - x1.size()[3]
        x1 = F.pad(x1, [diffX // 2, diffX - diffX // 2, diffY // 2, diffY - diffY // 2])
        x = torch.cat([x2, x1], dim=1)
        return self.conv(x)

class UNet(nn.Module):
    def __init__(self, n_channels=3, n_classes=1, bilinear=True):
        super(UNet, self).__init__()
        self.inc = DoubleConv(n_channels, 8)
        self.down1 = nn.Sequential(nn.MaxPool2d(2), DoubleConv(8, 16))
        self.down2 = nn.Sequential(nn.MaxPool2d(2), DoubleConv(16, 16))
        self.up1 = Up(32, 8, bilinear)
        self.up2 = Up(16, 8, bilinear)
        self.outc = nn.Conv2d(8, n_classes, kernel_size=1)
    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.down1(x1)
        x3 = self.down2(x2)
        return self.outc(self.up2(self.up1(x3, x2), x1))

def dice_coeff(input, target, epsilon=1e-6):
    sum_dim = (-1, -2, -3)
    inter = 2 * (input * target).sum(dim=sum_dim)
    sets_sum = input.sum(dim=sum_dim) + target.sum(dim=sum_dim)
    sets_sum = torch.where(sets_sum == 0, inter, sets_sum)
    return ((inter + epsilon) / (sets_sum + epsilon)).mean()

def dice_loss(input, target):
    return 1 - dice_coeff(input, target)

@torch.inference_mode()
def evaluate(net, loader, device):
    net.eval()
    score = 0
    for batch in loader:
        image, mask_true = batch['image'], batch['mask']
        image = image.to(device=device, dtype=torch.float32, memory_format=torch.channels_last)
        mask_pred = net(image)
        mask_pred = (torch.sigmoid(mask_pred) > 0.5).float()
        score += dice_coeff(mask_pred, mask_true)
    net.train()
    return score / max(len(loader), 1)

def train_model(model, device, epochs=2, batch_size=8, lr=1e-3, amp=False):
    dataset = Shapes()
    n_val = int(len(dataset) * 0.25)
    train_set, val_set = random_split(dataset, [len(dataset) - n_val, n_val], generator=torch.Generator().manual_seed(0))
    loader_args = dict(batch_size=batch_size, num_workers=0, pin_memory=True)
    train_loader = DataLoader(train_set, shuffle=True, **loader_args)
    val_loader = DataLoader(val_set, shuffle=False, drop_last=True, **loader_args)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=lr, weight_decay=1e-8, momentum=0.9, foreach=True)
    scheduler = ReduceLROnPlateau(optimizer, 'max', patience=5)
    grad_scaler = torch.cuda.amp.GradScaler(enabled=amp)
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(1, epochs + 1):
        model.train()
        epoch_loss = 0
        for batch in train_loader:
            images, true_masks = batch['image'], batch['mask']
            assert images.shape[1] == 3, 'bad channels'
            images = images.to(device=device, dtype=torch.float32)
            with torch.autocast(device.type if device.type != 'mps' else 'cpu', enabled=amp):
                masks_pred = model(images)
                loss = criterion(masks_pred.squeeze(1), true_masks.squeeze(1).float())
                loss += dice_loss(torch.sigmoid(masks_pred.squeeze(1)), true_masks.squeeze(1).float())
            optimizer.zero_grad(set_to_none=True)
            grad_scaler.scale(loss).backward()
            grad_scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            grad_scaler.step(optimizer)
            grad_scaler.update()
            epoch_loss += loss.item()
        val_score = evaluate(model, val_loader, device)
        scheduler.step(val_score)
        print('epoch', epoch, 'loss', epoch_loss / len(train_loader), 'dice', float(val_score))

if __name__ == '__main__':
    torch.manual_seed(0)
    device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
    net = UNet().to(memory_format=torch.channels_last)
    net.to(device=device)
    train_model(net, device)
    os.makedirs('ckpt', exist_ok=True)
    torch.save(net.state_dict(), os.path.join('ckpt', 'unet.pth'))
    print('params', sum(p.numel() for p in net.parameters() if p.requires_grad))
