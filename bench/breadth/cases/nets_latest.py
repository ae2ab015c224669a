"""Nets for inference: kernels made by nets, sounds, order books, weather, joints, flows of points, tracks. As nets_vision.py."""

import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from cases.nets_other import tokens
from cases.nets_scans import Weights, dense
from cases.nets_vision import Call, conv, head, image, normal, residual


def kernels_by_experts():
    """A convolution whose kernel is a mixture of four by the image (CondConv)."""

    def run(p, x):
        for i in range(3):
            share = torch.sigmoid(p[f"share{i}"](x.mean((2, 3))))
            kernel = (share[0][:, None, None, None, None] * p[f"kernels{i}"].weight).sum(0) - 0.5
            x = F.relu(F.conv2d(x, kernel / 16, padding=1))
        return p["head"](x)

    parts = {f"share{i}": nn.Linear(64, 4) for i in range(3)} | {f"kernels{i}": Weights(4, 64, 64, 3, 3) for i in range(3)}
    return Call(run, head=head(64), **parts), normal(1, 64, 28, 28)


def masks_by_kernels():
    """Masks of instances as convolutions by kernels that a second branch makes (SOLO)."""

    def run(p, x):
        x = p["stem"](x)
        kernels = p["kernels"](F.adaptive_avg_pool2d(x, 8)).flatten(2)[0].t()
        return torch.sigmoid(F.conv2d(p["masks"](x), kernels[:, :, None, None])), kernels

    stem = nn.Sequential(conv(3, 32, 3, 2), conv(32, 64, 3, 2), conv(64, 64))
    return Call(run, stem=stem, kernels=nn.Conv2d(64, 64, 3, 1, 1), masks=conv(64, 64)), image(192)


def speech_of_raw_waves():
    """Strided convolutions over a wave, positions by a long grouped convolution, a transformer (wav2vec 2)."""

    def run(p, x):
        h = p["norm"](p["waves"](x).transpose(1, 2))
        h = h + F.gelu(p["places"](h.transpose(1, 2))[..., :-1]).transpose(1, 2)
        return p["out"](p["layers"](h))

    waves = [nn.Conv1d(1, 128, 10, 5, bias=False), nn.GroupNorm(128, 128), nn.GELU()]
    for size in (3, 3, 3, 2):
        waves += [nn.Conv1d(128, 128, size, 2, bias=False), nn.GELU()]
    layer = nn.TransformerEncoderLayer(128, 4, 512, 0, "gelu", batch_first=True)
    return Call(run, waves=nn.Sequential(*waves), norm=nn.LayerNorm(128), places=nn.Conv1d(128, 128, 64, padding=32, groups=16),
                layers=nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), out=nn.Linear(128, 32)), normal(1, 1, 16000)  # fmt: skip


def stems_of_music():
    """Gated strided convolutions, a recurrent middle and transposed convolutions back to waves (Demucs)."""

    def run(p, x):
        kept = []
        for i in range(4):
            x = p[f"down{i}"](x)
            kept.append(x)
        x = p["mix"](p["rnn"](x.transpose(1, 2))[0]).transpose(1, 2)
        for i in reversed(range(4)):
            x = p[f"up{i}"](x + kept[i][..., : x.shape[-1]])
        return x

    widths, parts = [2, 16, 32, 64, 128], {}
    for i in range(4):
        parts[f"down{i}"] = nn.Sequential(nn.Conv1d(widths[i], widths[i + 1], 8, 4, 2), nn.ReLU(), nn.Conv1d(widths[i + 1], 2 * widths[i + 1], 1), nn.GLU(1))
        parts[f"up{i}"] = nn.Sequential(nn.Conv1d(widths[i + 1], 2 * widths[i + 1], 3, 1, 1), nn.GLU(1), nn.ConvTranspose1d(widths[i + 1], widths[i], 8, 4, 2),
                                        *([nn.ReLU()] if i else []))  # fmt: skip
    return Call(run, rnn=nn.LSTM(128, 64, bidirectional=True, batch_first=True), mix=nn.Linear(128, 128), **parts), normal(1, 2, 8192)


