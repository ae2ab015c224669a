"""A small network learns from a larger one on digits: soft labels, label smoothing, one-cycle rates, best weights kept."""
import torch, random
import numpy as np
from torch import nn, optim
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import Dataset, DataLoader


def seed_everything(seed=42):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)
    torch.backends.cudnn.deterministic = True


class Digits(Dataset):
    def __init__(self, train=True):
        x, y = load_digits(return_X_y=True)
        xs = train_test_split(x, y, test_size=0.2, random_state=0)
        self.x = xs[0] if train else xs[1]
        self.y = xs[2] if train else xs[3]
        self.train = train

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        img = torch.from_numpy(self.x[i]).float().view(1, 8, 8) / 16.0
        return img, int(self.y[i])


def conv_bn(cin, cout, k=3, s=1):
    return nn.Sequential(nn.Conv2d(cin, cout, k, s, k // 2, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True))


class Teacher(nn.Module):
    def __init__(self, num_classes=10):
        super(Teacher, self).__init__()
        self.features = nn.Sequential(conv_bn(1, 32), conv_bn(32, 32), nn.MaxPool2d(2), conv_bn(32, 64), nn.AdaptiveAvgPool2d(1))
        self.drop = nn.Dropout(0.0)
        self.fc = nn.Linear(64, num_classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode='fan_out', nonlinearity='relu')
            elif isinstance(m, nn.BatchNorm2d):
                nn.init.constant_(m.weight, 1)
                nn.init.constant_(m.bias, 0)

    def forward(self, x):
        x = self.features(x)
        x = torch.flatten(x, 1)
        return self.fc(self.drop(x))


class Student(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))

    def forward(self, x):
        return self.net(x)


class KDLoss(nn.Module):
    def __init__(self, T=4.0, alpha=0.5):
        super().__init__()
        self.T, self.alpha = T, alpha
        self.kl = nn.KLDivLoss(reduction='batchmean')

    def forward(self, s, t, y):
        soft = self.kl(F.log_softmax(s / self.T, dim=1), F.softmax(t / self.T, dim=1)) * (self.T ** 2)
        return self.alpha * soft + (1 - self.alpha) * F.cross_entropy(s, y, label_smoothing=0.1)


def evaluate(model, loader, device):
    model.eval()
    correct = total = 0
    with torch.no_grad():
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            _, pred = torch.max(model(x), 1)
            correct += (pred == y).sum().item()
            total += y.size(0)
    return 100. * correct / total


def train_teacher(model, loader, device, epochs):
    opt = optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4, nesterov=True)
    sched = optim.lr_scheduler.OneCycleLR(opt, max_lr=0.1, epochs=epochs, steps_per_epoch=len(loader))
    crit = nn.CrossEntropyLoss().to(device)
    for ep in range(epochs):
        model.train()
        running = 0.0
        for i, (x, y) in enumerate(loader):
            x, y = x.to(device), y.to(device)
            opt.zero_grad()
            out = model(x)
            loss = crit(out, y)
            loss.backward()
            opt.step()
            sched.step()
            running += loss.item()
        print('teacher %d: %.3f' % (ep + 1, running / len(loader)))


def main():
    seed_everything()
    device = 'cuda' if torch.cuda.is_available() else 'cpu'
    tr = DataLoader(Digits(True), batch_size=64, shuffle=True, num_workers=0, pin_memory=True)
    te = DataLoader(Digits(False), batch_size=256)
    teacher, student = Teacher().to(device), Student().to(device)
    train_teacher(teacher, tr, device, 2)
    print('teacher acc', evaluate(teacher, te, device))
    torch.save(teacher.state_dict(), 'teacher.pth')
    for p in teacher.parameters():
        p.requires_grad = False
    teacher.eval()
    kd = KDLoss()
    optimizer = optim.Adam([{'params': student.net[1].parameters(), 'lr': 1e-3}, {'params': student.net[3].parameters()}], lr=2e-3, betas=(0.9, 0.99))
    best = 0
    for ep in range(2):
        student.train()
        for x, y in tr:
            x, y = x.to(device), y.to(device)
            with torch.no_grad():
                t_logits = teacher(x)
            s_logits = student(x)
            loss = kd(s_logits, t_logits, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        acc = evaluate(student, te, device)
        if acc > best:
            best = acc
            torch.save({'epoch': ep, 'state_dict': student.state_dict(), 'optimizer': optimizer.state_dict()}, 'best.pth')
        print(f'epoch {ep}: loss {loss.item():.4f} acc {acc:.2f}%')


if __name__ == '__main__':
    main()
