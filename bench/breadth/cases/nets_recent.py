"""Nets for inference of recent kinds: scans over states, mixing without attention, fields, vocoders, points, detectors by queries.
As nets_vision.py."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from cases.nets_other import dense, tokens
from cases.nets_vision import Call, PlainAttention, conv, excite, head, image, normal, residual


def selective_scan():
    """A Mamba block: gates by the input choose what a state of 16 numbers a channel keeps, step by step."""

    def run(p, x):
        h, gate = p["into"](p["norm"](x)).chunk(2, -1)
        h = F.silu(p["conv"](h.transpose(1, 2))[:, :, :32].transpose(1, 2))
        step, b, c = p["parts"](h).split([8, 16, 16], -1)
        step = F.softplus(p["step"](step))
        decay = torch.exp(-step[..., None] * torch.arange(1.0, 17))
        add = (step * h)[..., None] * b[:, :, None]
        state, made = torch.zeros(1, 256, 16), []
        for t in range(32):
            state = decay[:, t] * state + add[:, t]
            made.append((state * c[:, t, None]).sum(-1))
        return x + p["out"]((torch.stack(made, 1) + h) * F.silu(gate))

    return Call(run, norm=nn.LayerNorm(128), into=nn.Linear(128, 512), conv=nn.Conv1d(256, 256, 4, padding=3, groups=256), parts=nn.Linear(256, 40),
                step=nn.Linear(8, 256), out=nn.Linear(256, 128)), normal(1, 32, 128)  # fmt: skip


def weighted_keys_and_values():
    """RWKV: exponentially decaying sums instead of attention, and channels gated by the last token."""

    def shifted(x):
        return F.pad(x, (0, 0, 1, -1))

    def run(p, x):
        h = p["n1"](x)
        mixed = 0.5 * h + 0.5 * shifted(h)
        k, v, r = p["k"](mixed), p["v"](mixed), torch.sigmoid(p["r"](mixed))
        top, bottom, most, made = torch.zeros(1, 192), torch.zeros(1, 192), torch.full((1, 192), -1e9), []
        for t in range(24):
            here = torch.maximum(most, 0.3 + k[:, t])
            a, b = torch.exp(most - here), torch.exp(0.3 + k[:, t] - here)
            made.append((a * top + b * v[:, t]) / (a * bottom + b))
            here = torch.maximum(most - 0.1, k[:, t])
            a, b = torch.exp(most - 0.1 - here), torch.exp(k[:, t] - here)
            top, bottom, most = a * top + b * v[:, t], a * bottom + b, here
        x = x + p["out"](r * torch.stack(made, 1))
        h = p["n2"](x)
        mixed = 0.5 * h + 0.5 * shifted(h)
        return x + torch.sigmoid(p["gate"](mixed)) * p["down"](torch.square(F.relu(p["up"](mixed))))

    parts = {name: nn.Linear(192, 192) for name in ("k", "v", "r", "out", "gate")}
    return Call(run, n1=nn.LayerNorm(192), n2=nn.LayerNorm(192), up=nn.Linear(192, 768), down=nn.Linear(768, 192), **parts), normal(1, 24, 192)


def retention():
    """RetNet in its parallel form: decays instead of softmax, a norm for each head."""
    decay = 1 - 2.0 ** (-5 - torch.arange(4.0))
    distance = torch.arange(64)[:, None] - torch.arange(64)
    mask = torch.where(distance >= 0, decay[:, None, None] ** distance.clamp(min=0), torch.zeros(()))

    def run(p, x):
        h = p["n1"](x)
        q, k, v = (p[name](h).reshape(1, 64, 4, 64).transpose(1, 2) for name in "qkv")
        y = (q @ k.transpose(-2, -1) * mask) @ v
        y = F.layer_norm(y, (64,)).transpose(1, 2).reshape(1, 64, 256)
        x = x + p["out"](F.silu(p["gate"](h)) * y)
        return x + p["ffn"](p["n2"](x))

    parts = {name: nn.Linear(256, 256) for name in ("q", "k", "v", "gate", "out")}
    return Call(run, n1=nn.LayerNorm(256), n2=nn.LayerNorm(256), ffn=dense([256, 512, 256], nn.GELU), **parts), normal(1, 64, 256)


def gated_mlp():
    """gMLP: a dense layer along the tokens gates half of the channels."""

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.inner, self.up, self.down = nn.LayerNorm(128), nn.LayerNorm(256), nn.Linear(128, 512), nn.Linear(256, 128)
            self.along = nn.Conv1d(64, 64, 1)

        def forward(self, x):
            u, v = F.gelu(self.up(self.norm(x))).chunk(2, -1)
            return x + self.down(u * self.along(self.inner(v)))

    return nn.Sequential(nn.Embedding(5000, 128), *[Block() for _ in range(4)], nn.LayerNorm(128), nn.Linear(128, 64)), tokens(1, 64)


def mixing_by_waves():
    """FNet: the real part of Fourier transforms along tokens and channels, as products with cosines and sines."""

    def waves(n):
        angles = 2 * np.pi * np.outer(np.arange(n), np.arange(n)) / n
        return torch.tensor(np.cos(angles), dtype=torch.float32), torch.tensor(np.sin(angles), dtype=torch.float32)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.n1, self.n2, self.ffn = nn.LayerNorm(128), nn.LayerNorm(128), dense([128, 512, 128], nn.GELU)
            self.along, self.across = waves(64), waves(128)

        def forward(self, x):
            x = self.n1(x + self.along[0] @ x @ self.across[0] - self.along[1] @ x @ self.across[1])
            return self.n2(x + self.ffn(x))

    return nn.Sequential(nn.Embedding(5000, 128), *[Block() for _ in range(4)], nn.Linear(128, 16)), tokens(1, 64)


def state_spaces_by_convolution():
    """S4 with diagonal states: a kernel as long as the input from exponentials and cosines, applied as a matrix of shifts."""

    def run(p, x):
        rates, turns = p["rates"].weight.exp(), p["turns"].weight  # [64, 16]
        times = torch.arange(128.0)
        kernel = (torch.exp(-rates[..., None] * times) * torch.cos(turns[..., None] * times) * p["mix"].weight[..., None]).sum(1)
        places = (torch.arange(128)[:, None] - torch.arange(128)) % 128
        shifts = kernel[:, places] * torch.ones(128, 128).tril()
        y = (shifts @ x[..., None])[..., 0]
        return p["out"](F.gelu(y + x))

    def embedding(scale):
        made = nn.Embedding(64, 16)
        made.weight.data = made.weight.data * scale - (3 if scale < 1 else 0)
        return made

    return Call(run, rates=embedding(0.5), turns=embedding(1.0), mix=nn.Embedding(64, 16), out=nn.Conv1d(64, 32, 1)), normal(1, 64, 128)


def vocoder():
    """HiFi-GAN: transposed convolutions to audio, residual blocks of three kernels and three dilations."""

    class Receptive(nn.Module):
        def __init__(self, width, size):
            super().__init__()
            self.parts = nn.ModuleList(
                nn.Sequential(nn.LeakyReLU(0.1), nn.Conv1d(width, width, size, padding=size // 2 * d, dilation=d), nn.LeakyReLU(0.1),
                              nn.Conv1d(width, width, size, padding=size // 2))
                for d in (1, 3, 5)
            )  # fmt: skip

        def forward(self, x):
            for part in self.parts:
                x = x + part(x)
            return x

    def run(p, x):
        x = p["into"](x)
        for up, parts in zip(p["ups"], p["receptive"], strict=True):
            x = up(F.leaky_relu(x, 0.1))
            x = sum(part(x) for part in parts) / 3
        return torch.tanh(p["out"](F.leaky_relu(x)))

    widths = (128, 64, 32, 16)
    ups = [nn.ConvTranspose1d(i, o, 2 * r, r, r // 2) for i, o, r in zip(widths, widths[1:], (8, 4, 4), strict=False)]
    return Call(run, into=nn.Conv1d(80, 128, 7, padding=3), ups=nn.ModuleList(ups),
                receptive=nn.ModuleList(nn.ModuleList(Receptive(w, size) for size in (3, 7, 11)) for w in widths[1:]),
                out=nn.Conv1d(16, 1, 7, padding=3)), normal(1, 80, 32)  # fmt: skip


def speech_decoder_by_places():
    """Tacotron's decoder: attention that sees where it was, over eight steps."""

    def run(p, memory):
        keys = p["keys"](memory)
        h, c, context = torch.zeros(1, 128), torch.zeros(1, 128), torch.zeros(1, 128)
        weights, frame, made = torch.zeros(1, 1, 60), torch.zeros(1, 80), []
        for _ in range(8):
            h, c = p["cell"](torch.cat([p["before"](frame), context], 1), (h, c))
            places = p["places"](p["seen"](weights).transpose(1, 2))
            energies = p["energy"](torch.tanh(p["query"](h)[:, None] + keys + places))[..., 0]
            shares = energies.softmax(-1)
            weights = weights + shares[:, None]
            context = (shares[:, None] @ memory)[:, 0]
            frame = p["frame"](torch.cat([h, context], 1))
            made.append(frame)
        return torch.stack(made, 2)

    return Call(run, keys=nn.Linear(128, 64), cell=nn.LSTMCell(256, 128), before=dense([80, 128, 128]), places=nn.Linear(16, 64, False),
                seen=nn.Conv1d(1, 16, 15, padding=7), energy=nn.Linear(64, 1), query=nn.Linear(128, 64), frame=nn.Linear(256, 80)), \
        normal(1, 60, 128)  # fmt: skip


