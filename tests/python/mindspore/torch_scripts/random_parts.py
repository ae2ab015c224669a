"""Random numbers of a generator of their own: splits, permutations, numbers of a given size."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

g = torch.Generator().manual_seed(3)
x = torch.randn(40, 4, generator=g)
y = torch.randint(0, 3, (40,), generator=g)
order = torch.randperm(40, generator=g)
data = TensorDataset(x[order], y[order])
part, rest = random_split(data, [30, 10], generator=torch.Generator().manual_seed(42))
net = nn.Sequential(nn.Linear(4, 16), nn.Dropout(0.2), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
criterion = nn.CrossEntropyLoss()


def evaluate(loader):
    net.eval()
    with torch.no_grad():
        right = sum((net(a).argmax(1, keepdim=True).squeeze(1) == b).sum().item() for a, b in loader)
    net.train()
    return right


for epoch in range(2):
    for a, b in DataLoader(part, batch_size=10, shuffle=True):
        loss = criterion(net(a + 0.1 * torch.randn(a.size())), b)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item(), evaluate(DataLoader(rest, batch_size=5)))
