"""Sizes given to constructors, tensors without numbers that are trained, draws by tensors, mixtures, file names in variables."""

import torch
from torch import nn
from torch.distributions import Categorical, MixtureSameFamily, Normal
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.nn.utils import spectral_norm

torch.manual_seed(0)
words = "the cat sat on the mat".split()
ids = torch.LongTensor(len(words))
for i, word in enumerate(words):
    ids[i] = words.index(word)
table = torch.empty((len(words), 4), requires_grad=True)
shift = torch.empty(4, dtype=torch.float, requires_grad=True)
table.data = torch.linspace(-1, 1, 4 * len(words)).reshape(len(words), 4)
shift.data = torch.zeros(4)
kept = [table, shift]
net = nn.Sequential(spectral_norm(nn.Linear(4, 4)), nn.Tanh(), nn.Linear(4, 6))
optimizer = torch.optim.Adamax(kept, lr=1e-2)
other = torch.optim.SGD(net.parameters(), lr=1e-1)


def save(model, path):
    torch.save((model.module if isinstance(model, DDP) else model).state_dict(), path)


for step in range(5):
    weight, mean, scale = net(table[ids] + shift).chunk(3, 1)
    mixture = MixtureSameFamily(Categorical(logits=weight), Normal(mean, scale.exp()))
    noise = torch.normal(mean.detach(), scale.detach().exp())
    product = mean @ scale.t()
    loss = -mixture.log_prob(noise[:, 0]).mean() + torch.diag(product, 1).sum() ** 2 + product.diag(-2).mean()
    optimizer.zero_grad()
    other.zero_grad()
    loss.backward()
    optimizer.step()
    other.step()
    save(net, f"step{step}.pth")
net.load_state_dict(torch.load("step4.pth"))