def radiance_field():
    """NeRF: waves of places and directions, a deep net for each point, and what a ray gathers."""

    def waves(x, count):
        angles = (x[..., None] * 2.0 ** torch.arange(count)).flatten(-2)
        return torch.cat([x, angles.sin(), angles.cos()], -1)

    def run(p, origins, ways):
        depths = torch.linspace(2, 6, 32)
        points = origins[:, None] + ways[:, None] * depths[:, None]
        h = p["trunk"](waves(points, 10))
        density, feature = F.relu(p["density"](h))[..., 0], p["feature"](h)
        seen = waves(ways / ways.norm(dim=-1, keepdim=True), 4)[:, None].expand(-1, 32, -1)
        colour = torch.sigmoid(p["colour"](torch.cat([feature, seen], -1)))
        opacity = 1 - torch.exp(-density * 0.125)
        clear = torch.cumprod(torch.cat([torch.ones(32, 1), 1 - opacity[:, :-1] + 1e-10], 1), 1)
        return ((opacity * clear)[..., None] * colour).sum(1)

    return Call(run, trunk=nn.Sequential(dense([63, 128, 128, 128, 128]), nn.ReLU()), density=nn.Linear(128, 1), feature=nn.Linear(128, 128),
                colour=dense([155, 64, 3])), normal(32, 3), normal(32, 3) + 0.1  # fmt: skip


