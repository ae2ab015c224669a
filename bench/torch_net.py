"""The torch backend of nets.py: one module that holds the parameters by name."""

import math

import nets
import torch
import torch.nn.functional as F
from torch import nn

STATISTICS = (".rm", ".rv")


class Net(nn.Module):
    """`weights` ({name: array}) replace the made ones; `fused_attention` uses torch's own attention kernel."""

    def __init__(self, model, weights=None, fused_attention=True):
        super().__init__()
        self.model, self.fused_attention, self.momentum = model, fused_attention, 0.1
        self.source = weights or {}
        self.parameter_of = nn.ParameterDict()
        self.names = []
        self.building = True
        with torch.no_grad():
            self.eval()
            self(*map(torch.from_numpy, nets.make_inputs(model, 1).values()))
        self.building = False

    def forward(self, *inputs):
        return nets.build(self.model, self, *inputs)

    def numpy_weights(self):
        return {name: self.weight(name, None, None).detach().numpy().copy() for name in self.names}

    def weight(self, name, shape, kind):
        key = name.replace(".", "_")
        statistic = name.endswith(STATISTICS)
        if self.building:
            self.names.append(name)
            array = self.source.get(name)
            tensor = torch.from_numpy((nets.make_weight(name, shape, kind) if array is None else array).copy())
            if statistic:
                self.register_buffer(key, tensor)
            else:
                self.parameter_of[key] = nn.Parameter(tensor)
        return getattr(self, key) if statistic else self.parameter_of[key]

    def conv(self, x, name, inputs, outputs, size, stride, pad=None, bias=False):
        kernel = self.weight(name + ".w", (outputs, inputs, size, size), "he")
        offset = self.weight(name + ".bias", (outputs,), "zero") if bias else None
        return F.conv2d(x, kernel, offset, stride, size // 2 if pad is None else pad)

    def depthwise(self, x, name, channels, size, stride):
        kernel = self.weight(name + ".w", (channels, 1, size, size), "he")
        return F.conv2d(x, kernel, None, stride, size // 2, 1, channels)

    def batch_norm(self, x, name, channels):
        kinds = ((".g", "one"), (".b", "zero"), (".rm", "zero"), (".rv", "one"))
        gain, bias, mean, variance = (self.weight(name + end, (channels,), kind) for end, kind in kinds)
        return F.batch_norm(x, mean, variance, gain, bias, self.training, self.momentum, 1e-5)

    def dense(self, x, name, inputs, outputs, kind="he"):
        kernel = self.weight(name + ".w", (outputs, inputs), kind)
        return F.linear(x, kernel, self.weight(name + ".bias", (outputs,), "zero"))

    def layer_norm(self, x, name):
        gain = self.weight(name + ".g", (nets.HIDDEN,), "one")
        return F.layer_norm(x, (nets.HIDDEN,), gain, self.weight(name + ".b", (nets.HIDDEN,), "zero"), 1e-12)

    def embed(self, ids):
        words = self.weight("emb.word", (nets.VOCABULARY, nets.HIDDEN), "embedding")
        places = self.weight("emb.pos", (nets.SEQUENCE, nets.HIDDEN), "embedding")
        return F.embedding(ids, words) + places + self.weight("emb.type", (nets.HIDDEN,), "embedding")

    def attention(self, q, k, v):
        items, depth = q.shape[0], nets.HIDDEN // nets.HEADS
        q, k, v = (t.view(items, nets.SEQUENCE, nets.HEADS, depth).transpose(1, 2) for t in (q, k, v))
        if self.fused_attention:
            result = F.scaled_dot_product_attention(q, k, v)
        else:
            result = torch.softmax(q @ k.transpose(2, 3) / math.sqrt(depth), -1) @ v
        return result.transpose(1, 2).reshape(items, nets.SEQUENCE, nets.HIDDEN)

    def words_at(self, ids, words, place):
        table = self.weight("emb.word", (words, nets.HIDDEN), "embedding")
        return F.embedding(ids, table) + self.weight("emb.pos", (place + 1, nets.HIDDEN), "embedding")[place]

    def cached_attention(self, qkv, keys, values):
        q, k, v = (part.unflatten(-1, (nets.HEADS, -1)).transpose(1, 2) for part in qkv.chunk(3, -1))
        keys, values = torch.cat([keys, k], 2), torch.cat([values, v], 2)
        shares = torch.softmax(q @ keys.transpose(2, 3) / math.sqrt(q.shape[-1]), -1)
        return (shares @ values).transpose(1, 2).flatten(2), keys, values

    def relu(self, x):
        return F.relu(x)

    def relu6(self, x):
        return F.relu6(x)

    def gelu(self, x):
        return F.gelu(x)

    def max_pool(self, x, size, stride, pad):
        return F.max_pool2d(x, size, stride, pad)

    def global_pool(self, x):
        return x.mean((2, 3))

    def add(self, a, b):
        return a + b

    def flatten(self, x):
        return x.flatten(1)
