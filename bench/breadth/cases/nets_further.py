"""Nets for inference: equations, flows, long texts, pairs, stereo, speakers, letters in images. As nets_vision.py."""

import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from cases.nets_other import tokens
from cases.nets_scans import Weights, dense
from cases.nets_vision import Call, conv, head, image, normal, residual


def ode_by_runge_kutta():
    """Eight steps of four slopes each (neural ODE), then a class."""

    def run(p, x):
        for i in range(8):
            time = torch.full((1, 1), i / 8)
            slope = lambda h, t: p["net"](torch.cat([h, t], 1))  # noqa: E731
            a = slope(x, time)
            b = slope(x + a / 16, time + 1 / 16)
            c = slope(x + b / 16, time + 1 / 16)
            d = slope(x + c / 8, time + 1 / 8)
            x = x + (a + 2 * b + 2 * c + d) / 48
        return p["out"](x)

    return Call(run, net=dense([65, 128, 128, 64], nn.Tanh), out=nn.Linear(64, 10)), normal(1, 64)


def flow_by_splines():
    """Samples of a flow: rational splines inverted, bins found by comparing."""

    def run(p, x):
        for i in range(4):
            kept, y = x.flip(-1).chunk(2, -1)
            parts = p[f"net{i}"](kept).unflatten(-1, (16, 25))
            width, height = (0.01 + 0.92 * h.softmax(-1) for h in (parts[..., :8], parts[..., 8:16]))
            left, low = (torch.cumsum(h, -1) - h for h in (width, height))
            place = ((y[..., None] >= low * 6 - 3).long().sum(-1, keepdim=True) - 1).clamp(0, 7)
            w, h, x0, y0 = (torch.gather(each * 6, -1, place)[..., 0] for each in (width, height, left, low))
            slopes = 0.01 + F.softplus(parts[..., 16:])
            a, b = torch.gather(slopes, -1, place)[..., 0], torch.gather(slopes, -1, place + 1)[..., 0]
            s, y1 = h / w, y - (y0 - 3)
            bend = y1 * (a + b - 2 * s)
            qa, qb, qc = h * (s - a) + bend, h * a - bend, -s * y1
            share = 2 * qc / (-qb - (qb.square() - 4 * qa * qc).clamp(min=0).sqrt())
            x = torch.cat([kept, torch.where(y.abs() < 3, share * w + x0 - 3, y)], -1)
        return x

    return Call(run, **{f"net{i}": dense([16, 128, 400]) for i in range(4)}), normal(1, 32)


def windows_of_long_texts():
    """Words see neighbours within a window (Longformer), two layers over 512 words."""
    away = np.arange(192) - 64 - np.arange(64)[:, None]
    mask = np.where(abs(away) <= 64, 0, -1e9) + np.zeros((8, 1, 1))
    mask[0, :, :64], mask[-1, :, 128:] = -1e9, -1e9
    mask = torch.tensor(mask, dtype=torch.float32)

    def run(p, ids):
        x = p["words"](ids)
        for i in range(2):
            q, k, v = p[f"qkv{i}"](p[f"n{i}"](x)).unflatten(-1, (3, 4, 32)).permute(2, 0, 3, 1, 4)
            k, v = (F.pad(h, (0, 0, 64, 64)) for h in (k, v))
            k, v = (torch.stack([h[:, :, j : j + 192] for j in range(0, 512, 64)], 2) for h in (k, v))
            scores = q.unflatten(2, (8, 64)) @ k.transpose(-1, -2) / math.sqrt(32) + mask
            x = x + p[f"o{i}"]((scores.softmax(-1) @ v).flatten(2, 3).transpose(1, 2).flatten(2))
            x = x + p[f"f{i}"](p[f"m{i}"](x))
        return p["out"](x[:, 0])

    parts = {"words": nn.Embedding(5000, 128), "out": nn.Linear(128, 10)}
    for i in range(2):
        parts |= {f"qkv{i}": nn.Linear(128, 384), f"n{i}": nn.LayerNorm(128), f"m{i}": nn.LayerNorm(128)}
        parts |= {f"o{i}": nn.Linear(128, 128), f"f{i}": dense([128, 512, 128], nn.GELU)}
    return Call(run, **parts), tokens(1, 512)


