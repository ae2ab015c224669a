"""Nets for inference: delta rules, latent attention, taggers, physics in f64, molecules, hashes, forecasts. As nets_vision.py."""

import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from cases.nets_other import tokens
from cases.nets_scans import Weights, dense
from cases.nets_vision import Call, conv, head, image, normal


def tags_by_best_paths():
    """A recurrent tagger whose best path is followed forward and read backward (BiLSTM-CRF, Viterbi)."""

    def run(p, ids):
        scores = p["out"](p["rnn"](p["words"](ids))[0])[0]
        best, came = scores[0], []
        for t in range(1, 24):
            value, place = (best[:, None] + p["moves"].weight).max(0)
            best, _ = value + scores[t], came.append(place)
        path = [best.argmax(0, keepdim=True)]
        for place in reversed(came):
            path.append(place.gather(0, path[-1]))
        return torch.cat(path[::-1]), best

    parts = {"words": nn.Embedding(5000, 64), "rnn": nn.LSTM(64, 64, bidirectional=True, batch_first=True), "out": nn.Linear(128, 17)}
    return Call(run, moves=Weights(17, 17), **parts), tokens(1, 24)


def answers_with_attention():
    """A decoder of twelve turns takes its best word on, looking back by additive attention (Bahdanau)."""

    def run(p, ids):
        seen, h = p["encoder"](p["words"](ids))
        keys, word, h, said = p["key"](seen), torch.zeros(1, dtype=torch.long), h[0], []
        for _ in range(12):
            share = p["score"](torch.tanh(keys + p["query"](h)[:, None])).softmax(1)
            h = p["cell"](torch.cat([p["words"](word), (share * seen).sum(1)], 1), h)
            logits = p["out"](h)
            word = logits.argmax(-1)
            said.append(logits)
        return torch.stack(said, 1)

    return Call(run, words=nn.Embedding(3000, 64), encoder=nn.GRU(64, 128, batch_first=True), key=nn.Linear(128, 128), query=nn.Linear(128, 128),
                score=nn.Linear(128, 1), cell=nn.GRUCell(192, 128), out=nn.Linear(128, 3000)), tokens(1, 20, words=3000)  # fmt: skip


def memory_by_delta_rule():
    """Linear attention whose memory is corrected and not only added to, in chunks of triangular systems (DeltaNet)."""

    def run(p, x):
        h = p["norm"](x)
        q, k, v = (p[name](h).unflatten(-1, (4, 32)).transpose(1, 2) for name in "qkv")
        q, k = F.normalize(F.silu(q), dim=-1), F.normalize(F.silu(k), dim=-1)
        rate = p["rate"](h).sigmoid().transpose(1, 2)[..., None]
        state, made = torch.zeros(1, 4, 32, 32), []
        for start in range(0, 64, 16):
            a, b, c, r = (each[:, :, start : start + 16] for each in (q, k, v, rate))
            lower = (r * b @ b.transpose(-1, -2)).tril(-1)
            turned = torch.eye(16) - lower
            power = lower @ lower
            for _ in range(3):
                turned, power = turned + power @ turned, power @ power
            new = turned @ (r * (c - b @ state))
            made.append(a @ state + (a @ b.transpose(-1, -2)).tril() @ new)
            state = state + b.transpose(-1, -2) @ new
        return x + p["out"](torch.cat(made, 2).transpose(1, 2).flatten(2))

    linear = {name: nn.Linear(128, 128, bias=False) for name in "qkv"}
    return Call(run, norm=nn.LayerNorm(128), rate=nn.Linear(128, 4), out=nn.Linear(128, 128), **linear), normal(1, 64, 128)


def latent_keys_and_values():
    """Keys and values come from one narrow latent, some of the query turns with its place; experts share one net (DeepSeek)."""
    angle = torch.outer(torch.arange(32.0), 10000 ** (-torch.arange(0, 16, 2) / 16))
    cos, sin = angle.cos().repeat(1, 2), angle.sin().repeat(1, 2)

    def turn(x):
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat([-b, a], -1) * sin

    def run(p, x):
        h = p["n"](x)
        q = p["q"](h).unflatten(-1, (8, 48)).transpose(1, 2)
        low, place = p["down"](h).split([64, 16], -1)
        k, v = p["up"](low).unflatten(-1, (8, 64)).transpose(1, 2).chunk(2, -1)
        scores = q[..., :32] @ k.transpose(-1, -2) + turn(q[..., 32:]) @ turn(place)[:, None].transpose(-1, -2)
        mask = torch.full((32, 32), -1e9).triu(1)
        x = x + p["o"](((scores / math.sqrt(48) + mask).softmax(-1) @ v).transpose(1, 2).flatten(2))
        h = p["m"](x)
        best, which = p["gate"](h).softmax(-1).topk(2)
        share = torch.zeros(1, 32, 8).scatter(-1, which, best / best.sum(-1, keepdim=True))
        wide = torch.einsum("bsd,edf->besf", h, p["a"].weight - 0.5)
        made = torch.einsum("besf,efd->besd", F.silu(wide), p["b"].weight - 0.5)
        return x + torch.einsum("besd,bse->bsd", made, share) / 16 + p["shared"](h)

    return Call(run, n=nn.LayerNorm(256), m=nn.LayerNorm(256), q=nn.Linear(256, 384), down=nn.Linear(256, 80), up=nn.Linear(64, 512), o=nn.Linear(256, 256),
                gate=nn.Linear(256, 8), a=Weights(8, 256, 128), b=Weights(8, 128, 256), shared=dense([256, 256, 256], nn.SiLU)), normal(1, 32, 256)  # fmt: skip


