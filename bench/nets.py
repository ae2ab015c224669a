"""The benchmark nets, written once against a small op interface, so that every peer builds the same graph with the same
weights. A backend offers conv, depthwise, batch_norm, relu, relu6, max_pool, global_pool, dense, add, flatten,
layer_norm, gelu, embed and attention. Weights come from make_weight(name, shape, kind), deterministic by name, and are
kept in torch's layout (OIHW, [out, in]); NHWC backends transpose when they load them."""

import zlib

import numpy as np

# BERT-base
VOCABULARY, SEQUENCE, HIDDEN, HEADS, LAYERS, INNER = 30522, 128, 768, 12, 12, 3072
GPT_VOCABULARY = 50257


def make_weight(name, shape, kind):
    random = np.random.RandomState(zlib.crc32(name.encode()) & 0x7FFFFFFF)
    if kind == "he":  # convolution or dense before a relu: He's normal on the fan-in
        return (random.standard_normal(shape) * np.sqrt(2.0 / np.prod(shape[1:]))).astype(np.float32)
    if kind == "xavier":
        return (random.standard_normal(shape) * np.sqrt(1.0 / shape[-1])).astype(np.float32)
    if kind == "embedding":
        return (random.standard_normal(shape) * 0.02).astype(np.float32)
    return {"one": np.ones, "zero": np.zeros}[kind](shape, np.float32)


def resnet50(ops, x):
    """Version 1.5: the stride sits on the 3x3 convolution."""
    x = ops.relu(ops.batch_norm(ops.conv(x, "conv1", 3, 64, 7, 2), "bn1", 64))
    x = ops.max_pool(x, 3, 2, 1)
    channels = 64
    for stage, (width, blocks) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for block in range(blocks):
            stride = 2 if stage and block == 0 else 1
            prefix = f"l{stage + 1}.{block}."
            x = _bottleneck(ops, x, prefix, channels, width, stride, first=block == 0)
            channels = width * 4
    return ops.dense(ops.global_pool(x), "fc", 2048, 1000)


def _bottleneck(ops, x, prefix, channels, width, stride, first):
    y = ops.relu(ops.batch_norm(ops.conv(x, prefix + "c1", channels, width, 1, 1), prefix + "b1", width))
    y = ops.relu(ops.batch_norm(ops.conv(y, prefix + "c2", width, width, 3, stride), prefix + "b2", width))
    y = ops.batch_norm(ops.conv(y, prefix + "c3", width, width * 4, 1, 1), prefix + "b3", width * 4)
    if first:
        x = ops.batch_norm(ops.conv(x, prefix + "ds", channels, width * 4, 1, stride), prefix + "dsb", width * 4)
    return ops.relu(ops.add(y, x))


# expansion, channels, blocks, stride
MOBILENET_STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


def mobilenetv2(ops, x):
    x = ops.relu6(ops.batch_norm(ops.conv(x, "stem", 3, 32, 3, 2), "stemb", 32))
    channels, index = 32, 0
    for expansion, width, blocks, first_stride in MOBILENET_STAGES:
        for block in range(blocks):
            stride = first_stride if block == 0 else 1
            x = _inverted_residual(ops, x, f"m{index}.", channels, width, expansion, stride)
            channels, index = width, index + 1
    x = ops.relu6(ops.batch_norm(ops.conv(x, "head", 320, 1280, 1, 1), "headb", 1280))
    return ops.dense(ops.global_pool(x), "fc", 1280, 1000)


def _inverted_residual(ops, x, prefix, channels, width, expansion, stride):
    inner, y = channels * expansion, x
    if expansion != 1:
        y = ops.relu6(ops.batch_norm(ops.conv(y, prefix + "e", channels, inner, 1, 1), prefix + "eb", inner))
    y = ops.relu6(ops.batch_norm(ops.depthwise(y, prefix + "d", inner, 3, stride), prefix + "db", inner))
    y = ops.batch_norm(ops.conv(y, prefix + "p", inner, width, 1, 1), prefix + "pb", width)
    return ops.add(x, y) if stride == 1 and channels == width else y