def two_paths_of_chunks():
    """Recurrent layers within and across chunks of a long sequence (DPRNN)."""

    def run(p, x):
        h = p["into"](x).reshape(1, 32, 20, 25)
        for i in range(2):
            rows = h[0].permute(1, 2, 0)
            h = h + p[f"within_out{i}"](p[f"within{i}"](rows)[0]).permute(2, 0, 1)[None]
            columns = h[0].permute(2, 1, 0)
            h = h + p[f"across_out{i}"](p[f"across{i}"](columns)[0]).permute(2, 1, 0)[None]
        return torch.sigmoid(p["out"](h.reshape(1, 32, 500)))

    parts = {}
    for i in range(2):
        for way in ("within", "across"):
            parts[f"{way}{i}"] = nn.LSTM(32, 32, batch_first=True, bidirectional=True)
            parts[f"{way}_out{i}"] = nn.Linear(64, 32)
    return Call(run, into=nn.Conv1d(16, 32, 1), out=nn.Conv1d(32, 16, 1), **parts), normal(1, 16, 500)


def books_of_orders():
    """Narrow convolutions over the levels of an order book, branches over time, an LSTM (DeepLOB)."""

    def leaky(*parts):
        return nn.Sequential(*[layer for part in parts for layer in (part, nn.LeakyReLU(0.01), nn.BatchNorm2d(part.out_channels))])

    def run(p, x):
        x = p["levels"](x)
        x = torch.cat([p["a"](x), p["b"](x), p["c"](x)], 1)
        return p["out"](p["rnn"](x.squeeze(3).transpose(1, 2))[0][:, -1]).softmax(-1)

    levels = nn.Sequential(*[leaky(nn.Conv2d(a, 16, (1, w), (1, s)), nn.Conv2d(16, 16, (4, 1)), nn.Conv2d(16, 16, (4, 1)))
                             for a, w, s in ((1, 2, 2), (16, 2, 2), (16, 10, 1))])  # fmt: skip
    branches = {"a": leaky(nn.Conv2d(16, 32, 1), nn.Conv2d(32, 32, (3, 1), padding=(1, 0))),
                "b": leaky(nn.Conv2d(16, 32, 1), nn.Conv2d(32, 32, (5, 1), padding=(2, 0))),
                "c": nn.Sequential(nn.MaxPool2d((3, 1), 1, (1, 0)), leaky(nn.Conv2d(16, 32, 1)))}  # fmt: skip
    return Call(run, levels=levels, rnn=nn.LSTM(96, 64, batch_first=True), out=nn.Linear(64, 3), **branches), normal(1, 1, 100, 40)


def rain_to_come():
    """Cells whose states are images, over eight radar images (ConvLSTM)."""

    def run(p, x):
        h = c = torch.zeros(1, 32, 32, 32)
        for t in range(8):
            i, f, g, o = p["gates"](torch.cat([x[:, t], h], 1)).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        return p["out"](h)

    return Call(run, gates=nn.Conv2d(33, 128, 3, 1, 1), out=nn.Conv2d(32, 8, 1)), normal(1, 8, 1, 32, 32)


def attention_of_channels():
    """Attention between channels by normalised rows, gated depthwise layers (Restormer)."""

    def block(width, heads):
        def run(p, x):
            size = x.shape[2] * x.shape[3]
            q, k, v = p["qkv"](p["first"](x)).reshape(1, 3, heads, width // heads, size).unbind(1)
            share = (F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2, -1) * p["heat"].weight).softmax(-1)
            x = x + p["mix"]((share @ v).reshape(x.shape))
            a, b = p["gates"](p["second"](x)).chunk(2, 1)
            return x + p["back"](F.gelu(a) * b)

        return Call(run, first=nn.GroupNorm(1, width), second=nn.GroupNorm(1, width), heat=Weights(heads, 1, 1),
                    qkv=nn.Sequential(nn.Conv2d(width, 3 * width, 1), nn.Conv2d(3 * width, 3 * width, 3, 1, 1, groups=3 * width)), mix=nn.Conv2d(width, width, 1),
                    gates=nn.Sequential(nn.Conv2d(width, 4 * width, 1), nn.Conv2d(4 * width, 4 * width, 3, 1, 1, groups=4 * width)),
                    back=nn.Conv2d(2 * width, width, 1))  # fmt: skip

    return nn.Sequential(nn.Conv2d(3, 48, 3, 1, 1), block(48, 1), block(48, 2), nn.Conv2d(48, 3, 3, 1, 1)), image(64)


