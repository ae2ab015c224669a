"""Nets for inference of recent kinds: points, graphs, images by attention, generators, detectors by queries. As nets_vision.py."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from cases.nets_scans import Weights, dense
from cases.nets_vision import Call, PlainAttention, conv, excite, head, image, normal, residual


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
            tokens = layer["n2"](tokens + attend(layer["over"], tokens, memory, memory))
            tokens = layer["n3"](tokens + layer["ffn"](tokens))
            memory = layer["n4"](memory + attend(layer["back"], memory, tokens, tokens))
        larger = p["up"](memory.transpose(1, 2).reshape(1, 128, 32, 32))
        return (p["mask"](tokens[:, :4]) @ larger.flatten(2)).reshape(1, 4, 128, 128), p["score"](tokens[:, 0])

    def attention():
        return nn.ModuleDict({name: nn.Linear(128, 128) for name in ("q", "k", "v", "out")})

    def layer():
        return nn.ModuleDict({"self": attention(), "over": attention(), "back": attention(), "ffn": dense([128, 512, 128]),
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


def joints_of_a_pose():
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