def exponential_gates():
    """Recurrences with exponential gates held in range, and a memory of matrices in parallel form (xLSTM)."""

    def run(p, x):
        q, k, v = p["qkv"](p["n"](x)).unflatten(-1, (3, 4, 32)).permute(2, 0, 3, 1, 4)
        i, f = p["gates"](x).transpose(1, 2).chunk(2, 1)
        kept = torch.cumsum(F.logsigmoid(f), -1)
        decay = kept[..., None] - kept[..., None, :] + i[..., None, :] + torch.full((48, 48), -1e9).triu(1)
        most = decay.amax(-1, keepdim=True)
        scores = q @ k.transpose(-1, -2) / math.sqrt(32) * torch.exp(decay - most)
        norm = torch.maximum(scores.sum(-1, keepdim=True).abs(), torch.exp(-most))
        x = x + p["o"]((scores / norm @ v).transpose(1, 2).flatten(2))
        c = n = h = torch.zeros(1, 128)
        m, made = torch.zeros(1, 128), []
        for t in range(48):
            z, i, f, o = (p["x"](x[:, t]) + p["h"](h)).chunk(4, 1)
            f = F.logsigmoid(f)
            after = torch.maximum(f + m, i)
            i, f, m = torch.exp(i - after), torch.exp(f + m - after), after
            c, n = f * c + i * z.tanh(), f * n + i
            h = o.sigmoid() * c / n
            made.append(h)
        return x + torch.stack(made, 1)

    return Call(run, n=nn.LayerNorm(128), qkv=nn.Linear(128, 384), gates=nn.Linear(128, 8), o=nn.Linear(128, 128), x=nn.Linear(128, 512),
                h=nn.Linear(128, 512, bias=False)), normal(1, 48, 128)  # fmt: skip


def physics_in_doubles():
    """A net in f64 with its slope written out: a potential and the forces that it makes."""

    def run(p, x):
        h, rise = x, torch.eye(3, dtype=torch.float64).expand(256, 3, 3)
        for name in ("a", "b", "c"):
            h = torch.tanh(p[name](h))
            rise = rise @ p[name].weight.t() * (1 - h * h)[:, None]
        return p["d"](h), -(rise @ p["d"].weight.t())[..., 0]

    parts = {name: nn.Linear(3 if name == "a" else 64, 1 if name == "d" else 64) for name in "abcd"}
    return Call(run, **parts).double(), normal(256, 3).astype(np.float64)


def atoms_of_molecules():
    """Distances spread over radial functions weigh messages between atoms, by index (SchNet)."""
    random = np.random.RandomState(0)
    pairs = np.stack([random.randint(24, size=160), random.randint(24, size=160)]).astype(np.int64)

    def run(p, kinds, places, pairs):
        a, b = pairs[0], pairs[1]
        far = (places[a] - places[b]).square().sum(-1, keepdim=True).add(1e-6).sqrt()
        waves = torch.exp(-10 * (far - torch.linspace(0, 5, 50)) ** 2)
        cut = 0.5 * (torch.cos(far.clamp(max=5) * math.pi / 5) + 1)
        h = p["kinds"](kinds)
        for i in range(3):
            message = p[f"in{i}"](h)[b] * p[f"filter{i}"](waves) * cut
            h = h + p[f"out{i}"](torch.zeros_like(h).scatter_add(0, a[:, None].expand(160, 64), message))
        return p["energy"](h).sum(0)

    soft = nn.Softplus
    parts = {f"in{i}": nn.Linear(64, 64, bias=False) for i in range(3)}
    parts |= {f"filter{i}": dense([50, 64, 64], soft) for i in range(3)} | {f"out{i}": dense([64, 64, 64], soft) for i in range(3)}
    return Call(run, kinds=nn.Embedding(20, 64), energy=dense([64, 32, 1], soft), **parts), tokens(24, words=20), normal(24, 3), pairs


