"""Nets for inference of kinds that the other files do not have: gates, tables, sets, random features, small heads. As nets_vision.py."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from cases.nets_other import dense, tokens
from cases.nets_vision import Call, conv, head, image, normal


def attention_unet():
    """Gates weigh what the encoder hands over."""

    def gate(p, skip, x):
        return skip * torch.sigmoid(p["mask"](F.relu(p["skip"](skip) + F.interpolate(p["x"](x), scale_factor=2))))

    def run(p, x):
        kept = []
        for part in p["down"]:
            kept.append(part(x))
            x = F.max_pool2d(kept[-1], 2)
        x = p["middle"](x)
        for i, part in enumerate(p["up"]):
            skip = gate(p["gates"][i], kept[-1 - i], x)
            x = part(torch.cat([F.interpolate(x, scale_factor=2), skip], 1))
        return p["out"](x)

    widths = (32, 64, 128)
    gates = [
        nn.ModuleDict({"skip": nn.Conv2d(w, w // 2, 1), "x": nn.Conv2d(2 * w, w // 2, 1), "mask": nn.Conv2d(w // 2, 1, 1)}) for w in widths[::-1]
    ]
    return Call(run, down=nn.ModuleList(nn.Sequential(conv(i, o), conv(o, o)) for i, o in zip((3, *widths), widths)), middle=conv(128, 256),
                up=nn.ModuleList(nn.Sequential(conv(3 * w, w), conv(w, w)) for w in widths[::-1]), gates=nn.ModuleList(gates),
                out=nn.Conv2d(32, 4, 1)), image(96)  # fmt: skip


def mobilenet_v1():
    parts, channels = [conv(3, 32, stride=2)], 32
    for width, stride in ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1), (512, 1), (1024, 2)):
        parts += [conv(channels, channels, stride=stride, groups=channels), conv(channels, width, 1)]
        channels = width
    return nn.Sequential(*parts, head(1024)), image()


def xception_blocks():
    def separable(inputs, outputs):
        return nn.Sequential(nn.ReLU(), conv(inputs, inputs, groups=inputs, activation=None), conv(inputs, outputs, 1, activation=None))

    class Block(nn.Module):
        def __init__(self, inputs, outputs):
            super().__init__()
            self.inner = nn.Sequential(separable(inputs, outputs), separable(outputs, outputs), nn.MaxPool2d(3, 2, 1))
            self.short = conv(inputs, outputs, 1, 2, activation=None)

        def forward(self, x):
            return self.inner(x) + self.short(x)

    return nn.Sequential(conv(3, 32, stride=2), conv(32, 64), Block(64, 128), Block(128, 256), Block(256, 512), head(512)), image(160)


def ghost_net():
    class Ghost(nn.Module):
        def __init__(self, inputs, outputs, stride=1):
            super().__init__()
            self.plain = conv(inputs, outputs // 2, 1, stride)
            self.cheap = conv(outputs // 2, outputs // 2, groups=outputs // 2)

        def forward(self, x):
            x = self.plain(x)
            return torch.cat([x, self.cheap(x)], 1)

    return nn.Sequential(conv(3, 16, stride=2), Ghost(16, 48), Ghost(48, 64, 2), Ghost(64, 128), Ghost(128, 160, 2), Ghost(160, 256), head(256)), image()


def res2net_block():
    def run(p, x):
        y, made = p["into"](x), []
        for i, part in enumerate(y.chunk(4, 1)):
            made.append(part if i == 0 else p["steps"][i - 1](part if i == 1 else part + made[-1]))
        return F.relu(x + p["out"](torch.cat(made, 1)))

    block = lambda: Call(run, into=conv(128, 128, 1), steps=nn.ModuleList(conv(32, 32) for _ in range(3)), out=conv(128, 128, 1, activation=None))  # noqa: E731
    return nn.Sequential(conv(3, 128, 7, 4), block(), block(), block(), head(128)), image(128)


def high_resolution_exchange():
    """Two branches of different sizes that add to each other (HRNet)."""

    def run(p, x):
        fine = p["stem"](x)
        coarse = p["down"](fine)
        for stage in p["stages"]:
            fine, coarse = stage["fine"](fine), stage["coarse"](coarse)
            up = F.interpolate(stage["up"](coarse), scale_factor=2)
            fine, coarse = F.relu(fine + up), F.relu(coarse + stage["lower"](fine))
        return p["out"](fine)

    stages = [
        nn.ModuleDict({"fine": conv(32, 32), "coarse": conv(64, 64), "up": conv(64, 32, 1, activation=None),
                       "lower": conv(32, 64, stride=2, activation=None)}) for _ in range(3)
    ]  # fmt: skip
    return Call(run, stem=conv(3, 32, stride=2), down=conv(32, 64, stride=2), stages=nn.ModuleList(stages), out=nn.Conv2d(32, 17, 1)), image(96)


def coordinates_net():
    """A net of coordinates (SIREN): sines between dense layers, many points at once."""

    def run(p, x):
        x = torch.cat([f(2.0**i * x) for i in range(6) for f in (torch.sin, torch.cos)], -1)
        for part in p["layers"]:
            x = torch.sin(30 * part(x))
        return torch.sigmoid(p["out"](x))

    layers = nn.ModuleList(nn.Linear(i, 128) for i in (36, 128, 128))
    return Call(run, layers=layers, out=nn.Linear(128, 4)), normal(2048, 3)


def tabular_attention():
    """Steps that choose among columns (TabNet)."""

    def sparse(x):
        sorted_, _ = torch.sort(x, -1, descending=True)
        places = torch.arange(1, x.shape[-1] + 1, dtype=torch.float32)
        sums = torch.cumsum(sorted_, -1)
        support = (1 + places * sorted_ > sums).to(torch.float32)
        count = support.sum(-1, keepdim=True)
        level = (torch.where(support > 0, sorted_, torch.zeros_like(sorted_)).sum(-1, keepdim=True) - 1) / count
        return F.relu(x - level)

    def run(p, x):
        x, prior, total = p["norm"](x), torch.ones(64, 54), 0
        h = p["first"](x)
        for i in range(3):
            mask = sparse(p["choose"][i](h) * prior)
            prior = prior * (1.3 - mask)
            h = F.glu(p["steps"][i](mask * x), -1)
            total = total + F.relu(h)
        return p["out"](total)

    return Call(run, norm=nn.BatchNorm1d(54), first=nn.Linear(54, 32), choose=nn.ModuleList(nn.Linear(32, 54) for _ in range(3)),
                steps=nn.ModuleList(nn.Linear(54, 64) for _ in range(3)), out=nn.Linear(32, 7)), normal(64, 54)  # fmt: skip


def mixture_density_recurrence():
    def run(p, x):
        h, _ = p["cells"](x)
        shares, means, spreads = p["out"](h).chunk(3, -1)
        return shares.softmax(-1), means, spreads.exp()

    return Call(run, cells=nn.LSTM(16, 64, batch_first=True), out=nn.Linear(64, 60)), normal(1, 40, 16)


def random_feature_attention():
    """Attention by positive random features (Performer)."""

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out, self.n1, self.n2 = nn.Linear(128, 384), nn.Linear(128, 128), nn.LayerNorm(128), nn.LayerNorm(128)
            self.inner = dense((128, 256, 128), nn.GELU)
            self.register_buffer("turn", torch.randn(32, 64))

        def features(self, x):
            return torch.exp((x / 32**0.25) @ self.turn - (x * x).sum(-1, keepdim=True) / (2 * 32**0.5)) / 8 + 1e-4

        def forward(self, x):
            q, k, v = (part.reshape(1, 256, 4, 32).transpose(1, 2) for part in self.qkv(self.n1(x)).chunk(3, -1))
            q, k = self.features(q), self.features(k)
            made = (q @ (k.transpose(-2, -1) @ v)) / (q @ k.sum(-2, keepdim=True).transpose(-2, -1))
            x = x + self.out(made.transpose(1, 2).reshape(1, 256, 128))
            return x + self.inner(self.n2(x))

    return nn.Sequential(Layer(), Layer(), nn.Linear(128, 64)), normal(1, 256, 128)


def set_transformer():
    def attend(p, q, x):
        k, v = p["k"](x), p["v"](x)
        return p["norm"](q + (p["q"](q) @ k.transpose(-2, -1) / 8).softmax(-1) @ v)

    def run(p, x):
        x = p["into"](x)
        for part in p["blocks"]:
            few = attend(part["few"], part["points"].weight[None], x)
            x = attend(part["all"], x, few)
        return p["out"](attend(p["pool"], p["seeds"].weight[None], x))

    three = lambda: nn.ModuleDict({"q": nn.Linear(64, 64), "k": nn.Linear(64, 64), "v": nn.Linear(64, 64), "norm": nn.LayerNorm(64)})  # noqa: E731
    blocks = [nn.ModuleDict({"few": three(), "all": three(), "points": nn.Embedding(16, 64)}) for _ in range(2)]
    return Call(run, into=nn.Linear(3, 64), blocks=nn.ModuleList(blocks), pool=three(), seeds=nn.Embedding(4, 64),
                out=nn.Linear(64, 10)), normal(1, 500, 3)  # fmt: skip


def graph_isomorphism():
    """Sums over neighbours by a dense matrix, and sums of each layer as the graph's features."""

    def run(p, x, edges):
        kept = []
        for part in p["layers"]:
            x = part(1.1 * x + edges @ x)
            kept.append(x.sum(1))
        return p["out"](torch.cat(kept, -1))

    edges = (np.random.RandomState(3).rand(1, 60, 60) < 0.1).astype(np.float32)
    layers = nn.ModuleList(nn.Sequential(nn.Linear(i, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU()) for i in (16, 64, 64))
    return Call(run, layers=layers, out=nn.Linear(192, 2)), normal(1, 60, 16), edges


def conditioned_by_text():
    """Words shift and scale an image's channels (FiLM)."""

    def run(p, x, ids):
        _, h = p["cells"](p["words"](ids))
        for part, tune in zip(p["blocks"], p["tunes"]):
            scale, shift = tune(h[0])[..., None, None].chunk(2, 1)
            y = part["a"](x)
            x = y + F.relu(part["b"](y) * (1 + scale) + shift)
        return p["out"](x)

    blocks = [nn.ModuleDict({"a": conv(i, 64, 1), "b": conv(64, 64, activation=None)}) for i in (32, 64, 64)]
    return Call(run, words=nn.Embedding(100, 64), cells=nn.GRU(64, 64, batch_first=True), blocks=nn.ModuleList(blocks),
                tunes=nn.ModuleList(nn.Linear(64, 128) for _ in blocks), out=head(64, 28)), normal(1, 32, 28, 28), tokens(1, 12, words=100)  # fmt: skip


def weights_made_by_a_net():
    """A small net makes the weights of another (hypernetwork)."""

    def run(p, x, context):
        weights = p["make"](context)
        a, b = weights[:, :2048].reshape(32, 64), weights[:, 2048:].reshape(64, 8)
        return F.relu(x @ a) @ b

    return Call(run, make=dense((16, 128, 2560))), normal(256, 32), normal(1, 16)


def series_by_bases():
    """Blocks that explain a series and hand on the rest (N-BEATS)."""

    def run(p, x):
        total = 0
        for part in p["blocks"]:
            h = part["inner"](x)
            x, total = x - part["back"](h), total + part["ahead"](h)
        return total

    blocks = [nn.ModuleDict({"inner": dense((96, 128, 128, 128)), "back": nn.Linear(128, 96), "ahead": nn.Linear(128, 24)}) for _ in range(8)]
    return Call(run, blocks=nn.ModuleList(blocks)), normal(1, 96)


def twins_of_signatures():
    def run(p, a, b):
        return torch.sqrt(((p["net"](a) - p["net"](b)) ** 2).sum(-1) + 1e-6)

    net = nn.Sequential(nn.Conv2d(1, 8, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(256, 32))
    return Call(run, net=net), image(28, 1), image(28, 1)[:, :, ::-1].copy()