def windows_that_bend():
    """A convolution whose taps read between pixels, at places that the image gives (deformable convolution by samples)."""

    def run(p, x):
        x = p["stem"](x)
        shift = p["shift"](x).reshape(9, 2, 28, 28).permute(0, 2, 3, 1)
        taps = F.grid_sample(x.expand(9, -1, -1, -1), p["grid"].weight + 0.05 * torch.tanh(shift), align_corners=False)
        return p["head"](F.relu(p["mix"](taps.reshape(1, 9 * 48, 28, 28))))

    stem = nn.Sequential(conv(3, 32, 3, 2), conv(32, 48, 3, 2))
    return Call(run, stem=stem, shift=nn.Conv2d(48, 18, 3, 1, 1), grid=Weights(9, 28, 28, 2), mix=nn.Conv2d(432, 64, 1), head=head(64)), image(112)


def spans_of_answers():
    """Words and their letters, highways, attention both ways between text and question (BiDAF)."""

    def run(p, text, letters, question, its_letters):
        def words(ids, chars):
            made = F.relu(p["letters"](p["chars"](chars).transpose(1, 2))).amax(2)
            h = torch.cat([p["words"](ids[0]), made], 1)
            for i in range(2):
                gate = torch.sigmoid(p[f"gate{i}"](h))
                h = gate * F.relu(p[f"way{i}"](h)) + (1 - gate) * h
            return p["rnn"](h[None])[0]

        h, u = words(text, letters), words(question, its_letters)
        both = (h @ p["a"].weight + (u @ p["b"].weight).transpose(1, 2)) + (h * p["c"].weight) @ u.transpose(1, 2)
        seen = both.softmax(2) @ u
        back = both.amax(2).softmax(1)[:, None] @ h
        g = torch.cat([h, seen, h * seen, h * back], 2)
        m = p["model"](g)[0]
        return p["begin"](torch.cat([g, m], 2))[..., 0].softmax(1), p["end"](torch.cat([g, m], 2))[..., 0].softmax(1)

    parts = {f"{name}{i}": nn.Linear(96, 96) for i in range(2) for name in ("gate", "way")}
    return Call(run, words=nn.Embedding(5000, 64), chars=nn.Embedding(100, 16), letters=nn.Conv1d(16, 32, 5, padding=2),
                rnn=nn.LSTM(96, 48, bidirectional=True, batch_first=True), model=nn.LSTM(384, 48, bidirectional=True, batch_first=True),
                a=Weights(96, 1), b=Weights(96, 1), c=Weights(96), begin=nn.Linear(480, 1), end=nn.Linear(480, 1), **parts),\
        tokens(1, 60), tokens(60, 12, words=100), tokens(1, 12), tokens(12, 12, words=100)  # fmt: skip


def memory_of_segments():
    """Relative places by a shift of rows, keys that reach into the segment before (Transformer-XL)."""

    def run(p, x, before):
        keys = torch.cat([before, x], 1)
        q, k, v = p["q"](x), p["k"](keys), p["v"](keys)
        q, k, v = (each.reshape(1, -1, 4, 32).transpose(1, 2) for each in (q, k, v))
        places = p["r"](p["places"].weight).reshape(96, 4, 32).permute(1, 2, 0)
        far = (q + p["bias"].weight[None, :, None]) @ places
        far = F.pad(far, (1, 0)).reshape(1, 4, 97, 32)[:, :, 1:].reshape(1, 4, 32, 96)
        share = ((q @ k.transpose(-2, -1) + far) / math.sqrt(32) + p["mask"].weight * 0).softmax(-1)
        x = p["n1"](x + p["o"]((share @ v).transpose(1, 2).reshape(1, 32, 128)))
        return p["n2"](x + p["up"](x))

    parts = {name: nn.Linear(128, 128) for name in "qkvro"}
    return Call(run, places=Weights(96, 128), bias=Weights(4, 32), mask=Weights(32, 96), n1=nn.LayerNorm(128), n2=nn.LayerNorm(128),
                up=nn.Sequential(nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, 128)), **parts), normal(1, 32, 128), normal(1, 64, 128)  # fmt: skip


