"""Nets for inference: doubles and whole numbers, states by hand, documents, tasks, clouds of points, likeness. As nets_vision.py."""

import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from cases.nets_other import tokens
from cases.nets_scans import Weights, dense
from cases.nets_vision import Call, conv, head, image, normal


def tables_in_doubles():
    """Columns are scaled, turned to main axes and scored by a logistic model, all in f64 (a pipeline of statistics)."""

    def run(p, x):
        z = (x - p["mean"].weight) / p["spread"].weight
        z = torch.where(z.abs() < 4, z, z.sign() * 4)
        main = z @ p["axes"].weight
        wide = torch.cat([main, main.square(), main[:, :8, None].mul(main[:, None, :8]).flatten(1)], 1)
        return p["out"](wide).softmax(1), wide.mean(0)

    parts = {"mean": Weights(40), "spread": Weights(40), "axes": Weights(40, 16), "out": nn.Linear(96, 5)}
    return Call(run, **parts).double(), normal(500, 40).astype(np.float64)


def process_in_doubles():
    """What a Gaussian process says of new places, and how surely, in f64."""

    def run(p, x):
        far = (x.square().sum(1)[:, None] - 2 * x @ p["seen"].weight.t() + p["seen"].weight.square().sum(1)).clamp(min=0)
        kernel = torch.exp(-0.5 * far) + 0.1 / (1 + far.sqrt())
        mean = kernel @ p["weights"].weight
        spread = 1.1 - ((kernel @ p["inverse"].weight) * kernel).sum(1)
        return mean, spread.clamp(min=1e-6).sqrt()

    return Call(run, seen=Weights(300, 6), weights=Weights(300, 2), inverse=Weights(300, 300)).double(), normal(64, 6).astype(np.float64)


def recurrence_in_doubles():
    """A small recurrence in f64, step by step, with a running norm (control of a machine)."""

    def run(p, x):
        h, mean, kept = torch.zeros(1, 48, dtype=torch.float64), torch.zeros(1, 12, dtype=torch.float64), []
        for t in range(32):
            mean = 0.9 * mean + 0.1 * x[:, t]
            z, r = torch.sigmoid(p["gates"](torch.cat([x[:, t] - mean, h], 1))).chunk(2, 1)
            h = (1 - z) * h + z * torch.tanh(p["in"](torch.cat([x[:, t] - mean, r * h], 1)))
            kept.append(p["out"](h))
        return torch.stack(kept, 1)

    return Call(run, gates=nn.Linear(60, 96), **{"in": nn.Linear(60, 48)}, out=nn.Linear(48, 4)).double(), normal(1, 32, 12).astype(np.float64)


def waves_in_doubles():
    """Sums of sines, polynomials and powers over a grid, in f64 (an empirical model)."""

    def run(p, x):
        angle = x[..., None] * p["rates"].weight + p["phases"].weight
        made = (angle.sin() * p["sizes"].weight).sum(-1) + 0.3 * (angle.cos() * p["sizes"].weight).sum(-1)
        power = torch.exp(-made.square()) + torch.log1p(made.abs()) + torch.sqrt(made.square() + 1) + torch.tanh(made)
        return power, power.mean(1), power.amax(1), power.var(1)

    return Call(run, rates=Weights(24), phases=Weights(24), sizes=Weights(24)).double(), normal(32, 128).astype(np.float64)


