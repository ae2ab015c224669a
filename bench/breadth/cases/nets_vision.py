"""Nets for inference: images and volumes. A case gives a torch module and its inputs, batch 1."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812


def normal(*shape):
    return np.random.RandomState(7).standard_normal(shape).astype(np.float32)


def image(size=224, channels=3):
    return normal(1, channels, size, size)


class Call(nn.Module):
    """A module of named parts and a function of these parts and the inputs."""

    def __init__(self, function, **parts):
        super().__init__()
        self.parts, self.function = nn.ModuleDict(parts), function

    def forward(self, *values):
        return self.function(self.parts, *values)


def residual(*parts):
    return Call(lambda p, x: x + p["inner"](x), inner=nn.Sequential(*parts))


def conv(inputs, outputs, size=3, stride=1, groups=1, activation=nn.ReLU, **more):
    padding = more.pop("padding") if "padding" in more else size // 2
    parts = [nn.Conv2d(inputs, outputs, size, stride, padding, groups=groups, bias=False, **more), nn.BatchNorm2d(outputs)]
    return nn.Sequential(*parts, *([activation()] if activation else []))


def head(channels, classes=1000):
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


def alexnet():
    return nn.Sequential(nn.Conv2d(3, 96, 11, 4, 2), nn.ReLU(), nn.LocalResponseNorm(5), nn.MaxPool2d(3, 2), nn.Conv2d(96, 256, 5, 1, 2, groups=2),
                         nn.ReLU(), nn.LocalResponseNorm(5), nn.MaxPool2d(3, 2), nn.Conv2d(256, 384, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(3, 2),
                         nn.Flatten(), nn.Linear(384 * 36, 1024), nn.ReLU(), nn.Linear(1024, 1000)), image()  # fmt: skip


def vgg():
    parts, channels = [], 3
    for width, count in ((32, 2), (64, 2), (128, 3), (256, 3)):
        for _ in range(count):
            parts += [nn.Conv2d(channels, width, 3, 1, 1), nn.ReLU()]
            channels = width
        parts.append(nn.MaxPool2d(2))
    return nn.Sequential(*parts, head(256)), image(128)


def resnet18():
    class Block(nn.Module):
        def __init__(self, inputs, outputs, stride):
            super().__init__()
            self.inner = nn.Sequential(conv(inputs, outputs, 3, stride), conv(outputs, outputs, activation=None))
            self.short = conv(inputs, outputs, 1, stride, activation=None) if stride > 1 else nn.Identity()

        def forward(self, x):
            return F.relu(self.inner(x) + self.short(x))

    parts = [conv(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)]
    for inputs, outputs, stride in (
        (64, 64, 1),
        (64, 64, 1),
        (64, 128, 2),
        (128, 128, 1),
        (128, 256, 2),
        (256, 256, 1),
        (256, 512, 2),
        (512, 512, 1),
    ):
        parts.append(Block(inputs, outputs, stride))
    return nn.Sequential(*parts, head(512)), image()


def resnext():
    parts = [conv(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1), conv(64, 256, 1)]
    parts += [residual(conv(256, 128, 1), conv(128, 128, 3, groups=32), conv(128, 256, 1, activation=None)) for _ in range(3)]
    return nn.Sequential(*parts, head(256)), image()


def densenet():
    def grown(channels):
        return Call(lambda p, x: torch.cat([x, p["c"](x)], 1), c=nn.Sequential(nn.BatchNorm2d(channels), nn.ReLU(), conv(channels, 128, 1),
                                                                             nn.Conv2d(128, 32, 3, 1, 1)))  # fmt: skip

    parts, channels = [conv(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)], 64
    for count in (4, 6, 8):
        for _ in range(count):
            parts.append(grown(channels))
            channels += 32
        parts += [conv(channels, channels // 2, 1), nn.AvgPool2d(2)]
        channels //= 2
    return nn.Sequential(*parts, head(channels)), image()


def inception():
    def mixed(channels):
        pool = nn.Sequential(nn.AvgPool2d(3, 1, 1), conv(channels, 32, 1))
        tall = nn.Sequential(conv(channels, 64, 1), conv(64, 64, (1, 7), padding=(0, 3)), conv(64, 96, (7, 1), padding=(3, 0)))
        return Call(lambda p, x: torch.cat([part(x) for part in p.values()], 1), a=conv(channels, 64, 1),
                    b=nn.Sequential(conv(channels, 48, 1), conv(48, 64, 5)), c=tall, d=pool)  # fmt: skip

    return nn.Sequential(
        conv(3, 32, 3, 2), conv(32, 64), nn.MaxPool2d(3, 2), mixed(64), mixed(256), nn.MaxPool2d(3, 2), mixed(256), head(256)
    ), image(160)


def squeezenet():
    def fire(inputs, width):
        return Call(lambda p, x: torch.cat([p["a"](p["s"](x)), p["b"](p["s"](x))], 1), s=nn.Sequential(nn.Conv2d(inputs, width, 1), nn.ReLU()),
                    a=nn.Sequential(nn.Conv2d(width, 4 * width, 1), nn.ReLU()), b=nn.Sequential(nn.Conv2d(width, 4 * width, 3, 1, 1), nn.ReLU()))  # fmt: skip

    return nn.Sequential(nn.Conv2d(3, 64, 3, 2), nn.ReLU(), nn.MaxPool2d(3, 2), fire(64, 16), fire(128, 16), nn.MaxPool2d(3, 2), fire(128, 32), fire(256, 32),
                         nn.MaxPool2d(3, 2), fire(256, 48), nn.Conv2d(384, 1000, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten()), image()  # fmt: skip


def excite(channels, inner, gate=nn.Sigmoid):
    return Call(
        lambda p, x: x * p["g"](x),
        g=nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(channels, inner, 1), nn.ReLU(), nn.Conv2d(inner, channels, 1), gate()),
    )


def mobilenet_v3():
    parts, channels = [conv(3, 16, 3, 2, activation=nn.Hardswish)], 16
    for width, inner, size, stride in (
        (24, 72, 3, 2),
        (24, 72, 3, 1),
        (40, 120, 5, 2),
        (40, 120, 5, 1),
        (80, 240, 3, 2),
        (80, 200, 3, 1),
        (112, 480, 3, 1),
    ):
        block = [conv(channels, inner, 1, activation=nn.Hardswish), conv(inner, inner, size, stride, inner, nn.Hardswish),
                 excite(inner, inner // 4, nn.Hardsigmoid), conv(inner, width, 1, activation=None)]  # fmt: skip
        parts.append(residual(*block) if stride == 1 and width == channels else nn.Sequential(*block))
        channels = width
    return nn.Sequential(*parts, head(112)), image()


def efficientnet():
    parts, channels = [conv(3, 32, 3, 2, activation=nn.SiLU)], 32
    for width, factor, size, stride in (
        (16, 1, 3, 1),
        (24, 6, 3, 2),
        (24, 6, 3, 1),
        (40, 6, 5, 2),
        (40, 6, 5, 1),
        (80, 6, 3, 2),
        (80, 6, 3, 1),
    ):
        inner = channels * factor
        block = [conv(channels, inner, 1, activation=nn.SiLU), conv(inner, inner, size, stride, inner, nn.SiLU), excite(inner, max(1, channels // 4)),
                 conv(inner, width, 1, activation=None)]  # fmt: skip
        parts.append(residual(*block) if stride == 1 and width == channels else nn.Sequential(*block))
        channels = width
    return nn.Sequential(*parts, head(80)), image()


def shufflenet():
    def shuffled(channels, groups=4):
        return Call(lambda p, x: F.relu(x + p["b"](p["a"](x).view(1, groups, channels // groups, 28, 28).transpose(1, 2).reshape(1, channels, 28, 28))),
                    a=conv(channels, channels, 1, groups=groups), b=nn.Sequential(conv(channels, channels, 3, groups=channels, activation=None),
                                                                                   conv(channels, channels, 1, groups=groups, activation=None)))  # fmt: skip

    return nn.Sequential(
        conv(3, 24, 3, 2), nn.MaxPool2d(3, 2, 1), conv(24, 240, 1, 2), *[shuffled(240) for _ in range(6)], head(240)
    ), image()


def convnext():
    def norm(channels):
        return Call(lambda p, x: p["n"](x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2), n=nn.LayerNorm(channels))

    def block(channels):
        inner = Call(lambda p, x: p["b"](F.gelu(p["a"](p["n"](x.permute(0, 2, 3, 1))))).permute(0, 3, 1, 2), n=nn.LayerNorm(channels),
                     a=nn.Linear(channels, 4 * channels), b=nn.Linear(4 * channels, channels))  # fmt: skip
        return residual(nn.Conv2d(channels, channels, 7, 1, 3, groups=channels), inner)

    parts = [
        nn.Conv2d(3, 64, 4, 4),
        norm(64),
        block(64),
        block(64),
        norm(64),
        nn.Conv2d(64, 128, 2, 2),
        block(128),
        block(128),
        block(128),
        norm(128),
    ]
    return nn.Sequential(*parts, head(128)), image()


def encoder(width, heads, count, inner=None):
    layer = nn.TransformerEncoderLayer(width, heads, inner or 4 * width, 0.0, F.gelu, batch_first=True, norm_first=True)
    return nn.TransformerEncoder(layer, count, enable_nested_tensor=False)


class PlainAttention(nn.Module):
    """Pre-norm self-attention and its two dense layers, written out."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.n1, self.n2 = heads, nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out, self.a, self.b = (
            nn.Linear(width, 3 * width),
            nn.Linear(width, width),
            nn.Linear(width, 4 * width),
            nn.Linear(4 * width, width),
        )

    def forward(self, x, bias=None):
        n, t, c = x.shape
        q, k, v = self.qkv(self.n1(x)).reshape(n, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        scores = q @ k.transpose(-2, -1) * (c // self.heads) ** -0.5
        shares = (scores if bias is None else scores + bias).softmax(-1)
        x = x + self.out((shares @ v).transpose(1, 2).reshape(n, t, c))
        return x + self.b(F.gelu(self.a(self.n2(x))))


def vision_transformer():
    def run(p, x):
        x = p["patches"](x).flatten(2).transpose(1, 2)
        x = torch.cat([p["class"](torch.zeros(1, 1, dtype=torch.long)), x], 1) + p["places"](torch.arange(197))[None]
        for part in p["blocks"]:
            x = part(x)
        return p["head"](x[:, 0])

    return Call(run, patches=nn.Conv2d(3, 192, 16, 16), places=nn.Embedding(197, 192), blocks=nn.ModuleList([PlainAttention(192, 3) for _ in range(6)]),
                head=nn.Linear(192, 1000), **{"class": nn.Embedding(1, 192)}), image()  # fmt: skip


def swin_windows():
    def run(p, x):
        x = p["patches"](x).permute(0, 2, 3, 1)
        for i, part in enumerate(p["blocks"]):
            x = torch.roll(x, (-3, -3), (1, 2)) if i % 2 else x
            windows = x.reshape(1, 8, 7, 8, 7, 96).transpose(2, 3).reshape(64, 49, 96)
            x = part(windows).reshape(1, 8, 8, 7, 7, 96).transpose(2, 3).reshape(1, 56, 56, 96)
            x = torch.roll(x, (3, 3), (1, 2)) if i % 2 else x
        return p["head"](x.mean((1, 2)))

    return Call(
        run, patches=nn.Conv2d(3, 96, 4, 4), blocks=nn.ModuleList([PlainAttention(96, 3) for _ in range(4)]), head=nn.Linear(96, 1000)
    ), image()


def mlp_mixer():
    class Mixer(nn.Module):
        def __init__(self, tokens, width):
            super().__init__()
            self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.a = nn.Sequential(nn.Linear(tokens, 256), nn.GELU(), nn.Linear(256, tokens))
            self.b = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x):
            x = x + self.a(self.n1(x).transpose(1, 2)).transpose(1, 2)
            return x + self.b(self.n2(x))

    patches = Call(lambda p, x: p["c"](x).flatten(2).transpose(1, 2), c=nn.Conv2d(3, 256, 16, 16))
    return nn.Sequential(patches, *[Mixer(196, 256) for _ in range(4)], Call(lambda p, x: x.mean(1)), nn.Linear(256, 1000)), image()


def yolo_detector():
    def run(p, x):
        small = p["a"](x)
        large = p["b"](small)
        joined = torch.cat([F.interpolate(p["up"](large), scale_factor=2, mode="nearest"), small], 1)
        boxes = [p[name](y).flatten(2) for name, y in (("h1", joined), ("h2", large))]
        out = torch.cat(boxes, 2).reshape(1, 3, 85, -1).transpose(2, 3)
        return torch.cat([torch.sigmoid(out[..., :2]), torch.exp(out[..., 2:4].clamp(max=4)), torch.sigmoid(out[..., 4:])], -1)

    first = [conv(a, b, 3, 2, activation=nn.SiLU) for a, b in ((3, 16), (16, 32), (32, 64), (64, 128))]
    return Call(run, a=nn.Sequential(*first, conv(128, 128, activation=nn.SiLU)), b=conv(128, 256, 3, 2, activation=nn.SiLU), up=nn.Conv2d(256, 128, 1),
                h1=nn.Conv2d(256, 255, 1), h2=nn.Conv2d(256, 255, 1)), image(256)  # fmt: skip


def ssd_with_suppression():
    """A detector whose boxes are decoded and thinned out inside the net."""

    def run(p, x):
        x = p["body"](x)
        boxes, scores = p["boxes"](x).reshape(4, -1).T.sigmoid() * 300, p["scores"](x).reshape(2, -1).softmax(0)[1]
        best, places = scores.topk(100)
        return best, torch.stack([boxes[:, 0], boxes[:, 1], boxes[:, 0] + boxes[:, 2], boxes[:, 1] + boxes[:, 3]], 1)[places]

    return Call(run, body=nn.Sequential(conv(3, 32, 3, 2), conv(32, 64, 3, 2), conv(64, 128, 3, 2), conv(128, 128)), boxes=nn.Conv2d(128, 16, 3, 1, 1),
                scores=nn.Conv2d(128, 8, 3, 1, 1)), image(304)  # fmt: skip


def deeplab():
    def run(p, x):
        y = p["body"](x)
        pooled = F.interpolate(p["pool"](y), size=(33, 33), mode="bilinear", align_corners=False)
        y = p["out"](torch.cat([part(y) for part in p["parts"]] + [pooled], 1))
        return F.interpolate(y, size=(257, 257), mode="bilinear", align_corners=False)

    parts = [conv(128, 64, 1)] + [conv(128, 64, 3, padding=rate, dilation=rate) for rate in (6, 12, 18)]
    body = nn.Sequential(conv(3, 32, 3, 2), conv(32, 64, 3, 2), conv(64, 128, 3, 2), conv(128, 128))
    return Call(run, body=body, parts=nn.ModuleList(parts), pool=nn.Sequential(nn.AdaptiveAvgPool2d(1), conv(128, 64, 1)),
                out=nn.Sequential(conv(320, 64, 1), nn.Conv2d(64, 21, 1))), image(257)  # fmt: skip


def unet():
    def run(p, x):
        a = p["a"](x)
        b = p["b"](a)
        c = p["c"](b)
        b = p["d"](torch.cat([p["u1"](c), b], 1))
        return p["out"](torch.cat([p["u2"](b), a], 1))

    double = lambda i, o: nn.Sequential(conv(i, o), conv(o, o))  # noqa: E731
    return Call(run, a=double(1, 32), b=nn.Sequential(nn.MaxPool2d(2), double(32, 64)), c=nn.Sequential(nn.MaxPool2d(2), double(64, 128)),
                u1=nn.ConvTranspose2d(128, 64, 2, 2), d=double(128, 64), u2=nn.ConvTranspose2d(64, 32, 2, 2),
                out=nn.Sequential(conv(64, 32), nn.Conv2d(32, 2, 1))), image(192, 1)  # fmt: skip


def volumes_3d():
    return nn.Sequential(nn.Conv3d(1, 16, 3, 1, 1), nn.BatchNorm3d(16), nn.ReLU(), nn.MaxPool3d(2), nn.Conv3d(16, 32, 3, 1, 1), nn.BatchNorm3d(32), nn.ReLU(),
                         nn.AvgPool3d(2), nn.Conv3d(32, 64, 3, 1, 1), nn.ReLU(), nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(64, 10)), normal(1, 1, 32, 64, 64)  # fmt: skip


def video_2_plus_1():
    space = lambda i, o: nn.Sequential(nn.Conv3d(i, o, (1, 3, 3), (1, 2, 2), (0, 1, 1)), nn.ReLU())  # noqa: E731
    past = lambda c: nn.Sequential(nn.Conv3d(c, c, (3, 1, 1), 1, (1, 0, 0)), nn.ReLU())  # noqa: E731
    return nn.Sequential(
        space(3, 32), past(32), space(32, 64), past(64), nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(64, 100)
    ), normal(1, 3, 8, 112, 112)


def super_resolution():
    return nn.Sequential(nn.Conv2d(3, 64, 5, 1, 2), nn.ReLU(), *[residual(nn.Conv2d(64, 64, 3, 1, 1), nn.ReLU(), nn.Conv2d(64, 64, 3, 1, 1)) for _ in range(3)],
                         nn.Conv2d(64, 48, 3, 1, 1), nn.PixelShuffle(4)), image(96)  # fmt: skip


def style_transfer():
    layer = lambda i, o, size, stride: nn.Sequential(
        nn.ReflectionPad2d(size // 2), nn.Conv2d(i, o, size, stride), nn.InstanceNorm2d(o, affine=True), nn.ReLU()
    )  # noqa: E731, E501
    up = nn.Upsample(scale_factor=2, mode="nearest")
    return nn.Sequential(layer(3, 16, 9, 1), layer(16, 32, 3, 2), layer(32, 64, 3, 2), residual(layer(64, 64, 3, 1)), residual(layer(64, 64, 3, 1)), up,
                         layer(64, 32, 3, 1), up, layer(32, 16, 3, 1), nn.ReflectionPad2d(4), nn.Conv2d(16, 3, 9)), image(128)  # fmt: skip


def pose_heat_maps():
    up = lambda i, o: nn.Sequential(nn.ConvTranspose2d(i, o, 4, 2, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU())  # noqa: E731
    return nn.Sequential(conv(3, 32, 7, 2), conv(32, 64, 3, 2), conv(64, 128, 3, 2), conv(128, 128, 3, 2), up(128, 64), up(64, 64),
                         nn.Conv2d(64, 17, 1)), image(192)  # fmt: skip


def tracker_correlation():
    """Siamese tracker: the template's features are the kernel of a depthwise correlation."""

    def run(p, template, scene):
        kernel, features = p["body"](template), p["body"](scene)
        return p["out"](F.conv2d(features, kernel.transpose(0, 1), groups=128))

    body = nn.Sequential(conv(3, 32, 7, 2), conv(32, 64, 3, 2), conv(64, 128, 3, 2))
    return Call(run, body=body, out=nn.Sequential(conv(128, 64, 1), nn.Conv2d(64, 5, 1))), normal(1, 3, 63, 63), image(127)


def optical_flow_warp():
    def run(p, a, b):
        flow = p["flow"](torch.cat([a, b], 1))
        grid = F.affine_grid(torch.eye(2, 3)[None], (1, 3, 128, 128), align_corners=False) + 0.1 * flow.permute(0, 2, 3, 1)
        return F.grid_sample(b, grid, align_corners=False)

    return Call(run, flow=nn.Sequential(conv(6, 32), conv(32, 32), nn.Conv2d(32, 2, 3, 1, 1))), image(128), image(128)[..., ::-1].copy()


def perceiver():
    """64 latents attend to 3000 pixels, then to themselves."""

    def run(p, x):
        x = p["pixels"](x.flatten(2).transpose(1, 2)) + p["places"].weight
        h = p["latents"].weight[None]
        for cross, norm, own in zip(p["cross"], p["norms"], p["own"]):
            q, (k, v) = cross[0](h), cross[1](norm(x)).chunk(2, -1)
            h = own(h + (q @ k.transpose(-2, -1) / 10).softmax(-1) @ v)
        return p["head"](h.mean(1))

    cross = nn.ModuleList([nn.ModuleList([nn.Linear(100, 100), nn.Linear(100, 200)]) for _ in range(2)])
    return Call(run, pixels=nn.Linear(3, 100), places=nn.Embedding(3000, 100), latents=nn.Embedding(64, 100), cross=cross,
                norms=nn.ModuleList([nn.LayerNorm(100) for _ in range(2)]), own=nn.ModuleList([encoder(100, 5, 2) for _ in range(2)]),
                head=nn.Linear(100, 10)), normal(1, 3, 50, 60)  # fmt: skip


def unet_of_volumes():
    block = lambda i, o: nn.Sequential(nn.Conv3d(i, o, 3, 1, 1), nn.InstanceNorm3d(o, affine=True), nn.LeakyReLU())  # noqa: E731

    def run(p, x):
        first = p["a"](x)
        second = p["b"](F.max_pool3d(first, 2))
        low = p["c"](F.max_pool3d(second, 2))
        up = p["d"](torch.cat([p["up1"](low), second], 1))
        return p["out"](torch.cat([F.interpolate(up, scale_factor=2, mode="trilinear"), first], 1))

    return Call(run, a=block(1, 16), b=block(16, 32), c=block(32, 48), up1=nn.ConvTranspose3d(48, 32, 2, 2), d=block(64, 24),
                out=nn.Conv3d(40, 3, 1)), normal(1, 1, 20, 36, 44)  # fmt: skip


def retina_pyramid():
    """Heads shared by the levels of a pyramid, of an image with odd sizes."""

    def run(p, x):
        c3 = p["c3"](x)
        c4 = p["c4"](c3)
        c5 = p["c5"](c4)
        p5 = p["l5"](c5)
        p4 = p["l4"](c4) + F.interpolate(p5, c4.shape[2:])
        p3 = p["l3"](c3) + F.interpolate(p4, c3.shape[2:])
        found = []
        for level in (p3, p4, p5, p["p6"](c5)):
            for name, width in (("classes", 20), ("places", 4)):
                found.append(p[name](level).permute(0, 2, 3, 1).reshape(1, -1, width))
        return torch.cat(found[::2], 1).sigmoid(), torch.cat(found[1::2], 1)

    many = lambda out: nn.Sequential(*[conv(64, 64) for _ in range(2)], nn.Conv2d(64, 9 * out, 3, 1, 1))  # noqa: E731
    return Call(run, c3=nn.Sequential(conv(3, 24, 3, 2), conv(24, 48, 3, 2), conv(48, 64, 3, 2)), c4=conv(64, 96, 3, 2), c5=conv(96, 128, 3, 2),
                l3=nn.Conv2d(64, 64, 1), l4=nn.Conv2d(96, 64, 1), l5=nn.Conv2d(128, 64, 1), p6=nn.Conv2d(128, 64, 3, 2, 1), classes=many(20),
                places=many(4)), normal(1, 3, 203, 267)  # fmt: skip


def capsules_by_routing():
    def run(p, x):
        h = p["b"](F.relu(p["a"](x))).reshape(1, 32, 8, -1).permute(0, 1, 3, 2).reshape(1, -1, 8)
        squash = lambda s: s * (s.pow(2).sum(-1, keepdim=True) / (1 + s.pow(2).sum(-1, keepdim=True))) * torch.rsqrt(  # noqa: E731
            s.pow(2).sum(-1, keepdim=True) + 1e-7
        )
        votes = torch.einsum("bic,nicd->bnid", squash(h), p["turn"].weight.reshape(10, -1, 8, 16))
        logits = torch.zeros_like(votes[..., :1])
        for _ in range(3):
            made = squash((logits.softmax(1) * votes).sum(2, keepdim=True))
            logits = logits + (votes * made).sum(-1, keepdim=True)
        return made.pow(2).sum(-1).sqrt().flatten(1)

    return Call(run, a=nn.Conv2d(1, 64, 9), b=nn.Conv2d(64, 256, 9, 2), turn=nn.Embedding(10 * 1152 * 8, 16)), image(28, 1)


def dcgan_generator():
    up = lambda i, o: nn.Sequential(nn.ConvTranspose2d(i, o, 4, 2, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU())  # noqa: E731
    return nn.Sequential(
        nn.ConvTranspose2d(100, 256, 4), nn.ReLU(), up(256, 128), up(128, 64), up(64, 32), nn.ConvTranspose2d(32, 3, 4, 2, 1), nn.Tanh()
    ), normal(1, 100, 1, 1)


def diffusion_unet_block():
    norm = lambda c: nn.Sequential(nn.GroupNorm(8, c), nn.SiLU())  # noqa: E731

    def run(p, x, time):
        h = p["a"](x) + p["t"](time)[..., None, None]
        h = x + p["b"](h)
        tokens = h.flatten(2).transpose(1, 2)
        return p["c"](p["attention"](tokens).transpose(1, 2).reshape(1, 64, 32, 32))

    return Call(run, a=nn.Sequential(norm(64), nn.Conv2d(64, 64, 3, 1, 1)), t=nn.Linear(128, 64), b=nn.Sequential(norm(64), nn.Conv2d(64, 64, 3, 1, 1)),
                attention=PlainAttention(64, 4), c=nn.Sequential(norm(64), nn.Conv2d(64, 4, 3, 1, 1))), normal(1, 64, 32, 32), normal(1, 128)  # fmt: skip