def next_of_a_sequence():
    """Causal attention over what a user took, scores of all items (SASRec)."""

    def run(p, ids):
        x = p["goods"](ids) * 8 + p["places"].weight
        mask = torch.full((50, 50), -1e9).triu(1)
        for i in range(2):
            y = p[f"n{i}"](x)
            x = x + p[f"a{i}"](y, x, x, attn_mask=mask, need_weights=False)[0]
            x = x + p[f"f{i}"](x)
        return (x[:, -1] @ p["goods"].weight.t()).topk(20)

    parts = {}
    for i in range(2):
        parts |= {f"n{i}": nn.LayerNorm(64), f"a{i}": nn.MultiheadAttention(64, 2, batch_first=True),
                  f"f{i}": nn.Sequential(nn.LayerNorm(64), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))}  # fmt: skip
    return Call(run, goods=nn.Embedding(20000, 64), places=Weights(50, 64), **parts), tokens(1, 50, words=20000)


def moves_of_skeletons():
    """Sums over neighbouring joints, convolutions over time (ST-GCN)."""

    def block(a, b):
        def run(p, x):
            made = p["made"](x).reshape(1, 3, b, 64, 25)
            h = torch.einsum("nkctv,kvw->nctw", made, p["near"].weight / 25)
            return F.relu(p["time"](F.relu(h)) + (x if a == b else p["way"](x)))

        time = nn.Sequential(nn.BatchNorm2d(b), nn.Conv2d(b, b, (9, 1), padding=(4, 0)), nn.BatchNorm2d(b))
        return Call(run, made=nn.Conv2d(a, 3 * b, 1), near=Weights(3, 25, 25), time=time, way=nn.Conv2d(a, b, 1))

    return nn.Sequential(block(3, 32), block(32, 32), block(32, 64), head(64, 60)), normal(1, 3, 64, 25)


def flow_by_turns():
    """All correlations of two images, looked up around a flow that a recurrent cell improves (RAFT)."""

    def run(p, a, b):
        f, g = p["net"](a).flatten(2)[0], p["net"](b).flatten(2)[0]
        volume = (f.t() @ g / 8).reshape(576, 1, 24, 24)
        h, flow = torch.tanh(p["context"](a)), torch.zeros(1, 2, 24, 24)
        for _ in range(4):
            at = (p["grid"].weight + flow).permute(0, 2, 3, 1).reshape(576, 1, 1, 2) + p["window"].weight[None] * 0.5
            seen = F.grid_sample(volume, at * 2 - 1, align_corners=True).reshape(1, 24, 24, 49).permute(0, 3, 1, 2)
            x = F.relu(p["seen"](torch.cat([seen, flow], 1)))
            z, r = torch.sigmoid(p["gates"](torch.cat([h, x], 1))).chunk(2, 1)
            h = (1 - z) * h + z * torch.tanh(p["new"](torch.cat([r * h, x], 1)))
            flow = flow + 0.1 * p["flow"](h)
        return flow

    net = nn.Sequential(conv(3, 32, 7, 2), conv(32, 48, 3, 2), nn.Conv2d(48, 64, 3, 2, 1))
    context = nn.Sequential(conv(3, 32, 7, 2), conv(32, 32, 3, 2), nn.Conv2d(32, 48, 3, 2, 1))
    return Call(run, net=net, context=context, grid=Weights(1, 2, 24, 24), window=Weights(7, 7, 2), seen=nn.Conv2d(51, 48, 3, 1, 1),
                gates=nn.Conv2d(96, 96, 3, 1, 1), new=nn.Conv2d(96, 48, 3, 1, 1), flow=nn.Conv2d(48, 2, 3, 1, 1)), image(192), image(192)  # fmt: skip