def points_by_neighbours():
    """PointNet++: nets over the nearest points of chosen ones, the largest of each."""

    def level(p, places, features, count, near):
        chosen = places[:, :: places.shape[1] // count]
        far = chosen.square().sum(-1)[..., None] - 2 * chosen @ places.transpose(1, 2) + places.square().sum(-1)[:, None]
        index = far.topk(near, dim=-1, largest=False)[1].flatten(1)[..., None]
        local = torch.gather(places, 1, index.expand(-1, -1, 3)).reshape(1, count, near, 3) - chosen[:, :, None]
        if features is not None:
            local = torch.cat([local, torch.gather(features, 1, index.expand(-1, -1, features.shape[-1])).reshape(1, count, near, -1)], -1)
        return chosen, p(local).amax(2)

    def run(p, x):
        places, features = level(p["a"], x, None, 256, 16)
        places, features = level(p["b"], places, features, 64, 16)
        return p["out"](p["c"](torch.cat([places, features], -1)).amax(1))

    return Call(run, a=dense([3, 32, 64]), b=dense([67, 64, 128]), c=dense([131, 128, 256]), out=dense([256, 64, 10])), normal(1, 1024, 3)


def graph_attention_of_heads():
    """GAT over an adjacency matrix, two layers of heads."""

    def layer(w, source, target, x, adjacency, heads):
        h = w(x).reshape(100, heads, -1).transpose(0, 1)
        scores = F.leaky_relu(h @ source.weight[..., None] + (h @ target.weight[..., None]).transpose(1, 2), 0.2)
        return torch.where(adjacency > 0, scores, torch.full((), -1e9)).softmax(-1) @ h

    def run(p, x, adjacency):
        h = F.elu(layer(p["w1"], p["s1"], p["t1"], x, adjacency, 8).transpose(0, 1).flatten(1))
        return layer(p["w2"], p["s2"], p["t2"], h, adjacency, 1)[0].log_softmax(-1)

    names = {name: nn.Embedding(heads, width) for name, heads, width in (("s1", 8, 16), ("t1", 8, 16), ("s2", 1, 7), ("t2", 1, 7))}
    edges = (np.random.RandomState(3).rand(100, 100) < 0.05).astype(np.float32) + np.eye(100, dtype=np.float32)
    return Call(run, w1=nn.Linear(64, 128, False), w2=nn.Linear(128, 7, False), **names), normal(100, 64), edges


def split_attention():
    """ResNeSt: two branches of each group weigh each other by a softmax."""

    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.a, self.b, self.c = conv(width, width, 1), conv(width, 2 * width, groups=4), conv(width, width, 1, activation=None)
            self.one, self.two = nn.Conv2d(width, 32, 1), nn.Conv2d(32, 2 * width, 1)

        def forward(self, x):
            n, c, h, w = x.shape
            parts = self.b(self.a(x)).reshape(n, 2, c, h, w)
            shares = self.two(F.relu(self.one(parts.sum(1).mean((2, 3), keepdim=True)))).reshape(n, 2, c, 1, 1).softmax(1)
            return F.relu(x + self.c((parts * shares).sum(1)))

    return nn.Sequential(conv(3, 64, 3, 2), nn.MaxPool2d(3, 2, 1), Block(64), Block(64), conv(64, 128, 3, 2), Block(128), head(128, 10)), image(128)


def convolutions_and_attention():
    """CoAtNet: inverted residuals first, attention with a bias for each distance later."""

    def inverted(width):
        return residual(conv(width, 4 * width, 1, activation=nn.GELU), conv(4 * width, 4 * width, groups=4 * width, activation=nn.GELU),
                        excite(4 * width, width), conv(4 * width, width, 1, activation=None))  # fmt: skip

    steps = torch.stack(torch.meshgrid(torch.arange(14), torch.arange(14), indexing="ij")).flatten(1)
    places = steps[:, :, None] - steps[:, None] + 13
    places = places[0] * 27 + places[1]

    def run(p, x):
        x = p["stem"](x).flatten(2).transpose(1, 2)
        for part, biases in zip(p["blocks"], p["biases"], strict=True):
            x = part(x, biases(places).permute(2, 0, 1))
        return p["out"](x.mean(1))

    stem = nn.Sequential(conv(3, 32, 3, 2, activation=nn.GELU), inverted(32), conv(32, 64, 3, 2), inverted(64), conv(64, 128, 3, 2))
    return Call(run, stem=stem, blocks=nn.ModuleList(PlainAttention(128, 4) for _ in range(2)),
                biases=nn.ModuleList(nn.Embedding(27 * 27, 4) for _ in range(2)), out=nn.Linear(128, 10)), image(112)  # fmt: skip


def blocks_and_grids():
    """MaxViT: attention within blocks of 7 x 7, then between the same places of all blocks."""

    def run(p, x):
        x = p["stem"](x)
        for part, near, far in zip(p["convs"], p["near"], p["far"], strict=True):
            x = part(x).permute(0, 2, 3, 1)
            x = near(x.reshape(1, 4, 7, 4, 7, 64).transpose(2, 3).reshape(16, 49, 64)).reshape(1, 4, 4, 7, 7, 64)
            x = x.transpose(2, 3).reshape(1, 28, 28, 64)
            x = far(x.reshape(1, 7, 4, 7, 4, 64).permute(0, 2, 4, 1, 3, 5).reshape(16, 49, 64)).reshape(1, 4, 4, 7, 7, 64)
            x = x.permute(0, 3, 1, 4, 2, 5).reshape(1, 28, 28, 64).permute(0, 3, 1, 2)
        return p["out"](x)

    inner = [residual(conv(64, 128, 1, activation=nn.GELU), conv(128, 128, groups=128, activation=nn.GELU), conv(128, 64, 1)) for _ in range(2)]
    return Call(run, stem=nn.Sequential(conv(3, 32, 3, 2), conv(32, 64, 3, 2)), convs=nn.ModuleList(inner),
                near=nn.ModuleList(PlainAttention(64, 2) for _ in range(2)), far=nn.ModuleList(PlainAttention(64, 2) for _ in range(2)),
                out=head(64, 10)), image(112)  # fmt: skip


def weighted_pyramid():
    """EfficientDet's BiFPN: levels are summed with weights of their own, up and down again."""

    def fused(weights, values):
        weights = F.relu(weights)
        weights = weights / (weights.sum() + 1e-4)
        return F.silu(sum(weights[i] * value for i, value in enumerate(values)))

    def separable():
        return nn.Sequential(nn.Conv2d(48, 48, 3, 1, 1, groups=48, bias=False), nn.Conv2d(48, 48, 1), nn.BatchNorm2d(48))

    def run(p, x):
        levels = []
        for stage, lateral in zip(p["stages"], p["laterals"], strict=True):
            x = stage(x)
            levels.append(lateral(x))
        for layer in range(2):
            convs, weights = p["convs"][layer], p["weights"].weight[layer]
            down = [levels[-1]]
            for i in (2, 1, 0):
                down.insert(0, convs[i](fused(weights[i, :2], [levels[i], F.interpolate(down[0], scale_factor=2)])))
            up = [down[0]]
            for i in (1, 2, 3):
                up.append(convs[2 + i](fused(weights[2 + i], [levels[i], down[i], F.max_pool2d(up[-1], 3, 2, 1)])))
            levels = up
        return tuple(p["out"](level) for level in levels)

    net = Call(run, stages=nn.ModuleList([nn.Sequential(conv(3, 16, 3, 2), conv(16, 32, 3, 2)), conv(32, 48, 3, 2), conv(48, 64, 3, 2), conv(64, 96, 3, 2)]),
               laterals=nn.ModuleList(nn.Conv2d(w, 48, 1) for w in (32, 48, 64, 96)), out=nn.Conv2d(48, 9 * 4, 3, 1, 1),
               convs=nn.ModuleList(nn.ModuleList(separable() for _ in range(6)) for _ in range(2)), weights=Weights(2, 6, 3))  # fmt: skip
    return net, image(128)


class Weights(nn.Module):
    def __init__(self, *dims):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(*dims))