def words_of_whole_numbers():
    """Hashes of words by multiplied, added and divided whole numbers, counted in bins (a text's signature)."""

    def run(p, ids):
        made = []
        for i in range(8):
            mixed = (ids * (40503 + 2 * i) + 977 * i) % 1048573
            mixed = (mixed + mixed // 4096) % 1021
            made.append(mixed.amin(1))
        made = torch.stack(made, 1)
        same = (made[:, None] == made[None]).sum(-1)
        best, which = (same.float() - 9 * torch.eye(64)).topk(3)
        return made, best, which

    return Call(run), tokens(64, 40, words=100000)


def grids_of_whole_numbers():
    """Cells live by their neighbours' number, in i32, sixteen turns of rolls and sums (a cellular automaton)."""

    def run(p, x):
        for _ in range(16):
            around = sum(x.roll((i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
            x = ((around == 3) | ((around == 2) & (x == 1))).to(torch.int32)
        return x, x.sum(0)

    return Call(run), (np.random.RandomState(0).rand(96, 96) < 0.3).astype(np.int32)


def ways_of_hidden_states():
    """All ways through hidden states forward and backward, as shares of each state (forward-backward)."""

    def run(p, x):
        seen = p["seen"](x)[0]
        moves = p["moves"].weight.log_softmax(1)
        a, forward = seen[0], []
        for t in range(1, 40):
            forward.append(a)
            a = torch.logsumexp(a[:, None] + moves, 0) + seen[t]
        forward.append(a)
        b, backward = torch.zeros(16), [torch.zeros(16)]
        for t in range(39, 0, -1):
            b = torch.logsumexp(moves + (seen[t] + b)[None], 1)
            backward.append(b)
        both = torch.stack(forward) + torch.stack(backward[::-1])
        return both.softmax(1)

    return Call(run, seen=dense([12, 64, 16]), moves=Weights(16, 16)), normal(1, 40, 12)


def filter_of_states():
    """A filter with a covariance of six numbers, corrected by what is seen, with a net that tells the noise (Kalman)."""

    move, look = torch.eye(6) + torch.diag(torch.full((3,), 0.1), 3), torch.eye(3, 6)

    def run(p, x):
        mean, spread, made = torch.zeros(6, 1), torch.eye(6), []
        noise = F.softplus(p["noise"](x)) + 0.1
        for t in range(24):
            mean, spread = move @ mean, move @ spread @ move.t() + 0.01 * torch.eye(6)
            s = look @ spread @ look.t() + noise[0, t] * torch.eye(3)
            a, b, c, d, e, f = s[0, 0], s[0, 1], s[0, 2], s[1, 1], s[1, 2], s[2, 2]
            rows = [d * f - e * e, c * e - b * f, b * e - c * d, a * f - c * c, b * c - a * e, a * d - b * b]
            whole = a * rows[0] + b * rows[1] + c * rows[2]
            inverse = torch.stack([rows[i] for i in (0, 1, 2, 1, 3, 4, 2, 4, 5)]).reshape(3, 3) / whole
            gain = spread @ look.t() @ inverse
            mean = mean + gain @ (x[0, t][:, None] - look @ mean)
            spread = spread - gain @ look @ spread
            made.append(mean[:, 0])
        return torch.stack(made)

    return Call(run, noise=dense([3, 16, 3], nn.Tanh)), normal(1, 24, 3)


def documents_by_sentences():
    """Words make sentences and sentences a document, by recurrences and attention (hierarchical attention)."""

    def gathered(p, name, h):
        h = p[name](h)[0]
        return (p[name + "_score"](torch.tanh(p[name + "_key"](h))).softmax(1) * h).sum(1)

    def run(p, ids):
        return p["out"](gathered(p, "sentence", gathered(p, "word", p["words"](ids[0]))[None]))

    parts = {"word": nn.GRU(64, 48, bidirectional=True, batch_first=True), "sentence": nn.GRU(96, 48, bidirectional=True, batch_first=True)}
    parts |= {f"{name}_key": nn.Linear(96, 64) for name in ("word", "sentence")} | {f"{name}_score": nn.Linear(64, 1, bias=False) for name in ("word", "sentence")}
    return Call(run, words=nn.Embedding(5000, 64), out=nn.Linear(96, 10), **parts), tokens(1, 8, 24)


def tasks_of_one_table():
    """Experts that tasks share, gates of each task, fields that attend to each other, for 200 rows (MMOE, AutoInt)."""

    def run(p, ids, x):
        v = p["fields"](ids)
        q, k, u = (p[n](v).unflatten(-1, (2, 16)).transpose(1, 2) for n in "qku")
        v = F.relu(p["skip"](v) + ((q @ k.transpose(-1, -2)).softmax(-1) @ u).transpose(1, 2).flatten(2))
        h = torch.cat([v.flatten(1), x], 1)
        experts = torch.stack([p[f"e{i}"](h) for i in range(4)], 1)
        made = [p[f"t{i}"]((p[f"g{i}"](h).softmax(1)[..., None] * experts).sum(1)) for i in range(3)]
        return torch.cat(made, 1).sigmoid()

    parts = {n: nn.Linear(16, 32, bias=False) for n in ("q", "k", "u", "skip")} | {f"e{i}": dense([398, 64, 32]) for i in range(4)}
    parts |= {f"g{i}": nn.Linear(398, 4) for i in range(3)} | {f"t{i}": dense([32, 16, 1]) for i in range(3)}
    return Call(run, fields=nn.Embedding(10000, 16), **parts), tokens(200, 12, words=10000), normal(200, 14)


def edges_found_anew():
    """Each layer looks for every point's nearest ones among its features (DGCNN)."""

    def run(p, x):
        h, kept = x, []
        for i in range(3):
            square = h.square().sum(-1, keepdim=True)
            which = (2 * h @ h.transpose(1, 2) - square - square.transpose(1, 2)).topk(10)[1][0]
            near = h[0][which]
            own = h[0][:, None].expand_as(near)
            h = F.leaky_relu(p[f"mix{i}"](torch.cat([own, near - own], -1))).amax(1)[None]
            kept.append(h)
        h = F.leaky_relu(p["wide"](torch.cat(kept, -1)))
        return p["out"](torch.cat([h.amax(1), h.mean(1)], 1))

    parts = {f"mix{i}": nn.Linear(2 * a, b) for i, (a, b) in enumerate(((3, 32), (32, 32), (32, 64)))}
    return Call(run, wide=nn.Linear(128, 256), out=nn.Linear(512, 10), **parts), normal(1, 256, 3)


def likeness_of_pictures():
    """Means and spreads of windows of two pictures on three scales, and edges by sums of neighbours (MS-SSIM)."""
    line = torch.exp(-((torch.arange(11) - 5.0) ** 2) / 4.5)
    window = (line[:, None] * line / line.sum() ** 2).expand(3, 1, 11, 11).contiguous()
    edges = torch.tensor([[1.0, 0, -1], [2, 0, -2], [1, 0, -1]])
    edges = torch.stack([edges, edges.t()])[:, None].repeat(3, 1, 1, 1)

    def run(p, a, b):
        made = []
        for _ in range(3):
            blur = lambda x: F.conv2d(x, window, groups=3)  # noqa: E731
            u, v = blur(a), blur(b)
            s, t, w = blur(a * a) - u * u, blur(b * b) - v * v, blur(a * b) - u * v
            made.append((((2 * u * v + 0.01) * (2 * w + 0.03)) / ((u * u + v * v + 0.01) * (s + t + 0.03))).mean((2, 3)))
            made.append((F.conv2d(a, edges, groups=3) - F.conv2d(b, edges, groups=3)).abs().mean((2, 3)))
            a, b = F.avg_pool2d(a, 2), F.avg_pool2d(b, 2)
        return torch.cat(made, 1)

    return Call(run), image(96), image(96)[:, :, ::-1].copy()


def places_of_largest_values():
    """Pooling remembers places, unpooling puts values back (SegNet)."""

    def run(p, x):
        a = p["a"](x)
        b, first = F.max_pool2d(a, 2, return_indices=True)
        b = p["b"](b)
        c, second = F.max_pool2d(b, 2, return_indices=True)
        c = p["c"](c)

        def back(h, places, size):
            flat = torch.zeros(1, h.shape[1], size * size).scatter(2, places.flatten(2), h.flatten(2))
            return flat.reshape(1, h.shape[1], size, size)

        return p["out"](p["e"](back(p["d"](back(c, second, 48)), first, 96)))

    return Call(run, a=conv(3, 24), b=conv(24, 48), c=conv(48, 48), d=conv(48, 24), e=conv(24, 24), out=nn.Conv2d(24, 6, 1)), image(96)


def branches_folded_into_one():
    """Plain convolutions between shuffled halves, a pyramid of pools, hard activations (RepVGG, SPPF)."""

    def run(p, x):
        x = p["stem"](x)
        a, b = x.chunk(2, 1)
        x = torch.cat([a, p["second"](b)], 1).unflatten(1, (2, -1)).transpose(1, 2).flatten(1, 2)
        parts = [p["in"](x)]
        for _ in range(3):
            parts.append(F.max_pool2d(parts[-1], 5, 1, 2))
        return p["head"](p["mix"](torch.cat(parts, 1)))

    act = {"activation": nn.Hardswish}
    return Call(run, stem=nn.Sequential(conv(3, 32, 3, 2, **act), conv(32, 64, 3, 2, **act)), second=nn.Sequential(conv(32, 32, **act), conv(32, 32, **act)),
                **{"in": conv(64, 32, 1, **act)}, mix=conv(128, 64, 1, **act), head=head(64, 100)), image(128)  # fmt: skip


def memory_read_and_written():
    """Six turns of a controller that finds, erases and adds in a memory, and frees places by use (DNC)."""

    def run(p, x):
        memory, used, read = torch.full((1, 24, 16), 0.01), torch.zeros(1, 24), torch.zeros(1, 16)
        h, c, made = torch.zeros(1, 64), torch.zeros(1, 64), []
        for t in range(6):
            h, c = p["cell"](torch.cat([x[:, t], read], 1), (h, c))
            key, erase, add, again, gate = p["control"](h).split([16, 16, 16, 16, 2], 1)
            least, order = used.sort(1)
            free = (1 - least) * torch.cat([torch.ones(1, 1), torch.exp(torch.cumsum(torch.log(least + 1e-6), 1))[:, :-1]], 1)
            free = torch.zeros(1, 24).scatter(1, order, free)
            near = lambda k: (F.normalize(memory, dim=2) @ F.normalize(k, dim=1)[..., None])[..., 0].mul(4).softmax(1)  # noqa: E731, B023
            where = gate[:, :1].sigmoid() * (gate[:, 1:].sigmoid() * free + (1 - gate[:, 1:].sigmoid()) * near(key))
            memory = memory * (1 - where[..., None] * erase.sigmoid()[:, None]) + where[..., None] * add.tanh()[:, None]
            used = used + where - used * where
            read = (near(again)[:, None] @ memory)[:, 0]
            made.append(p["out"](torch.cat([h, read], 1)))
        return torch.stack(made, 1)

    return Call(run, cell=nn.LSTMCell(24, 64), control=nn.Linear(64, 66), out=nn.Linear(80, 8)), normal(1, 6, 8)


def steps_of_a_sampler():
    """Four steps of a sampler through one small net, noise levels as waves, slopes clipped (a diffusion sampler)."""
    rates = torch.exp(torch.arange(16) * -0.5)

    def run(p, x, condition):
        for level in (1.0, 0.6, 0.3, 0.1):
            waves = torch.cat([torch.sin(level * rates), torch.cos(level * rates)])[None]
            shift, scale = p["time"](torch.cat([waves, condition], 1)).chunk(2, 1)
            h = F.silu(p["norm"](p["a"](x)) * (1 + scale[..., None, None]) + shift[..., None, None])
            noise = p["b"](F.silu(p["mid"](h)) + h)
            clean = ((x - level * noise) / math.sqrt(1 + level * level)).clamp(-1, 1)
            x = clean + 0.5 * level * noise
        return x

    return Call(run, time=dense([40, 64, 64], nn.SiLU), norm=nn.GroupNorm(8, 32), a=nn.Conv2d(4, 32, 3, padding=1), mid=nn.Conv2d(32, 32, 3, padding=1),
                b=nn.Conv2d(32, 4, 3, padding=1)), image(32, 4), normal(1, 8)  # fmt: skip