def relations_of_objects():
    """A net over every pair of an image's places and a question."""
    places = torch.stack(torch.meshgrid(torch.arange(8) / 8, torch.arange(8) / 8, indexing="ij"), -1).reshape(1, 64, 2)

    def run(p, x, question):
        objects = torch.cat([p["stem"](x).flatten(2).transpose(1, 2), places], -1)
        pairs = [objects[:, :, None].expand(-1, -1, 64, -1), objects[:, None].expand(-1, 64, -1, -1), question[:, None, None].expand(-1, 64, 64, -1)]
        return p["out"](p["net"](torch.cat(pairs, -1)).sum((1, 2)))

    stem = nn.Sequential(conv(3, 24, stride=2), conv(24, 24, stride=2), conv(24, 24, stride=2))
    return Call(run, stem=stem, net=dense([64, 128, 128, 128]), out=dense([128, 128, 10])), image(64), normal(1, 12)


def compressed_interactions():
    """Products of all pairs of fields, compressed, layer upon layer (xDeepFM), for 64 candidates."""

    def run(p, ids):
        x = p["table"](ids)
        h, kept = x, []
        for i in range(2):
            h = F.relu(p[f"cin{i}"]((h[:, :, None] * x[:, None]).flatten(1, 2)))
            kept.append(h.sum(-1))
        return torch.sigmoid(p["out"](torch.cat([*kept, p["deep"](x.flatten(1))], 1)))

    cin = {"cin0": nn.Conv1d(400, 32, 1), "cin1": nn.Conv1d(640, 32, 1)}
    return Call(run, table=nn.Embedding(10000, 16), deep=dense([320, 128, 64]), out=nn.Linear(128, 1), **cin), tokens(64, 20)


def words_by_hashes():
    """Words attend to those of the same hash, sorted and in chunks (Reformer)."""

    def run(p, ids):
        x = p["words"](ids)
        q, v = p["qv"](p["n"](x)).unflatten(-1, (2, 4, 32)).permute(2, 0, 3, 1, 4)
        near = q @ p["turn"].weight
        order = torch.cat([near, -near], -1).argmax(-1).mul(512).add(torch.arange(512)).argsort(-1)
        back = order.argsort(-1)
        q, v = (torch.gather(h, 2, order[..., None].expand(-1, -1, -1, 32)).unflatten(2, (8, 64)) for h in (q, v))
        both = lambda h: torch.cat([torch.roll(h, 1, 2), h], 3)  # noqa: E731
        scores = q @ both(F.normalize(q, dim=-1)).transpose(-1, -2)
        made = torch.gather((scores.softmax(-1) @ both(v)).flatten(2, 3), 2, back[..., None].expand(-1, -1, -1, 32))
        x = x + p["o"](made.transpose(1, 2).flatten(2))
        return p["out"]((x + p["f"](x)).mean(1))

    return Call(run, words=nn.Embedding(5000, 128), n=nn.LayerNorm(128), qv=nn.Linear(128, 256), turn=Weights(32, 16), o=nn.Linear(128, 128),
                f=dense([128, 512, 128]), out=nn.Linear(128, 10)), tokens(1, 512)  # fmt: skip


def letters_in_images():
    """Convolutions make a row of features, two recurrent layers read it (CRNN)."""

    def run(p, x):
        h = p["stem"](x).squeeze(2).transpose(1, 2)
        return p["out"](p["read"](h)[0]).log_softmax(-1)

    stem = nn.Sequential(conv(1, 32), nn.MaxPool2d(2), conv(32, 64), nn.MaxPool2d(2), conv(64, 128), nn.MaxPool2d((2, 1)), conv(128, 128),
                         nn.MaxPool2d((2, 1)), nn.Conv2d(128, 128, (2, 1)), nn.ReLU())  # fmt: skip
    return Call(run, stem=stem, read=nn.LSTM(128, 96, 2, batch_first=True, bidirectional=True), out=nn.Linear(192, 80)), normal(1, 1, 32, 128)