def key_points():
    """Hourglass with the mean place under each heat map."""

    def run(p, x):
        kept = []
        x = p["stem"](x)
        for part in p["down"]:
            kept.append(x)
            x = part(F.max_pool2d(x, 2))
        for part in p["up"]:
            x = F.interpolate(part(x), scale_factor=2, mode="bilinear", align_corners=False) + kept.pop()
        maps = p["maps"](x)
        shares = maps.flatten(2).softmax(-1).reshape(maps.shape)
        line = torch.linspace(-1, 1, 32)
        return torch.stack([(shares.sum(2) * line).sum(-1), (shares.sum(3) * line).sum(-1)], -1), maps

    return Call(run, stem=nn.Sequential(conv(3, 32, 3, 2), conv(32, 64, 3, 2)), down=nn.ModuleList(conv(64, 64) for _ in range(3)),
                up=nn.ModuleList(conv(64, 64) for _ in range(3)), maps=nn.Conv2d(64, 17, 1)), image(128)  # fmt: skip


def modulated_generator():
    """StyleGAN2: kernels scaled by a style and normalised in the run, a smoothing filter after doubling, noise."""

    class Styled(nn.Module):
        def __init__(self, inputs, outputs, size, up):
            super().__init__()
            self.style, self.up = nn.Linear(64, inputs), up
            self.kernel = nn.Parameter(torch.randn(outputs, inputs, 3, 3) / (3 * inputs**0.5))
            self.noise, self.strength = nn.Parameter(torch.randn(1, 1, size, size)), nn.Parameter(torch.rand(()))
            taps = torch.tensor([1.0, 3, 3, 1])
            self.register_buffer("smooth", (taps[:, None] * taps / 64).expand(inputs, 1, 4, 4).contiguous())

        def forward(self, x, w):
            if self.up:
                x = F.conv2d(F.pad(F.interpolate(x, scale_factor=2), (2, 1, 2, 1)), self.smooth, groups=x.shape[1])
            kernel = self.kernel * (self.style(w) + 1)[0, :, None, None]
            kernel = kernel * torch.rsqrt(kernel.square().sum((1, 2, 3), keepdim=True) + 1e-8)
            return F.leaky_relu(F.conv2d(x, kernel, padding=1) + self.strength * self.noise, 0.2)

    def run(p, z):
        w = p["map"](z * torch.rsqrt(z.square().mean(1, keepdim=True) + 1e-8))
        x = p["start"].weight[None]
        for part in p["parts"]:
            x = part(x, w)
        return p["out"](x)

    parts = [Styled(128, 128, 8, False), Styled(128, 64, 16, True), Styled(64, 64, 16, False), Styled(64, 32, 32, True), Styled(32, 32, 64, True)]
    return Call(run, map=dense([64, 64, 64, 64], nn.LeakyReLU), start=Weights(128, 8, 8), parts=nn.ModuleList(parts), out=nn.Conv2d(32, 3, 1)), normal(1, 64)


