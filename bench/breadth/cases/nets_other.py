"""Nets for inference: texts, speech, series, recommenders, graphs. A case gives a torch module (or a model of onnx.helper) and its
inputs, batch 1."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from cases.nets_vision import Call, PlainAttention, encoder, normal, residual

RANDOM = 7


def tokens(*shape, words=5000):
    return np.random.RandomState(RANDOM).randint(0, words, shape).astype(np.int64)


def bert_small():
    def run(p, ids, mask):
        x = p["norm"](p["words"](ids) + p["places"](torch.arange(64))[None])
        bias = (1.0 - mask.to(torch.float32))[:, None, None] * -1e4
        for part in p["blocks"]:
            x = part(x, bias)
        return p["head"](torch.tanh(p["pool"](x[:, 0])))

    return Call(run, words=nn.Embedding(5000, 256), places=nn.Embedding(64, 256), norm=nn.LayerNorm(256), pool=nn.Linear(256, 256), head=nn.Linear(256, 2),
                blocks=nn.ModuleList([PlainAttention(256, 4) for _ in range(4)])), tokens(1, 64), np.ones((1, 64), np.int64)  # fmt: skip


def gpt_token_with_cache():
    """One new token; keys and values of those before it come in and go out."""

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.n1, self.n2, self.qkv, self.out = nn.LayerNorm(256), nn.LayerNorm(256), nn.Linear(256, 768), nn.Linear(256, 256)
            self.a, self.b = nn.Linear(256, 1024), nn.Linear(1024, 256)

        def forward(self, x, keys, values):
            q, k, v = (part.reshape(1, 1, 4, 64).transpose(1, 2) for part in self.qkv(self.n1(x)).chunk(3, -1))
            keys, values = torch.cat([keys, k], 2), torch.cat([values, v], 2)
            shares = (q @ keys.transpose(-2, -1) / 8).softmax(-1)
            x = x + self.out((shares @ values).transpose(1, 2).reshape(1, 1, 256))
            return x + self.b(F.gelu(self.a(self.n2(x)), approximate="tanh")), keys, values

    def run(p, token, cache):
        x, kept = p["words"](token), []
        for i, layer in enumerate(p["layers"]):
            x, keys, values = layer(x, cache[2 * i], cache[2 * i + 1])
            kept += [keys, values]
        return x @ p["words"].weight.T, torch.stack(kept)

    return (
        Call(run, words=nn.Embedding(5000, 256), layers=nn.ModuleList([Layer() for _ in range(4)])),
        tokens(1, 1),
        normal(8, 1, 4, 128, 64),
    )


def llama_block_rotary():
    class Norm(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(256))

        def forward(self, x):
            return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.scale

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.n1, self.n2 = Norm(), Norm()
            self.q, self.kv, self.o = nn.Linear(256, 256, False), nn.Linear(256, 256, False), nn.Linear(256, 256, False)
            self.up, self.gate, self.down = nn.Linear(256, 688, False), nn.Linear(256, 688, False), nn.Linear(688, 256, False)
            angles = torch.outer(torch.arange(64.0), 10000 ** (-torch.arange(0, 32, 2) / 32))
            self.register_buffer("cos", torch.cat([angles.cos()] * 2, -1))
            self.register_buffer("sin", torch.cat([angles.sin()] * 2, -1))
            self.register_buffer("mask", torch.full((64, 64), -1e9).triu(1))

        def turned(self, x):
            a, b = x.chunk(2, -1)
            return x * self.cos + torch.cat([-b, a], -1) * self.sin

        def forward(self, x):
            h = self.n1(x)
            q = self.turned(self.q(h).reshape(1, 64, 8, 32).transpose(1, 2))
            k, v = (part.reshape(1, 64, 4, 32).transpose(1, 2).repeat_interleave(2, 1) for part in self.kv(h).chunk(2, -1))
            shares = (q @ self.turned(k).transpose(-2, -1) / 32**0.5 + self.mask).softmax(-1)
            x = x + self.o((shares @ v).transpose(1, 2).reshape(1, 64, 256))
            h = self.n2(x)
            return x + self.down(F.silu(self.gate(h)) * self.up(h))

    return nn.Sequential(nn.Embedding(5000, 256), *[Layer() for _ in range(4)], Norm(), nn.Linear(256, 5000, False)), tokens(1, 64)


def translation_transformer():
    net = nn.Transformer(128, 4, 2, 2, 512, 0.0, batch_first=True)
    return Call(lambda p, a, b: p["out"](p["net"](p["words"](a), p["words"](b))), net=net, words=nn.Embedding(3000, 128), out=nn.Linear(128, 3000)), \
        tokens(1, 40, words=3000), tokens(1, 30, words=3000)  # fmt: skip


def recurrent(layer, width, length=50):
    return Call(
        lambda p, ids: p["out"](p["layer"](p["words"](ids))[0][:, -1]), words=nn.Embedding(5000, 64), layer=layer, out=nn.Linear(width, 10)
    ), tokens(1, length)


def lstm():
    return recurrent(nn.LSTM(64, 128, batch_first=True), 128)


def lstm_two_layers():
    return recurrent(nn.LSTM(64, 128, 2, batch_first=True), 128)


def bidirectional_lstm():
    return recurrent(nn.LSTM(64, 64, batch_first=True, bidirectional=True), 128)


def gru():
    return recurrent(nn.GRU(64, 128, batch_first=True), 128)


def plain_recurrence():
    return recurrent(nn.RNN(64, 128, batch_first=True), 128)


def lstm_one_step():
    def run(p, x, h, c):
        y, (h, c) = p["cell"](x, (h, c))
        return p["out"](y), h, c

    return Call(run, cell=nn.LSTM(64, 256), out=nn.Linear(256, 64)), normal(1, 1, 64), normal(1, 1, 256), normal(1, 1, 256)


def tcn():
    class Causal(nn.Module):
        def __init__(self, rate):
            super().__init__()
            self.rate, self.conv = rate, nn.Conv1d(64, 64, 3, dilation=rate)

        def forward(self, x):
            return x + F.relu(self.conv(F.pad(x, (2 * self.rate, 0))))

    return nn.Sequential(nn.Conv1d(8, 64, 1), *[Causal(2**i) for i in range(6)], nn.Conv1d(64, 1, 1)), normal(1, 8, 500)


def wavenet():
    class Gated(nn.Module):
        def __init__(self, rate):
            super().__init__()
            self.rate, self.a, self.b = rate, nn.Conv1d(32, 64, 2, dilation=rate), nn.Conv1d(32, 32, 1)

        def forward(self, x):
            a, b = self.a(F.pad(x, (self.rate, 0))).chunk(2, 1)
            return x + self.b(torch.tanh(a) * torch.sigmoid(b))

    return nn.Sequential(nn.Conv1d(1, 32, 1), *[Gated(2**i) for i in range(8)], nn.ReLU(), nn.Conv1d(32, 256, 1)), normal(1, 1, 2000)


def speech_encoder():
    front = nn.Sequential(nn.Conv1d(80, 192, 3, 1, 1), nn.GELU(), nn.Conv1d(192, 192, 3, 2, 1), nn.GELU())
    blocks = nn.Sequential(*[PlainAttention(192, 4) for _ in range(4)])
    return Call(lambda p, x: p["blocks"](p["front"](x).transpose(1, 2)), front=front, blocks=blocks), normal(1, 80, 400)


def conformer_block():
    class Convolution(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.a, self.c = nn.LayerNorm(144), nn.Conv1d(144, 288, 1), nn.Conv1d(144, 144, 1)
            self.b, self.n = nn.Conv1d(144, 144, 31, padding=15, groups=144), nn.BatchNorm1d(144)

        def forward(self, x):
            h = F.glu(self.a(self.norm(x).transpose(1, 2)), 1)
            return x + self.c(F.silu(self.n(self.b(h)))).transpose(1, 2)

    half = lambda: residual(nn.LayerNorm(144), nn.Linear(144, 576), nn.SiLU(), nn.Linear(576, 144))  # noqa: E731
    return nn.Sequential(
        *[part for _ in range(2) for part in (half(), PlainAttention(144, 4), Convolution(), half(), nn.LayerNorm(144))]
    ), normal(1, 150, 144)


def speech_by_gru():
    front = nn.Sequential(nn.Conv2d(1, 32, (11, 5), (2, 2), (5, 2)), nn.BatchNorm2d(32), nn.Hardtanh(0, 20))
    return Call(lambda p, x: p["out"](p["gru"](p["front"](x).permute(0, 3, 1, 2).flatten(2))[0]).log_softmax(-1), front=front,
                gru=nn.GRU(32 * 40, 128, batch_first=True, bidirectional=True), out=nn.Linear(256, 29)), normal(1, 1, 80, 200)  # fmt: skip


def keyword_spotting():
    part = lambda: [
        nn.Conv2d(64, 64, 3, 1, 1, groups=64),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.Conv2d(64, 64, 1),
        nn.BatchNorm2d(64),
        nn.ReLU(),
    ]  # noqa: E731
    return nn.Sequential(nn.Conv2d(1, 64, (10, 4), (2, 2), (5, 1)), nn.ReLU(), *part(), *part(), *part(), *part(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(64, 12)), normal(1, 1, 49, 10)  # fmt: skip


def text_cnn():
    parts = nn.ModuleList([nn.Conv1d(128, 100, size) for size in (3, 4, 5)])
    return Call(lambda p, ids: p["out"](torch.cat([F.relu(c(p["words"](ids).transpose(1, 2))).amax(2) for c in p["parts"]], 1)),
                words=nn.Embedding(5000, 128), parts=parts, out=nn.Linear(300, 10)), tokens(1, 100)  # fmt: skip


def encoder_of_torch():
    return Call(lambda p, x: p["net"](x), net=encoder(128, 4, 3)), normal(1, 100, 128)


def linear_attention():
    """Performers: positive random features in place of the softmax."""

    def run(p, ids):
        x = p["words"](ids)
        for qkv, out, norm in zip(p["qkv"], p["out"], p["norm"]):
            q, k, v = qkv(norm(x)).reshape(1, 150, 3, 6, 20).permute(2, 0, 3, 1, 4).unbind(0)
            q, k = (F.softplus(part @ p["drawn"].weight.T) for part in (q, k))
            mixed = (q @ (k.transpose(-2, -1) @ v)) / (q @ k.sum(2)[..., None] + 1e-3)
            x = x + out(mixed.transpose(1, 2).reshape(1, 150, 120))
        return p["head"](x.mean(1))

    several = lambda make: nn.ModuleList([make() for _ in range(3)])  # noqa: E731
    return Call(run, words=nn.Embedding(3000, 120), drawn=nn.Linear(20, 50, False), qkv=several(lambda: nn.Linear(120, 360)),
                out=several(lambda: nn.Linear(120, 120)), norm=several(lambda: nn.LayerNorm(120)), head=nn.Linear(120, 10)), tokens(1, 150, words=3000)  # fmt: skip


def temporal_fusion():
    class Gated(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.a, self.b, self.gate, self.norm = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, 2 * width), nn.LayerNorm(width)

        def forward(self, x):
            return self.norm(x + F.glu(self.gate(self.b(F.elu(self.a(x))))))

    def run(p, past, known):
        chosen = lambda x, name: (p[name](x)[..., None] * F.softmax(p[name + "s"](x), -1)[..., None, :]).mean(-1)  # noqa: E731
        a, state = p["past"](chosen(past, "x"))
        b, _ = p["future"](chosen(known, "k"), state)
        h = p["g1"](torch.cat([a, b], 1))
        scores = p["q"](h[:, 70:]).reshape(1, 14, 4, 12).transpose(1, 2) @ p["key"](h).reshape(1, 84, 4, 12).permute(0, 2, 3, 1)
        return p["out"](p["g2"](h[:, 70:] + p["o"](scores.softmax(-1).mean(1) @ p["v"](h))))

    return Call(run, x=nn.Linear(9, 48), xs=nn.Linear(9, 9), k=nn.Linear(5, 48), ks=nn.Linear(5, 5), past=nn.LSTM(48, 48, batch_first=True),
                future=nn.LSTM(48, 48, batch_first=True), g1=Gated(48), g2=Gated(48), q=nn.Linear(48, 48), key=nn.Linear(48, 48), v=nn.Linear(48, 12),
                o=nn.Linear(12, 48), out=nn.Linear(48, 3)), normal(1, 70, 9), normal(1, 14, 5)  # fmt: skip


def oblivious_trees():
    """Soft decision trees (NODE) of depth 5, 64 candidates."""

    def run(p, x):
        split = torch.sigmoid(p["split"](x).reshape(64, 100, 5, 1))
        split = torch.cat([split, 1 - split], -1)
        reached = split[:, :, 0]
        for level in range(1, 5):
            reached = (reached[..., None] * split[:, :, level, None]).flatten(2)
        return p["leaves"](reached.flatten(1))

    return Call(run, split=nn.Linear(61, 500), leaves=nn.Linear(3200, 1)), normal(64, 61)


def source_separation():
    """A TasNet: an encoder of waves, dilated blocks over 1-D channels, a mask, a transposed decoder."""

    def block(dilation):
        return residual(nn.Conv1d(64, 128, 1), nn.PReLU(), nn.GroupNorm(1, 128), nn.Conv1d(128, 128, 3, 1, dilation, dilation, groups=128),
                        nn.PReLU(), nn.GroupNorm(1, 128), nn.Conv1d(128, 64, 1))  # fmt: skip

    def run(p, wave):
        made = F.relu(p["encode"](wave))
        masks = torch.sigmoid(p["masks"](p["blocks"](p["norm"](made)))).reshape(1, 2, 64, -1)
        return p["decode"]((masks * made[:, None])[0])

    return Call(run, encode=nn.Conv1d(1, 64, 16, 8), norm=nn.GroupNorm(1, 64), blocks=nn.Sequential(*[block(2**i) for i in range(6)]),
                masks=nn.Conv1d(64, 128, 1), decode=nn.ConvTranspose1d(64, 1, 16, 8)), normal(1, 1, 8000)  # fmt: skip


def deepfm():
    def run(p, ids, x):
        v = p["v"](ids)
        pairs = 0.5 * (v.sum(1).pow(2) - v.pow(2).sum(1)).sum(1, keepdim=True)
        return torch.sigmoid(p["w"](ids).sum(1) + pairs + p["deep"](torch.cat([v.flatten(1), x], 1)))

    deep = nn.Sequential(nn.Linear(429, 400), nn.ReLU(), nn.Linear(400, 400), nn.ReLU(), nn.Linear(400, 1))
    return Call(run, v=nn.Embedding(20000, 16), w=nn.Embedding(20000, 1), deep=deep), tokens(1, 26, words=20000), normal(1, 13)


def dlrm():
    def run(p, ids, x):
        rows = torch.cat([p["bottom"](x)[:, None], p["v"](ids)], 1)
        pairs = (rows @ rows.transpose(1, 2)).flatten(1)
        return torch.sigmoid(p["top"](torch.cat([rows[:, 0], pairs], 1)))

    bottom = nn.Sequential(nn.Linear(13, 512), nn.ReLU(), nn.Linear(512, 64), nn.ReLU())
    top = nn.Sequential(nn.Linear(64 + 27 * 27, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 1))
    return Call(run, v=nn.Embedding(20000, 64), bottom=bottom, top=top), tokens(1, 26, words=20000), normal(1, 13)


def interest_of_history():
    def run(p, history, item):
        keys, query = p["v"](history), p["v"](item)[:, None].expand(-1, 100, -1)
        shares = p["score"](torch.cat([query, keys, query - keys, query * keys], 2)).softmax(1)
        return p["out"](torch.cat([(shares * keys).sum(1), query[:, 0]], 1))

    score = nn.Sequential(nn.Linear(128, 80), nn.PReLU(), nn.Linear(80, 1))
    return Call(run, v=nn.Embedding(20000, 32), score=score, out=nn.Sequential(nn.Linear(64, 200), nn.PReLU(), nn.Linear(200, 1))), \
        tokens(1, 100, words=20000), tokens(1, words=20000)  # fmt: skip


def ranking_of_candidates():
    """One user beside 500 candidates, the ten best."""

    def run(p, user, items):
        rows = torch.cat([p["user"](user).expand(500, -1), p["item"](items)], 1)
        return p["net"](rows)[:, 0].topk(10)

    net = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 1))
    return Call(run, user=nn.Linear(32, 64), item=nn.Embedding(20000, 64), net=net), normal(1, 32), tokens(500, words=20000)


def dense(widths, activation=nn.ReLU):
    parts = [part for a, b in zip(widths, widths[1:]) for part in (nn.Linear(a, b), activation())]
    return nn.Sequential(*parts[:-1]), normal(1, widths[0])


def mlp_wide():
    return dense([1024, 4096, 4096, 100])


def mlp_deep():
    return dense([128] * 40)


def mlp_tiny():
    return dense([8, 32, 32, 4], nn.Tanh)


def autoencoder():
    return dense([784, 512, 128, 32, 128, 512, 784], nn.SELU)


def variational_decoder():
    return nn.Sequential(nn.Linear(32, 128 * 49), nn.ReLU(), nn.Unflatten(1, (128, 7, 7)), nn.ConvTranspose2d(128, 64, 3, 2, 1, 1), nn.ReLU(),
                         nn.ConvTranspose2d(64, 32, 3, 2, 1, 1), nn.ReLU(), nn.Conv2d(32, 1, 3, 1, 1), nn.Sigmoid()), normal(1, 32)  # fmt: skip


def graph_convolution_dense():
    def run(p, matrix, x):
        return p["b"](matrix @ F.relu(p["a"](matrix @ x)))

    matrix = np.random.RandomState(RANDOM).rand(500, 500) > 0.98
    return (
        Call(run, a=nn.Linear(128, 64), b=nn.Linear(64, 7)),
        (matrix / np.maximum(1, matrix.sum(1, keepdims=True))).astype("f"),
        normal(500, 128),
    )


def graph_by_scatter():
    def run(p, x, source, target):
        for part in p["layers"]:
            sums = torch.zeros(1000, 64).scatter_add(0, target[:, None].expand(-1, 64), part(x)[source])
            x = F.relu(x + sums)
        return p["out"](x.mean(0, keepdim=True))

    return Call(run, layers=nn.ModuleList([nn.Linear(64, 64) for _ in range(3)]), out=nn.Linear(64, 10)), normal(1000, 64), \
        tokens(6000, words=1000), np.sort(tokens(6000, words=1000))  # fmt: skip


def point_net():
    return Call(lambda p, x: p["b"](p["a"](x).amax(2)), a=nn.Sequential(nn.Conv1d(3, 64, 1), nn.BatchNorm1d(64), nn.ReLU(), nn.Conv1d(64, 128, 1), nn.ReLU(),
                nn.Conv1d(128, 512, 1)), b=nn.Sequential(nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 40))), normal(1, 3, 1024)  # fmt: skip


def policy_of_images():
    return nn.Sequential(nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 64, 3), nn.ReLU(), nn.Flatten(),
                         nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, 6)), normal(1, 4, 84, 84)  # fmt: skip


def routed_experts():
    def run(p, x):
        gates, chosen = p["gate"](x).softmax(-1).topk(2)
        results = torch.stack([part(x) for part in p["experts"]], 1)
        picked = results.gather(1, chosen[..., None].expand(-1, -1, 128))
        return (picked * gates[..., None]).sum(1)

    experts = nn.ModuleList([nn.Sequential(nn.Linear(128, 256), nn.GELU(), nn.Linear(256, 128)) for _ in range(4)])
    return Call(run, gate=nn.Linear(128, 4), experts=experts), normal(64, 128)


def loop_of_onnx():
    """A recurrence written as ONNX's Loop, which torch's exporter would unroll."""
    from onnx import TensorProto, helper, numpy_helper

    weights = numpy_helper.from_array(normal(128, 128) / 11, "w")
    body = helper.make_graph(
        [helper.make_node("MatMul", ["h", "w"], ["m"]), helper.make_node("Add", ["m", "x"], ["s"]), helper.make_node("Tanh", ["s"], ["next"]),
         helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Identity", ["next"], ["each"])],
        "body",
        [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("go", TensorProto.BOOL, []),
         helper.make_tensor_value_info("h", TensorProto.FLOAT, [1, 128])],
        [helper.make_tensor_value_info("on", TensorProto.BOOL, []), helper.make_tensor_value_info("next", TensorProto.FLOAT, [1, 128]),
         helper.make_tensor_value_info("each", TensorProto.FLOAT, [1, 128])])  # fmt: skip
    turns, true = numpy_helper.from_array(np.array(50), "turns"), numpy_helper.from_array(np.array(True), "true")
    graph = helper.make_graph(
        [helper.make_node("Loop", ["turns", "true", "x"], ["last", "all"], body=body)],
        "loop",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 128])],
        [
            helper.make_tensor_value_info("last", TensorProto.FLOAT, [1, 128]),
            helper.make_tensor_value_info("all", TensorProto.FLOAT, [50, 1, 128]),
        ],
        [weights, turns, true],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), {"x": normal(1, 128)}