def places_by_hashed_grids():
    """Corners of cells on eight grids hashed to rows of a table (instant NGP), 1024 places."""

    def run(p, x):
        made = []
        for level in range(8):
            at = x * float(int(16 * 1.5**level))
            low = at.floor()
            share, cell, found = at - low, low.long(), 0
            for i, j in ((0, 0), (0, 1), (1, 0), (1, 1)):
                row = (cell[:, 0] + i + (cell[:, 1] + j) * 19349663) % 4096 + level * 4096
                found = found + (1 - i - share[:, :1]).abs() * (1 - j - share[:, 1:]).abs() * p["table"](row)
            made.append(found)
        return p["net"](torch.cat(made, 1))

    return Call(run, table=nn.Embedding(8 * 4096, 2), net=dense([16, 64, 64, 3])), np.random.RandomState(0).rand(1024, 2).astype("f")


def colours_of_splats():
    """Splats are sorted by depth and covered by what is left of the light, for every pixel (Gaussian splatting)."""
    grid = torch.stack(torch.meshgrid(torch.linspace(-1, 1, 32), torch.linspace(-1, 1, 32), indexing="ij"), -1).reshape(1, -1, 2)

    def run(p, splats):
        splats = splats[splats[:, 2].argsort()]
        away = grid - splats[:, None, :2]
        turn = F.softplus(splats[:, None, 3:5]) + 0.05
        dense_at = torch.exp(-0.5 * (away / turn).square().sum(-1)) * splats[:, 5:6].sigmoid() * 0.99
        left = torch.exp(torch.cumsum(torch.log1p(-dense_at), 0) - torch.log1p(-dense_at))
        return torch.einsum("sp,sc->pc", dense_at * left, splats[:, 6:].sigmoid())

    return Call(run), normal(128, 9)


def spectra_of_sounds():
    """Short Fourier transforms inside the net, powers on a Mel scale, and convolutions (an audio tagger)."""
    mel = torch.rand(129, 40) * (torch.rand(129, 40) < 0.1)
    window = torch.hann_window(256)

    def run(p, wave):
        waves = torch.stft(wave, 256, 128, window=window, center=False, return_complex=False)
        power = waves.square().sum(-1).transpose(1, 2) @ mel
        return p["net"](torch.log(power + 1e-5)[:, None])

    return Call(run, net=nn.Sequential(conv(1, 32), nn.MaxPool2d(2), conv(32, 64), nn.MaxPool2d(2), conv(64, 96), head(96, 50))), normal(1, 8192)


def patches_of_series():
    """Patches of each variable's history as words, normed by its own mean and spread (PatchTST, RevIN)."""

    def run(p, x):
        mean, spread = x.mean(1, keepdim=True), x.std(1, keepdim=True, unbiased=False) + 1e-5
        h = ((x - mean) / spread).transpose(1, 2).unfold(2, 16, 8)[0]
        h = p["net"](p["into"](h) + p["place"].weight)
        return p["out"](h.flatten(1)).t()[None] * spread + mean

    layer = nn.TransformerEncoderLayer(64, 4, 128, activation="gelu", batch_first=True, norm_first=True)
    net = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    return Call(run, into=nn.Linear(16, 64), place=Weights(41, 64), net=net, out=nn.Linear(41 * 64, 96)), normal(1, 336, 7)


def variables_as_words():
    """Each variable is one word; a trend and a season split by moving means go ways of their own (iTransformer, DLinear)."""

    def run(p, x):
        trend = F.avg_pool1d(F.pad(x.transpose(1, 2), (12, 12), mode="replicate"), 25, 1)
        season = x.transpose(1, 2) - trend
        h = p["net"](p["into"](season))
        return p["out"](h) + p["trend"](trend)

    layer = nn.TransformerEncoderLayer(128, 8, 256, batch_first=True)
    return Call(run, into=nn.Linear(96, 128), net=nn.TransformerEncoder(layer, 2), out=nn.Linear(128, 96), trend=nn.Linear(96, 96)), normal(1, 96, 21)