def sparse_masks_of_tables():
    """TabNet: masks by sparsemax choose features, step by step."""

    def sparsemax(z):
        ordered = z.sort(-1, descending=True)[0]
        count = torch.arange(1.0, z.shape[-1] + 1)
        sums = ordered.cumsum(-1)
        kept = (1 + count * ordered > sums).float().sum(-1, keepdim=True)
        return F.relu(z - (torch.gather(sums, -1, kept.long() - 1) - 1) / kept)

    class Gated(nn.Module):
        def __init__(self, inputs):
            super().__init__()
            self.layer, self.norm = nn.Linear(inputs, 64, False), nn.BatchNorm1d(64)

        def forward(self, x):
            a, b = self.norm(self.layer(x)).chunk(2, 1)
            return a * torch.sigmoid(b)

    def run(p, x):
        x = p["norm"](x)
        prior, made = torch.ones(32, 40), torch.zeros(32, 16)
        h = p["first"](x)
        for step in range(3):
            mask = sparsemax(p["masks"][step](h[:, 16:]) * prior)
            prior = prior * (1.3 - mask)
            h = p["shared"](mask * x)
            h = (h + p["steps"][step](h)) * 0.5**0.5
            made = made + F.relu(h[:, :16])
        return p["out"](made)

    return Call(run, norm=nn.BatchNorm1d(40), first=Gated(40), shared=Gated(40), steps=nn.ModuleList(Gated(32) for _ in range(3)),
                masks=nn.ModuleList(nn.Sequential(nn.Linear(16, 40, False), nn.BatchNorm1d(40)) for _ in range(3)), out=nn.Linear(16, 4)), \
        normal(32, 40)  # fmt: skip