def depths_by_two_eyes():
    """Features of both images at every shift, weighed by convolutions over volumes; the mean shift (GC-Net)."""

    def run(p, left, right):
        a, b = p["stem"](left), p["stem"](right)
        shifted = [torch.cat([a, F.pad(b, (i, 0))[..., : b.shape[-1]]], 1) for i in range(16)]
        h = p["up"](F.relu(p["down"](p["mix"](torch.stack(shifted, 2)))))
        share = F.interpolate(h.squeeze(1), scale_factor=4, mode="bilinear", align_corners=False).softmax(1)
        return (share * torch.arange(16.0)[:, None, None]).sum(1)

    stem = nn.Sequential(conv(3, 16, stride=2), conv(16, 16, stride=2), nn.Conv2d(16, 12, 3, 1, 1))
    mix = nn.Sequential(nn.Conv3d(24, 16, 3, 1, 1), nn.BatchNorm3d(16), nn.ReLU())
    net = Call(run, stem=stem, mix=mix, down=nn.Conv3d(16, 24, 3, 2, 1), up=nn.ConvTranspose3d(24, 1, 4, 2, 1))
    return net, image(96), image(96) * 0.5


def disentangled_attention():
    """Scores by content and by relative places, both ways (DeBERTa)."""
    away = (torch.arange(96)[:, None] - torch.arange(96)).clamp(-32, 31) + 32

    def heads(h):
        return h.unflatten(-1, (4, 32)).transpose(-2, -3)

    def run(p, ids):
        x = p["words"](ids)
        for i in range(2):
            q, k, v = (heads(p[f"{name}{i}"](x)) for name in "qkv")
            kr, qr = heads(p[f"k{i}"](p["places"].weight)), heads(p[f"q{i}"](p["places"].weight))
            here = torch.gather(q @ kr.transpose(-1, -2), -1, away.expand(1, 4, -1, -1))
            there = torch.gather(k @ qr.transpose(-1, -2), -1, away.expand(1, 4, -1, -1)).transpose(-1, -2)
            shares = ((q @ k.transpose(-1, -2) + here + there) / math.sqrt(96)).softmax(-1)
            x = p[f"n{i}"](x + p[f"o{i}"]((shares @ v).transpose(1, 2).flatten(2)))
            x = p[f"m{i}"](x + p[f"f{i}"](x))
        return x

    parts = {"words": nn.Embedding(5000, 128), "places": Weights(64, 128)}
    for i in range(2):
        parts |= {f"{name}{i}": nn.Linear(128, 128) for name in "qkvo"}
        parts |= {f"n{i}": nn.LayerNorm(128), f"m{i}": nn.LayerNorm(128), f"f{i}": dense([128, 512, 128], nn.GELU)}
    return Call(run, **parts), tokens(1, 96)