def evens_and_odds():
    """A series split into its even and odd steps, each of which scales the other (SCINet)."""

    def split(depth, p, x, name):
        even, odd = x[..., ::2], x[..., 1::2]
        a, b = odd * torch.exp(p[name + "p"](even)), even * torch.exp(p[name + "q"](odd))
        odd, even = a - p[name + "u"](b), b + p[name + "v"](a)
        if depth:
            even, odd = split(depth - 1, p, even, name + "e"), split(depth - 1, p, odd, name + "o")
        return torch.stack([even, odd], 3).flatten(2)

    names = ["r", "re", "ro", "ree", "reo", "roe", "roo"]
    parts = {n + k: nn.Sequential(nn.ReplicationPad1d(3), nn.Conv1d(7, 28, 5), nn.LeakyReLU(0.01), nn.Conv1d(28, 7, 3), nn.Tanh()) for n in names for k in "pquv"}
    return Call(lambda p, x: p["out"](x + split(2, p, x, "r")), out=nn.Linear(96, 24), **parts), normal(1, 7, 96)


def nodes_with_gates():
    """Sums of messages over edges by scatter, a GRU at each node, a gated sum (GGNN)."""

    def run(p, x, source, target):
        h = p["into"](x)
        for _ in range(4):
            sums = torch.zeros(200, 64).scatter_add(0, target[:, None].expand(-1, 64), p["edge"](h)[source])
            h = p["cell"](sums, h)
        return (torch.sigmoid(p["gate"](torch.cat([h, x], 1))) * torch.tanh(p["value"](h))).sum(0)

    return Call(run, into=nn.Linear(16, 64), edge=nn.Linear(64, 64), cell=nn.GRUCell(64, 64), gate=nn.Linear(80, 32), value=nn.Linear(64, 32)), \
        normal(200, 16), tokens(800, words=200), tokens(800, words=200)  # fmt: skip


def pillars_of_points():
    """Points of cells through a net, their largest values scattered to a map, convolutions over it (PointPillars)."""

    def run(p, points, cells):
        h = F.relu(p["net"](points)).amax(1)
        canvas = torch.zeros(64 * 64, 32).scatter(0, cells[:, None].expand(-1, 32), h)
        x = canvas.t().reshape(1, 32, 64, 64)
        a = p["a"](x)
        b = p["b"](a)
        return p["out"](torch.cat([a, p["up"](b)], 1))

    cells = np.random.RandomState(0).permutation(4096)[:1500].astype(np.int64)
    return Call(run, net=nn.Linear(9, 32), a=nn.Sequential(conv(32, 32, 3, 2), conv(32, 32)), b=nn.Sequential(conv(32, 64, 3, 2), conv(64, 64)),
                up=nn.ConvTranspose2d(64, 32, 2, 2), out=nn.Conv2d(64, 18, 1)), normal(1500, 20, 9), cells  # fmt: skip


def decisions_by_returns():
    """Returns, states and actions in turn as words of a causal transformer (decision transformer)."""

    def run(p, returns, states, actions):
        made = torch.stack([p["r"](returns), p["s"](states), p["a"](actions)], 2).reshape(1, 60, 128)
        h = p["net"](p["norm"](made), mask=torch.full((60, 60), -1e9).triu(1))
        return torch.tanh(p["out"](h.reshape(1, 20, 3, 128)[:, :, 1]))

    layer = nn.TransformerEncoderLayer(128, 4, 512, 0, "gelu", batch_first=True, norm_first=True)
    return Call(run, r=nn.Linear(1, 128), s=nn.Linear(17, 128), a=nn.Linear(6, 128), norm=nn.LayerNorm(128), out=nn.Linear(128, 6),
                net=nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)), normal(1, 20, 1), normal(1, 20, 17), normal(1, 20, 6)  # fmt: skip