def splines_on_edges():
    """A Kolmogorov-Arnold net: each weight is a cubic spline of its input."""

    class Layer(nn.Module):
        def __init__(self, inputs, outputs):
            super().__init__()
            self.base, self.kernel = nn.Linear(inputs, outputs, False), nn.Parameter(torch.randn(inputs * 8, outputs) * 0.1)
            self.register_buffer("knots", torch.arange(-3.0, 9) * 0.4 - 1)

        def forward(self, x):
            x_, t = x[..., None], self.knots
            bases = ((x_ >= t[:-1]) & (x_ < t[1:])).float()
            for k in (1, 2, 3):
                left, right = (x_ - t[: -k - 1]) / (t[k:-1] - t[: -k - 1]), (t[k + 1 :] - x_) / (t[k + 1 :] - t[1:-k])
                bases = left * bases[..., :-1] + right * bases[..., 1:]
            return self.base(F.silu(x)) + bases.flatten(1) @ self.kernel

    return nn.Sequential(Layer(16, 64), Layer(64, 64), Layer(64, 8)), np.tanh(normal(64, 16))


def experts_of_the_best_two():
    """A mixture whose tokens are sorted to two of eight experts by rank, with gathered weights."""

    def run(p, x):
        best, index = p["gate"](x).softmax(-1).topk(2)
        best = best / best.sum(-1, keepdim=True)
        up, down = p["up"].weight[index], p["down"].weight[index]  # [tokens, 2, width, inner]
        h = F.silu((x[:, None, None] @ up)[:, :, 0])
        return x + ((h[:, :, None] @ down)[:, :, 0] * best[..., None]).sum(1)

    return Call(run, gate=nn.Linear(64, 8), up=Weights(8, 64, 128), down=Weights(8, 128, 64)), normal(16, 64)