def speakers_by_statistics():
    """Dilated convolutions over time in a chain of channel groups, then mean and spread by attention (ECAPA)."""

    def block(p, i, x):
        h, made, last = p[f"a{i}"](x).chunk(4, 1), [], None
        for j, part in enumerate(h):
            last = part if j == 0 else p[f"r{i}{j}"](part if last is None or j == 1 else part + last)
            made.append(last)
        h = p[f"b{i}"](torch.cat(made, 1))
        return x + h * p[f"s{i}"](h.mean(2, keepdim=True))

    def run(p, x):
        h, kept = p["stem"](x), []
        for i in range(3):
            h = block(p, i, h)
            kept.append(h)
        h = F.relu(p["join"](torch.cat(kept, 1)))
        share = p["attend"](h).softmax(2)
        mean = (share * h).sum(2)
        spread = ((share * h.square()).sum(2) - mean.square()).clamp(min=1e-6).sqrt()
        return F.normalize(p["out"](torch.cat([mean, spread], 1)))

    def conv1(a, b, size=1, dilation=1):
        return nn.Sequential(nn.Conv1d(a, b, size, padding=dilation * (size // 2), dilation=dilation), nn.ReLU(), nn.BatchNorm1d(b))

    parts = {"stem": conv1(80, 128, 5), "join": nn.Conv1d(384, 256, 1), "out": nn.Linear(512, 128)}
    parts["attend"] = nn.Sequential(nn.Conv1d(256, 64, 1), nn.Tanh(), nn.Conv1d(64, 256, 1))
    for i in range(3):
        parts |= {f"a{i}": conv1(128, 128), f"b{i}": conv1(128, 128), **{f"r{i}{j}": conv1(32, 32, 3, i + 2) for j in (1, 2, 3)}}
        parts[f"s{i}"] = nn.Sequential(nn.Conv1d(128, 32, 1), nn.ReLU(), nn.Conv1d(32, 128, 1), nn.Sigmoid())
    return Call(run, **parts), normal(1, 80, 200)


def channels_first_norm(p, x):
    return p(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


def simple_gates():
    """Image restoration: halves of the channels multiplied instead of an activation (NAFNet)."""

    def block(p, x):
        h = p["deep"](p["wide"](channels_first_norm(p["n"], x)))
        a, b = h.chunk(2, 1)
        h = a * b
        x = x + p["narrow"](h * p["scale"](h.mean((2, 3), keepdim=True)))
        a, b = p["f"](channels_first_norm(p["m"], x)).chunk(2, 1)
        return x + p["g"](a * b)

    def made(width):
        return Call(block, n=nn.LayerNorm(width), m=nn.LayerNorm(width), wide=nn.Conv2d(width, 2 * width, 1), scale=nn.Conv2d(width, width, 1),
                    deep=nn.Conv2d(2 * width, 2 * width, 3, 1, 1, groups=2 * width), narrow=nn.Conv2d(width, width, 1),
                    f=nn.Conv2d(width, 2 * width, 1), g=nn.Conv2d(width, width, 1))  # fmt: skip

    def run(p, x):
        a = p["a"](p["into"](x))
        h = p["b"](p["down"](a))
        return x + p["out"](p["c"](a + F.pixel_shuffle(p["up"](h), 2)))

    return Call(run, into=nn.Conv2d(3, 24, 3, 1, 1), a=made(24), down=nn.Conv2d(24, 48, 2, 2), b=nn.Sequential(made(48), made(48)),
                up=nn.Conv2d(48, 96, 1), c=made(24), out=nn.Conv2d(24, 3, 3, 1, 1)), image(96)  # fmt: skip


def pooling_former():
    """Means of neighbours in attention's place (PoolFormer)."""

    def mix(p, x):
        h = p["n"](x)
        x = x + p["s"].weight * (F.avg_pool2d(h, 3, 1, 1, count_include_pad=False) - h)
        return x + p["t"].weight * p["f"](p["m"](x))

    def block(width):
        inner = nn.Sequential(nn.Conv2d(width, 4 * width, 1), nn.GELU(), nn.Conv2d(4 * width, width, 1))
        return Call(mix, n=nn.GroupNorm(1, width), m=nn.GroupNorm(1, width), s=Weights(width, 1, 1), t=Weights(width, 1, 1), f=inner)

    stages = [nn.Conv2d(3, 48, 7, 4, 2), block(48), block(48), nn.Conv2d(48, 96, 3, 2, 1), block(96), block(96), nn.Conv2d(96, 192, 3, 2, 1), block(192)]
    return nn.Sequential(*stages, nn.GroupNorm(1, 192), head(192)), image(160)


def columns_as_words():
    """Every column of a table is a word of a transformer (FT-Transformer), 16 rows."""

    def run(p, numbers, kinds):
        words = numbers[..., None] * p["scale"].weight + p["shift"].weight
        x = torch.cat([p["first"].weight.expand(16, -1, -1), words, p["table"](kinds)], 1)
        for i in range(3):
            q, k, v = p[f"qkv{i}"](p[f"n{i}"](x)).unflatten(-1, (3, 8, 8)).permute(2, 0, 3, 1, 4)
            x = x + p[f"o{i}"](((q @ k.transpose(-1, -2) / math.sqrt(8)).softmax(-1) @ v).transpose(1, 2).flatten(2))
            a, b = p[f"f{i}"](p[f"m{i}"](x)).chunk(2, -1)
            x = x + p[f"g{i}"](a * F.relu(b))
        return p["out"](F.relu(x[:, 0]))

    parts = {"scale": Weights(20, 64), "shift": Weights(20, 64), "first": Weights(1, 64), "table": nn.Embedding(5000, 64), "out": nn.Linear(64, 2)}
    for i in range(3):
        parts |= {f"qkv{i}": nn.Linear(64, 192), f"n{i}": nn.LayerNorm(64), f"m{i}": nn.LayerNorm(64), f"o{i}": nn.Linear(64, 64)}
        parts |= {f"f{i}": nn.Linear(64, 172), f"g{i}": nn.Linear(86, 64)}
    return Call(run, **parts), normal(16, 20), tokens(16, 12)


def two_speeds_of_video():
    """A path of few images with many channels and one of many images with few (SlowFast)."""

    def conv3(a, b, size, stride=1):
        padding = tuple(each // 2 for each in size)
        return nn.Sequential(nn.Conv3d(a, b, size, stride, padding, bias=False), nn.BatchNorm3d(b), nn.ReLU())

    def run(p, x):
        slow, fast = p["s0"](x[:, :, ::4]), p["f0"](x)
        for i in (1, 2):
            slow = torch.cat([slow, p[f"join{i}"](fast)], 1)
            slow, fast = p[f"s{i}"](slow), p[f"f{i}"](fast)
        return p["out"](torch.cat([slow.mean((2, 3, 4)), fast.mean((2, 3, 4))], 1))

    return Call(run, s0=conv3(3, 32, (1, 7, 7), (1, 4, 4)), f0=conv3(3, 8, (5, 7, 7), (1, 4, 4)), join1=nn.Conv3d(8, 16, (5, 1, 1), (4, 1, 1), (2, 0, 0)),
                join2=nn.Conv3d(16, 32, (5, 1, 1), (4, 1, 1), (2, 0, 0)), s1=residual_in(conv3(48, 64, (1, 3, 3), (1, 2, 2)), 64),
                s2=conv3(96, 128, (3, 3, 3), (1, 2, 2)), f1=conv3(8, 16, (3, 3, 3), (1, 2, 2)), f2=conv3(16, 32, (3, 3, 3), (1, 2, 2)),
                out=nn.Linear(160, 100)), normal(1, 3, 16, 112, 112)  # fmt: skip


def residual_in(stem, width):
    inner = residual(nn.Conv3d(width, width, (1, 3, 3), 1, (0, 1, 1), bias=False), nn.BatchNorm3d(width), nn.ReLU())
    return nn.Sequential(stem, inner)


def speech_by_location():
    """Eight turns of a decoder that looks where it looked before (Tacotron 2)."""

    def run(p, heard):
        keys, shares, total = p["key"](heard), torch.zeros(1, 1, 60), torch.zeros(1, 1, 60)
        h, c, made, mel = torch.zeros(1, 128), torch.zeros(1, 128), [], torch.zeros(1, 40)
        read = torch.zeros(1, 128)
        for _ in range(8):
            h, c = p["cell"](torch.cat([p["pre"](mel), read], 1), (h, c))
            places = p["where"](torch.cat([shares, total], 1)).transpose(1, 2)
            shares = p["score"](torch.tanh(p["query"](h)[:, None] + keys + p["look"](places))).transpose(1, 2).softmax(-1)
            total = total + shares
            read = (shares @ heard)[:, 0]
            mel = p["mel"](torch.cat([h, read], 1))
            made.append(mel)
        mel = torch.stack(made, 2)
        return mel + p["post"](mel)

    post = nn.Sequential(nn.Conv1d(40, 64, 5, padding=2), nn.Tanh(), nn.Conv1d(64, 40, 5, padding=2))
    return Call(run, key=nn.Linear(128, 64), cell=nn.LSTMCell(192, 128), pre=dense([40, 64, 64]), where=nn.Conv1d(2, 16, 15, padding=7),
                score=nn.Linear(64, 1), query=nn.Linear(128, 64), look=nn.Linear(16, 64), mel=nn.Linear(256, 40), post=post), normal(1, 60, 128)  # fmt: skip