def worlds_imagined():
    """Fifteen steps of a world in latent classes, a policy that acts in it (Dreamer)."""

    def run(p, h, z):
        rewards = []
        for _ in range(15):
            action = torch.tanh(p["policy"](torch.cat([h, z], 1)))
            h = p["cell"](F.elu(p["into"](torch.cat([z, action], 1))), h)
            z = p["prior"](h).reshape(1, 16, 16).softmax(2).reshape(1, 256)
            rewards.append(p["reward"](torch.cat([h, z], 1)))
        return torch.cat(rewards, 1), h

    return Call(run, policy=dense((456, 128, 6)), into=nn.Linear(262, 200), cell=nn.GRUCell(200, 200), prior=dense((200, 200, 256)),
                reward=dense((456, 128, 1))), normal(1, 200), normal(1, 256)  # fmt: skip


def bags_of_pieces():
    """Means of the rows of pieces of words, a linear layer (fastText)."""
    return Call(lambda p, ids, ends: p["out"](p["bag"](ids.reshape(-1), ends)).log_softmax(-1), bag=nn.EmbeddingBag(50000, 64, mode="mean"),
                out=nn.Linear(64, 300)), tokens(1, 240, words=50000), np.arange(0, 240, 24).astype(np.int64)  # fmt: skip


def gates_without_state():
    """Gates by the input alone, so that a sequence is a sum of logarithms (minGRU)."""

    def run(p, ids):
        x = p["words"](ids)
        for i in range(2):
            k, h = p[f"into{i}"](p[f"norm{i}"](x)).chunk(2, -1)
            keeps, takes = (-F.softplus(k)).cumsum(1), -F.softplus(-k) + torch.where(h >= 0, (F.relu(h) + 0.5).log(), -F.softplus(-h))
            x = x + p[f"out{i}"](torch.exp(keeps) * torch.cumsum(torch.exp(takes - keeps), 1))
        return p["head"](x[:, -1])

    parts = {}
    for i in range(2):
        parts |= {f"into{i}": nn.Linear(96, 256), f"norm{i}": nn.LayerNorm(96), f"out{i}": nn.Linear(128, 96)}
    return Call(run, words=nn.Embedding(5000, 96), head=nn.Linear(96, 20), **parts), tokens(1, 40)


def slots_for_objects():
    """Slots that compete for the places of an image in three turns (slot attention)."""

    def run(p, x):
        h = p["mlp"](p["norm"](p["net"](x).flatten(2).transpose(1, 2)))
        keys, values, slots = p["k"](h), p["v"](h), p["slots"].weight
        for _ in range(3):
            share = (p["q"](p["ns"](slots)) @ keys[0].t() / 8).softmax(0) + 1e-8
            slots = p["cell"]((share / share.sum(1, keepdim=True)) @ values[0], slots)
            slots = slots + p["up"](slots)
        return slots

    net = nn.Sequential(*[part for a in (3, 64, 64) for part in (nn.Conv2d(a, 64, 5, 1, 2), nn.ReLU())])
    return Call(run, net=net, norm=nn.LayerNorm(64), ns=nn.LayerNorm(64), mlp=dense((64, 64, 64)), k=nn.Linear(64, 64), v=nn.Linear(64, 64), q=nn.Linear(64, 64),
                slots=Weights(7, 64), cell=nn.GRUCell(64, 64), up=dense((64, 128, 64))), image(48)  # fmt: skip


def patches_by_depth():
    """Large depthwise kernels over patches, then 1x1 (ConvMixer)."""

    def block():
        return nn.Sequential(residual(nn.Conv2d(128, 128, 9, padding=4, groups=128), nn.GELU(), nn.BatchNorm2d(128)), nn.Conv2d(128, 128, 1), nn.GELU(),
                             nn.BatchNorm2d(128))  # fmt: skip

    return nn.Sequential(nn.Conv2d(3, 128, 7, 7), nn.GELU(), nn.BatchNorm2d(128), *[block() for _ in range(4)], head(128)), image()