def unfolded_patches():
    """Convolutions, then attention between the same places of all patches, folded back (MobileViT)."""

    def run(p, x):
        x = p["stem"](x)
        h = p["into"](x)
        n, c, height, width = h.shape
        h = h.reshape(n * c, height // 2, 2, width // 2, 2).transpose(2, 3).reshape(n, c, -1, 4).permute(0, 3, 2, 1).reshape(n * 4, -1, c)
        h = p["net"](h)
        h = h.reshape(n, 4, -1, c).permute(0, 3, 2, 1).reshape(n * c, height // 2, width // 2, 2, 2).transpose(2, 3).reshape(n, c, height, width)
        return p["head"](p["mix"](torch.cat([x, p["back"](h)], 1)))

    layer = nn.TransformerEncoderLayer(96, 4, 192, activation=F.silu, batch_first=True, norm_first=True)
    act = {"activation": nn.SiLU}
    return Call(run, stem=nn.Sequential(conv(3, 32, 3, 2, **act), conv(32, 64, 3, 2, **act)), into=nn.Sequential(conv(64, 64, **act), nn.Conv2d(64, 96, 1)),
                net=nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), back=conv(96, 64, 1, **act), mix=conv(128, 96, **act), head=head(96, 100)), image(128)  # fmt: skip


def boxes_as_distributions():
    """Sides of boxes as means of distributions over bins, from three levels, the best hundred kept (YOLOv8)."""

    def run(p, x):
        a = p["a"](x)
        b = p["b"](a)
        c = p["c"](b)
        made, at = [], []
        for level, stride in ((a, 8), (b, 16), (c, 32)):
            size = 128 // stride
            made.append(p[f"head{stride}"](level).flatten(2))
            grid = torch.stack(torch.meshgrid(torch.arange(size), torch.arange(size), indexing="xy"), 0).flatten(1) + 0.5
            at.append(torch.cat([grid * stride, torch.full((1, size * size), float(stride))]))
        sides, scores = torch.cat(made, 2).split([64, 20], 1)
        at = torch.cat(at, 1)
        far = (sides.unflatten(1, (4, 16)).softmax(2) * torch.arange(16.0)[:, None]).sum(2) * at[2]
        boxes = torch.cat([at[:2] - far[:, :2], at[:2] + far[:, 2:]], 1)
        best, which = scores.sigmoid().amax(1).topk(100)
        return best, boxes.gather(2, which[:, None].expand(1, 4, 100))

    act = {"activation": nn.SiLU}
    heads = {f"head{stride}": nn.Sequential(conv(width, 64, **act), nn.Conv2d(64, 84, 1)) for stride, width in ((8, 64), (16, 96), (32, 128))}
    return Call(run, a=nn.Sequential(conv(3, 16, 3, 2, **act), conv(16, 32, 3, 2, **act), conv(32, 64, 3, 2, **act)), b=conv(64, 96, 3, 2, **act),
                c=conv(96, 128, 3, 2, **act), **heads), image(128)  # fmt: skip


def letters_stretched_by_length():
    """Letters are repeated as long as they sound and become sound frames (FastSpeech 2)."""

    def run(p, ids):
        h = p["net"](p["words"](ids))
        long = (p["long"](h)[..., 0].exp() + 1).round().clamp(1, 8)
        ends = torch.cumsum(long, 1)
        frame = torch.arange(160.0)
        which = (frame[None, :, None] >= ends[:, None]).long().sum(-1).clamp(max=31)
        spread = h.gather(1, which[..., None].expand(1, 160, 128))
        pitch = p["pitch"](spread.transpose(1, 2))
        spread = spread + p["bins"](torch.bucketize(pitch[:, 0], torch.linspace(-2, 2, 63)))
        return p["out"](p["decode"](spread.transpose(1, 2)).transpose(1, 2)) * (frame < ends[:, -1:])[..., None]

    layer = nn.TransformerEncoderLayer(128, 2, 256, batch_first=True)
    steps = nn.Sequential(nn.Conv1d(128, 256, 9, padding=4), nn.ReLU(), nn.Conv1d(256, 128, 1))
    return Call(run, words=nn.Embedding(60, 128), net=nn.TransformerEncoder(layer, 2), long=nn.Linear(128, 1), pitch=nn.Conv1d(128, 1, 3, padding=1),
                bins=nn.Embedding(64, 128), decode=steps, out=nn.Linear(128, 80)), tokens(1, 32, words=60)  # fmt: skip


def whole_numbers_alone():
    """Counts of shared features by products of whole numbers, ranked (a recommender by sets)."""

    def run(p, rows, table):
        shared = rows @ table.t()
        either = rows.sum(1, keepdim=True) + table.sum(1)[None] - shared
        near = shared.float() / either.float().clamp(min=1)
        best, which = near.topk(10)
        return best, torch.div(shared.gather(1, which), 2, rounding_mode="floor")

    random = np.random.RandomState(0)
    return Call(run), (random.rand(16, 512) < 0.1).astype(np.int32), (random.rand(400, 512) < 0.1).astype(np.int32)
