"""F.* everywhere, einsum, own parameters in ParameterDict, mixup, one training function."""
import torch
import torch.nn.functional as F
from torch import einsum, nn


class Functional(nn.Module):
    def __init__(self, dim=16, heads=2):
        super().__init__()
        self.heads = heads
        self.w_in = nn.Parameter(torch.empty(8, 3, 3, 3))
        self.b_in = nn.Parameter(torch.zeros(8))
        self.gamma, self.beta = nn.Parameter(torch.ones(8)), nn.Parameter(torch.zeros(8))
        self.qkv = nn.Parameter(torch.randn(8, 3 * dim) * 0.1)
        self.out = nn.Parameter(torch.randn(dim, 5) * 0.1)
        self.scale = dim ** -0.5
        self.pos = nn.Parameter(torch.randn(1, 16, 8) * 0.02)
        nn.init.kaiming_uniform_(self.w_in, a=5 ** 0.5)

    def forward(self, x):
        x = F.conv2d(x, self.w_in, self.b_in, stride=2, padding=1)
        x = F.group_norm(x, 4, self.gamma, self.beta)
        x = F.gelu(x)
        x = F.avg_pool2d(x, 2) + F.interpolate(F.max_pool2d(x, 4), scale_factor=2, mode="nearest")
        b, c, h, w = x.shape
        x = x.flatten(2).transpose(1, 2) + self.pos
        q, k, v = (x @ self.qkv).chunk(3, dim=-1)
        q, k, v = map(lambda t: t.reshape(b, h * w, self.heads, -1).permute(0, 2, 1, 3), (q, k, v))
        sim = einsum("b h i d, b h j d -> b h i j", q, k) * self.scale
        attn = sim.softmax(dim=-1)
        y = torch.einsum("bhij,bhjd->bhid", attn, v)
        y = y.permute(0, 2, 1, 3).contiguous().view(b, h * w, -1)
        y = F.layer_norm(y, (y.shape[-1],))
        y = F.normalize(y.mean(1), dim=-1)
        return F.linear(y, self.out.t()) * 4


def mixup(x, y, lam=0.7, classes=5):
    index = torch.arange(x.size(0) - 1, -1, -1)
    onehot = F.one_hot(y, classes).float()
    return lam * x + (1 - lam) * x[index], lam * onehot + (1 - lam) * onehot[index]


torch.manual_seed(0)
net = Functional()
opt = torch.optim.Adamax(net.parameters(), lr=0.01)
sched = torch.optim.lr_scheduler.ExponentialLR(opt, gamma=0.95)
x = torch.randn(12, 3, 16, 16)
y = torch.randint(5, (12,))
for step in range(6):
    mixed, target = mixup(x, y)
    logits = net(mixed)
    loss = -(target * F.log_softmax(logits, dim=1)).sum(dim=1).mean()
    loss = loss + 0.1 * F.kl_div(F.log_softmax(logits, -1), F.softmax(logits.detach().roll(1, 0), -1), reduction="batchmean")
    loss = loss + 1e-3 * sum(p.pow(2).sum() for p in net.parameters())
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
    print("step", step, "loss %.5f" % loss.item(), "top2", logits.topk(2, dim=1)[1].eq(y.view(-1, 1)).any(dim=1).float().mean().item())
