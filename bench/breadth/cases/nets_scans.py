"""Nets for inference of recent kinds: scans over states, mixing without attention, fields, audio, tables. As nets_vision.py."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from cases import nets_other
from cases.nets_other import tokens
from cases.nets_vision import Call, normal


class Weights(nn.Module):
    def __init__(self, *dims):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(*dims))


def dense(widths, activation=nn.ReLU):
    return nets_other.dense(widths, activation)[0]


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
            for name, n in (("along", 64), ("across", 128)):
                for kind, wave in zip(("even", "odd"), waves(n), strict=True):
                    self.register_buffer(f"{name}_{kind}", wave)

        def forward(self, x):
            x = self.n1(x + self.along_even @ x @ self.across_even - self.along_odd @ x @ self.across_odd)
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
        keys = p["key"](memory)
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

    return Call(run, key=nn.Linear(128, 64), cell=nn.LSTMCell(256, 128), before=dense([80, 128, 128]), places=nn.Linear(16, 64, False),
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
        depth = density * 0.125
        clear = torch.exp(depth - torch.cumsum(depth, 1))
        return ((clear * (1 - torch.exp(-depth)))[..., None] * colour).sum(1)

    return Call(run, trunk=nn.Sequential(dense([63, 128, 128, 128, 128]), nn.ReLU()), density=nn.Linear(128, 1), feature=nn.Linear(128, 128),
                colour=dense([155, 64, 3])), normal(32, 3), normal(32, 3) + 0.1  # fmt: skip


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