def bert(ops, ids):
    """The encoder of BERT-base, without dropout and without a padding mask."""
    x = ops.layer_norm(ops.embed(ids), "emb.ln")
    for layer in range(LAYERS):
        prefix = f"h{layer}."
        q, k, v = (ops.dense(x, prefix + part, HIDDEN, HIDDEN, "xavier") for part in "qkv")
        attended = ops.dense(ops.attention(q, k, v), prefix + "o", HIDDEN, HIDDEN, "xavier")
        x = ops.layer_norm(ops.add(attended, x), prefix + "ln1")
        inner = ops.gelu(ops.dense(x, prefix + "f1", HIDDEN, INNER, "xavier"))
        x = ops.layer_norm(ops.add(ops.dense(inner, prefix + "f2", INNER, HIDDEN, "xavier"), x), prefix + "ln2")
    return x


PAST = 128  # words before the new one


def gpt2(ops, ids, *cache):
    """The next word's scores of GPT-2 (small), and the keys and values of each layer with its own."""
    x, kept = ops.words_at(ids, GPT_VOCABULARY, PAST), []
    for layer in range(LAYERS):
        prefix = f"g{layer}."
        qkv = ops.dense(ops.layer_norm(x, prefix + "ln1"), prefix + "qkv", HIDDEN, 3 * HIDDEN, "xavier")
        y, *pair = ops.cached_attention(qkv, *cache[2 * layer : 2 * layer + 2])
        x, kept = ops.add(x, ops.dense(y, prefix + "o", HIDDEN, HIDDEN, "xavier")), kept + pair
        y = ops.gelu(ops.dense(ops.layer_norm(x, prefix + "ln2"), prefix + "f1", HIDDEN, INNER, "xavier"))
        x = ops.add(x, ops.dense(y, prefix + "f2", INNER, HIDDEN, "xavier"))
    return ops.dense(ops.layer_norm(x, "g.ln"), "g.words", HIDDEN, GPT_VOCABULARY, "xavier"), *kept


def lenet(ops, x):
    x = ops.max_pool(ops.relu(ops.conv(x, "c1", 1, 6, 5, 1, bias=True)), 2, 2, 0)
    x = ops.max_pool(ops.relu(ops.conv(x, "c2", 6, 16, 5, 1, pad=0, bias=True)), 2, 2, 0)
    x = ops.relu(ops.dense(ops.flatten(x), "f1", 400, 120))
    return ops.dense(ops.relu(ops.dense(x, "f2", 120, 84)), "f3", 84, 10)


def mlp(ops, x):
    return ops.dense(ops.relu(ops.dense(x, "f1", 784, 512)), "f2", 512, 10)


# name: (builder, input shape without the batch, NCHW; forward GFLOP of one item in convolutions and matrix products)
NETS = {
    "resnet50": (resnet50, (3, 224, 224), 8.18),
    "mobilenetv2": (mobilenetv2, (3, 224, 224), 0.601),
    "bert": (bert, (SEQUENCE,), 22.35),
    "gpt2": (gpt2, (1,), 0.25),
    "lenet": (lenet, (1, 28, 28), 0.00084),
    "mlp": (mlp, (784,), 0.000813),
}


def build(model, ops, *inputs):
    return NETS[model][0](ops, *inputs)


def make_input(model, batch, nhwc=False):
    """The input x of (model, batch), the same for every peer."""
    shape = (batch, *NETS[model][1])
    random = np.random.RandomState(7)
    if model in ("bert", "gpt2"):
        return random.randint(0, VOCABULARY, shape).astype(np.int64)
    x = random.standard_normal(shape).astype(np.float32)
    return np.ascontiguousarray(x.transpose(0, 2, 3, 1)) if nhwc and x.ndim == 4 else x


def make_inputs(model, batch):
    """All inputs by name."""
    inputs = {"x": make_input(model, batch)}
    if model == "gpt2":
        random, shape = np.random.RandomState(8), (batch, HEADS, PAST, HIDDEN // HEADS)
        inputs |= {f"past{i}": random.standard_normal(shape).astype(np.float32) for i in range(2 * LAYERS)}
    return inputs
