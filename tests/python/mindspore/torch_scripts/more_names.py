"""Layers and functions that are combinations in MindSpore, each a part of one loss."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Beta, Exponential, Laplace, MultivariateNormal


class Bags(nn.Module):
    def __init__(self, mode):
        super().__init__()
        self.bag, self.out = nn.EmbeddingBag(20, 6, mode=mode), nn.Linear(6, 3)

    def forward(self, words, offsets):
        return self.out(self.bag(words, offsets))


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3, padding=1)
        self.norm, self.pad = nn.LocalResponseNorm(3), nn.ReplicationPad2d(1)
        self.gate, self.shrink, self.fold = nn.GLU(1), nn.Softshrink(0.1), nn.Unfold(2, stride=2)
        self.shape, self.out = nn.Unflatten(1, (4, 4)), nn.Linear(16, 3)

    def forward(self, x):
        x = self.shrink(self.gate(self.pad(self.norm(self.conv(x)))))
        x = self.shape(self.fold(x).max(-1)[0])
        return self.out(nn.Flatten(1, -1)(x)), nn.Softmax2d()(x.unsqueeze(0)).sum()


def parts(z):
    yield F.normalize(z, p=1, dim=1).abs().max()
    yield torch.norm(z, 1, 1).mean() + torch.norm(z, p="fro") + z.norm(3)
    yield torch.take(z, torch.tensor([0, 3])).sum() + torch.take_along_dim(z, z.argmax(1, keepdim=True), 1).sum()
    yield z.unfold(1, 2, 1).prod(-1).sum() + z.clamp_min(0.1).sum() + torch.add(z, z, alpha=2).mean()
    yield F.pad(z.unsqueeze(1), (1, 2), mode="circular").mean() + F.softplus(z, 2.0).mean()
    yield F.kl_div(F.log_softmax(z, 1), F.log_softmax(z * 2, 1), log_target=True, reduction="batchmean")
    yield F.instance_norm(z.view(2, 2, -1)).pow(3).mean() + F.multilabel_soft_margin_loss(z, (z > 0).float())
    yield torch.index_copy(torch.zeros(4, 3), 0, torch.tensor([1, 3]), z[:2]).sum() + torch.logit(z.sigmoid()).sum()
    yield MultivariateNormal(torch.zeros(3), torch.eye(3) * 2 + 0.5).log_prob(z).mean()
    yield Laplace(z, 1.5).log_prob(torch.ones_like(z)).mean() + Exponential(z.exp()).log_prob(torch.ones_like(z)).mean()
    yield Beta(z.exp(), z.exp() + 1).log_prob(torch.full_like(z, 0.3)).mean() + Beta(z.exp(), 2 * z.exp()).entropy().mean()


torch.manual_seed(0)
words, offsets = torch.arange(12) % 7, torch.tensor([0, 3, 3, 8])
bags, images = [Bags("mean"), Bags("sum")], Images()
weights = [p for net in (*bags, images) for p in net.parameters()]
optimizer = torch.optim.SGD(weights, lr=0.01)
pictures = torch.rand(4, 1, 2, 2)
for step in range(3):
    optimizer.zero_grad()
    scores, total = images(pictures)
    z = scores + bags[0](words, offsets) + bags[1](words, offsets)
    loss = sum(parts(z)) * 0.01 + total * 0.01
    loss.backward()
    optimizer.step()
    print(loss.item())