def beam_step():
    """A step of beam search: scores of all words after four beams, the best of these, and their states."""

    def run(p, word, state, scores):
        h = p["cell"](p["words"](word), state)
        scores = scores[:, None] + p["out"](h).log_softmax(-1)
        best, index = scores.flatten().topk(4)
        return best, index % 5000, h[index // 5000]

    return Call(run, words=nn.Embedding(5000, 128), cell=nn.GRUCell(128, 256), out=nn.Linear(256, 5000)), tokens(4), normal(4, 256), normal(4)


def detector_by_queries():
    """RT-DETR: the best places become queries, which sample three levels at learnt offsets."""

    def sampled(levels, places, shares):
        made = 0
        for i, level in enumerate(levels):  # [1, 64, h, w]
            grid = (2 * places[:, :, i] - 1).reshape(1, 50, 4, 2)
            made = made + (F.grid_sample(level, grid, align_corners=False) * shares[:, :, i].reshape(1, 1, 50, 4)).sum(-1)
        return made.transpose(1, 2)

    def run(p, x):
        levels = []
        x = p["stem"](x)
        for part in p["stages"]:
            x = part(x)
            levels.append(p["project"][len(levels)](x))
        memory = torch.cat([level.flatten(2) for level in levels], 2).transpose(1, 2)
        index = p["score"](memory).amax(-1).topk(50)[1]
        chosen = torch.gather(memory, 1, index[..., None].expand(-1, -1, 64))
        boxes = torch.sigmoid(p["box"](chosen))
        for layer in range(2):
            chosen = p["layers"][layer](chosen)
            offsets = torch.tanh(p["offsets"][layer](chosen)).reshape(1, 50, 3, 4, 2)
            places = boxes[:, :, None, None, :2] + offsets * boxes[:, :, None, None, 2:] * 0.5
            shares = p["shares"][layer](chosen).softmax(-1).reshape(1, 50, 3, 4)
            chosen = chosen + p["mix"][layer](sampled(levels, places, shares))
            boxes = torch.sigmoid(p["box"](chosen) + torch.log((boxes + 1e-5) / (1 - boxes + 1e-5)))
        return boxes, p["score"](chosen)

    def twice(make):
        return nn.ModuleList(make() for _ in range(2))

    return Call(run, stem=nn.Sequential(conv(3, 32, 3, 2), conv(32, 64, 3, 2)), stages=nn.ModuleList([conv(64, 96, 3, 2), conv(96, 128, 3, 2), conv(128, 128, 3, 2)]),
                project=nn.ModuleList(nn.Conv2d(w, 64, 1) for w in (96, 128, 128)), score=nn.Linear(64, 20), box=dense([64, 64, 4]),
                layers=twice(lambda: PlainAttention(64, 4)), offsets=twice(lambda: nn.Linear(64, 24)), shares=twice(lambda: nn.Linear(64, 12)),
                mix=twice(lambda: nn.Linear(64, 64))), image(128)  # fmt: skip


def pooled_pyramid():
    """PSPNet: means over 1, 2, 3 and 6 parts, widened again."""

    def run(p, x):
        x = p["stem"](x)
        parts = [F.interpolate(part(F.adaptive_avg_pool2d(x, size)), size=(24, 24), mode="bilinear", align_corners=True)
                 for size, part in zip((1, 2, 3, 6), p["parts"], strict=True)]  # fmt: skip
        return F.interpolate(p["out"](torch.cat([x, *parts], 1)), size=(192, 192), mode="bilinear", align_corners=True)

    stem = nn.Sequential(conv(3, 32, 3, 2), conv(32, 64, 3, 2), conv(64, 128, 3, 2), conv(128, 128, dilation=2, padding=2))
    return Call(run, stem=stem, parts=nn.ModuleList(conv(128, 32, 1) for _ in range(4)),
                out=nn.Sequential(conv(256, 64), nn.Conv2d(64, 19, 1))), image(192)  # fmt: skip


def codes_of_audio():
    """EnCodec: strided convolutions, residual codes of the nearest vectors, and back to a wave."""

    def run(p, x):
        rest = p["encoder"](x).transpose(1, 2)
        made = torch.zeros_like(rest)
        codes = []
        for book in p["books"]:
            far = rest.square().sum(-1, keepdim=True) - 2 * rest @ book.weight.t() + book.weight.square().sum(-1)
            codes.append(far.argmin(-1))
            chosen = book(codes[-1])
            rest, made = rest - chosen, made + chosen
        return p["decoder"](made.transpose(1, 2)), torch.stack(codes)

    widths = (16, 32, 64, 128)
    down, up = [nn.Conv1d(1, 16, 7, padding=3)], []
    for i, o in zip(widths, widths[1:], strict=False):
        down += [nn.ELU(), nn.Conv1d(i, o, 8, 4, 2)]
        up = [nn.ELU(), nn.ConvTranspose1d(o, i, 8, 4, 2), *up]
    return Call(run, encoder=nn.Sequential(*down), decoder=nn.Sequential(*up, nn.ELU(), nn.Conv1d(16, 1, 7, padding=3)),
                books=nn.ModuleList(nn.Embedding(256, 128) for _ in range(4))), normal(1, 1, 4096)  # fmt: skip


def involution():
    """Kernels made of each pixel, shared by the channels of a group."""

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = conv(64, 16, 1), nn.Conv2d(16, 4 * 9, 1)

        def forward(self, x):
            kernel = self.b(self.a(x)).reshape(1, 4, 1, 9, 28, 28)
            windows = F.unfold(x, 3, padding=1).reshape(1, 4, 16, 9, 28, 28)
            return F.relu(x + (kernel * windows).sum(3).reshape(1, 64, 28, 28))

    return nn.Sequential(conv(3, 32, 3, 2), conv(32, 64, 3, 2), Block(), Block(), head(64, 10)), image(112)


def masks_by_prompts():
    """SAM's decoder: tokens and image attend to each other both ways; nets made of tokens give masks."""

    def attend(p, q, k, v):
        q, k, v = (p[name](x).reshape(1, x.shape[1], 4, 32).transpose(1, 2) for name, x in (("q", q), ("k", k), ("v", v)))
        return p["out"](((q @ k.transpose(-2, -1) / 32**0.5).softmax(-1) @ v).transpose(1, 2).flatten(2))

    def run(p, picture, points):
        angles = 2 * np.pi * (points @ p["places"].weight)
        tokens = torch.cat([p["tokens"].weight[None], torch.cat([angles.sin(), angles.cos()], -1)], 1)
        memory = picture.flatten(2).transpose(1, 2)
        for layer in p["layers"]:
            tokens = layer["n1"](tokens + attend(layer["self"], tokens, tokens, tokens))
            tokens = layer["n2"](tokens + attend(layer["to"], tokens, memory, memory))
            tokens = layer["n3"](tokens + layer["ffn"](tokens))
            memory = layer["n4"](memory + attend(layer["back"], memory, tokens, tokens))
        larger = p["up"](memory.transpose(1, 2).reshape(1, 128, 32, 32))
        return (p["mask"](tokens[:, :4]) @ larger.flatten(2)).reshape(1, 4, 128, 128), p["score"](tokens[:, 0])

    def attention():
        return nn.ModuleDict({name: nn.Linear(128, 128) for name in ("q", "k", "v", "out")})

    def layer():
        return nn.ModuleDict({"self": attention(), "to": attention(), "back": attention(), "ffn": dense([128, 512, 128]),
                              **{f"n{i}": nn.LayerNorm(128) for i in (1, 2, 3, 4)}})  # fmt: skip

    up = nn.Sequential(nn.ConvTranspose2d(128, 32, 2, 2), nn.GroupNorm(1, 32), nn.GELU(), nn.ConvTranspose2d(32, 16, 2, 2), nn.GELU())
    return Call(run, places=Weights(2, 64), tokens=nn.Embedding(5, 128), layers=nn.ModuleList(layer() for _ in range(2)), up=up,
                mask=dense([128, 128, 16]), score=nn.Linear(128, 4)), normal(1, 128, 32, 32), np.tanh(normal(1, 3, 2))  # fmt: skip


def diffusion_transformer():
    """DiT: waves of the time step scale and shift each block's norms."""

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out, self.ffn, self.scales = nn.Linear(192, 576), nn.Linear(192, 192), dense([192, 768, 192], lambda: nn.GELU("tanh")), \
                nn.Linear(192, 6 * 192)  # fmt: skip

        def forward(self, x, c):
            a1, b1, g1, a2, b2, g2 = self.scales(F.silu(c))[:, None].chunk(6, -1)
            h = F.layer_norm(x, (192,)) * (1 + a1) + b1
            q, k, v = (part.reshape(1, 64, 3, 64).transpose(1, 2) for part in self.qkv(h).chunk(3, -1))
            x = x + g1 * self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
            return x + g2 * self.ffn(F.layer_norm(x, (192,)) * (1 + a2) + b2)

    def run(p, x, time):
        angles = time[:, None] * torch.exp(-torch.arange(32.0) * 0.28782)
        c = p["time"](torch.cat([angles.cos(), angles.sin()], -1))
        x = p["patches"](x).flatten(2).transpose(1, 2)
        for part in p["blocks"]:
            x = part(x, c)
        return p["out"](x).reshape(1, 8, 8, 2, 2, 4).permute(0, 5, 1, 3, 2, 4).reshape(1, 4, 16, 16)

    return Call(run, time=dense([64, 192, 192], nn.SiLU), patches=nn.Conv2d(4, 192, 2, 2), blocks=nn.ModuleList(Block() for _ in range(3)),
                out=nn.Linear(192, 16)), normal(1, 4, 16, 16), np.array([500.0], np.float32)  # fmt: skip


def hidden_units_of_pose():
    """Joint rotations of two angles and an axis chained along limbs: sines, inverse cosines, cross products."""

    def run(p, x):
        h = p["net"](x).reshape(1, 24, 6)
        a = F.normalize(h[..., :3], dim=-1)
        b = F.normalize(h[..., 3:] - (a * h[..., 3:]).sum(-1, keepdim=True) * a, dim=-1)
        turn = torch.stack([a, b, torch.cross(a, b, dim=-1)], -1)
        angle = torch.acos(((turn[..., 0, 0] + turn[..., 1, 1] + turn[..., 2, 2] - 1) / 2).clamp(-0.999, 0.999))
        heading = torch.atan2(turn[..., 1, 0], turn[..., 0, 0])
        place, whole, made = torch.zeros(1, 3, 1), torch.eye(3)[None], []
        for joint in range(24):
            whole = whole @ turn[:, joint]
            place = place + whole @ p["bones"].weight[joint][None, :, None]
            made.append(place)
        return torch.cat(made, -1), angle, heading

    return Call(run, net=dense([128, 256, 144]), bones=nn.Embedding(24, 3)), normal(1, 128)