def gates_of_rising_order():
    """Products of ever wider slices behind one depthwise layer (HorNet)."""

    def block(width):
        def run(p, x):
            gate, rest = p["into"](p["norm"](x)).split((width // 4, 7 * width // 4), 1)
            a, b, c = p["depth"](rest).split((width // 4, width // 2, width), 1)
            h = p["last"](p["next"](gate * a) * b) * c
            x = x + p["out"](h)
            return x + p["mlp"](x)

        return Call(run, norm=nn.GroupNorm(1, width), into=nn.Conv2d(width, 2 * width, 1), depth=nn.Conv2d(7 * width // 4, 7 * width // 4, 7, 1, 3, groups=7 * width // 4),
                    next=nn.Conv2d(width // 4, width // 2, 1), last=nn.Conv2d(width // 2, width, 1), out=nn.Conv2d(width, width, 1),
                    mlp=nn.Sequential(nn.Conv2d(width, 4 * width, 1), nn.GELU(), nn.Conv2d(4 * width, width, 1)))  # fmt: skip

    return nn.Sequential(nn.Conv2d(3, 64, 4, 4), block(64), block(64), nn.Conv2d(64, 128, 2, 2), block(128), head(128)), image(160)


def shifts_of_channels():
    """Groups of channels moved by one pixel along each way, then layers over channels (S2-MLP, AS-MLP)."""

    def block(width):
        def run(p, x):
            h = F.gelu(p["into"](p["norm"](x)))
            a, b, c, d = h.chunk(4, -1)
            h = torch.cat([a.roll(1, 1), b.roll(-1, 1), c.roll(1, 2), d.roll(-1, 2)], -1)
            x = x + p["out"](h)
            return x + p["mlp"](x)

        return Call(run, norm=nn.LayerNorm(width), into=nn.Linear(width, width), out=nn.Linear(width, width),
                    mlp=nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.GELU(), nn.Linear(3 * width, width)))  # fmt: skip

    def run(p, x):
        return p["out"](p["blocks"](p["patches"](x).permute(0, 2, 3, 1)).mean((1, 2)))

    return Call(run, patches=nn.Conv2d(3, 96, 8, 8), blocks=nn.Sequential(*[block(96) for _ in range(4)]), out=nn.Linear(96, 1000)), image(192)


def waves_by_couplings():
    """Invertible 1x1 layers and couplings by gated dilated convolutions (WaveGlow)."""

    def run(p, x, sound):
        for i in range(3):
            a, b = F.conv1d(x, p[f"mix{i}"].weight[:, :, None] / 4).chunk(2, 1)
            h = p[f"into{i}"](a)
            for j in range(3):
                u, v = (p[f"w{i}{j}"](h) + p[f"c{i}{j}"](sound)).chunk(2, 1)
                h = h + p[f"r{i}{j}"](torch.tanh(u) * torch.sigmoid(v))
            scale, shift = p[f"end{i}"](h).chunk(2, 1)
            x = torch.cat([a, (b - shift) * torch.exp(-scale)], 1)
        return x.transpose(1, 2).reshape(1, -1)

    parts = {}
    for i in range(3):
        parts |= {f"mix{i}": Weights(8, 8), f"into{i}": nn.Conv1d(4, 48, 1), f"end{i}": nn.Conv1d(48, 8, 1)}
        for j in range(3):
            parts |= {f"w{i}{j}": nn.Conv1d(48, 96, 3, dilation=2**j, padding=2**j), f"c{i}{j}": nn.Conv1d(40, 96, 1), f"r{i}{j}": nn.Conv1d(48, 48, 1)}
    return Call(run, **parts), normal(1, 8, 1000), normal(1, 40, 1000)


def mattes_by_filters():
    """A small matte refined by local linear models of the large image (deep guided filter)."""

    def run(p, x):
        def box(y):
            return F.avg_pool2d(y, 9, 1, 4, count_include_pad=False)

        small = F.interpolate(x, scale_factor=0.25, mode="bilinear")
        matte, guide = torch.sigmoid(p["net"](small)), small.mean(1, keepdim=True)
        mean, seen = box(guide), box(matte)
        a = (box(guide * matte) - mean * seen) / (box(guide * guide) - mean * mean + 1e-2)
        b = seen - a * mean
        a, b = (F.interpolate(each, size=(256, 256), mode="bilinear") for each in (a, b))
        return (a * x.mean(1, keepdim=True) + b).clamp(0, 1)

    return Call(run, net=nn.Sequential(conv(3, 24), conv(24, 24), conv(24, 24), nn.Conv2d(24, 1, 1))), image(256)
